import { backoff, pause } from './clock.ts'
import { isHandoffError } from './errors.ts'

interface Insistence { signal: AbortSignal | undefined, goesOn?: () => boolean, onError?: (error: unknown) => void }

/**
 * Asks for as long as only the connection, the service or what is in front of it is in the way: each call asks again for `retryFor` by itself.
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
