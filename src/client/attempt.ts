import { HandoffError, abortedBy } from './errors.ts'
import { onAbort } from './on-abort.ts'
import { Timeout, sharedTimeout } from './timeout.ts'

/** The part of `fetch` that the client uses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export interface Reply { status: number, headers: Headers, text: string }

/**
 * Sends a request once and reads the whole answer, unless that takes too long or the signal ends it. fetch never gets the caller's signal,
 * since some runtimes leave listeners on a signal that outlives the request.
 */
export async function attempt (fetch: Fetch, url: string, init: RequestInit, milliseconds: number, signal: AbortSignal | undefined): Promise<Reply> {
  const isEnded = () => signal?.aborted === true
  if (isEnded()) throw abortedBy(signal!)
  // The caller's signal ends this attempt alone.
  const timeout = signal === undefined ? sharedTimeout(milliseconds) : new Timeout(milliseconds)
  const stop = () => timeout.abort()
  const forget = signal && onAbort(signal, stop)
  timeout.join()
  try {
    // A redirect isn't followed: the payload would go to an address that nobody has named.
    const response = await fetch(url, { ...init, redirect: 'manual', signal: timeout.signal })
    return { status: response.status, headers: response.headers, text: await response.text() }
  } catch (cause) {
    if (isEnded()) throw abortedBy(signal!)
    if (timeout.isOver) throw new HandoffError('timeout', { detail: `No answer within ${milliseconds} ms.`, retryable: true, cause })
    throw new HandoffError('connection_failed', { detail: `No answer: ${reasonOf(cause)}.`, retryable: true, cause })
  } finally {
    timeout.leave()
    forget?.()
  }
}

/** fetch's own message is just "fetch failed"; what happened is in its cause. */
export function reasonOf (error: unknown): string {
  const { cause, message } = error as { cause?: unknown, message?: string }
  const { code, message: inner } = (cause ?? {}) as { code?: string, message?: string }
  return inner || code || message || String(error)
}
