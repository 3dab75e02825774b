import { tickAfter } from './times.ts'
import type { Timing } from './times.ts'

/**
 * Which ticks of a schedule ran. Ticks that ran one after the other are one range, and the ranges of one way of
 * counting are one member, up to a length: from, to, the ranges, and how they were counted. A range is how many
 * milliseconds it begins after the end of the one before, and how many it takes unless it is one tick. So a schedule
 * that runs every ten seconds for a month needs one member, and one that leaves out every second tick some hundreds.
 */

/** How long the ranges of a member may be, in characters. */
const maxRanges = 1000

interface Member { from: number, to: number, ranges: string, counted: string }

function readMember (text: string): Member {
  const [from, to, ranges] = text.split(' ', 3) as [string, string, string]
  return {
    from: Number(from), to: Number(to), ranges, counted: text.slice(from.length + to.length + ranges.length + 3)
  }
}

function writeMember ({ from, to, ranges, counted }: Member): string {
  return `${from} ${to} ${ranges} ${counted}`
}

const writeSpan = (span: number) => span.toString(36)
const readSpan = (text: string) => parseInt(text, 36)

function countedAs ({ cron, timezone, every, anchor }: Timing): string {
  return JSON.stringify(cron === null ? { every, anchor } : { cron, timezone })
}

/** When it starts and ends isn't kept: a tick in between that they left out didn't run. */
function followsOn (timing: Timing, to: number, tick: number): boolean {
  return tickAfter({ ...timing, startsAt: null, endsAt: null }, to) === tick
}

/** @returns the member that has this tick from now on, and which one it takes the place of */
export function remember (
  timing: Timing, tick: number, newest: string | null
): { member: string, replaces: string | null } {
  const counted = countedAs(timing)
  const last = newest === null ? null : readMember(newest)
  if (last !== null && last.counted === counted && last.to < tick) {
    const { to, ranges } = last
    if (followsOn(timing, to, tick)) {
      const at = ranges.lastIndexOf('.') + 1
      const [gap, length = '0'] = ranges.slice(at).split('-') as [string, string?]
      const extended = `${ranges.slice(0, at)}${gap}-${writeSpan(readSpan(length) + tick - to)}`
      return { member: writeMember({ ...last, to: tick, ranges: extended }), replaces: newest }
    }
    if (ranges.length < maxRanges) {
      return { member: writeMember({ ...last, to: tick, ranges: `${ranges}.${writeSpan(tick - to)}` }), replaces: newest }
    }
  }
  return { member: writeMember({ from: tick, to: tick, ranges: '0', counted }), replaces: null }
}

/** The member that a tick goes on from, so that it needn't be in one of its own. @param not the ticker's newest */
export function memberBefore (
  members: readonly string[], timing: Timing, tick: number, not: string | null
): string | null {
  const counted = countedAs(timing)
  let [last, found]: [number, string | null] = [-Infinity, null]
  for (const text of members) {
    const member = readMember(text)
    if (text === not || member.counted !== counted || member.to >= tick || member.to < last) continue
    ;[last, found] = [member.to, text]
  }
  return found !== null && followsOn(timing, last, tick) ? found : null
}

interface TickRange { from: number, to: number, counted: string }

function rangesOf ({ from, ranges, counted }: Member): TickRange[] {
  let end = from
  return ranges.split('.').map(text => {
    const [gap, length] = text.split('-') as [string, string?]
    const begin = end + readSpan(gap)
    end = length === undefined ? begin : begin + readSpan(length)
    return { from: begin, to: end, counted }
  })
}

/** Whether a tick ran, by these members. It is to be asked of ticks from `since` on, in their order. */
export function ranBefore (members: readonly string[], since: number): (tick: number) => boolean {
  const ranges = members.map(readMember).filter(({ to }) => to >= since).flatMap(rangesOf)
    .filter(({ to }) => to >= since).sort((one, other) => one.from - other.from)
  let at = 0
  let begun: TickRange[] = []
  const isOf = ({ from, to, counted }: TickRange, tick: number) => {
    if (tick === from || tick === to) return true
    const timing = { cron: null, timezone: 'UTC', every: null, anchor: 0, startsAt: null, endsAt: null }
    return tickAfter({ ...timing, ...JSON.parse(counted) as Partial<Timing> }, tick - 1) === tick
  }
  return tick => {
    while (at < ranges.length && ranges[at]!.from <= tick) begun.push(ranges[at++]!)
    begun = begun.filter(({ to }) => to >= tick)
    return begun.some(range => isOf(range, tick))
  }
}
