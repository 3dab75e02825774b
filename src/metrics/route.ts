import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'

/** What Prometheus reads. It asks Redis nothing, so it answers while that is away. */
export function metricsRoute (app: FastifyInstance, registry: Registry): void {
  app.get('/metrics', {
    schema: {
      operationId: 'metrics',
      summary: 'Figures for Prometheus',
      description: 'In Prometheus’s text format. No ids, names or contents of handoffs are in it.',
      tags: ['operations'],
      security: [],
      response: { 200: { description: 'All families.', content: { 'text/plain': { schema: Type.String() } } } },
    },
  }, async (request, reply) => {
    reply.header('content-type', registry.contentType)
    return registry.metrics()
  })
}
