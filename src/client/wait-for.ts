import type { CallOptions } from './call.ts'
import { longest, longestWait, moment, pause, since } from './clock.ts'
import { HandoffError, isHandoffError } from './errors.ts'
import { onAbort } from './on-abort.ts'
import type { Operations } from './operations.ts'
import type { Status } from './types.ts'

export interface WaitForOptions extends Pick<CallOptions, 'signal' | 'attemptTimeout'> {
  /** After this time, in milliseconds, it rejects with `timeout`. */
  timeout?: number | undefined
  /** Whether to go on with the handoff's next attempt if there is one; true by default. */
  follow?: boolean | undefined
}

const ends = new Set<string>(['done', 'failed', 'declined', 'cancelled', 'expired', 'rejected'])

export async function waitFor (client: Operations, id: string, state: 'caught' | 'done', options: WaitForOptions): Promise<Status> {
  const { timeout = Infinity, signal } = options
  const own = new AbortController()
  const stop = () => own.abort(signal!.reason)
  if (signal?.aborted === true) stop()
  const forget = signal && onAbort(signal, stop)
  const late = new HandoffError('timeout', { detail: `Not ${state} within ${timeout} ms.`, retryable: true })
  const timer = timeout > longest ? undefined : setTimeout(() => own.abort(late), timeout)
  try {
    return await follow(client, id, state, { ...options, signal: own.signal })
  } catch (error) {
    throw isHandoffError(error, 'aborted') && error.cause === late ? late : error
  } finally {
    clearTimeout(timer)
    forget?.()
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
    // The successor hasn't been made yet. A wait for the end also waits for its id.
    if (next === null) until = 'done'
    // The answer came early: the service is stopping, or a gateway doesn't let requests wait. So this pauses instead.
    if (since(asked) < 1000) await pause(200 + Math.random() * 800, signal)
  }
}

/** A status that this version doesn't know is an end if the answer says when it ended. */
function isReached ({ status, completed_at: completed, ended_at: ended }: Status, state: 'caught' | 'done'): boolean {
  return ends.has(status) || (completed ?? ended) != null || (state === 'caught' && status === 'caught')
}
