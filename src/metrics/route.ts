import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'

/** Prometheus scrapes this. It doesn't call Redis, so it answers during an outage of Redis too. */
export function metricsRoute (app: FastifyInstance, registry: Registry): void {
  app.get('/metrics', {
    schema: {
      operationId: 'metrics',
      summary: 'Read the metrics',
      description: 'In Prometheus’s text format, without ids, names or contents of handoffs.',
      tags: ['operations'],
      security: [],
      response: { 200: { description: 'All metric families.', content: { 'text/plain': { schema: Type.String() } } } },
    },
  }, async (request, reply) => {
    reply.header('content-type', registry.contentType)
    return registry.metrics()
  })
}
