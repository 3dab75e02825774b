import { Problem, invalid } from '../../core/errors.ts'
import { iso } from '../../core/iso.ts'
import { isGroup, isInbox, isName } from '../../core/model.ts'
import type { Caller } from '../../core/model.ts'
import type {
  GroupsAnswer, GroupsQuery, InboxAnswer, InboxesAnswer, InboxesQuery, InboxSettingsBody
} from '../../core/schemas/inboxes.ts'
import type { Counted, Inboxes } from '../../store/inboxes.ts'
import { inGroups } from '../../store/lists.ts'
import type { Reads } from '../../store/reads.ts'
import type { Requester } from '../../store/requester.ts'
import { placesOf } from './take.ts'
import type { WorkerService } from './workers.ts'

/** How many inboxes of a page are counted at once. */
const countedAtOnce = 10
/** Counts what inboxes hold, lists them, and changes what operators set for them. */
export class InboxSettingsService {
  readonly #inboxes: Inboxes
  readonly #reads: Reads
  readonly #workers: Pick<WorkerService, 'listening' | 'waitedFor'>

  constructor (inboxes: Inboxes, reads: Reads, workers: Pick<WorkerService, 'listening' | 'waitedFor'>) {
    this.#inboxes = inboxes
    this.#reads = reads
    this.#workers = workers
  }

  /** @throws {Problem} not_found, for a text that can't be an inbox's name */
  async count (tenant: string, inbox: string): Promise<InboxAnswer> {
    if (!isInbox(inbox)) throw new Problem('not_found')
    const { own, home } = placesOf(tenant, inbox)
    const [listening, there, atHome = none] = await Promise.all([
      this.#workers.listening(tenant, inbox),
      ...[own, ...home === null ? [] : [home]].map(place => this.#inboxes.count(place))
    ] as const)
    return inboxAnswerOf(inbox, there!, atHome, listening)
  }

  /** A page of the tenant's inboxes, by name. */
  async list ({ tenant }: Caller, { cursor, limit = 20 }: InboxesQuery, requester?: Requester): Promise<InboxesAnswer> {
    const after = cursor === undefined ? '' : readCursor(cursor)
    // Inboxes at which workers wait are there too, even empty ones.
    const waitedFor = await this.#workers.waitedFor(tenant)
    return this.#reads.page(tenant, undefined, async () => {
      const named = await this.#inboxes.names(tenant, after, limit)
      const end = named.isMore ? named.inboxes.at(-1)! : undefined
      const others = waitedFor.filter(name => name > after && (end === undefined || name <= end))
      const all = [...new Set([...named.inboxes, ...others])].sort()
      const inboxes = all.slice(0, limit)
      const isMore = named.isMore || all.length > limit
      const items: InboxAnswer[] = []
      for (const some of inGroups(inboxes, countedAtOnce)) {
        items.push(...await Promise.all(some.map(name => this.count(tenant, name))))
      }
      const cursorText = isMore ? Buffer.from(inboxes.at(-1)!).toString('base64url') : null
      return { items: items.filter(hasAnything), next_cursor: cursorText }
    }, requester)
  }

  /** A page of the inbox's groups. @throws {Problem} not_found, for a text that can't be an inbox's name */
  async groups (
    tenant: string, inbox: string, { cursor, limit = 20 }: GroupsQuery, requester?: Requester
  ): Promise<GroupsAnswer> {
    if (!isInbox(inbox)) throw new Problem('not_found')
    const after = cursor === undefined ? null : readGroupCursor(cursor)
    const { own } = placesOf(tenant, inbox)
    const read = () => this.#inboxes.groups(own, after, limit)
    const { groups, isMore } = await this.#reads.page(tenant, [own.tag], read, requester)
    const items = groups.map(({ oldestAt, ...group }) =>
      ({ ...group, oldest_at: oldestAt === null ? null : iso(oldestAt) }))
    const last = isMore ? groups.at(-1)! : undefined
    // The text begins with a mark: that of what has no group isn't empty either.
    return { items, next_cursor: last === undefined ? null : Buffer.from(`.${last.group ?? ''}`).toString('base64url') }
  }

  /**
   * Changes the settings in both partitions: what version 0.2.0 left in the home partition goes by those there. The own
   * one decides, and the other one takes its settings over.
   * @returns whether a setting changed, and the inbox as it is now
   */
  async set (
    { tenant }: Caller, inbox: string,
    { paused, max_caught: maxCaught, max_pending: maxPending, max_caught_per_group: maxCaughtPerGroup }:
    InboxSettingsBody
  ): Promise<{ isChanged: boolean, answer: InboxAnswer }> {
    if (!isInbox(inbox)) throw new Problem('not_found')
    const { own, home } = placesOf(tenant, inbox)
    const change = { paused, maxCaught, maxPending, maxCaughtPerGroup }
    const { isChanged, version, settings } = await this.#inboxes.set(own, change)
    // What version 0.2.0 left there has no groups.
    if (home !== null) await this.#inboxes.set(home, { ...settings, maxCaughtPerGroup: undefined }, version)
    return { isChanged, answer: await this.count(tenant, inbox) }
  }
}

const none: Counted = {
  pending: 0,
  waiting: 0,
  delayed: 0,
  caught: 0,
  failed: 0,
  blocked: 0,
  groups: 0,
  oldestAt: null,
  paused: false,
  maxCaught: null,
  maxPending: null,
  maxCaughtPerGroup: null
}

/** @param own the inbox in its own partition, whose settings hold */
function inboxAnswerOf (inbox: string, own: Counted, home: Counted, listening: number): InboxAnswer {
  const oldest = Math.min(own.oldestAt ?? Infinity, home.oldestAt ?? Infinity)
  return {
    inbox,
    pending: own.pending + home.pending,
    oldest_at: oldest === Infinity ? null : iso(oldest),
    waiting_approval: own.waiting + home.waiting,
    delayed: own.delayed + home.delayed,
    blocked: own.blocked + home.blocked,
    caught: own.caught + home.caught,
    failed: own.failed + home.failed,
    groups: own.groups,
    listening,
    paused: own.paused,
    max_caught: own.maxCaught,
    max_pending: own.maxPending,
    max_caught_per_group: own.maxCaughtPerGroup,
  }
}

function hasAnything (inbox: InboxAnswer): boolean {
  const { pending, waiting_approval: waiting, delayed, blocked, caught, failed, listening } = inbox
  return pending + waiting + delayed + blocked + caught + failed + listening > 0 || inbox.paused ||
    inbox.max_caught !== null || inbox.max_pending !== null || inbox.max_caught_per_group !== null
}

function readCursor (cursor: string): string {
  const name = Buffer.from(cursor, 'base64url').toString()
  if (!isName(name)) throw invalid({ pointer: '/cursor', message: 'querystring: must be a next_cursor of this list' })
  return name
}

function readGroupCursor (cursor: string): string {
  const text = Buffer.from(cursor, 'base64url').toString()
  if (text === '.' || (text.startsWith('.') && isGroup(text.slice(1)))) return text.slice(1)
  throw invalid({ pointer: '/cursor', message: 'querystring: must be a next_cursor of this list' })
}
