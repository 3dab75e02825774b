import { PayloadBroken, TooLarge } from '../core/errors.ts'
import { PayloadKeys } from '../core/payload-keys.ts'
import { Seal } from '../core/seal.ts'
import type { Caught } from './handoffs.ts'
import { readCaught } from './handoffs.ts'
import { InboxRoom, elsewhereText } from './inbox-room.ts'
import type { CaughtElsewhere } from './inbox-room.ts'
import { handoffOfMember, memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import type { Lanes } from '../redis/lanes.ts'
import { inGroups } from './lists.ts'
import { mergedNames } from './merged-names.ts'
import { tagged } from './replies.ts'
import type { Refused, Replied } from './replies.ts'
import type { Lifetimes, Scripts } from '../redis/scripts.ts'

/**
 * An inbox in its partition; or in its tenant's home partition, where version 0.2.0 kept what a person decides on.
 * `other`: the other one; left out if one partition is both.
 */
export interface InboxPlace { tenant: string, inbox: string, tag: string, other?: string }

/** The arguments of a take. */
export interface Wanted {
  token: string
  agent: string
  /** How many at most; 0: only the handoffs that this token took before. */
  max: number
  /** How long the note of this token's take is kept, in milliseconds; null: as long as a call may be retried. */
  lifetime: number | null
  /** The request's digest; '-' without an Idempotency-Key. */
  request: string
  /** In a Cluster: left out if it isn't known. */
  caughtElsewhere?: CaughtElsewhere | undefined
  /** How many bytes the payloads may have together; left out, or Infinity, for any. */
  maxBytes?: number | undefined
  /** What the worker calls itself. */
  worker?: string | undefined
}

/**
 * A request with an Idempotency-Key: the key's token, the request's digest, what tells it from others with this key,
 * and the partition of the claim.
 */
export interface Claim { token: string, request: string, requester: string, tag: string }

/**
 * `known`: another request with the same bytes claimed the key before; `reused`: one with other bytes did; `left`: the
 * other request chose an inbox, so this one may not. `chosen`: that inbox; empty for none. `gone`: if the other request
 * is gone, the argument of a call that chooses in its place; else empty.
 */
interface ClaimReply { outcome: Replied<'claim'>, chosen: string, gone: string }

export interface TakenHandoff extends Caught { id: string }
/** `isMore`: there may be more. */
export type TakeReply = { outcome: 'taken' | 'replayed', isMore: boolean, items: TakenHandoff[] } |
  /** `taker`: of a call that never said whether it took something in the home partition. */
  { outcome: 'unsettled', taker: string } |
  { outcome: Refused<'take', 'taken' | 'replayed' | 'unsettled' | 'larger'> }

/** An inbox's settings, by operators. */
interface InboxSettings {
  paused: boolean
  maxCaught: number | null
  maxPending: number | null
  maxCaughtPerGroup: number | null
}

/** Changes of them; undefined settings stay. */
type InboxChange = { [Name in keyof InboxSettings]?: InboxSettings[Name] | undefined }

/**
 * An inbox's figures and settings in one partition. `oldestAt`: when the oldest pending handoff entered, in
 * milliseconds; null if there is none.
 */
export interface Counted extends InboxSettings {
  pending: number
  waiting: number
  delayed: number
  blocked: number
  caught: number
  failed: number
  /** How many groups have something pending. What has no group is one. */
  groups: number
  oldestAt: number | null
}

/** `at`: when, in Redis's milliseconds. */
export interface CountedAt extends Counted { at: number }

/** A group of an inbox; null for what has none. */
interface CountedGroup { group: string | null, pending: number, caught: number, oldestAt: number | null }

/** The settings that a change left, and whether it changed any. */
interface SetReply { isChanged: boolean, version: string, settings: InboxSettings }

/**
 * An inbox that partitions name, with its counts in each; or with `inbox` '' a tenant, with how many of it wait for a
 * person. `at`: when that was counted, in the partition's Redis's milliseconds.
 */
export interface NamedInbox {
  tenant: string
  inbox: string
  places: Array<{ tag: string, counted: Counted | number, at: number }>
}

/** How many lists of names one call reads where one Redis has them all, and how many calls are under way at once. */
const names = { listsACall: 64, callsAtOnce: { oneRedis: 2, cluster: 64 } }

/** How many parts of lua/take.lua's reply one item takes. */
const partsAnItem = 9

/** The inboxes in Redis: one method per script. */
export class Inboxes {
  readonly room: InboxRoom
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #tags: readonly string[]
  readonly #retention: string
  /** Whether one call may use keys of several partitions. */
  readonly isOneRedis: boolean
  readonly #payloadKeys: PayloadKeys

  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames,
    { tags, isOneRedis, retention }: Pick<Lifetimes, 'retention'> & { tags: readonly string[], isOneRedis: boolean },
    payloadKeys = new PayloadKeys()
  ) {
    this.room = new InboxRoom(lanes, scripts, keyNames)
    this.#payloadKeys = payloadKeys
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#tags = tags
    this.isOneRedis = isOneRedis
    this.#retention = String(retention)
  }

  /** @throws {TooLarge} they have more bytes than may be; it took nothing */
  take (
    { tag, tenant, inbox, other }: InboxPlace,
    { token, agent, max, lifetime, request, caughtElsewhere, maxBytes = Infinity, worker }: Wanted
  ): Promise<TakeReply> {
    const keys = [
      this.#keyNames.inbox(tag, tenant, inbox), this.#keyNames.due(tag, tenant), this.#keyNames.taken(tag, token)
    ]
    const texts = [
      token, agent, String(max), lifetime === null ? '' : String(lifetime), request,
      this.isOneRedis || other === undefined ? '' : elsewhereText(caughtElsewhere)
    ]
    if (maxBytes !== Infinity) texts.push(String(maxBytes))
    else if (worker !== undefined) texts.push(String(Number.MAX_SAFE_INTEGER))
    if (worker !== undefined) texts.push(worker)
    if (this.isOneRedis && other !== undefined) keys.push(this.#keyNames.inbox(other, tenant, inbox))
    const decode = (reply: unknown) => readTake(reply, this.#payloadKeys)
    return this.#lanes.call({ script: this.#scripts.take, tag, keys, texts, isAlone: max !== 1, decode })
  }

  count ({ tag, tenant, inbox }: InboxPlace): Promise<CountedAt> {
    return this.#lanes.call({
      script: this.#scripts.inbox,
      tag,
      keys: [this.#keyNames.inbox(tag, tenant, inbox)],
      texts: [this.#retention],
      decode: reply => {
        const [, at, ...counts] = tagged(reply)
        return { at: at as number, ...readCounted(counts) }
      }
    })
  }

  /**
   * The groups that have something to be caught, or something caught: first what has none, then by name.
   * @param after the group to go on behind; '' for what has none, null for the start
   */
  groups (
    { tag, tenant, inbox }: InboxPlace, after: string | null, limit: number
  ): Promise<{ groups: CountedGroup[], isMore: boolean }> {
    return this.#lanes.call({
      script: this.#scripts.groups,
      tag,
      keys: [this.#keyNames.inbox(tag, tenant, inbox)],
      texts: [after === null ? '' : `.${after}`, String(limit)],
      decode: readGroups
    })
  }

  /**
   * Changes settings in one partition.
   * @param version for the other partition: that of the own one's reply
   */
  set ({ tag, tenant, inbox }: InboxPlace, settings: InboxChange, version = ''): Promise<SetReply> {
    const { paused, maxCaught, maxPending, maxCaughtPerGroup } = settings
    const textOf = (value: number | null | undefined) => value === undefined ? '' : String(value ?? 0)
    const texts = [
      paused === undefined ? '' : paused ? '1' : '0', textOf(maxCaught), textOf(maxPending), version,
      textOf(maxCaughtPerGroup)
    ]
    return this.#lanes.call({
      script: this.#scripts['inbox-set'], tag, keys: [this.#keyNames.inbox(tag, tenant, inbox)], texts, decode: readSet
    })
  }

  /**
   * The names of a tenant's inboxes that have something, or had it lately, by their bytes.
   * @param after where to go on; empty for the start
   */
  async names (tenant: string, after: string, limit: number): Promise<{ inboxes: string[], isMore: boolean }> {
    const range = [`(${memberOf(tenant, after)}`, `(${tenant};`]
    const inboxOf = (name: unknown) => String(name).slice(tenant.length + 1)
    // Most partitions have one name or two. So the first of each says which lists can have any of the page.
    const heads = (await this.#readNames(this.#tags, range, 1)).flatMap(({ tag, found }) =>
      found.length === 0 ? [] : [{ tag, name: inboxOf(found[0]) }])
    const last = [...new Set(heads.map(({ name }) => name))].sort()[limit - 1]
    const due = last === undefined ? heads : heads.filter(({ name }) => name <= last)
    const lists = await this.#readNames(due.map(({ tag }) => tag), range, limit)
    const all = [...new Set(lists.flatMap(({ found }) => found.map(inboxOf)))].sort()
    const isCut = all.length > limit || due.length < heads.length || lists.some(({ found }) => found.length === limit)
    return { inboxes: all.slice(0, limit), isMore: isCut }
  }

  /** Whatever the partitions name, of all tenants, in parts and in order: for the metrics. */
  async * allNamed (): AsyncGenerator<NamedInbox[], void, undefined> {
    const read = async (tags: readonly string[], from: string, limit: number) =>
      (await this.#readNames(tags, [from, '+'], limit, this.#retention)).map(({ tag, at, found }) =>
        (found as unknown[][]).map(([name, ...counts]) => {
          const isTenant = String(name).endsWith(':')
          return [String(name), { tag, at, counted: isTenant ? Number(counts[0]) : readCounted(counts) }] as const
        }))
    for await (const part of mergedNames(this.#tags, read)) {
      yield part.map(([name, places]) => {
        const { tenant, id: inbox } = handoffOfMember(name)
        return { tenant, inbox, places }
      })
    }
  }

  /** Drops names of inboxes that have nothing in a partition, and entries of handoffs no longer caught or delayed. */
  tidy ({ tag, tenant, inbox }: InboxPlace): Promise<unknown> {
    return this.#lanes.call({
      script: this.#scripts['inbox-tidy'],
      tag,
      keys: [this.#keyNames.inboxes(tag)],
      texts: [memberOf(tenant, inbox)],
      decode: tagged
    })
  }

  async #readNames (
    tags: readonly string[], range: readonly string[], limit: number, retention = ''
  ): Promise<Array<{ tag: string, at: number, found: unknown[] }>> {
    const size = this.isOneRedis ? names.listsACall : 1
    const groups = inGroups(tags, size)
    const atOnce = this.isOneRedis ? names.callsAtOnce.oneRedis : names.callsAtOnce.cluster
    const lists: Array<{ tag: string, at: number, found: unknown[] }> = []
    for (const some of inGroups(groups, atOnce)) {
      const replies = await Promise.all(some.map(group => this.#lanes.call({
        script: this.#scripts.inboxes,
        tag: group[0]!,
        keys: group.map(tag => this.#keyNames.inboxes(tag)),
        texts: [...range, String(limit), retention],
        decode: tagged
      })))
      replies.forEach(([, at, ...found], place) => {
        for (const [n, tag] of some[place]!.entries()) {
          lists.push({ tag, at: at as number, found: found[n] as unknown[] })
        }
      })
    }
    return lists
  }

  /**
   * Claims an Idempotency-Key for this request, for so many milliseconds. Where the request names several inboxes, it
   * also chooses the one that it takes from next.
   * @param inbox the inbox that it chooses; empty for none
   * @param gone `gone` of a reply `left`, if the request that is gone turned out to have taken nothing
   */
  claim ({ tag, token, request, requester }: Claim, lifetime: number, inbox = '', gone = ''): Promise<ClaimReply> {
    return this.#lanes.call({
      script: this.#scripts.claim,
      tag,
      keys: [this.#keyNames.request(tag, token)],
      texts: [request, String(lifetime), requester, inbox, gone],
      decode: readClaim
    })
  }

  /** Releases the claim, if this request was the first to make it, or the last to choose by it. */
  unclaim ({ tag, token, request, requester }: Claim): Promise<unknown> {
    const key = this.#keyNames.request(tag, token)
    const texts = [`${request} ${requester}`, '']
    return this.#lanes.call({ script: this.#scripts.delete, tag, keys: [key], texts, decode: tagged })
  }

  /** The channel that announces when a token has taken something here. */
  takenChannelOf ({ tag }: InboxPlace, token: string): string {
    return this.#keyNames.taken(tag, token)
  }

  /** The channel that announces when a request with this key has chosen an inbox. */
  choiceChannelOf ({ tag, token }: Claim): string {
    return this.#keyNames.request(tag, token)
  }

  /** The channel that announces when something has entered this list. */
  channelOf ({ tag, tenant, inbox }: InboxPlace): string {
    return this.#keyNames.inbox(tag, tenant, inbox)
  }
}

function readTake (reply: unknown, payloadKeys: PayloadKeys): TakeReply {
  const [outcome, more, ...parts] = tagged(reply)
  if (outcome === 'larger') throw new TooLarge()
  if (outcome === 'locked') throw payloadKeys.lacks(String(more))
  if (outcome === 'unsettled') return { outcome, taker: String(more) }
  if (more === undefined) return { outcome: outcome as 'closed' }
  const items: TakenHandoff[] = []
  let broken: PayloadBroken | undefined
  for (let at = 0; at < parts.length; at += partsAnItem) {
    const caught = parts.slice(at, at + partsAnItem)
    const handoff = handoffOfMember(caught[0])
    try {
      items.push({ id: handoff.id, ...readCaught(caught, new Seal(payloadKeys, handoff)) })
    } catch (error) {
      if (!(error instanceof PayloadBroken)) throw error
      broken ??= error
    }
  }
  // It is caught too, and ends by its deadline. Those beside it must not fall with it.
  if (broken !== undefined && items.length === 0) throw broken
  return { outcome: outcome as 'taken', isMore: more === 1, items }
}

/** @param counts as lua/lib/inbox.lua has them */
function readCounted (
  [
    pending, waiting, delayed, caught, failed, oldest, paused, maxCaught, maxPending, blocked, groups, maxCaughtPerGroup
  ]: unknown[]
): Counted {
  return {
    pending: pending as number,
    waiting: waiting as number,
    delayed: delayed as number,
    blocked: blocked as number,
    caught: caught as number,
    failed: failed as number,
    groups: groups as number,
    oldestAt: readOldest(oldest),
    ...readSettings([paused, maxCaught, maxPending, maxCaughtPerGroup])
  }
}

function readOldest (micros: unknown): number | null {
  return micros == null ? null : Math.floor(micros as number / 1000)
}

function readGroups (reply: unknown): { groups: CountedGroup[], isMore: boolean } {
  const [, more, ...groups] = tagged(reply)
  return {
    groups: (groups as unknown[][]).map(([group, pending, caught, oldest]) => ({
      group: String(group) || null,
      pending: pending as number,
      caught: caught as number,
      oldestAt: readOldest(oldest)
    })),
    isMore: more === 1
  }
}

function readSettings ([paused, maxCaught, maxPending, maxCaughtPerGroup]: unknown[]): InboxSettings {
  const limitOf = (value: unknown) => Number(value ?? 0) || null
  return {
    paused: String(paused) === '1',
    maxCaught: limitOf(maxCaught),
    maxPending: limitOf(maxPending),
    maxCaughtPerGroup: limitOf(maxCaughtPerGroup)
  }
}

function readSet (reply: unknown): SetReply {
  const [, changed, version, ...settings] = tagged(reply)
  return { isChanged: changed === 1, version: String(version), settings: readSettings(settings) }
}

function readClaim (reply: unknown): ClaimReply {
  const [outcome, chosen = '', gone = ''] = tagged(reply).map(String)
  return { outcome: outcome as 'claimed', chosen: chosen!, gone: gone! }
}
