import { chainFaults } from './chain-checks.ts'
import { conflictFaults, isWon } from './conflicts.ts'
import { isWithinContract } from './contract.ts'
import { endFaults, forceFaults, heartbeatFaults } from './ending-checks.ts'
import { factsOf } from './facts.ts'
import type { Fact, Facts } from './facts.ts'
import { markOf } from './history.ts'
import type { History, Operation, Track } from './history.ts'
import { addresseeFaults, assignUntold, listFaults, refusedTakes } from './inbox-checks.ts'
import { indexFaults, sweepRound } from './index-checks.ts'
import type { SweepTolerance } from './index-checks.ts'
import { findStuck } from './linear.ts'
import { finalFaults } from './final-checks.ts'
import { payloadFaults } from './payload-checks.ts'
import type { RedisState } from './redis-state.ts'
import { statusOf } from './state.ts'
import type { Tolerance } from './steps.ts'
import { lines } from './words.ts'

/**
 * The invariants of every handoff:
 * I1 nothing acknowledged is lost; I2 at most one operation wins the catch; I3 the payload is as passed; I4 no operation is refused
 * because of its own earlier success; I5 the history is linearizable: the answers fit some sequential order (linear.ts); I6 nothing is
 * caught after its expiry; I7 due indexes and hashes agree; I8 no 500, and every answer fits its request;
 * I9 a handoff has at most one successor; I10 exactly one handoff of a chain has the payload, until the chain frees it; I11 a handoff
 * ends once; I12 after a cancel with force nothing is done, failed or declined; I13 an answered heartbeat came before the deadline of
 * the answer before it; I14 an inbox gives what was passed to it, and lists exactly what can be caught from it; I15 a feed has each
 * transition once, in order (feed-checks.ts); I16 a webhook gets each event of its feed, and one message of each (webhook-checks.ts).
 */
export type Invariant = 'I1' | 'I2' | 'I3' | 'I4' | 'I5' | 'I6' | 'I7' | 'I8' | 'I9' | 'I10' | 'I11' | 'I12' | 'I13' | 'I14' | 'I15' | 'I16'

export interface Violation {
  invariant: Invariant
  handoff: string
  sentence: string
  /** The operations that show it. */
  operations: Operation[]
}

/** A violation without its handoff's name. */
export type Fault = Omit<Violation, 'handoff'>

export interface CheckOptions extends Tolerance, SweepTolerance {
  /** Whether a proxy may answer 502, 503, 504 instead of the service. */
  gateway: boolean
}

/** For clocks of one machine; the service's own budget is 2 s, and it checks for overdue calls every 50 ms. */
export const usual: CheckOptions = { slack: 10, budget: 2100, workTtl: null, gateway: false, sweep: sweepRound }

/** Checks a whole history, with its catches from inboxes. */
export function checkHistory (history: History, options: CheckOptions, state?: RedisState): Violation[] {
  assignUntold(history, options)
  return [...check(history.tracks.values(), options, state), ...refusedTakes(history, options)]
}

/** Checks the handoffs against all invariants except I7 and parts of I10 and I14, which are checked on Redis's data. */
export function check (tracks: Iterable<Track>, options: CheckOptions = usual, state?: RedisState): Violation[] {
  const violations: Violation[] = []
  const byMember = new Map<string, Track>()
  const all = new Map([...tracks].map(track => [track.name, track]))
  for (const track of all.values()) {
    for (const fault of [...checkTrack(track, options), ...chainFaults(track, name => all.get(name))]) violations.push({ handoff: track.name, ...fault })
    if (track.id !== null) byMember.set(memberOf(track), track)
  }
  if (state === undefined) return violations
  const inRedis = (invariant: Invariant) => ({ member, sentence }: { member: string, sentence: string }) => {
    const track = byMember.get(member)
    violations.push({ invariant, handoff: track?.name ?? member, sentence, operations: track?.operations ?? [] })
  }
  indexFaults(state, options).forEach(inRedis('I7'))
  payloadFaults(state).forEach(inRedis('I10'))
  listFaults(state, options).forEach(inRedis('I14'))
  const held = new Set(state.hashes.map(({ member }) => member))
  for (const [member, track] of byMember) {
    if (!held.has(member)) violations.push({ invariant: 'I1', handoff: track.name, sentence: 'it was passed, but Redis has no hash of it', operations: track.operations })
  }
  return violations
}

/** The handoff's name in the due index. */
function memberOf ({ id, descent, operations }: Track): string {
  return `${(descent?.pass ?? operations[0])?.agent.split('/', 1)[0]}:${id}`
}

/** A violation with its operations, for a person. */
export function describe ({ invariant, handoff, sentence, operations }: Violation): string {
  return `${invariant} ${handoff}: ${sentence}\n${lines(operations)}`
}

export function checkTrack (track: Track, options: CheckOptions): Fault[] {
  const { facts, contradictions } = factsOf(track)
  return [
    ...contradictions.map(({ fact, first, second }): Fault => ({
      invariant: invariantOf[fact] ?? 'I1',
      sentence: `two answers tell of ${fact} differently`,
      operations: [first, second],
    })),
    ...finalFaults(track, facts, options),
    ...winnerFaults(track),
    ...answerFaults(track, options),
    ...conflictFaults(track),
    ...expiryFaults(track, facts, options),
    ...endFaults(track),
    ...forceFaults(track),
    ...heartbeatFaults(track, facts, options),
    ...addresseeFaults(track),
    ...orderFaults(track, facts, options),
  ]
}

/** The invariant that is broken if answers contradict each other about a fact; I1 by default. */
const invariantOf: Partial<Record<Fact, Invariant>> = {
  caughtAt: 'I2', caughtBy: 'I2', endedAt: 'I11', endedBy: 'I11', expiredAt: 'I11', reissuedAs: 'I9', reissuedAt: 'I9', reissueOf: 'I9', attempt: 'I9',
}

/** I2. */
function winnerFaults ({ operations }: Track): Fault[] {
  const winners = new Map(operations.filter(isWon).map(operation => [`${operation.agent} ${markOf(operation)}`, operation]))
  if (winners.size < 2) return []
  return [{ invariant: 'I2', sentence: `${winners.size} operations won the catch`, operations: [...winners.values()] }]
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
  const sentence = `no order explains these answers: after ${stuck.after.map(({ n }) => n).join(', ') || 'none'} it is ${statusOf(stuck.state)}, and ` +
    `${stuck.left.map(({ n }) => n).join(', ')} can't follow`
  return [{ invariant: 'I5', sentence: sentence + cure(track, facts, options), operations: track.operations }]
}

/** Whether an order would exist if given-up operations might happen later: a common fault, so the message mentions it. */
function cure (track: Track, facts: Facts, options: CheckOptions): string {
  const patient = findStuck(track, facts, options, true)
  return patient === null ? '; they would if one that was given up had happened later' : ''
}
