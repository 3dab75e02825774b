import { longest } from './clock.ts'

/** How many attempts share a signal. From the eleventh listener on, Node would warn of a leak. */
const most = 10

/**
 * The time that attempts may take. Those that begin at about the same time share a timer and a signal, since a signal for each costs more
 * CPU than everything else that the client does for a call. Whoever is still running when the timer fires has had its time; the signal
 * means nothing any more to an attempt that has ended.
 */
export class Timeout {
  readonly #milliseconds: number
  /** Milliseconds in which others may join, and by which each attempt may take longer. */
  readonly #slack: number
  readonly #opened = performance.now()
  readonly #controller = new AbortController()
  #joined = 0
  #running = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #isOver = false

  constructor (milliseconds: number) {
    this.#milliseconds = milliseconds
    this.#slack = Math.min(100, milliseconds / 20)
  }

  get signal (): AbortSignal {
    return this.#controller.signal
  }

  /** The timer has fired. */
  get isOver (): boolean {
    return this.#isOver
  }

  isFor (milliseconds: number): boolean {
    return milliseconds === this.#milliseconds && this.#joined < most && !this.signal.aborted && performance.now() - this.#opened < this.#slack
  }

  join (): void {
    this.#joined++
    if (this.#running++ > 0) return
    const milliseconds = this.#milliseconds + this.#slack
    if (milliseconds > longest) return
    this.#timer = setTimeout(() => {
      this.#isOver = true
      this.abort()
    }, milliseconds)
  }

  /** Without any attempt there is no timer, which would keep the process alive. */
  leave (): void {
    if (--this.#running === 0) clearTimeout(this.#timer)
  }

  abort (): void {
    this.#controller.abort()
  }
}

let latest: Timeout | undefined

/** The one that an attempt can join now. */
export function sharedTimeout (milliseconds: number): Timeout {
  if (latest?.isFor(milliseconds) !== true) latest = new Timeout(milliseconds)
  return latest
}
