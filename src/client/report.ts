import { isHandoffError } from './errors.ts'
import { failureOf } from './failure.ts'
import { insist, isForeign, refusedOutput } from './insist.ts'
import type { Lease } from './lease.ts'
import type { Operations } from './operations.ts'
import { RawJson, encode } from './raw-json.ts'
import type { Failure, Handoff, JsonObject } from './types.ts'

/** A handler's result. */
export type Outcome = { output: unknown } | { error: unknown }

/** For how many milliseconds each call that reports asks again: a worker that ends makes one, and a result is worth more than its haste. */
export const reportedFor = 30_000

/** Reports a handler's result, with one key for all its tries. If the service doesn't accept the output, the handoff fails. */
export async function report (client: Operations, { handoff_id: id }: Handoff, outcome: Outcome, lease: Lease, goesOn: () => boolean): Promise<void> {
  const options = () => ({ idempotencyKey: crypto.randomUUID(), signal: lease.signal, retryFor: reportedFor })
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
    await say(() => client.done(id, sayable(outcome.output), once))
  } catch (error) {
    if (isHandoffError(error) && !refusedOutput.has(error.status ?? 0) && !isForeign(error)) throw error
    await fail(failureOf(error))
    throw error
  }
}

/** @throws {TypeError} JSON has no word for it: it would be left out, or be null, and done would say nothing of it */
function sayable (output: unknown): JsonObject | null | undefined {
  const isPlain = output == null || output instanceof RawJson || (typeof output === 'object' && !('toJSON' in output))
  if (!isPlain && (encode(output) ?? 'null') === 'null') throw new TypeError('What the handler returned can’t be JSON; it returns an object, or nothing.')
  return output as JsonObject | null | undefined
}
