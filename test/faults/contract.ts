import type { Kind, Operation } from './history.ts'

/** What may be answered to whom asks as the load does: sound requests, known keys, no rate limit. */

const refusals: Record<Kind, Record<string, number>> = {
  pass: { idempotency_key_reused: 422 },
  catch: { not_found: 404, approval_required: 409, already_caught: 409, already_done: 409, rejected: 409, expired: 410 },
  done: { not_found: 404, not_caught: 409, already_done: 409, rejected: 409, expired: 410, not_the_catcher: 403 },
  status: { not_found: 404 },
  approve: { not_found: 404, no_approval_required: 409, already_decided: 409, expired: 410, self_approval: 403 },
  reject: { not_found: 404, no_approval_required: 409, already_decided: 409, expired: 410, self_approval: 403 },
}
/** For all of them. */
const troubles: Record<string, number> = { unavailable: 503, request_timeout: 408 }
/** What a proxy says of a service that is gone; never the service itself. */
const gatewayStatuses = new Set([408, 502, 503, 504])
const statuses = new Set(['pending', 'caught', 'done', 'expired', 'rejected'])

/** @param gateway a proxy may answer in the service's place */
export function isWithinContract (operation: Operation, gateway: boolean): boolean {
  const { kind, status, code, answered } = operation
  if (answered === null) return true
  if (code !== null) return (refusals[kind][code] ?? troubles[code]) === status
  if (gateway && gatewayStatuses.has(status)) return true
  return status === (kind === 'pass' ? 201 : 200) && isWhole(operation)
}

/** Has the answer got what it must have? */
function isWhole ({ kind, answer, asked, same }: Operation): boolean {
  if (answer === null || answer.id === undefined) return false
  const { status, createdAt, expiresAt, caughtAt, caughtBy, completedAt, approval } = answer
  switch (kind) {
    case 'pass': return status === 'pending' && isTime(createdAt) && isTime(expiresAt) && expiresAt - createdAt === asked?.expiresIn
    case 'catch': return status === 'caught' && isTime(createdAt) && same !== null
    case 'done': return status === 'done' && isTime(completedAt)
    case 'status': return statuses.has(status ?? '') && isTime(createdAt) && isTime(expiresAt) &&
      [caughtAt, caughtBy, completedAt, approval].every(value => value !== undefined)
    case 'approve': return status === 'pending' && approval === 'approved'
    case 'reject': return status === 'rejected' && approval === 'rejected'
  }
}

function isTime (value: number | null | undefined): value is number {
  return Number.isInteger(value)
}
