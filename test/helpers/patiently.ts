import type { LightMyRequestResponse } from 'fastify'
import { until } from './until.ts'

/**
 * Asks again as long as a busy machine makes the answer 503, as clients do. Only what may be sent again: a read, or with an Idempotency-Key.
 */
export async function patiently (ask: () => Promise<LightMyRequestResponse>): Promise<LightMyRequestResponse> {
  return await until(async () => {
    const answer = await ask()
    return answer.statusCode === 503 ? undefined : answer
  })
}
