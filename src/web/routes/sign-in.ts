import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../../errors.ts'
import { ownPath, show } from '../guard.ts'
import type { SignIn } from '../session.ts'
import { signInPage } from '../views/sign-in.ts'
import type { Site } from '../views/sign-in.ts'

const schema = { hide: true }
/** A key and a path. Nobody knows yet who sends them. */
const form = { schema, bodyLimit: 16 * 1024 }

type Form = Record<string, unknown> | undefined

/** The same sentence for every fault: it must not tell a stranger what kind of key this is. */
const wrongKey = 'This key can’t be used here. Check it, or ask the operator of this service for an approver key.'

export function signInRoutes (app: FastifyInstance, site: Site, signIn: SignIn): void {
  const { base } = site
  app.get<{ Querystring: Record<string, unknown> }>('/sign-in', { schema }, async (request, reply) => {
    const { next, ended } = request.query
    return show(reply, 200, signInPage(site, ownPath(next), ended === undefined ? undefined : 'Your session has ended. Sign in to continue.'))
  })

  app.post<{ Body: Form }>('/sign-in', {
    ...form,
    // What is too long for this form isn't a key either.
    errorHandler (error: FastifyError | Problem, request: FastifyRequest, reply: FastifyReply) {
      if (!(error instanceof Problem) || error.code !== 'payload_too_large') throw error
      return show(reply, 401, signInPage(site, ownPath(undefined), wrongKey))
    },
  }, async (request, reply) => {
    const { key, next } = request.body ?? {}
    const way = ownPath(next)
    if (typeof key !== 'string' || !await signIn.start(request, reply, key.trim())) {
      return show(reply, 401, signInPage(site, way, wrongKey))
    }
    return reply.redirect(base + way, 303)
  })

  app.post('/sign-out', form, async (request, reply) => {
    await signIn.end(request, reply)
    return reply.redirect(`${base}/approvals/sign-in`, 303)
  })
}
