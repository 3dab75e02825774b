import { backoff, obeyed, pause } from './clock.ts'
import { isHandoffError } from './errors.ts'
import type { HandoffError } from './errors.ts'

/** Statuses that refuse an output, rather than its being reported. */
export const refusedOutput = new Set([400, 413, 422])
/** How often something else may answer in the service's place, with a page that says nothing of its coming back: for about ten seconds. */
const mostForeign = 7

interface Insistence { signal: AbortSignal | undefined, goesOn?: () => boolean, onError?: (error: unknown) => void }

/**
 * Repeats a call as long as only the connection, a gateway or the service's state is in the way. Each call already retries for `retryFor` by
 * itself.
 * @param insistence.goesOn asked before each further call
 */
export async function insist<T> (ask: () => Promise<T>, { signal, goesOn = () => true, onError = () => {} }: Insistence): Promise<T> {
  let foreign = 0
  for (let round = 0; ; round++) {
    let told = 0
    try {
      return await ask()
    } catch (error) {
      const mayPass = isHandoffError(error) && (error.retryable || (error.status ?? 0) >= 500 || (isForeign(error) && foreign++ < mostForeign))
      if (!mayPass || !goesOn()) throw error
      onError(error)
      told = obeyed(error.retryAfter)
    }
    await pause(told + backoff(round), signal)
  }
}

/** Not the service's answer, and nothing that is known to pass: a gateway without a route to it, or one that lets this never through. */
export function isForeign ({ code, status = 0, retryable }: HandoffError): boolean {
  return code === 'connection_failed' && !retryable && !refusedOutput.has(status)
}
