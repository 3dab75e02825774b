import { attempt, newConnections, redirectOf } from './attempt.ts'
import type { Fetch, Init, Reply } from './attempt.ts'
import { backoff, moment, obeyed, pause, since } from './clock.ts'
import type { Moment } from './clock.ts'
import { HandoffError } from './errors.ts'
import type { Fault, HandoffErrorCode } from './errors.ts'
import { withText } from './text.ts'
import type { WithText } from './text.ts'

/** The options that every method takes. */
export interface CallOptions {
  /** Aborts the call, which then rejects with `aborted`. No listener stays on the signal. */
  signal?: AbortSignal | undefined
  /** The operation's Idempotency-Key, by which it is carried out only once: 1 to 128 visible ASCII characters. By default each call makes a new one. */
  idempotencyKey?: string | undefined
  /** How long this call is retried, in milliseconds; by default as the client's option says. */
  retryFor?: number | undefined
  /** How long one attempt of this call may take, in milliseconds; by default as the client's option says. */
  attemptTimeout?: number | undefined
}

export interface Settings {
  baseUrl: string
  authorization: string | undefined
  fetch: Fetch
  /** Whether that is the runtime's own. */
  ownFetch: boolean
  retryFor: number
  attemptTimeout: number
  /** When the last answer came. */
  heard: Moment
}

export interface Request {
  method: 'GET' | 'POST'
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

/** After so many milliseconds without an answer a long wait is preceded by a short request, which has so many for its answer. */
const [silence, probeTime] = [15_000, 3000]

/** The statuses that are retried: the service can't answer now, or a gateway couldn't reach it. */
const passing = new Set([408, 429, 502, 503, 504])

/** Sends the request until there is an answer or `retryFor` is over, each time with the same bytes and the same key. */
export async function call<T extends object> (settings: Settings, request: Request, options: CallOptions): Promise<WithText<T>> {
  const { signal, retryFor = settings.retryFor, attemptTimeout = settings.attemptTimeout } = options
  const { wait = 0, again } = request
  const url = `${settings.baseUrl}${request.path}`
  const init = initOf(settings, request)
  const began = moment()
  let waited = 0
  let unheard = false
  for (let round = 0; ; round++) {
    const asked = moment()
    try {
      const reply = await heard(settings, { url, init, attemptTimeout, wait, signal }, unheard)
      settings.heard = moment()
      return read<T>(reply, round > 0 ? again : undefined)
    } catch (error) {
      if (!(error instanceof HandoffError) || !error.retryable) throw error
      // Only where nothing came back in time: others tell that there is somebody, or close the connection.
      unheard = error.code === 'timeout'
      // What the service was asked to wait isn't lost. But where nobody answers nobody waits.
      waited = Math.min(wait * 1000, waited + since(asked))
      const left = retryFor + waited - since(began)
      if (left <= 0 || (error.retryAfter ?? 0) * 1000 > left) throw error
      const told = obeyed(error.retryAfter)
      // Not before Retry-After is over, and not all clients at the same moment then.
      await pause(Math.max(told, Math.min(told + backoff(round), left)), signal)
    }
  }
}

interface Sent { url: string, init: Init, attemptTimeout: number, wait: number, signal: AbortSignal | undefined }

/**
 * One attempt, on new connections if the last was `unheard`. A long one is preceded by a short one where nothing was heard for a while: what went
 * silent meanwhile would let it wait in vain, and nobody would know before its time is over.
 */
async function heard (settings: Settings, { url, init, attemptTimeout, wait, signal }: Sent, unheard: boolean): Promise<Reply> {
  const probes = wait > 0 && (unheard || since(settings.heard) > silence)
  const dispatcher = settings.ownFetch && (unheard || probes) ? newConnections() : undefined
  const more = dispatcher === undefined ? {} : { dispatcher }
  try {
    // Any answer will do.
    if (probes) await attempt(settings.fetch, `${settings.baseUrl}/healthz`, { method: 'GET', ...more }, Math.min(attemptTimeout, probeTime), signal)
    const reply = await attempt(settings.fetch, url, { ...init, ...more }, attemptTimeout + wait * 1000, signal)
    dispatcher?.close().catch(() => {})
    return reply
  } catch (error) {
    dispatcher?.destroy().catch(() => {})
    throw error
  }
}

function initOf ({ authorization }: Settings, { method, body, key }: Request): Init {
  const headers: Record<string, string> = { accept: 'application/json' }
  if (authorization !== undefined) headers.authorization = authorization
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (key !== undefined) headers['idempotency-key'] = key
  return { method, headers, ...body !== undefined && { body } }
}

function read<T extends object> (reply: Reply, again: Request['again']): WithText<T> {
  const { status, text } = reply
  const value = parse(text)
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
    detail: `The answer isn’t the service’s: status ${status}, ${redirect ?? `${type}, ${start === '' ? 'empty' : `beginning ${JSON.stringify(start)}`}`}.`,
    retryAfter: retryAfterOf(headers),
  })
}

/** Retry-After in seconds. The field may be a number of seconds or a date, which is by the clock that the answer's own Date is of. */
function retryAfterOf (headers: Headers): number | undefined {
  const value = headers.get('retry-after')
  if (value === null) return undefined
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - nowOf(headers)) / 1000
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds)
}

function nowOf (headers: Headers): number {
  const sent = Date.parse(headers.get('date') ?? '')
  return Number.isNaN(sent) ? Date.now() : sent
}
