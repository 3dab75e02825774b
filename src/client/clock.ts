import { abortedBy } from './errors.ts'
import { onAbort } from './on-abort.ts'

/** The longest delay of a timer: with a longer one it fires at once. */
export const longest = 2 ** 31 - 1

/** The longest `wait` of one request, in seconds: a little below the minute after which many gateways give up. */
export const longestWait = 50

export interface Moment { readonly wall: number, readonly steady: number }

export function moment (): Moment {
  return { wall: Date.now(), steady: performance.now() }
}

/**
 * Milliseconds since a moment. The steady clock stops while a machine sleeps, and the wall clock can be set back. So the larger of the two
 * differences is never too short.
 */
export function since ({ wall, steady }: Moment): number {
  return Math.max(Date.now() - wall, performance.now() - steady)
}

/** How long to wait before the nth retry (from 0), in milliseconds: doubled each time, up to 5 s, with its second half random. */
export function backoff (round: number): number {
  return Math.min(5000, 100 * 2 ** Math.min(round, 10)) * (1 - Math.random() / 2)
}

/** The longest Retry-After that is waited for, in milliseconds. A longer one is somebody's mistake, and a worker would be deaf for as long. */
const longestTold = 3600_000

/** How much of a Retry-After is waited for. @param seconds as the answer says @returns milliseconds */
export function obeyed (seconds = 0): number {
  return seconds * 1000 > longestTold ? 0 : seconds * 1000
}

/** Waits. Rejects as soon as the signal is aborted. No listener stays on the signal. */
export function pause (milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(abortedBy(signal))
    const stop = () => {
      clearTimeout(timer)
      forget?.()
      reject(abortedBy(signal!))
    }
    const timer = setTimeout(() => {
      forget?.()
      resolve()
    }, Math.min(milliseconds, longest))
    const forget = signal && onAbort(signal, stop)
  })
}
