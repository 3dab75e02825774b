import type { Redis } from 'ioredis'
import { homeTag, tagOf } from '../core/ids.ts'
import { PayloadKeys } from '../core/payload-keys.ts'
import { Seal } from '../core/seal.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { ScriptName } from '../redis/outcomes.ts'
import type { Scripts } from '../redis/scripts.ts'
import { memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import { tagged } from './replies.ts'
import type { Replied } from './replies.ts'

const maxSchedules = 1000

/**
 * A tick that a replica has begun: of which partition the handoff is, who took it last and how often it was taken, and
 * in which round (lua/lib/ticks.lua).
 */
export interface BegunTick { tick: number, tag: string, by: string, round: number }

/**
 * A schedule as Redis keeps it (lua/schedule-put.lua). Its definition and its runs are JSON text, which only the
 * service reads.
 */
export interface StoredSchedule {
  tenant: string
  name: string
  /** Distinguishes it from those of its name before it. */
  making: string
  version: string
  says: string
  /** What it passes. Throws PayloadLocked or PayloadBroken where that can't be opened here. */
  readonly handoff: Buffer
  /** The tag of the partition that its handoffs are in. */
  home: string
  /** Its next tick (ms). */
  next: number | null
  claim: BegunTick | null
  /** The newest tick's run. */
  last: string | null
  /** The handoff of the newest tick that passed one. */
  work: string | null
  range: string | null
}

/** One in its turn, one that is made up for, or a run with an Idempotency-Key (lua/lib/ticks.lua). */
export type TickKind = 't' | 'b' | 'r'

interface ListedSchedule { name: string, says: string, next: number | null, last: string | null }

interface NewSchedule {
  /** What was read; null: there was none. */
  seen: Pick<StoredSchedule, 'version' | 'next'> | null
  token: string
  says: string
  /** Null: as it is. */
  handoff: Buffer | null
  home: string
  next: number | null
  /** When it is looked at (ms); null: not. */
  dueAt: number | null
}

/** A run that was asked for: its handoff's id, and when (ms). */
export interface BegunRun { id: string, at: number }

/** The same of one that makes up for a tick (ms), and in which round (lua/lib/ticks.lua). */
export interface BegunFill extends BegunRun { tick: number, round: number }

/** What became of a tick, or of runs that were asked for. */
export interface TickNote {
  /** What ends with it; null for runs that were asked for. */
  claim: BegunTick | null
  next: number | null
  dueAt: number | null
  /** Of this tick; null keeps the one before. */
  work: string | null
  last: string | null
  /** What is remembered from now on of ticks that ran; the first takes the place of `replaces`. */
  ranges: readonly string[]
  replaces: string | null
  /** JSON text, the oldest first. One that was noted before isn't noted again. */
  runs: readonly string[]
  /** What ends with it of the runs that were asked for. */
  ends?: ReadonlyArray<BegunRun | BegunFill>
  /** Only if that hasn't ended yet. */
  isOnce?: boolean
}

/** A note of runs that were asked for: nothing else changes. */
export const noteOfRuns = {
  claim: null, next: null, dueAt: null, work: null, last: null, ranges: [], replaces: null
} as const

export interface Due { schedule: StoredSchedule, isFresh: boolean }

interface SchedulesOptions {
  tags: readonly string[]
  replica: string
  connectionTo (tag: string): Redis | undefined
}

/** ScheduleStore in Redis: one method a script. A tenant's are in its home partition. */
export class ScheduleStore {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #options: SchedulesOptions
  readonly #payloadKeys: PayloadKeys

  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames, options: SchedulesOptions, payloadKeys = new PayloadKeys()
  ) {
    this.#payloadKeys = payloadKeys
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#options = options
  }

  /** This replica, as claims name it. */
  get replica (): string {
    return this.#options.replica
  }

  /** Where it is announced that schedules of a partition changed. */
  get channel (): string {
    return this.#keyNames.schedulesDue(this.#options.tags[0]!)
  }

  /** Says so. The message may be lost: then it is found later. @param lacks this replica, if others are to run them */
  async notify (tag: string, lacks = ''): Promise<void> {
    const connection = this.#options.connectionTo(this.#options.tags[0]!)
    await connection?.spublish(this.channel, lacks === '' ? tag : `${tag} ${lacks}`).catch(() => {})
  }

  /** The partitions among these that have schedules with ticks, without those that can't be asked now. */
  async partitions (tags: readonly string[]): Promise<string[]> {
    const found = await Promise.all(tags.map(async tag => {
      const key = this.#keyNames.schedulesDue(tag)
      const one = await this.#options.connectionTo(tag)?.zrange(key, '0', '0').catch(() => []) ?? []
      return one.length === 0 ? [] : [tag]
    }))
    return found.flat()
  }

  /** @param beside what is read with it: of that the newest */
  read (
    tenant: string, name: string, beside?: { list: 'runs' | 'ran' | 'begun', count: number }
  ): Promise<{ now: number, schedule: StoredSchedule | null, beside: string[] }> {
    const tag = homeTag(tenant)
    const keys = [this.#keyNames.schedule(tag, tenant, name)]
    if (beside !== undefined) keys.push(this.#keyNames.schedule(tag, tenant, name, beside.list))
    return this.#call('schedule-get', tag, keys, [String(beside?.count ?? 0)], ([outcome, now, fields, others]) => ({
      now: now as number,
      schedule: outcome === 'found' ? readSchedule(tenant, name, fields as Buffer[], this.#payloadKeys) : null,
      beside: ((others ?? []) as unknown[]).map(String)
    }))
  }

  list (
    tenant: string, after: string, limit: number
  ): Promise<{ now: number, isMore: boolean, items: ListedSchedule[] }> {
    const tag = homeTag(tenant)
    const texts = [this.#keyNames.schedule(tag, tenant, ''), after, String(limit)]
    return this.#call('schedule-list', tag, [this.#keyNames.schedules(tag, tenant)], texts, (
      [, now, more, ...items]
    ) => ({
      now: now as number,
      isMore: more === 1,
      items: (items as unknown[][]).map(item => {
        const [name, says, next, last] = item.map(String) as [string, string, string, string]
        return { name, says, next: countOf(next), last: last || null }
      })
    }))
  }

  /** @returns its making; null if there are too many, or if it changed since it was read */
  put (
    tenant: string, name: string, { seen, token, says, handoff, home, next, dueAt }: NewSchedule
  ): Promise<{ outcome: Replied<'schedule-put'>, making: string }> {
    const tag = homeTag(tenant)
    return this.#lanes.call({
      script: this.#scripts['schedule-put'],
      tag,
      keys: [
        this.#keyNames.schedule(tag, tenant, name), this.#keyNames.schedules(tag, tenant),
        this.#keyNames.schedulesDue(tag)
      ],
      texts: [
        memberOf(tenant, name), seen === null ? '' : `${seen.version} ${textOf(seen.next)}`, token, String(maxSchedules),
        textOf(dueAt), says, textOf(next), home
      ],
      bytes: handoff === null ? nothing : scheduleSeal(this.#payloadKeys, tenant, name).bytes('schedule', handoff),
      decode: reply => {
        const [outcome, making] = tagged<Replied<'schedule-put'>>(reply)
        return { outcome, making: String(making) }
      }
    })
  }

  /** @param settled of what a replica has begun @returns what is to be settled before; null: it is gone */
  delete ({ tenant, name, making }: StoredSchedule, settled: BegunTick | null): Promise<BegunTick | null> {
    const tag = homeTag(tenant)
    const keys = [
      this.#keyNames.schedule(tag, tenant, name), this.#keyNames.schedules(tag, tenant),
      this.#keyNames.schedulesDue(tag)
    ]
    const texts = [memberOf(tenant, name), making, settled === null ? '' : begunText(settled)]
    return this.#call('schedule-delete', tag, keys, texts, ([outcome, claim]) =>
      outcome === 'begun' ? readBegun(String(claim)) : null)
  }

  /**
   * Takes what is due in a partition.
   * @param lease how long for (ms)
   * @returns `first`: when the first of the others is; `isLocked`: whether some were left whose key isn't here
   */
  due (
    tag: string, limit: number, lease: number
  ): Promise<{ now: number, first: number | null, isLocked: boolean, due: Due[] }> {
    const texts = [String(limit), String(lease), this.replica, `${this.#keyNames.partition(tag)}schedule:`]
    return this.#call('schedule-due', tag, [this.#keyNames.schedulesDue(tag)], texts, (
      [, now, first, lock, ...taken]
    ) => ({
      now: now as number,
      first: countOf(String(first)),
      isLocked: this.#isLocked(String(lock)),
      due: (taken as unknown[][]).map(([member, fields, isFresh]) => {
        const [tenant, name] = String(member).split(':') as [string, string]
        return { schedule: readSchedule(tenant, name, fields as Buffer[], this.#payloadKeys), isFresh: isFresh === 1 }
      })
    }))
  }

  #isLocked (lock: string): boolean {
    if (lock !== '') this.#payloadKeys.lacks(lock)
    return lock !== ''
  }

  /** @returns `stale`: another replica noted it before; `changed`: what comes next is to be found anew */
  note (
    { tenant, name, making, version }: StoredSchedule, noted: TickNote
  ): Promise<Replied<'schedule-note'>> {
    const tag = homeTag(tenant)
    const { claim, next, dueAt, work, last, ranges, replaces, runs, ends = [], isOnce = false } = noted
    const texts = [
      memberOf(tenant, name), making, claim === null ? '' : begunText(claim), version, textOf(next), textOf(dueAt),
      work ?? '', last ?? '', replaces ?? '', ranges.join('\n'), runs.join('\n'),
      ends.map(runOf).join('\n'), isOnce ? '1' : ''
    ]
    const keys = [this.#keyNames.schedule(tag, tenant, name), this.#keyNames.schedulesDue(tag)]
    return this.#call('schedule-note', tag, keys, texts, ([outcome]) => outcome)
  }

  /**
   * Remembers that a run was asked for.
   * @param token of its Idempotency-Key; null without one
   * @param replaces what the key stood for, if that never will be passed; null for nothing
   * @returns the run that the key stands for; null if there is no such schedule any more
   */
  begin (
    { tenant, name, making }: StoredSchedule, token: string | null, run: BegunRun, replaces: BegunRun | null
  ): Promise<BegunRun | null> {
    const tag = homeTag(tenant)
    const keys = [this.#keyNames.schedule(tag, tenant, name), this.#keyNames.schedule(tag, tenant, name, 'begun')]
    if (token !== null) keys.push(this.#keyNames.request(tag, token))
    const texts = [making, runOf(run), replaces === null ? '' : runOf(replaces)]
    return this.#call('schedule-run', tag, keys, texts, ([outcome, begun]) =>
      outcome === 'begun' ? readBegunRun(String(begun)) : null)
  }

  /**
   * Remembers ticks that are about to be made up for.
   * @param runs the handoff of each, when (ms), and the tick
   * @returns them with their round; null if the schedule says something else than what was read
   */
  async beginFills (
    { tenant, name, making, version }: StoredSchedule, runs: ReadonlyArray<Omit<BegunFill, 'round'>>
  ): Promise<BegunFill[] | null> {
    const tag = homeTag(tenant)
    const keys = [this.#keyNames.schedule(tag, tenant, name), this.#keyNames.schedule(tag, tenant, name, 'begun')]
    const texts = [making, runs.map(run => `${runOf(run)} ${run.tick}`).join('\n'), '', version]
    return await this.#call('schedule-run', tag, keys, texts, ([outcome, round]) =>
      outcome === 'begun' ? runs.map(run => ({ ...run, round: Number(round) })) : null)
  }

  /**
   * Settles a tick that was begun in the partition of its handoff.
   * @param id its handoff's
   * @returns whether it ran; if it didn't, it never will in this round
   */
  settle (
    { tenant, name, making }: StoredSchedule, id: string, { tick, round }: Pick<BegunTick, 'tick' | 'round'>,
    kind: TickKind = 't'
  ): Promise<boolean> {
    const tag = tagOf(id)
    const keys = (['tick', 'ticked'] as const).map(which => this.#keyNames.ticks(tag, tenant, name, which))
    keys.push(this.#keyNames.handoff(tag, memberOf(tenant, id)))
    const texts = [making, String(tick), String(round), kind]
    return this.#call('tick-settle', tag, keys, texts, ([outcome]) => outcome === 'ran')
  }

  #call<Name extends ScriptName, T> (
    name: Name, tag: string, keys: string[], texts: string[],
    decode: (reply: [Replied<Name>, ...unknown[]]) => T
  ): Promise<T> {
    return this.#lanes.call({
      script: this.#scripts[name], tag, keys, texts, decode: reply => decode(tagged<Replied<Name>>(reply))
    })
  }
}

const nothing = Buffer.alloc(0)

function textOf (time: number | null): string {
  return time === null ? '' : String(time)
}

function countOf (text: string | undefined): number | null {
  return text === undefined || text === '' ? null : Number(text)
}

/** As the scripts write it. */
export function begunText ({ tick, tag, by, round }: BegunTick): string {
  return `${tick} ${tag} ${by}${round === 0 ? '' : ` ${round}`}`
}

function runOf (run: BegunRun | BegunFill): string {
  return [run.id, run.at, ...'round' in run ? [run.tick, run.round] : []].join(' ')
}

/** As `beside` of a schedule has them. */
export function readBegunRun (text: string): BegunRun | BegunFill {
  const [id, at, tick, round] = text.split(' ') as [string, string, string?, string?]
  return { id, at: Number(at), ...tick !== undefined && { tick: Number(tick), round: Number(round) } }
}

function readBegun (text: string): BegunTick | null {
  const [tick, tag, by, round = '0'] = text.split(' ') as [string, string, string, string?]
  return tick === '' ? null : { tick: Number(tick), tag, by, round: Number(round) }
}

function scheduleSeal (payloadKeys: PayloadKeys, tenant: string, name: string): Seal {
  return new Seal(payloadKeys, { tenant, id: `schedule:${name}` })
}

function readSchedule (
  tenant: string, name: string, fields: readonly Buffer[], payloadKeys: PayloadKeys
): StoredSchedule {
  const found: Record<string, Buffer> = {}
  for (let at = 0; at < fields.length; at += 2) found[String(fields[at])] = fields[at + 1]!
  const text = (field: string) => found[field]?.toString() || null
  return {
    tenant,
    name,
    making: text('making')!,
    version: text('version')!,
    says: text('says')!,
    get handoff () { return scheduleSeal(payloadKeys, tenant, name).open('schedule', found.handoff!) },
    home: text('home')!,
    next: countOf(text('next') ?? ''),
    claim: readBegun(text('claim') ?? ''),
    last: text('last'),
    work: text('work'),
    range: text('range')
  }
}
