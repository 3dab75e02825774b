import { setImmediate } from 'node:timers/promises'
import type { Labels } from '../../core/labels.ts'
import { isAddressed } from '../../core/model.ts'
import type { Caller, HandoffRecord } from '../../core/model.ts'
import { Shared } from '../../core/shared.ts'
import type { Seen } from '../../store/replies.ts'
import type { Requester } from '../../store/requester.ts'
import type { ApprovalService } from './approvals.ts'
import type { DecidedLately, DecisionService } from './decisions.ts'
import type { AskService } from './asks.ts'
import { excerpt } from '../lists/excerpt.ts'
import { readCursor, writeCursor } from '../lists/lists.ts'
import type { WaitOptions, Waiter } from '../wait/waiter.ts'

/** What waits for people of a tenant, in two lists: questions for their answer, and handoffs for their approval. */

/** Which of the two. */
export type WaitingKind = 'questions' | 'approvals'

/**
 * One entry: since when it waits and until when, and the beginning of the task or the question as JSON text. Of what
 * waits for approval, `digest` is that of all that was passed, `size` how many bytes that has, and `isWhole` whether
 * the beginning is all of it.
 */
export interface PeopleItem {
  kind: WaitingKind
  id: string
  since: number
  until: number
  record: HandoffRecord
  text: string
  digest: string
  size: number
  isWhole: boolean
  /** This replica doesn't have the key of the text, which is `null` then. */
  isLocked: boolean
}

/** How many there are, or at least so many. */
export interface Count { count: number, areMore: boolean }

/**
 * A part of one list, which may be empty, the cursor of the next part (null at its end), and how many are in each.
 * `isSearch`: it was looked for among the first of each, and `isPart` whether more wait than were looked at. By Redis’s
 * clock it was `now`.
 */
export interface PeopleList {
  kind: WaitingKind
  items: PeopleItem[]
  next: string | null
  counts: Record<WaitingKind, Count>
  isSearch: boolean
  isPart: boolean
  /** The last decisions, the latest first; only in the first part of an unfiltered list of approvals. */
  decided: DecidedLately[]
  now: number
}

export interface WantedByPeople {
  /** By default questions where there are any: agents stand still until they are answered. */
  kind?: WaitingKind | undefined
  inbox?: string | undefined
  labels?: Labels | undefined
  /** A part of the text, in any case. */
  text?: string | undefined
  /** By default the oldest first; else those that expire first. */
  order?: 'expiry' | undefined
  /** Of a key that is held to inboxes: nothing else is shown, or counted. */
  heldTo?: ReadonlySet<string> | undefined
}

/** How many of the last decisions there are. */
const decidedListed = 10
/** How often one tenant's open pages get a new list at most, in milliseconds, however many handoffs come and go. */
const pagePace = 1000
/** The same for searches, which read all of a list. */
const searchPace = 3000
/** Where no channel has all questions: after so many milliseconds a page that stays open looks again. */
const looksAgain = 3000
/** How many of each list are searched, and how many of them one call reads. */
const searched = 10_000
const aCall = 1000

/** The first of a list, in order, and whether there are more. */
interface First { items: PeopleItem[], areMore: boolean, now: number }

export class PeopleService {
  readonly #approvals: ApprovalService
  readonly #asks: AskService
  readonly #decisions: DecisionService
  readonly #waiter: Waiter
  readonly #pages = new Shared<PeopleList>({ keptFor: pagePace })
  readonly #searches = new Shared<First>({ keptFor: searchPace })

  constructor (approvals: ApprovalService, asks: AskService, decisions: DecisionService, waiter: Waiter) {
    this.#approvals = approvals
    this.#asks = asks
    this.#decisions = decisions
    this.#waiter = waiter
  }

  /** @param cursor `next` of the previous part */
  async list (
    caller: Caller, cursor: string | undefined, limit: number, wanted: WantedByPeople = {}, requester?: Requester
  ): Promise<PeopleList> {
    const first = (kind: WaitingKind) => this.#first(caller, kind, requester)
    const own = { ...wanted, ...heldTo(caller) }
    return addressedTo(caller, await this.#list(caller, cursor, limit, own, first, requester))
  }

  /** The same, with entries that the caller may not read. @param first reads the first of a list */
  async #list (
    caller: Caller, cursor: string | undefined, limit: number, wanted: WantedByPeople,
    first: (kind: WaitingKind) => Promise<First>, requester?: Requester
  ): Promise<PeopleList> {
    const { kind, heldTo, ...narrowed } = wanted
    const isSearch = Object.values(narrowed).some(value => value !== undefined)
    const lately = async () => await this.#decisions.latest(caller.tenant, decidedListed)
    if (isSearch || heldTo !== undefined) {
      const found = await this.#search(cursor, limit, wanted, first)
      const hasDecided = !isSearch && cursor === undefined && found.kind === 'approvals'
      return hasDecided ? { ...found, decided: await lately() } : found
    }
    const asks = await this.#asks.list(caller, {}, undefined, limit, requester)
    const shown = kind ?? (asks.items.length > 0 ? 'questions' : 'approvals')
    const isOfQuestions = shown === 'questions'
    const [approvals, later, decided] = await Promise.all([
      this.#approvals.list(caller.tenant, isOfQuestions ? undefined : cursor, isOfQuestions ? 1 : limit, {}, requester),
      isOfQuestions && cursor !== undefined ? this.#asks.list(caller, {}, cursor, limit, requester) : asks,
      isOfQuestions || cursor !== undefined ? [] : lately()
    ])
    // If all were read, they are counted: expired ones are left out.
    const isAll = approvals.next === null && (isOfQuestions || cursor === undefined)
    const [ofQuestions, ofApprovals] = await Promise.all([
      asks.next === null ? asks.items.length : this.#asks.count(caller.tenant, requester),
      isAll ? approvals.items.length : this.#approvals.count(caller.tenant, requester)
    ])
    return {
      kind: shown,
      items: isOfQuestions ? later.items.map(questionItem) : approvals.items.map(approvalItem),
      next: isOfQuestions ? later.next === null ? null : writeCursor(later.next, 'asked') : approvals.next,
      counts: {
        questions: { count: ofQuestions, areMore: false },
        approvals: { count: ofApprovals, areMore: false }
      },
      isSearch: false,
      isPart: false,
      decided,
      now: Math.max(approvals.now, later.now)
    }
  }

  /** Looks through the first of both lists. */
  async #search (
    cursor: string | undefined, limit: number, wanted: WantedByPeople, first: (kind: WaitingKind) => Promise<First>
  ): Promise<PeopleList> {
    const [questions, approvals] = await Promise.all([first('questions'), first('approvals')])
    const found = {
      questions: await matching(questions.items, wanted),
      approvals: await matching(approvals.items, wanted)
    }
    const kind = wanted.kind ?? (found.questions.length > 0 ? 'questions' : 'approvals')
    const place = ({ since, until }: PeopleItem) => wanted.order === 'expiry' ? until : since
    const inOrder = found[kind].sort((one, other) => place(one) - place(other) || (one.id < other.id ? -1 : 1))
    const from = cursor === undefined ? null : readCursor(cursor, searchName)
    const left = from === null
      ? inOrder
      : inOrder.filter(one => place(one) > from.score || (place(one) === from.score && one.id > from.id))
    const items = left.slice(0, limit)
    const last = items.at(-1)
    return {
      kind,
      items,
      next: last === undefined || left.length <= limit
        ? null
        : writeCursor({ score: place(last), id: last.id, includes: false }, searchName),
      counts: {
        questions: { count: found.questions.length, areMore: questions.areMore },
        approvals: { count: found.approvals.length, areMore: approvals.areMore }
      },
      isSearch: true,
      isPart: kind === 'questions' ? questions.areMore : approvals.areMore,
      decided: [],
      now: Math.max(questions.now, approvals.now)
    }
  }

  /** Reads the first of a list, in calls between which others get in. */
  async #first (caller: Caller, kind: WaitingKind, requester?: Requester): Promise<First> {
    const items: PeopleItem[] = []
    let cursor: string | undefined
    for (;;) {
      const part = kind === 'questions'
        ? await this.#questions(caller, cursor, requester)
        : await this.#handoffs(caller.tenant, cursor, requester)
      items.push(...part.items)
      if (part.next === null || items.length >= searched) {
        const areMore = part.next !== null || items.length > searched
        return { items: items.slice(0, searched), areMore, now: part.now }
      }
      cursor = part.next
    }
  }

  async #questions (caller: Caller, cursor: string | undefined, requester?: Requester) {
    const { items, next, now } = await this.#asks.list(caller, {}, cursor, aCall, requester)
    return { items: items.map(questionItem), next: next === null ? null : writeCursor(next, 'asked'), now }
  }

  async #handoffs (tenant: string, cursor: string | undefined, requester?: Requester) {
    const { items, next, now } = await this.#approvals.list(tenant, cursor, aCall, {}, requester)
    return { items: items.map(approvalItem), next, now }
  }

  /**
   * Answers with the list as soon as it is new to the requester: looks at once, then at each change. All requests that
   * watch the same tenant's list, narrowed alike, share one look.
   * @param isNew does this part differ from the requester's?
   */
  async watch (
    caller: Caller, limit: number, wanted: WantedByPeople, waiting: WaitOptions, isNew: (part: PeopleList) => boolean
  ): Promise<PeopleList> {
    const { tenant } = caller
    const asked = this.#asks.listChannelOf(tenant)
    const anyone = { ...caller, inboxes: null }
    const first = (kind: WaitingKind) =>
      this.#searches.next(JSON.stringify([tenant, kind]), () => this.#first(anyone, kind))
    const look = async () => {
      const { kind, inbox, labels, text, order } = wanted
      const held = heldTo(caller)
      const same = JSON.stringify([tenant, limit, kind, inbox, labels, text, order, [...held.heldTo ?? []].sort()])
      const own = { ...wanted, ...held }
      const part = await this.#pages.next(same, () => this.#list(anyone, undefined, limit, own, first))
      // The shared look may have taken a while, and the key or session may have ended meanwhile.
      return addressedTo(await waiting.requester.grant().authorise(), part)
    }
    const channels = [this.#approvals.listChannelOf(tenant), ...asked === null ? [] : [asked]]
    const rest = asked === null ? Math.min(looksAgain, waiting.milliseconds) : waiting.milliseconds
    return this.#waiter.waitOnSome(channels, waiting, look, part => isNew(part) ? null : rest)
  }

  /**
   * How a handoff stands, as soon as that is something else than a page shows of it; null if it is gone.
   * @param isOver is it something else?
   */
  async watchOne (
    caller: Caller, id: string, waiting: WaitOptions, isOver: (seen: Seen | null) => boolean
  ): Promise<Seen | null> {
    const look = (now = caller) => this.#approvals.stands(now, id)
    // Its end by time comes without a message.
    const left = (seen: Seen | null) => isOver(seen) ? null : looksAgain
    return this.#waiter.wait(this.#approvals.channelOf(caller, id), waiting, look, left)
  }
}

const searchName = 'people'

function approvalItem (
  { task, ...item }: Awaited<ReturnType<ApprovalService['list']>>['items'][number]
): PeopleItem {
  const { createdAt, expiresAt } = item.record
  return { ...item, kind: 'approvals', since: createdAt, until: expiresAt, text: task }
}

function questionItem (
  { id, score, record, texts }: Awaited<ReturnType<AskService['list']>>['items'][number]
): PeopleItem {
  const isLocked = texts.fault === null
  const text = texts.fault === null ? 'null' : excerpt(Buffer.from(texts.fault)).text
  const until = record.extra.ask!.expiresAt
  return { kind: 'questions', id, since: score, until, record, text, digest: '', size: 0, isWhole: false, isLocked }
}

/** Those that are wanted. Of ten thousand texts not all are looked through at a stretch. */
async function matching (
  items: readonly PeopleItem[], { inbox, labels = [], text, heldTo }: WantedByPeople
): Promise<PeopleItem[]> {
  const part = text === undefined ? '' : caseless(text)
  const found: PeopleItem[] = []
  for (const [at, item] of items.entries()) {
    if (at % aCall === aCall - 1) await setImmediate()
    const { to, labels: its = [] } = item.record.extra
    const isHers = heldTo === undefined || to === undefined || heldTo.has(to)
    const isNamed = isHers && (inbox === undefined || to === inbox) && labels.every(label => its.includes(label))
    const said = () => caseless(JSON.parse(item.text) as string | null ?? '')
    if (isNamed && (part === '' || said().includes(part))) found.push(item)
  }
  return found
}

/** The same for texts that differ in case alone, as in ß and SS, or in how a letter is composed. */
function caseless (text: string): string {
  return text.normalize('NFC').toLowerCase().toUpperCase()
}

function heldTo ({ inboxes }: Caller): Pick<WantedByPeople, 'heldTo'> {
  return inboxes === null ? {} : { heldTo: inboxes }
}

/** Without what is for other inboxes than those that the key is held to. */
function addressedTo (caller: Caller, { items, decided, ...part }: PeopleList): PeopleList {
  return {
    ...part,
    items: items.filter(({ record }) => isAddressed(caller, record)),
    decided: decided.filter(one => isAddressed(caller, one))
  }
}
