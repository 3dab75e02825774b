import type { FastifyReply, FastifyRequest } from 'fastify'
import { SessionEnded } from '../auth/session-grant.ts'
import { errorTable, PayloadLocked, Problem, Unavailable } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import { BodyError } from '../core/json.ts'
import { requestFields } from '../http/observe.ts'
import type { FaultLog } from '../http/observe.ts'
import type { AnswerPage } from '../http/problems.ts'
import { looking } from './area.ts'
import type { Area, Doing, Trouble } from './area.ts'
import { ownPath, sendToSignIn, show, signingIn } from './session.ts'
import type { SignIn } from './session.ts'
import { problemPage, strayPage } from './views/problem.ts'
import type { Link } from './views/problem.ts'

const invalidRequest = 'This request is not valid'

/**
 * By status: what went wrong, and what to do. Refused decisions are shown on the handoff's page instead (approvals.ts).
 */
function troublesOf ({ unchanged }: Area, doing: Doing): Record<number, Trouble> {
  const foreign = `It did not come from one of these pages, and ${doing.nothing}.`
  return {
    400: { title: invalidRequest, text: 'It did not come from one of these pages. Go back and try again.' },
    403: { title: 'Another site sent this form', text: `So ${doing.nothing}. ${doing.instead}` },
    404: { title: 'There is nothing here', text: unchanged.missing },
    405: { title: invalidRequest, text: foreign },
    409: unchanged.conflict,
    413: doing.tooLong,
    415: { title: invalidRequest, text: foreign },
    429: {
      title: 'Too many sign-ins failed',
      text: 'They came from your address within a minute. Wait a minute, then sign in again.'
    },
    500: { title: 'The service failed', text: doing.check },
    503: {
      title: 'The service can’t answer now',
      text: `It can’t reach its data, or has too much to do. This may last only a moment. ${doing.check}`
    },
  }
}

/** For a key that is good, and may not see this. It names the scopes that it would need, or the inbox. */
function beyondKey (error: Problem): Trouble {
  return { title: 'This key can’t be used for this', text: error.more.detail ?? errorTable[error.code].detail }
}

/** Of what can't be decrypted. */
function locked ({ nothing }: Doing): Trouble {
  return {
    title: 'This can’t be decrypted here',
    text: `The replica that answered doesn’t have the key that this was encrypted with, so ${nothing}. Another one may have it: try again, or ask the operator of this service.`
  }
}

/** For signed-in people who are over a limit. */
function overLimit (error: Problem, { nothing }: Doing): Trouble {
  const { title, detail } = errorTable[error.code]
  const seconds = error.more.headers?.['retry-after'] ?? '1'
  return { title, text: `${error.more.detail ?? detail} So ${nothing}. Try again in ${seconds} s.` }
}

/** Where to go on: after a form to its page, after a look to the same page again. */
function wayOn (area: Area, request: FastifyRequest, status: number): Link {
  const { method, url, routeOptions } = request
  const home = { path: area.home, name: area.homeName }
  const page = routeOptions.config?.page
  if (page !== undefined) return page
  if (method === 'POST' && status !== 404) {
    const path = ownPath(area.pageOf(request))
    return path === area.home ? home : { path, name: area.backName }
  }
  return status >= 500 || status === 429 ? { path: ownPath(url), name: 'Try again' } : home
}

/**
 * Answers every error with a page in plain words. The service's own faults are logged, and the page shows no details.
 * @param refused gets each problem's code
 */
export function showErrors (area: Area, signIn: SignIn, log: FaultLog, refused: (code: ErrorCode) => void) {
  const statuses = troublesOf(area, looking)
  return (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    if (error instanceof SessionEnded) return sendToSignIn({ signIn, area, hadSession: true }, request, reply)
    if (error instanceof Problem) {
      refused(error.code)
      reply.headers(error.more.headers ?? {})
    }
    const status = statusOf(error, statuses)
    if (status === 500) log.error({ err: error, ...requestFields(request) }, 'internal error')
    if (status === 503 && !reply.hasHeader('retry-after')) reply.header('retry-after', '1')
    // Before the caller is known, this is undefined or null, depending on how far the request got.
    const caller = request.caller ?? undefined
    const doing = request.isSentAgain
      ? signingIn
      : request.routeOptions.config?.doing ?? (request.method === 'POST' ? area.unchanged : looking)
    const isBeyond = error instanceof Problem && (error.code === 'insufficient_scope' || error.code === 'not_addressee')
    const trouble = isBeyond
      ? beyondKey(error)
      : error instanceof Problem && status === 429 && caller !== undefined
        ? overLimit(error, doing)
        : error instanceof PayloadLocked
          ? locked(doing)
          : troublesOf(area, doing)[status] as Trouble
    // The typed values stay here until the service can sign their sender in, and show them.
    if (request.isSentAgain && (status === 429 || status >= 500)) {
      const problem = `${trouble.title}. ${trouble.text} What you typed is kept.`
      return sendToSignIn({ signIn, area, hadSession: true }, request, reply, problem, status)
    }
    return show(reply, status, problemPage(area, caller, trouble, wayOn(area, request, status)))
  }
}

function statusOf (error: unknown, statuses: Record<number, Trouble>): number {
  if (error instanceof Unavailable) return 503
  if (error instanceof BodyError) return 400
  const status = error instanceof Problem
    ? errorTable[error.code].status
    : (error as { statusCode?: number }).statusCode ?? 500
  if (status in statuses) return status
  return status >= 400 && status < 500 ? 400 : 500
}

/** Nothing but the page's own style: it shows no script, and is nowhere inside another. */
const strayHeaders = {
  'content-security-policy': "default-src 'none'; style-src 'self'; img-src data:; frame-ancestors 'none'; base-uri " +
    "'none'; form-action 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
}

/**
 * Answers 404 and 503 with a page, for browsers outside of /approvals. It doesn't call Redis. Below /api a problem
 * stays one: some programs say that they prefer text/html.
 */
export const answerStray: AnswerPage = ({ code, more }, request, reply) => {
  const { status } = errorTable[code]
  if (request.url.startsWith('/api/') || (status !== 404 && status !== 503)) return false
  reply.headers({ ...strayHeaders, 'x-request-id': request.id, 'cache-control': 'no-store', ...more.headers })
  show(reply, status, strayPage(status === 404 ? undefined : more.detail ?? '', request.id, request.method === 'POST'))
  return true
}
