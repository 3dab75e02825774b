import { commands, keysOf, reading } from './commands.ts'
import { Database } from './database.ts'
import { engineOf } from './engine.ts'
import type { Argument, Engine } from './engine.ts'
import { Keyspace, ReplyError } from './keyspace.ts'
import type { Link } from './link.ts'
import type { Script } from '../../../src/redis/scripts.ts'
import { Session } from './session.ts'
import { epoch } from './time.ts'
import type { World } from './world.ts'
import type { Connection } from './connection.ts'

/** A connection's commands. `eval` is a script that comes as text, `info` the ready check. */
export type Command =
  { kind: 'script', script: Script, withSource: boolean, keys: readonly string[], args: readonly Argument[] } |
  { kind: 'eval', text: string, key: string } | { kind: 'wait', replicas: number, patience: number } | { kind: 'kill', who: string } |

  { kind: 'command', name: string, args: readonly string[] } | { kind: 'time' | 'info' | 'asking' | 'who' | 'slots' }

/** They see to one handoff after another, each of which is checked before its first write; the sweep looks again for what isn't here. */
const stepByStep = new Set(['sweep', 'take'])

/** The error for keys that this server doesn't have; null if it has them. */
export type Route = (keys: readonly string[], asking: boolean) => ReplyError | null

/** One redis-server: executes commands one after another, writes its log to disk before it answers, and sends it to its replicas. */
export class Server {
  readonly name: string
  readonly world: World
  /** Its clock's offset from the true time, in milliseconds. */
  skew: number
  db = new Database()
  up = true
  pausedUntil = 0
  /** The master that it replicates; null for a master. */
  master: Server | null = null
  readonly links = new Set<Link>()
  readonly sessions = new Set<Session>()
  /** The number of connections since its start. */
  accepted = 0
  /** The scripts in its cache. */
  readonly known = new Set<string>()
  loadingUntil = 0
  full = false
  /** It dies after its next write, before that is on disk. */
  doomed = false
  route: Route = () => null
  /** In a Cluster: is the key on the node that its slot comes from? */
  isElsewhere: ((key: string) => boolean) | null = null
  /** CLUSTER SLOTS. */
  slots: () => unknown = () => []

  constructor (world: World, name: string, skew: number) {
    this.world = world
    this.name = name
    this.skew = skew
  }

  get clock (): number {
    return epoch + this.world.time.now + this.skew
  }

  accept (connection: Connection): Session {
    const session = new Session(this, connection)
    this.sessions.add(session)
    return session
  }

  /** A paused server carries out what has arrived when it resumes, in order; what reaches a dead one is lost. */
  whenAwake (run: () => void): void {
    if (!this.up) return
    if (this.isPaused) this.world.at(this.pausedUntil, () => this.whenAwake(run))
    else run()
  }

  /** Carries out what arrived in one piece, and writes it to disk before it answers. @returns whether it survived that */
  durably (run: () => void): boolean {
    if (!this.doomed) {
      run()
      return true
    }
    const before = this.db.copy()
    run()
    if (this.db.log.length === before.log.length) return true
    this.db = before
    this.crash()
    return false
  }

  execute (command: Exclude<Command, { kind: 'wait' | 'asking' | 'who' | 'kill' }>, asking: boolean): unknown {
    switch (command.kind) {
      case 'time': return [String(Math.floor(this.clock / 1000)), String(Math.floor(this.clock % 1000 * 1000))]
      case 'info': return { loading: this.#isLoading(), role: this.master === null ? 'master' : 'slave' }
      case 'slots': return this.slots()
      case 'command': return this.#do(command.name, command.args, asking)
      case 'eval': return this.#run(engineOf(command.text), [command.key], [], asking)
      case 'script': return this.#runScript(command, asking)
    }
  }

  #runScript ({ script, withSource, keys, args }: Command & { kind: 'script' }, asking: boolean): unknown {
    const { name } = script
    const reply = this.#refusal(keys, false, asking) ?? this.#runKnown(script, withSource, keys, args, asking)
    if (this.world.trace !== null) this.world.tell(`${this.name} ${name} ${args.map(readable).join(' ')} -> ${readable(reply)}`)
    return reply
  }

  #runKnown (script: Script, withSource: boolean, keys: readonly string[], args: readonly Argument[], asking: boolean): unknown {
    if (!withSource && !this.known.has(script.sha1)) return new ReplyError('NOSCRIPT No matching script.')
    this.known.add(script.sha1)
    return this.#run(this.world.engineOf(script), keys, args, asking)
  }

  #run (engine: Engine, keys: readonly string[], args: readonly Argument[], asking: boolean): unknown {
    const refusal = this.#refusal(keys, engine.writes, asking)
    if (refusal !== null) return refusal
    if (this.full && !engine.allowsOom) return new ReplyError('OOM command not allowed when used memory > \'maxmemory\'.')
    // Without a name are the barrier, which only replicas look at, and what runs several calls.
    const isElsewhere = engine.name === '' || stepByStep.has(engine.name) ? null : this.isElsewhere
    const [here, astray] = [new Set<string>(), new Set<string>()]
    const check = (itsKeys: readonly string[]) => {
      if (this.route(itsKeys, asking) !== null) throw new ReplyError('ERR Script attempted to access a non local key in a cluster node')
      if (isElsewhere === null) return
      this.#checkEmptied(engine.name, itsKeys, here)
      if (asking) for (const key of itsKeys) if (!this.has(key) && isElsewhere(key)) astray.add(key)
    }
    const reply = attempted(() => engine.run(new Keyspace(this.db, this.clock, check), keys, args))
    // It went on as if there were no such key, or has made another one.
    if (!(reply instanceof ReplyError)) this.world.faults.push(...[...astray].map(key => `${this.name} ${engine.name} uses ${key}, which is on the other node`))
    return reply
  }

  /**
   * A script must not use a key again that it emptied: while the slot moves it would break off there. `here` are the keys that it found so far. Not a
   * handoff's own: only RENAME takes that away, which Redis refuses then.
   */
  #checkEmptied (script: string, keys: readonly string[], here: Set<string>): void {
    for (const key of keys) {
      if (this.has(key)) here.add(key)
      else if (here.has(key) && !key.includes('}:h:')) this.world.faults.push(`${this.name} ${script} uses ${key} again, which it emptied`)
    }
  }

  #do (name: string, args: readonly string[], asking: boolean): unknown {
    const refusal = this.#refusal(keysOf(name, args), !reading.has(name), asking)
    return refusal ?? attempted(() => commands[name]!(new Keyspace(this.db, this.clock), ...args))
  }

  has (key: string): boolean {
    return new Keyspace(this.db, this.clock).has(key)
  }

  #refusal (keys: readonly string[], writes: boolean, asking: boolean): ReplyError | null {
    if (this.#isLoading()) return new ReplyError('LOADING Redis is loading the dataset in memory')
    const elsewhere = this.route(keys, asking)
    if (elsewhere !== null) return elsewhere
    return writes && this.master !== null ? new ReplyError('READONLY You can\'t write against a read only replica.') : null
  }

  #isLoading (): boolean {
    return this.loadingUntil > this.world.time.now
  }

  /** Sends replicas the rest of the log. */
  replicate (): void {
    for (const link of this.links) link.send()
  }

  /** Replicas have acknowledged more. */
  acknowledged (): void {
    for (const session of this.sessions) session.giveUpInterval()
  }

  /** The number of replicas that have so much of the log. */
  countHaving (offset: number): number {
    let count = 0
    for (const link of this.links) if (link.acknowledged >= offset) count++
    return count
  }

  get isPaused (): boolean {
    return this.pausedUntil > this.world.time.now
  }

  /** Not reentrant, so that waiting calls stay in order. */
  pause (milliseconds: number): void {
    if (this.isPaused || !this.up) return
    this.world.tell(`${this.name} stands still for ${milliseconds.toFixed(0)} ms`)
    this.pausedUntil = this.world.time.now + milliseconds
  }

  /** kill -9: answered writes are on disk; unanswered ones may or may not be. */
  crash (): void {
    this.world.tell(`${this.name} dies`)
    this.up = false
    this.doomed = false
    this.pausedUntil = 0
    for (const link of this.links) link.close()
    this.hangUpAll()
  }

  restart (): void {
    this.world.tell(`${this.name} is back`)
    this.up = true
    this.known.clear()
    this.accepted = 0
    this.loadingUntil = this.world.time.now + (this.world.random.chance(0.5) ? 80 * this.world.random.next() : 0)
  }

  /** CLIENT KILL: everything that the connection has sent and that isn't carried out yet is discarded. @returns how many were killed */
  hangUpOn (who: string): number {
    const meant = [...this.sessions].filter(session => session.who === who)
    for (const session of meant) session.hangUp()
    return meant.length
  }

  /** Closes all its connections, as the end of its process or a change of its role does. */
  hangUpAll (): void {
    for (const session of this.sessions) session.hangUp()
  }
}

/** @returns the error, if Redis answers with one */
function attempted (run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    if (error instanceof ReplyError) return error
    throw error
  }
}

/** The same text however its bytes are to be read: encrypted ones are no UTF-8. */
function readable (value: unknown): string {
  if (Array.isArray(value)) return value.map(readable).join()
  return Buffer.isBuffer(value) ? value.toString('latin1') : String(value)
}
