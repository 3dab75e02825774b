import type { Connection } from './connection.ts'
import { ReplyError } from './keyspace.ts'
import type { Command, Server } from './server.ts'

/** A server's end of a connection. */
export class Session {
  readonly server: Server
  readonly #connection: Connection
  /** The beginning of CLIENT INFO: the connection's id and address. */
  readonly who: string
  /** Whether the client still reads replies. What has arrived is carried out either way. */
  #open = true
  #asking = false
  /** The log offset of this client's last write. */
  #written = 0
  #waiting: { replicas: number, over: boolean } | null = null
  readonly #pending: Command[] = []
  #lastReply = 0
  #lastArrival = 0

  constructor (server: Server, connection: Connection) {
    this.server = server
    this.#connection = connection
    this.who = `id=${++server.accepted} addr=10.0.0.1:${++server.world.ports}`
  }

  /** Sends commands, which stay in order on one connection. @param lost they don't arrive */
  send (commands: readonly Command[]): void {
    const { world } = this.server
    this.#lastArrival = Math.max(this.#lastArrival, world.time.now + world.latency())
    world.at(this.#lastArrival, () => {
      // The connection was reset on the way, so later data is lost too.
      if (this.server.sessions.has(this)) this.server.whenAwake(() => this.#arrive(commands))
    })
  }

  #arrive (commands: readonly Command[]): void {
    if (!this.server.sessions.has(this)) return
    this.#pending.push(...commands)
    this.#goOn()
  }

  #goOn (): void {
    if (this.#waiting !== null) return
    const replies: unknown[] = []
    const survived = this.server.durably(() => {
      while (this.#pending.length > 0 && this.#waiting === null) this.#do(this.#pending.shift() as Command, replies)
    })
    if (!survived) return
    this.server.replicate()
    this.#reply(replies)
  }

  #do (command: Command, replies: unknown[]): void {
    const server = this.server
    if (command.kind === 'wait') {
      const answer = this.#wait(command)
      if (answer !== null) replies.push(answer)
    } else if (command.kind === 'who') {
      replies.push(`${this.who} laddr=${server.name}`)
    } else if (command.kind === 'kill') {
      replies.push(server.hangUpOn(command.who))
    } else if (command.kind === 'asking') {
      this.#asking = true
      replies.push('OK')
    } else {
      const before = server.db.log.length
      replies.push(server.execute(command, this.#asking))
      this.#asking = false
      if (server.db.log.length > before) this.#written = server.db.log.length
    }
  }

  /** @returns null if the reply comes later */
  #wait ({ replicas, patience }: Command & { kind: 'wait' }): number | ReplyError | null {
    const server = this.server
    if (server.master !== null) return new ReplyError('ERR WAIT cannot be used with replica instances.')
    const count = server.countHaving(this.#written)
    if (count >= replicas) return count
    const waiting = this.#waiting = { replicas, over: false }
    server.world.after(patience, () => server.whenAwake(() => {
      if (waiting.over) return
      this.#unblock(waiting, server.countHaving(this.#written))
    }))
    return null
  }

  /** Whether enough replicas have acknowledged. */
  giveUpInterval (): void {
    const waiting = this.#waiting
    if (waiting === null) return
    const count = this.server.countHaving(this.#written)
    if (count >= waiting.replicas) this.#unblock(waiting, count)
  }

  /** The server is no longer a master. */
  interrupt (): void {
    if (this.#waiting !== null) this.#unblock(this.#waiting, new ReplyError('UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)'))
  }

  #unblock (waiting: { over: boolean }, answer: unknown): void {
    waiting.over = true
    this.#waiting = null
    this.#reply([answer])
    this.#goOn()
  }

  #reply (replies: unknown[]): void {
    if (replies.length === 0 || !this.#open) return
    const { world } = this.server
    this.#lastReply = Math.max(this.#lastReply, world.time.now + world.latency())
    this.#connection.receive(this.#lastReply, this, replies)
  }

  /** The client's end is closed. @param reset even sent data is discarded */
  clientLeft (reset: boolean): void {
    this.#open = false
    if (reset) this.#free()
  }

  /** Blocked and unread commands are dropped. */
  #free (): void {
    this.server.sessions.delete(this)
    this.#pending.length = 0
    if (this.#waiting !== null) this.#waiting.over = true
  }

  /** The server's end is closed; its sent replies may still arrive. */
  hangUp (): void {
    const { world } = this.server
    this.#free()
    if (!this.#open) return
    this.#open = false
    this.#connection.end(world.random.chance(0.5) ? world.time.now + world.latency() : Math.max(world.time.now, this.#lastReply), this)
  }
}
