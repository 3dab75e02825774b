import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Problem, errorTable } from '../core/errors.ts'
import type { ErrorCode, Fault } from '../core/errors.ts'
import { askAt } from '../core/model.ts'
import type { Caller } from '../core/model.ts'
import type { ApprovalService, ToRead } from '../handoffs/people/approvals.ts'
import type { AskService, Found } from '../handoffs/people/asks.ts'
import { answerOf, faultsAt, typedIn, withRow } from './answer-form.ts'
import type { Faults } from './answer-form.ts'
import { formOf } from './answer-schema.ts'
import { faultOfNote, form, noteOf } from './notes.ts'
import { perform } from './perform.ts'
import type { Performing } from './perform.ts'
import { redirect, show } from './session.ts'
import { contents } from './views/content.ts'
import type { ShownAs } from './views/content.ts'
import { handoffPage } from './views/handoff.ts'
import { handoffView, questionPage, questionView } from './views/question.ts'
import type { QuestionPage } from './views/question.ts'

export interface Questions { approvals: ApprovalService, asks: AskService }

/** A handoff with what its catcher asks people; `found` is null if that is nothing. */
interface OneAsked { one: ToRead, found: Found | null }

/** Reads a handoff for its page. The read changes nothing. */
export async function readOne ({ approvals, asks }: Questions, request: FastifyRequest, id: string): Promise<OneAsked> {
  const { caller } = request
  const one = await approvals.read(caller, id, request)
  const found = one.record.extra.ask?.of === 'person' ? await asks.find(caller, id, request) : null
  return { one, found: found?.record.extra.ask?.of === 'person' ? found : null }
}

/** The page of a handoff: its latest question to people; without one, the decision on the handoff. */
export function pageOf (
  { caller }: FastifyRequest, { one, found }: OneAsked, more: Omit<QuestionPage, 'caller' | 'one' | 'found'> = {}
): string {
  return found === null ? handoffPage(caller, one, { as: more.as }) : questionPage({ caller, one, found, ...more })
}

/** What there is to read on that page, or one part of it. */
export function insideOf (caller: Caller, { one, found }: OneAsked, as: ShownAs, of: unknown): string {
  if (found === null || of === 'handoff') return contents(one, as)
  return questionView(one.id, found, as) + (of === 'question' ? '' : handoffView(caller, one, as))
}

interface Answer { Params: { id: string }, Body: Record<string, unknown> | undefined }

export function questionRoutes (app: FastifyInstance, services: Questions & Performing): void {
  const { refused } = services
  app.post<Answer>('/:id/answer', form, async (sent, reply) => {
    const { id } = sent.params
    const request = sent as FastifyRequest
    const body = sent.body ?? {}
    const refuse = async (code: ErrorCode) => {
      refused(code)
      const isAnother = code === 'content_changed' || code === 'not_asked'
      const more = { isAnother, isLate: answeredTooLate.has(code) }
      return show(reply, errorTable[code].status, pageOf(request, await readOne(services, request, id), more))
    }
    const { one, found } = await readOne(services, request, id)
    if (found === null) return refuse('not_asked')
    const ask = found.record.extra.ask!
    if (ask.id !== body.ask_id) return refuse('content_changed')
    const { fields } = formOf(found.texts.schema)
    const typed = typedIn(fields, body)
    const { answer, faults } = answerOf(fields, typed)
    const note = noteOf(body)
    const noteFault = faultOfNote(note)
    const again = (status: number, faults: Faults) =>
      show(reply, status, pageOf(request, { one, found }, { draft: { typed, note, faults, noteFault } }))
    const state = askAt(ask, found.record, found.now)
    if (request.isSentAgain && state === 'open') {
      const draft = { typed, note, faults: new Map(), isSentAgain: true }
      return show(reply, 200, pageOf(request, { one, found }, { draft }))
    }
    const wider = fields.find(({ key, kind }) => kind === 'rows' && key === body.add)
    if (wider !== undefined && state === 'open') {
      const draft = { typed: withRow(typed, wider.key), note, faults: new Map(), added: wider.key }
      return show(reply, 200, pageOf(request, { one, found }, { draft }))
    }
    // A question that can't be answered any more says so, whatever was typed.
    if (faults.size > 0 || noteFault !== undefined) return state === 'open' ? again(400, faults) : refuse(over[state])
    try {
      const head = JSON.stringify({ ask_id: ask.id, ...note !== '' && { note } }).slice(0, -1)
      const body = Buffer.concat([Buffer.from(`${head},"answer":`), answer, Buffer.from('}')])
      await perform(services, request, 'answer', { id, body })
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      const { code } = error
      if (code === 'result_invalid' || code === 'result_schema_too_slow') refused(code)
      const errors = (error.more.members?.errors ?? []) as Fault[]
      if (code === 'result_invalid') return again(422, faultsAt(fields, typed, errors))
      if (code === 'result_schema_too_slow') return again(422, new Map([['', tooSlow]]))
      if (!standing.has(code)) throw error
      return refuse(code)
    }
    return redirect(reply, `/approvals?answered=${id}`)
  })
}

/** A question that another person, or time, was faster with. */
const answeredTooLate = new Set<ErrorCode>(['already_answered', 'expired', 'withdrawn'])
const tooSlow = 'It takes too long to check this answer. Send a shorter one.'
const over = { answered: 'already_answered', expired: 'expired', withdrawn: 'withdrawn' } as const
const standing = new Set<string>([
  'content_changed', 'not_asked', 'already_answered', 'expired', 'withdrawn', 'self_approval'
])
