import type { FastifyError, FastifyRequest } from 'fastify'
import { Problem } from '../errors.ts'
import { BodyError } from '../handoff/json.ts'
import { isPlainJson } from './body.ts'

/** What is checked before a body, in this order: Fastify's names of it, and where the request has it. */
const parts = [['querystring', 'query'], ['headers', 'headers']] as const

/**
 * What comes first if a body is refused: a wrong query, header field or media type is told before that (docs/api.md, "Errors"). The body is
 * limited, read and validated first. So the others are looked at here, which costs only the requests that are refused.
 * @returns the error itself, or another that is to be told instead
 */
export function firstFault (error: unknown, request: FastifyRequest): unknown {
  const { validationContext } = error as FastifyError
  const isTooLarge = error instanceof Problem && error.code === 'payload_too_large'
  const isWrongType = error instanceof Problem && error.code === 'unsupported_media_type'
  if (!isTooLarge && !isWrongType && !(error instanceof BodyError) && validationContext !== 'body') return error
  for (const [name, member] of parts) {
    const validate = request.getValidationFunction(name)
    if (validate?.(request[member]) === false) return { validation: validate.errors, validationContext: name }
  }
  return isTooLarge && request.routeOptions.schema?.body !== undefined && !isPlainJson(request) ? new Problem('unsupported_media_type') : error
}
