import { subscribe } from 'node:diagnostics_channel'
import { diag } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import type { FastifyInstance } from 'fastify'
import { traceRequests } from './requests.ts'
import { traceScripts } from './scripts.ts'

/** How long a stopping service waits for its last spans to be taken, in milliseconds: DRAIN_TIMEOUT is for requests. */
const flushing = 2000

/** From now on each service that this process builds has spans, which go where OTEL_EXPORTER_OTLP_ENDPOINT says. */
export function startTracing (): void {
  diag.setLogger({ error: warn, warn, info () {}, debug () {}, verbose () {} })
  const provider = new NodeTracerProvider({
    // What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say comes first.
    resource: resourceFromAttributes({ 'service.name': 'handoff' }).merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  })
  // For its propagator; whose span it is goes by ways of our own, which cost less than its context manager.
  provider.register({ contextManager: null })
  traceScripts()
  subscribe('fastify.initialization', message => {
    const { fastify } = message as { fastify: FastifyInstance }
    traceRequests(fastify)
    // The server has closed by then, so there are no more to come.
    fastify.addHook('onClose', () => withinTimeout(provider.shutdown()))
  })
}

/** A collector that is away must not keep a service from stopping. */
async function withinTimeout (work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<void>(resolve => { timer = setTimeout(resolve, flushing) })
  await Promise.race([work.catch(() => {}), over])
  clearTimeout(timer)
}

let warned = -Infinity

/** At most a line a minute: a collector that is away is told of with every batch. */
function warn (message: string): void {
  if (performance.now() - warned < 60_000) return
  warned = performance.now()
  process.stderr.write(`tracing: ${message.slice(0, 300).replaceAll('\n', ' ')}\n`)
}
