import { batchWrites } from './batched-writes.ts'
import type { Call } from './call.ts'
import { StaleConnections } from './stale-connections.ts'
import { Group } from './group.ts'
import type { Master } from './masters.ts'

/** How often Redis's clock is read again, in milliseconds, so that a stepped clock is noticed. */
const clockRefresh = 5000

/** How long a server that takes no writes is kept before it is left once more, in milliseconds. */
const reconnectPause = 1000

/**
 * How many groups may be under way at once. WAIT holds its connection up until the replicas have answered, so groups that were
 * sent behind one another are committed one a round trip to them: were each tick to send its own, a load that brings ticks
 * faster than that would queue up without end, and a replica that stalls for seconds would be waited for by thousands of
 * groups, 500 ms each. What is asked meanwhile is parked, and is the next group. Two, so that the next is there when one ends.
 */
const groupsAtOnce = 2

/** What is acknowledged: what so many replicas have. */
export interface Durability {
  replicas: number
  /** A key to write to in the partition of that tag. */
  barrierKey (tag: string): string
}

/**
 * The calls of one master, on one connection. A tick's calls leave in one write, and with `durability` one WAIT follows them: a
 * group commit. While there is no connection calls are parked here.
 */
export class Lane {
  readonly #master: Master
  readonly #durability: Durability | null
  #parked: Call[] = []
  #ready = false
  /** Connected, and not so many groups under way that calls are parked. */
  #taking = false
  #group: Group | undefined
  #groups = 0
  #underWay = 0
  /**
   * Redis's clock less this process's monotonic clock, never more than it truly is: see learnClock. Where TIME is refused it is a
   * time long past, of as many digits as any deadline has: nothing is done by it, and Redis says itself what it refuses.
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
      // Refused (BUSY, NOPERM) the clock isn't known, and what is asked says so itself; unless the connection broke.
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

  /** @param asking the node is taking this call's slot over and serves it to whom it was sent by ASK */
  ask (call: Call, asking = false): void {
    call.asking = asking
    // One that is sent on by ASK isn't parked for a group's sake: it would have to be sent on once more.
    if (!this.#taking && !(asking && this.#ready)) {
      this.park(call)
      return
    }
    call.lane = this
    // First, so that the group ends before this tick's bytes leave.
    if (this.#durability !== null) call.group = this.#group ??= this.#openGroup(call.asked.tag, this.#durability)
    call.deadline = Math.floor(call.givenUpAt + this.#offset)
    if (asking) this.#sayAsking()
    this.#master.calls.sendCommand(call as never)
  }

  /** Keeps a call until there is a connection, or another lane for it. */
  park (call: Call): void {
    this.#parked.push(call)
  }

  /** Hands out what is parked, for another lane. */
  takeParked (): Call[] {
    const parked = this.#parked
    this.#parked = []
    return parked
  }

  /** Lets go of what was given up while it was parked. */
  forgetSettled (): void {
    if (this.#parked.length > 0) this.#parked = this.#parked.filter(call => !call.settled)
  }

  /** The connection broke, or is about to close: what is asked from here on is parked until there is another. */
  broke (): void {
    this.#ready = false
    this.#taking = false
  }

  /** A server that takes no writes any more: another may be the master, and connecting anew finds it. */
  reconnect (): void {
    const now = performance.now()
    if (!this.#ready || now - this.#reconnected < reconnectPause) return
    this.#reconnected = now
    this.broke()
    this.#master.calls.disconnect(true)
  }

  /** Where Redis's clock stands, taken at the reply's arrival: too early by the way back, so no deadline is ever too late. */
  learnClock (): Promise<void> {
    this.#learning ??= this.#master.calls.time().then(([seconds, microseconds]) => {
      this.#offset = Number(seconds) * 1000 + Number(microseconds) / 1000 - performance.now()
    }).finally(() => { this.#learning = undefined })
    return this.#learning
  }

  close (): void {
    clearInterval(this.#clockTimer)
  }

  #openGroup (tag: string, { replicas, barrierKey }: Durability): Group {
    const group = new Group()
    this.#underWay++
    setImmediate(() => {
      this.#group = undefined
      this.#taking = this.#ready && this.#underWay < groupsAtOnce
      // Another partition each time: one whose slot is just moving away refuses.
      const { calls, tags } = this.#master
      const own = tags[this.#groups++ % tags.length]
      // It has none, so it is just taking over that of the calls.
      if (own === undefined) this.#sayAsking()
      group.commit(calls, barrierKey(own ?? tag), replicas).then(() => {
        this.#underWay--
        this.#resume()
      })
    })
    return group
  }

  /** The next command may be in a slot that the node is taking over. */
  #sayAsking (): void {
    this.#master.calls.asking().catch(() => {})
  }

  #connected (): void {
    this.#ready = true
    this.#resume()
  }

  #resume (): void {
    if (!this.#ready || this.#underWay >= groupsAtOnce) return
    this.#taking = true
    for (const call of this.takeParked()) if (!call.settled) this.ask(call, call.asking)
  }
}
