import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { Pace } from '../core/pace.ts'

/** A text costs some milliseconds and needs no key, so at most one is made in this time, in milliseconds. */
const interval = 100

/** Prometheus scrapes this. It doesn't call Redis, so it answers during an outage of Redis too. */
export function metricsRoute (
  app: FastifyInstance, registry: { contentType: string, metrics (): Promise<string> }
): void {
  const pace = new Pace<string>(interval)
  let latest: Promise<unknown> = Promise.resolve()
  // One at a time, and all who ask meanwhile share the next one: its figures are of after they asked.
  const render = () => pace.run('', () => {
    const text = latest.then(() => registry.metrics())
    latest = text.catch(() => {})
    return text
  })
  app.get('/metrics', {
    schema: {
      operationId: 'metrics',
      summary: 'Read the metrics',
      description: 'In Prometheus’s text format, without ids or contents of handoffs.',
      tags: ['operations'],
      security: [],
      response: { 200: { description: 'All metric families.', content: { 'text/plain': { schema: Type.String() } } } },
    },
  }, async (request, reply) => {
    reply.header('content-type', registry.contentType)
    return render()
  })
}
