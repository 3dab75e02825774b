import { Random } from '../random.ts'
import { Time } from './time.ts'
import type { Process } from './time.ts'
import type { ScriptName } from '../../../src/redis/outcomes.ts'
import type { Script } from '../../../src/redis/scripts.ts'
import type { Connection } from './connection.ts'
import { engineOf } from './engine.ts'
import type { Engine } from './engine.ts'

/** A change of the scripts' texts. @property of which scripts; left out: of all that have the text */
export interface LuaChange { readonly from: string, readonly to: string, readonly of?: readonly ScriptName[] }

/** A deliberate fault, to show that the simulator finds it. */
export interface Mutation {
  readonly name: string
  /** In scripts, in those that have this text: what becomes what. */
  readonly lua?: ReadonlyArray<LuaChange>
  /** In a lane's connection, before its use. */
  connection? (connection: Connection): void
  /** In the store's guarantees. */
  replicas? (replicas: number): number
  /** In failovers. */
  readonly hasty?: boolean
  /** Nobody looks for events that their replica did not move. */
  readonly noRound?: boolean
  /** Where it shows: only there it is looked for. */
  readonly shows?: 'in a Cluster' | 'in callbacks' | 'in feeds' | 'in groups' | 'in order' | 'in order in a Cluster' | 'in schedules' | 'encrypted'
}

/** Everything outside the services: clients, servers and the network. */
export const outside: Process = { name: 'outside', skew: 0, pausedUntil: 0, dead: false }

/** What one simulation shares: its time, its dice, its script engine and, for who wants to read it, what happened. */
export class World {
  readonly random: Random
  readonly time = new Time(outside)
  /** Whether the network is always quick. */
  isCalm = false
  /** The number of connections so far: each has a port of its own. */
  ports = 0
  /** What servers noticed that scripts must not do. */
  readonly faults: string[] = []
  readonly mutation: Mutation | null
  readonly #aliases = new Map<string, string>()
  readonly #engines = new Map<Script, Engine>()
  /** Null if nobody reads it. */
  readonly trace: string[] | null

  constructor (seed: number, mutation: Mutation | null, trace: string[] | null) {
    this.random = new Random(seed)
    this.mutation = mutation
    this.trace = trace
  }

  /** Runs something outside the services after so many milliseconds. */
  after (milliseconds: number, run: () => void): void {
    this.time.after(milliseconds, outside, run)
  }

  at (moment: number, run: () => void): void {
    this.time.at(moment, outside, run)
  }

  /** A random network latency: mostly short, sometimes long. */
  latency (): number {
    const { random } = this
    if (this.isCalm || !random.chance(0.03)) return 0.1 + random.next()
    return random.chance(0.8) ? 1 + 60 * random.next() : 1500 * random.next()
  }

  /** How a script runs, with the mutation. */
  engineOf (script: Script): Engine {
    let engine = this.#engines.get(script)
    // What runs several calls has no name: each of them is checked before its own first write, as if it came alone.
    const name = script.source.includes('local function one(') ? '' : script.name
    if (engine === undefined) this.#engines.set(script, engine = engineOf(changed(script, this.mutation?.lua ?? []), name))
    return engine
  }

  /** The service's own tokens are random, whatever the seed. */
  #aliasOf (token: string): string {
    let alias = this.#aliases.get(token)
    if (alias === undefined) this.#aliases.set(token, alias = `token-${this.#aliases.size}`)
    return alias
  }

  tell (line: string): void {
    // So are the nonces of what is encrypted, as bytes or as a word.
    // eslint-disable-next-line no-control-regex -- bytes that are encrypted begin with 1 or 2
    const known = line.replace(/[\x01\x02][\w-]{8}[^]*?(?= -> |$)|~[\w-]{30,}/g, sealed => `~${sealed.length}`)
      .replace(/(?<![\w-])([kqz]?)([\w-]{22}|[\w-]{20})(?![\w-])/g, (_, letter, token) => letter + this.#aliasOf(token))
    this.trace?.push(`${this.time.now.toFixed(3)} ${known}`)
  }
}

function changed ({ name, source }: Script, changes: readonly LuaChange[]): string {
  let text = source
  for (const { from, to, of } of changes) if (of?.includes(name) ?? true) text = text.replaceAll(from, () => to)
  return text
}
