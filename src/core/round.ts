import { Unavailable } from './errors.ts'

/** How long a stopping service waits for a round under way, in milliseconds: a call to Redis takes 2 s at most. */
const maxStopTime = 5000

export interface RoundOptions {
  /**
   * Milliseconds from the beginning of a round to that of the next; if a round takes longer, to the next multiple.
   * Infinity: only when woken.
   */
  interval: number
  /** Asked before each round: does this replica go round now? It may have to take a lease for that. */
  isMine? (): boolean | Promise<boolean>
  /** Called in place of a round where it doesn't. */
  notMine? (): void
  /** @returns in how many milliseconds the next round is due, where the interval doesn't say that */
  run (): Promise<number | void>
  /** Called with a round's error, unless Redis is away. The next round comes all the same. */
  onFault (error: unknown): void
}

/** Repeats work until the service stops: one round at a time, at an interval or when woken. `wake` starts it. */
export class Round {
  readonly #options: RoundOptions
  readonly #stopping = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #underWay: Promise<void> | undefined
  /** When the next round is due, in this process's monotonic milliseconds. */
  #dueAt = Infinity

  constructor (options: RoundOptions) {
    this.#options = options
  }

  /** Aborted when the rounds are to stop. */
  get signal (): AbortSignal {
    return this.#stopping.signal
  }

  get isUnderWay (): boolean {
    return this.#underWay !== undefined
  }

  /**
   * A round begins in so many milliseconds at the latest, and without any at once. During a round that is another one,
   * since it may have looked already.
   */
  wake (milliseconds = 0): void {
    const now = performance.now()
    this.#dueAt = Math.min(this.#dueAt, now + milliseconds)
    if (this.isUnderWay || this.signal.aborted || this.#dueAt === Infinity) return
    clearInterval(this.#timer)
    if (this.#dueAt <= now) this.#begin()
    // An interval, cleared as it fires: the bench holds a service's intervals, and so its rounds.
    else this.#timer = setInterval(() => this.#begin(), this.#dueAt - now).unref()
  }

  /** Begins no more rounds. Resolves when the one under way has ended, or has taken too long. */
  async stop (): Promise<void> {
    this.#stopping.abort()
    clearInterval(this.#timer)
    await within(maxStopTime, this.#underWay ?? Promise.resolve())
  }

  #begin (): void {
    const { interval, onFault } = this.#options
    const begun = performance.now()
    clearInterval(this.#timer)
    this.#dueAt = Infinity
    // Before it begins: it may wake itself.
    this.#underWay = Promise.resolve()
    this.#underWay = this.#go().catch(error => {
      if (!(error instanceof Unavailable)) onFault(error)
    }).then(pause => {
      this.#underWay = undefined
      this.wake(pause ?? interval - (performance.now() - begun) % interval)
    })
  }

  async #go (): Promise<number | void> {
    const { isMine, notMine, run } = this.#options
    if (isMine === undefined || await isMine()) return run()
    notMine?.()
  }
}

/** Waits for the work, but no longer than so many milliseconds. */
export function within (milliseconds: number, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds)
    timer.unref()
    work.then(() => resolve(), reject).finally(() => clearTimeout(timer))
  })
}
