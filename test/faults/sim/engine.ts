import { commands, keysOf, reading } from './commands.ts'
import type { Reply } from './commands.ts'
import { ReplyError } from './keyspace.ts'
import type { Keyspace } from './keyspace.ts'
import { Table } from './lua/table.ts'
import { translate } from './lua/translate.ts'
import type { Program } from './lua/translate.ts'

/**
 * Runs the scripts of lua/ as they are, translated (lua/translate.ts), on simulated data. test/faults/simulation.smoke.test.ts runs the same on a real
 * Redis, and compares every reply and all data.
 */

export type Argument = string | Buffer

const translated = new Map<string, Engine>()

/** The engine of a script with this text. The name is for who reads what it does. */
export function engineOf (source: string, name = ''): Engine {
  let engine = translated.get(source)
  if (engine === undefined) translated.set(source, engine = new Engine(source, name))
  return engine
}

export class Engine {
  readonly name: string
  readonly #program: Program
  /** By its flags: may it write, and may it when Redis is full? */
  readonly writes: boolean
  readonly allowsOom: boolean

  constructor (source: string, name: string) {
    this.name = name
    const flags = source.slice(0, source.indexOf('\n'))
    this.writes = !flags.includes('no-writes')
    this.allowsOom = !this.writes || flags.includes('allow-oom')
    this.#program = translate(source)
  }

  /** @returns the reply in RESP2 @throws {ReplyError} what was written before stays */
  run (on: Keyspace, keys: readonly string[], args: readonly Argument[]): unknown {
    const call = (name: string, ...words: unknown[]) => {
      const texts = words.map(textOf)
      if (!this.writes && !reading.has(name)) throw new ReplyError('ERR Write commands are not allowed from read-only scripts.')
      on.check(keysOf(name, texts), !reading.has(name))
      return valueOf(commands[name]!(on, ...texts))
    }
    const pcall = (name: string, ...words: unknown[]) => {
      try {
        return call(name, ...words)
      } catch (error) {
        if (error instanceof ReplyError) return new Table()
        throw error
      }
    }
    const texts = args.map(arg => typeof arg === 'string' ? arg : arg.toString('latin1'))
    const given = this.#program(new Table([...keys]), new Table(texts), call, pcall)
    return replyOf(Array.isArray(given) ? given[0] : given)
  }
}

function textOf (word: unknown): string {
  if (typeof word === 'string') return word
  if (typeof word === 'number') return String(word)
  throw new ReplyError('ERR Lua redis lib command arguments must be strings or integers')
}

/** A command's reply in Lua. */
function valueOf (reply: Reply): unknown {
  return Array.isArray(reply) ? new Table(reply.map(valueOf)) : reply
}

/** A script's reply in RESP2. */
function replyOf (value: unknown): unknown {
  if (typeof value === 'string') return Buffer.from(value, 'latin1')
  if (typeof value === 'number') return Math.trunc(value)
  if (value === true) return 1
  if (!(value instanceof Table)) return null
  const refusal = value.get('err')
  if (refusal !== undefined) return new ReplyError(String(refusal))
  const { list } = value
  const end = list.indexOf(undefined)
  return (end === -1 ? list : list.slice(0, end)).map(replyOf)
}
