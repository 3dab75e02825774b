import type { FastifyReply, FastifyRequest } from 'fastify'
import { Problem, errorTable } from '../errors.ts'
import type { ErrorCode } from '../errors.ts'
import { requestFields } from '../http/logs.ts'
import type { FaultLog } from '../http/logs.ts'
import { Unavailable } from '../redis/lanes.ts'
import { handoffOf, sendToSignIn, show } from './guard.ts'
import { SessionEnded } from './session.ts'
import { problemPage } from './views/problem.ts'
import type { Trouble } from './views/problem.ts'

/** By status: what went wrong, and what to do. What a decision can meet is shown with its handoff (routes/decide.ts). */
const troubles: Record<number, Trouble> = {
  400: { title: 'This can’t be read', text: 'The request was not one of these pages’ own. Go back and try again.' },
  403: { title: 'This came from somewhere else', text: 'Another page sent this form, so nothing was decided. Decide here, on the page itself.' },
  404: { title: 'There is nothing here', text: 'This handoff never was, is gone, or belongs to somebody else.' },
  405: { title: 'This can’t be done here', text: 'The request was not one of these pages’ own, and nothing was decided.' },
  409: { title: 'There is nothing to decide', text: 'This handoff was passed without asking for a person’s approval.' },
  413: { title: 'This is too much', text: 'The note is far too long, so nothing was decided. Write a shorter one.' },
  415: { title: 'This can’t be read', text: 'Nothing was decided: only the forms of these pages are taken here.' },
  429: { title: 'Too many wrong keys', text: 'They came from your address within a minute. Wait a minute, then sign in with your key.' },
  500: { title: 'Something went wrong', text: 'It is a fault of this service. Look whether your decision is there before you decide again.' },
  503: { title: 'The service can’t reach its data', text: 'It may be so for a moment only. Look whether your decision is there before you decide again.' },
}

/** Answers whatever is thrown with a page in plain words. A fault of ours is logged and doesn't show. @param refused told each problem's code */
export function showErrors (base: string, log: FaultLog, refused: (code: ErrorCode) => void) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    if (error instanceof SessionEnded) return sendToSignIn(base, request, reply, true)
    if (error instanceof Problem) {
      refused(error.code)
      reply.headers(error.more.headers ?? {})
    }
    const status = statusOf(error)
    if (status === 500) log.error({ err: error, ...requestFields(request) }, 'internal error')
    if (status === 503) reply.header('retry-after', '1')
    // Who could not be told apart yet is undefined or null here, by when it failed.
    const caller = request.caller ?? undefined
    show(reply, status, problemPage(base, caller, troubles[status] as Trouble, request.method === 'POST' && status !== 404 ? handoffOf(request.url) : '/approvals'))
  }
}

function statusOf (error: unknown): number {
  if (error instanceof Unavailable) return 503
  const status = error instanceof Problem ? errorTable[error.code].status : (error as { statusCode?: number }).statusCode ?? 500
  if (status in troubles) return status
  return status >= 400 && status < 500 ? 400 : 500
}
