import { createHash } from 'node:crypto'
import type { Fault } from '../../core/errors.ts'
import { iso } from '../../core/iso.ts'
import type { Caller, Subject } from '../../core/model.ts'
import type { ScheduleGiven, ScheduleOverlap } from '../../core/schemas/schedules.ts'
import { readTime } from '../../clients/typescript/command/common/time.ts'
import { CronError, parseCron } from './cron.ts'
import { withoutToken } from './template.ts'
import { shortestInterval, tickAfter, ticksAfter } from './times.ts'
import type { Timing } from './times.ts'
import { isZone } from './zones.ts'

/** What a schedule says, as it is kept: JSON. Durations in seconds as given, times in milliseconds. */
export interface Says {
  cron: string | null
  every: number | null
  timezone: string | null
  overlap: ScheduleOverlap
  catchUp: number
  jitter: number
  startsAt: number | null
  endsAt: number | null
  paused: boolean
  passedBy: string
  /** Whose token its owner set it with; left out for a key. */
  subject?: Subject | undefined
  createdAt: number
  updatedAt: number
  /** When its times were set: what was due before doesn't run. */
  since: number
  /** When `every` was set, from which its ticks are counted unless it has `startsAt`. */
  everySince: number
}

const defaults = { overlap: 'skip', catchUp: 300, jitter: 0, timezone: 'UTC' } as const

/** How many of the next times are shown. */
const shown = 5

export function readSays (text: string): Says {
  return JSON.parse(text) as Says
}

/** When it ticks. */
export function timingOf ({ cron, every, timezone, startsAt, endsAt, everySince }: Says): Timing {
  const interval = every === null ? null : every * 1000
  return {
    cron,
    timezone: timezone ?? defaults.timezone,
    every: interval,
    anchor: startsAt ?? everySince + (interval ?? 0),
    startsAt,
    endsAt
  }
}

/** How much later than its tick a run comes: the same at every replica. */
export function dueAt (name: string, { jitter }: Says, tick: number): number {
  if (jitter === 0) return tick
  const digest = createHash('sha256').update(`jitter ${name} ${tick}`).digest()
  return tick + digest.readUInt32LE(0) % (jitter * 1000 + 1)
}

/** What it said, its tick then, and the newest tick's run, JSON. */
export interface Before { says: Says, next: number | null, last: string | null }

/** The last of the ticks that this run is about. */
function lastTick (run: string | null): number {
  if (run === null) return -Infinity
  const { scheduled_for: time, until = time } = JSON.parse(run) as { scheduled_for: string, until?: string }
  return Date.parse(until)
}

/** The first tick that has yet to be run once it goes on again: what was due until now doesn't run. */
function tickOnResuming (name: string, says: Says, last: string | null, now: number): number | null {
  const from = Math.max(says.since, lastTick(last), now - says.jitter * 1000 - 1)
  for (const tick of ticksAfter(timingOf(says), from)) {
    if (dueAt(name, says, tick) > now) return tick
  }
  return null
}

/** What a body says of a schedule, and what is wrong with it. */
export function readBody (body: ScheduleGiven, faults: Fault[]) {
  const time = (name: 'starts_at' | 'ends_at') => {
    if (body[name] == null) return null
    const time = readTime(body[name])
    if (time === undefined) faults.push({ pointer: `/${name}`, message: 'must be a time like 2026-11-20T09:00:00.000Z' })
    return time ?? null
  }
  const said = {
    cron: body.cron ?? null,
    every: body.every ?? null,
    timezone: body.cron == null ? null : body.timezone ?? defaults.timezone,
    overlap: body.overlap ?? defaults.overlap,
    catchUp: body.catch_up ?? defaults.catchUp,
    jitter: body.jitter ?? defaults.jitter,
    startsAt: time('starts_at'),
    endsAt: time('ends_at'),
    paused: body.paused ?? false
  }
  const isCron = checkCron(said.cron, faults)
  if ((said.cron === null) === (said.every === null)) {
    faults.push(said.cron === null
      ? { pointer: '/cron', message: 'cron or every is needed' }
      : { pointer: '/every', message: 'not together with cron' })
  } else if (isCron && said.jitter * 2000 >
    shortestInterval({ cron: said.cron, every: (said.every ?? 0) * 1000 }, 7_200_001)) {
    faults.push({ pointer: '/jitter', message: 'must be at most half the shortest interval' })
  }
  if (body.timezone != null && body.cron == null) faults.push({ pointer: '/timezone', message: 'needs cron' })
  if (body.timezone != null && !isZone(body.timezone)) {
    faults.push({ pointer: '/timezone', message: 'must be the name of a time zone, like Europe/Berlin' })
  }
  if (said.startsAt !== null && said.endsAt !== null && said.startsAt >= said.endsAt) {
    faults.push({ pointer: '/ends_at', message: 'must be after starts_at' })
  }
  return said
}

function checkCron (cron: string | null, faults: Fault[]): boolean {
  try {
    if (cron !== null) parseCron(cron)
    return true
  } catch (error) {
    if (!(error instanceof CronError)) throw error
    faults.push({ pointer: '/cron', message: error.message })
    return false
  }
}

/** What it says from now on, and its next tick. @param before null for a new one */
export function replaced (
  name: string, said: ReturnType<typeof readBody>, before: Before | null,
  { agent, subject }: Caller, now: number
): { says: Says, next: number | null } {
  const old = before?.says
  const isSet = old === undefined || old.cron !== said.cron || old.every !== said.every ||
    old.timezone !== said.timezone || old.startsAt !== said.startsAt
  const passedBy = old?.passedBy ?? agent
  const says: Says = {
    ...said,
    passedBy,
    subject: agent === passedBy ? subject : old?.subject,
    createdAt: old?.createdAt ?? now,
    updatedAt: now,
    since: isSet ? now : old.since,
    everySince: old !== undefined && old.every === said.every ? old.everySince : now
  }
  return { says, next: nextOf(name, says, before, isSet, now) }
}

/** The same while only whether it is paused changes. */
export function paused (
  name: string, before: Before, isPaused: boolean, now: number
): { says: Says, next: number | null } {
  if (before.says.paused === isPaused) return before
  const says = { ...before.says, paused: isPaused, updatedAt: now }
  return { says, next: nextOf(name, says, before, false, now) }
}

function nextOf (
  name: string, says: Says, before: Before | null, isSet: boolean, now: number
): number | null {
  if (says.paused) return null
  if (isSet) return tickAfter(timingOf(says), now)
  const { next, last } = before!
  if (next === null) return tickOnResuming(name, says, last, now)
  return says.endsAt !== null && next >= says.endsAt ? null : next
}

/** As the API shows it, without its handoff. @param last the newest tick's run, JSON */
export function shownSchedule (
  name: string, says: Says, next: number | null, last: string | null, handoff?: Buffer | null
): string {
  const { catchUp, jitter, startsAt, endsAt } = says
  const times: string[] = []
  if (next !== null) {
    for (const tick of ticksAfter(timingOf(says), next - 1)) {
      if (times.push(iso(tick)) === shown) break
    }
  }
  const { cron, every, timezone } = says
  const head = JSON.stringify({ name, cron, every, timezone }).slice(0, -1)
  const tail = JSON.stringify({
    overlap: says.overlap,
    catch_up: catchUp,
    jitter,
    starts_at: startsAt === null ? null : iso(startsAt),
    ends_at: endsAt === null ? null : iso(endsAt),
    paused: says.paused,
    passed_by: says.passedBy,
    created_at: iso(says.createdAt),
    updated_at: iso(says.updatedAt),
    next: times
  }).slice(1, -1)
  const passed = handoff === undefined ? '' : `,"handoff":${handoff === null ? 'null' : withoutToken(handoff)}`
  return `${head}${passed},${tail},"last":${last ?? 'null'}${handoff === null ? ',"locked":true' : ''}}`
}
