import type { Context, Span } from '@opentelemetry/api'
import type { FastifyRequest } from 'fastify'

/** The trace of a request under way. */
export class RequestTrace {
  readonly startTime = Date.now()
  /** The client's trace context; without a span if the client sent none. */
  readonly asked: Context
  /** The request's own span, once its trace is known. */
  span: Span | undefined
  #waiting: Array<(span: Span) => void> = []

  constructor (asked: Context) {
    this.asked = asked
  }

  begin (span: Span): void {
    this.span = span
    for (const tell of this.#waiting) tell(span)
    this.#waiting = []
  }

  /** Calls `tell` with the request's span: now, or as soon as there is one. */
  whenBegun (tell: (span: Span) => void): void {
    if (this.span === undefined) this.#waiting.push(tell)
    else tell(this.span)
  }
}

const byRequest = new WeakMap<FastifyRequest, RequestTrace>()

export function noteRequest (request: FastifyRequest, its: RequestTrace): void {
  byRequest.set(request, its)
}

export function traceOf (request: FastifyRequest): RequestTrace | undefined {
  return byRequest.get(request)
}
