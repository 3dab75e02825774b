import type { Facts } from './facts.ts'
import { isUnknown, passOf } from './history.ts'
import type { Operation, Track } from './history.ts'
import type { Question, Questions } from './questions.ts'

/** The deadlines of the work and of heartbeats, by pass, by later answers and by questions. Milliseconds since the epoch. */

/**
 * When the work ends while so many questions have ended and none is open: not before `from`, and by `to`. Infinity if unknown.
 * @property work the deadline of the work alone, as pass, answers to heartbeats and questions have it @property told what answers told of it
 */
export interface WorkEnd { asked: number, from: number, to: number, work: number, told: ReadonlyArray<{ operation: Operation, at: number }> }

/** The defaults and limits of the service. @property workTtl null if it is longer than the run @property maxWorkTtl likewise */
export interface Lifetimes { workTtl: number | null, maxWorkTtl: number | null }

/** One for each number of questions that have ended. @returns none if nobody caught it */
export function workEnds (track: Track, { caughtAt }: Facts, questions: Questions, { workTtl, maxWorkTtl }: Lifetimes): WorkEnd[] {
  if (caughtAt === null) return []
  const { workWithin, heartbeatWithin = Infinity } = passOf(track)?.asked ?? {}
  const ends: WorkEnd[] = []
  let isKnown = !(questions.isUncertain || track.operations.some(isLostHeartbeat))
  let work = caughtAt + (workWithin ?? workTtl ?? Infinity)
  const latest = caughtAt + (maxWorkTtl ?? Infinity)
  for (let asked = 0, begins = caughtAt; ; asked++) {
    const named = track.operations.filter(operation => isNamedThen(operation, questions, asked))
    const told = named.flatMap(operation => operation.answer!.workExpiresAt == null ? [] : [{ operation, at: operation.answer!.workExpiresAt }])
    const computed = work
    if (work < Infinity) work = Math.max(work, ...told.map(({ at }) => at))
    const from = Math.min(work, Math.max(begins + heartbeatWithin, ...named.map(({ answer }) => answer!.heartbeatExpiresAt ?? -Infinity)))
    ends.push({ asked, from, to: isKnown ? from : Infinity, work: computed, told })
    const question = questions.all[asked]
    if (question === undefined) return ends
    const { at, isCertain } = endOf(question, track.operations)
    if (at === null) return ends
    isKnown &&= isCertain
    begins = at
    work = Math.min(at + Math.max(0, work - (question.askedAt ?? at)) + extendedBy(question, track.operations), Math.max(latest, work))
  }
}

/** Whether an answer names deadlines that hold once so many questions have ended: while one is open, it names none. */
function isNamedThen ({ kind, answer, replayed }: Operation, { all }: Questions, asked: number): boolean {
  if (answer === null || (answer.workExpiresAt == null && answer.heartbeatExpiresAt == null)) return false
  const { ask } = answer
  // A catch that is repeated names the deadline as it is by then, and no question.
  if (ask === undefined) return asked === 0 && !(kind === 'catch' && replayed)
  // A question that was withdrawn leaves deadlines behind that meant nothing.
  return (ask.state === 'answered' || ask.state === 'expired') && all[asked - 1]?.id === ask.id
}

/** When a question ended. If no answer tells, then at the end that it has by itself, or before. */
function endOf ({ id, askedAt, expiresAt, answeredAt }: Question, operations: readonly Operation[]): { at: number | null, isCertain: boolean } {
  if (answeredAt !== null) return { at: answeredAt, isCertain: true }
  // An answer may have been given, its connection broken, and another question been there when the service asked again.
  const isMaybeAnswered = operations.some(one => one.kind === 'answer' && one.about.askId === id && (isUnknown(one) || one.code === 'content_changed'))
  const isLapsed = operations.some(({ answer }) => answer?.ask?.id === id && answer.ask.state === 'expired')
  return isMaybeAnswered && !isLapsed ? { at: askedAt, isCertain: false } : { at: expiresAt, isCertain: true }
}

/** By how much heartbeats extended the work while a question was open. */
function extendedBy ({ id }: Question, operations: readonly Operation[]): number {
  const extended = operations.filter(({ kind, answer }) => kind === 'heartbeat' && answer?.ask?.id === id && answer.ask.state === 'open')
  return extended.reduce((sum, { about }) => sum + (about.extendBy ?? 0), 0)
}

/** An operation that may have moved a deadline, unknown whether and where to. */
function isLostHeartbeat (operation: Operation): boolean {
  return operation.kind === 'heartbeat' && isUnknown(operation)
}
