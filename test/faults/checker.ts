import { errorTable } from '../../src/core/errors.ts'
import type { ErrorCode } from '../../src/core/errors.ts'
import { afterFaults } from './after-checks.ts'
import { factsOf } from './facts.ts'
import type { Fact, Facts } from './facts.ts'
import { passOf } from './history.ts'
import type { History, Operation, Track } from './history.ts'
import { addresseeFaults, assignUntold, crowdFaults, listFaults, refusedTakes } from './inbox-checks.ts'
import { indexFaults, sweepRound } from './index-checks.ts'
import type { SweepTolerance } from './index-checks.ts'
import { findStuck } from './linear.ts'
import { payloadFaults } from './payload-checks.ts'
import { questionFaults } from './question-checks.ts'
import { Questions } from './questions.ts'
import type { Question } from './questions.ts'
import { assignPurges, assignRedrives, purgeFaults, redriveFaults } from './operator-checks.ts'
import type { RedisState } from './redis-state.ts'
import { statusOf } from './state.ts'
import type { Tolerance } from './steps.ts'

/**
 * The invariants of every handoff:
 * I1 nothing acknowledged is gone; I2 answers agree on who caught it and when; I3 the payload is as passed; I5 the history is linearizable: the
 * answers fit some sequential order (linear.ts), in which at most one catch wins, nothing acknowledged is undone, nobody is refused because of
 * their own earlier success, and a handoff ends once; I6 nothing is caught after its expiry; I7 due indexes and hashes agree; I8 no 500, and each
 * status fits its code; I9 a handoff has at most one successor; I10 exactly one handoff of a chain has the payload, until the chain frees it;
 * I11 answers agree on its end; I14 an inbox gives what was passed to
 * it, and lists exactly what can be caught from it; I15 a feed has each transition once, in order (feed-checks.ts); I16 a webhook gets each event
 * of its feed, and one message of each (webhook-checks.ts); I17 a question has one answer, and the deadlines rest until it is answered or over
 * (question-checks.ts);
 * I18 what comes after others is released or cancelled when the last of those has ended, and never before (after-checks.ts); I19 a callback's
 * address is told each end at least once, and of no other handoff (callback-checks.ts); I20 the groups of an inbox take turns (turn-checks.ts); I21
 * what an agent has live is counted, and limited by no less than that (sim/limiting.ts). The last two the simulator looks at. I22 A2A's tasks,
 * the ticks of schedules and files, each once and whole (everything/load.ts).
 */
export type Invariant = 'I1' | 'I2' | 'I3' | 'I5' | 'I6' | 'I7' | 'I8' | 'I9' | 'I10' | 'I11' | 'I14' | 'I15' | 'I16' | 'I17' | 'I18' | 'I19' | 'I22'

export interface Violation {
  invariant: Invariant
  handoff: string
  sentence: string
  /** The operations that show it. */
  operations: Operation[]
}

/** A violation without its handoff's name. */
export type Fault = Omit<Violation, 'handoff'>

export type CheckOptions = Tolerance & SweepTolerance

/** For clocks of one machine; the service's own budget is 2 s, and it checks for overdue calls every 50 ms. */
export const usual: CheckOptions = { slack: 10, budget: 2100, workTtl: null, maxWorkTtl: null, sweep: sweepRound }

/** Checks a whole history, with its catches from inboxes. */
export function checkHistory (history: History, options: CheckOptions, state?: RedisState): Violation[] {
  assignUntold(history, options)
  assignRedrives(history)
  assignPurges(history)
  return [...check(history.tracks.values(), options, state), ...refusedTakes(history), ...crowdFaults(history), ...redriveFaults(history), ...purgeFaults(history)]
}

/** Violations of what lies in Redis, by the handoffs' members (`tenant:id`). */
export function foundInRedis (invariant: Invariant, faults: ReadonlyArray<{ member: string, sentence: string }>, history: History): Violation[] {
  return faults.map(({ member, sentence }) => ({ invariant, handoff: member, sentence, operations: history.of(member) }))
}

/** Checks the handoffs against all invariants except I7 and parts of I10 and I14, which are checked on Redis's data. */
export function check (tracks: Iterable<Track>, options: CheckOptions = usual, state?: RedisState): Violation[] {
  const violations: Violation[] = []
  const byMember = new Map<string, Track>()
  for (const track of tracks) {
    for (const fault of checkTrack(track, options)) violations.push({ handoff: track.name, ...fault })
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
  const mayBeReissued = (member: string, at: number) => {
    const { operations = [], redrives = [] } = byMember.get(member) ?? {}
    const asked = [...operations.filter(({ kind }) => kind === 'reissue'), ...redrives]
    return asked.some(({ sent, ended }) => sent - options.slack <= at && at <= (ended ?? Infinity) + options.slack)
  }
  afterFaults(state, options, mayBeReissued).forEach(inRedis('I18'))
  const held = new Set(state.hashes.map(({ member }) => member))
  for (const [member, track] of byMember) {
    if (!held.has(member)) violations.push({ invariant: 'I1', handoff: track.name, sentence: 'it was passed, but Redis has no hash of it', operations: track.operations })
  }
  return violations
}

/** The questions of each handoff that has any, by its member. */
export function questionsOf (history: History): Map<string, readonly Question[]> {
  return new Map([...history.tracks.values()].flatMap(track => {
    const { all } = new Questions(track)
    return all.length === 0 || track.id === null ? [] : [[memberOf(track), all] as const]
  }))
}

/** The handoff's name in the due index. */
function memberOf ({ id, descent, operations }: Track): string {
  return `${(descent?.pass ?? operations[0])?.agent.split('/', 1)[0]}:${id}`
}

function checkTrack (track: Track, options: CheckOptions): Fault[] {
  const { facts, contradictions } = factsOf(track)
  return [
    ...contradictions.map(({ fact, first, second }): Fault => ({
      invariant: invariantOf[fact] ?? 'I1',
      sentence: `two answers tell of ${fact} differently`,
      operations: [first, second],
    })),
    ...lossFaults(track),
    ...answerFaults(track),
    ...labelFaults(track),
    ...expiryFaults(track, facts),
    ...addresseeFaults(track),
    ...questionFaults(track, facts, options),
    ...orderFaults(track, facts, options),
  ]
}

/** The invariant that is broken if answers contradict each other about a fact; I1 by default. */
const invariantOf: Partial<Record<Fact, Invariant>> = {
  caughtAt: 'I2', caughtBy: 'I2', endedAt: 'I11', endedBy: 'I11', expiredAt: 'I11', reissuedAs: 'I9', reissuedAt: 'I9', reissueOf: 'I9', attempt: 'I9',
}

/** I1: what was passed, or made as a successor, is there. What else was acknowledged is there if its order is right (I5). */
function lossFaults ({ operations, final, descent }: Track): Fault[] {
  const passed = descent?.pass ?? operations.find(({ kind, status }) => kind === 'pass' && status === 201)
  if (passed === undefined) return []
  const gone = operations.filter(({ code, sent }) => code === 'not_found' && (descent !== null || sent > passed.answered!))
  const faults = gone.map((one): Fault => ({ invariant: 'I1', sentence: 'it was passed, but is not there', operations: [passed, one] }))
  const isUnknown = final !== null && (final.answered === null || final.status >= 500)
  return isUnknown ? [...faults, { invariant: 'I1', sentence: 'nothing is known of it in the end', operations: [passed, final] }] : faults
}

/** I3 and I8. */
function answerFaults ({ operations }: Track): Fault[] {
  const faults: Fault[] = []
  for (const operation of operations) {
    if (operation.same === false) faults.push({ invariant: 'I3', sentence: 'what was caught is not what was passed', operations: [operation] })
    if (operation.answered !== null && !isWithinContract(operation)) faults.push({ invariant: 'I8', sentence: `${operation.kind} can't be answered so`, operations: [operation] })
  }
  return faults
}

/** I3 for labels and groups: those of a successor too. */
function labelFaults (track: Track): Fault[] {
  const asked = passOf(track)?.asked
  if (asked == null) return []
  const passed = asked.labels?.tries ?? null
  const wrong = (name: 'tries' | 'group', was: string | null) => track.operations.filter(({ answer }) => answer?.[name] !== undefined && answer[name] !== was)
  return [
    ...wrong('tries', passed).map((one): Fault => ({ invariant: 'I3', sentence: 'its labels are not those that were passed', operations: [one] })),
    ...wrong('group', asked.group ?? null).map((one): Fault => ({ invariant: 'I3', sentence: 'its group is not the one that was passed', operations: [one] })),
  ]
}

/** Whether an error is one of the service's, and a success has the operation's own status. Which errors fit depends on the state (I5). */
function isWithinContract ({ kind, status, code, answer, firm }: Operation): boolean {
  if (code !== null) return code !== 'internal_error' && errorTable[code as ErrorCode]?.status === status
  if (answer?.id === undefined) return false
  return status === (kind === 'pass' || kind === 'reissue' || kind === 'ask' ? 201 : 200) || (kind === 'cancel' && status === 202 && !firm)
}

/** I6, by Redis's own clock. */
function expiryFaults ({ operations }: Track, { caughtAt, expiresAt }: Facts): Fault[] {
  if (expiresAt === null || caughtAt === null || caughtAt < expiresAt) return []
  return [{ invariant: 'I6', sentence: `caught ${caughtAt - expiresAt} ms after its expiry`, operations: operations.filter(({ kind }) => kind !== 'pass') }]
}

/** I5. */
function orderFaults (track: Track, facts: Facts, options: CheckOptions): Fault[] {
  const stuck = findStuck(track, facts, options)
  if (stuck === null) return []
  const sentence = `no order explains these answers: after ${stuck.after.map(({ n }) => n).join(', ') || 'none'} it is ${statusOf(stuck.state)}, and ` +
    `${stuck.left.map(({ n }) => n).join(', ')} can't follow`
  return [{ invariant: 'I5', sentence, operations: track.operations }]
}

/** A violation with its operations, for a person: a line each, with times in milliseconds since the first was sent. */
export function describe ({ invariant, handoff, sentence, operations }: Violation): string {
  const start = Math.min(...operations.map(({ sent }) => sent))
  return [`${invariant} ${handoff}: ${sentence}`, ...operations.map(operation => `  ${line(operation, start)}`)].join('\n')
}

function line ({ n, kind, agent, token, sent, answered, ended, status, code, answer, replayed }: Operation, start: number): string {
  const since = (time: number) => (time - start).toFixed(1)
  const end = ended === null ? 'under way' : since(ended)
  const said = answered === null
    ? 'no answer'
    : [status, code, replayed ? 'replayed' : null, answer === null ? null : JSON.stringify(answer)].filter(part => part !== null).join(' ')
  return `${n} ${since(sent)}–${end} ${kind} by ${agent}${token === null ? '' : ` with ${token}`}: ${said}`
}
