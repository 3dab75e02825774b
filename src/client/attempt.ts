import { HandoffError, abortedBy } from './errors.ts'
import { onAbort } from './on-abort.ts'
import { Timeout, sharedTimeout } from './timeout.ts'

/** The part of `fetch` that the client uses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** What an attempt is sent with besides: undici's option for whose connections it takes. */
export type Init = Omit<RequestInit, 'dispatcher'> & { dispatcher?: Connections }

/** Connections of their own, beside those that fetch keeps. */
export interface Connections { close (): Promise<void>, destroy (): Promise<void> }

/** Where Node's fetch keeps its connections. */
const kept = Symbol.for('undici.globalDispatcher.1')

/**
 * New connections. Where one of those that fetch keeps is dead and says nothing, the others are dead as well, and it would take one after the other.
 * @returns undefined where the runtime has no such thing, or somebody has replaced it
 */
export function newConnections (): Connections | undefined {
  const found = (globalThis as { [kept]?: { constructor: new () => Connections } })[kept]
  return found?.constructor.name === 'Agent' ? new found.constructor() : undefined
}

export interface Reply { status: number, headers: Headers, text: string }

/**
 * Sends a request once and reads the whole answer, unless that takes too long or the signal ends it. fetch never gets the caller's signal,
 * since some runtimes leave listeners on a signal that outlives the request.
 */
export async function attempt (fetch: Fetch, url: string, init: Init, milliseconds: number, signal: AbortSignal | undefined): Promise<Reply> {
  const isEnded = () => signal?.aborted === true
  if (isEnded()) throw abortedBy(signal!)
  // The caller's signal ends this attempt alone.
  const timeout = signal === undefined ? sharedTimeout(milliseconds) : new Timeout(milliseconds)
  const stop = () => timeout.abort()
  const forget = signal && onAbort(signal, stop)
  timeout.join()
  try {
    // A redirect isn't followed: the payload would go to an address that nobody has named.
    const response = await fetch(url, { ...init, redirect: 'manual', signal: timeout.signal } as RequestInit)
    return { status: response.status, headers: response.headers, text: await response.text() }
  } catch (cause) {
    if (isEnded()) throw abortedBy(signal!)
    if (timeout.isOver) throw new HandoffError('timeout', { detail: `No answer within ${milliseconds} ms.`, retryable: true, cause })
    throw new HandoffError('connection_failed', { detail: `No answer: ${reasonOf(cause)}.`, retryable: otherProtocol(cause) === undefined, cause })
  } finally {
    timeout.leave()
    forget?.()
  }
}

/** fetch's own message is just "fetch failed"; what happened is in its cause. */
export function reasonOf (error: unknown): string {
  const { cause, message } = error as { cause?: unknown, message?: string }
  const { code, message: inner } = (cause ?? {}) as { code?: string, message?: string }
  return otherProtocol(error) || inner || code || message || String(error)
}

/** In words, where the address begins with the wrong one of http: and https:. Each runtime tells it in its own way. */
function otherProtocol (error: unknown): string | undefined {
  const { cause = error } = error as { cause?: unknown }
  const { code = '', message = '' } = cause as { code?: string, message?: string }
  const said = `${code} ${message}`
  if (/wrong.version.number|packet.length.too.long|unknown.protocol|InvalidContentType/i.test(said)) return 'this port doesn’t speak TLS; the address begins with http://, not https://'
  return /HPE_INVALID|Expected HTTP/.test(said) ? 'what answered there isn’t HTTP; perhaps the address begins with https://' : undefined
}

/** In words, where an answer redirects: no request follows it. Browsers tell nothing else of such an answer, and its status as 0. */
export function redirectOf (status: number, headers: Headers): string | undefined {
  if (status !== 0 && (status < 300 || status === 304 || status >= 400)) return undefined
  // Without what may be secret in it.
  const to = headers.get('location')?.split(/[?#]/)[0]!.slice(0, 200)
  return `a redirect${to ? ` to ${JSON.stringify(to)}` : ''}, which isn’t followed: give the address that it leads to`
}
