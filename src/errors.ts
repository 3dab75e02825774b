/**
 * Every error an agent can be told, in one table: its HTTP status, its title, and the way out, which is the `detail` where the
 * place that raises it knows nothing better. The page `/problems`, the OpenAPI document and the answers are all made from it.
 */
export const errorTable = {
  invalid_request: { status: 400, title: 'Invalid request', detail: 'The request is not what this operation takes; see errors.' },
  unauthorized: { status: 401, title: 'Unauthorized', detail: 'Send a valid API key: Authorization: Bearer <key>.' },
  insufficient_scope: { status: 403, title: 'Insufficient scope', detail: 'This key lacks the scope that the operation needs; use one that has it.' },
  not_the_catcher: { status: 403, title: 'Not the catcher', detail: 'Another agent caught this handoff; only that agent may say how the work goes.' },
  not_addressee: { status: 403, title: 'Not the addressee', detail: 'This key catches from its own inboxes alone; use a key for this inbox.' },
  not_the_passer: { status: 403, title: 'Not the passer', detail: 'Another agent passed this handoff; only that agent may cancel or reissue it.' },
  self_approval: { status: 403, title: 'Self-approval', detail: 'The agent that passed a handoff may not decide on it; ask somebody else.' },
  cross_origin: { status: 403, title: 'Cross-origin request', detail: 'Another site sent this request, so nothing happened; use a page of this service.' },
  not_found: { status: 404, title: 'Not found', detail: 'Nothing is at this address: it never existed, is gone, or belongs to another tenant.' },
  method_not_allowed: { status: 405, title: 'Method not allowed', detail: 'Use a method that the Allow header lists.' },
  request_timeout: { status: 408, title: 'Request timeout', detail: 'The request did not arrive completely in time; send it again on a new connection.' },
  already_caught: { status: 409, title: 'Already caught', detail: 'Another catch came first; nobody else can catch this handoff.' },
  already_done: { status: 409, title: 'Already done', detail: 'This handoff was already reported done; see completed_at.' },
  already_failed: { status: 409, title: 'Already failed', detail: 'Its catcher reported that this handoff failed; see its status, and reissued_as where it is tried again.' },
  already_declined: { status: 409, title: 'Already declined', detail: 'Its catcher declined this handoff; see its status, and reissued_as where it is tried again.' },
  cancelled: { status: 409, title: 'Cancelled', detail: 'The agent that passed this handoff took it back; stop working on it.' },
  not_caught: { status: 409, title: 'Not caught', detail: 'Nobody has caught this handoff yet; catch it first.' },
  approval_required: { status: 409, title: 'Approval required', detail: 'A person must approve this handoff before it can be caught.' },
  not_yet: { status: 409, title: 'Not yet', detail: 'This handoff was passed with a delay; catch it when Retry-After is over, or with wait=.' },
  rejected: { status: 409, title: 'Rejected', detail: 'A person rejected this handoff; nobody can catch it.' },
  already_decided: { status: 409, title: 'Already decided', detail: 'A decision is final; see the one that stands.' },
  no_approval_required: { status: 409, title: 'No approval required', detail: 'This handoff was passed without require_human; there is nothing to decide.' },
  content_changed: { status: 409, title: 'Content changed', detail: 'This id now belongs to a different handoff than the one you saw; read it again before you decide.' },
  unknown_parent: { status: 409, title: 'Unknown parent', detail: 'The parent must be a handoff of your tenant that this agent has caught; leave it out for work of your own.' },
  hop_limit: { status: 409, title: 'Hop limit', detail: 'This work has been passed on too often; do it yourself, or ask a person.' },
  loop_detected: { status: 409, title: 'Loop detected', detail: 'The same work was passed on twice along this line already; do it yourself, or ask a person.' },
  expired: { status: 410, title: 'Expired', detail: 'The deadline of this handoff has passed; pass the task again.' },
  payload_too_large: { status: 413, title: 'Payload too large', detail: 'The body is larger than this service accepts; pass a reference to the data instead.' },
  uri_too_long: { status: 414, title: 'URI too long', detail: 'The URI is longer than any that this service has.' },
  unsupported_media_type: { status: 415, title: 'Unsupported media type', detail: 'Send JSON in UTF-8, Content-Type: application/json, without a Content-Encoding.' },
  idempotency_key_reused: { status: 422, title: 'Idempotency key reused', detail: 'This Idempotency-Key was used with another body; take a new key for a new request.' },
  result_invalid: { status: 422, title: 'Result invalid', detail: 'The output is not what result_schema asks for; see errors, mend it and report done again. The handoff stays caught.' },
  result_schema_too_slow: { status: 422, title: 'Result schema too slow', detail: 'Holding the output to result_schema takes too long; pass a simpler schema, or report a smaller output.' },
  rate_limited: { status: 429, title: 'Rate limited', detail: 'This agent sent too many requests; wait as long as Retry-After says.' },
  headers_too_large: { status: 431, title: 'Request header fields too large', detail: 'Send fewer or shorter header fields.' },
  internal_error: { status: 500, title: 'Internal error', detail: 'The service has a fault; give the request_id to its operator.' },
  unavailable: { status: 503, title: 'Unavailable', detail: 'Nothing happened, or the outcome is unknown; send the request again with the same Idempotency-Key.' },
} as const satisfies Record<string, { status: number, title: string, detail: string }>

export type ErrorCode = keyof typeof errorTable

/** One thing wrong with a request: where (a JSON Pointer, RFC 6901, into the body or what the message names) and what. */
export interface Fault { pointer: string, message: string }

/** What a problem says beyond its row in the table: members of the problem document, and header fields of the answer. */
export interface ProblemMore {
  detail?: string
  /** `errors` of validation, `handoff_status` of a state conflict, and the like: RFC 9457 extension members. */
  members?: Record<string, unknown>
  headers?: Record<string, string>
}

/** An expected refusal. Thrown anywhere, turned into its answer in one place (http/problem.ts). */
export class Problem extends Error {
  readonly code: ErrorCode
  readonly more: ProblemMore

  constructor (code: ErrorCode, more: ProblemMore = {}) {
    // A lost race is no fault to trace, and capturing a stack costs more than answering it.
    const limit = Error.stackTraceLimit
    Error.stackTraceLimit = 0
    super(code)
    Error.stackTraceLimit = limit
    this.code = code
    this.more = more
  }
}

/** A 400 that says what is wrong and where. */
export function invalid (...faults: Fault[]): Problem {
  return new Problem('invalid_request', { members: { errors: faults } })
}

/** May the same request succeed when it is sent again as it is? What an answer calls `retryable`. */
export function isRetryable (status: number): boolean {
  return status === 408 || status === 429 || status === 503
}
