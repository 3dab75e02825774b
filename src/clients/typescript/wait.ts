import type { CallOptions } from './call.ts'
import { maxTimer, maxWait, moment, onAbort, pause, since } from './clock.ts'
import type { Moment } from './clock.ts'
import { HandoffError, isHandoffError } from './errors.ts'
import { withText } from './json.ts'
import type { WaitWanted } from './lists.ts'
import type { Operations } from './operations.ts'
import type { Settled, Status } from './types.ts'

/** Waiting for as long as it takes, for one handoff or for many. */

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
  const last: Last = { id }
  const status = await within(timeout, signal, own => follow(client, state, { ...options, signal: own }, last))
  if (status === undefined) throw tooLate(id, state, timeout, last)
  return status
}

/** Runs with a signal that ends with the caller's, and with the time. @returns undefined if the time ended it */
async function within<T> (
  timeout: number, signal: AbortSignal | undefined, run: (signal: AbortSignal) => Promise<T>
): Promise<T | undefined> {
  const own = new AbortController()
  const stop = () => own.abort(signal!.reason)
  if (signal?.aborted === true) stop()
  const forget = signal && onAbort(signal, stop)
  const late = {}
  const timer = timeout > maxTimer ? undefined : setTimeout(() => own.abort(late), timeout)
  try {
    return await run(own.signal)
  } catch (error) {
    if (isHandoffError(error, 'aborted') && error.cause === late) return undefined
    throw error
  } finally {
    clearTimeout(timer)
    forget?.()
    // After an error nothing else of it goes on.
    own.abort()
  }
}

/** What says how a handoff stands. */
type Ending = Pick<Status, 'status' | 'completed_at' | 'ended_at'>

/** The attempt that it waits for, and what it last knew of it. */
interface Last { id: string, status?: string }

/**
 * Its `handoffStatus` is the last that was known, and `reissuedAs` the attempt that was waited for, where that is
 * another than the first.
 */
function tooLate (id: string, state: string, timeout: number, { id: current, status }: Last): HandoffError {
  const attempt = current === id ? id : `${id} (now ${current})`
  const detail = `${attempt} is not ${state} within ${timeout} ms; ${status === undefined
    ? 'its status is not known'
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
    if (isKnown) await notAtOnce(sentAt, signal)
    isKnown = true
  }
}

/**
 * After an answer that came early, since the service is stopping or a gateway doesn't let requests wait, this pauses
 * instead.
 */
async function notAtOnce (sentAt: Moment, signal: AbortSignal): Promise<void> {
  if (since(sentAt) < 1000) await pause(200 + Math.random() * 800, signal)
}

/** A status that this version doesn't know is an end if the answer says when it ended. */
export function isReached (
  { status, completed_at: completed, ended_at: ended }: Ending, state: 'caught' | 'done'
): boolean {
  return ends.has(status) || (completed ?? ended) != null || (state === 'caught' && status === 'caught')
}

export interface WaitForAllOptions extends Pick<CallOptions, 'signal' | 'attemptTimeout'> {
  /** After this time, in milliseconds, it rejects with `timeout`, and the error's `open` has the ids that are open. */
  timeout?: number | undefined
  /** Whether to read the results; true by default. */
  results?: boolean | undefined
}

/** How many ids a request takes. */
const idsEach = 100
/** How many requests wait at once. A key may have 20 at a replica, and there are others. */
const waitsAtOnce = 4
/** How long each last look takes at most when the time is over, in milliseconds. */
const lastLook = 1000

export async function waitForAll (
  client: Operations, ids: readonly string[], options: WaitForAllOptions
): Promise<Settled[]> {
  const { found, open } = await settle(client, ids, options)
  if (open.size > 0) throw allTooLate(found, open, options.timeout!)
  if (options.results !== false) await readOmitted(client, found, options)
  return ids.map(id => found.get(id)!)
}

/** What is known of each, by the id that was asked for, and which have not ended. */
interface Standing { found: Map<string, Settled>, open: Set<string> }

/** @returns when all have ended, or with `any` (of up to 100) one has, or the time is over */
export async function settle (
  client: Operations, ids: readonly string[], options: WaitForAllOptions & Pick<WaitWanted, 'until'>
): Promise<Standing> {
  const { timeout = Infinity, results, signal, attemptTimeout, until } = options
  const standing: Standing = { found: new Map(), open: new Set(ids) }
  const wait = Math.min(maxWait, Math.ceil(timeout / 1000))
  await within(
    timeout, signal,
    own => untilSettled(client, standing, { until, results, wait, attemptTimeout, retryFor: Infinity, signal: own })
  )
  if (until === 'any' && standing.open.size < new Set(ids).size) return standing
  // The time is over, and some were asked for a while ago: what has ended since isn't open.
  const left = [...standing.open]
  const soon = { results, attemptTimeout: Math.min(attemptTimeout ?? lastLook, lastLook), retryFor: 0, signal }
  try {
    for (let at = 0; at < left.length; at += idsEach) await look(client, standing, left.slice(at, at + idsEach), soon)
  } catch (error) {
    // No answer comes: it is as it was in the last one.
    if (isHandoffError(error, 'aborted')) throw error
  }
  return standing
}

/** Asks again and again, a few requests at a time, each for as many as it takes. */
async function untilSettled (
  client: Operations, standing: Standing, options: WaitWanted & CallOptions & { signal: AbortSignal }
): Promise<void> {
  const queue = [...standing.open]
  const ask = async () => {
    while (queue.length > 0) {
      const some = queue.splice(0, idsEach)
      const sentAt = moment()
      if (await look(client, standing, some, options)) continue
      await notAtOnce(sentAt, options.signal)
      // Behind the others: a caller that waits for the first ones alone may find the last ones removed.
      queue.push(...some.filter(id => standing.open.has(id)))
    }
  }
  await Promise.all(Array.from({ length: waitsAtOnce }, ask))
}

/** @returns whether all of these have ended */
async function look (
  client: Operations, { found, open }: Standing, ids: readonly string[], options: WaitWanted & CallOptions
): Promise<boolean> {
  const { items, complete } = await client.wait(ids, options)
  for (const [at, item] of items.entries()) {
    found.set(ids[at]!, item)
    if ((complete && options.until !== 'any') || hasEnded(item)) open.delete(ids[at]!)
  }
  return complete
}

/** Whether it has ended, and no further attempt will be made. */
export function hasEnded (item: Settled): boolean {
  return item.status === 'unknown' || (item.reissued_as !== null && isReached(item, 'done'))
}

/** Reads those results that would have made an answer too large. */
export async function readOmitted (
  client: Operations, found: Map<string, Settled>, { signal, attemptTimeout }: WaitForAllOptions
): Promise<void> {
  for (const [id, item] of found) {
    if (item.status === 'unknown' || item.result_omitted !== true) continue
    const { handoff_id: last, asked_as: asked } = item
    try {
      const { text, ...status } = await client.status(last, { signal, attemptTimeout })
      found.set(id, asked === undefined
        ? withText(status, text)
        : withText({ ...status, asked_as: asked }, `${text.slice(0, -1)},"asked_as":${JSON.stringify(asked)}}`))
    } catch (error) {
      // It is gone by now, and that it ended stays true.
      if (!isHandoffError(error, 'not_found')) throw error
    }
  }
}

/** How many open ones the error's text names; its `open` has all. */
const maxNamed = 100

function allTooLate (
  found: ReadonlyMap<string, Settled>, open: ReadonlySet<string>, timeout: number
): HandoffError {
  const ids = [...open]
  const named = ids.slice(0, maxNamed).map(id => {
    const item = found.get(id)
    if (item === undefined) return `${id} (its status is not known)`
    return `${id} (${item.handoff_id === id ? '' : `now ${item.handoff_id}, `}${item.status})`
  })
  const more = ids.length > maxNamed ? `, and ${ids.length - maxNamed} more` : ''
  const detail = `Not ended within ${timeout} ms: ${named.join(', ')}${more}.`
  return new HandoffError('timeout', { detail, retryable: true, open: ids })
}
