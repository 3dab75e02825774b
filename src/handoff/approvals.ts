import { Problem, invalid } from '../errors.ts'
import type { Approvals, ListPlace, Verdict, Waiting } from '../store/approvals.ts'
import { alreadyDecided, approvalText, iso, placeOf, refusal } from './answers.ts'
import { statusAt } from '../model.ts'
import type { Caller, Decision, HandoffRecord } from '../model.ts'
import { excerpt } from './excerpt.ts'
import { homeTag, isId, randomToken } from './id.ts'
import { Pace } from './pace.ts'
import { spliceAnswer } from './payload.ts'
import type { WaitOptions, Waiter } from './waiter.ts'

/** What there is to see of a handoff that asked for a person; the payload as JSON members, null once freed. */
export interface Inspection { id: string, now: number, record: HandoffRecord, decision: Decision | null, payload: Buffer | null }

/** One of the list: the beginning of its task as JSON text, and whether there is more of it. */
export interface Listed { id: string, record: HandoffRecord, task: string, truncated: boolean }
/** A part of the list, perhaps an empty one, and where the next begins; null at its end. */
export interface ListPart { items: Listed[], next: string | null }

/** How often the open pages of one tenant are given a new list, in milliseconds, however many handoffs come and go. */
const pagePace = 1000
/** How many calls look for something to list, where what is over and not swept yet lies before it. */
const callsAList = 10

const freed = Buffer.from('"task":null,"output":null,"context":null,"constraints":null')

/** What people see and decide: for agents' programs and for the page alike. */
export class ApprovalService {
  readonly #approvals: Approvals
  readonly #waiter: Waiter
  readonly #pages = new Pace<ListPart>(pagePace)

  constructor (approvals: Approvals, waiter: Waiter) {
    this.#approvals = approvals
    this.#waiter = waiter
  }

  /** What waits, oldest first. @param cursor `next` of the part before */
  async list (tenant: string, cursor: string | undefined, limit: number): Promise<ListPart> {
    const tag = homeTag(tenant)
    let place = cursor === undefined ? null : readCursor(cursor)
    for (let calls = 1; ; calls++) {
      const { items, next } = await this.#approvals.list(tenant, tag, place, limit)
      if (items.length > 0 || next === null || calls === callsAList) {
        return { items: items.map(listed), next: next === null ? null : writeCursor(next) }
      }
      place = next
    }
  }

  /**
   * Looks at the list at once and then, while it is as the asker knows it, when it has changed: all who watch a tenant's share one look.
   * @param isNew is this worth an answer?
   */
  async watch ({ tenant }: Caller, limit: number, waiting: WaitOptions, isNew: (part: ListPart) => boolean): Promise<ListPart> {
    const channel = this.#approvals.channelOf(tenant, homeTag(tenant))
    const look = async () => {
      const part = await this.#pages.run(`${tenant} ${limit}`, () => this.list(tenant, undefined, limit))
      // The shared look may have been waited for, and what let this one in may have ended meanwhile.
      await waiting.grant().authorise()
      return part
    }
    return this.#waiter.wait(channel, waiting, look, part => isNew(part) ? null : waiting.milliseconds)
  }

  /** The whole of one; reading it changes nothing. */
  async inspect (caller: Caller, id: string): Promise<Inspection> {
    const reply = await this.#approvals.inspect(placeOf(caller, id))
    if (reply.outcome === 'not_found') throw new Problem('not_found')
    if (reply.record.approval === 'none') throw new Problem('no_approval_required')
    return { id, ...reply }
  }

  /**
   * Decides, once and for all.
   * @param note JSON text: a string or null
   * @param seen what was decided on, by when it was passed (ms): it is refused where the id stands for another one by now. NaN, where
   * that can't be told, is another than any; undefined asks for whatever is there.
   * @returns the answer's JSON
   */
  async decide (caller: Caller, verdict: Verdict, id: string, note: Buffer, seen?: number): Promise<string> {
    const reply = await this.#approvals.decide(verdict, placeOf(caller, id), randomToken(), caller.agent, seen, note)
    if (reply.outcome === 'already_decided') throw alreadyDecided(reply.record, reply.now, reply.decision)
    if (reply.outcome !== 'decided') throw refusal(reply.outcome)
    const approval = approvalText(verdict, { at: reply.at, by: caller.agent, note: note.toString() })
    return `{"handoff_id":"${id}","status":"${verdict === 'approved' ? 'pending' : 'rejected'}","approval":${approval}}`
  }
}

function listed ({ id, record, task }: Waiting): Listed {
  const { text, truncated } = excerpt(task)
  return { id, record, task: text, truncated }
}

/** The list's JSON; a task's text stays as it was passed, as far as it goes. */
export function listText ({ items, next }: ListPart): string {
  const parts = items.map(({ id, record, task, truncated }) => `{"handoff_id":"${id}","task":${task},${truncated ? '"task_truncated":true,' : ''}` +
    `"created_at":"${iso(record.createdAt)}","expires_at":"${iso(record.expiresAt)}","passed_by":"${record.passedBy}"}`)
  return `{"items":[${parts.join(',')}],"next_cursor":${JSON.stringify(next)}}`
}

/** One handoff's JSON, its payload as it was passed. */
export function inspectionText ({ id, now, record, decision, payload }: Inspection): Buffer {
  return spliceAnswer(`{"handoff_id":"${id}","status":"${statusAt(record, now)}",`, payload ?? freed,
    `,"created_at":"${iso(record.createdAt)}","expires_at":"${iso(record.expiresAt)}","passed_by":"${record.passedBy}",` +
    `"approval":${approvalText(record.approval, decision)}}`)
}

function writeCursor ({ createdAt, id }: ListPlace): string {
  return Buffer.from(`${createdAt} ${id}`).toString('base64url')
}

/** A cursor says a place, not a right: one that was made up shows nothing that the list doesn't. */
function readCursor (cursor: string): ListPlace {
  const [, createdAt, id] = /^(\d{1,15}) (\S+)$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (id === undefined || !isId(id)) throw invalid({ pointer: '/cursor', message: 'querystring: must be a next_cursor of this list' })
  return { createdAt: Number(createdAt), id }
}
