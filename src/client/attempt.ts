import { longest } from './clock.ts'
import { HandoffError, abortedBy } from './errors.ts'

/** The part of `fetch` that the client uses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export interface Reply { status: number, headers: Headers, text: string }

/**
 * Sends a request once and reads the whole answer, unless the time runs out or the signal aborts it. Each attempt gives fetch its own
 * AbortController, since some runtimes leave listeners on a signal that outlives the request.
 */
export async function attempt (fetch: Fetch, url: string, init: RequestInit, milliseconds: number, signal: AbortSignal | undefined): Promise<Reply> {
  const isEnded = () => signal?.aborted === true
  if (isEnded()) throw abortedBy(signal!)
  const own = new AbortController()
  let late = false
  const timer = milliseconds > longest
    ? undefined
    : setTimeout(() => {
      late = true
      own.abort()
    }, milliseconds)
  const stop = () => own.abort()
  signal?.addEventListener('abort', stop)
  try {
    // Redirects aren't followed: the payload would go to an address that the user hasn't chosen.
    const response = await fetch(url, { ...init, redirect: 'manual', signal: own.signal })
    return { status: response.status, headers: response.headers, text: await response.text() }
  } catch (cause) {
    if (isEnded()) throw abortedBy(signal!)
    if (late) throw new HandoffError('timeout', { detail: `No answer within ${milliseconds} ms.`, retryable: true, cause })
    throw new HandoffError('connection_failed', { detail: `No answer: ${reasonOf(cause)}.`, retryable: true, cause })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', stop)
  }
}

/** fetch's own message is just "fetch failed"; what happened is in its cause. */
export function reasonOf (error: unknown): string {
  const { cause, message } = error as { cause?: unknown, message?: string }
  const { code, message: inner } = (cause ?? {}) as { code?: string, message?: string }
  return inner || code || message || String(error)
}
