import type { FastifyInstance } from 'fastify'
import { Type } from '@sinclair/typebox'
import { Problem } from '../../errors.ts'
import { problems } from '../../schemas/problem.ts'

const alive = Type.Object({ status: Type.Literal('ok') }, { description: 'The process answers.' })
const ready = Type.Object({ status: Type.Literal('ready') }, { description: 'Send requests here.' })

/** For balancers and orchestrators. @param whyNotReady what keeps the service from serving, or null */
export function healthRoutes (app: FastifyInstance, whyNotReady: () => Promise<string | null>): void {
  app.get('/healthz', {
    exposeHeadRoute: true,
    schema: { operationId: 'healthz', summary: 'Does the process answer?', tags: ['operations'], security: [], response: { 200: alive } },
  }, async () => ({ status: 'ok' }))

  app.get('/readyz', {
    exposeHeadRoute: true,
    schema: {
      operationId: 'readyz',
      summary: 'Should requests be sent here?',
      description: 'Redis answers, takes writes and keeps what it took, and the service is not draining; otherwise 503 with the reason.',
      tags: ['operations'],
      security: [],
      response: { 200: ready, 503: problems({ body: false })[503] },
    },
  }, async () => {
    const reason = await whyNotReady()
    if (reason !== null) throw new Problem('unavailable', { detail: reason, headers: { 'retry-after': '1' } })
    return { status: 'ready' }
  })
}
