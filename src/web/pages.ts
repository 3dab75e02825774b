import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { parse as parseForm } from 'node:querystring'
import { fileURLToPath } from 'node:url'
import cookie from '@fastify/cookie'
import helmet from '@fastify/helmet'
import files from '@fastify/static'
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify'
import type { ApiKeys, Credentials } from '../auth/keys.ts'
import { Problem } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import type { Caller } from '../core/model.ts'
import type { ApprovalService } from '../handoffs/approvals.ts'
import type { GuessesOf } from '../http/auth.ts'
import type { Bodies } from '../http/body.ts'
import { belowBase } from '../http/base-url.ts'
import { authoriseAgain } from '../http/connections.ts'
import { fixed, keepFilesInMemory, oncePer, sendFixed } from '../http/fixed-answers.ts'
import type { DecisionLog, FaultLog } from '../http/observe.ts'
import type { ApiEndpoint } from '../http/openapi.ts'
import type { Sessions } from '../store/sessions.ts'
import { decisionRoutes, handoffRoutes, listRoutes } from './approvals.ts'
import { showErrors } from './error-pages.ts'
import { SignIn, requireSession, signInRoutes } from './session.ts'
import type { Session } from './session.ts'
import { frontView } from './views/layout.ts'
import { problemsView } from './views/problem.ts'

export interface Pages {
  approvals: ApprovalService
  keys: ApiKeys
  credentials: Credentials
  guessesOf: GuessesOf
  sessions: Sessions
  bodies: Bodies
  baseUrl: () => string
  /** Refuses requests when the process is overloaded. */
  shed: onRequestHookHandler
  log: FaultLog & DecisionLog
  /** Gets the code of each problem that a page shows. */
  refused: (code: ErrorCode) => void
}

// The compiler copies no assets. They stay in src/web/assets, which is ../../src/web/assets from src/web and from
// dist/web.
const assets = fileURLToPath(new URL('../../src/web/assets/', import.meta.url))
const htmx = dirname(createRequire(import.meta.url).resolve('htmx.org/dist/htmx.min.js'))
const served = new Set(['/page.css', '/page.js', '/htmx.min.js'])

/** The pages on which people decide: everything below /approvals. */
export async function approvalPages (
  app: FastifyInstance,
  { approvals, keys, credentials, guessesOf, sessions, bodies, baseUrl, shed, log, refused }: Pages
): Promise<void> {
  const isSecure = () => baseUrl().startsWith('https:')
  const signIn = new SignIn({ sessions, keys, credentials, guessesOf, isSecure, base: app.basePath })
  app.decorateRequest('caller', null as unknown as Caller)
  app.decorateRequest('session', null as unknown as Session)
  app.decorateRequest('grant', function (this: FastifyRequest) { return signIn.grant(this.session) })
  app.setErrorHandler(showErrors(baseUrl, log, refused))
  app.setNotFoundHandler(() => { throw new Problem('not_found') })
  // First, so that answers of the later hooks have its headers too.
  await app.register(helmet, securityHeaders(isSecure()))
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store').header('x-request-id', request.id)
    refuseForeignForms(request, baseUrl())
  })
  app.addHook('onRequest', shed)
  await app.register(cookie)
  keepFilesInMemory(app)
  await app.register(files, {
    root: [assets, htmx],
    prefix: '/assets/',
    decorateReply: false,
    schemaHide: true,
    index: false,
    allowedPath: path => served.has(path),
    setHeaders: reply => { reply.setHeader('cache-control', 'no-cache') },
  })
  app.removeAllContentTypeParsers()
  // Each route has its own limit.
  app.addContentTypeParser('application/x-www-form-urlencoded', (request, payload, done) => {
    bodies.read(request, 0, (error, bytes) => error === null ? done(null, parseForm(String(bytes))) : done(error))
  })
  signInRoutes(app, baseUrl, signIn)
  await app.register(async own => {
    own.addHook('onRequest', requireSession(baseUrl, signIn))
    own.addHook('preValidation', authoriseAgain)
    listRoutes(own, approvals)
    handoffRoutes(own, approvals)
    decisionRoutes(own, approvals, log, refused)
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
export function refuseForeignForms (request: FastifyRequest, baseUrl: string): void {
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

export interface Front {
  endpoints: readonly ApiEndpoint[]
  baseUrl: () => string
}

/** `GET /`: introduces the service to newcomers. It doesn't call Redis, so an outage doesn't affect it. */
export async function frontPage (app: FastifyInstance, { endpoints, baseUrl }: Front): Promise<void> {
  await app.register(helmet, securityHeaders(baseUrl().startsWith('https:')))
  const page = oncePer(baseUrl, url => fixed(belowBase(app, frontView(endpoints, url))))
  app.get('/', { exposeHeadRoute: true, schema: { hide: true } }, async (request, reply) =>
    sendFixed(request, reply.header('cache-control', 'max-age=300').type('text/html; charset=utf-8'), page()))
}

/**
 * The page that each problem's `type` links to.
 * @param isSecure the pages are served over https
 */
export async function problemsPage (app: FastifyInstance, isSecure: boolean): Promise<void> {
  await app.register(helmet, securityHeaders(isSecure))
  const page = fixed(belowBase(app, problemsView()))
  app.get('/problems', { exposeHeadRoute: true, schema: { hide: true } }, async (request, reply) =>
    sendFixed(request, reply.type('text/html; charset=utf-8'), page))
}
