import { backoff, pause, retryPause } from '../../clock.ts'
import { AgentError } from './exchange.ts'

/** How often an agent may fail, or something else answer in its place, in a row: for about ten seconds. */
const bearable = 7

interface Patience {
  signal: AbortSignal
  /** Called where it is asked again. */
  complain (error: AgentError): void
  faults?: number
}

/** Asks again for as long as the agent is away, until the signal is aborted. */
export async function patiently<T> (
  send: () => Promise<T>, { signal, complain, faults: most = bearable }: Patience
): Promise<T> {
  let faults = 0
  for (let round = 0; ; round++) {
    let retryAfter = 0
    try {
      return await send()
    } catch (error) {
      if (!(error instanceof AgentError) || !mayPass(error, () => ++faults <= most)) throw error
      if (!signal.aborted) complain(error)
      retryAfter = retryPause(error.retryAfter)
    }
    await pause(retryAfter + backoff(round), signal)
  }
}

function mayPass ({ kind }: AgentError, isBearable: () => boolean): boolean {
  return kind === 'away' || ((kind === 'faulty' || kind === 'foreign') && isBearable())
}
