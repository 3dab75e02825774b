import { handoffOfMember } from './key-names.ts'
import { tagged } from './replies.ts'
import { readChangedRun } from './runs.ts'
import type { ChangedRun } from './runs.ts'

/** A handoff that waits for others, or has ended and left notes there. `isFresh`: it was passed, or ended, just now. */
export interface Blocked { tenant: string, id: string, isFresh: boolean }

/**
 * A sweep call's reply. `live`: how many handoffs are live afterwards; null if it didn't count them. `untilDue`:
 * milliseconds until the sweep is to look again, 0 or below if more is due now; null if nothing is live. `stalled`: how
 * many of the expired missed a heartbeat. `reissued`: how many of them, and of those that weren't done in time, have a
 * successor. `named`: the expired handoffs, if the call names them. `ended`: ended handoffs that have dependents.
 * `runs`: the runs whose counts changed.
 */
export interface Swept {
  lookedAt: number
  expired: number
  live: number | null
  untilDue: number | null
  stalled: number
  reissued: { stalled: number, not_done: number }
  named: Array<{ tenant: string, id: string }>
  ended: Array<{ tenant: string, id: string }>
  blocked: Blocked[]
  runs: ChangedRun[]
}

const none: never[] = []

/** A sweep call's reply. */
export function readSweep (reply: unknown): Swept {
  const parts = tagged(reply)
  const counts = {
    lookedAt: parts[1] as number,
    expired: parts[2] as number,
    live: parts[3] as number | null,
    untilDue: parts[4] as number | null,
    stalled: parts[5] as number,
    reissued: { stalled: parts[6] as number, not_done: parts[7] as number },
  }
  // Most of the hundreds of calls a second find nothing due.
  if (parts.length === 8) return { ...counts, named: none, ended: none, blocked: none, runs: none }
  const members: unknown[] = parts.slice(8)
  const last = (Array.isArray(members.at(-1)) ? members.pop() : none) as unknown[][]
  const [ended = none, fresh = none, blocked = none, runs = none] = last
  const waiting = (isFresh: boolean) => (member: unknown) => ({ ...handoffOfMember(member), isFresh })
  return {
    ...counts,
    named: members.map(handoffOfMember),
    ended: ended.map(handoffOfMember),
    blocked: [...fresh.map(waiting(true)), ...blocked.map(waiting(false))],
    runs: (runs as unknown[][]).map(readChangedRun),
  }
}
