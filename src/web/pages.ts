import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse as parseForm } from 'node:querystring'
import cookie from '@fastify/cookie'
import helmet from '@fastify/helmet'
import files from '@fastify/static'
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify'
import { Problem } from '../errors.ts'
import type { ErrorCode } from '../errors.ts'
import type { ApprovalService } from '../handoff/approvals.ts'
import type { Caller } from '../model.ts'
import type { Credentials } from '../auth/credentials.ts'
import type { Bodies } from '../http/bodies.ts'
import type { GuessesOf } from '../http/guesses.ts'
import { keepFilesInMemory } from '../http/files.ts'
import type { DecisionLog, FaultLog } from '../http/logs.ts'
import { authoriseAgain } from '../http/slow-bodies.ts'
import type { ApiKeys } from '../auth/api-keys.ts'
import type { Sessions } from '../store/sessions.ts'
import { requireSession } from './guard.ts'
import { securityHeaders } from './headers.ts'
import { refuseForeignForms } from './origin.ts'
import { decisionRoutes } from './routes/decide.ts'
import { listRoutes } from './routes/list.ts'
import { handoffRoutes } from './routes/one.ts'
import { signInRoutes } from './routes/sign-in.ts'
import { SignIn } from './session.ts'
import type { Session } from './session.ts'
import { showErrors } from './error-pages.ts'

export interface Pages {
  approvals: ApprovalService
  keys: ApiKeys
  credentials: Credentials
  guessesOf: GuessesOf
  sessions: Sessions
  bodies: Bodies
  baseUrl: () => string
  /** BASE_URL's path: every link on a page begins with it. */
  base: string
  /** Refuses requests when the process is overloaded. */
  shed: onRequestHookHandler
  log: FaultLog & DecisionLog
  /** Gets the code of each problem that a page shows. */
  refused: (code: ErrorCode) => void
}

// The compiler copies no assets. They stay in src/web/assets, which is ../../src/web/assets from src/web and from dist/web.
const assets = fileURLToPath(new URL('../../src/web/assets/', import.meta.url))
const htmx = dirname(createRequire(import.meta.url).resolve('htmx.org/dist/htmx.min.js'))
const served = new Set(['/page.css', '/page.js', '/htmx.min.js'])

/** The pages on which people decide: everything below /approvals. */
export async function approvalPages (app: FastifyInstance, { approvals, keys, credentials, guessesOf, sessions, bodies, baseUrl, base, shed, log, refused }: Pages): Promise<void> {
  const site = { base, baseUrl }
  const isSecure = () => baseUrl().startsWith('https:')
  const signIn = new SignIn({ sessions, keys, credentials, guessesOf, isSecure, base })
  app.decorateRequest('caller', null as unknown as Caller)
  app.decorateRequest('session', null as unknown as Session)
  app.decorateRequest('grant', function (this: FastifyRequest) { return signIn.grant(this.session) })
  app.setErrorHandler(showErrors(site, log, refused))
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
  signInRoutes(app, site, signIn)
  await app.register(async own => {
    own.addHook('onRequest', requireSession(site, signIn))
    own.addHook('preValidation', authoriseAgain)
    listRoutes(own, base, approvals)
    handoffRoutes(own, base, approvals)
    decisionRoutes(own, base, approvals, log, refused)
  })
}
