import type { Facts } from './facts.ts'
import { isUnknown, passOf } from './history.ts'
import type { Operation, Track } from './history.ts'

/** The deadlines of the work and of heartbeats, by pass and by later answers. Milliseconds since the epoch. */

/** How long a connection to Redis takes to be made again, at the least, in milliseconds. */
const earliestRetry = 25

/** The work can't expire before `from`, and has ended by `to`. Infinity if unknown. */
interface WorkEnd { from: number, to: number }

/** @param workTtl the default time for the work; null if it is longer than the run @returns null if nobody caught it */
export function workEnd (track: Track, facts: Facts, workTtl: number | null): WorkEnd | null {
  const from = toldDeadline(track, facts, workTtl)
  if (from === null) return null
  if (facts.expiredAt !== null) return { from: facts.expiredAt, to: facts.expiredAt }
  return { from, to: track.operations.some(isLostHeartbeat) ? Infinity : from }
}

/** The latest deadline that an answer named; null if nobody caught it. */
function toldDeadline (track: Track, facts: Facts, workTtl: number | null): number | null {
  const first = firstDeadline(track, facts, workTtl)
  return first === null ? null : Math.max(first, ...track.operations.map(toldBy))
}

/** Finds work that expired before its deadline, or was reported after it: a sentence, and the operations that show it. */
export function deadlineFaults (track: Track, facts: Facts, workTtl: number | null, slack: number): Array<{ sentence: string, operations: Operation[] }> {
  const first = firstDeadline(track, facts, workTtl)
  if (first === null) return []
  const faults: Array<{ sentence: string, operations: Operation[] }> = []
  const beats = track.operations.filter(({ kind, status }) => kind === 'heartbeat' && status === 200)
  for (const beat of beats) {
    const before = track.operations.filter(other => other !== beat && other.sent < beat.ended!)
    if (before.some(isLostHeartbeat)) continue
    const deadline = Math.max(first, ...before.filter(({ kind }) => kind === 'heartbeat').map(toldBy))
    const heard = heardAt(beat, passOf(track))
    const at = Math.max(beat.sent - slack, heard)
    // The service's connection to Redis broke, and the heartbeat that it sent again came after one that was in time.
    const isSecond = beat.ended! - beat.sent > earliestRetry && beat.sent - slack < deadline && heard < deadline + (passOf(track)?.asked?.heartbeatWithin ?? 0)
    if (at >= deadline && !isSecond) faults.push({ sentence: `it was heard of ${Math.round(at - deadline)} ms after its deadline`, operations: [beat] })
  }
  const { expiredAt } = facts
  const told = toldDeadline(track, facts, workTtl)!
  if (expiredAt !== null && expiredAt < told) faults.push({ sentence: `it ran out ${told - expiredAt} ms before the deadline that was told`, operations: beats })
  return faults
}

function firstDeadline (track: Track, { caughtAt }: Facts, workTtl: number | null): number | null {
  if (caughtAt === null) return null
  const { workWithin, heartbeatWithin } = passOf(track)?.asked ?? {}
  return caughtAt + Math.min(workWithin ?? workTtl ?? Infinity, heartbeatWithin ?? Infinity)
}

/** The deadline that an answer named; it only ever grows. */
function toldBy ({ answer }: Operation): number {
  return answer?.heartbeatExpiresAt ?? answer?.workExpiresAt ?? -Infinity
}

/** When a heartbeat arrived, if the deadline in its answer tells. */
function heardAt ({ answer }: Operation, pass: Operation | undefined): number {
  const { heartbeatExpiresAt, workExpiresAt } = answer ?? {}
  if (heartbeatExpiresAt == null || heartbeatExpiresAt === workExpiresAt) return -Infinity
  return heartbeatExpiresAt - (pass?.asked?.heartbeatWithin ?? Infinity)
}

/** An operation that may have moved a deadline, unknown whether and where to. */
function isLostHeartbeat (operation: Operation): boolean {
  return operation.kind === 'heartbeat' && isUnknown(operation)
}
