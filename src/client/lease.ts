import type { CallOptions } from './call.ts'
import { moment, since } from './clock.ts'
import type { Moment } from './clock.ts'
import { HandoffError, isHandoffError } from './errors.ts'
import type { Operations } from './operations.ts'
import type { Handoff, Heartbeat, Progress } from './types.ts'

export interface HeartbeatOptions extends CallOptions { progress?: Progress | undefined, extendBy?: number | undefined }

/** How often, in milliseconds, a handoff without heartbeats is asked after: its passer may take it back, and its work's time may be over. */
const askedAfter = 10_000

/**
 * A caught handoff, for as long as it is this worker's. It sends the heartbeats. Its signal is aborted when the handoff is lost: when the service
 * says so, or when no heartbeat got through in time by the local clock.
 */
export class Lease {
  readonly #client: Operations
  readonly #id: string
  readonly #own = new AbortController()
  /** heartbeat_within in milliseconds; Infinity without one. */
  readonly #within: number
  /** The time between two heartbeats, in milliseconds. */
  readonly #regular: number
  /** Milliseconds after one that failed. */
  readonly #soon: number
  /** When the request was sent that gave or prolonged the lease last. Its answer may have been on its way for long. */
  #renewed: Moment
  /** When the last heartbeat was tried. */
  #tried: Moment
  /** How long after that the next heartbeat is due, in milliseconds. */
  #pause: number
  #workExpires: number
  #beating = false
  readonly #timer: ReturnType<typeof setInterval>

  /** @param asked when the catch was sent: the handoff can have been caught at any time since */
  constructor (client: Operations, handoff: Handoff, asked: Moment) {
    const { heartbeat_within: seconds, work_expires_at: workExpires } = handoff
    this.#client = client
    this.#id = handoff.handoff_id
    this.#within = seconds === undefined ? Infinity : seconds * 1000
    this.#regular = seconds === undefined ? askedAfter : this.#within / 3
    this.#soon = seconds === undefined ? askedAfter : Math.min(this.#within / 12, 1000)
    this.#pause = this.#regular
    this.#workExpires = workExpires === undefined ? Infinity : Date.parse(workExpires)
    // Where the catch took long, a heartbeat at once tells how old it is. Without heartbeats that doesn't matter.
    this.#tried = seconds === undefined ? moment() : asked
    this.#renewed = since(asked) < this.#regular ? asked : moment()
    // Short steps, since timers stand still while a machine sleeps: soon after it wakes this looks at the clock.
    this.#timer = setInterval(() => this.#look(), Math.min(1000, this.#regular / 4))
    this.#look()
  }

  get signal (): AbortSignal {
    return this.#own.signal
  }

  /** Is the handoff no longer ours? Checked by the clock now, since timers may be late. */
  isLost (): boolean {
    if (!this.#own.signal.aborted && since(this.#renewed) >= this.#within) {
      this.#end(new HandoffError('expired', { detail: 'No heartbeat got through in time: the handoff is lost.' }))
    }
    return this.#own.signal.aborted
  }

  async heartbeat (options: HeartbeatOptions = {}): Promise<Heartbeat> {
    if (this.isLost()) throw this.#own.signal.reason
    const sent = this.#tried = moment()
    try {
      const answer = await this.#client.heartbeat(this.#id, { ...options, signal: options.signal ?? this.#own.signal })
      this.#renewed = sent
      this.#pause = this.#regular
      this.#workExpires = Date.parse(answer.work_expires_at)
      return answer
    } catch (error) {
      if (isEnd(error)) this.#end(error)
      // The reason why the lease ended says more than `aborted`.
      throw isHandoffError(error, 'aborted') && this.#own.signal.aborted ? this.#own.signal.reason : error
    }
  }

  /** Stops the heartbeats. */
  close (): void {
    clearInterval(this.#timer)
  }

  #end (reason: HandoffError): void {
    this.close()
    this.#own.abort(reason)
  }

  #look (): void {
    if (this.isLost() || this.#beating || since(this.#tried) < this.#pauseNow()) return
    this.#beating = true
    this.heartbeat({ retryFor: 0, attemptTimeout: Math.min(this.#regular, askedAfter) })
      .catch(error => { this.#pause = Math.min(this.#regular, Math.max(this.#soon, retryAfterOf(error))) })
      .finally(() => { this.#beating = false })
  }

  /** None when the work's deadline has just passed. That is so by the service's clock; ours only says when to ask. */
  #pauseNow (): number {
    const isPast = Date.now() >= this.#workExpires && this.#tried.wall < this.#workExpires
    return this.#within === Infinity && isPast ? 0 : this.#pause
  }
}

/** Does it say that the handoff isn't ours any more? A refusal of what a heartbeat carried doesn't, nor what a gateway says in the service's place. */
function isEnd (error: unknown): error is HandoffError {
  return isHandoffError(error) && error.code !== 'connection_failed' && (error.code === 'not_the_catcher' || [404, 409, 410].includes(error.status ?? 0))
}

/** In milliseconds. */
function retryAfterOf (error: unknown): number {
  return isHandoffError(error) ? (error.retryAfter ?? 0) * 1000 : 0
}
