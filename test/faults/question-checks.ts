import type { Fault } from './checker.ts'
import { workEnds } from './deadlines.ts'
import type { Lifetimes } from './deadlines.ts'
import type { Facts } from './facts.ts'
import type { Operation, Track } from './history.ts'
import { Questions } from './questions.ts'

/**
 * I17: a question has one answer; while it is open no deadline is named; once it is answered or over, the work goes on with what was left of it,
 * never beyond the longest time from its catch.
 */
export function questionFaults (track: Track, facts: Facts, lifetimes: Lifetimes): Fault[] {
  const questions = new Questions(track)
  if (questions.all.length === 0) return []
  return [
    ...questions.differing.map(({ member, first, second }): Fault => ({ invariant: 'I17', sentence: `two answers tell of a question's ${member} differently`, operations: [first, second] })),
    ...track.operations.filter(isNamedWhileOpen).map((one): Fault => ({ invariant: 'I17', sentence: 'a deadline is named although a question is open', operations: [one] })),
    ...deadlineFaults(track, facts, questions, lifetimes),
  ]
}

function isNamedWhileOpen ({ kind, answer }: Operation): boolean {
  return (kind === 'heartbeat' || kind === 'status') && answer?.ask?.state === 'open' && (answer.workExpiresAt != null || answer.heartbeatExpiresAt != null)
}

function deadlineFaults (track: Track, facts: Facts, questions: Questions, lifetimes: Lifetimes): Fault[] {
  const { caughtAt, expiredAt } = facts
  if (caughtAt === null) return []
  const ends = workEnds(track, facts, questions, lifetimes)
  const isExact = ends.every(({ to }) => to < Infinity)
  const isExtended = track.operations.some(({ kind, about }) => kind === 'heartbeat' && (about.extendBy ?? 0) > 0)
  const faults: Fault[] = []
  const say = (sentence: string, ...operations: Operation[]) => faults.push({ invariant: 'I17', sentence, operations })
  for (const { asked, work, told } of ends) {
    for (const { operation, at } of told) {
      if (work === Infinity) continue
      if (at < work) say(`after ${asked} questions the work has ${work - at} ms less than was left of it`, operation)
      else if (at > work && isExact && !isExtended) say(`after ${asked} questions the work has ${at - work} ms more than was left of it`, operation)
    }
  }
  const latest = caughtAt + (lifetimes.maxWorkTtl ?? Infinity)
  const most = Math.max(latest, ends[0]!.work)
  if (expiredAt === null) return faults
  if (expiredAt > most) say(`it expired ${expiredAt - most} ms later than the work may last`, ...track.operations)
  // The question that was open then, or the last one that had ended.
  const before = questions.all.filter(({ askedAt }) => askedAt !== null && askedAt < expiredAt)
  const end = ends[before.length]
  const isOpen = end === undefined || begins(before.at(-1)) >= expiredAt
  const right = isOpen ? most : end.from
  if (expiredAt < right && !(isOpen && !isExact)) say(`it expired ${right - expiredAt} ms before its time`, ...track.operations)
  return faults
}

function begins (question: Questions['all'][number] | undefined): number {
  return question === undefined ? -Infinity : question.answeredAt ?? question.expiresAt ?? -Infinity
}
