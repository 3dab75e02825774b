import { backoff, pause } from './clock.ts'
import { isHandoffError } from './errors.ts'
import type { Lease } from './lease.ts'
import type { Operations } from './operations.ts'
import type { Failure, Handoff } from './types.ts'

/** A handler's result. */
export type Outcome = { output: unknown } | { error: unknown }

/** The service's limits on a failure's message, in characters, and on its code. */
const longestMessage = 4000
const takenAsCode = /^[A-Za-z0-9._-]{1,64}$/

/** The statuses that refuse the output, not the end of the work. */
const refusedOutput = new Set([400, 413, 422])

interface Insistence { signal: AbortSignal | undefined, goesOn?: () => boolean, onError?: (error: unknown) => void }

/**
 * Repeats a call as long as only the connection, a gateway or the service's state is in the way. Each call already retries for `retryFor` by
 * itself.
 * @param insistence.goesOn asked before each further call
 */
export async function insist<T> (ask: () => Promise<T>, { signal, goesOn = () => true, onError = () => {} }: Insistence): Promise<T> {
  for (let round = 0; ; round++) {
    try {
      return await ask()
    } catch (error) {
      const mayPass = isHandoffError(error) && (error.retryable || (error.status ?? 0) >= 500)
      if (!mayPass || !goesOn()) throw error
      onError(error)
    }
    await pause(backoff(round), signal)
  }
}

/** Reports a handler's result, with one key for all its tries. If the service doesn't accept the output, the handoff fails. */
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
    // Cut by code points, since the service counts those.
    message: [...text.slice(0, 2 * longestMessage)].slice(0, longestMessage).join('') || 'The handler failed.',
    ...typeof code === 'string' && takenAsCode.test(code) && { code },
  }
}
