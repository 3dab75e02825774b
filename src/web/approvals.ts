import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem, errorTable } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import { approveBody } from '../core/schemas/approvals.ts'
import { digestText } from '../handoffs/lifecycle/answers.ts'
import { inspectionText } from '../handoffs/people/approvals.ts'
import type { ToRead } from '../handoffs/people/approvals.ts'
import { askedText } from '../handoffs/people/asks.ts'
import type { PeopleService } from '../handoffs/people/people.ts'
import type { SeenByPerson, ApprovalVerdict } from '../store/approvals.ts'
import { staysOpen } from './approvals-list.ts'
import { faultOfNote, form, noteOf, sentAgain } from './notes.ts'
import { perform } from './perform.ts'
import type { Performing, Wanted } from './perform.ts'
import { insideOf, pageOf, readOne } from './questions.ts'
import type { Questions } from './questions.ts'
import { redirect, sendWhole, show } from './session.ts'
import { isBeyondPage, shownAs, wholeTask } from './views/content.ts'
import { handoffPage } from './views/handoff.ts'
import { happenedTo, overPart, watchPart } from './views/standing.ts'
import type { OnPage } from './views/standing.ts'

const schema = { hide: true }

interface OneHandoff { Params: { id: string }, Querystring: Record<string, unknown> }

/** The page of one handoff, its approval_url and answer_url. Opening it never decides or answers anything. */
export function handoffRoutes (app: FastifyInstance, services: Questions, forPeople: PeopleService): void {
  const { approvals } = services
  app.get<OneHandoff>('/:id', { schema }, async (sent, reply) => {
    const request = sent as FastifyRequest
    const one = await readOne(services, request, sent.params.id)
    return show(reply, 200, pageOf(request, one, { as: shownAs(sent.query) }))
  })

  // What was passed, without the page around it: for the list, and for the switch between texts and Markdown.
  app.get<OneHandoff>('/:id/inside', { schema }, async (sent, reply) => {
    const one = await readOne(services, sent as FastifyRequest, sent.params.id)
    const { digest, of } = sent.query
    const isOther = typeof digest === 'string' && digest !== one.one.digest
    const other = '<p>Another handoff has its place by now. Load the list again.</p>'
    return show(reply, 200, isOther ? other : insideOf(sent.caller, one, shownAs(sent.query), of))
  })

  // Waits until there is something to say to who has the page open.
  app.get<OneHandoff>('/:id/standing', { schema }, async (sent, reply) => {
    const { params: { id }, query: { ask, seen } } = sent
    const shown: OnPage = typeof ask === 'string' ? { askId: ask } : { createdAt: Date.parse(String(seen)) }
    const waits = { milliseconds: staysOpen, requester: sent }
    const stands = await forPeople.watchOne(sent.caller, id, waits, stands => happenedTo(shown, stands) !== null)
    const words = happenedTo(shown, stands)
    return show(reply, 200, words === null ? watchPart(id, shown) : overPart(words))
  })

  app.get<OneHandoff>('/:id/question', { schema }, async (sent, reply) => {
    const request = sent as FastifyRequest
    const { id } = sent.params
    const { found } = await readOne(services, request, id)
    if (found === null) throw new Problem('not_asked')
    return sendWhole(reply, `question-${id}`, askedText(id, found))
  })

  app.get<OneHandoff>('/:id/task', { schema }, async (sent, reply) => {
    const { one: { id, payload } } = await readOne(services, sent as FastifyRequest, sent.params.id)
    if (payload === null) throw new Problem('not_found')
    return sendWhole(reply, `task-${id}`, Buffer.from(wholeTask(payload)))
  })

  app.get<OneHandoff>('/:id/whole', { schema }, async (request, reply) => {
    const one = await approvals.inspect(request.caller, request.params.id, request as FastifyRequest)
    return sendWhole(reply, `handoff-${one.id}`, inspectionText(one, ''))
  })
}

interface Decide { Params: { id: string }, Body: Record<string, unknown> | undefined }

type Deciding = Performing & Pick<Questions, 'approvals'>

export function decisionRoutes (app: FastifyInstance, services: Deciding): void {
  app.post<Decide>('/:id/approve', form, (request, reply) => decide(services, 'approved', request, reply))
  app.post<Decide>('/:id/reject', form, (request, reply) => decide(services, 'rejected', request, reply))
}

/**
 * After a decision comes the list, with the focus on the next handoff. Not that handoff's page: a second press of the
 * same key would then decide what wasn't read.
 */
async function decide (
  services: Deciding, verdict: ApprovalVerdict, request: FastifyRequest<Decide>, reply: FastifyReply
): Promise<FastifyReply> {
  const { approvals, refused } = services
  const { caller, params: { id } } = request
  const note = noteOf(request.body)
  const hasRead = request.body?.read === 'all'
  const ofNote = request.isSentAgain ? `${sentAgain} Nothing was decided yet.` : faultOf(note, verdict)
  const seen = seenOf(request.body)
  // The handoff's page itself says why: a person has decided, it has expired, or the id is another handoff's.
  const refuse = (code: ErrorCode, one: ToRead) => {
    refused(code)
    const draft = code === 'content_changed' ? { note, isAnother: true } : undefined
    return show(reply, errorTable[code].status, handoffPage(caller, one, { draft, isLate: decidedTooLate.has(code) }))
  }
  // A person who says that all of it was read need not be asked how much there is.
  if (ofNote !== undefined || !hasRead) {
    const one = await approvals.read(caller, id, request as FastifyRequest)
    const isUnread = ofNote === undefined && isBeyondPage(one)
    const problem = isUnread ? notRead : ofNote
    if (problem !== undefined) {
      // If the content has changed, refuse as well: this page puts the focus on the note, below content that is
      // unread.
      if (one.record.createdAt !== seen.createdAt || (seen.digest !== undefined && one.digest !== seen.digest)) {
        return refuse('content_changed', one)
      }
      const draft = { note, problem, isUnread, hasRead }
      const { isSentAgain } = request
      return show(reply, isSentAgain ? 200 : 400, handoffPage(caller, one, { draft, isLate: !isSentAgain }))
    }
  }
  try {
    await perform(services, request as FastifyRequest, operationFor[verdict], decisionOf(id, note, seen))
  } catch (error) {
    if (!(error instanceof Problem) || !standing.has(error.code)) throw error
    return refuse(error.code, await approvals.read(caller, id, request as FastifyRequest))
  }
  return redirect(reply, `/approvals?tab=approvals&decided=${id}`)
}

const notRead = 'There is more than this page shows. Read the whole, and say so above. Nothing was decided yet.'
/** A handoff that another person, or time, was faster with. */
const decidedTooLate = new Set<ErrorCode>(['already_decided', 'cancelled', 'expired'])
const standing = new Set<string>(['already_decided', 'cancelled', 'expired', 'self_approval', 'content_changed'])

/** The content that the page showed: when it was passed, and its digest. Without a time that isn't known. */
function seenOf (form: Record<string, unknown> | undefined): SeenByPerson {
  const { created_at: at, digest } = form ?? {}
  return { createdAt: typeof at === 'string' ? Date.parse(at) : NaN, ...typeof digest === 'string' && { digest } }
}

export const operationFor = { approved: 'approve', rejected: 'reject' } as const
const digestShape = new RegExp(approveBody.properties.digest.pattern as string)

/** The form of a decision. A digest that no page shows matches no handoff. */
export function decisionOf (id: string, note: string, { createdAt, digest }: SeenByPerson): Wanted {
  const text = digest ? digestText(digest) : null
  const isOurs = text === null || digestShape.test(text)
  return { id, body: { ...note !== '' && { note }, digest: isOurs ? text : null }, createdAt: isOurs ? createdAt : NaN }
}

/** Why a note is refused, in plain words. */
export function faultOf (note: string, verdict: ApprovalVerdict): string | undefined {
  if (note === '' && verdict === 'rejected') return 'To reject, say why in the note. Nothing was decided yet.'
  const fault = faultOfNote(note)
  return fault === undefined ? undefined : `${fault} Nothing was decided yet.`
}
