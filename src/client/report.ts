import { isHandoffError } from './errors.ts'
import { insist } from './insist.ts'
import type { Lease } from './lease.ts'
import type { Operations } from './operations.ts'
import type { Failure, Handoff } from './types.ts'

/** What a handler came to. */
export type Outcome = { output: unknown } | { error: unknown }

/** Characters that the service takes as a failure's message, and as its code. */
const longestMessage = 4000
const takenAsCode = /^[A-Za-z0-9._-]{1,64}$/

/** Refusals of an output, rather than of being done. */
const refusedOutput = new Set([400, 413, 422])

/** Tells the service, with one key however often it must be asked. An output that it doesn't take is a failure. */
export async function report (client: Operations, { handoff_id: id }: Handoff, outcome: Outcome, lease: Lease, goesOn: () => boolean): Promise<void> {
  const options = () => ({ idempotencyKey: crypto.randomUUID(), signal: lease.signal })
  const say = <T>(ask: () => Promise<T>) => insist(ask, { signal: lease.signal, goesOn: () => goesOn() && !lease.isLost() })
  const fail = (failure: Failure) => {
    const once = options()
    return say(() => client.fail(id, failure, once))
  }
  if ('error' in outcome) {
    await fail(failureOf(outcome.error))
    return
  }
  const once = options()
  try {
    await say(() => client.done(id, outcome.output as object, once))
  } catch (error) {
    if (isHandoffError(error) && !refusedOutput.has(error.status ?? 0)) throw error
    await fail(failureOf(error))
    throw error
  }
}

export function failureOf (error: unknown): Failure {
  const { message, code, name } = (error ?? {}) as { message?: unknown, code?: unknown, name?: unknown }
  const text = typeof message === 'string' ? message || String(name) : String(error)
  return {
    // Cut by code points, as the service counts them.
    message: [...text.slice(0, 2 * longestMessage)].slice(0, longestMessage).join('') || 'The handler failed.',
    ...typeof code === 'string' && takenAsCode.test(code) && { code },
  }
}
