import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, tracingChannel } from 'node:diagnostics_channel'
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { FastifyRequest } from 'fastify'
import type { ScriptCall } from '../redis/script-calls.ts'
import { traceOf } from './request-trace.ts'
import type { RequestTrace } from './request-trace.ts'

const tracer = trace.getTracer('handoff')

/** The trace of the request whose handler runs. */
const current = new AsyncLocalStorage<RequestTrace | undefined>()

/** A span for each script that Redis runs for a request (semantic conventions: database client). The sweep's scripts get none. */
export function traceScripts (): void {
  tracingChannel<unknown, { request: FastifyRequest }>('fastify.request.handler').start.bindStore(current, ({ request }) => traceOf(request))
  subscribe('handoff.script', message => {
    const own = current.getStore()
    if (own === undefined) return
    const { script, answer } = message as ScriptCall
    const startTime = Date.now()
    const finished = (failed: boolean) => {
      const endTime = Date.now()
      own.whenBegun(parent => {
        const span = tracer.startSpan(`EVALSHA ${script}`, {
          kind: SpanKind.CLIENT,
          startTime,
          attributes: { 'db.system.name': 'redis', 'db.operation.name': 'EVALSHA', 'db.stored_procedure.name': script },
        }, trace.setSpan(ROOT_CONTEXT, parent))
        if (failed) span.setStatus({ code: SpanStatusCode.ERROR })
        span.end(endTime)
      })
    }
    answer.then(() => finished(false), () => finished(true))
  })
}
