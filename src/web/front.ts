import helmet from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'
import type { Endpoint } from '../http/endpoints.ts'
import { fixed, oncePer, sendFixed } from '../http/fixed.ts'
import { securityHeaders } from './headers.ts'
import { frontView } from './views/front.ts'

export interface Front {
  endpoints: readonly Endpoint[]
  baseUrl: () => string
  /** BASE_URL's path. */
  base: string
}

/** `GET /`: introduces the service to newcomers. It doesn't call Redis, so an outage doesn't affect it. */
export async function frontPage (app: FastifyInstance, { endpoints, baseUrl, base }: Front): Promise<void> {
  await app.register(helmet, securityHeaders(baseUrl().startsWith('https:')))
  const page = oncePer(baseUrl, url => fixed(frontView(endpoints, url, base)))
  app.get('/', { exposeHeadRoute: true, schema: { hide: true } }, async (request, reply) =>
    sendFixed(request, reply.header('cache-control', 'max-age=300').type('text/html; charset=utf-8'), page()))
}
