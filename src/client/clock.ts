import { abortedBy } from './errors.ts'

/** Timers fire at once where they are set to more than this. */
export const longest = 2 ** 31 - 1

/** Seconds: one request's wait. A little below the minute after which many gateways give up. */
export const longestWait = 50

export interface Moment { readonly wall: number, readonly steady: number }

export function moment (): Moment {
  return { wall: Date.now(), steady: performance.now() }
}

/**
 * Milliseconds since then. The steady clock stands still while a machine sleeps, and the other one can be set back: the longer of the two
 * is never too short.
 */
export function since ({ wall, steady }: Moment): number {
  return Math.max(Date.now() - wall, performance.now() - steady)
}

/** How long to wait before asking again for the nth time (from 0): doubled each time, up to 5 s, the latter half of it by chance. */
export function backoff (round: number): number {
  return Math.min(5000, 100 * 2 ** Math.min(round, 10)) * (1 - Math.random() / 2)
}

/** Waits. Rejects as soon as the signal ends it; nothing stays on the signal. */
export function pause (milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(abortedBy(signal))
    const stop = () => {
      clearTimeout(timer)
      reject(abortedBy(signal!))
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, Math.min(milliseconds, longest))
    signal?.addEventListener('abort', stop, { once: true })
  })
}
