import type { Redis } from 'ioredis'
import { batchWrites } from './batched-writes.ts'
import { Call } from './call.ts'
import type { CallOwner } from './call.ts'
import { OpenCalls } from './open-calls.ts'
import type { Script } from './scripts.ts'

/** Redis is away, full or read-only, or did not answer in time: nothing happened, or the outcome is unknown. */
export class Unavailable extends Error {
  override name = 'Unavailable'
}

/** How long a call is asked again before it is given up, in milliseconds. */
export const callBudget = 2000
/** How often given-up calls are looked for: a call may be answered this much late. */
const lookAround = 50
/** How long a server that can't just now is left alone before it is asked again. */
const pause = 50
/** How often Redis's clock is read again, so that a stepped clock is noticed. */
const clockRefresh = 5000

/** Errors that say: not executed, and may be over in a moment. */
const passing = /^(LOADING|BUSY|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|UNBLOCKED)\b/
/** Errors that say: not executed, and won't be until an operator does something. */
const refusing = /^(OOM|MISCONF|NOREPLICAS|NOPERM|NOAUTH|WRONGPASS)\b/

/**
 * One connection's script calls. A tick's calls leave in one write; a call whose
 * connection broke, or whose server could not serve it just now, is asked again for as long as its budget lasts. That is safe
 * because every transition carries the token of its operation and recognises it when it comes twice. A call that was given up
 * cannot happen much later behind everyone's back: it carries its deadline in Redis time, and its script refuses after that.
 */
export class Lane implements CallOwner {
  readonly #redis: Redis
  readonly #open = new OpenCalls()
  /** Calls to ask when the connection is ready. */
  #parked: Call[] = []
  #ready = false
  /** Redis's clock less this process's monotonic clock, never more than it truly is: see learnClock. */
  #offset = 0
  #lookout: NodeJS.Timeout | undefined
  readonly #clockTimer: NodeJS.Timeout

  constructor (redis: Redis) {
    this.#redis = redis
    redis.on('ready', () => {
      batchWrites(redis.stream)
      this.#learnClock().then(() => this.#resume(), () => {})
    })
    redis.on('close', () => { this.#ready = false })
    this.#clockTimer = setInterval(() => { if (this.#ready) this.#learnClock().catch(() => {}) }, clockRefresh)
    this.#clockTimer.unref()
  }

  /**
   * Runs a script.
   * @param texts its arguments after the deadline, ASCII
   * @param decode reads its reply, as RESP2 gives it
   * @param bytes its last argument where that is bytes
   * @returns what `decode` made of the reply
   * @throws {Unavailable} the budget is over, or the server refuses writes; the outcome may be unknown
   */
  call<T> (script: Script, keys: readonly string[], texts: readonly string[], decode: (reply: unknown) => T, bytes?: Buffer): Promise<T> {
    return new Promise((resolve, reject) => {
      const call = new Call(this, script, keys, texts, bytes, decode, performance.now() + callBudget, resolve as (answer: unknown) => void, reject)
      this.#open.add(call)
      this.#lookout ??= setInterval(() => this.#giveUpLate(), lookAround)
      this.#ask(call)
    })
  }

  /** Gives up what is open. The connection is its maker's to close. */
  close (): void {
    clearInterval(this.#lookout)
    clearInterval(this.#clockTimer)
    for (const call of this.#open) this.#end(call, new Unavailable('the service is stopping'))
    this.#parked = []
  }

  #ask (call: Call): void {
    if (!this.#ready) {
      this.#parked.push(call)
      return
    }
    call.deadline = Math.floor(call.givenUpAt + this.#offset)
    this.#redis.sendCommand(call as never)
  }

  answered (call: Call, reply: unknown): void {
    if (Array.isArray(reply) && isLate(reply[0])) {
      // Late by Redis's clock and not by ours: its clock was set forward, or the call lay about; both want the time anew.
      this.#again(call)
      return
    }
    // Given up meanwhile: nobody waits for it.
    if (call.settled) return
    this.#open.remove(call)
    call.settle(reply)
  }

  failed (call: Call, error: Error): void {
    if (call.settled) return
    if (error.message.startsWith('NOSCRIPT')) {
      call.withSource = true
      this.#ask(call)
    } else if (refusing.test(error.message)) {
      this.#end(call, new Unavailable(error.message))
    } else if (error.name !== 'ReplyError') {
      // The connection broke; `ready` asks again.
      this.#parked.push(call)
    } else if (passing.test(error.message)) {
      call.hindrance = error.message
      this.#again(call)
    } else {
      this.#end(call, error)
    }
  }

  #end (call: Call, error: Error): void {
    this.#open.remove(call)
    call.refuse(error)
  }

  /** Asks once more in a moment, with the time read anew. The lookout ends it when its budget is over. */
  #again (call: Call): void {
    setTimeout(() => {
      if (call.settled) return
      this.#learnClock().then(() => this.#ask(call), () => this.#parked.push(call))
    }, pause)
  }

  /** Where Redis's clock stands, taken at the reply's arrival: too early by the way back, so no deadline is ever too late. */
  async #learnClock (): Promise<void> {
    const [seconds, microseconds] = await this.#redis.time()
    this.#offset = Number(seconds) * 1000 + Number(microseconds) / 1000 - performance.now()
  }

  #resume (): void {
    this.#ready = true
    const parked = this.#parked
    this.#parked = []
    for (const call of parked) if (!call.settled) this.#ask(call)
  }

  #giveUpLate (): void {
    const now = performance.now()
    for (const call of this.#open) {
      if (call.givenUpAt <= now) this.#end(call, new Unavailable(call.hindrance))
    }
    this.#parked = this.#parked.filter(call => !call.settled)
    if (this.#open.size > 0) return
    clearInterval(this.#lookout)
    this.#lookout = undefined
  }
}

function isLate (tag: unknown): boolean {
  return Buffer.isBuffer(tag) && tag.length === 4 && tag.toString('latin1') === 'late'
}
