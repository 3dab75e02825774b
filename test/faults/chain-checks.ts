import type { Fault } from './checker.ts'
import { factsOf } from './facts.ts'
import { attemptOf } from './history.ts'
import type { Operation, Track } from './history.ts'

/** I9 and I10, as far as answers about an attempt and its successor tell. */

/** Checks a successor against its predecessor. @param find finds tracks by name */
export function chainFaults (track: Track, find: (name: string) => Track | undefined): Fault[] {
  const { descent, id } = track
  if (descent === null) return []
  const before = find(descent.from)
  if (before === undefined) return []
  const { facts } = factsOf(track)
  const { facts: earlier } = factsOf(before)
  const faults: Fault[] = []
  const fault = (invariant: 'I9' | 'I10', sentence: string, operations: Operation[]) => faults.push({ invariant, sentence, operations })
  if (facts.reissueOf !== null && facts.reissueOf !== before.id) fault('I9', `it says that it succeeds ${facts.reissueOf}, but it succeeds ${before.id}`, track.operations)
  if (facts.attempt !== null && facts.attempt !== attemptOf(track)) fault('I9', `it says that it is attempt ${facts.attempt}, but it is the ${attemptOf(track)}th`, track.operations)
  if (earlier.reissuedAs !== null && earlier.reissuedAs !== id) fault('I9', `its predecessor has another successor, ${earlier.reissuedAs}`, before.operations)
  const { createdAt } = facts
  if (createdAt === null) return faults
  const ended = earlier.endedAt ?? earlier.completedAt
  if (ended !== null && createdAt < ended) fault('I9', `it was made ${ended - createdAt} ms before its predecessor ended`, track.operations)
  if (earlier.reissuedAt !== null && earlier.reissuedAt !== createdAt) fault('I9', 'its predecessor was told of another one', [...before.operations.filter(({ kind }) => kind === 'reissue'), ...track.operations])
  const handedOut = before.operations.filter(({ kind, status, sent }) => kind === 'catch' && status === 200 && sent > earliestOf(track))
  if (handedOut.length > 0) fault('I10', 'what was passed was handed out by an attempt whose successor had been caught', handedOut)
  return faults
}

/** When the successor certainly has the payload: somebody got the payload from it. */
function earliestOf ({ operations }: Track): number {
  return Math.min(Infinity, ...operations.filter(({ kind, status }) => kind === 'catch' && status === 200).map(({ ended }) => ended!))
}
