import { subscribe, tracingChannel } from 'node:diagnostics_channel'
import type { Agent } from 'node:http'
import type { LookupFunction } from 'node:net'
import { AsyncLocalStorage } from 'node:async_hooks'
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, diag, propagation, trace } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { convertLegacyHttpOptions } from '@opentelemetry/otlp-exporter-base/node-http'
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Context, Span } from '@opentelemetry/api'
import { Lookups } from '../core/lookups.ts'
import { within } from '../core/round.ts'
import { stderr } from '../core/stdio.ts'
import type { ScriptCallMessage } from '../redis/call.ts'

/**
 * How long a stopping service waits for the export of its last spans, in milliseconds: DRAIN_TIMEOUT is for requests.
 * An unavailable collector must not keep it from stopping.
 */
const flushing = 2000

const lookups = new Lookups({ atOnce: 1 })

/** From now on every service in this process makes spans, and exports them to OTEL_EXPORTER_OTLP_ENDPOINT. */
export function startTracing (): void {
  diag.setLogger({ error: warn, warn, info () {}, debug () {}, verbose () {} })
  const provider = new NodeTracerProvider({
    // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
    resource: resourceFromAttributes({ 'service.name': 'handoff' }).merge(
      detectResources({ detectors: [envDetector] })
    ),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ httpAgentOptions: agentFor }))],
  })
  // Only for the propagator: we track the current span ourselves, which costs less than the SDK's context manager.
  provider.register({ contextManager: null })
  traceScripts()
  subscribe('fastify.initialization', message => {
    const { fastify } = message as { fastify: FastifyInstance }
    traceRequests(fastify)
    // The server has closed by then, so there are no further spans.
    fastify.addHook('onClose', async () => {
      await within(flushing, provider.shutdown().catch(() => {}))
      lookups.close()
    })
  })
}

/**
 * The exporter's own agent for the environment's settings. But a collector whose name server is silent must not hold up
 * looking up Redis.
 */
async function agentFor (protocol: string): Promise<Agent> {
  const agent = await convertLegacyHttpOptions({}, 'TRACES', 'v1/traces', {}).agentFactory(protocol) as Agent & {
    options: { lookup?: LookupFunction }
  }
  agent.options.lookup = lookups.functionFor('collector')
  return agent
}

let warned = -Infinity

/** At most one line a minute, because an unavailable collector causes an error per batch. */
function warn (message: string): void {
  if (performance.now() - warned < 60_000) return
  warned = performance.now()
  stderr.write(`tracing: ${message.slice(0, 300).replaceAll('\n', ' ')}\n`)
}

/** The trace of a request under way. */
class RequestTrace {
  readonly startTime = Date.now()
  /** The client's trace context; without a span if the client sent none. */
  readonly parent: Context
  /** The request's own span, once its trace is known. */
  span: Span | undefined
  #waiting: Array<(span: Span) => void> = []

  constructor (parent: Context) {
    this.parent = parent
  }

  begin (span: Span): void {
    this.span = span
    for (const listener of this.#waiting) listener(span)
    this.#waiting = []
  }

  /** Calls `listener` with the request's span: now, or as soon as there is one. */
  whenBegun (listener: (span: Span) => void): void {
    if (this.span === undefined) this.#waiting.push(listener)
    else listener(this.span)
  }
}

const byRequest = new WeakMap<FastifyRequest, RequestTrace>()

function noteRequest (request: FastifyRequest, its: RequestTrace): void {
  byRequest.set(request, its)
}

function traceOf (request: FastifyRequest): RequestTrace | undefined {
  return byRequest.get(request)
}

const tracer = trace.getTracer('handoff')

/** Routes without spans: balancers and Prometheus request them all the time. */
const unseen = new Set(['/healthz', '/readyz', '/metrics'])

/**
 * A span for each request (semantic conventions: HTTP server). A pass stores its span's context with the handoff,
 * instead of its client's; and a catch is a child of that span, so that both agents' work is one trace. That is the
 * creation context of the messaging conventions, which may be the parent of a consumer of a single message; the
 * catcher's own trace is linked.
 */
function traceRequests (app: FastifyInstance): void {
  // The first hook, so that the span covers the others.
  app.addHook('onRequest', (request, reply, done) => {
    if (unseen.has(request.routeOptions.url ?? '')) return done()
    const own = new RequestTrace(propagation.extract(ROOT_CONTEXT, request.headers))
    noteRequest(request, own)
    // A catch's trace is known only from its handoff.
    if (request.routeOptions.config.resumesTrace !== true) {
      own.begin(startSpan(request, own, own.parent))
      carry(own, request.headers)
    }
    done()
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    const own = traceOf(request)
    const traceparent = reply.getHeader('traceparent')
    if (own !== undefined && own.span === undefined && traceparent !== undefined) {
      own.begin(startSpan(request, own, propagation.extract(ROOT_CONTEXT, { traceparent }), own.parent))
      const headers: Record<string, string> = {}
      carry(own, headers)
      reply.header('traceparent', headers.traceparent)
    }
    done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    const own = traceOf(request)
    if (own !== undefined) end(request, reply, own)
    done()
  })
}

/** @param linked another trace that it belongs to */
function startSpan (request: FastifyRequest, { startTime }: RequestTrace, parent: Context, linked?: Context): Span {
  const { method, url, protocol, routeOptions } = request
  const context = linked === undefined ? undefined : trace.getSpanContext(linked)
  const span = tracer.startSpan(routeOptions.url === undefined ? method : `${method} ${routeOptions.url}`, {
    kind: SpanKind.SERVER,
    startTime,
    // Never the query.
    attributes: { 'http.request.method': method, 'url.path': url.replace(/[?#].*$/, ''), 'url.scheme': protocol },
    ...context !== undefined && { links: [{ context }] },
  }, parent)
  if (routeOptions.url !== undefined) span.setAttribute('http.route', routeOptions.url)
  return span
}

/** Writes the request's span into the header fields, as the parent of the next span. */
function carry ({ span }: RequestTrace, headers: Record<string, unknown>): void {
  // A malformed one must not stay.
  delete headers.traceparent
  propagation.inject(trace.setSpan(ROOT_CONTEXT, span!), headers)
}

function end (request: FastifyRequest, reply: FastifyReply, own: RequestTrace): void {
  // A catch that got no handoff belongs only to its client's trace.
  if (own.span === undefined) own.begin(startSpan(request, own, own.parent))
  const { statusCode } = reply
  own.span!.setAttribute('http.response.status_code', statusCode)
  if (statusCode >= 500) {
    own.span!.setAttribute('error.type', String(statusCode)).setStatus({ code: SpanStatusCode.ERROR })
  }
  own.span!.end()
}

/** The trace of the request whose handler runs. */
const current = new AsyncLocalStorage<RequestTrace | undefined>()

/**
 * A span for each script that Redis runs for a request (semantic conventions: database client). The sweep's scripts get
 * none.
 */
function traceScripts (): void {
  tracingChannel<unknown, { request: FastifyRequest }>('fastify.request.handler').start.bindStore(
    current, ({ request }) => traceOf(request)
  )
  subscribe('handoff.script', message => {
    const own = current.getStore()
    if (own === undefined) return
    const { script, answer } = message as ScriptCallMessage
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
