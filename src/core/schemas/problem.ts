import { Type } from '@sinclair/typebox'
import { errorTable, isRetryable } from '../errors.ts'
import type { ErrorCode } from '../errors.ts'

/** RFC 9457 problem details: the shape of every error response. */
export const problem = Type.Object({
  type: Type.String({ description: 'The page that explains the code.' }),
  title: Type.String(),
  status: Type.Integer(),
  detail: Type.String({ description: 'What to do about it.' }),
  code: Type.String({
    enum: Object.keys(errorTable), description: 'The error’s name, for programs. Later versions may have more.'
  }),
  retryable: Type.Boolean({ description: 'True if the same request may succeed later.' }),
  request_id: Type.String(),
  errors: Type.Optional(Type.Array(Type.Object({ pointer: Type.String(), message: Type.String() }))),
  handoff_status: Type.Optional(Type.String({ description: 'The handoff’s status, if the refusal is about it.' })),
}, { $id: 'Problem', additionalProperties: true })

/** The media type of problem details (RFC 9457, 3). */
export const problemType = 'application/problem+json'

const everywhere: ErrorCode[] = ['invalid_request', 'unauthorized', 'insufficient_scope', 'not_found',
  'request_timeout',
  'rate_limited', 'uri_too_long', 'headers_too_large', 'internal_error', 'unavailable']
const withBody: ErrorCode[] = ['payload_too_large', 'unsupported_media_type']

const retryAfter = {
  'Retry-After': { type: 'string', description: 'Seconds to wait before the next try.', examples: ['1'] }
}
/** Header fields of a response that was rate limited. */
export const rateFields = {
  ...retryAfter,
  RateLimit: {
    type: 'string',
    description: 'r: requests left; t: seconds until the quota is reset.',
    examples: ['"default";r=0;t=30']
  },
  'RateLimit-Policy': {
    type: 'string',
    description: 'q: quota of requests per window; w: the window in seconds.',
    examples: ['"default";q=600;w=60']
  },
}
/** Header fields of error responses, for the document. */
const fields: Record<number, object> = { 429: rateFields, 503: retryAfter }

/** The `response` schemas of an operation's errors: `codes`, and those that every operation can answer. */
export function problems (options: { body: boolean }, ...codes: ErrorCode[]) {
  const byStatus: Record<number, { description: string, content: object, headers?: object }> = {}
  for (const code of [...everywhere, ...(options.body ? withBody : []), ...codes]) {
    const { status, title, detail } = errorTable[code]
    const response = byStatus[status] ??= {
      description: '',
      content: { [problemType]: { schema: { $ref: 'Problem#' }, examples: {} } },
      ...status in fields && { headers: fields[status] }
    }
    const { examples } = (response.content as Record<string, { examples: Record<string, object> }>)[problemType]!
    if (code === 'not_yet') response.headers = retryAfter
    response.description += `${response.description && '; '}${title} (\`${code}\`)`
    examples[code] = {
      value: {
        type: `/problems#${code}`, title, status, detail, code, retryable: isRetryable(status), request_id: 'req-1'
      }
    }
  }
  return byStatus
}
