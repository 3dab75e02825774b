import type { CallOptions } from './call.ts'
import { maxTimer, maxWait, moment, onAbort, pause, since } from './clock.ts'
import { HandoffError, isHandoffError } from './errors.ts'
import { Operations } from './operations.ts'
import type { Status } from './types.ts'
import { work } from './work.ts'
import type { Handler, Served, WorkOptions } from './work.ts'

/** A client of the Agent Handoff Service: its operations, and helpers that combine them. */
export class HandoffClient extends Operations {
  /**
   * Waits for as long as it takes until the handoff is caught, or has ended in any way; by default across all its
   * attempts.
   */
  async waitFor (id: string, state: 'caught' | 'done', options: WaitForOptions = {}): Promise<Status> {
    return await waitFor(this, id, state, options)
  }

  /**
   * Serves an inbox (the agent's own if undefined), or several, the first one first, until `signal` is aborted; the
   * package's README has the details.
   */
  async work (inboxes: Served, handler: Handler, options: WorkOptions = {}): Promise<void> {
    await work(this, inboxes, handler, options)
  }
}

export interface WaitForOptions extends Pick<CallOptions, 'signal' | 'attemptTimeout'> {
  /** After this time, in milliseconds, it rejects with `timeout`. */
  timeout?: number | undefined
  /** Whether to go on with the handoff's next attempt if there is one; true by default. */
  follow?: boolean | undefined
}

const ends = new Set<string>(['done', 'failed', 'declined', 'cancelled', 'expired', 'rejected'])

export async function waitFor (
  client: Operations, id: string, state: 'caught' | 'done', options: WaitForOptions
): Promise<Status> {
  const { timeout = Infinity, signal } = options
  const own = new AbortController()
  const stop = () => own.abort(signal!.reason)
  if (signal?.aborted === true) stop()
  const forget = signal && onAbort(signal, stop)
  const late = {}
  const last: Last = { id }
  const timer = timeout > maxTimer ? undefined : setTimeout(() => own.abort(late), timeout)
  try {
    return await follow(client, state, { ...options, signal: own.signal }, last)
  } catch (error) {
    throw isHandoffError(error, 'aborted') && error.cause === late ? tooLate(id, state, timeout, last) : error
  } finally {
    clearTimeout(timer)
    forget?.()
  }
}

/** The attempt that it waits for, and what it last knew of it. */
interface Last { id: string, status?: string }

/**
 * Its `handoffStatus` is the last that was known, and `reissuedAs` the attempt that was waited for, where that is
 * another than the first.
 */
function tooLate (id: string, state: string, timeout: number, { id: current, status }: Last): HandoffError {
  const attempt = current === id ? id : `${id} (now ${current})`
  const detail = `${attempt} is not ${state} within ${timeout} ms; ${status === undefined
    ? 'nothing was heard of it'
    : `its last status is ${status}`}.`
  return new HandoffError(
    'timeout', { detail, retryable: true, handoffStatus: status, reissuedAs: current === id ? undefined : current }
  )
}

async function follow (
  client: Operations, state: 'caught' | 'done', options: WaitForOptions & { signal: AbortSignal }, last: Last
): Promise<Status> {
  const { timeout = Infinity, follow = true, signal, attemptTimeout } = options
  const wait = Math.min(maxWait, Math.ceil(timeout / 1000))
  let until = state
  // What it is now is to be known where nothing comes of the wait.
  for (let isKnown = timeout === Infinity; ;) {
    const sentAt = moment()
    const status =
      await client.status(last.id, { ...isKnown && { wait, until }, signal, attemptTimeout, retryFor: Infinity })
    const next = follow ? status.reissued_as : undefined
    if (next != null) {
      last.id = next
      delete last.status
      isKnown = timeout === Infinity
      until = state
      continue
    }
    last.status = status.status
    if (next === undefined && isReached(status, state)) return status
    // The successor hasn't been made yet. A wait for the end also waits for its id.
    if (next === null) until = 'done'
    // The answer came early: the service is stopping, or a gateway doesn't let requests wait. So this pauses instead.
    if (isKnown && since(sentAt) < 1000) await pause(200 + Math.random() * 800, signal)
    isKnown = true
  }
}

/** A status that this version doesn't know is an end if the answer says when it ended. */
export function isReached (
  { status, completed_at: completed, ended_at: ended }: Status, state: 'caught' | 'done'
): boolean {
  return ends.has(status) || (completed ?? ended) != null || (state === 'caught' && status === 'caught')
}
