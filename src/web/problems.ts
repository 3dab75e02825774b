import helmet from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'
import { fixed, sendFixed } from '../http/fixed.ts'
import { securityHeaders } from './headers.ts'
import { problemsView } from './views/problems.ts'

/** The page that each problem's `type` links to. @param isSecure the pages are served over https @param base BASE_URL's path */
export async function problemsPage (app: FastifyInstance, isSecure: boolean, base: string): Promise<void> {
  await app.register(helmet, securityHeaders(isSecure))
  const page = fixed(problemsView(base))
  app.get('/problems', { exposeHeadRoute: true, schema: { hide: true } }, async (request, reply) =>
    sendFixed(request, reply.type('text/html; charset=utf-8'), page))
}
