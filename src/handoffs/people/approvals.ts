import { PayloadBroken, PayloadLocked, Problem, Unavailable } from '../../core/errors.ts'
import { isId, randomToken } from '../../core/ids.ts'
import { iso } from '../../core/iso.ts'
import { labelsMember } from '../../core/labels.ts'
import { isAddressed, personMembers, personWord, statusAt } from '../../core/model.ts'
import type { Caller, HandoffRecord, Status } from '../../core/model.ts'
import type {
  Approvals, ApprovalVerdict, InspectReply, SeenByPerson, Signed, WaitingHandoff
} from '../../store/approvals.ts'
import type { Handoffs, HandoffPlace } from '../../store/handoffs.ts'
import type { AgentTexts } from '../../store/replies.ts'
import type { ListPosition, Lists, Wanted } from '../../store/lists.ts'
import type { Reads, SharedRead } from '../../store/reads.ts'
import type { Seen } from '../../store/replies.ts'
import type { Requester } from '../../store/requester.ts'
import {
  agreedMembers, alreadyDecided, approvalText, attemptMembers, digestOf, digestText, membersText, payloadMembers,
  placeOf, refusal, scheduleMembers, spliceAnswer, termsOn
} from '../lifecycle/answers.ts'
import { withoutQuery } from '../lifecycle/callback.ts'
import { excerpt } from '../lists/excerpt.ts'
import { readCursor, writeCursor } from '../lists/lists.ts'
import type { DecisionSigner } from './signer.ts'
import { statusWithoutResult } from '../lists/histories.ts'

/** All of a handoff that required a person. The payload is the text of JSON members; null once it was freed. */
export type Inspection = Omit<Extract<InspectReply, { outcome: 'found' }>, 'outcome'> & { id: string }

/** The same for the page: with what agents said about its end, and whether the page can show its parent too. */
export interface ToRead extends Inspection { texts: AgentTexts | null, isParentShown: boolean }

/**
 * One entry of the list: the beginning of its task as JSON text, whether the task is longer, the digest of all that was
 * passed, how many bytes that has, and whether the beginning is all of it.
 */
interface Listed {
  id: string
  record: HandoffRecord
  task: string
  truncated: boolean
  digest: string
  size: number
  isWhole: boolean
  /** This replica doesn't have the key of its task, which is `null` then. */
  isLocked: boolean
}
/**
 * A part of the list, which may be empty, and the cursor of the next one, null at its end. By Redis’s clock it was
 * `now`.
 */
interface ListPart { items: Listed[], next: string | null, now: number }

/** What no script takes: its moment is long over. */
const nothingSigned: Signed = { at: 0, createdAt: 0, field: '', digest: '', signature: '-' }
/** How often a decision is signed anew before it is given up: a master that takes over may have another clock. */
const mostRounds = 3

/** The final states that agents give a reason for. */
const explained = new Set<Status>(['failed', 'declined', 'cancelled'])

/** What follows the task in a payload that has nothing else. */
const besideTask = payloadMembers.slice(1).map(([name, absent]) => `,"${name}":${absent}`).join('')

const freed = Buffer.from(payloadMembers.map(([name]) => `"${name}":null`).join())

/** Approvals, for the API and the pages alike. */
export class ApprovalService {
  readonly #approvals: Approvals
  readonly #lists: Lists
  readonly #handoffs: Handoffs
  readonly #reads: Reads
  readonly #signer: DecisionSigner | null

  constructor (
    approvals: Approvals, lists: Lists, handoffs: Handoffs, reads: Reads, signer: DecisionSigner | null
  ) {
    this.#approvals = approvals
    this.#lists = lists
    this.#handoffs = handoffs
    this.#reads = reads
    this.#signer = signer
  }

  /** The handoffs that wait for a person, oldest first. @param cursor `next` of the previous part */
  async list (
    tenant: string, cursor: string | undefined, limit: number, wanted: Pick<Wanted, 'inbox' | 'labels'> = {},
    requester?: Requester
  ): Promise<ListPart> {
    const from = cursor === undefined ? null : formerCursor(cursor) ?? readCursor(cursor, listName)
    const sought = { ...wanted, tenant, state: 'waiting' } as const
    const read = () => this.#lists.waiting(sought, from, limit)
    const { items, next, now } = await this.#reads.page(tenant, this.#lists.tagsOf(sought), read, requester)
    return { items: items.map(listed), next: next === null ? null : writeCursor(next, listName), now }
  }

  /** How many wait, among them for some seconds those that have expired. */
  count (tenant: string, requester?: Requester): Promise<number> {
    const wanted = { tenant, state: 'waiting' } as const
    return this.#reads.page(tenant, this.#lists.tagsOf(wanted), () => this.#lists.count(wanted), requester)
  }

  /** The channel for changes of a tenant's list. */
  listChannelOf (tenant: string): string {
    return this.#approvals.channelOf(tenant)
  }

  /** How a handoff stands, without its texts; null if there is none. */
  async stands (caller: Caller, id: string): Promise<Seen | null> {
    const reply = await this.#handoffs.status(placeOf(caller, id), 0, 0)
    if (reply.outcome === 'not_found') return null
    if (!isAddressed(caller, reply.record)) throw refusal({ outcome: 'not_addressee', seen: reply })
    return reply
  }

  /** The channel for changes of one handoff. */
  channelOf (caller: Caller, id: string): string {
    return this.#handoffs.channelOf(placeOf(caller, id))
  }

  /** The whole of one handoff. Reading it changes nothing. */
  inspect (caller: Caller, id: string, requester: Requester): Promise<Inspection> {
    return this.#inspect(caller, id, requester, false)
  }

  /** @param isForAsked also a handoff that needs no approval, if its catcher has asked people */
  async #inspect (caller: Caller, id: string, requester: Requester, isForAsked: boolean): Promise<Inspection> {
    const { found: reply, now = caller } = await this.#look(placeOf(caller, id), requester, true)
    if (reply.outcome === 'not_found') throw new Problem('not_found')
    if (!isAddressed(now, reply.record)) throw refusal({ outcome: 'not_addressee', seen: reply })
    const { approval, extra: { ask } } = reply.record
    if (approval === 'none' && !(isForAsked && ask?.of === 'person')) {
      throw refusal({ outcome: 'no_approval_required', seen: reply })
    }
    return { ...reply, id }
  }

  /** What a person sees and decides on is what its digest says. @param isAnswer whether it becomes the answer */
  #look (place: HandoffPlace, requester: Requester, isAnswer: boolean): Promise<SharedRead<InspectReply>> {
    const { tenant, id } = place
    return this.#reads.shared(`inspect ${tenant}:${id}`, place, requester, async maxBytes => {
      const reply = await this.#approvals.inspect(place, maxBytes)
      if (reply.outcome === 'found' && reply.record.approval !== 'none' && reply.payload !== null &&
        digestOf(reply.payload) !== reply.digest) {
        throw new PayloadBroken(`the digest of ${id} is of another content`)
      }
      return reply
    }, isAnswer)
  }

  /**
   * A handoff that people decide on, or are asked about, for its page. The read changes nothing. Agents' texts about
   * its end come from a second call, which is safe, since an end is final.
   */
  async read (caller: Caller, id: string, requester: Requester): Promise<ToRead> {
    const one = await this.#inspect(caller, id, requester, true)
    const { status, extra: { parent } } = one.record
    const look = async (wanted: string) => {
      const place = placeOf(caller, wanted)
      const { found: reply } = await statusWithoutResult(this.#reads, this.#handoffs, place, requester)
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
   * @param seen the handoff that the person saw: if the id has another one by now, the decision is refused. A member
   * that is left out isn't compared; a `createdAt` of NaN matches no handoff.
   * @returns the answer's JSON
   */
  async decide (
    caller: Caller, verdict: ApprovalVerdict, id: string, note: Buffer, seen: SeenByPerson, requester: Requester
  ): Promise<string> {
    for (let round = 0; round < mostRounds; round++) {
      const place = placeOf(caller, id)
      const signed = await this.#sign(caller, verdict, place, note, seen, requester)
      // Its own token each time: what an earlier round decided after all has another signature.
      const reply = await this.#approvals.decide(verdict, place, randomToken(), caller, seen, note, signed)
      if (reply.outcome === 'already_decided') throw alreadyDecided(reply)
      if (reply.outcome === 'decided') return decidedText(caller, verdict, id, { note, seen, at: reply.at, signed })
      if (reply.outcome !== 'outdated') throw refusal(reply)
      if (signed?.fault !== undefined) throw signed.fault
    }
    throw new Unavailable('a decision could not be signed in time')
  }

  /** @returns null where the decision isn't signed */
  async #sign (
    caller: Caller, verdict: ApprovalVerdict, place: HandoffPlace, note: Buffer, { digest }: SeenByPerson,
    requester: Requester
  ): Promise<Signed | null> {
    if (this.#signer === null) return null
    try {
      const { found } = await this.#look(place, requester, false)
      if (found.outcome === 'not_found') throw new Problem('not_found')
      const isSeen = found.payload !== null && (digest === undefined || digest === found.digest)
      // The script tells its refusals first, and takes nothing for that moment.
      if (!isSeen) return nothingSigned
      return this.#signer.sign(place, found, { caller, verdict, note, confirmed: digest !== undefined })
    } catch (fault) {
      if (!(fault instanceof PayloadLocked || fault instanceof PayloadBroken)) throw fault
      // Rejecting needs no text, and no agent relies on a signature for it.
      return verdict === 'rejected' && digest === undefined ? null : { ...nothingSigned, fault }
    }
  }
}

/** What was decided: how, when, and with which signature, if there is one. */
interface DecisionMade { note: Buffer, seen: SeenByPerson, at: number, signed: Signed | null }

function decidedText (
  caller: Caller, verdict: ApprovalVerdict, id: string, { note, seen, at, signed }: DecisionMade
): string {
  const digest = signed?.digest || seen.digest
  const approval = approvalText(verdict, {
    at,
    by: caller.agent,
    person: personMembers(personWord(caller)),
    note: note.toString(),
    ...digest !== undefined && { digest },
    ...signed !== null && { signature: signed.signature }
  })
  return `{"handoff_id":"${id}","status":"${verdict === 'approved' ? 'pending' : 'rejected'}","approval":${approval}}`
}

const listName = 'waiting'

/** A cursor of version 0.2.0: when the last one was passed, and its id. The version after this one may leave it out. */
function formerCursor (cursor: string): ListPosition | null {
  const [, score, id = ''] = /^(\d{1,15}) (\S+)$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  return isId(id) ? { score: Number(score), id, includes: false } : null
}

function listed ({ id, record, task, digest, size }: WaitingHandoff): Listed {
  const { text, truncated } = task === null ? { text: 'null', truncated: false } : excerpt(task)
  const isWhole = task !== null && !truncated && size === task.length + besideTask.length + '"task":'.length
  // What the list shows whole is decided on by the digest of that, whatever Redis says of it.
  const shown = isWhole ? digestOf(Buffer.from(`"task":${text}${besideTask}`)) : digest
  return { id, record, task: text, truncated, digest: shown, size, isWhole, isLocked: task === null }
}

/** The list's JSON. The beginning of each task is the text that was passed. */
export function listText ({ items, next }: ListPart): string {
  const parts = items.map(({ id, record, task, truncated, isLocked }) =>
    `{"handoff_id":"${id}","task":${task},${truncated ? '"task_truncated":true,' : ''}` +
    `"created_at":"${iso(
      record.createdAt
    )}","expires_at":"${iso(record.expiresAt)}","passed_by":"${record.passedBy}"${membersText({ ...termsOn('approvals', record.extra), ...scheduleMembers(record) })}${labelsMember(record.extra.labels)}${isLocked ? ',"locked":true' : ''}}`)
  return `{"items":[${parts.join(',')}],"next_cursor":${JSON.stringify(next)}}`
}

/**
 * A handoff's JSON, with its payload and schema as they were passed.
 * @param urls the member with those of its files (`HandoffFiles.urls`)
 */
export function inspectionText (
  { id, now, record, decision, payload, digest, schema, callback }: Inspection, urls: string
): Buffer {
  const more = {
    ...agreedMembers(record),
    ...callback !== null && {
      callback: { url: withoutQuery(callback.url), result: record.extra.callback?.withResult === true }
    },
    digest: digestText(digest),
    // Who checks a signature needs to know that it may be of an earlier attempt.
    ...decision?.signature !== undefined && attemptMembers(record),
    ...scheduleMembers(record)
  }
  return spliceAnswer(`{"handoff_id":"${id}","status":"${statusAt(record, now)}",`, payload ?? freed,
    `,"created_at":"${iso(
      record.createdAt
    )}","expires_at":"${iso(record.expiresAt)}","passed_by":"${record.passedBy}",` +
    `"approval":${approvalText(record.approval, decision)}${membersText(more)}${labelsMember(record.extra.labels)}${schema === null
      ? ''
      : `,"result_schema":${schema}`}${urls}}`)
}
