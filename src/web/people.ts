import { parse as parseForm } from 'node:querystring'
import cookie from '@fastify/cookie'
import helmet from '@fastify/helmet'
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import type { Grant } from '../auth/grant.ts'
import { requireScope } from '../auth/scopes.ts'
import { Problem } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import type { Caller } from '../core/model.ts'
import type { Bodies } from '../http/body.ts'
import { authoriseAgain } from '../http/connections.ts'
import type { DecisionLog, FaultLog } from '../http/observe.ts'
import type { Operation } from '../operations/operation.ts'
import type { Area } from './area.ts'
import { showErrors } from './error-pages.ts'
import { SignIn, requireSession, signInWithForm } from './session.ts'
import type { SignInOptions } from './session.ts'

/** The services of all pages for people. */
export interface People extends SignInOptions {
  bodies: Bodies
  /** Refuses requests when the process is overloaded. */
  shed: onRequestHookHandler
  /** Counts the requests of an instance against the limits of the key that signed in, as the API counts its own. */
  limit (app: FastifyInstance): void
  log: FaultLog & DecisionLog & { warn (details: object, message: string): void }
  /** The API's operations: a form carries out one of them. */
  operations: readonly Operation[]
  /** Gets the code of each problem that a page shows. */
  refused: (code: ErrorCode) => void
}

/** Prepares an instance for the pages of an area: their headers, errors, forms and sessions. */
export async function servePeople (
  app: FastifyInstance, area: Area,
  people: People
): Promise<SignIn> {
  const { bodies, baseUrl, shed, log, refused } = people
  const signIn = new SignIn(people, app.basePath)
  app.decorateRequest('caller', null as unknown as Caller)
  app.decorateRequest('granted', null as unknown as Grant)
  app.decorateRequest('isSentAgain', false)
  app.decorateRequest('grant', function (this: FastifyRequest) { return this.granted.for(area.scope) })
  app.setErrorHandler(showErrors(area, signIn, log, refused))
  app.setNotFoundHandler(() => { throw new Problem('not_found') })
  // First, so that answers of the later hooks have its headers too.
  await app.register(helmet, securityHeaders(baseUrl().startsWith('https:')))
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store').header('x-request-id', request.id)
    refuseForeignForms(request, baseUrl())
  })
  app.addHook('onRequest', shed)
  await app.register(cookie)
  app.removeAllContentTypeParsers()
  // Each route has its own limit.
  app.addContentTypeParser('application/x-www-form-urlencoded', (request, payload, done) => {
    bodies.read(request, 0, (error, bytes) =>
      // All of them: by itself it drops what comes behind a thousand fields, as a long table of an answer has.
      error === null ? done(null, parseForm(String(bytes), '&', '=', { maxKeys: 0 })) : done(error))
  })
  return signIn
}

/**
 * Lets in only people who are signed in with a key that has the area's scope, and the route's if it names one.
 * @param app where the routes are: an instance within the one that `servePeople` has prepared
 */
export function letPeopleIn (
  app: FastifyInstance, area: Area, { limit }: Pick<People, 'limit'>, signIn: SignIn
): void {
  app.addHook('onRequest', requireSession(signIn, area))
  limit(app)
  app.addHook('preValidation', signInWithForm(signIn, area))
  app.addHook('preValidation', authoriseAgain)
  app.addHook('preValidation', (request: FastifyRequest, reply: FastifyReply, done: () => void) => {
    requireScope(request.caller, area.scope)
    requireScope(request.caller, request.routeOptions.config.scope)
    done()
  })
}

/** helmet's options for every page of the service. @param isSecure the pages are served over https */
export function securityHeaders (isSecure: boolean) {
  return {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'"],
        imgSrc: ["'self'", 'data:'],
        connectSrc: ["'self'"],
        formAction: ["'self'"],
        frameAncestors: ["'none'"],
        baseUri: ["'none'"],
      },
    },
    frameguard: { action: 'deny' as const },
    strictTransportSecurity: isSecure,
    // Not no-referrer: with that, browsers send `Origin: null` to us too, and our own forms look like a stranger's.
    referrerPolicy: { policy: 'same-origin' as const },
  }
}

/**
 * Refuses a form that another site sent (CSRF). The browser states the origin in these headers, and a page can't change
 * them. Browsers send Sec-Fetch-Site only to https and localhost, but Origin with every POST.
 * @throws {Problem} cross_origin
 */
function refuseForeignForms (request: FastifyRequest, baseUrl: string): void {
  if (request.method !== 'POST') return
  const { 'sec-fetch-site': site, origin, host } = request.headers
  if (site !== undefined ? site === 'same-origin' || site === 'none' : isOwn(origin, host, baseUrl)) return
  throw new Problem('cross_origin')
}

/**
 * Compares hosts, not schemes: a proxy in front may terminate TLS, so the scheme here may differ from the browser's.
 */
function isOwn (origin: string | undefined, host: string | undefined, baseUrl: string): boolean {
  if (origin === undefined || !URL.canParse(origin)) return false
  const from = new URL(origin)
  return from.origin === new URL(baseUrl).origin || from.host === host
}
