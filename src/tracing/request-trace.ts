import type { Context, Span } from '@opentelemetry/api'
import type { FastifyRequest } from 'fastify'

/** What is known of a request's trace while it is answered. */
export class RequestTrace {
  readonly startTime = Date.now()
  /** The trace that its client asked in; without a span where it said none. */
  readonly asked: Context
  /** Its own span, once it is known whose trace it is of. */
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
