import type { CallOptions } from './call.ts'
import { longest, longestWait, moment, pause, since } from './clock.ts'
import { HandoffError, isHandoffError } from './errors.ts'
import type { Operations } from './operations.ts'
import type { Status } from './types.ts'

export interface WaitForOptions extends Pick<CallOptions, 'signal' | 'attemptTimeout'> {
  /** After so many milliseconds it rejects with `timeout`. */
  timeout?: number | undefined
  /** Goes on with the next attempt where there is one; true where it is left out. */
  follow?: boolean | undefined
}

const ends = new Set<string>(['done', 'failed', 'declined', 'cancelled', 'expired', 'rejected'])

export async function waitFor (client: Operations, id: string, state: 'caught' | 'done', options: WaitForOptions): Promise<Status> {
  const { timeout = Infinity, signal } = options
  const own = new AbortController()
  const stop = () => own.abort(signal!.reason)
  if (signal?.aborted === true) stop()
  signal?.addEventListener('abort', stop)
  const late = new HandoffError('timeout', { detail: `Not ${state} within ${timeout} ms.`, retryable: true })
  const timer = timeout > longest ? undefined : setTimeout(() => own.abort(late), timeout)
  try {
    return await follow(client, id, state, { ...options, signal: own.signal })
  } catch (error) {
    throw isHandoffError(error, 'aborted') && error.cause === late ? late : error
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', stop)
  }
}

async function follow (client: Operations, id: string, state: 'caught' | 'done', options: WaitForOptions & { signal: AbortSignal }): Promise<Status> {
  const { timeout = Infinity, follow = true, signal, attemptTimeout } = options
  const wait = Math.min(longestWait, Math.ceil(timeout / 1000))
  let until = state
  for (let current = id; ;) {
    const asked = moment()
    const status = await client.status(current, { wait, until, signal, attemptTimeout, retryFor: Infinity })
    const next = follow ? status.reissued_as : undefined
    if (next != null) {
      current = next
      until = state
      continue
    }
    if (next === undefined && isReached(status, state)) return status
    // Its successor is still to be made: a wait for its end waits for that name too.
    if (next === null) until = 'done'
    // An answer before its time: the service stops, or something in front of it doesn't let requests wait.
    if (since(asked) < 1000) await pause(200 + Math.random() * 800, signal)
  }
}

/** A status that isn't known here has ended when it says when. */
function isReached ({ status, completed_at: completed, ended_at: ended }: Status, state: 'caught' | 'done'): boolean {
  return ends.has(status) || (completed ?? ended) != null || (state === 'caught' && status === 'caught')
}
