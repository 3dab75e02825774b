import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { invalidToken } from '../auth/grant.ts'
import { errorTable, invalid, isRetryable, Problem, Unavailable } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import { BodyError } from '../core/json.ts'
import { problemType } from '../core/schemas/problem.ts'
import { readFaults } from '../core/validator.ts'
import { isPlainJson } from './body.ts'
import { requestFields } from './observe.ts'
import type { FaultLog } from './observe.ts'

/** The error codes of the framework's own errors. readStatus covers the others. */
const frameworkCodes: Record<string, ErrorCode> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  // A path that can't be decoded can't exist.
  FST_ERR_BAD_URL: 'not_found',
  FST_ERR_MAX_PARAM_LENGTH: 'uri_too_long',
}

/** Without a credential, the challenge has no error code (RFC 6750, 3.1). */
const challenges: Record<string, string> = {
  FST_BEARER_AUTH_MISSING_AUTHORIZATION_HEADER: 'Bearer',
  FST_BEARER_AUTH_INVALID_AUTHORIZATION_HEADER: invalidToken,
}

/**
 * The problem document's text. Its `type` is a relative URI reference (RFC 9457, 3.1.1), so it includes BASE_URL's
 * path.
 */
export function problemText (problem: Problem, requestId: string, base: string): string {
  const { status, title, detail } = errorTable[problem.code]
  return JSON.stringify({
    type: `${base}/problems#${problem.code}`,
    title,
    status,
    detail: problem.more.detail ?? detail,
    code: problem.code,
    retryable: isRetryable(status),
    request_id: requestId,
    ...problem.more.members,
  })
}

/**
 * Answers any error, expected or not, with a problem document. An internal error is logged, and its text isn't shown.
 * @param refused called with each error code
 * @param answerPage answers a browser with a page instead, where there is one for the problem; it says whether it did
 */
export function answerErrors (
  log: FaultLog, refused: (code: ErrorCode) => void, answerPage?: AnswerPage
) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const problem = afterRate(asProblem(firstFault(error, request)), request)
    refused(problem.code)
    if (problem.code === 'internal_error') log.error({ err: error, ...requestFields(request) }, 'internal error')
    if (answerPage !== undefined && isBrowser(request) && answerPage(problem, request, reply)) return
    answerProblem(problem, request, reply)
  }
}

/**
 * The faults of a request itself. A batch over its agent's limit doesn't report them: the limit comes first
 * (docs/api.md, "Errors").
 */
const refusedAfterRate = new Set<ErrorCode>(['invalid_request', 'unsupported_media_type', 'payload_too_large'])

function afterRate (problem: Problem, { limit }: FastifyRequest): Problem {
  return refusedAfterRate.has(problem.code) ? limit?.refusal() ?? problem : problem
}

export type AnswerPage = (problem: Problem, request: FastifyRequest, reply: FastifyReply) => boolean

/**
 * A person who opens an address in a browser. Programs may copy a browser's Accept, but send their key, and get JSON.
 */
function isBrowser ({ method, headers }: FastifyRequest): boolean {
  return (method === 'GET' || method === 'HEAD') && headers.authorization === undefined &&
    /\btext\/html\b/.test(headers.accept ?? '')
}

function answerProblem (problem: Problem, request: FastifyRequest, reply: FastifyReply): void {
  reply
    .code(errorTable[problem.code].status)
    .headers({ 'x-request-id': request.id, 'cache-control': 'no-store', ...problem.more.headers })
    .header('content-type', problemType)
    .send(problemText(problem, request.id, request.server.basePath))
}

/** The problem that any error is answered with. */
export function asProblem (error: unknown): Problem {
  if (error instanceof Problem) return error
  if (error instanceof BodyError) return invalid({ pointer: error.pointer, message: error.message })
  if (error instanceof Unavailable) return new Problem('unavailable')
  const { code, statusCode, validation, validationContext } = error as FastifyError
  if (validation !== undefined) return invalid(...readFaults(validation, validationContext))
  const challenge = challenges[code]
  if (challenge !== undefined) return new Problem('unauthorized', { headers: { 'www-authenticate': challenge } })
  return new Problem(frameworkCodes[code] ?? readStatus(statusCode))
}

/**
 * The other errors: an upload that broke off, a bad request for a file of /docs. Without a 4xx status it is an internal
 * error.
 */
function readStatus (status: number | undefined): ErrorCode {
  if (status === 403 || status === 404) return 'not_found'
  return status !== undefined && status >= 400 && status < 500 ? 'invalid_request' : 'internal_error'
}

/** What is checked before a body, in this order: Fastify's names of it, and where the request has it. */
const parts = [['querystring', 'query'], ['headers', 'headers']] as const

/**
 * The error to answer if a body is refused: a wrong query, header field or media type comes before that (docs/api.md,
 * "Errors"). Since the body is limited, read and validated first, the others are checked here, at the cost of refused
 * requests alone.
 * @returns the error itself, or another to be reported instead
 */
function firstFault (error: unknown, request: FastifyRequest): unknown {
  const { validationContext } = error as FastifyError
  const isTooLarge = error instanceof Problem && error.code === 'payload_too_large'
  const isWrongType = error instanceof Problem && error.code === 'unsupported_media_type'
  if (!isTooLarge && !isWrongType && !(error instanceof BodyError) && validationContext !== 'body') return error
  for (const [name, member] of parts) {
    const validate = request.getValidationFunction(name)
    if (validate?.(request[member]) === false) return { validation: validate.errors, validationContext: name }
  }
  return isTooLarge && request.routeOptions.schema?.body !== undefined && !isPlainJson(request)
    ? new Problem('unsupported_media_type')
    : error
}
