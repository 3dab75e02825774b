import { errorTable } from '../core/errors.ts'
import type { Fault, Problem } from '../core/errors.ts'
import { asProblem } from '../http/problems.ts'

/** The errors of A2A: their codes in JSON-RPC, and what they are in HTTP (the specification, 5.4). */
const a2aErrors = {
  JSONParse: { code: -32700, status: 400, grpc: 'INVALID_ARGUMENT', message: 'Invalid JSON payload' },
  InvalidRequest: { code: -32600, status: 400, grpc: 'INVALID_ARGUMENT', message: 'Request payload validation error' },
  MethodNotFound: { code: -32601, status: 404, grpc: 'NOT_FOUND', message: 'Method not found' },
  InvalidParams: { code: -32602, status: 400, grpc: 'INVALID_ARGUMENT', message: 'Invalid parameters' },
  Internal: { code: -32603, status: 500, grpc: 'INTERNAL', message: 'Internal error' },
  TaskNotFound: { code: -32001, status: 404, grpc: 'NOT_FOUND', message: 'Task not found' },
  TaskNotCancelable: {
    code: -32002, status: 400, grpc: 'FAILED_PRECONDITION', message: 'The task has ended, so it can’t be cancelled'
  },
  PushNotificationNotSupported: {
    code: -32003, status: 400, grpc: 'FAILED_PRECONDITION', message: 'This agent sends no push notifications'
  },
  UnsupportedOperation: {
    code: -32004, status: 400, grpc: 'FAILED_PRECONDITION', message: 'This operation is not supported'
  },
  ContentTypeNotSupported: {
    code: -32005, status: 400, grpc: 'INVALID_ARGUMENT', message: 'This content type is not supported'
  },
  VersionNotSupported: {
    code: -32009, status: 400, grpc: 'FAILED_PRECONDITION', message: 'This agent speaks A2A 1.0: send A2A-Version: 1.0'
  },
} as const
export type A2aCode = keyof typeof a2aErrors

/** An expected error of a call. */
export class A2aError extends Error {
  readonly code: A2aCode
  readonly faults: readonly Fault[]
  /** What keeps its own status and header fields. */
  readonly problem: Problem | undefined

  constructor (
    code: A2aCode, message: string = a2aErrors[code].message, faults: readonly Fault[] = [], problem?: Problem
  ) {
    const limit = Error.stackTraceLimit
    Error.stackTraceLimit = 0
    super(message)
    Error.stackTraceLimit = limit
    this.code = code
    this.faults = faults
    this.problem = problem
  }

  /** Of the answer in HTTP+JSON. */
  get status (): number {
    return this.problem === undefined ? a2aErrors[this.code].status : errorTable[this.problem.code].status
  }
}

/** @param pointer into the parameters */
export function invalidParams (pointer: string, message: string): A2aError {
  return new A2aError('InvalidParams', `Invalid parameters: ${pointer} ${message}`, [{ pointer, message }])
}

/** The refusals of operations that are errors of A2A. Where there are others, the caller says so before. */
const asErrors: Partial<Record<Problem['code'], A2aCode>> = {
  not_found: 'TaskNotFound',
  not_the_passer: 'TaskNotFound',
  not_asked: 'UnsupportedOperation',
  already_answered: 'UnsupportedOperation',
  withdrawn: 'UnsupportedOperation',
  expired: 'UnsupportedOperation',
  content_changed: 'UnsupportedOperation',
}

/** A request here has no Idempotency-Key: by its message a task is known again. */
const outcomeUnknown = 'Nothing happened, or the outcome is unknown; send the request again as it was.'

/** What is wrong with the member `parent`. */
const ofParent: ReadonlyArray<Problem['code']> = ['unknown_parent', 'hop_limit', 'loop_detected']

/** How a call's error is answered: all but those of keys, which every address of the service answers alike. */
export function asA2aError (error: unknown): A2aError {
  if (error instanceof A2aError) return error
  const problem = asProblem(error)
  const { status } = errorTable[problem.code]
  const usual = problem.code === 'unavailable' ? outcomeUnknown : errorTable[problem.code].detail
  const detail = problem.more.detail ?? usual
  const faults = ofParent.includes(problem.code)
    ? [{ pointer: '/parent', message: detail }]
    : (problem.more.members?.errors ?? []) as Fault[]
  const code = asErrors[problem.code]
  if (code !== undefined) return new A2aError(code, detail)
  if (status === 413 || status === 429 || status === 503) return new A2aError('Internal', detail, [], problem)
  if (status >= 500) return new A2aError('Internal')
  const [first] = faults
  return new A2aError(
    'InvalidParams', first === undefined ? detail : `Invalid parameters: ${first.pointer} ${first.message}`, faults
  )
}

/** Is it certain that nothing came of the call? */
export function isRefusal (error: unknown): boolean {
  const { status } = error instanceof A2aError ? error : errorTable[asProblem(error).code]
  return status < 500
}

/** In google.rpc's forms. */
function detailsOf ({ code, faults, status }: A2aError): object[] {
  const own = code.replace(/(?<=[a-z])(?=[A-Z])/g, '_').replace('JSONParse', 'JSON_PARSE').toUpperCase()
  const reason = grpcNames[status] ?? own
  return [
    { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'a2a-protocol.org' },
    ...faults.length === 0
      ? []
      : [{
          '@type': 'type.googleapis.com/google.rpc.BadRequest',
          fieldViolations: faults.map(({ pointer, message }) => ({ field: pointer, description: message }))
        }]
  ]
}

/** The error of a JSON-RPC answer. */
export function rpcError (error: A2aError): string {
  return JSON.stringify({ code: a2aErrors[error.code].code, message: error.message, data: detailsOf(error) })
}

const grpcNames: Record<number, string> = { 413: 'RESOURCE_EXHAUSTED', 429: 'RESOURCE_EXHAUSTED', 503: 'UNAVAILABLE' }

/** The body of an HTTP answer. */
export function statusError (error: A2aError): string {
  const { status, message } = error
  const grpc = grpcNames[status] ?? a2aErrors[error.code].grpc
  return JSON.stringify({ error: { code: status, status: grpc, message, details: detailsOf(error) } })
}
