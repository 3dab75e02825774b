import { abortedBy, isHandoffError } from './errors.ts'
import type { HandoffError } from './errors.ts'

/** The longest delay of a timer: with a longer one it fires at once. */
export const maxTimer = 2 ** 31 - 1

/** The longest `wait` of one request, in seconds: a little below the minute after which many gateways give up. */
export const maxWait = 50

export interface Moment { readonly wall: number, readonly steady: number }

export function moment (): Moment {
  return { wall: Date.now(), steady: performance.now() }
}

/**
 * Milliseconds since a moment. The steady clock stops while a machine sleeps, and the wall clock can be set back. So
 * the larger of the two differences is never too short.
 */
export function since ({ wall, steady }: Moment): number {
  return Math.max(Date.now() - wall, performance.now() - steady)
}

/**
 * How long to wait before the nth retry (from 0), in milliseconds: doubled each time, up to 5 s, with its second half
 * random.
 */
export function backoff (round: number): number {
  return Math.min(5000, 100 * 2 ** Math.min(round, 10)) * (1 - Math.random() / 2)
}

/**
 * The longest Retry-After that is waited for, in milliseconds. A longer one is a mistake, and a worker would
 * be deaf for as long.
 */
const maxRetryAfter = 3600_000

/** How much of a Retry-After is waited for. @param seconds as the answer says @returns milliseconds */
export function retryPause (seconds = 0): number {
  return seconds * 1000 > maxRetryAfter ? 0 : seconds * 1000
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
    }, Math.min(milliseconds, maxTimer))
    const forget = signal && onAbort(signal, stop)
  })
}

/** What is called when a signal is aborted. */
interface Listeners { stops: Set<() => void>, call: () => void }

const bySignal = new WeakMap<AbortSignal, Listeners>()

/**
 * Calls `stop` when the signal is aborted. All calls under one signal share one listener: from the eleventh on, Node
 * would warn of a leak.
 * @returns takes it back; without any left, no listener stays on the signal
 */
export function onAbort (signal: AbortSignal, stop: () => void): () => void {
  const listeners = bySignal.get(signal) ?? newListeners()
  const { stops, call } = listeners
  if (stops.size === 0) {
    bySignal.set(signal, listeners)
    signal.addEventListener('abort', call)
  }
  stops.add(stop)
  return () => {
    if (stops.delete(stop) && stops.size === 0) signal.removeEventListener('abort', call)
  }
}

function newListeners (): Listeners {
  const stops = new Set<() => void>()
  return { stops, call: () => { for (const stop of [...stops]) stop() } }
}

/** Statuses that refuse an output, rather than its being reported. */
const refusedOutput = new Set([400, 413, 422])
/**
 * How often something else may answer in the service's place, with a page that says nothing of its coming back: for
 * about ten seconds.
 */
const maxForeign = 7

interface Insistence { signal: AbortSignal | undefined, goesOn?: () => boolean, onError?: (error: unknown) => void }

/**
 * Repeats a call as long as only the connection, a gateway or the service's state is in the way. Each call already
 * retries for `retryFor` by itself.
 * @param insistence.goesOn asked before each further call
 */
export async function insist<T> (
  send: () => Promise<T>, { signal, goesOn = () => true, onError = () => {} }: Insistence
): Promise<T> {
  let foreign = 0
  for (let round = 0; ; round++) {
    let retryAfter = 0
    try {
      return await send()
    } catch (error) {
      const mayPass = isHandoffError(error) &&
        (error.retryable || (error.status ?? 0) >= 500 || (isForeign(error) && foreign++ < maxForeign))
      if (!mayPass || !goesOn()) throw error
      onError(error)
      retryAfter = retryPause(error.retryAfter)
    }
    await pause(retryAfter + backoff(round), signal)
  }
}

/**
 * Not the service's answer, and nothing that is known to pass: a gateway without a route to it, or one that lets this
 * never through.
 */
function isForeign ({ code, status = 0, retryable }: HandoffError): boolean {
  return code === 'connection_failed' && !retryable && !refusedOutput.has(status)
}

/** Is it the output, or a file of it, that isn't taken? Then the handoff fails, since it can't be done with that. */
export function isOfOutput (error: HandoffError): boolean {
  return refusedOutput.has(error.status ?? 0) || error.code === 'file_missing' || isForeign(error)
}
