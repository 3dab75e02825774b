import { Problem, invalid } from '../core/errors.ts'
import { homeTag, isId, randomToken } from '../core/ids.ts'
import { labelsMember } from '../core/labels.ts'
import { statusAt } from '../core/model.ts'
import type { Caller, HandoffRecord, Status } from '../core/model.ts'
import { Pace } from '../core/time.ts'
import { isNarrow } from '../store/approvals.ts'
import type {
  Approvals, InspectReply, ListPlace, SeenByPerson, ApprovalVerdict, Waiting, WantedWaiting
} from '../store/approvals.ts'
import type { Handoffs, AgentTexts } from '../store/handoffs.ts'
import {
  agreedMembers, alreadyDecided, approvalText, digestText, iso, membersText, placeOf, refusal, spliceAnswer
} from './answers.ts'
import { excerpt } from './excerpt.ts'
import type { InTurn } from './lists.ts'
import type { WaitOptions, Waiter } from './waiter.ts'

/** All of a handoff that required a person. The payload is the text of JSON members; null once it was freed. */
export type Inspection = Omit<Extract<InspectReply, { outcome: 'found' }>, 'outcome'> & { id: string }

/** The same for the page: with what agents said about its end, and whether the page can show its parent too. */
export interface ToRead extends Inspection { texts: AgentTexts | null, isParentShown: boolean }

/** One entry of the list: the beginning of its task as JSON text, and whether the task is longer. */
export interface Listed { id: string, record: HandoffRecord, task: string, truncated: boolean }
/**
 * A part of the list, which may be empty; the cursor of the next part, null at the end of the list; and how many wait
 * in all. By Redis’s clock it was `now`.
 */
export interface ListPart { items: Listed[], next: string | null, count: number, now: number }

/** How often one tenant's open pages get a new list at most, in milliseconds, however many handoffs come and go. */
const pagePace = 1000
/**
 * How many calls one part may take. More than one is needed when expired handoffs that aren't swept yet come first in
 * the list.
 */
const callsAList = 10
/** The same for a part that has only some: each call is shorter, and takes its turn. */
const callsForSome = 32

/** The final states that agents give a reason for. */
const explained = new Set<Status>(['failed', 'declined', 'cancelled'])

const freed = Buffer.from('"task":null,"output":null,"context":null,"constraints":null')

/** What people see and decide, both through the API and on the page. */
export class ApprovalService {
  readonly #approvals: Approvals
  readonly #handoffs: Handoffs
  readonly #waiter: Waiter
  readonly #inTurn: InTurn
  readonly #pages = new Pace<ListPart>(pagePace)

  /** @param inTurn for lists of which only some are wanted: they look at much, so that others have to wait */
  constructor (approvals: Approvals, handoffs: Handoffs, waiter: Waiter, inTurn: InTurn) {
    this.#approvals = approvals
    this.#handoffs = handoffs
    this.#waiter = waiter
    this.#inTurn = inTurn
  }

  /** The handoffs that wait for a person, oldest first. @param cursor `next` of the previous part */
  async list (
    tenant: string, cursor: string | undefined, limit: number, wanted: WantedWaiting = {}
  ): Promise<ListPart> {
    const tag = homeTag(tenant)
    const isForSome = isNarrow(wanted)
    const maxCalls = isForSome ? callsForSome : callsAList
    let place = cursor === undefined ? null : readCursor(cursor)
    for (let calls = 1; ; calls++) {
      const read = () => this.#approvals.list(tenant, tag, place, limit, wanted)
      const { items, next, ...part } = await (isForSome ? this.#inTurn(tenant, read) : read())
      if (items.length > 0 || next === null || calls === maxCalls) {
        return { items: items.map(listed), next: next === null ? null : writeCursor(next), ...part }
      }
      place = next
    }
  }

  /**
   * Answers with the list as soon as it is new to the asker: looks at once, then at each change. Everyone who watches
   * the same tenant's list shares one look.
   * @param isNew does this part differ from what the asker has?
   */
  async watch (
    { tenant }: Caller, limit: number, waiting: WaitOptions, isNew: (part: ListPart) => boolean
  ): Promise<ListPart> {
    const channel = this.#approvals.channelOf(tenant, homeTag(tenant))
    const look = async () => {
      const part = await this.#pages.run(`${tenant} ${limit}`, () => this.list(tenant, undefined, limit))
      // The shared look may have taken a while, and the key or session may have ended meanwhile.
      await waiting.grant().authorise()
      return part
    }
    return this.#waiter.wait(channel, waiting, look, part => isNew(part) ? null : waiting.milliseconds)
  }

  /** The whole of one handoff. Reading it changes nothing. */
  async inspect (caller: Caller, id: string): Promise<Inspection> {
    const reply = await this.#approvals.inspect(placeOf(caller, id))
    if (reply.outcome === 'not_found') throw new Problem('not_found')
    if (reply.record.approval === 'none') throw refusal({ outcome: 'no_approval_required', seen: reply })
    return { ...reply, id }
  }

  /**
   * What the page shows of one handoff. Reading it changes nothing. What agents said about its end comes from a second
   * call: that is safe, since an end is final.
   */
  async read (caller: Caller, id: string): Promise<ToRead> {
    const one = await this.inspect(caller, id)
    const { status, extra: { parent } } = one.record
    const look = async (wanted: string) => {
      const reply = await this.#handoffs.status(placeOf(caller, wanted))
      return reply.outcome === 'found' ? reply : null
    }
    const [itself, itsParent] =
      await Promise.all([explained.has(status) ? look(id) : null, parent === undefined ? null : look(parent)])
    return {
      ...one, texts: itself?.texts ?? null, isParentShown: itsParent !== null && itsParent.record.approval !== 'none'
    }
  }

  /**
   * Approves or rejects a handoff. A decision is final.
   * @param note JSON text: a string or null
   * @param seen what the person decided on. The decision is refused if the id stands for another handoff by now. A
   * member that is left out isn't compared; a `createdAt` of NaN matches no handoff.
   * @returns the answer's JSON
   */
  async decide (
    caller: Caller, verdict: ApprovalVerdict, id: string, note: Buffer, seen: SeenByPerson
  ): Promise<string> {
    const reply = await this.#approvals.decide(verdict, placeOf(caller, id), randomToken(), caller.agent, seen, note)
    if (reply.outcome === 'already_decided') throw alreadyDecided(reply)
    if (reply.outcome !== 'decided') throw refusal(reply)
    const approval = approvalText(
      verdict,
      { at: reply.at, by: caller.agent, note: note.toString(), ...seen.digest !== undefined && { digest: seen.digest } }
    )
    return `{"handoff_id":"${id}","status":"${verdict === 'approved' ? 'pending' : 'rejected'}","approval":${approval}}`
  }
}

function listed ({ id, record, task }: Waiting): Listed {
  const { text, truncated } = excerpt(task)
  return { id, record, task: text, truncated }
}

/** The list's JSON. The beginning of each task is the text that was passed. */
export function listText ({ items, next }: ListPart): string {
  const parts = items.map(({ id, record, task, truncated }) =>
    `{"handoff_id":"${id}","task":${task},${truncated ? '"task_truncated":true,' : ''}` +
    `"created_at":"${iso(
      record.createdAt
    )}","expires_at":"${iso(record.expiresAt)}","passed_by":"${record.passedBy}"${membersText(availability(record))}${labelsMember(record.extra.labels)}}`)
  return `{"items":[${parts.join(',')}],"next_cursor":${JSON.stringify(next)}}`
}

/** One handoff's JSON, with its payload and schema as they were passed. */
export function inspectionText ({ id, now, record, decision, payload, digest, schema }: Inspection): Buffer {
  const more = { ...agreedMembers(record), digest: digestText(digest) }
  return spliceAnswer(`{"handoff_id":"${id}","status":"${statusAt(record, now)}",`, payload ?? freed,
    `,"created_at":"${iso(
      record.createdAt
    )}","expires_at":"${iso(record.expiresAt)}","passed_by":"${record.passedBy}",` +
    `"approval":${approvalText(record.approval, decision)}${membersText(more)}${labelsMember(record.extra.labels)}${schema === null
      ? ''
      : `,"result_schema":${schema}`}}`)
}

function availability ({ extra: { availableAt } }: HandoffRecord): { available_at?: string } {
  return availableAt === undefined ? {} : { available_at: iso(availableAt) }
}

function writeCursor ({ createdAt, id }: ListPlace): string {
  return Buffer.from(`${createdAt} ${id}`).toString('base64url')
}

/** A cursor is a position, not a permission: a made-up one shows nothing that the list doesn't show. */
function readCursor (cursor: string): ListPlace {
  const [, createdAt, id] = /^(\d{1,15}) (\S+)$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (id === undefined || !isId(id)) {
    throw invalid({ pointer: '/cursor', message: 'querystring: must be a next_cursor of this list' })
  }
  return { createdAt: Number(createdAt), id }
}
