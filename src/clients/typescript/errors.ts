import type { ErrorCode } from './api.ts'
/** One fault in a request's body, and where it is (a JSON Pointer). */
export interface Fault { pointer: string, message: string }

/** What is known about an error; undefined for what isn't known or doesn't apply. */
interface ErrorDetails {
  /** The HTTP status; undefined if there was no answer. */
  status?: number | undefined
  /** The same call may succeed later. */
  retryable?: boolean | undefined
  /** The request's id in the service's log. */
  requestId?: string | undefined
  detail?: string | undefined
  /** The handoff's status, if the refusal is about it. */
  handoffStatus?: string | undefined
  /** The id of the handoff's next attempt; null while it hasn't been made yet. */
  reissuedAs?: string | null | undefined
  /** The ids that have not ended, when the time of `waitForAll` is over. */
  open?: readonly string[] | undefined
  /** What is wrong with the request. */
  errors?: readonly Fault[] | undefined
  /** How many seconds to wait before a retry, as the service asks. */
  retryAfter?: number | undefined
  /** The exact JSON of the problem document, if the service sent one. */
  text?: string | undefined
  cause?: unknown
}

/** Why `verifyApproval` doesn't rely on a decision. */
export type SignatureFault = 'unsigned' | 'unknown_key' | 'signature' | 'issuer' | 'handoff' | 'digest' | 'rejected'

/**
 * The API's codes (docs/api.md has the table), those of calls that the service didn't answer, and those of
 * `verifyApproval`.
 */
export type HandoffErrorCode =
  ErrorCode | 'connection_failed' | 'timeout' | 'aborted' | 'key_unavailable' | SignatureFault

/**
 * Any error of a call. `code` is one of the API's (docs/api.md has the table), or one of these: `connection_failed` (no
 * answer, or one that isn't the service's), `timeout` (no answer in time), `aborted` (by the signal; `cause` is its
 * reason) and `key_unavailable` (there was no key to send; `cause` says why). A newer service may have codes that are
 * not in the type.
 */
export class HandoffError extends Error {
  override readonly name = 'HandoffError'
  readonly code: HandoffErrorCode
  readonly status: number | undefined
  readonly retryable: boolean
  readonly requestId: string | undefined
  readonly detail: string
  readonly handoffStatus: string | undefined
  readonly reissuedAs: string | null | undefined
  /** The ids that have not ended, when the time of `waitForAll` is over. */
  readonly open: readonly string[] | undefined
  readonly errors: readonly Fault[] | undefined
  readonly retryAfter: number | undefined
  /** The exact JSON of the problem document, if the service sent one; not enumerable. */
  declare readonly text: string | undefined

  constructor (code: HandoffErrorCode, details: ErrorDetails = {}) {
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
    this.open = details.open
    this.errors = errors
    this.retryAfter = details.retryAfter
    Object.defineProperty(this, 'text', { value: details.text })
  }
}

/** Compares the error's name, so that it also recognises errors of another copy of this package. */
export function isHandoffError<Code extends HandoffErrorCode = HandoffErrorCode> (
  error: unknown, code?: Code
): error is HandoffError & { readonly code: Code } {
  return error instanceof Error && error.name === 'HandoffError' &&
    (code === undefined || (error as HandoffError).code === code)
}

/** The error of a call that its signal aborted. */
export function abortedBy (signal: AbortSignal): HandoffError {
  return new HandoffError('aborted', { detail: 'The call was aborted.', cause: signal.reason })
}
