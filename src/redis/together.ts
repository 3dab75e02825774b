import type { Writable } from 'node:stream'
import { OwnCommand, argument, inLatin1 } from './call.ts'
import type { ScriptCall } from './call.ts'
import type { Script } from './scripts.ts'

/** How many calls one command has at most: Redis serves no other client while it runs. */
const maxCalls = 64
/** A call with more bytes than this is sent alone: it gains nothing. */
const maxBytes = 16 * 1024
const zero = '0'.charCodeAt(0)

/**
 * Calls of one script that are sent as one command (lua/lib/several.lua). Each gets the reply that it would have got
 * alone.
 */
export class SeveralCalls extends OwnCommand {
  readonly calls: readonly ScriptCall[]
  readonly script: Script

  constructor (calls: readonly ScriptCall[], script: Script) {
    super()
    this.calls = calls
    this.script = script
  }

  resolve (replies: unknown[]): void {
    for (const [at, call] of this.calls.entries()) {
      const reply = replies[at]
      // The script ended before it, since those before it returned much.
      if (at >= replies.length) call.skipped()
      else if (reply instanceof Error) call.reject(reply)
      else call.resolve(reply)
    }
  }

  reject (error: Error): void {
    for (const call of this.calls) call.reject(error)
  }

  toWritable (stream: Writable): string | Buffer {
    let [keys, shape, keyCount, argumentCount, withSource] = ['', '', 0, 0, false]
    for (const { request, withSource: isUnknown } of this.calls) {
      const own = 1 + request.texts.length + (request.bytes === undefined ? 0 : 1)
      for (const key of request.keys) keys += argument(key)
      shape += String.fromCharCode(zero + request.keys.length, zero + own)
      keyCount += request.keys.length
      argumentCount += own
      withSource ||= isUnknown
    }
    const { evalsha, eval: text } = this.script
    let some = `*${4 + keyCount + argumentCount}\r\n${withSource ? text : evalsha}${argument(String(keyCount))}${keys}` +
      argument(shape)
    for (const { request: { texts, bytes }, deadline } of this.calls) {
      some += `$13\r\n${deadline}\r\n`
      for (const text of texts) some += argument(text)
      if (bytes === undefined) continue
      stream.write(inLatin1(`${some}$${bytes.length}\r\n`))
      stream.write(bytes)
      some = '\r\n'
    }
    return inLatin1(some)
  }
}

/**
 * Collects a tick's calls of the scripts that can run for several. Calls of the same tick have no order, so others may
 * overtake them.
 */
export class Together {
  readonly #isOneRedis: boolean
  #calls = new Map<string, ScriptCall[]>()

  /** @param isOneRedis whether one command may have calls of several partitions */
  constructor (isOneRedis: boolean) {
    this.#isOneRedis = isOneRedis
  }

  /** @returns whether it was taken; otherwise it is to be sent alone */
  take (call: ScriptCall): boolean {
    const { script: { name, several }, tag, bytes, isAlone } = call.request
    // While a slot moves, a call that was refused may be refused again, and the others of its command with it.
    if (several === undefined || isAlone === true || call.wasRefused) return false
    if (bytes !== undefined && bytes.length > maxBytes) return false
    const key = this.#isOneRedis ? name : `${name} ${tag}`
    const others = this.#calls.get(key)
    if (others === undefined) this.#calls.set(key, [call])
    else others.push(call)
    return true
  }

  get size (): number {
    return this.#calls.size
  }

  /** Sends the calls that were taken: a single one of its script alone, the rest in commands of several. */
  send (one: (command: ScriptCall | SeveralCalls) => void): void {
    const taken = this.#calls
    // Another Map each time. After `clear`, the old table still has its calls, and a link to the new table. Once one
    // table is in the old generation, the collector of young objects keeps all that come after it, with their calls:
    // a fifth of the service's CPU (bench, mix).
    this.#calls = new Map()
    for (const calls of taken.values()) {
      for (let at = 0; at < calls.length; at += maxCalls) {
        const some = calls.slice(at, at + maxCalls)
        one(some.length === 1 ? some[0]! : new SeveralCalls(some, some[0]!.request.script.several!))
      }
    }
  }
}
