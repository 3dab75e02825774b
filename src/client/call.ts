import { attempt } from './attempt.ts'
import type { Fetch, Reply } from './attempt.ts'
import { backoff, moment, pause, since } from './clock.ts'
import { HandoffError } from './errors.ts'
import type { Fault } from './errors.ts'
import { withText } from './text.ts'
import type { WithText } from './text.ts'

/** What every method takes besides its own options. */
export interface CallOptions {
  /** Ends the call: it rejects with `aborted`. No listener stays on it. */
  signal?: AbortSignal | undefined
  /** What the operation is known by, so that it is carried out once: 1 to 128 visible ASCII characters. Made for each call where it is left out. */
  idempotencyKey?: string | undefined
  /** For how many milliseconds this call asks again; the client's own where it is left out. */
  retryFor?: number | undefined
  /** How many milliseconds an attempt of this call may take; the client's own where it is left out. */
  attemptTimeout?: number | undefined
}

export interface Settings { baseUrl: string, authorization: string | undefined, fetch: Fetch, retryFor: number, attemptTimeout: number }

export interface Request {
  method: 'GET' | 'POST'
  /** The path with its query. */
  path: string
  body?: string | undefined
  key?: string | undefined
  /** How many seconds the service may wait before it answers. */
  wait?: number | undefined
  /** The answer that a refusal of a later attempt stands for, where it says that an earlier one was carried out. */
  again?: (problem: Problem) => object | undefined
}

/** A problem document (RFC 9457) of the service. */
export interface Problem {
  code: string
  detail?: string
  retryable?: boolean
  request_id?: string
  handoff_status?: string
  reissued_as?: string | null
  errors?: Fault[]
  approval?: { state: string, note: string | null }
}

/** What is asked again: the service can't answer now, or what stands in front of it couldn't reach it. */
const passing = new Set([408, 429, 502, 503, 504])

/** Asks until there is an answer or `retryFor` is over, with the same bytes and the same key each time. */
export async function call<T extends object> (settings: Settings, request: Request, options: CallOptions): Promise<WithText<T>> {
  const { signal, retryFor = settings.retryFor, attemptTimeout = settings.attemptTimeout } = options
  const { wait = 0, again } = request
  const url = `${settings.baseUrl}${request.path}`
  const init = initOf(settings, request)
  const began = moment()
  for (let round = 0; ; round++) {
    try {
      return read<T>(await attempt(settings.fetch, url, init, attemptTimeout + wait * 1000, signal), round > 0 ? again : undefined)
    } catch (error) {
      if (!(error instanceof HandoffError) || !error.retryable) throw error
      const left = retryFor + wait * 1000 - since(began)
      const told = (error.retryAfter ?? 0) * 1000
      if (left <= 0 || told > left) throw error
      // Never before the time that was told, and never all at once then.
      await pause(Math.max(told, Math.min(told + backoff(round), left)), signal)
    }
  }
}

function initOf ({ authorization }: Settings, { method, body, key }: Request): RequestInit {
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

/** What something else has answered in the service's place: a gateway's page, mostly. */
function foreign ({ status, headers, text }: Reply): HandoffError {
  const type = headers.get('content-type') ?? 'no content type'
  const start = text.trim().slice(0, 60)
  return new HandoffError('connection_failed', {
    status,
    retryable: passing.has(status),
    requestId: headers.get('x-request-id') ?? undefined,
    detail: `The answer isn’t the service’s: status ${status}, ${type}, ${start === '' ? 'empty' : `beginning ${JSON.stringify(start)}`}.`,
    retryAfter: retryAfterOf(headers),
  })
}

/** In seconds, given so or as a date. */
function retryAfterOf (headers: Headers): number | undefined {
  const value = headers.get('retry-after')
  if (value === null) return undefined
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds)
}
