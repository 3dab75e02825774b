import type { FastifyReply, FastifyRequest } from 'fastify'
import { errorTable, Problem, Unavailable } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import { requestFields } from '../http/observe.ts'
import type { FaultLog } from '../http/observe.ts'
import type { AnswerPage } from '../http/problems.ts'
import { SessionEnded, handoffPage, sendToSignIn, show } from './session.ts'
import { problemPage, strayPage } from './views/problem.ts'
import type { Trouble } from './views/problem.ts'

/**
 * By status: what went wrong, and what to do. Refused decisions are shown on the handoff's page instead (approvals.ts).
 */
const troubles: Record<number, Trouble> = {
  400: { title: 'This request is not valid', text: 'It did not come from one of these pages. Go back and try again.' },
  403: { title: 'Another site sent this form', text: 'So nothing was decided. Decide on the handoff’s own page.' },
  404: { title: 'There is nothing here', text: 'This handoff never existed, is gone, or belongs to somebody else.' },
  405: {
    title: 'This request is not valid', text: 'It did not come from one of these pages, and nothing was decided.'
  },
  409: { title: 'There is nothing to decide', text: 'This handoff was passed without asking for a person’s approval.' },
  413: { title: 'The note is too long', text: 'So nothing was decided. Write a shorter one.' },
  415: {
    title: 'This request is not valid', text: 'It did not come from one of these pages, and nothing was decided.'
  },
  429: {
    title: 'Too many wrong keys',
    text: 'They came from your address within a minute. Wait a minute, then sign in with your key.'
  },
  500: { title: 'The service failed', text: 'Check whether your decision was recorded before you decide again.' },
  503: {
    title: 'The service can’t answer now',
    text: 'It can’t reach its data, or has too much to do. This may ' +
    'last only a moment. Check whether your decision was recorded before you decide again.'
  },
}

/**
 * Answers every error with a page in plain words. The service's own faults are logged, and the page shows no details.
 * @param refused gets each problem's code
 */
export function showErrors (baseUrl: () => string, log: FaultLog, refused: (code: ErrorCode) => void) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    if (error instanceof SessionEnded) return sendToSignIn(baseUrl, request, reply, true)
    if (error instanceof Problem) {
      refused(error.code)
      reply.headers(error.more.headers ?? {})
    }
    const status = statusOf(error)
    if (status === 500) log.error({ err: error, ...requestFields(request) }, 'internal error')
    if (status === 503) reply.header('retry-after', '1')
    // Before the caller is known, this is undefined or null, depending on how far the request got.
    const caller = request.caller ?? undefined
    show(reply, status, problemPage(
      caller, troubles[status] as Trouble,
      request.method === 'POST' && status !== 404 ? handoffPage(request.url) : '/approvals'
    ))
  }
}

function statusOf (error: unknown): number {
  if (error instanceof Unavailable) return 503
  const status = error instanceof Problem
    ? errorTable[error.code].status
    : (error as { statusCode?: number }).statusCode ?? 500
  if (status in troubles) return status
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
  show(reply, status, strayPage(status === 404 ? undefined : more.detail ?? '', request.id))
  return true
}
