import type { FastifyInstance } from 'fastify'
import { Type } from '@sinclair/typebox'
import { Problem } from '../../errors.ts'
import { problems } from '../../schemas/problem.ts'

const alive = Type.Object({ status: Type.Literal('ok') }, { description: 'The process is alive.' })
const ready = Type.Object({ status: Type.Literal('ready') }, { description: 'The service can take requests.' })

/** For load balancers and orchestrators. @param whyNotReady why the service can't serve now, or null */
export function healthRoutes (app: FastifyInstance, whyNotReady: () => Promise<string | null>): void {
  app.get('/healthz', {
    exposeHeadRoute: true,
    schema: { operationId: 'healthz', summary: 'Check that the process is alive', tags: ['operations'], security: [], response: { 200: alive } },
  }, async () => ({ status: 'ok' }))

  app.get('/readyz', {
    exposeHeadRoute: true,
    schema: {
      operationId: 'readyz',
      summary: 'Check that the service can take requests',
      description: '200 if Redis answers, takes writes and evicts nothing, and the service is not draining; otherwise 503 with the reason. A full Redis refuses pass and still takes what makes room, like done and cancel, so it is ready.',
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
