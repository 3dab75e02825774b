import { subscribe } from 'node:diagnostics_channel'
import type { Agent } from 'node:http'
import type { LookupFunction } from 'node:net'
import { diag } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { convertLegacyHttpOptions } from '@opentelemetry/otlp-exporter-base/node-http'
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import type { FastifyInstance } from 'fastify'
import { Lookups } from '../core/lookups.ts'
import { stderr } from '../core/stdio.ts'
import { traceRequests, traceScripts } from './requests.ts'

/**
 * How long a stopping service waits for the export of its last spans, in milliseconds: DRAIN_TIMEOUT is for requests.
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
    fastify.addHook('onClose', () => withinTimeout(provider.shutdown()).finally(() => lookups.close()))
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

/** An unavailable collector must not keep a service from stopping. */
async function withinTimeout (work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<void>(resolve => { timer = setTimeout(resolve, flushing) })
  await Promise.race([work.catch(() => {}), over])
  clearTimeout(timer)
}

let warned = -Infinity

/** At most one line a minute, because an unavailable collector causes an error per batch. */
function warn (message: string): void {
  if (performance.now() - warned < 60_000) return
  warned = performance.now()
  stderr.write(`tracing: ${message.slice(0, 300).replaceAll('\n', ' ')}\n`)
}
