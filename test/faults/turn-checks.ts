import { isBlockedRecord, openQuestion, statusIn } from './index-checks.ts'
import type { History } from './history.ts'
import type { Hash, RedisState } from './redis-state.ts'

/** I20: the groups of an inbox take turns, no more of one are caught than may be, and the lists of groups have what can be caught, once each. */

/** `most` of a group may be caught, null for any number. `answered`: Infinity until that is known to be set. */
export interface LimitChange { sent: number, answered: number, most: number | null }

/** A handoff of an inbox, as its hash tells of it. Times are in milliseconds, of the clocks of servers. */
interface Held {
  member: string
  /** Empty for none. */
  group: string
  status: string
  /** Whether it can be caught, at the latest after the next sweep. */
  isThere: boolean
  /** Whether it could be caught as soon as it was passed. */
  isPlain: boolean
  /** When it could be caught first, at the earliest. */
  entered: number
  expires: number
  /** Null if nobody caught it. */
  caughtAt: number | null
  /** How it was caught: the agent, and its operation. */
  by: string
  /** When it was caught no more: surely by then, and perhaps still then. */
  ended: { atFirst: number, atLast: number }
}

/** @param inbox `tenant:inbox` */
export function heldBy (state: RedisState, inbox: string): Held[] {
  const [tenant, name] = inbox.split(':')
  return state.hashes.filter(({ member, extra }) => member.startsWith(`${tenant}:`) && / t(\S+)/.exec(extra)?.[1] === name).map(hash => heldOf(hash, state.from))
}

function heldOf (hash: Hash, now: number): Held {
  const { member, record, extra } = hash
  const words = record.replace(/^[2-5]:/, '').split(' ')
  const status = statusIn(hash)
  const [approval, created, expires] = [words[1], Number(words[2]), Number(words[3])]
  const available = Number(/ a(\d+)/.exec(extra)?.[1] ?? 0)
  const caughtAt = words[6] === undefined ? null : Number(words[6])
  const isThere = status === 'pending' && approval !== 'waiting' && !isBlockedRecord(record) && available < now
  return {
    member,
    group: / G(\S+)/.exec(extra)?.[1] ?? '',
    status,
    isThere,
    isPlain: approval === 'none' && available === 0 && !isBlockedRecord(record) && !/ A/.test(extra),
    entered: Math.max(created, available),
    expires,
    caughtAt,
    by: `${words[8]} ${words[9]}`,
    ended: endOf(hash, status, words),
  }
}

/** The sweep may come late to what expired. */
function endOf (hash: Hash, status: string, words: readonly string[]): Held['ended'] {
  if (status === 'pending' || status === 'caught') {
    const deadline = status === 'caught' && openQuestion(hash) === null ? Math.min(Number(words[7]), Number(/ h(\d+)/.exec(hash.extra)?.[1] ?? Infinity)) : Infinity
    return { atFirst: deadline, atLast: Infinity }
  }
  if (status === 'done') return { atFirst: Number(words[10]), atLast: Number(words[10]) }
  const told = / e(\d+)/.exec(hash.extra)?.[1]
  if (told !== undefined) return { atFirst: Number(told), atLast: Number(told) }
  return { atFirst: Math.min(Number(words[words[7] === undefined ? 3 : 7]), Number(/ h(\d+)/.exec(hash.extra)?.[1] ?? Infinity)), atLast: Infinity }
}

/** @param inbox `tenant:inbox` @param slack between two servers' clocks, in milliseconds @returns a sentence for each fault */
export function turnFaults (state: RedisState, history: History, inbox: string, limits: readonly LimitChange[], slack: number): string[] {
  const all = heldBy(state, inbox)
  const byIds = caughtById(history)
  const isTaken = (one: Held) => one.caughtAt !== null && !byIds.has(`${one.member} ${one.by.split(' ', 1)[0]}`)
  return [
    ...unfair(all, isTaken, limits, slack),
    ...crowded(all, isTaken, limits, slack),
    ...listsOf(state, inbox),
  ].map(sentence => `I20 ${inbox}: ${sentence}`)
}

/** What agents asked for by its id: then nobody can tell whether it took a turn. */
function caughtById ({ tracks }: History): Set<string> {
  return new Set([...tracks.values()].flatMap(({ id, operations }) =>
    operations.filter(({ kind, inbox }) => kind === 'catch' && inbox === undefined).map(({ agent }) => `${agent.split('/', 1)[0]}:${id} ${agent.slice(agent.indexOf('/') + 1)}`)))
}

/** While a group had something to be caught, another was served twice. */
function unfair (all: readonly Held[], isTaken: (one: Held) => boolean, limits: readonly LimitChange[], slack: number): string[] {
  const faults: string[] = []
  for (const waiting of all) {
    if (!waiting.isPlain) continue
    const left = waiting.caughtAt ?? Math.min(waiting.ended.atFirst, waiting.expires)
    const own = all.filter(one => one.group === waiting.group && one.caughtAt !== null).map(one => one.caughtAt!).filter(at => at > waiting.entered && at < left)
    const bounds = [waiting.entered, ...own.sort((one, other) => one - other), left]
    for (const [at, from] of bounds.slice(0, -1).entries()) {
      const to = bounds[at + 1]!
      if (mayBeFull(all, waiting.group, limits, from - slack, to + slack)) continue
      const served = all.filter(one => isTaken(one) && one.group !== waiting.group && one.caughtAt! > from + slack && one.caughtAt! < to - slack)
      for (const group of new Set(served.map(one => one.group))) {
        const times = served.filter(one => one.group === group)
        const isLater = all.every(one => one.group !== group || one.entered > from + slack || leftAt(one) < from - slack)
        if (isLater) faults.push(`${waiting.member} of ${waiting.group || 'none'} could be caught from ${from} to ${to}, and ${times[0]!.member} of ${group || 'none'}, which came later, was caught at ${times[0]!.caughtAt}`)
        if (times.length > 1) faults.push(`${waiting.member} of ${waiting.group || 'none'} could be caught from ${from} to ${to}, and meanwhile ${times.length} of ${group || 'none'} were: ${times.map(({ member, caughtAt }) => `${member} at ${caughtAt}`).join(', ')}`)
      }
    }
  }
  return faults
}

/** When it was in its inbox no more, at the latest. */
function leftAt ({ caughtAt, ended, status }: Held): number {
  return caughtAt ?? (status === 'pending' ? Infinity : ended.atLast)
}

/** Might as many of a group be caught as may be, at some time in between? */
function mayBeFull (all: readonly Held[], group: string, limits: readonly LimitChange[], from: number, to: number): boolean {
  const most = Math.min(...possible(limits, from, to).map(most => most ?? Infinity))
  if (group === '' || most === Infinity) return false
  return all.filter(one => one.group === group && one.caughtAt !== null && one.caughtAt <= to && one.ended.atLast >= from).length >= most
}

/** More of a group were caught than may be. */
function crowded (all: readonly Held[], isTaken: (one: Held) => boolean, limits: readonly LimitChange[], slack: number): string[] {
  return all.flatMap(one => {
    if (one.group === '' || !isTaken(one)) return []
    const at = one.caughtAt!
    const most = Math.max(...possible(limits, at - slack, at + slack).map(most => most ?? Infinity))
    const others = all.filter(other => other.group === one.group && other.caughtAt !== null &&
      ((other.by === one.by && other.caughtAt === at) || (other.caughtAt < at - slack && other.ended.atFirst > at + slack)))
    return others.length <= most ? [] : [`as ${one.member} of ${one.group} was caught, ${others.length} were, and ${most} may be`]
  })
}

/** The limits that may have held in between. */
function possible (limits: readonly LimitChange[], from: number, to: number): Array<number | null> {
  const all: LimitChange[] = [{ sent: -Infinity, answered: -Infinity, most: null }, ...limits]
  return all.filter(({ sent }, at) => sent <= to && !all.slice(at + 1).some(({ answered }) => answered < from)).map(({ most }) => most)
}

/** A group is in the turns, or held, exactly as long as it has something. */
function listsOf ({ turns = [] }: RedisState, inbox: string): string[] {
  return turns.filter(one => one.inbox === inbox).flatMap(({ groups, plain, queued, held }) => {
    const both = queued.filter(group => held.includes(group))
    const lost = groups.filter(group => !queued.includes(group) && !held.includes(group))
    const idle = [...queued, ...held].filter(group => group !== '' && !groups.includes(group))
    return [
      ...both.map(group => `${group} takes turns, and is held`),
      ...lost.map(group => `${group} has something, and takes no turns`),
      ...idle.map(group => `${group} takes turns, and has nothing`),
      ...groups.length > 0 && plain && !queued.includes('') ? ['what has no group takes no turns'] : [],
      ...groups.length === 0 && queued.length > 0 ? [`${queued.map(group => group || 'none').join()} takes turns though there are no groups`] : [],
    ]
  })
}
