import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Session, SignIn } from './session.ts'
import { againPage, signInPage } from './views/sign-in.ts'
import type { Site } from './views/sign-in.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The session that authenticated the request; set together with `caller`. */
    session: Session
  }
}

/** Lets signed-in people in. Sends everybody else to sign in, and then back to the page that they asked for. */
export function requireSession (site: Site, signIn: SignIn) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const session = await signIn.find(request)
    if (session === undefined) return sendToSignIn(site, request, reply, signIn.secretOf(request) !== undefined)
    request.session = session
    request.caller = session.caller
    return undefined
  }
}

/** Answers a request without a valid session. @param hadSession there was one, and it has ended */
export function sendToSignIn (site: Site, request: FastifyRequest, reply: FastifyReply, hadSession: boolean): FastifyReply {
  const { base } = site
  if (request.method === 'GET' && request.headers['sec-fetch-site'] === 'cross-site' && !hadSession) {
    return show(reply, 200, againPage(base + request.url))
  }
  if (request.headers['hx-request'] !== undefined) return reply.code(401).header('hx-redirect', base + signInUrl('/approvals', true)).send()
  if (request.method === 'GET') return reply.redirect(base + signInUrl(request.url, hadSession), 303)
  return show(reply, 401, signInPage(site, handoffOf(request.url), 'Your session has ended. Nothing was decided: sign in, and decide again.'))
}

/** Sends a page. */
export function show (reply: FastifyReply, status: number, page: string): FastifyReply {
  return reply.code(status).header('content-type', 'text/html; charset=utf-8').send(page)
}

/** A path within these pages, without BASE_URL's path. Never to another site, and never out of the pages, as an encoded dot segment would lead (URL Standard, 4.4). */
export function ownPath (path: unknown): string {
  return typeof path === 'string' && /^\/approvals([/?](?!.*%2[eE])[\w/?=&%-]*)?$/.test(path) ? path : '/approvals'
}

/** The page that a form was on: the form's own URL without its last segment. */
export function handoffOf (url: string): string {
  return ownPath(url.replace(/\/(approve|reject)(\?.*)?$/, ''))
}

function signInUrl (next: string, ended: boolean): string {
  return `/approvals/sign-in?next=${encodeURIComponent(next)}${ended ? '&ended=1' : ''}`
}
