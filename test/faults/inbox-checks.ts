import type { CheckOptions, Fault, Violation } from './checker.ts'
import { factsOf } from './facts.ts'
import { isUnknown, passOf } from './history.ts'
import type { History, Operation, Track } from './history.ts'
import { narrow } from './inbox-load.ts'
import { isBlockedRecord, deadlineOf, grouped, openQuestion, statusIn } from './index-checks.ts'
import type { SweepTolerance } from './index-checks.ts'
import type { Hash, RedisState } from './redis-state.ts'

/**
 * I14: an inbox gives what was passed to it, and its lists have exactly what can be caught from it, is delayed, waits for a person, is caught, or
 * failed. So has the list of all that failed, and those of the questions that are open.
 */

/** What an inbox gave out that isn't for it. */
export function addresseeFaults (track: Track): Fault[] {
  const pass = passOf(track)
  const asked = pass?.asked
  const inbox = pass === undefined || asked?.to === undefined ? 'none' : `${pass.agent.split('/', 1)[0]}/${asked.to}`
  const wrong = track.operations.filter(operation => operation.inbox !== undefined && !operation.inbox.split(' ').includes(inbox))
  return wrong.map(operation => ({ invariant: 'I14', sentence: `${operation.inbox} gave it, which is for ${inbox}`, operations: [operation] }))
}

/** More than the limit of an inbox were caught at once. */
export function crowdFaults ({ tracks }: History): Violation[] {
  const spans = [...tracks.values()].flatMap(track => {
    const pass = passOf(track)
    const { caughtAt, completedAt, endedAt, expiredAt } = factsOf(track).facts
    if (pass?.asked?.to?.startsWith(narrow.inbox) !== true || caughtAt === null) return []
    return [{ tenant: pass.agent.split('/', 1)[0]!, from: caughtAt, to: completedAt ?? endedAt ?? expiredAt ?? Infinity, track }]
  })
  return [...grouped(spans, ({ tenant }) => tenant).values()].flatMap(those => those.flatMap(({ tenant, from, track }) => {
    const count = those.filter(other => other.from <= from && other.to > from).length
    return count <= narrow.most ? [] : [{ invariant: 'I14' as const, handoff: track.name, sentence: `as it was caught, ${count} of ${tenant}/${narrow.inbox} were`, operations: track.operations }]
  }))
}

/** Refusals that no catch from an inbox may get here. */
export function refusedTakes ({ untold }: History): Violation[] {
  const isLawful = ({ answered, code }: Operation) => answered === null || code === 'unavailable' || code === 'request_timeout'
  return untold.filter(operation => !isLawful(operation))
    .map(operation => ({ invariant: 'I8', handoff: operation.inbox!, sentence: 'a catch from an inbox can’t be answered so', operations: [operation] }))
}

/**
 * Adds to each handoff the catches from its inbox that may have caught it though no answer said so: by its catcher, when it was caught.
 * Those were not answered, or the handoff had ended by the time of the answer: the service's connection to Redis broke, and when it asked
 * again there was nothing to give any more. Whether they fit is for the search for an order.
 */
export function assignUntold (history: History, { slack, budget }: CheckOptions): void {
  const unknown = history.untold.filter(isUnknown)
  if (unknown.length === 0 && history.told.length === 0) return
  const told = new Set(history.told)
  const each = [...unknown, ...history.told].flatMap(operation => operation.inbox!.split(' ').map(inbox => ({ inbox, operation })))
  const byCatcher = grouped(each, ({ inbox, operation }) => `${inbox} ${operation.agent}`)
  for (const track of history.tracks.values()) {
    const pass = passOf(track)
    if (pass?.asked?.to === undefined) continue
    const tenant = pass.agent.split('/', 1)[0]
    const { facts: { caughtAt, caughtBy, completedAt, expiredAt, endedAt } } = factsOf(track)
    if (caughtAt === null) continue
    const over = completedAt ?? expiredAt ?? endedAt ?? Infinity
    for (const { operation } of byCatcher.get(`${tenant}/${pass.asked.to} ${tenant}/${caughtBy}`) ?? []) {
      const { sent, ended } = operation
      // This one's answer would have had it.
      if (told.has(operation) && over > ended! + slack) continue
      if (caughtAt < sent - slack || caughtAt > Math.max(ended ?? Infinity, sent + budget) + slack) continue
      track.operations.push({ ...operation, n: history.count++, handoff: track.name, isAssumed: true })
    }
  }
}

/** @returns a sentence for each handoff that breaks I14 in Redis's data, by its member (`tenant:id`) */
export function listFaults (state: RedisState, tolerance: SweepTolerance): Array<{ member: string, sentence: string }> {
  const faults: Array<{ member: string, sentence: string }> = []
  const listed = grouped(state.listed, ({ member }) => member)
  const hashes = new Map(state.hashes.map(hash => [hash.member, hash]))
  for (const member of new Set([...listed.keys(), ...hashes.keys()])) {
    const places = (listed.get(member) ?? []).map(({ tag, list }) => `{${tag}} ${list}`).sort()
    const hash = hashes.get(member)
    const wanted = hash === undefined ? [] : placesOf(hash, state, tolerance)
    if (wanted !== null && wanted.join() !== places.join()) {
      faults.push({ member, sentence: `it is ${hash === undefined ? 'gone' : statusIn(hash)} and listed in ${places.join(' and ') || 'no inbox'}, not in ${wanted.join() || 'none'}` })
    }
  }
  return faults
}

/** The lists where it must be; null if it is about to enter or to leave one. */
function placesOf (hash: Hash, state: RedisState, tolerance: SweepTolerance): string[] | null {
  const places = inboxPlacesOf(hash, state, tolerance)
  const question = statusIn(hash) === 'caught' ? openQuestion(hash) : null
  if (places === null || question === null) return places
  if (Math.min(question.expires, deadlineOf(hash)!) <= state.to + tolerance.slack) return null
  return [...places, `{${hash.tag}} ${hash.member.split(':', 1)[0]}${question.of === 'r' ? ':passer' : ''} asks`].sort()
}

function inboxPlacesOf (hash: Hash, { from, to }: RedisState, { slack, sweep }: SweepTolerance): string[] | null {
  const { member, tag, record, extra } = hash
  const inbox = / t(\S+)/.exec(extra)?.[1]
  const tenant = member.split(':', 1)[0]
  const list = `{${tag}} ${tenant}:${inbox}`
  const words = record.split(' ')
  if (isFailed(hash, words[6] !== undefined || inbox !== undefined)) {
    return [`{${tag}} ${tenant} failed`, ...inbox === undefined ? [] : [`${list}:failed`]]
  }
  const group = / G(\S+)/.exec(extra)?.[1]
  if (inbox !== undefined && statusIn(hash) === 'caught') return deadlineOf(hash)! <= to + slack ? null : [`${list}:caught`, ...group === undefined ? [] : [`${list}:caught-groups ${group}`]]
  if (inbox === undefined || statusIn(hash) !== 'pending') return []
  const [approval, expires] = [words[1], Number(words[3])]
  if (expires <= to + slack) return null
  if (approval === 'waiting') return [`${list}:waiting`]
  if (isBlockedRecord(hash.record)) return [`${list}:blocked`]
  const available = Number(/ a(\d+)/.exec(extra)?.[1] ?? 0)
  if (available > to + slack) return [`${list}:delayed`]
  if (available + sweep + slack > from) return null
  return group === undefined ? [list] : [`${list}:grouped`, `${list}:groups ${group}`]
}

/** Did it end without being done and without a successor? @param isKept was it caught, or for an inbox? */
function isFailed (hash: Hash, isKept: boolean): boolean {
  const status = statusIn(hash)
  return (status === 'failed' || status === 'declined' || (status === 'expired' && isKept)) && !/ i\S/.test(hash.extra)
}
