/** One thing that is wrong with a request's body, and where (a JSON Pointer). */
export interface Fault { pointer: string, message: string }

/** What is known of a refusal; what isn't known or doesn't apply is undefined. */
export interface ErrorDetails {
  /** The HTTP status; undefined where there was no answer. */
  status?: number | undefined
  /** The same call may succeed later. */
  retryable?: boolean | undefined
  /** The request's id in the service's log. */
  requestId?: string | undefined
  detail?: string | undefined
  /** The handoff's status, where the refusal is about it. */
  handoffStatus?: string | undefined
  /** The handoff's next attempt; null while that is still to be made. */
  reissuedAs?: string | null | undefined
  /** What is wrong with the request. */
  errors?: readonly Fault[] | undefined
  /** Seconds after which the service wants to be asked again. */
  retryAfter?: number | undefined
  /** The problem's exact JSON, where the service answered one. */
  text?: string | undefined
  cause?: unknown
}

/**
 * Everything that can go wrong with a call. `code` is the API's (docs/api.md has the table), or one of these:
 * `connection_failed` (no answer, or one that isn't the service's), `timeout` (no answer in time) and `aborted` (by the signal; `cause` is its reason).
 */
export class HandoffError extends Error {
  override readonly name = 'HandoffError'
  readonly code: string
  readonly status: number | undefined
  readonly retryable: boolean
  readonly requestId: string | undefined
  readonly detail: string
  readonly handoffStatus: string | undefined
  readonly reissuedAs: string | null | undefined
  readonly errors: readonly Fault[] | undefined
  readonly retryAfter: number | undefined
  /** The problem's exact JSON, where the service answered one; not enumerable. */
  declare readonly text: string | undefined

  constructor (code: string, details: ErrorDetails = {}) {
    const { detail = code, errors, cause } = details
    const faults = errors?.map(({ pointer, message }) => `${pointer} ${message}`).join('; ')
    super(`${detail}${faults === undefined ? '' : ` ${faults}`} (${code})`, cause === undefined ? undefined : { cause })
    this.code = code
    this.status = details.status
    this.retryable = details.retryable ?? false
    this.requestId = details.requestId
    this.detail = detail
    this.handoffStatus = details.handoffStatus
    this.reissuedAs = details.reissuedAs
    this.errors = errors
    this.retryAfter = details.retryAfter
    Object.defineProperty(this, 'text', { value: details.text })
  }
}

/** By its name, so that it also knows the errors of another copy of this package. */
export function isHandoffError<Code extends string = string> (error: unknown, code?: Code): error is HandoffError & { readonly code: Code } {
  return error instanceof Error && error.name === 'HandoffError' && (code === undefined || (error as HandoffError).code === code)
}

/** What a call that its signal ended is refused with. */
export function abortedBy (signal: AbortSignal): HandoffError {
  return new HandoffError('aborted', { detail: 'The call was aborted.', cause: signal.reason })
}
