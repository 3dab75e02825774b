import { batchWrites } from './batched-writes.ts'
import type { Call } from './call.ts'
import { StaleConnections } from './stale-connections.ts'
import { Group } from './group.ts'
import type { Master } from './masters.ts'

/** How often Redis's clock is read again, in milliseconds, so that a stepped clock is noticed. */
const clockRefresh = 5000

/** After a reconnect because a server took no writes, how long until the next such reconnect, in milliseconds. */
const reconnectPause = 1000

/** Durability: how many replicas must acknowledge. */
export interface Durability {
  replicas: number
  /** The barrier's key in the partition with this tag. */
  barrierKey (tag: string): string
}

/**
 * The calls to one master, on one connection. A tick's calls are sent in one write, and with `durability` one WAIT follows them: a
 * group commit. Without a connection, calls are parked here, and also while a group is under way: they form the next one. So groups
 * don't queue up behind a stalled replica, and large groups share the cost of a WAIT (bench/README.md, "Settled once": neither more
 * groups at once, nor more connections, nor a connection of its own for barrier and WAIT is faster).
 */
export class Lane {
  readonly #master: Master
  readonly #durability: Durability | null
  /** How many calls its server refused because it is full (maxmemory). */
  fullRefusals = 0
  #parked: Call[] = []
  #ready = false
  #closed = false
  /** Connected, and no group under way: calls needn't be parked. */
  #taking = false
  #group: Group | undefined
  #groups = 0
  #underWay = 0
  /**
   * Redis's clock minus this process's monotonic clock, never more than the true difference: see learnClock. If Redis refuses TIME, it
   * is a time long past, with as many digits as any deadline: scripts refuse to run with it, or Redis refuses them with its own reason.
   */
  #offset = 1e12
  readonly #former = new StaleConnections()
  #reconnected = -Infinity
  #learning: Promise<void> | undefined
  readonly #clockTimer: NodeJS.Timeout

  constructor (master: Master, durability: Durability | null) {
    this.#master = master
    this.#durability = durability
    const redis = master.calls
    redis.on('ready', () => {
      batchWrites(redis.stream)
      // If TIME was refused (BUSY, NOPERM), the clock is unknown, and calls get the refusal themselves; unless the connection broke.
      Promise.allSettled([this.#former.end(redis), this.learnClock()]).then(() => { if (redis.status === 'ready') this.#connected() })
    })
    redis.on('close', () => this.broke())
    this.#clockTimer = setInterval(() => { if (this.#ready) this.learnClock().catch(() => {}) }, clockRefresh)
    this.#clockTimer.unref()
  }

  get ready (): boolean {
    return this.#ready
  }

  get parked (): readonly Call[] {
    return this.#parked
  }

  /** @param askingUntil the node is importing this call's slot and serves it only after ASKING: until when that holds */
  ask (call: Call, askingUntil: number | null = null): void {
    call.askingUntil = askingUntil
    const asking = askingUntil !== null
    // A call redirected by ASK isn't parked because of groups: afterwards it would have to be redirected again.
    if (!this.#taking && !(asking && this.#ready)) {
      this.park(call)
      return
    }
    call.lane = this
    // First, so that the group ends before this tick's bytes are sent.
    if (this.#durability !== null) call.group = this.#group ??= this.#openGroup(call.asked.tag, this.#durability)
    call.sentAt = performance.now()
    call.deadline = Math.floor((asking ? Math.min(askingUntil, call.givenUpAt) : call.givenUpAt) + this.#offset)
    if (asking) this.#sayAsking()
    this.#master.calls.sendCommand(call as never)
  }

  /** Keeps a call until there is a connection, or another lane for it. */
  park (call: Call): void {
    this.#parked.push(call)
  }

  /** Removes and returns the parked calls, for another lane. */
  takeParked (): Call[] {
    const parked = this.#parked
    this.#parked = []
    return parked
  }

  /** Drops parked calls that were given up. */
  forgetSettled (): void {
    if (this.#parked.length > 0) this.#parked = this.#parked.filter(call => !call.settled)
  }

  /** The connection broke, or is about to close: further calls are parked until there is another. */
  broke (): void {
    this.#ready = false
    this.#taking = false
  }

  /** The server takes no writes any more: another one may be the master, and a reconnect finds it. */
  reconnect (): void {
    const now = performance.now()
    if (!this.#ready || now - this.#reconnected < reconnectPause) return
    this.#reconnected = now
    this.broke()
    this.#master.calls.disconnect(true)
  }

  /** Redis's clock, as of the reply's arrival: too early by the time of the way back, so no deadline is ever too late. */
  learnClock (): Promise<void> {
    this.#learning ??= this.#master.calls.time().then(([seconds, microseconds]) => {
      this.#offset = Number(seconds) * 1000 + Number(microseconds) / 1000 - performance.now()
    }).finally(() => { this.#learning = undefined })
    return this.#learning
  }

  /** Whether its master has left. */
  get closed (): boolean {
    return this.#closed
  }

  close (): void {
    this.#closed = true
    clearInterval(this.#clockTimer)
  }

  #openGroup (tag: string, { replicas, barrierKey }: Durability): Group {
    const group = new Group()
    this.#underWay++
    setImmediate(() => {
      this.#group = undefined
      this.#taking = this.#ready && this.#underWay === 0
      // Another partition each time, because one whose slot is migrating refuses.
      const { calls, tags } = this.#master
      const own = tags[this.#groups++ % tags.length]
      // The master has no partitions, so it is importing the slot of the group's calls.
      if (own === undefined) this.#sayAsking()
      group.commit(calls, barrierKey(own ?? tag), replicas).then(settle => {
        this.#underWay--
        this.#resume()
        // After the parked calls are sent, at the end of this turn: the servers work on them while these are answered.
        setImmediate(settle)
      })
    })
    return group
  }

  /** ASKING: the next command may be in a slot that the node is importing. */
  #sayAsking (): void {
    this.#master.calls.asking().catch(() => {})
  }

  #connected (): void {
    this.#ready = true
    this.#resume()
  }

  #resume (): void {
    if (!this.#ready || this.#underWay > 0) return
    this.#taking = true
    for (const call of this.takeParked()) if (!call.settled) this.ask(call, call.askingUntil)
  }
}
