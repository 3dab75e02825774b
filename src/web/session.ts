import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Grant } from '../auth/grant.ts'
import type { KeyRing } from '../auth/key-ring.ts'
import { hasScope } from '../auth/scopes.ts'
import { SessionGrant } from '../auth/session-grant.ts'
import { Problem } from '../core/errors.ts'
import type { GuessesOf } from '../http/auth.ts'
import { belowBase } from '../http/base-url.ts'
import { sessionLength } from '../store/sessions.ts'
import type { Sessions } from '../store/sessions.ts'
import { approvalsArea, consoleArea } from './area.ts'
import type { Area, Doing } from './area.ts'
import type { Link } from './views/problem.ts'
import { againPage, signInPage } from './views/sign-in.ts'

interface SignInOptions {
  sessions: Sessions
  keys: KeyRing
  guessesOf: GuessesOf
  /** Whether the pages are served over https. */
  isSecure: () => boolean
  /** BASE_URL's path. */
  base: string
}

/**
 * Signs people in and out, and finds whose a request is. The key itself is in the sign-in form only, never in a cookie.
 */
export class SignIn {
  readonly #options: SignInOptions
  readonly #sessions: Sessions
  readonly #keys: KeyRing

  constructor (options: SignInOptions) {
    this.#options = options
    this.#sessions = options.sessions
    this.#keys = options.keys
  }

  /** @returns undefined without a session, or if it has ended */
  async find (request: FastifyRequest): Promise<Grant | undefined> {
    const secret = this.secretOf(request)
    return secret === undefined ? undefined : ofPerson(await SessionGrant.find(this.#sessions, this.#keys, secret))
  }

  /** Was it opened with this key? */
  isOf (session: Grant | null, key: string): boolean {
    return session?.mark === this.#keys.mark(key)
  }

  /** Starts a session, which replaces an earlier one. @returns undefined for a key that opens none */
  async start (request: FastifyRequest, reply: FastifyReply, key: string): Promise<Grant | undefined> {
    const found = this.#keys.recall(key) ?? await this.#keys.find(key, this.#options.guessesOf(request))
    const grant = ofPerson(found)
    if (grant === undefined) return undefined
    const before = this.secretOf(request)
    if (before !== undefined) await this.#sessions.end(before)
    const secret = await this.#sessions.open(grant.mark)
    reply.setCookie(this.#cookie(), secret, { ...this.#cookieOptions(), maxAge: sessionLength })
    return new SessionGrant(this.#sessions, this.#keys, secret, grant)
  }

  async end (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const secret = this.secretOf(request)
    if (secret !== undefined) await this.#sessions.end(secret)
    reply.clearCookie(this.#cookie(), this.#cookieOptions())
  }

  secretOf (request: FastifyRequest): string | undefined {
    return request.cookies[this.#cookie()]
  }

  /**
   * With the prefix `__Host-`, browsers enforce the options, and no other host of the domain can set the cookie. It
   * demands the path
   * `/`. Below a path, where other services of the host must not get the cookie, it is `__Secure-`, which a neighbour
   * on the domain can set.
   */
  #cookie (): string {
    if (!this.#options.isSecure()) return 'handoff_session'
    return this.#options.base === '' ? '__Host-handoff_session' : '__Secure-handoff_session'
  }

  #cookieOptions () {
    const { base, isSecure } = this.#options
    return { path: base === '' ? '/' : base, httpOnly: true, sameSite: 'strict', secure: isSecure() } as const
  }
}

/** Approvers, operators and readers are people. Agents' keys open no session. */
function ofPerson (grant: Grant | undefined): Grant | undefined {
  return grant !== undefined && hasScope(grant.caller, ['approve', 'operate', 'read']) ? grant : undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * The form was sent, its session had ended, and its sender has signed in with it: the page shows it again as it was
     * filled in. It must change nothing.
     */
    isSentAgain: boolean
  }

  interface FastifyContextConfig {
    /** Of a form: a handler that obeys `isSentAgain`. Others get their page. */
    showsAgain?: boolean
  }
}

/** Lets signed-in people in. Sends everybody else to sign in, and then back to the page that they asked for. */
export function requireSession (baseUrl: () => string, signIn: SignIn, area: Area) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const session = await signIn.find(request)
    // The typed values are in the body, which is read later: `signInWithForm`.
    const isForm = request.method === 'POST' && request.headers['hx-request'] === undefined
    if (session === undefined && isForm) return undefined
    if (session === undefined) {
      return sendToSignIn({ baseUrl, area, hadSession: signIn.secretOf(request) !== undefined }, request, reply)
    }
    letIn(request, session)
    return undefined
  }
}

function letIn (request: FastifyRequest, session: Grant): void {
  request.granted = session
  request.caller = session.caller
}

/** The key's name in a form that a person signs in with. No form has a field of its own of that name. */
const keyField = 'sign_in_key'

/**
 * Signs in a person who sent a form without a valid session: with the sign-in page, which keeps the typed values as
 * hidden fields and sends them to the form's own address together with the key, so they are stored nowhere else. A form
 * that came with a key changes nothing, even if it is sent twice: the person looks at it first.
 */
export function signInWithForm (baseUrl: () => string, signIn: SignIn, area: Area) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    if (request.method !== 'POST') return undefined
    const { [keyField]: key, next, ...fields } = (request.body ?? {}) as Record<string, unknown>
    request.isSentAgain = typeof key === 'string'
    if (request.isSentAgain) request.body = fields
    const without = { baseUrl, area, hadSession: true }
    if (request.granted === null && typeof key !== 'string') return sendToSignIn(without, request, reply)
    // In another tab another person may have signed in meanwhile.
    if (typeof key === 'string' && !signIn.isOf(request.granted, key.trim())) {
      const session = await signIn.start(request, reply, key.trim())
      if (session === undefined) return sendToSignIn(without, request, reply, wrongKey)
      letIn(request, session)
    }
    const isShown = !request.isSentAgain || request.routeOptions.config.showsAgain === true
    return isShown ? undefined : redirect(reply, ownPath(next))
  }
}

/** `hadSession`: there was a session, and it has ended. */
interface WithoutSession { baseUrl: () => string, area: Area, hadSession: boolean }

/** Answers a request without a valid session. */
export function sendToSignIn (
  { baseUrl, area, hadSession }: WithoutSession, request: FastifyRequest, reply: FastifyReply,
  problem = area.unchanged.ended, status = 401
): FastifyReply {
  if (request.method === 'GET' && request.headers['sec-fetch-site'] === 'cross-site' && !hadSession) {
    return show(reply, 200, againPage(request.url))
  }
  if (request.headers['hx-request'] !== undefined) {
    const page = area.pageOf(request.url, request.method === 'POST')
    return reply.code(401).header('hx-redirect', reply.server.basePath + signInUrl(page, true)).send()
  }
  if (request.method === 'GET') return redirect(reply, signInUrl(request.url, hadSession))
  const kept = { action: ownPath(request.url), fields: (request.body ?? {}) as Record<string, unknown>, keyField }
  return show(reply, status, signInPage(baseUrl, ownPath(area.pageOf(request.url, true)), problem, kept))
}

/** Sends a page. */
export function show (reply: FastifyReply, status: number, page: string): FastifyReply {
  return reply.code(status).header('content-type', 'text/html; charset=utf-8').send(belowBase(reply.server, page))
}

/** Sends the browser to another page. @param path without BASE_URL's */
export function redirect (reply: FastifyReply, path: string): FastifyReply {
  return reply.redirect(reply.server.basePath + path, 303)
}

/**
 * A path within these pages, without BASE_URL's path. Never to another site, and never out of the pages, as a dot
 * segment would lead (URL Standard, 4.4).
 */
export function ownPath (path: unknown): string {
  return typeof path === 'string' && within.test(path) ? path : approvalsArea.home
}

const within = /^\/(approvals|console)([/?](?!.*%2[eE])(?!(.*\/)?\.{1,2}([/?]|$))[\w/?=&%.~+-]*)?$/

function signInUrl (next: string, ended: boolean): string {
  return `/approvals/sign-in?next=${encodeURIComponent(next)}${ended ? '&ended=1' : ''}`
}

/** Said where the service can't sign a person in, or out. */
export const signingIn: Doing = {
  nothing: 'you are not signed in',
  instead: 'Sign in on the service’s own page.',
  check: 'You are not signed in yet: try again.',
  tooLong: { title: 'The form is too large', text: 'So you are not signed in.' },
}
const signingOut: Doing = {
  nothing: 'you are still signed in',
  instead: 'Sign out on one of the service’s own pages.',
  check: 'You may still be signed in: sign out again.',
  tooLong: { title: 'The form is too large', text: 'So you are still signed in.' },
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The action of this form, if it isn't that of the area's forms. */
    doing?: Doing
    /** Where to go on then. */
    page?: Link
  }
}

const schema = { hide: true }
/** A key and a path. The sender isn't known yet. */
const form = { schema, bodyLimit: 16 * 1024 }

type Form = Record<string, unknown> | undefined

/** The same sentence for every fault: it must not show a stranger what kind of key this is. */
const wrongKey = 'This key can’t be used here. Check it, or ask the operator of this service for an approver key.'

export function signInRoutes (app: FastifyInstance, baseUrl: () => string, signIn: SignIn): void {
  app.get<{ Querystring: Record<string, unknown> }>('/sign-in', { schema }, async (request, reply) => {
    const { next, ended } = request.query
    const problem = ended === undefined ? undefined : 'Your session has ended. Sign in to continue.'
    return show(reply, 200, signInPage(baseUrl, ownPath(next), problem))
  })

  app.post<{ Body: Form }>('/sign-in', {
    ...form,
    config: { doing: signingIn, page: { path: '/approvals/sign-in', name: 'Back to the sign-in' } },
    // A text that is too long for this form isn't a key either.
    errorHandler (error: FastifyError | Problem, request: FastifyRequest, reply: FastifyReply) {
      if (!(error instanceof Problem) || error.code !== 'payload_too_large') throw error
      return show(reply, 401, signInPage(baseUrl, ownPath(undefined), wrongKey))
    },
  }, async (request, reply) => {
    const { key, next } = request.body ?? {}
    const way = ownPath(next)
    const session = typeof key === 'string' ? await signIn.start(request, reply, key.trim()) : undefined
    if (session === undefined) return show(reply, 401, signInPage(baseUrl, way, wrongKey))
    // A person who only operates has nothing to see in the list of approvals.
    const isForOthers = way === approvalsArea.home && !hasScope(session.caller, approvalsArea.scope)
    return redirect(reply, isForOthers ? consoleArea.home : way)
  })

  app.post('/sign-out', {
    ...form,
    config: { doing: signingOut, page: { path: approvalsArea.home, name: approvalsArea.homeName } },
  }, async (request, reply) => {
    await signIn.end(request, reply)
    return redirect(reply, '/approvals/sign-in')
  })
}
