import type { FastifyInstance } from 'fastify'
import { ownPath, show } from '../guard.ts'
import type { SignIn } from '../session.ts'
import { signInPage } from '../views/sign-in.ts'
import type { Site } from '../views/sign-in.ts'

const schema = { hide: true }

type Form = Record<string, unknown> | undefined

export function signInRoutes (app: FastifyInstance, site: Site, signIn: SignIn): void {
  const { base } = site
  app.get<{ Querystring: Record<string, unknown> }>('/sign-in', { schema }, async (request, reply) => {
    const { next, ended } = request.query
    return show(reply, 200, signInPage(site, ownPath(next), ended === undefined ? undefined : 'Your session has ended. Sign in to continue.'))
  })

  app.post<{ Body: Form }>('/sign-in', { schema }, async (request, reply) => {
    const { key, next } = request.body ?? {}
    const way = ownPath(next)
    // The same sentence for every fault: it must not tell a stranger what kind of key this is.
    if (typeof key !== 'string' || !await signIn.start(request, reply, key.trim())) {
      return show(reply, 401, signInPage(site, way, 'This key can’t be used here. Check it, or ask the operator of this service for an approver key.'))
    }
    return reply.redirect(base + way, 303)
  })

  app.post('/sign-out', { schema }, async (request, reply) => {
    await signIn.end(request, reply)
    return reply.redirect(`${base}/approvals/sign-in`, 303)
  })
}
