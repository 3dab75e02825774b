import type { CheckOptions, Fault } from './checker.ts'
import { deadlineFaults } from './deadlines.ts'
import type { Facts } from './facts.ts'
import { markOf } from './history.ts'
import type { Operation, Track } from './history.ts'

/** I11–I13: how a handoff ends, and that it doesn't end too early. */

const byCatcher = new Set(['done', 'fail', 'decline'])

/** I11: a handoff ends once. */
export function endFaults ({ operations }: Track): Fault[] {
  const ends = new Map(operations.filter(isEnd).map(operation => [nameOfEnd(operation), operation]))
  if (ends.size < 2) return []
  return [{ invariant: 'I11', sentence: `it ended ${ends.size} times`, operations: [...ends.values()] }]
}

function isEnd ({ kind, status }: Operation): boolean {
  return status === 200 && (byCatcher.has(kind) || kind === 'cancel')
}

/** Several answers may tell of the same cancellation. */
function nameOfEnd (operation: Operation): string {
  return operation.kind === 'cancel' ? 'cancel' : `${operation.kind} ${operation.agent} ${markOf(operation)}`
}

/** I12: after a cancel with force nothing is done, failed or declined. */
export function forceFaults ({ operations }: Track): Fault[] {
  const forced = operations.find(({ kind, firm, status }) => kind === 'cancel' && firm && status === 200)
  if (forced === undefined) return []
  const later = operations.filter(({ kind, sent, status, answer }) => sent > forced.ended! && status === 200 &&
    (byCatcher.has(kind) || (kind === 'status' && ['done', 'failed', 'declined', 'caught'].includes(answer?.status ?? ''))))
  return later.length === 0 ? [] : [{ invariant: 'I12', sentence: 'it was cancelled by force, and went on', operations: [forced, ...later] }]
}

/** I13: an answered heartbeat was in time, and the deadlines in its answer held. */
export function heartbeatFaults (track: Track, facts: Facts, { workTtl, slack }: CheckOptions): Fault[] {
  return deadlineFaults(track, facts, workTtl, slack).map(fault => ({ invariant: 'I13', ...fault }))
}
