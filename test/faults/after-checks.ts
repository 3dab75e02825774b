import { isBlockedRecord, statusIn } from './index-checks.ts'
import type { SweepTolerance } from './index-checks.ts'
import type { Hash, RedisState } from './redis-state.ts'

/**
 * I18, on Redis's data: what comes after others is released or cancelled once the last attempts of those have ended, and never before. The words of
 * field x and field b are in lua/lib/after.lua.
 */

interface After { need: 'd' | 'e', open: number, since: number | null, words: string[] }

type Find = (id: string) => Hash | undefined
/** Whether somebody may have had it reissued at this time: a successor of the same millisecond may have been made later than the end. */
export type MayBeReissued = (member: string, at: number) => boolean

/** @returns a sentence for each handoff that breaks I18, by its member (`tenant:id`) */
export function afterFaults (state: RedisState, tolerance: SweepTolerance, mayBeReissued: MayBeReissued = () => false): Array<{ member: string, sentence: string }> {
  const byMember = new Map(state.hashes.map(hash => [hash.member, hash]))
  return state.hashes.flatMap(hash => {
    const after = afterIn(hash)
    if (after === null) return []
    const find = (id: string) => byMember.get(`${hash.member.split(':', 1)[0]}:${id}`)
    return faultsOf(hash, after, find, mayBeReissued, state, tolerance).map(sentence => ({ member: hash.member, sentence }))
  })
}

/** Null if it comes after nothing, or is an attempt that has a successor, which has it all. */
function afterIn ({ extra, after }: Hash): After | null {
  const [, need, open, since] = / A(\w)\/(\d+)\/\d+(?:\/(\d+))?/.exec(extra) ?? []
  if (need === undefined || / i\S/.test(extra)) return null
  return { need: need as 'd', open: Number(open), since: since === undefined ? null : Number(since), words: after.split(' ') }
}

function faultsOf (hash: Hash, after: After, find: Find, mayBeReissued: MayBeReissued, { from, to }: RedisState, { slack, sweep }: SweepTolerance): string[] {
  const { need, open, since, words } = after
  const status = statusIn(hash)
  const record = hash.record.split(' ')
  const isFirst = !/ n\d/.test(hash.extra)
  // Neither an agent cancelled it nor an operator.
  const isByOthers = status === 'cancelled' && !/ y\S/.test(hash.extra)
  const faults: string[] = []
  const noted = words.filter(word => word.includes('/')).map(word => word.split('/') as [string, string, string])
  const waitsFor = words.filter(word => !word.includes('/'))
  if (isBlockedRecord(hash.record) !== (status === 'pending' && open > 0)) faults.push(`it is ${hash.record.slice(0, 9)}, and waits for ${open}`)
  if ((since === null) !== (open > 0)) faults.push(`it waits for ${open} since ${since}`)
  if (waitsFor.length !== open - (isByOthers ? 1 : 0)) faults.push(`it waits for ${open}, and these are noted: ${words.join(' ')}`)
  if (isByOthers && !(need === 'd' && noted.some(([, , how]) => how !== 'done'))) faults.push(`it is cancelled, though it needs ${need}, by ${words.join(' ')}`)
  const caught = record[6] === undefined ? null : Number(record[6])
  if (caught !== null && (since === null || caught < since - slack)) faults.push(`it was caught at ${caught}, and waited until ${since}`)
  const decided = isByOthers ? endOf(hash) : since
  for (const [named, last, how] of noted) {
    if (need === 'd' && how !== 'done' && !isByOthers) faults.push(`${named} is ${how}, and it is ${status}`)
    const one = chainOf(named, find).find(({ member }) => member.endsWith(`:${last}`))
    if (one === undefined) faults.push(`${last} is no attempt of ${named}`)
    else if (statusIn(one) !== how) faults.push(`${last} is ${statusIn(one)}, and not ${how}`)
    else if (isFirst && decided !== null && endOf(one) > decided + slack) faults.push(`it waited until ${decided}, and ${last} ended at ${endOf(one)}`)
    else if (hasMadeNext(one, find) && !mayBeReissued(one.member, endOf(one))) faults.push(`${last} has a successor, which has to end first`)
  }
  if (!isBlockedRecord(hash.record) || Number(record[3]) <= to + slack) return faults
  for (const named of waitsFor) {
    const chain = chainOf(named, find)
    const last = chain.at(-1)
    // A pass whose noting was lost, in a failover, is noted by the sweep's first look: an end before that may go unseen.
    const missed = chain.find(one => isOverSince(one, find) && endOf(one) > Number(record[2]) + sweep + slack)
    if (missed !== undefined && endOf(missed) + sweep + slack < from) faults.push(`it waits for ${named}, which ended at ${endOf(missed)}, and was reissued later`)
    if (last === undefined) faults.push(`it waits for ${named}, which is gone`)
    else if (!live.has(statusIn(last)) && endOf(last) + sweep + slack < from) faults.push(`it waits for ${named}, which is ${statusIn(last)} since ${endOf(last)}, ${Math.round(from - endOf(last))} ms`)
  }
  return faults
}

const live = new Set(['pending', 'caught'])

/** The attempts of a handoff, from one on. */
function chainOf (id: string, find: Find): Hash[] {
  const hash = find(id)
  if (hash === undefined) return []
  const next = / i(\S+)/.exec(hash.extra)?.[1]
  return [hash, ...next === undefined ? [] : chainOf(next, find)]
}

/** When a handoff ended, by its record (lua/lib/record.lua). A rejection has its time elsewhere: then it is never too late. */
function endOf ({ record, extra }: Hash): number {
  const words = record.split(' ')
  switch (statusIn({ record })) {
    case 'done': return Number(words[10])
    case 'expired': return Math.min(...[words[7] ?? words[3], / h(\d+)/.exec(extra)?.[1] ?? Infinity].map(Number))
    case 'rejected': return Number(words[2])
    default: return Number(/ e(\d+)/.exec(extra)?.[1])
  }
}

/** Whether it had ended for good before it was reissued by hand. */
function isOverSince (hash: Hash, find: Find): boolean {
  const next = find(/ i(\S+)/.exec(hash.extra)?.[1] ?? '')
  return next !== undefined && ['failed', 'declined'].includes(statusIn(hash)) && Number(next.record.split(' ')[2]) > endOf(hash)
}

/** Whether its successor was made in the step that ended it, and has got those that come after it. One that is made later by hand has none of them. */
function hasMadeNext (hash: Hash, find: Find): boolean {
  const next = find(/ i(\S+)/.exec(hash.extra)?.[1] ?? '')
  return next !== undefined && next.extra.includes(' W') && Number(next.record.split(' ')[2]) === endOf(hash)
}
