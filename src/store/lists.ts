import { homeTag, inboxTag } from '../core/ids.ts'
import type { Asked, Decision, DecisionState, HandoffRecord, Status } from '../core/model.ts'
import { PayloadKeys } from '../core/payload-keys.ts'
import { Seal } from '../core/seal.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import { digest } from './api-keys.ts'
import type { AgentTexts } from './replies.ts'
import { readWaiting } from './approvals.ts'
import type { WaitingHandoff } from './approvals.ts'
import { readEntry } from './decision-entry.ts'
import type { DecisionEntry } from './decision-entry.ts'
import { handoffOfMember, memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import { parseDecision, parseProgress, sealedRecord, tagged, taskBeginning, textOf } from './replies.ts'

/** A search. Times in milliseconds. */
export interface Wanted {
  tenant: string
  state: 'live' | 'failed' | 'ended' | 'waiting' | 'asked' | 'decisions'
  /** For `asked`: whom the questions ask. Left out: a person. */
  of?: Asked | undefined
  /** Of what failed: the earliest end first, not the latest. */
  oldestFirst?: boolean
  inbox?: string | undefined
  group?: string | undefined
  schedule?: string | undefined
  passedBy?: string | undefined
  /** Of decisions: who decided. */
  caughtBy?: string | undefined
  /** Each `name:value`. */
  labels?: readonly string[] | undefined
  /** Of decisions: what was decided. */
  statuses?: readonly (Status | DecisionState)[] | undefined
  errorCode?: string | undefined
  /** The one of the labels that makes a run: then only what is of that run is read. */
  run?: string | undefined
  /** Of what ended: whether what has a successor is listed too. */
  allAttempts?: boolean | undefined
  /** Of what failed or ended: the bounds of its end, inclusive and exclusive. Of decisions: those of the decision. */
  since?: number | undefined
  until?: number | undefined
}

/**
 * A place in the list: a score of the sorted set, and an id. `includes`: whether that handoff itself is still to come.
 */
export interface ListPosition { score: number, id: string, includes: boolean }

/**
 * A listed handoff. `texts.fault` is the question, where those are listed that have one. The task is the beginning of a
 * JSON string, and so is the title; null if it wasn't asked for, or is gone.
 */
export interface ListedHandoff {
  id: string
  score: number
  record: HandoffRecord
  decision: Decision | null
  texts: AgentTexts
  task: Buffer | null
  title: Buffer | null
  /** This replica doesn't have the key of some text, which is null then. */
  isLocked: boolean
}

/** What of a task is read: nothing, the title alone, or its beginning as well. */
export type TaskRead = 'nothing' | 'title' | 'beginning'
const taskReads: readonly TaskRead[] = ['nothing', 'title', 'beginning']

/** A page of the list, perhaps empty, and where to go on; null at its end. By Redis’s clock it was `now`. */
export interface ListedPage<Item = ListedHandoff> { items: Item[], next: ListPosition | null, now: number }

/** How far one of the merged lists was read: to `at`; null before the start. */
interface Progress {
  readonly tag: string
  readonly key: string
  at: ListPosition | null
  isAtEnd: boolean
  /** Is the next handoff wanted, as far as it was looked at? */
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
 * How many rounds of calls a page may take, and one of what waits for people; how many members it may look at in all,
 * and how much of agents' texts it may read: it ends after the calls that read more.
 */
const pageLimits = { rounds: 8, ofWaiting: 32, looks: 40_000, texts: 2 * 1024 * 1024 }

/**
 * The lists of a tenant's handoffs, merged from all partitions. A page's cost is bounded, in short calls: it may find
 * nothing, and then says where to go on.
 */
export class Lists {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #tags: readonly string[]
  readonly #isOneRedis: boolean
  readonly #payloadKeys: PayloadKeys

  /** @param isOneRedis whether one call may read lists of several partitions */
  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames, tags: readonly string[], isOneRedis: boolean,
    payloadKeys = new PayloadKeys()
  ) {
    this.#payloadKeys = payloadKeys
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#tags = tags
    this.#isOneRedis = isOneRedis
  }

  /**
   * First each list says where its next wanted handoff is. Then those are read that can be among the first `limit`. An
   * item counts as soon as no list can have an earlier one.
   */
  page (
    wanted: Wanted, from: ListPosition | null, limit: number, tasks: TaskRead = 'nothing'
  ): Promise<ListedPage> {
    const isAsked = wanted.state === 'asked'
    return this.#merged(wanted, from, limit, tasks, item => readItem(item, this.#sealOf(item), isAsked))
  }

  /** The same of what waits for a person. */
  waiting (
    wanted: Omit<Wanted, 'state'>, from: ListPosition | null, limit: number
  ): Promise<ListedPage<WaitingHandoff>> {
    return this.#merged({ ...wanted, state: 'waiting' }, from, limit, 'nothing', item =>
      readWaiting(item, this.#sealOf(item)))
  }

  /** How many there are in all lists; among what waits, for some seconds those that have expired. */
  async count (wanted: Wanted): Promise<number> {
    const lists = this.#listsOf(wanted, null)
    const { oneRedis, cluster } = callsAtOnce
    const size = this.#isOneRedis ? listsACall.many : 1
    let sum = 0
    for (const some of inGroups(inGroups(lists, size), this.#isOneRedis ? oneRedis : cluster)) {
      const replies = await Promise.all(some.map(call => this.#lanes.call({
        script: this.#scripts.count,
        tag: call[0]!.tag,
        keys: call.map(({ key }) => key),
        texts: [],
        decode: tagged
      })))
      sum = replies.reduce((sum, [, count]) => sum + (count as number), sum)
    }
    return sum
  }

  /** The same of what people decided. */
  decisions (
    wanted: Omit<Wanted, 'state'>, from: ListPosition | null, limit: number
  ): Promise<ListedPage<DecisionEntry>> {
    return this.#merged({ ...wanted, state: 'decisions' }, from, limit, 'nothing', item =>
      readEntry(item, this.#sealOf(item)))
  }

  /** @param item whose second part is tenant:id, of a decision with a slash and the moment behind it */
  #sealOf ([, member]: unknown[]): Seal {
    const { tenant, id } = handoffOfMember(member)
    return new Seal(this.#payloadKeys, { tenant, id: id.split('/', 1)[0]! }, undefined, true)
  }

  async #merged<Item extends Place> (
    wanted: Wanted, from: ListPosition | null, limit: number, tasks: TaskRead, readItem: (item: unknown[]) => Item
  ): Promise<ListedPage<Item>> {
    const order = isForwards(wanted) ? byPosition : byPositionBackwards
    const lists = this.#listsOf(wanted, from)
    const items: Item[] = []
    let [now, looks, texts] = [0, pageLimits.looks, pageLimits.texts]
    const rounds = wanted.state === 'waiting' ? pageLimits.ofWaiting : pageLimits.rounds
    for (let round = 0; round < rounds && looks > 0 && texts > 0; round++) {
      // In order: a call reads its first item however long that is. So each round reads the next items of the page.
      const open = lists.filter(({ isAtEnd }) => !isAtEnd)
        .sort((one, other) => one.at === null || other.at === null ? 0 : order(one.at, other.at))
      const known = [...items, ...open.flatMap(({ at, isWanted }) => isWanted ? [at!] : [])].sort(order)
      // Later items aren't on the page.
      const last = known[limit - 1]
      const due = open.filter(({ at }) => round === 0 || last === undefined || order(at!, last) <= 0)
      if (due.length === 0) break
      for (const some of this.#callsFor(due, wanted, limit)) {
        const replies = await Promise.all(some.map(call => this.#read(call, wanted, last?.score, tasks)))
        for (const reply of replies) {
          now = Math.max(now, reply.now)
          looks -= reply.looked
          texts -= reply.texts
          items.push(...reply.items.map(readItem))
        }
        if (texts <= 0) break
      }
    }
    return { ...cut(items.sort(order), lists, limit, order), now }
  }

  /** Where this agent's last equal search ended before the list did; null: it begins at the start. */
  async searchedTo (wanted: Wanted, agent: string): Promise<ListPosition | null> {
    const [, place] = await this.#search('get', wanted, agent)
    const [score, id, mark] = place === undefined ? [] : String(place).split(' ')
    return place === undefined ? null : { score: Number(score), id: id!, includes: mark === '1' }
  }

  /** Notes where a search ended, for a while; null: at the list's end. */
  async noteSearch (wanted: Wanted, agent: string, place: ListPosition | null): Promise<void> {
    if (place === null) await this.#search('delete', wanted, agent, ['', ''])
    else {
      const text = `${place.score} ${place.id} ${place.includes ? 1 : 0}`
      await this.#search('set', wanted, agent, [text, String(searchKept)])
    }
  }

  #search (name: 'get' | 'set' | 'delete', wanted: Wanted, agent: string, texts: string[] = []) {
    const tag = homeTag(wanted.tenant)
    const { labels = [], statuses = [], ...others } = wanted
    const sought = [agent, [...labels].sort(), [...statuses].sort(), Object.entries(others).sort()]
    const key = this.#keyNames.search(tag, digest(JSON.stringify(sought)))
    return this.#lanes.call({ script: this.#scripts[name], tag, keys: [key], texts, decode: tagged })
  }

  /** The partitions that may have wanted handoffs: for an inbox one or two; undefined: all. */
  tagsOf ({ tenant, state, inbox, run }: Pick<Wanted, 'tenant' | 'state' | 'inbox' | 'run'>): string[] | undefined {
    // On one Redis a run has one list, and so has what waits for a person.
    if (this.#isOneRedis && (run !== undefined || state === 'waiting')) return [homeTag(tenant)]
    return inbox === undefined ? undefined : [...new Set([inboxTag(tenant, inbox), homeTag(tenant)])]
  }

  /** The lists that may have wanted handoffs. */
  #listsOf (wanted: Wanted, from: ListPosition | null): Progress[] {
    const tags = this.tagsOf(wanted) ?? this.#tags
    return tags.map(tag => ({ tag, key: this.#keyOf(tag, wanted), at: from, isAtEnd: false, isWanted: false }))
  }

  #keyOf (tag: string, { tenant, state, inbox, run, of = 'person' }: Wanted): string {
    if (state === 'waiting') return this.#keyNames.waiting(tag, tenant)
    if (state === 'asked') return this.#keyNames.asks(tag, tenant, of)
    if (state === 'decisions') return this.#keyNames.decisions(tag, tenant)
    if (run !== undefined) return this.#keyNames.run(tag, listOfRun(state), tenant, run)
    if (state === 'live') return this.#keyNames.due(tag, tenant)
    if (state === 'ended') return this.#keyNames.ended(tag, tenant)
    return inbox === undefined ? this.#keyNames.failed(tag, tenant) : this.#keyNames.failedIn(tag, tenant, inbox)
  }

  /** The calls, in groups that run at once. A list that is known to go on with a wanted handoff has its items read. */
  #callsFor (due: readonly Progress[], wanted: Wanted, limit: number): Call[][] {
    const areMany = due.length > listsACall.few
    const isDear = isNarrow(wanted)
    const size = this.#isOneRedis ? areMany && !isDear ? listsACall.many : listsACall.few : 1
    const searched = due.filter(({ isWanted }) => areMany && !isWanted)
    const read = due.filter(({ isWanted }) => !areMany || isWanted)
    const { reading, passing } = looksACall
    const calls = [
      ...inGroups(searched, size).map(lists => ({ lists, limit: 0, of: isDear ? reading : passing })),
      // Of what waits all is read, but for what the sweep hasn't removed yet.
      ...dealt(read, Math.min(size, listsACall.few))
        .map(lists => ({ lists, limit, of: wanted.state === 'waiting' && !isDear ? passing : reading })),
    ].map(({ of, ...call }) => ({ ...call, looks: Math.floor(of / this.#shareOf(call.lists.length, areMany)) }))
    return inGroups(calls, this.#isOneRedis ? callsAtOnce.oneRedis : callsAtOnce.cluster)
  }

  /** In how many parts a call's looks are split: for its lists; in a Cluster for the calls beside it. */
  #shareOf (lists: number, areMany: boolean): number {
    return this.#isOneRedis || !areMany ? lists : listsACall.few
  }

  async #read (
    { lists, limit, looks }: Call, wanted: Wanted, last: number | undefined, tasks: TaskRead
  ): Promise<{ items: unknown[][], texts: number, now: number, looked: number }> {
    const { tenant, since, until, passedBy = '', caughtBy = '', statuses } = wanted
    const texts = [
      orderOf(wanted), String(limit), String(looks), limit === 0 ? '' : textOfNumber(last), textOfNumber(since),
      textOfNumber(until), passedBy, caughtBy, statuses === undefined ? '' : ` ${statuses.join(' ')} `, wordsOf(wanted),
      String(taskReads.indexOf(tasks)),
      wanted.run === undefined && wanted.state !== 'waiting' ? '' : this.#keyNames.ofAll(),
      ...lists.flatMap(({ at }) => at === null
        ? ['', '', '0']
        : [String(at.score), memberOf(tenant, at.id), at.includes ? '1' : '0'])
    ]
    const [, now, looked, ...replies] = await this.#lanes.call({
      script: this.#scripts.list, tag: lists[0]!.tag, keys: lists.map(({ key }) => key), texts, decode: tagged
    })
    const items = (replies as unknown[][]).flatMap(([score, member, isWanted, ...found], n) => {
      const at = score == null ? null : { score: Number(score), id: handoffOfMember(member).id, includes: true }
      Object.assign(lists[n]!, { at, isAtEnd: at === null, isWanted: isWanted === 1 })
      return found as unknown[][]
    })
    const sizes = items.map(item => (item[wanted.state === 'decisions' ? 3 : 5] as Buffer | null)?.length ?? 0)
    return { items, texts: sizes.reduce((sum, size) => sum + size, 0), now: now as number, looked: looked as number }
  }
}

/** Lists that one call reads: how many items of each, and at how many members of each it looks. */
interface Call { lists: readonly Progress[], limit: number, looks: number }

function isForwards ({ state, oldestFirst = false }: Wanted): boolean {
  return state === 'live' || state === 'waiting' || state === 'asked' || oldestFirst
}

/** As lua/list.lua calls it. */
function orderOf ({ state, oldestFirst = false, allAttempts = false }: Wanted): string {
  if (state === 'failed' && oldestFirst) return 'oldest'
  return state === 'ended' && allAttempts ? 'all' : state
}

/** Does the search need the handoffs' records? */
function isNarrow ({ passedBy, caughtBy, statuses, ...wanted }: Wanted): boolean {
  return passedBy !== undefined || caughtBy !== undefined || statuses !== undefined || wordsOf(wanted) !== ''
}

/** The words of field x that it must have (lua/lib/record.lua); empty if any will do. */
function wordsOf (
  { inbox, group, schedule, labels = [], errorCode }:
  Pick<Wanted, 'inbox' | 'group' | 'schedule' | 'labels' | 'errorCode'>
): string {
  const words = { t: inbox, G: group, S: schedule, l: errorCode }
  return Object.entries(words).map(([letter, value]) => value === undefined ? '' : ` ${letter}${value}`).join('') +
    labels.map(label => ` j${label}`).join('')
}

/** Which of a run's lists (lua/lib/runs.lua) has what is in this state. */
function listOfRun (state: Wanted['state']): 'run' | 'ran' | 'lost' {
  return state === 'live' ? 'run' : state === 'failed' ? 'lost' : 'ran'
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

/** The page: what is before all that isn't known yet. @param items in order */
function cut<Item extends Place> (
  items: readonly Item[], lists: readonly Progress[], limit: number, order: typeof byPosition
): Pick<ListedPage<Item>, 'items' | 'next'> {
  const unknown = lists.reduce<ListPosition | undefined>((first, { at, isAtEnd }) =>
    isAtEnd || (first !== undefined && order(first, at!) < 0) ? first : at!, undefined)
  const certain = unknown === undefined ? items : items.filter(item => order(item, unknown) < 0)
  const page = certain.slice(0, limit)
  const { score, id } = page.at(-1) ?? { score: 0, id: '' }
  if (certain.length > limit) return { items: page, next: { score, id, includes: false } }
  const isFull = page.length === limit && unknown !== undefined
  return { items: page, next: isFull ? { score, id, includes: false } : unknown ?? null }
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

/** @param isAsked the fault is a question */
function readItem (
  [score, member, record, extra, decision, fault, progress, task, title]: unknown[], seal: Seal, isAsked: boolean
): ListedHandoff {
  const item: ListedHandoff = {
    id: handoffOfMember(member).id,
    score: Number(score),
    record: sealedRecord(record, extra, seal),
    decision: parseDecision(decision, seal),
    texts: {
      fault: seal.tryText(isAsked ? 'question' : 'fault', (fault ?? null) as Buffer | null),
      cancelReason: null,
      progress: parseProgress(textOf(progress), seal)
    },
    task: taskBeginning((task ?? null) as Buffer | null, seal),
    title: seal.tryOpen('title', (title ?? null) as Buffer | null),
    isLocked: false
  }
  item.isLocked = seal.isLocked
  return item
}
