import { operations, statuses as all } from '../../src/model.ts'
import type { Kind, Operation } from './history.ts'

/** The answers that the load's requests may get: they are valid, with known keys and no rate limit. */

/** Every code with which an operation may be refused, and its status. The table of states has those that depend on the handoff's state. */
const refusals = Object.fromEntries(Object.entries(operations).map(([kind, { refusals }]) =>
  [kind, Object.fromEntries((Object.values(refusals) as string[]).map(code => [code, statusOf(code)]))])) as Record<Kind, Record<string, number>>
const decision = { no_approval_required: 409, already_decided: 409, self_approval: 403 }
const byCatcher = { not_the_catcher: 403 }
Object.assign(refusals.pass, { idempotency_key_reused: 422 })
Object.assign(refusals.approve, decision)
Object.assign(refusals.reject, decision)
for (const kind of ['heartbeat', 'done', 'fail', 'decline'] as const) Object.assign(refusals[kind], byCatcher)
for (const kind of ['cancel', 'reissue'] as const) Object.assign(refusals[kind], { not_the_passer: 403 })
refusals.status = { not_found: 404 }

/** Refusals of any operation. */
const troubles: Record<string, number> = { unavailable: 503, request_timeout: 408 }
/** A proxy's answers for an unreachable service; the service itself never gives them. */
const gatewayStatuses = new Set([408, 502, 503, 504])
const statuses = new Set<string | undefined>(all)

function statusOf (code: string): number {
  return code === 'not_found' ? 404 : code === 'expired' ? 410 : 409
}

/** @param gateway a proxy may answer instead of the service */
export function isWithinContract (operation: Operation, gateway: boolean): boolean {
  const { kind, status, code, answered } = operation
  if (answered === null) return true
  if (code !== null) return (refusals[kind][code] ?? troubles[code]) === status
  if (gateway && gatewayStatuses.has(status)) return true
  if (kind === 'cancel' && status === 202) return !operation.firm && isWhole(operation)
  return status === (kind === 'pass' || kind === 'reissue' ? 201 : 200) && isWhole(operation)
}

/** Whether the answer has all members that it must have. */
function isWhole ({ kind, answer, asked, same, status: code }: Operation): boolean {
  if (answer === null || answer.id === undefined) return false
  const { status, createdAt, expiresAt, caughtAt, caughtBy, completedAt, endedAt, approval } = answer
  switch (kind) {
    case 'pass': return status === 'pending' && isTime(createdAt) && isTime(expiresAt) && expiresAt - createdAt === asked?.expiresIn &&
      answer.availableAt === (asked.delay === undefined ? undefined : createdAt + asked.delay)
    case 'catch': return status === 'caught' && isTime(createdAt) && same !== null
    case 'done': return status === 'done' && isTime(completedAt)
    case 'fail': return status === 'failed' && isTime(endedAt)
    case 'decline': return status === 'declined' && isTime(endedAt)
    case 'heartbeat': return status === 'caught' && isTime(answer.workExpiresAt) && answer.heartbeatExpiresAt !== undefined && answer.cancelRequested !== undefined
    case 'cancel': return code === 202 ? status === 'caught' && isTime(answer.cancelRequestedAt) : status === 'cancelled' && isTime(endedAt)
    case 'reissue': return status === 'pending' && typeof answer.reissuedAs === 'string' && isTime(answer.reissuedAt)
    case 'status': return statuses.has(status) && isTime(createdAt) && isTime(expiresAt) &&
      [caughtAt, caughtBy, completedAt, approval].every(value => value !== undefined) && isTime(endedAt) === hasEnd(status)
    case 'approve': return status === 'pending' && approval === 'approved'
    case 'reject': return status === 'rejected' && approval === 'rejected'
  }
}

/** Whether it ended with an `ended_at`: done has its own time, and a rejection has the decision's. */
function hasEnd (status: string | undefined): boolean {
  return status === 'failed' || status === 'declined' || status === 'cancelled' || status === 'expired'
}

function isTime (value: number | null | undefined): value is number {
  return Number.isInteger(value)
}
