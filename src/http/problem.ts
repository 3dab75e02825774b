import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { Problem, errorTable, invalid, isRetryable } from '../errors.ts'
import type { ErrorCode, Fault } from '../errors.ts'
import { invalidToken } from '../auth/key-grant.ts'
import { BodyError, pointerTo } from '../handoff/json.ts'
import { problemType } from '../schemas/problem.ts'
import { Unavailable } from '../redis/lanes.ts'
import { requestFields } from './logs.ts'
import type { FaultLog } from './logs.ts'

/** What the framework's own errors are here. See readStatus for those that are not listed. */
const frameworkCodes: Record<string, ErrorCode> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'payload_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'invalid_request',
  // An address that can't be decoded is one where nothing is.
  FST_ERR_BAD_URL: 'not_found',
  FST_ERR_MAX_PARAM_LENGTH: 'uri_too_long',
}

/** No error code where no credential was sent. */
const challenges: Record<string, string> = {
  FST_BEARER_AUTH_MISSING_AUTHORIZATION_HEADER: 'Bearer',
  FST_BEARER_AUTH_INVALID_AUTHORIZATION_HEADER: invalidToken,
}

/** The problem document's text. Its type is relative to the host (RFC 9457, 3.1.1), so BASE_URL's path is part of it. */
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

/** Answers any error, expected or not, as a problem. What is a fault of ours is logged; it never shows. @param refused told each code @param base BASE_URL's path */
export function answerErrors (log: FaultLog, refused: (code: ErrorCode) => void, base: string) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const problem = asProblem(error)
    refused(problem.code)
    if (problem.code === 'internal_error') log.error({ err: error, ...requestFields(request) }, 'internal error')
    answerProblem(problem, request, reply, base)
  }
}

function answerProblem (problem: Problem, request: FastifyRequest, reply: FastifyReply, base: string): void {
  reply
    .code(errorTable[problem.code].status)
    .headers({ 'x-request-id': request.id, 'cache-control': 'no-store', ...problem.more.headers })
    .header('content-type', problemType)
    .send(problemText(problem, request.id, base))
}

/** What any error is answered. */
export function asProblem (error: unknown): Problem {
  if (error instanceof Problem) return error
  if (error instanceof BodyError) return invalid({ pointer: error.pointer, message: error.message })
  if (error instanceof Unavailable) return new Problem('unavailable', { headers: { 'retry-after': '1' } })
  const { code, statusCode, validation, validationContext } = error as FastifyError
  if (validation !== undefined) return invalid(...validation.map(fault => readFault(fault, validationContext)))
  const challenge = challenges[code]
  if (challenge !== undefined) return new Problem('unauthorized', { headers: { 'www-authenticate': challenge } })
  return new Problem(frameworkCodes[code] ?? readStatus(statusCode))
}

/** The rest: an upload that broke off, a file of /docs asked for in a way that it isn't there. What has no 4xx is a fault of ours. */
function readStatus (status: number | undefined): ErrorCode {
  if (status === 403 || status === 404) return 'not_found'
  return status !== undefined && status >= 400 && status < 500 ? 'invalid_request' : 'internal_error'
}

/** An Ajv error in an agent's words: the member it is about, and what that takes. */
export function readFault (fault: NonNullable<FastifyError['validation']>[number], context: string | undefined): Fault {
  const { additionalProperty, missingProperty } = fault.params as { additionalProperty?: string, missingProperty?: string }
  const member = additionalProperty ?? missingProperty
  const place = context === undefined || context === 'body' ? '' : `${context}: `
  const pointer = member === undefined ? fault.instancePath : fault.instancePath + pointerTo(member)
  if (additionalProperty !== undefined) return { pointer, message: `${place}unknown` }
  if (missingProperty !== undefined) return { pointer, message: `${place}required` }
  return { pointer, message: place + (fault.message ?? 'invalid') }
}
