import { Type } from '@sinclair/typebox'
import { errorTable, isRetryable } from '../errors.ts'
import type { ErrorCode } from '../errors.ts'

/** RFC 9457 problem details, as every error is answered here. */
export const problem = Type.Object({
  type: Type.String({ description: 'The page that explains the code.' }),
  title: Type.String(),
  status: Type.Integer(),
  detail: Type.String({ description: 'What to do about it.' }),
  code: Type.String({ description: 'For programs; one of the table of errors.' }),
  retryable: Type.Boolean({ description: 'May the same request succeed when it is sent again?' }),
  request_id: Type.String(),
  errors: Type.Optional(Type.Array(Type.Object({ pointer: Type.String(), message: Type.String() }))),
  handoff_status: Type.Optional(Type.String({ description: 'The status that stood in the way.' })),
}, { $id: 'Problem', additionalProperties: true })

/** The media type of problem details (RFC 9457, 3). */
export const problemType = 'application/problem+json'

const everywhere: ErrorCode[] = ['invalid_request', 'unauthorized', 'insufficient_scope', 'not_found', 'request_timeout',
  'rate_limited', 'uri_too_long', 'headers_too_large', 'internal_error', 'unavailable']
const withBody: ErrorCode[] = ['payload_too_large', 'unsupported_media_type']

const retryAfter = { 'Retry-After': { type: 'string', description: 'Seconds until it may be sent again.', examples: ['1'] } }
/** Header fields of an error's answer, for the document. */
const fields: Record<number, object> = {
  429: {
    ...retryAfter,
    RateLimit: { type: 'string', description: 'r: how many requests are left; t: seconds until there are new ones.', examples: ['"default";r=0;t=30'] },
    'RateLimit-Policy': { type: 'string', description: 'q: how many requests in w seconds.', examples: ['"default";q=600;w=60'] },
  },
  503: retryAfter,
}

/** The `response` schemas of the errors that an operation can answer, beside those that each can. */
export function problems (options: { body: boolean }, ...codes: ErrorCode[]) {
  const byStatus: Record<number, { description: string, content: object, headers?: object }> = {}
  for (const code of [...everywhere, ...(options.body ? withBody : []), ...codes]) {
    const { status, title, detail } = errorTable[code]
    const response = byStatus[status] ??= { description: '', content: { [problemType]: { schema: { $ref: 'Problem#' }, examples: {} } }, ...status in fields && { headers: fields[status] } }
    const { examples } = (response.content as Record<string, { examples: Record<string, object> }>)[problemType]!
    response.description += `${response.description && '; '}${title} (\`${code}\`)`
    examples[code] = {
      value: { type: `/problems#${code}`, title, status, detail, code, retryable: isRetryable(status), request_id: 'req-1' }
    }
  }
  return byStatus
}
