import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** A span of OTLP's JSON (ids in hexadecimal), with its attributes by name and its service's name. */
export interface ExportedSpan {
  service: string
  name: string
  kind: number
  traceId: string
  spanId: string
  parentSpanId?: string
  attributes: Record<string, unknown>
  links: Array<{ traceId: string, spanId: string }>
  status: { code?: number }
  startTimeUnixNano: string
  endTimeUnixNano: string
}

export interface Collector { url: string, spans: ExportedSpan[] }

/** An OTLP/HTTP receiver, like a collector's. @param answers if left out, the receiver accepts everything and never answers */
export async function collector (t: Test, answers = true): Promise<Collector> {
  const spans: ExportedSpan[] = []
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    if (request.url !== '/v1/traces' || request.headers['content-type'] !== 'application/json') return response.writeHead(404).end()
    spans.push(...read(JSON.parse(Buffer.concat(parts).toString())))
    if (answers) response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans }
}

interface Attribute { key: string, value: Record<string, unknown> }

function read ({ resourceSpans }: any): ExportedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }: any) => {
    const service = byName(resource.attributes)['service.name']
    return scopeSpans.flatMap(({ spans }: any) => spans.map((span: any) => ({ links: [], ...span, service, attributes: byName(span.attributes) })))
  })
}

function byName (attributes: Attribute[] = []): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
}
