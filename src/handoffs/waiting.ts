import { invalid } from '../core/errors.ts'
import type { Labels } from '../core/labels.ts'
import { isAddressed } from '../core/model.ts'
import type { Caller, HandoffRecord } from '../core/model.ts'
import { Shared } from '../core/shared.ts'
import { writeCursor as approvalsCursor } from './approvals.ts'
import type { ApprovalService, DecidedLately } from './approvals.ts'
import type { AskService } from './asks.ts'
import { excerpt } from './excerpt.ts'
import { writeCursor } from './lists.ts'
import type { Asker, WaitOptions, Waiter } from './waiter.ts'

/** What waits for people of a tenant: handoffs for their approval, and questions for their answer, in one list. */

/**
 * One entry: since when it waits, and the beginning of the task or the question as JSON text. Of what waits for
 * approval, `digest` is that of all that was passed, and `isWhole` whether the beginning is all of it.
 */
export interface WaitingItem {
  kind: 'approval' | 'question'
  id: string
  since: number
  record: HandoffRecord
  text: string
  digest: string
  isWhole: boolean
}

/**
 * A part of the list, which may be empty, and the cursor of the next part; null at its end. `approvals` is how many
 * handoffs wait for approval in all, and null in a part behind those; `questions` is how many this part read, and
 * `areMore` whether others follow. By Redis’s clock it was `now`.
 */
export interface WaitingList {
  items: WaitingItem[]
  next: string | null
  approvals: number | null
  questions: number
  areMore: boolean
  /** What was decided last, the latest first; only where the list begins, and shows all. */
  decided: DecidedLately[]
  now: number
}

export interface WantedByPeople {
  inbox?: string | undefined
  labels?: Labels | undefined
  /** By default both kinds. */
  only?: 'questions' | undefined
}

/** How many of the last decisions there are. */
const decidedListed = 10
/** How often one tenant's open pages get a new list at most, in milliseconds, however many handoffs come and go. */
const pagePace = 1000
/** Where no channel has all questions: after so many milliseconds a page that stays open looks again. */
const looksAgain = 3000

/** One of the two lists, as far as it was read: its cursor is '' before its start, and null at its end. */
interface Source { items: WaitingItem[], from: string, next: string | null, after (item: WaitingItem): string }

export class WaitingService {
  readonly #approvals: ApprovalService
  readonly #asks: AskService
  readonly #waiter: Waiter
  readonly #pages = new Shared<WaitingList>({ keptFor: pagePace })

  constructor (approvals: ApprovalService, asks: AskService, waiter: Waiter) {
    this.#approvals = approvals
    this.#asks = asks
    this.#waiter = waiter
  }

  /** The oldest first. @param cursor `next` of the previous part */
  async list (
    caller: Caller, cursor: string | undefined, limit: number, wanted: WantedByPeople = {}, asker?: Asker
  ): Promise<WaitingList> {
    return addressedTo(caller, await this.#list(caller, cursor, limit, wanted, asker))
  }

  /** The same with what the caller may not read. */
  async #list (
    caller: Caller, cursor: string | undefined, limit: number, wanted: WantedByPeople = {}, asker?: Asker
  ): Promise<WaitingList> {
    const [fromApprovals, fromAsks] = split(cursor)
    const isOfQuestions = wanted.only !== undefined
    const isAll = cursor === undefined && Object.values(wanted).every(value => value === undefined)
    const [decided, approvals, asks] = await Promise.all([
      isAll ? this.#approvals.decided(caller.tenant, decidedListed) : [],
      fromApprovals === null || isOfQuestions ? null : this.#handoffs(caller, fromApprovals, limit, wanted, asker),
      fromAsks === null ? null : this.#questions(caller, fromAsks, limit, wanted, asker)
    ])
    const sources = [approvals, asks]
    const items = merged(sources.filter(source => source !== null)).slice(0, limit)
    const [first, second] = sources.map(source => source === null ? null : nextOf(source, items))
    return {
      items,
      next: first === null && second === null ? null : `${first ?? '-'}.${second ?? '-'}`,
      approvals: approvals?.count ?? (isOfQuestions ? 0 : null),
      questions: asks?.items.length ?? 0,
      areMore: asks !== null && asks.next !== null,
      decided,
      now: Math.max(approvals?.now ?? 0, asks?.now ?? 0)
    }
  }

  async #handoffs (caller: Caller, from: string, limit: number, wanted: WantedByPeople, asker: Asker | undefined) {
    const page = await this.#approvals.list(caller.tenant, from === '' ? undefined : from, limit, wanted, asker)
    const { items, next, count, now } = page
    return {
      items: items.map(({ task, ...item }): WaitingItem =>
        ({ ...item, kind: 'approval', since: item.record.createdAt, text: task })),
      from,
      next,
      after: ({ since, id }: WaitingItem) => approvalsCursor({ createdAt: since, id }),
      // Where all were read, they are counted: what has expired is left out.
      count: from === '' && next === null ? items.length : Math.max(count, items.length),
      now
    }
  }

  async #questions (caller: Caller, from: string, limit: number, wanted: WantedByPeople, asker: Asker | undefined) {
    const page = await this.#asks.list(caller, wanted, from === '' ? undefined : from, limit, asker)
    return {
      items: page.items.map(({ id, score, record, texts }): WaitingItem => {
        const { text } = excerpt(Buffer.from(texts.fault!))
        return { kind: 'question', id, since: score, record, text, digest: '', isWhole: false }
      }),
      from,
      next: page.next === null ? null : writeCursor(page.next, 'asked'),
      after: ({ since, id }: WaitingItem) => writeCursor({ score: since, id, includes: false }, 'asked'),
      now: page.now
    }
  }

  /**
   * Answers with the list as soon as it is new to the asker: looks at once, then at each change. Everyone who watches
   * the same tenant's list, narrowed alike, shares one look.
   * @param isNew does this part differ from what the asker has?
   */
  async watch (
    caller: Caller, limit: number, wanted: WantedByPeople, waiting: WaitOptions, isNew: (part: WaitingList) => boolean
  ): Promise<WaitingList> {
    const { tenant } = caller
    const asked = this.#asks.listChannelOf(tenant)
    const look = async () => {
      const anyone = { ...caller, inboxes: null }
      const same = JSON.stringify([tenant, limit, wanted.inbox, wanted.labels, wanted.only])
      const part = await this.#pages.next(same, () => this.#list(anyone, undefined, limit, wanted))
      // The shared look may have taken a while, and the key or session may have ended meanwhile.
      return addressedTo(await waiting.asker.grant().authorise(), part)
    }
    const channels = [this.#approvals.listChannelOf(tenant), ...asked === null ? [] : [asked]]
    const rest = asked === null ? Math.min(looksAgain, waiting.milliseconds) : waiting.milliseconds
    return this.#waiter.waitOnSome(channels, waiting, look, part => isNew(part) ? null : rest)
  }
}

/** Without what is for other inboxes than those that the key is held to. */
function addressedTo (caller: Caller, { items, decided, ...part }: WaitingList): WaitingList {
  const isShown = ({ record }: { record: HandoffRecord }) => isAddressed(caller, record)
  return { ...part, items: items.filter(isShown), decided: decided.filter(isShown) }
}

/** What comes before all that wasn’t read, in order. A list that found nothing yet doesn’t hold up the other. */
function merged (sources: readonly Source[]): WaitingItem[] {
  const ends = sources.map(({ items, next }) => next === null ? Infinity : items.at(-1)?.since ?? Infinity)
  const upto = Math.min(...ends)
  return sources.flatMap(({ items }) => items).filter(({ since }) => since <= upto)
    .sort((one, other) => one.since - other.since)
}

/** Where to go on in one of the lists. @param shown what is shown of both */
function nextOf ({ items, from, next, after }: Source, shown: readonly WaitingItem[]): string | null {
  const last = items.findLast(item => shown.includes(item))
  if (last === items.at(-1)) return next
  return last === undefined ? from : after(last)
}

/** The cursors of both lists; '' at the start of one, null at its end. */
function split (cursor: string | undefined): [string | null, string | null] {
  if (cursor === undefined) return ['', '']
  const [, ...both] = /^([\w-]*)\.([\w-]*)$/.exec(cursor) ?? []
  if (both.length !== 2) throw invalid({ pointer: '/cursor', message: 'must be a next cursor of this list' })
  const [approvals, asks] = both.map(part => part === '-' ? null : part) as [string | null, string | null]
  return [approvals, asks]
}
