import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Credentials } from '../auth/credentials.ts'
import type { Grant } from '../auth/grant.ts'
import type { KeyRing } from '../auth/key-ring.ts'
import { hasScope } from '../auth/scopes.ts'
import { SessionGrant } from '../auth/session-grant.ts'
import type { SignInIssuer } from '../auth/sign-in-issuer.ts'
import type { SignInIssuers } from '../auth/sign-in-issuers.ts'
import { Problem } from '../core/errors.ts'
import type { GuessesOf } from '../http/auth.ts'
import { belowBase } from '../http/base-url.ts'
import type { Sessions } from '../store/sessions.ts'
import { approvalsArea, consoleArea } from './area.ts'
import type { Area, Doing } from './area.ts'
import type { Link } from './views/problem.ts'
import { againPage, signInPage } from './views/sign-in.ts'
import type { KeptForm } from './views/sign-in.ts'

const sessionCookie = 'handoff_session'

export interface SignInOptions {
  credentials: Credentials
  keys: KeyRing
  /** Null where no issuer signs people in. */
  signIns: SignInIssuers | null
  /** Whether people sign in with keys. */
  takesKeys: boolean
  sessions: Sessions
  /** How long people stay signed in, in seconds. */
  sessionLength: number
  guessesOf: GuessesOf
  baseUrl: () => string
}

/**
 * Signs people in and out, and finds whose a request is. The key itself is in the sign-in form only, never in a cookie.
 */
export class SignIn {
  readonly #options: SignInOptions
  readonly #base: string

  /** @param base BASE_URL's path */
  constructor (options: SignInOptions, base: string) {
    this.#options = options
    this.#base = base
  }

  /** @returns undefined without a session, or if it has ended */
  async find (request: FastifyRequest): Promise<Grant | undefined> {
    const secret = this.secretOf(request)
    return secret === undefined ? undefined : ofPerson(await this.#find(secret))
  }

  /** Was it opened with this key? */
  isOf (session: Grant | null, key: string): boolean {
    return session?.mark === this.#options.keys.mark(key)
  }

  /** Signs in with a key. @returns undefined for a key that opens no session */
  async start (request: FastifyRequest, reply: FastifyReply, key: string): Promise<Grant | undefined> {
    const { keys, guessesOf, takesKeys } = this.#options
    if (!takesKeys) return undefined
    const grant = ofPerson(keys.recall(key) ?? await keys.find(key, guessesOf(request)))
    return grant && await this.open(reply, grant, this.secretOf(request))
  }

  /** Opens a session. @param grant of the key or the person @param before the secret of the one that it replaces */
  async open (reply: FastifyReply, grant: Grant, before: string | undefined): Promise<Grant> {
    const { credentials, sessions, sessionLength } = this.#options
    const secret = await sessions.open(grant.mark, sessionLength)
    if (before !== undefined) await sessions.end(before)
    reply.setCookie(this.cookie(sessionCookie), secret, {
      ...this.cookieOptions(), sameSite: 'strict', maxAge: sessionLength
    })
    return new SessionGrant(sessions, credentials, secret, grant)
  }

  /** Signs out. @returns the issuer by which the person signed in, if it was one */
  async end (request: FastifyRequest, reply: FastifyReply): Promise<SignInIssuer | undefined> {
    const { sessions, signIns } = this.#options
    const secret = this.secretOf(request)
    const mark = secret === undefined ? null : await sessions.find(secret)
    if (secret !== undefined) await sessions.end(secret)
    // Last, so that a person who has to sign out again still can.
    reply.clearCookie(this.cookie(sessionCookie), { ...this.cookieOptions(), sameSite: 'strict' })
    return mark === null ? undefined : signIns?.issuerOfMark(mark)
  }

  /** The sign-in page. @param next as `signInPage` @param problem as there @param kept as there */
  page (next: string, problem?: string, kept?: KeptForm): string {
    const { baseUrl, sessionLength, signIns, takesKeys } = this.#options
    const issuers = signIns?.issuers.map(({ label, issuer: { issuer } }) => ({ label, issuer })) ?? []
    return signInPage({ baseUrl: baseUrl(), issuers, takesKeys, sessionLength }, next, problem, kept)
  }

  secretOf (request: FastifyRequest): string | undefined {
    return request.cookies[this.cookie(sessionCookie)]
  }

  async #find (secret: string): Promise<Grant | undefined> {
    const { credentials, sessions, takesKeys } = this.#options
    const found = await SessionGrant.find(sessions, credentials, secret)
    // Those that keys opened before end, too.
    return takesKeys || found?.caller.subject !== undefined ? found : undefined
  }

  /**
   * With the prefix `__Host-`, browsers enforce the options, and no other host of the domain can set the cookie. It
   * demands the path
   * `/`. Below a path, where other services of the host must not get the cookie, it is `__Secure-`, which a neighbour
   * on the domain can set.
   */
  cookie (name: string): string {
    if (!this.#isSecure) return name
    return this.#base === '' ? `__Host-${name}` : `__Secure-${name}`
  }

  cookieOptions () {
    return { path: this.#base === '' ? '/' : this.#base, httpOnly: true, secure: this.#isSecure }
  }

  /** Whether the pages are served over https. */
  get #isSecure (): boolean {
    return this.#options.baseUrl().startsWith('https:')
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
export function requireSession (signIn: SignIn, area: Area) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const session = await signIn.find(request)
    // The typed values are in the body, which is read later: `signInWithForm`.
    const isForm = request.method === 'POST' && request.headers['hx-request'] === undefined
    if (session === undefined && isForm) return undefined
    if (session === undefined) {
      return sendToSignIn({ signIn, area, hadSession: signIn.secretOf(request) !== undefined }, request, reply)
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
export function signInWithForm (signIn: SignIn, area: Area) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    if (request.method !== 'POST') return undefined
    const { [keyField]: key, next, ...fields } = (request.body ?? {}) as Record<string, unknown>
    request.isSentAgain = typeof key === 'string'
    if (request.isSentAgain) request.body = fields
    const without = { signIn, area, hadSession: true }
    if (request.granted === null && typeof key !== 'string') return sendToSignIn(without, request, reply)
    // An empty key is of who signed in by an issuer, in another window.
    const isIn = request.granted !== null && key === ''
    // In another tab another person may have signed in meanwhile.
    if (typeof key === 'string' && !isIn && !signIn.isOf(request.granted, key.trim())) {
      const session = await signIn.start(request, reply, key.trim())
      if (session === undefined) return sendToSignIn(without, request, reply, key === '' ? notYetIn : wrongKey)
      letIn(request, session)
    }
    const isShown = !request.isSentAgain || request.routeOptions.config.showsAgain === true
    return isShown ? undefined : redirect(reply, ownPath(next))
  }
}

/** `hadSession`: there was a session, and it has ended. */
interface WithoutSession { signIn: SignIn, area: Area, hadSession: boolean }

/** Answers a request without a valid session. */
export function sendToSignIn (
  { signIn, area, hadSession }: WithoutSession, request: FastifyRequest, reply: FastifyReply,
  problem = area.unchanged.ended, status = 401
): FastifyReply {
  if (request.method === 'GET' && request.headers['sec-fetch-site'] === 'cross-site' && !hadSession) {
    return show(reply, 200, againPage(request.url))
  }
  if (request.headers['hx-request'] !== undefined) {
    const page = area.pageOf(request)
    return reply.code(401).header('hx-redirect', reply.server.basePath + signInUrl(page, true)).send()
  }
  if (request.method === 'GET') return redirect(reply, signInUrl(request.url, hadSession))
  // Of a form that isn't shown again nothing is needed.
  const fields = request.routeOptions.config.showsAgain === true ? (request.body ?? {}) as Record<string, unknown> : {}
  const kept = { action: ownPath(request.url), fields, keyField }
  return show(reply, status, signIn.page(ownPath(area.pageOf(request)), problem, kept))
}

/** Sends a page. */
export function show (reply: FastifyReply, status: number, page: string): FastifyReply {
  return reply.code(status).header('content-type', 'text/html; charset=utf-8').send(belowBase(reply.server, page))
}

/** Sends what is too much for a page. No browser opens it: it is for who reads it elsewhere. */
export function sendWhole (reply: FastifyReply, name: string, text: Buffer): FastifyReply {
  return reply
    .header('content-type', 'text/plain; charset=utf-8')
    .header('content-disposition', `attachment; filename="${name}.txt"`)
    .send(text)
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

const within = /^\/(approvals|console)([/?](?!.*%2[eE])(?!(.*\/)?\.{1,2}([/?]|$))[\w/?=&%.~+!$'()*,:;@-]*)?$/

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
const notYetIn = 'You are not signed in yet. Sign in in the other window first, or with a key here.'
const wrongKey = 'This key can’t be used here. Check it, or ask the operator of this service for an approver key.'

/** @param takesKeys whether people sign in with keys @param baseUrl where an issuer sends back who signs out */
export function signInRoutes (
  app: FastifyInstance, signIn: SignIn, { takesKeys, baseUrl }: Pick<SignInOptions, 'takesKeys' | 'baseUrl'>
): void {
  app.get<{ Querystring: Record<string, unknown> }>('/sign-in', { schema }, async (request, reply) => {
    const { next, ended } = request.query
    const problem = ended === undefined ? undefined : 'Your session has ended. Sign in to continue.'
    return show(reply, 200, signIn.page(ownPath(next), problem))
  })

  if (takesKeys) keyRoute(app, signIn)

  app.post('/sign-out', {
    ...form,
    config: { doing: signingOut, page: { path: approvalsArea.home, name: approvalsArea.homeName } },
  }, async (request, reply) => {
    const issuer = await signIn.end(request, reply)
    const url = await issuer?.endUrl(`${baseUrl()}/approvals/sign-in`)
    // The policy lets no form lead to another site, so a page does.
    return url === undefined ? redirect(reply, '/approvals/sign-in') : show(reply, 200, againPage(url))
  })
}

/** Where who has signed in goes: a person who only operates has nothing to see in the list of approvals. */
export function firstPage (session: Grant, way: string): string {
  return way === approvalsArea.home && !hasScope(session.caller, approvalsArea.scope) ? consoleArea.home : way
}

function keyRoute (app: FastifyInstance, signIn: SignIn): void {
  app.post<{ Body: Form }>('/sign-in', {
    ...form,
    config: { doing: signingIn, page: { path: '/approvals/sign-in', name: 'Back to the sign-in' } },
    // A text that is too long for this form isn't a key either.
    errorHandler (error: FastifyError | Problem, request: FastifyRequest, reply: FastifyReply) {
      if (!(error instanceof Problem) || error.code !== 'payload_too_large') throw error
      return show(reply, 401, signIn.page(ownPath(undefined), wrongKey))
    },
  }, async (request, reply) => {
    const { key, next } = request.body ?? {}
    const way = ownPath(next)
    const session = typeof key === 'string' ? await signIn.start(request, reply, key.trim()) : undefined
    if (session === undefined) return show(reply, 401, signIn.page(way, wrongKey))
    return redirect(reply, firstPage(session, way))
  })
}
