import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { Problem } from '../../core/errors.ts'
import { problems } from '../../core/schemas/problem.ts'

const alive = Type.Object({ status: Type.Literal('ok') }, { description: 'The process is alive.' })
const ready = Type.Object({ status: Type.Literal('ready') }, { description: 'The service can take requests.' })

const readyQuery = Type.Object({
  full: Type.Optional(Type.Literal('ok', {
    description: 'Answer 200 although Redis is full, if that is all. For ' +
    'balancers: they must let done and cancel through, which make room.'
  })),
})

/**
 * For load balancers and orchestrators.
 * @param whyNotReady why the service can't serve now, or null; with true although Redis may be full
 */
export function healthRoutes (app: FastifyInstance, whyNotReady: (mayBeFull: boolean) => Promise<string | null>): void {
  app.get('/healthz', {
    exposeHeadRoute: true,
    schema: {
      operationId: 'healthz',
      summary: 'Check that the process is alive',
      tags: ['operations'],
      security: [],
      response: { 200: alive }
    },
  }, async () => ({ status: 'ok' }))

  app.get<{ Querystring: Static<typeof readyQuery> }>('/readyz', {
    exposeHeadRoute: true,
    schema: {
      operationId: 'readyz',
      summary: 'Check that the service can take requests',
      description: '200 if Redis answers, takes writes and evicts nothing, and the service is not draining; ' +
        'otherwise 503 with the reason. A full Redis takes no pass, so it is not ready; but it takes what makes ' +
        'room, like done and cancel, so balancers ask with ?full=ok.',
      tags: ['operations'],
      security: [],
      querystring: readyQuery,
      response: { 200: ready, 503: problems({ body: false })[503] },
    },
  }, async ({ query }) => {
    const reason = await whyNotReady(query.full === 'ok')
    if (reason !== null) throw new Problem('unavailable', { detail: reason })
    return { status: 'ready' }
  })
}
