/**
 * Every error of the API, in one table: its HTTP status, its title, and the default `detail`, which says what the
 * client can do. The page `/problems`, the OpenAPI document and the error responses are all made from it.
 */
export const errorTable = {
  invalid_request: {
    status: 400, title: 'Invalid request', detail: 'The request is malformed or has a wrong value; see errors.'
  },
  unauthorized: { status: 401, title: 'Unauthorized', detail: 'Send a valid API key: Authorization: Bearer <key>.' },
  insufficient_scope: {
    status: 403,
    title: 'Insufficient scope',
    detail: 'This key lacks the scope that the operation needs; use a key that has it.'
  },
  not_the_catcher: {
    status: 403,
    title: 'Not the catcher',
    detail: 'Another agent caught this handoff; only that agent may report on the work.'
  },
  not_addressee: {
    status: 403,
    title: 'Not the addressee',
    detail: 'This key may catch, and read, only what is for its own inboxes; use a key for this inbox.'
  },
  not_the_passer: {
    status: 403,
    title: 'Not the passer',
    detail: 'Another agent passed this handoff; only that agent, or an operator, may cancel or reissue it.'
  },
  self_approval: {
    status: 403,
    title: 'Self-approval',
    detail: 'Who passed a handoff may not decide on it, not even as another agent; ask somebody else.'
  },
  cross_origin: {
    status: 403,
    title: 'Cross-origin request',
    detail: 'Another site sent this request, so nothing happened; use a page of this service.'
  },
  signature_invalid: {
    status: 403,
    title: 'Signature invalid',
    detail: 'This URL of a file was not made by this service, was changed, or has ended; ask for a new one.'
  },
  not_found: {
    status: 404,
    title: 'Not found',
    detail: 'There is nothing at this address: it never existed, is gone, or belongs to another tenant.'
  },
  not_asked: {
    status: 404, title: 'Not asked', detail: 'The catcher of this handoff has asked nothing.'
  },
  events_off: {
    status: 404,
    title: 'Events off',
    detail: 'This service keeps no events, or sends no webhooks; its ' +
    'operator can set EVENTS_RETENTION, and WEBHOOK_SECRET for webhooks.'
  },
  files_off: {
    status: 404, title: 'Files off', detail: 'This service keeps no files; its operator can set FILES_URL.'
  },
  ended_off: {
    status: 404,
    title: 'Ended off',
    detail: 'This service doesn’t list what has ended; its operator can set ENDED=on.'
  },
  method_not_allowed: { status: 405, title: 'Method not allowed', detail: 'Use a method that the Allow header lists.' },
  request_timeout: {
    status: 408,
    title: 'Request timeout',
    detail: 'The request did not arrive completely in time; send it again on a new connection.'
  },
  already_caught: {
    status: 409, title: 'Already caught', detail: 'Another catch came first; nobody else can catch this handoff.'
  },
  already_done: {
    status: 409, title: 'Already done', detail: 'This handoff was already reported done; see completed_at.'
  },
  already_failed: {
    status: 409,
    title: 'Already failed',
    detail: 'This handoff’s catcher reported that it failed; reissued_as names the next attempt, if there is one.'
  },
  already_declined: {
    status: 409,
    title: 'Already declined',
    detail: 'This handoff’s catcher declined it; reissued_as names the next attempt, if there is one.'
  },
  cancelled: {
    status: 409, title: 'Cancelled', detail: 'This handoff was cancelled; stop working on it.'
  },
  not_caught: { status: 409, title: 'Not caught', detail: 'Nobody has caught this handoff yet; catch it first.' },
  approval_required: {
    status: 409, title: 'Approval required', detail: 'A person must approve this handoff before it can be caught.'
  },
  not_yet: {
    status: 409,
    title: 'Not yet',
    detail: 'This handoff’s delay is not over; catch it after Retry-After, or wait with wait=.'
  },
  rejected: { status: 409, title: 'Rejected', detail: 'A person rejected this handoff; nobody can catch it.' },
  already_decided: {
    status: 409,
    title: 'Already decided',
    detail: 'This handoff is decided already, and decisions are final; see `approval`.'
  },
  no_approval_required: {
    status: 409,
    title: 'No approval required',
    detail: 'This handoff was passed without require_human; there is nothing to decide.'
  },
  content_changed: {
    status: 409,
    title: 'Content changed',
    detail: 'This id now belongs to another handoff than the one you read; read it again before you decide.'
  },
  already_asked: {
    status: 409,
    title: 'Already asked',
    detail: 'This handoff has an open question already, ask_id; wait for its answer.'
  },
  already_answered: {
    status: 409, title: 'Already answered', detail: 'This question has another answer already, and answers are final.'
  },
  withdrawn: {
    status: 409,
    title: 'Withdrawn',
    detail: 'The handoff ended before this question was answered; nobody waits for the answer.'
  },
  unknown_handoff: {
    status: 409,
    title: 'Unknown handoff',
    detail: 'A handoff that after names does not exist, or is gone; name one that exists.'
  },
  blocked: {
    status: 409,
    title: 'Blocked',
    detail: 'This handoff comes after others that have not ended; wait with wait=, or catch it later.'
  },
  unknown_parent: {
    status: 409,
    title: 'Unknown parent',
    detail: 'The parent must be a handoff of your tenant that this agent caught; leave parent out if there is none.'
  },
  hop_limit: {
    status: 409, title: 'Hop limit', detail: 'This work has been passed on too often; do it yourself, or ask a person.'
  },
  loop_detected: {
    status: 409,
    title: 'Loop detected',
    detail: 'This agent has passed the same work twice along this line already; do it yourself, or ask a person.'
  },
  file_missing: {
    status: 409,
    title: 'File missing',
    detail: 'A file is not there whole, or is not yours to name; upload it first, or name an https link.'
  },
  too_many_webhooks: {
    status: 409,
    title: 'Too many webhooks',
    detail: 'This tenant has as many webhooks as it may have; delete one first.'
  },
  too_many_schedules: {
    status: 409,
    title: 'Too many schedules',
    detail: 'This tenant has as many schedules as it may have; delete one first.'
  },
  file_in_use: {
    status: 409, title: 'File in use', detail: 'Handoffs have this file; it goes by itself within an hour of the last.'
  },
  expired: {
    status: 410,
    title: 'Expired',
    detail: 'The deadline of this handoff has passed. If it is tried again, ' +
    'reissued_as on its status names the next attempt; if not, its passer can pass the task again.'
  },
  length_required: {
    status: 411, title: 'Length required', detail: 'Send the file with its Content-Length, not in chunks.'
  },
  payload_too_large: {
    status: 413,
    title: 'Payload too large',
    detail: 'The body is larger than this service accepts; pass a reference to the data instead.'
  },
  uri_too_long: { status: 414, title: 'URI too long', detail: 'The URI is longer than this service accepts.' },
  unsupported_media_type: {
    status: 415,
    title: 'Unsupported media type',
    detail: 'Send JSON in UTF-8, Content-Type: application/json, without a Content-Encoding.'
  },
  range_not_satisfiable: {
    status: 416, title: 'Range not satisfiable', detail: 'The file ends before this range; see Content-Range.'
  },
  idempotency_key_reused: {
    status: 422,
    title: 'Idempotency key reused',
    detail: 'This Idempotency-Key was used with another body; use a new key for a new request.'
  },
  result_invalid: {
    status: 422,
    title: 'Result invalid',
    detail: 'The output does not satisfy result_schema; see ' +
    'errors, correct it and report done again. The handoff stays caught.'
  },
  result_schema_too_slow: {
    status: 422,
    title: 'Result schema too slow',
    detail: 'Validation against result_schema takes too long; pass a simpler schema, or report a smaller output.'
  },
  rate_limited: {
    status: 429,
    title: 'Rate limited',
    detail: 'This agent, or all of its tenant together, sent too many requests; wait for the seconds in Retry-After.'
  },
  inbox_full: {
    status: 429,
    title: 'Inbox full',
    detail: 'This inbox has as many pending handoffs as max_pending allows; pass it again after Retry-After.'
  },
  too_many_live: {
    status: 429,
    title: 'Too many live',
    detail: 'As many handoffs are live, pending or caught, as this tenant, or this agent, may have; pass it again ' +
      'after Retry-After.'
  },
  files_full: {
    status: 429,
    title: 'Files full',
    detail: 'The files of this tenant have as many bytes as they may, or there are as many; send it again after ' +
      'Retry-After.'
  },
  headers_too_large: {
    status: 431, title: 'Request header fields too large', detail: 'Send fewer or shorter header fields.'
  },
  internal_error: {
    status: 500, title: 'Internal error', detail: 'The service failed; give the request_id to its operator.'
  },
  unavailable: {
    status: 503,
    title: 'Unavailable',
    detail: 'Nothing happened, or the outcome is unknown; send the request again with the same Idempotency-Key.'
  },
  payload_locked: {
    status: 503,
    title: 'Payload locked',
    detail: 'This replica does not have the key that the text was encrypted with, so nothing happened; ask again ' +
      'after Retry-After, since another replica may have it.'
  },
} as const satisfies Record<string, { status: number, title: string, detail: string }>

export type ErrorCode = keyof typeof errorTable

/**
 * One fault of a request: where (a JSON Pointer, RFC 6901, into the body, query or headers, as the message says) and
 * what.
 */
export interface Fault { pointer: string, message: string }

/** A problem's additions to its row of the table: members of the document, and header fields of the response. */
export interface ProblemMore {
  detail?: string
  /** `errors` of validation, `handoff_status` of a state conflict, and the like: RFC 9457 extension members. */
  members?: Record<string, unknown>
  headers?: Record<string, string>
}

/** An expected refusal. Any code may throw it; http/problems.ts alone turns it into a response. */
export class Problem extends Error {
  readonly code: ErrorCode
  readonly more: ProblemMore

  constructor (code: ErrorCode, more: ProblemMore = {}) {
    // A lost race is no bug to trace, and capturing a stack costs more than the response does.
    const limit = Error.stackTraceLimit
    Error.stackTraceLimit = 0
    super(code)
    Error.stackTraceLimit = limit
    this.code = code
    // It always says when to ask again; whoever throws it may know better.
    this.more = code === 'unavailable' ? { ...more, headers: { 'retry-after': '1', ...more.headers } } : more
  }
}

/** A 400 with its faults and their places. */
export function invalid (...faults: Fault[]): Problem {
  return new Problem('invalid_request', { members: { errors: faults } })
}

/** Whether the same request may succeed later: the problem document's `retryable`. */
export function isRetryable (status: number): boolean {
  return status === 408 || status === 429 || status === 503
}

/** Redis is away, full or read-only, or did not answer in time: nothing happened, or the outcome is unknown. */
export class Unavailable extends Error {
  override name = 'Unavailable'
}

/** This replica doesn't have the key that a text was sealed with (core/payload-keys.ts); another one may. */
export class PayloadLocked extends Problem {
  /** The key's name. */
  readonly key: string

  constructor (key: string) {
    super('payload_locked', { headers: { 'retry-after': '5' } })
    this.key = key
  }
}

/**
 * The key that a sealed text names doesn't open it, or a digest is of another content: it was changed, or copied
 * it here.
 */
export class PayloadBroken extends Error {
  override name = 'PayloadBroken'
}

/** A read has more bytes than its reader's limit; nothing was changed. No user sees it. */
export class TooLarge extends Error {
  override name = 'TooLarge'
}

/** An invalid setting. Its message is one line for the operator. */
export class SettingError extends Error {
  override name = 'SettingError'
}
