import { EventEmitter } from 'node:events'
import type { ScriptCall } from '../../../src/redis/call.ts'
import { SeveralCalls } from '../../../src/redis/together.ts'
import type { Command, Server } from './server.ts'
import type { Session } from './session.ts'
import type { Process, Task } from './time.ts'
import type { World } from './world.ts'

/** As in src/redis/connect.ts. */
const silence = 1000
const connectPatience = 1000
const retryDelay = (attempts: number) => Math.min(25 * attempts, 100)

interface Asked { resolve (reply: never): void, reject (error: Error): void }

/** What it writes, as Redis reads it: texts of which each character is a byte. */
function wordsOf (command: SeveralCalls): string[] {
  const written: Buffer[] = []
  const add = (piece: string | Buffer) => written.push(Buffer.from(piece))
  add(command.toWritable({ write: add } as never))
  const text = Buffer.concat(written).toString('latin1')
  const words: string[] = []
  for (let at = text.indexOf('\n') + 1; at < text.length;) {
    const begin = text.indexOf('\n', at) + 1
    const end = begin + Number(text.slice(at + 1, begin - 2))
    words.push(text.slice(begin, end))
    at = end + 2
  }
  return words
}

/** Replaces ioredis's connection for a lane: only what the lane uses, with events in the order of ioredis 6. */
export class Connection extends EventEmitter {
  readonly process: Process
  readonly #world: World
  /** Which server to connect to, asked each time; null if nobody knows. */
  readonly #find: () => Server | null
  status = 'connecting'
  stream!: { write (piece: string | Buffer, then?: () => void): boolean, alive: boolean }
  #session: Session | null = null
  #asked: Asked[] = []
  #unsent: Command[] = []
  #attempts = 0
  #silence: Task | undefined
  #ended = false
  /** Whether it accepts only a master, like the Sentinel connector. */
  readonly #mastersOnly: boolean

  constructor (world: World, process: Process, find: () => Server | null, mastersOnly: boolean) {
    super()
    this.#world = world
    this.process = process
    this.#find = find
    this.#mastersOnly = mastersOnly
    world.mutation?.connection?.(this)
    this.#after(0, () => this.#connect())
  }

  sendCommand (call: ScriptCall | SeveralCalls): void {
    if (call instanceof SeveralCalls) {
      const [command, , count, ...words] = wordsOf(call)
      const [keys, args] = [words.slice(0, Number(count)), words.slice(Number(count))]
      return this.ask({ kind: 'script', script: call.script, withSource: command === 'EVAL', keys, args }, call)
    }
    const { script, keys, texts, bytes } = call.request
    const args = bytes === undefined ? texts : [...texts, bytes]
    this.ask({
      kind: 'script',
      script,
      withSource: call.withSource,
      keys,
      args: script.writes ? [String(call.deadline), ...args] : args,
    }, call)
  }

  time (): Promise<[string, string]> { return this.#promised({ kind: 'time' }) }
  eval (text: string, count: 1, key: string): Promise<null> { return this.#promised({ kind: 'eval', text, key }) }
  wait (replicas: number, patience: number): Promise<number> { return this.#promised({ kind: 'wait', replicas, patience }) }
  asking (): Promise<string> { return this.#promised({ kind: 'asking' }) }

  cluster (what: 'SLOTS'): Promise<unknown> { return this.#promised({ kind: 'slots' }) }
  zrange (...args: string[]): Promise<string[]> { return this.#promised({ kind: 'command', name: 'ZRANGE', args }) }

  /** CLIENT INFO, or CLIENT KILL ID … ADDR … */
  call (command: 'CLIENT', what: 'INFO' | 'KILL', ...[, id, , address]: string[]): Promise<unknown> {
    return this.#promised(what === 'INFO' ? { kind: 'who' } : { kind: 'kill', who: `id=${id} addr=${address}` })
  }

  disconnect (reconnect = false): void {
    this.#ended = !reconnect
    this.#world.tell(`${this.process.name} hangs up`)
    // The server closes when it has read everything. If it is paused, ioredis gives up after 2 s.
    const session = this.#session
    if (session === null) return
    this.stream.alive = false
    this.#after(2 * this.#world.latency(), () => { if (session === this.#session) this.#close(false) })
  }

  #promised<T> (command: Command): Promise<T> {
    return new Promise((resolve, reject) => this.ask(command, { resolve, reject }))
  }

  ask (command: Command, asked: Asked): void {
    if (this.status !== 'ready' || !this.stream.alive) asked.reject(new Error('Stream isn\'t writeable and enableOfflineQueue options is false'))
    else this.#write(command, asked)
  }

  #write (command: Command, asked: Asked): void {
    this.#asked.push(asked)
    this.#unsent.push(command)
    // A byte stands for a command, so the size of a write shows how many commands the lane sent at once.
    this.stream.write('.')
    this.#silence ??= this.#after(silence, () => this.#close(this.#world.random.chance(0.5)))
  }

  #connect (): void {
    if (this.#ended) return
    const server = this.#find()
    const refused = server === null || !server.up
    if (refused || (!this.#world.isCalm && this.#world.random.chance(0.02))) {
      this.#after(refused ? this.#world.latency() : connectPatience, () => this.#close(true))
      return
    }
    const session = this.#session = server.accept(this)
    const stream = this.stream = {
      alive: true,
      write: (pieces: string | Buffer, then?: () => void) => {
        if (stream.alive) session.send(this.#unsent.splice(0, pieces.length))
        then?.()
        return true
      },
    }
    this.status = 'connect'
    this.#check(session)
  }

  /** The ready check. */
  #check (session: Session): void {
    this.#write({ kind: 'info' }, {
      resolve: ({ loading, role }: { loading: boolean, role: string }) => {
        if (loading) this.#after(50, () => { if (session === this.#session) this.#check(session) })
        else if (this.#mastersOnly && role !== 'master') this.disconnect(true)
        else this.#ready()
      },
      reject () {},
    })
  }

  #ready (): void {
    this.status = 'ready'
    this.#attempts = 0
    queueMicrotask(() => this.emit('ready'))
  }

  /** Replies of a session arrive. */
  receive (moment: number, session: Session, replies: unknown[]): void {
    this.#world.time.at(moment, this.process, () => {
      if (session !== this.#session) return
      if (this.#silence !== undefined) this.#silence.over = true
      this.#silence = undefined
      for (const reply of replies) {
        const asked = this.#asked.shift() as Asked
        if (reply instanceof Error) asked.reject(reply)
        else asked.resolve(reply as never)
      }
      if (this.#asked.length > 0) this.#silence ??= this.#after(silence, () => this.#close(this.#world.random.chance(0.5)))
    })
  }

  /** The news that the server has closed the session arrives. */
  end (moment: number, session: Session): void {
    this.#world.time.at(moment, this.process, () => { if (session === this.#session) this.#close(true) })
  }

  /**
   * The connection is cut, which its process notices in a task of its own: what goes on at once then goes by that process's clock, even if those of
   * several processes are cut together. @param reset whether data on its way to the server is lost too
   */
  break (reset: boolean): void {
    const session = this.#session
    this.#after(0, () => { if (session !== null && session === this.#session) this.#close(reset) })
  }

  /** Its process has died. */
  leave (): void {
    if (this.#session !== null) this.#close(false)
  }

  /** Whether it is connected to this server. */
  isTo (server: Server): boolean {
    return this.#session !== null && this.#session.server === server
  }

  #close (reset: boolean): void {
    this.#world.tell(`${this.process.name} lost its connection`)
    this.#session?.clientLeft(reset)
    this.#session = null
    if (this.stream !== undefined) this.stream.alive = false
    if (this.#silence !== undefined) this.#silence.over = true
    this.#silence = undefined
    this.status = 'reconnecting'
    queueMicrotask(() => this.emit('close'))
    if (this.#ended) this.status = 'end'
    else this.#after(retryDelay(++this.#attempts), () => this.#connect())
    const asked = this.#asked
    this.#asked = []
    this.#unsent = []
    for (const one of asked) one.reject(new Error('Reached the max retries per request limit (which is 0).'))
  }

  #after (milliseconds: number, run: () => void): Task {
    return this.#world.time.after(milliseconds, this.process, run)
  }
}
