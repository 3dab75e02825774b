import { factsOf } from './facts.ts'
import type { Fact, Facts } from './facts.ts'
import { isWithinContract } from './contract.ts'
import { markOf } from './history.ts'
import type { Operation, Track } from './history.ts'
import { indexFaults } from './index-checks.ts'
import { findStuck } from './linear.ts'
import type { Tolerance } from './linear.ts'
import { finalFaults } from './final-checks.ts'
import { standingOf } from './sequential.ts'
import type { RedisState } from './redis-state.ts'
import { lines } from './words.ts'

/**
 * What must be true of every handoff whatever happens:
 * I1 nothing acknowledged is lost; I2 one operation at most wins the catch; I3 the payload is as passed; I4 no operation is
 * told that it came too late for what it did itself; I5 there is an order, one after the other, in which these answers could
 * have been got (linear.ts); I6 nothing is caught after its expiry; I7 due indexes and hashes agree; I8 no 500, and no answer
 * that isn't one to what was asked.
 */
export type Invariant = 'I1' | 'I2' | 'I3' | 'I4' | 'I5' | 'I6' | 'I7' | 'I8'

export interface Violation {
  invariant: Invariant
  handoff: string
  sentence: string
  /** Those that show it. */
  operations: Operation[]
}

/** What a check says beyond its handoff. */
export type Fault = Omit<Violation, 'handoff'>

export interface CheckOptions extends Tolerance {
  /** Is there a proxy that may answer 502, 503, 504 in the service's place? */
  gateway: boolean
}

/** Clocks of one machine; the service's own budget is 2 s, and it looks around every 50 ms. */
export const usual: CheckOptions = { slack: 10, budget: 2100, workTtl: null, gateway: false }

/** Holds what was recorded to I1–I6 and I8 and, with what lies in Redis in the end, to I7. */
export function check (tracks: Iterable<Track>, options: CheckOptions = usual, state?: RedisState): Violation[] {
  const violations: Violation[] = []
  const byMember = new Map<string, Track>()
  for (const track of tracks) {
    for (const fault of checkTrack(track, options)) violations.push({ handoff: track.name, ...fault })
    if (track.id !== null) byMember.set(memberOf(track), track)
  }
  if (state === undefined) return violations
  for (const { member, sentence } of indexFaults(state, options.slack)) {
    const track = byMember.get(member)
    violations.push({ invariant: 'I7', handoff: track?.name ?? member, sentence, operations: track?.operations ?? [] })
  }
  const held = new Set(state.hashes.map(({ member }) => member))
  for (const [member, track] of byMember) {
    if (!held.has(member)) violations.push({ invariant: 'I1', handoff: track.name, sentence: 'it was passed, but Redis has no hash of it', operations: track.operations })
  }
  return violations
}

/** As the due index names it. */
function memberOf ({ id, operations }: Track): string {
  return `${operations[0]?.agent.split('/', 1)[0]}:${id}`
}

/** A violation with its operations, for a person. */
export function describe ({ invariant, handoff, sentence, operations }: Violation): string {
  return `${invariant} ${handoff}: ${sentence}\n${lines(operations)}`
}

export function checkTrack (track: Track, options: CheckOptions): Fault[] {
  const { facts, contradictions } = factsOf(track)
  return [
    ...contradictions.map(({ fact, first, second }): Fault => ({
      invariant: isAboutCatch(fact) ? 'I2' : 'I1',
      sentence: `two answers tell of ${fact} differently`,
      operations: [first, second],
    })),
    ...finalFaults(track, options),
    ...winnerFaults(track),
    ...answerFaults(track, options),
    ...conflictFaults(track),
    ...expiryFaults(track, facts, options),
    ...orderFaults(track, facts, options),
  ]
}

function isAboutCatch (fact: Fact): boolean {
  return fact === 'caughtAt' || fact === 'caughtBy'
}

/** I2. */
function winnerFaults ({ operations }: Track): Fault[] {
  const winners = new Map(operations.filter(isWon).map(operation => [`${operation.agent} ${markOf(operation)}`, operation]))
  if (winners.size < 2) return []
  return [{ invariant: 'I2', sentence: `${winners.size} operations won the catch`, operations: [...winners.values()] }]
}

function isWon ({ kind, status }: Operation): boolean {
  return kind === 'catch' && status === 200
}

/** I3 and I8. */
function answerFaults ({ operations }: Track, { gateway }: CheckOptions): Fault[] {
  const faults: Fault[] = []
  for (const operation of operations) {
    if (operation.same === false) faults.push({ invariant: 'I3', sentence: 'what was caught is not what was passed', operations: [operation] })
    if (!isWithinContract(operation, gateway)) faults.push({ invariant: 'I8', sentence: `${operation.kind} can't be answered so`, operations: [operation] })
  }
  return faults
}

/** I4. */
function conflictFaults ({ operations }: Track): Fault[] {
  const faults: Fault[] = []
  for (const operation of operations) {
    const { code, kind, status, replayed } = operation
    const fault = (sentence: string, others: Operation[] = []) => faults.push({ invariant: 'I4', sentence, operations: [...others, operation] })
    const before = (test: (other: Operation) => boolean) => operations.filter(other => other !== operation && other.sent < operation.ended! && test(other))
    if (code === 'idempotency_key_reused') {
      fault('a pass was taken for another one')
    } else if (kind === 'catch' && (code === 'already_caught' || code === 'already_done')) {
      const won = operations.filter(other => isWon(other) && isSameOperation(other, operation))
      if (code === 'already_caught' && won.length > 0) fault('the winner of the catch was told that somebody else was', won)
      if (before(other => other.kind === 'catch' && !isSameOperation(other, operation)).length === 0 && code === 'already_caught') fault('nobody else asked to catch it')
      if (code === 'already_done' && before(other => other.kind === 'done').length === 0) fault('nobody reported it done')
    } else if (kind === 'done' && code === 'already_done') {
      const own = operations.filter(other => other.kind === 'done' && other.status === 200 && isSameOperation(other, operation))
      if (own.length > 0) fault('what reported it done was told that another did', own)
      else if (before(other => other.kind === 'done' && !isSameOperation(other, operation)).length === 0) fault('nobody else reported it done')
    } else if (kind === 'done' && (code === 'not_caught' || code === 'not_the_catcher')) {
      const won = operations.filter(other => isWon(other) && other.agent === operation.agent && other.ended! < operation.sent)
      if (won.length > 0) fault('who caught it was told that it did not', won)
    } else if (status < 300 && status >= 200 && !replayed && operation.token !== null) {
      const earlier = before(other => other.kind === kind && other.status === status && other.ended! < operation.sent && isSameOperation(other, operation))
      if (earlier.length > 0) fault('a repeat was not recognised', earlier)
    }
  }
  return faults
}

function isSameOperation (one: Operation, other: Operation): boolean {
  return one === other || (one.kind === other.kind && one.agent === other.agent && one.token !== null && one.token === other.token)
}

/** I6. */
function expiryFaults ({ operations }: Track, { caughtAt, expiresAt }: Facts, { slack }: CheckOptions): Fault[] {
  if (expiresAt === null) return []
  if (caughtAt !== null && caughtAt >= expiresAt) {
    return [{ invariant: 'I6', sentence: `caught ${caughtAt - expiresAt} ms after its expiry`, operations: operations.filter(({ kind }) => kind !== 'pass') }]
  }
  const late = operations.filter(operation => isWon(operation) && !operation.replayed && operation.sent - slack >= expiresAt)
  return late.map(operation => ({ invariant: 'I6', sentence: `asked for ${Math.round(operation.sent - expiresAt)} ms after its expiry, and caught`, operations: [operation] }))
}

/** I5. */
function orderFaults (track: Track, facts: Facts, options: CheckOptions): Fault[] {
  const stuck = findStuck(track, facts, options)
  if (stuck === null) return []
  const sentence = `no order explains these answers: after ${stuck.after.map(({ n }) => n).join(', ') || 'none'} it is ${standingOf(stuck.state)}, and ` +
    `${stuck.left.map(({ n }) => n).join(', ')} can't follow`
  return [{ invariant: 'I5', sentence: sentence + cure(track, facts, options), operations: track.operations }]
}

/** Would there be an order, had what was given up been allowed to happen later? That is one of the ways to go wrong, and worth a word. */
function cure (track: Track, facts: Facts, options: CheckOptions): string {
  const patient = findStuck(track, facts, options, true)
  return patient === null ? '; they would if one that was given up had happened later' : ''
}
