import { backoff, maxTimer, moment, onAbort, pause, retryPause, since } from './clock.ts'
import { Ending, newConnections } from './connections.ts'
import type { Connections, Wanted } from './connections.ts'
import { HandoffError, abortedBy } from './errors.ts'
import type { Fault, HandoffErrorCode } from './errors.ts'
import { withText } from './json.ts'
import type { WithText } from './json.ts'
import type { Authorization } from './key.ts'
import type { Fetch, Settings } from './settings.ts'
import type { Labels } from './types.ts'

/** The options that every method takes. */
export interface CallOptions {
  /** Aborts the call, which then rejects with `aborted`. No listener stays on the signal. */
  signal?: AbortSignal | undefined
  /**
   * The operation's Idempotency-Key, by which it is carried out only once: 1 to 128 visible ASCII characters. By
   * default each call makes a new one.
   */
  idempotencyKey?: string | undefined
  /**
   * What the worker that calls is named, for people who look after the work (Handoff-Worker): 1 to 100 of
   * A-Z a-z 0-9 . _ : @ / -. `work` names itself.
   */
  worker?: string | undefined
  /** How long this call is retried, in milliseconds; by default as the client's option says. */
  retryFor?: number | undefined
  /** How long one attempt of this call may take, in milliseconds; by default as the client's option says. */
  attemptTimeout?: number | undefined
}

interface Request {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** The path and the query. */
  path: string
  body?: string | undefined
  key?: string | undefined
  /** How long the service may wait before it answers, in seconds. */
  wait?: number | undefined
  /** Turns the refusal of a retry into an answer, if the refusal shows that an earlier attempt was carried out. */
  again?: (problem: Problem) => object | undefined
}

/** A problem document of the service (RFC 9457). */
export interface Problem {
  code: HandoffErrorCode
  detail?: string
  retryable?: boolean
  request_id?: string
  handoff_status?: string
  reissued_as?: string | null
  errors?: Fault[]
  approval?: { state: string, note: string | null }
}

/**
 * After so many milliseconds without an answer a long wait is preceded by a short request, which has so many for its
 * answer.
 */
const [silence, probeTime] = [15_000, 3000]

/** The statuses that are retried: the service can't answer now, or a gateway couldn't reach it. */
const passing = new Set([408, 429, 502, 503, 504])

/** Sends the request until there is an answer or `retryFor` is over, each time with the same bytes and the same key. */
export async function call<T extends object> (
  settings: Settings, request: Request, options: CallOptions
): Promise<WithText<T>> {
  const { signal, retryFor = settings.retryFor, attemptTimeout = settings.attemptTimeout } = options
  const { wait = 0, again } = request
  const url = `${settings.baseUrl}${request.path}`
  const wanted = wantedOf(request, options.worker)
  // By the clock that can’t be set. Where the machine sleeps it stands still, and the network is back some time later.
  const began = performance.now()
  let waited = 0
  let isSilent = false
  for (let round = 0; ; round++) {
    const sentAt = performance.now()
    try {
      const reply = await sendWithKey(settings, { url, wanted, attemptTimeout, wait, signal }, isSilent)
      return read<T>(reply, round > 0 ? again : undefined)
    } catch (error) {
      if (!(error instanceof HandoffError) || !error.retryable) throw error
      // Only where nothing came back in time: others show that a server is there, or close the connection.
      isSilent = error.code === 'timeout'
      // What the service was asked to wait isn't lost. But where no server answers none waits.
      waited = Math.min(wait * 1000, waited + performance.now() - sentAt)
      const left = retryFor + waited - (performance.now() - began)
      if (left <= 0 || (error.retryAfter ?? 0) * 1000 > left) throw error
      const retryAfter = retryPause(error.retryAfter)
      // Not before Retry-After is over, and not all clients at the same moment then.
      await pause(Math.max(retryAfter, Math.min(retryAfter + backoff(round), left)), signal)
    }
  }
}

interface Sent { url: string, wanted: Wanted, attemptTimeout: number, wait: number, signal: AbortSignal | undefined }

/** One attempt. Where its key is refused, and another one may be had, it is made once more. */
async function sendWithKey (settings: Settings, sent: Sent, isSilent: boolean): Promise<Reply> {
  const { read, renew } = settings.authorization
  const reply = await send(settings, sent, read, isSilent)
  return reply.status === 401 && renew !== undefined ? await send(settings, sent, renew, false) : reply
}

/**
 * One attempt, on new connections if the last was `unheard`. A long one is preceded by a short one where nothing was
 * heard for a while: what went silent meanwhile would let it wait in vain, and it would be unknown before its time is
 * over.
 */
async function send (
  settings: Settings, { url, wanted, attemptTimeout, wait, signal }: Sent, authorize: Authorization['read'],
  isSilent: boolean
): Promise<Reply> {
  const probes = wait > 0 && (isSilent || since(settings.answeredAt) > silence)
  const own = settings.ownFetch && (isSilent || probes) ? newConnections() : undefined
  try {
    // Any answer will do.
    if (probes) {
      const short = Math.min(attemptTimeout, probeTime)
      const probe = { url: `${settings.baseUrl}/healthz`, wanted: { method: 'GET', headers: {} } }
      await attempt(settings, probe, short, signal, own)
    }
    const reply = await attempt(settings, { url, wanted, authorize }, attemptTimeout + wait * 1000, signal, own)
    settings.answeredAt = moment()
    own?.close().catch(() => {})
    return reply
  } catch (error) {
    own?.destroy().catch(() => {})
    throw error
  }
}

function wantedOf ({ method, body, key }: Request, worker: string | undefined): Wanted {
  const headers: Record<string, string> = { accept: 'application/json' }
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (key !== undefined) headers['idempotency-key'] = key
  if (worker !== undefined) headers['handoff-worker'] = worker
  return { method, headers, body }
}

function read<T extends object> (reply: Reply, again: Request['again']): WithText<T> {
  const { status, text } = reply
  const value = status === 204 ? {} : parse(text)
  if (status >= 200 && status < 300 && value !== undefined) return withText(value as T, text)
  if (status < 400 || typeof (value as Partial<Problem> | undefined)?.code !== 'string') throw foreign(reply)
  const answer = again?.(value as Problem)
  if (answer !== undefined) return withText(answer as T, JSON.stringify(answer))
  throw refusal(reply, value as Problem)
}

function parse (text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

function refusal ({ status, headers, text }: Reply, problem: Problem): HandoffError {
  return new HandoffError(problem.code, {
    status,
    retryable: passing.has(status),
    requestId: problem.request_id ?? headers.get('x-request-id') ?? undefined,
    detail: problem.detail,
    handoffStatus: problem.handoff_status,
    reissuedAs: problem.reissued_as,
    errors: problem.errors,
    retryAfter: retryAfterOf(headers),
    text,
  })
}

/** The error for an answer that isn't the service's: a gateway's error page, mostly. */
function foreign ({ status, headers, text }: Reply): HandoffError {
  const redirect = redirectOf(status, headers)
  const type = headers.get('content-type') ?? 'no content type'
  const start = text.trim().slice(0, 60)
  return new HandoffError('connection_failed', {
    status,
    retryable: passing.has(status),
    requestId: headers.get('x-request-id') ?? undefined,
    detail: `The answer isn’t the service’s: status ${status}, ${redirect ??
      `${type}, ${start === '' ? 'empty' : `beginning ${JSON.stringify(start)}`}`}.`,
    retryAfter: retryAfterOf(headers),
  })
}

/**
 * Retry-After in seconds. The field may be a number of seconds or a date, which is by the clock that the answer's own
 * Date is of.
 */
export function retryAfterOf (headers: Headers): number | undefined {
  const value = headers.get('retry-after')
  if (value === null) return undefined
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - nowOf(headers)) / 1000
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds)
}

function nowOf (headers: Headers): number {
  const sent = Date.parse(headers.get('date') ?? '')
  return Number.isNaN(sent) ? Date.now() : sent
}

interface Reply { status: number, headers: Headers, text: string }

/** What one request asks for. @property authorize gives its Authorization; left out where it needs none */
interface Asked { url: string, wanted: Wanted, authorize?: Authorization['read'] }

/**
 * Sends a request once and reads the whole answer, unless that takes too long or the signal ends it. fetch never gets
 * the caller's signal, since some runtimes leave listeners on a signal that outlives the request.
 */
function attempt (
  { fetch, ownFetch }: Settings, asked: Asked, milliseconds: number, signal: AbortSignal | undefined,
  connections: Connections | undefined
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(abortedBy(signal))
    const ending = new Ending(ownFetch, connections)
    const settle = () => {
      clearTimeout(timer)
      forget?.()
    }
    const stop = (error: HandoffError) => {
      settle()
      reject(error)
      ending.end()
    }
    const timer = milliseconds > maxTimer
      ? undefined
      : setTimeout(() => stop(new HandoffError(
        'timeout', { detail: `No answer within ${milliseconds} ms.`, retryable: true }
      )), milliseconds)
    const forget = signal && onAbort(signal, () => stop(abortedBy(signal)))
    exchange(fetch, asked, ending).then(reply => {
      settle()
      resolve(reply)
    }, cause => {
      settle()
      reject(unanswered(cause))
    })
  })
}

function unanswered (cause: unknown): HandoffError {
  // There was no key to send it with.
  if (cause instanceof HandoffError) return cause
  return new HandoffError(
    'connection_failed',
    { detail: `No answer: ${reasonOf(cause)}.`, retryable: otherProtocol(cause) === undefined, cause }
  )
}

async function exchange (fetch: Fetch, { url, wanted, authorize }: Asked, ending: Ending): Promise<Reply> {
  const authorization = await authorize?.()
  if (authorization !== undefined) wanted.headers.authorization = authorization
  const response = await fetch(url, ending.initOf(wanted))
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** fetch's own message is just "fetch failed"; what happened is in its cause. */
export function reasonOf (error: unknown): string {
  const { cause, message } = error as { cause?: unknown, message?: string }
  const { code, message: inner } = (cause ?? {}) as { code?: string, message?: string }
  return otherProtocol(error) || inner || code || message || String(error)
}

/** In words, where the address begins with the wrong one of http: and https:. Each runtime says it in its own way. */
function otherProtocol (error: unknown): string | undefined {
  const { cause = error } = error as { cause?: unknown }
  const { code = '', message = '' } = cause as { code?: string, message?: string }
  const text = `${code} ${message}`
  if (/wrong.version.number|packet.length.too.long|unknown.protocol|InvalidContentType/i.test(text)) {
    return 'this port doesn’t speak TLS; the address begins with http://, not https://'
  }
  return /HPE_INVALID|Expected HTTP/.test(text)
    ? 'what answered there isn’t HTTP; perhaps the address begins with https://'
    : undefined
}

/**
 * In words, where an answer redirects: no request follows it. Browsers show nothing else of such an answer, and its
 * status as 0.
 */
export function redirectOf (status: number, headers: Headers): string | undefined {
  if (status !== 0 && (status < 300 || status === 304 || status >= 400)) return undefined
  // Without what may be secret in it.
  const to = headers.get('location')?.split(/[?#]/)[0]!.slice(0, 200)
  return `a redirect${to ? ` to ${JSON.stringify(to)}` : ''}, which isn’t followed: give the address that it leads to`
}

/** An operation's Idempotency-Key: the caller's, or a new one. */
export function keyOf ({ idempotencyKey }: CallOptions, maxLength = 128): string {
  if (idempotencyKey === undefined) return crypto.randomUUID()
  if (!/^[!-~]+$/.test(idempotencyKey) || idempotencyKey.length > maxLength) {
    throw new TypeError(`an idempotencyKey must be 1 to ${maxLength} visible ASCII characters`)
  }
  return idempotencyKey
}

/** The path of an operation on a handoff or an inbox. */
export function pathOf (what: string, name: string): string {
  return `/api/${what}/${encodeURIComponent(name)}`
}

/** The query of the members that aren't undefined, with its question mark; empty if there are none. */
export function queryOf (members: Record<string, string | number | undefined>): string {
  const given = Object.entries(members).filter(([, value]) => value !== undefined)
  return given.length === 0 ? '' : `?${given.map(([name, value]) => `${name}=${encodeURIComponent(value!)}`).join('&')}`
}

/**
 * The labels that a list is to have, as a query says them.
 * @throws TypeError for what would be other labels there
 */
export function labelsText (labels: Labels | undefined): string | undefined {
  if (labels === undefined) return undefined
  const all = Object.entries(labels)
  if (all.some(([name, value]) => /[:,]/.test(name) || /,/.test(value))) {
    throw new TypeError('a label’s name has no colon, and neither it nor its value has a comma')
  }
  return all.map(([name, value]) => `${name}:${value}`).join()
}
