import { parseCron } from './cron.ts'
import type { Cron } from './cron.ts'
import { spansFrom } from './zones.ts'

/**
 * When schedules tick. The rule for summer time is the contract's, so the times are computed here: croner and others
 * differ from it, and from one another, at the edges of summer time. What a zone's clock shows is Node's (Intl).
 */

/** When a schedule ticks. Times and intervals in milliseconds. */
export interface Timing {
  cron: string | null
  timezone: string
  every: number | null
  /** Of `every`: its first tick, from which the others are counted. */
  anchor: number
  startsAt: number | null
  endsAt: number | null
}

const day = 86_400_000
/** How far ahead a tick is looked for: a 29th of February comes after eight years at most. */
const horizon = 9 * 366 * day
/** The largest change of a zone's clock, and more. */
const lookBehind = 2 * day

const knownCrons = new Map<string, Cron>()
const maxCrons = 2000

function cronOf (text: string): Cron {
  const known = knownCrons.get(text)
  if (known !== undefined) return known
  const made = parseCron(text)
  if (knownCrons.size >= maxCrons) knownCrons.clear()
  knownCrons.set(text, made)
  return made
}

/** The ticks after a moment, in their order, without end unless the schedule has one. */
export function * ticksAfter (timing: Timing, moment: number): Generator<number> {
  const { cron, every, anchor, startsAt, endsAt } = timing
  const after = Math.max(moment, (startsAt ?? -Infinity) - 1)
  const ticks = cron === null ? everyAfter(every!, anchor, after) : cronAfter(cronOf(cron), timing.timezone, after)
  for (const tick of ticks) {
    if (endsAt !== null && tick >= endsAt) return
    yield tick
  }
}

/** The first tick after a moment; null for none. */
export function tickAfter (timing: Timing, moment: number): number | null {
  return ticksAfter(timing, moment).next().value ?? null
}

function * everyAfter (every: number, anchor: number, after: number): Generator<number> {
  let tick = anchor + Math.max(0, Math.floor((after - anchor) / every) + 1) * every
  for (; ; tick += every) yield tick
}

/**
 * Goes through the spans in which the zone's clock runs evenly, so the ticks come in their order. `shown` is the latest
 * time that the clock has shown: what is before it comes again, what it leaves out up to the next span is skipped.
 */
function * cronAfter (cron: Cron, zone: string, after: number): Generator<number> {
  let shown = -Infinity
  let last = after
  for (const { start, end, offset } of spansFrom(zone, after - lookBehind)) {
    if (start - last > horizon) return
    if (cron.isFixed && shown < start + offset && shown !== -Infinity && hasTick(cron, shown, start + offset)) {
      if (start > last) yield (last = start)
    }
    const from = cron.isFixed ? Math.max(start + offset, shown) : start + offset
    for (const local of localTicks(cron, Math.max(from, last + 1 + offset), Math.min(end + offset, last + horizon))) {
      if (local - offset > last) yield (last = local - offset)
    }
    shown = Math.max(shown, end + offset)
  }
}

function hasTick (cron: Cron, from: number, to: number): boolean {
  return localTicks(cron, from, to).next().done !== true
}

/** What the clock shows at the ticks from `from` on, up to `to`. */
function * localTicks ({ minutes, isOn }: Cron, from: number, to: number): Generator<number> {
  for (let number = Math.floor(from / day); number * day < to; number++) {
    if (!isOn(number)) continue
    const midnight = number * day
    for (const minute of minutes) {
      const local = midnight + minute * 60_000
      if (local >= to) return
      if (local >= from) yield local
    }
  }
}

/** The shortest time between two ticks, counted in UTC; Infinity for a single tick. Up to `limit`, above which any. */
export function shortestInterval ({ cron, every }: Pick<Timing, 'cron' | 'every'>, limit: number): number {
  if (cron === null) return every!
  const { minutes, isOn } = cronOf(cron)
  const first = minutes[0]!
  let shortest = Infinity
  for (const [at, minute] of minutes.entries()) {
    if (at > 0) shortest = Math.min(shortest, (minute - minutes[at - 1]!) * 60_000)
  }
  const overnight = day - (minutes.at(-1)! - first) * 60_000
  // Two days in a row come within 28 years, in which the calendar repeats, or never.
  if (overnight < Math.min(shortest, limit)) {
    for (let number = 0; number < 28 * 366; number++) {
      if (isOn(number) && isOn(number + 1)) return overnight
    }
  }
  return shortest
}
