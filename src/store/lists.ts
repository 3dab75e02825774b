import { homeTag, inboxTag } from '../core/ids.ts'
import type { Asked, Decision, HandoffRecord, Status } from '../core/model.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import { digest } from './api-keys.ts'
import { parseProgress, textOf } from './handoffs.ts'
import type { AgentTexts } from './handoffs.ts'
import { handoffOfMember, memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import { parseDecision, parseRecord, tagged } from './replies.ts'

/** What is listed, and what must be true of it. Times in milliseconds. */
export interface Wanted {
  tenant: string
  state: 'live' | 'failed' | 'asked'
  /** Of what is asked: whom. Left out: a person. */
  of?: Asked | undefined
  /** Of what failed: the earliest end first, not the latest. */
  oldestFirst?: boolean
  inbox?: string | undefined
  passedBy?: string | undefined
  caughtBy?: string | undefined
  /** Each `name:value`. */
  labels?: readonly string[] | undefined
  statuses?: readonly Status[] | undefined
  errorCode?: string | undefined
  /** Of what failed: the bounds of its end, inclusive and exclusive. */
  since?: number | undefined
  until?: number | undefined
}

/**
 * A place in the list: a score of the sorted set, and an id. `includes`: whether that handoff itself is still to come.
 * The id may be empty or `~`, which are before and after all ids: a read ended there, among other tenants' handoffs.
 */
export interface ListPosition { score: number, id: string, includes: boolean }

/**
 * A listed handoff. `texts.fault` is the question, where those are listed that have one. The task is the beginning of a
 * JSON string; null if it wasn't asked for, or is gone.
 */
export interface ListedHandoff {
  id: string
  score: number
  record: HandoffRecord
  decision: Decision | null
  texts: AgentTexts
  task: Buffer | null
}

/** A page of the list, perhaps empty, and where to go on; null at its end. By Redis’s clock it was `now`. */
export interface ListedPage { items: ListedHandoff[], next: ListPosition | null, now: number }

/** How far one of the merged lists was read: to `at`; null before the start. */
interface Progress {
  readonly tag: string
  readonly key: string
  at: ListPosition | null
  isAtEnd: boolean
  /** Is what comes next wanted, as far as it was looked at? */
  isWanted: boolean
}

/** How long the place where a search ended is kept, in milliseconds. */
const searchKept = 60_000
/** How many calls are under way at once: so others' calls get in between. */
const callsAtOnce = { oneRedis: 2, cluster: 64 }
/** How many lists one call reads where one Redis has them all: of many that are searched, and of few. */
const listsACall = { many: 64, few: 8 }
/** How many members one call looks at, over all its lists: if it reads their records, and if it passes them by. */
const looksACall = { reading: 128, passing: 1024 }
/**
 * How many rounds of calls a page may take, at how many of the tenant's handoffs it may look in all, and how much of
 * agents' texts it may read: it ends after the calls that read more. What other tenants have counts apart, in
 * `passes`, and is far from any of these limits: so a page ends no sooner because of it.
 */
const pageLimits = { rounds: 8, looks: 40_000, texts: 2 * 1024 * 1024, passes: 4_000_000 }

/**
 * The lists of a tenant's handoffs, merged from all partitions. What a page costs is bounded, in short calls: it may
 * find nothing, and then says where to go on.
 */
export class Lists {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #tags: readonly string[]
  readonly #isOneRedis: boolean

  /** @param isOneRedis whether one call may read lists of several partitions */
  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, tags: readonly string[], isOneRedis: boolean) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#tags = tags
    this.#isOneRedis = isOneRedis
  }

  /**
   * First each list says where its next wanted handoff is. Then those are read that can be among the first `limit`. An
   * item counts as soon as no list can have an earlier one.
   *
   * `due` has the handoffs of all tenants. What others have there is passed by at once, outside the rounds, until each
   * list that matters is at a handoff of this tenant: so it neither ends the page sooner nor shows in the cursor.
   * @param withTasks whether to read the beginnings of the tasks
   */
  async page (wanted: Wanted, from: ListPosition | null, limit: number, withTasks: boolean): Promise<ListedPage> {
    const order = orderOf(wanted)
    const lists = this.#listsOf(wanted, from)
    const { looks, texts, passes } = pageLimits
    const page: PageRead = { items: [], now: 0, looks, texts, passes }
    for (let round = 0; round < pageLimits.rounds && page.looks > 0 && page.texts > 0; round++) {
      // In order: what a call reads first is read however long it is. So each round reads what comes next on the page.
      const open = openInOrder(lists, order)
      const known = wantedOf(page.items, open).sort(order)
      // What comes after this one is not on the page.
      const last = known[limit - 1]
      const due = open.filter(({ at }) => round === 0 || last === undefined || order(at!, last) <= 0)
      if (due.length === 0) break
      await this.#readRound(page, this.#callsFor(due, wanted, limit), wanted, last?.score, withTasks)
      await this.#passOthers(page, lists, wanted, limit, withTasks)
    }
    return { ...cut(page.items.sort(order), lists, limit, order), now: page.now }
  }

  /** @param last the score of the last handoff that can be on the page, if it is known */
  async #readRound (
    page: PageRead, calls: readonly Call[][], wanted: Wanted, last: number | undefined, withTasks: boolean
  ): Promise<void> {
    for (const some of calls) {
      for (const reply of await Promise.all(some.map(call => this.#read(call, wanted, last, withTasks)))) {
        page.now = Math.max(page.now, reply.now)
        page.looks -= reply.looked
        page.passes -= reply.passed
        for (const { texts: { fault } } of reply.items) page.texts -= fault?.length ?? 0
        page.items.push(...reply.items)
      }
      if (page.texts <= 0) break
    }
  }

  /** Goes on in those lists that ended among other tenants' handoffs, as far as they come before what is known. */
  async #passOthers (
    page: PageRead, lists: readonly Progress[], wanted: Wanted, limit: number, withTasks: boolean
  ): Promise<void> {
    const order = orderOf(wanted)
    while (page.passes > 0) {
      const open = openInOrder(lists, order)
      const known = wantedOf(page.items, open).sort(order)
      // A page that has read enough goes on behind the first that it hasn't looked at.
      const isSpent = page.looks <= 0 || page.texts <= 0
      const end = isSpent ? open.find(({ at }) => !isAmongOthers(at))?.at : known[limit - 1]
      const among = open.filter(({ at }) => isAmongOthers(at) && (end == null || order(at!, end) <= 0))
      if (among.length === 0) return
      const calls = this.#callsFor(among, wanted, limit, isSpent ? 0 : undefined)
      await this.#readRound(page, calls, wanted, undefined, withTasks)
    }
  }

  /** Where this agent's last search for the same ended before the list did; null: it begins at the start. */
  async searchedTo (wanted: Wanted, agent: string): Promise<ListPosition | null> {
    const [, place] = await this.#search('search', wanted, agent)
    const [score, id, mark] = place === undefined ? [] : String(place).split(' ')
    return place === undefined ? null : { score: Number(score), id: id!, includes: mark === '1' }
  }

  /** Notes where a search ended, for a while; null: at the list's end. */
  async noteSearch (wanted: Wanted, agent: string, place: ListPosition | null): Promise<void> {
    const text = place === null ? '' : `${place.score} ${place.id} ${place.includes ? 1 : 0}`
    await this.#search('search-note', wanted, agent, [text, String(searchKept)])
  }

  #search (name: 'search' | 'search-note', wanted: Wanted, agent: string, texts: string[] = []) {
    const tag = homeTag(wanted.tenant)
    const { labels = [], statuses = [], ...others } = wanted
    const sought = [agent, [...labels].sort(), [...statuses].sort(), Object.entries(others).sort()]
    const key = this.#keyNames.search(tag, digest(JSON.stringify(sought)))
    return this.#lanes.call({ script: this.#scripts[name], tag, keys: [key], texts, decode: tagged })
  }

  /** The lists that may have what is wanted. */
  #listsOf ({ tenant, state, inbox, of = 'person' }: Wanted, from: ListPosition | null): Progress[] {
    const keyOf = (tag: string) => state !== 'failed'
      ? state === 'live' ? this.#keyNames.due(tag) : this.#keyNames.asks(tag, tenant, of)
      : inbox === undefined ? this.#keyNames.failed(tag, tenant) : this.#keyNames.failedIn(tag, tenant, inbox)
    return (tagsFor({ tenant, inbox }) ?? this.#tags)
      .map(tag => ({ tag, key: keyOf(tag), at: from, isAtEnd: false, isWanted: false }))
  }

  /**
   * Calls by turns of those that are under way at once. Where something wanted is known to be, items are read.
   * @param most at how many of the tenant's handoffs a list may look; left out: its share of a call
   */
  #callsFor (due: readonly Progress[], wanted: Wanted, limit: number, most = Infinity): Call[][] {
    const areMany = due.length > listsACall.few
    const isDear = isNarrow(wanted)
    // Among others' handoffs a call gets further in few lists than in many.
    const isShort = isDear || due.some(({ at }) => isAmongOthers(at))
    const size = this.#isOneRedis ? areMany && !isShort ? listsACall.many : listsACall.few : 1
    const searched = due.filter(({ isWanted }) => areMany && !isWanted)
    const read = due.filter(({ isWanted }) => !areMany || isWanted)
    const { reading, passing } = looksACall
    const calls = [
      ...inGroups(searched, size).map(lists => ({ lists, limit: 0, of: isDear ? reading : passing })),
      ...dealt(read, Math.min(size, listsACall.few)).map(lists => ({ lists, limit, of: reading })),
    ].map(({ of, ...call }) => {
      const share = this.#shareOf(call.lists.length, areMany)
      return { ...call, looks: Math.min(most, Math.floor(of / share)), passes: Math.floor(passing / share) }
    })
    return inGroups(calls, this.#isOneRedis ? callsAtOnce.oneRedis : callsAtOnce.cluster)
  }

  /** In how many parts a call's looks are split: for its lists; in a Cluster for those that are asked beside it. */
  #shareOf (lists: number, areMany: boolean): number {
    return this.#isOneRedis || !areMany ? lists : listsACall.few
  }

  async #read (
    { lists, limit, looks, passes }: Call, wanted: Wanted, last: number | undefined, withTasks: boolean
  ): Promise<{ items: ListedHandoff[], now: number, looked: number, passed: number }> {
    const { tenant, since, until, passedBy = '', caughtBy = '', statuses } = wanted
    const order = wanted.state !== 'failed' ? wanted.state : isForwards(wanted) ? 'oldest' : 'failed'
    const texts = [
      `${tenant}:`, order, String(limit), `${looks} ${passes}`, limit === 0 ? '' : textOfNumber(last),
      textOfNumber(since), textOfNumber(until), passedBy, caughtBy,
      statuses === undefined ? '' : ` ${statuses.join(' ')} `, wordsOf(wanted),
      withTasks ? '1' : '0',
      ...lists.flatMap(({ at }) => at === null
        ? ['', '', '0']
        : [String(at.score), memberOf(tenant, at.id), at.includes ? '1' : '0'])
    ]
    const [, now, looked, passed, ...replies] = await this.#lanes.call({
      script: this.#scripts.list, tag: lists[0]!.tag, keys: lists.map(({ key }) => key), texts, decode: tagged
    })
    const items = (replies as unknown[][]).flatMap(([score, member, isWanted, ...found], n) => {
      const at = score == null ? null : { score: Number(score), id: handoffOfMember(member).id, includes: true }
      Object.assign(lists[n]!, { at, isAtEnd: at === null, isWanted: isWanted === 1 })
      return (found as unknown[][]).map(readItem)
    })
    return { items, now: now as number, looked: looked as number, passed: passed as number }
  }
}

/**
 * Lists that one call reads: how many items of each, at how many of the tenant's handoffs of each it looks, and how
 * many of others it passes by.
 */
interface Call { lists: readonly Progress[], limit: number, looks: number, passes: number }

/** A page while it is read: what was found, by which time, and what it may still cost. */
interface PageRead { items: ListedHandoff[], now: number, looks: number, texts: number, passes: number }

/** The partitions that may have what is wanted: for an inbox one or two; undefined: all. */
export function tagsFor ({ tenant, inbox }: Pick<Wanted, 'tenant' | 'inbox'>): string[] | undefined {
  return inbox === undefined ? undefined : [...new Set([inboxTag(tenant, inbox), homeTag(tenant)])]
}

function isForwards ({ state, oldestFirst = false }: Wanted): boolean {
  return state !== 'failed' || oldestFirst
}

/** Must records be read to know what is wanted? */
function isNarrow ({ passedBy, caughtBy, statuses, ...wanted }: Wanted): boolean {
  return passedBy !== undefined || caughtBy !== undefined || statuses !== undefined || wordsOf(wanted) !== ''
}

/** The words of field x that it must have (lua/lib/record.lua); empty if any will do. */
export function wordsOf ({ inbox, labels = [], errorCode }: Pick<Wanted, 'inbox' | 'labels' | 'errorCode'>): string {
  return (inbox === undefined ? '' : ` t${inbox}`) + labels.map(label => ` j${label}`).join('') +
    (errorCode === undefined ? '' : ` l${errorCode}`)
}

function textOfNumber (number: number | undefined): string {
  return number === undefined ? '' : String(number)
}

type Place = Pick<ListPosition, 'score' | 'id'>

/** By score, then as Redis sorts members with one score: by bytes. Ids are ASCII. */
function byPosition (one: Place, other: Place): number {
  return one.score - other.score || (one.id < other.id ? -1 : one.id > other.id ? 1 : 0)
}

function byPositionBackwards (one: Place, other: Place): number {
  return byPosition(other, one)
}

function orderOf (wanted: Wanted): typeof byPosition {
  return isForwards(wanted) ? byPosition : byPositionBackwards
}

/** Did the read end among other tenants' handoffs? */
function isAmongOthers (at: ListPosition | null): boolean {
  return at?.id === '' || at?.id === '~'
}

/** The lists that have more, by where they go on. */
function openInOrder (lists: readonly Progress[], order: typeof byPosition): Progress[] {
  return lists.filter(({ isAtEnd }) => !isAtEnd)
    .sort((one, other) => one.at === null || other.at === null ? 0 : order(one.at, other.at))
}

/** What is known to be wanted: items, and where lists go on. */
function wantedOf (items: readonly ListedHandoff[], open: readonly Progress[]): Place[] {
  return [...items, ...open.flatMap(({ at, isWanted }) => isWanted ? [at!] : [])]
}

/** The page: what is before all that isn't known yet. @param items in order */
function cut (
  items: readonly ListedHandoff[], lists: readonly Progress[], limit: number, order: typeof byPosition
): Pick<ListedPage, 'items' | 'next'> {
  const unknown = lists.reduce<ListPosition | undefined>((first, { at, isAtEnd }) =>
    isAtEnd || (first !== undefined && order(first, at!) < 0) ? first : at!, undefined)
  const certain = unknown === undefined ? items : items.filter(item => order(item, unknown) < 0)
  const page = certain.slice(0, limit)
  const { score, id } = page.at(-1) ?? { score: 0, id: '' }
  if (certain.length > limit) return { items: page, next: { score, id, includes: false } }
  if (unknown === undefined) return { items: page, next: null }
  // A cursor has no time of another tenant's handoff, but that of the page's last item. An empty page that ends there
  // has passed by millions: its cursor has the second.
  if (page.length === limit || (isAmongOthers(unknown) && page.length > 0)) {
    return { items: page, next: { score, id, includes: false } }
  }
  const second = Math.floor(unknown.score / 1000) * 1000
  return { items: page, next: isAmongOthers(unknown) ? { score: second, id: '', includes: true } : unknown }
}

/** Groups of so many, in order; the last may have fewer. */
export function inGroups<T> (all: readonly T[], size: number): T[][] {
  const groups: T[][] = []
  for (let at = 0; at < all.length; at += size) groups.push(all.slice(at, at + size))
  return groups
}

/** Groups of at most so many: each gets its first in turn, then its second, and so on. */
function dealt<T> (all: readonly T[], size: number): T[][] {
  const count = Math.ceil(all.length / size)
  return Array.from({ length: count }, (_, n) => all.filter((_, at) => at % count === n))
}

function readItem ([score, member, record, extra, decision, told, progress, task]: unknown[]): ListedHandoff {
  return {
    id: handoffOfMember(member).id,
    score: Number(score),
    record: parseRecord(record, extra),
    decision: parseDecision(decision),
    texts: { fault: textOf(told), cancelReason: null, progress: parseProgress(textOf(progress)) },
    task: (task ?? null) as Buffer | null,
  }
}
