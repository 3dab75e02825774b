import { tickAfter } from './times.ts'
import type { Timing } from './times.ts'

/**
 * Which ticks of a schedule ran. Ticks that ran one after the other are one member: the first, the last, and how they
 * were counted. So a schedule that runs every ten seconds for a month needs no more than one that runs once.
 */

interface TickRange { from: number, to: number, counted: string }

function readTicks (member: string): TickRange {
  const [from, to] = member.split(' ', 2) as [string, string]
  return { from: Number(from), to: Number(to), counted: member.slice(from.length + to.length + 2) }
}

function countedAs ({ cron, timezone, every, anchor }: Timing): string {
  return JSON.stringify(cron === null ? { every, anchor } : { cron, timezone })
}

/** @returns the member that has this tick from now on, and which one it takes the place of */
export function remember (
  timing: Timing, tick: number, newest: string | null
): { member: string, replaces: string | null } {
  const counted = countedAs(timing)
  // When it starts and ends isn't kept: a tick in between that they left out didn't run.
  const unbounded = { ...timing, startsAt: null, endsAt: null }
  const last = newest === null ? null : readTicks(newest)
  if (last !== null && last.counted === counted && last.to < tick && tickAfter(unbounded, last.to) === tick) {
    return { member: `${last.from} ${tick} ${counted}`, replaces: newest }
  }
  return { member: `${tick} ${tick} ${counted}`, replaces: null }
}

/** Whether a tick ran, by these members. */
export function ranBefore (members: readonly string[]): (tick: number) => boolean {
  const ranges = members.map(readTicks)
  const isOf = ({ from, to, counted }: TickRange, tick: number) => {
    if (tick < from || tick > to) return false
    if (tick === from || tick === to) return true
    const timing = { cron: null, timezone: 'UTC', every: null, anchor: 0, startsAt: null, endsAt: null }
    return tickAfter({ ...timing, ...JSON.parse(counted) as Partial<Timing> }, tick - 1) === tick
  }
  return tick => ranges.some(range => isOf(range, tick))
}
