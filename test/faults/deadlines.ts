import type { Facts } from './facts.ts'
import { isUnknown, passOf } from './history.ts'
import type { Operation, Track } from './history.ts'

/** By when the work had to be done, or its catcher to be heard of: as passed, and as answers told since. Milliseconds since the epoch. */

/** Nothing ends the work before `from`; at `to` it has ended where it wasn't done. Infinity where nobody can say. */
export interface WorkEnd { from: number, to: number }

/** @param workTtl how long a catcher has who was told nothing else; null where it is longer than the run @returns null for what nobody caught */
export function workEnd (track: Track, facts: Facts, workTtl: number | null): WorkEnd | null {
  const from = toldDeadline(track, facts, workTtl)
  if (from === null) return null
  if (facts.expiredAt !== null) return { from: facts.expiredAt, to: facts.expiredAt }
  return { from, to: track.operations.some(isLostHeartbeat) ? Infinity : from }
}

/** The latest that anybody was told; null for what nobody caught. */
export function toldDeadline (track: Track, facts: Facts, workTtl: number | null): number | null {
  const first = firstDeadline(track, facts, workTtl)
  return first === null ? null : Math.max(first, ...track.operations.map(toldBy))
}

/** What ended the work before its time, or was heard of after it: a sentence and what shows it. */
export function deadlineFaults (track: Track, facts: Facts, workTtl: number | null, slack: number): Array<{ sentence: string, operations: Operation[] }> {
  const first = firstDeadline(track, facts, workTtl)
  if (first === null) return []
  const faults: Array<{ sentence: string, operations: Operation[] }> = []
  const beats = track.operations.filter(({ kind, status }) => kind === 'heartbeat' && status === 200)
  for (const beat of beats) {
    const before = track.operations.filter(other => other !== beat && other.sent < beat.ended!)
    if (before.some(isLostHeartbeat)) continue
    const deadline = Math.max(first, ...before.filter(({ kind }) => kind === 'heartbeat').map(toldBy))
    const at = Math.max(beat.sent - slack, heardAt(beat, passOf(track)))
    if (at >= deadline) faults.push({ sentence: `it was heard of ${Math.round(at - deadline)} ms after its deadline`, operations: [beat] })
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

/** The deadline that an answer told; it only ever grows. */
function toldBy ({ answer }: Operation): number {
  return answer?.heartbeatExpiresAt ?? answer?.workExpiresAt ?? -Infinity
}

/** When a heartbeat was heard, where its deadline tells. */
function heardAt ({ answer }: Operation, pass: Operation | undefined): number {
  const { heartbeatExpiresAt, workExpiresAt } = answer ?? {}
  if (heartbeatExpiresAt == null || heartbeatExpiresAt === workExpiresAt) return -Infinity
  return heartbeatExpiresAt - (pass?.asked?.heartbeatWithin ?? Infinity)
}

/** Nobody knows whether it moved a deadline, nor where to. */
function isLostHeartbeat (operation: Operation): boolean {
  return operation.kind === 'heartbeat' && isUnknown(operation)
}
