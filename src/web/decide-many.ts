import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { PayloadLocked, Problem, Unavailable, errorTable } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import type { ApprovalService } from '../handoffs/people/approvals.ts'
import type { PeopleItem, PeopleList, PeopleService } from '../handoffs/people/people.ts'
import type { OperationOutcome } from '../operations/operation.ts'
import type { ApprovalVerdict } from '../store/approvals.ts'
import { decisionOf, faultOf, operationFor } from './approvals.ts'
import { filtersOf, listed } from './approvals-list.ts'
import { form, noteOf, sentAgain } from './notes.ts'
import { perform } from './perform.ts'
import type { Performing } from './perform.ts'
import { show } from './session.ts'
import { boxOf, mostTogether, readBox, resultPage } from './views/decide-many.ts'
import type { Chosen, OneResult } from './views/decide-many.ts'
import { listPage } from './views/list.ts'
import { addressOf } from './views/list-filters.ts'

interface DecideMany { Body: Record<string, unknown> | undefined }

interface ManyServices extends Performing { approvals: ApprovalService, forPeople: PeopleService }

/**
 * Several decisions with one form of the list. Each is for the content that the list showed, as one on the handoff's
 * page is, and stands or is refused by itself.
 */
export function manyRoutes (app: FastifyInstance, services: ManyServices): void {
  const decideAs = (verdict: ApprovalVerdict | undefined) => async (
    sent: FastifyRequest<DecideMany>, reply: FastifyReply
  ) => {
    const request = sent as FastifyRequest
    const { caller } = request
    const body = sent.body ?? {}
    const cursor = typeof body.cursor === 'string' ? body.cursor : undefined
    const { filters, wanted } = filtersOf({ ...body, tab: 'approvals' })
    const boxes = [...new Set([body.item ?? []].flat().map(String))]
    const chosen = boxes.map(readBox)
    const note = noteOf(body)
    const part = await services.forPeople.list(caller, cursor, listed, wanted, request)
    const ofSession = request.isSentAgain ? `${sentAgain} Nothing was decided yet.` : undefined
    const ofVerdict = verdict === undefined ? 'Press Approve or Reject. Nothing was decided yet.' : undefined
    const ofBoxes = ofSession ?? ofVerdict ?? faultOfBoxes(chosen)
    const problem = ofBoxes ?? faultOf(note, verdict!)
    if (verdict === undefined || problem !== undefined) {
      const isOfNote = ofBoxes === undefined
      const draft = { chosen: new Set(boxes), note, problem: problem + missing(boxes, part), isOfNote }
      return show(reply, request.isSentAgain ? 200 : 400, listPage({ caller, part, flash: '', cursor, filters, draft }))
    }
    const inList = new Map(part.items.map(item => [boxOf(item), item]))
    const results = await Promise.all((chosen as Chosen[]).map(async (one, at): Promise<Outcome & OneResult> => {
      const item = inList.get(boxes[at]!)
      const unread = item === undefined ? await unreadNow(services, request, one) : unreadOf(item)
      return { ...unread ?? await decideOne(services, request, verdict, one, note), id: one.id, text: item?.text }
    }))
    for (const { code } of results) if (code !== undefined) services.refused(code)
    const moved = results.flatMap(({ ran }) => ran?.moved ?? [])
    request.moved = { to: moved.flatMap(({ to }) => to), ids: moved.flatMap(({ ids = [] }) => ids) }
    const failed = results.filter(({ error }) => error !== undefined)
    // Where others stand, the page says of which it isn't known. A fault of the service is never only that.
    const fault = failed.find(({ error }) => !(error instanceof Unavailable) || failed.length === results.length)
    if (fault !== undefined) throw fault.error
    const code = results.find(({ code }) => code !== undefined)?.code
    const status = moved.length > 0 ? 200 : code === undefined ? 400 : errorTable[code].status
    return show(reply, status, resultPage(caller, verdict, results, addressOf(filters, cursor)))
  }
  app.post<DecideMany>('/approve', form, decideAs('approved'))
  app.post<DecideMany>('/reject', form, decideAs('rejected'))
  // Enter on a box comes here.
  app.post<DecideMany>('/list', form, decideAs(undefined))
}

function faultOfBoxes (chosen: ReadonlyArray<Chosen | undefined>): string | undefined {
  if (chosen.length === 0) return 'Nothing is ticked. Tick what you want to decide on. Nothing was decided yet.'
  if (chosen.length > listed) return `At most ${listed} can be decided on together. Nothing was decided yet.`
  return chosen.includes(undefined) ? 'This did not come from this page. Nothing was decided yet.' : undefined
}

/** The words for ticked boxes that the list doesn't have any more. */
function missing (boxes: readonly string[], { items }: PeopleList): string {
  const there = new Set(items.map(boxOf))
  const count = boxes.filter(box => !there.has(box)).length
  if (count === 0) return ''
  return ` ${count} of what you ticked ${count === 1 ? 'isn’t' : 'aren’t'} in the list any more.`
}

interface Outcome extends Omit<OneResult, 'id' | 'text'> { ran?: OperationOutcome, code?: ErrorCode, error?: unknown }

const lockedOutcome: Outcome = { outcome: 'locked', code: 'payload_locked' }

/** Why a person can't have read it in the list; undefined if they can. */
function unreadOf ({ size, isLocked }: PeopleItem): Outcome | undefined {
  return isLocked ? lockedOutcome : beyondList(size)
}

function beyondList (size: number): Outcome | undefined {
  return size > mostTogether ? { outcome: 'large' } : undefined
}

/** Of what the list doesn't have any more. What can't be read else is refused, or not, by the decision itself. */
async function unreadNow (
  { approvals }: ManyServices, request: FastifyRequest, { id }: Chosen
): Promise<Outcome | undefined> {
  try {
    const { payload } = await approvals.inspect(request.caller, id, request)
    return beyondList(payload?.length ?? 0)
  } catch (error) {
    return error instanceof PayloadLocked ? lockedOutcome : undefined
  }
}

async function decideOne (
  services: ManyServices, request: FastifyRequest, verdict: ApprovalVerdict, { id, ...seen }: Chosen, note: string
): Promise<Outcome> {
  try {
    const ran = await perform(services, request, operationFor[verdict], decisionOf(id, note, seen))
    return { outcome: 'decided', ran }
  } catch (error) {
    const outcome = error instanceof Problem ? outcomes[error.code] : undefined
    if (!(error instanceof Problem) || outcome === undefined) return { outcome: 'unknown', error }
    return { code: error.code, outcome, ...error.more.members as Pick<OneResult, 'approval'> }
  }
}

const outcomes: Partial<Record<ErrorCode, OneResult['outcome']>> = {
  already_decided: 'already_decided',
  cancelled: 'cancelled',
  expired: 'expired',
  self_approval: 'self_approval',
  content_changed: 'another',
  no_approval_required: 'another',
  not_found: 'gone',
  payload_locked: 'locked'
}
