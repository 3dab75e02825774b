import { iso } from '../../core/iso.ts'
import type { PassAnswer } from '../../core/schemas/handoffs.ts'
import { pageFor } from './answers.ts'

/** The answer of pass, and of reissue for the successor. */
export function passAnswer (
  baseUrl: string, id: string, requireHuman: boolean, times: Times
): PassAnswer {
  const { createdAt, expiresAt, availableAt, blockedBy = null } = times
  const answer: PassAnswer = {
    handoff_id: id,
    pickup_url: `${baseUrl}/api/catch/${id}`,
    status: 'pending',
    created_at: iso(createdAt),
    expires_at: iso(expiresAt),
  }
  if (availableAt !== null) answer.available_at = iso(availableAt)
  if (blockedBy !== null) answer.blocked_by = blockedBy
  if (requireHuman) answer.approval_url = pageFor(baseUrl, id)
  return answer
}

interface Times { createdAt: number, expiresAt: number, availableAt: number | null, blockedBy?: number | null }
