import helmet from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'
import { show } from './guard.ts'
import { securityHeaders } from './headers.ts'
import { problemsView } from './views/problems.ts'

/** The page that each problem's `type` links to. @param isSecure the pages are served over https @param base BASE_URL's path */
export async function problemsPage (app: FastifyInstance, isSecure: boolean, base: string): Promise<void> {
  await app.register(helmet, securityHeaders(isSecure))
  const page = problemsView(base)
  app.get('/problems', { exposeHeadRoute: true, schema: { hide: true } }, async (request, reply) => show(reply, 200, page))
}
