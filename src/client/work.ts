import { longestWait, moment, pause, since } from './clock.ts'
import type { Moment } from './clock.ts'
import { isHandoffError } from './errors.ts'
import { insist } from './insist.ts'
import { Lease } from './lease.ts'
import type { HeartbeatOptions } from './lease.ts'
import { onAbort } from './on-abort.ts'
import type { Operations } from './operations.ts'
import { report } from './report.ts'
import type { Outcome } from './report.ts'
import type { Handoff, Heartbeat } from './types.ts'

export interface WorkContext {
  /** Aborted when the handoff is no longer this worker's: it was cancelled by force, or its time is over. */
  signal: AbortSignal
  /** Reports progress, or that the work needs more time. Its answer has `cancel_requested`. Regular heartbeats are sent in any case. */
  heartbeat: (options?: HeartbeatOptions) => Promise<Heartbeat>
}

/** Does the work. It returns the output, an object or nothing; if it throws, the handoff fails with that error. */
export type Handler = (handoff: Handoff, context: WorkContext) => unknown

export interface WorkOptions {
  /** How many handoffs are worked on at a time; 1 by default. */
  concurrency?: number | undefined
  /** Ends the worker: it catches nothing more, finishes what it has, and then work() resolves. */
  signal?: AbortSignal | undefined
  /** Called with errors that don't end the worker: no answer, or a report that was refused. */
  onError?: ((error: unknown, handoff?: Handoff) => void) | undefined
  /** Called when the service has a handler's end, or its handoff was lost. */
  onEnd?: ((handoff: Handoff, how: 'done' | 'failed' | 'lost') => void) | undefined
}

/** How many handoffs one request can catch. */
const mostAtOnce = 100
/** How long a handler may go on after it lost its handoff, in milliseconds; then its place goes to another handoff. */
const grace = 2000

export async function work (client: Operations, inbox: string | undefined, handler: Handler, options: WorkOptions): Promise<void> {
  const { concurrency = 1, signal, onError = () => {}, onEnd = () => {} } = options
  if (!Number.isInteger(concurrency) || concurrency < 1) throw new TypeError('concurrency must be a whole number, 1 or more')
  const running = new Set<Handoff>()
  let wake = () => {}
  // Besides the signal, what onError throws ends it.
  const over = new AbortController()
  const end = () => over.abort(signal?.reason)
  if (signal?.aborted === true) end()
  const forget = signal && onAbort(signal, end)
  let thrown: { error: unknown } | undefined
  const crash = (error: unknown) => {
    thrown ??= { error }
    end()
  }
  const oneEnds = () => new Promise<void>(resolve => { wake = resolve })

  async function serve (handoff: Handoff, asked: Moment): Promise<void> {
    running.add(handoff)
    const lease = new Lease(client, handoff, asked)
    try {
      const outcome = await outcomeOf(handler, handoff, lease)
      if (outcome === undefined || lease.isLost()) return onEnd(handoff, 'lost')
      await report(client, handoff, outcome, lease, () => !over.signal.aborted)
      onEnd(handoff, 'error' in outcome ? 'failed' : 'done')
    } catch (error) {
      // The handler may have ended its handoff itself; then that end stands.
      const isEnded = isHandoffError(error) && error.code.startsWith('already_')
      if (lease.isLost()) onEnd(handoff, 'lost')
      else if (!isEnded) onError(error, handoff)
    } finally {
      lease.close()
      running.delete(handoff)
      wake()
    }
  }

  try {
    while (!over.signal.aborted) {
      if (running.size >= concurrency) {
        await oneEnds()
        continue
      }
      const asked = moment()
      const items = await take(client, inbox, Math.min(mostAtOnce, concurrency - running.size), over.signal, onError)
      for (const item of items) serve(item, asked).catch(crash)
      // An empty answer before its time: the service stops, or something in front of it doesn't let requests wait.
      if (items.length === 0 && since(asked) < 1000) await pause(200 + Math.random() * 800, over.signal).catch(() => {})
    }
  } finally {
    end()
    forget?.()
    while (running.size > 0) await oneEnds()
  }
  if (thrown !== undefined) throw thrown.error
}

/** What comes next; nothing when the signal ends it, unless something had been caught by then. */
async function take (client: Operations, inbox: string | undefined, max: number, signal: AbortSignal, onError: (error: unknown) => void): Promise<Handoff[]> {
  const what = { inbox, max, idempotencyKey: crypto.randomUUID() }
  try {
    return await insist(() => client.catchNext({ ...what, wait: longestWait, signal }), { signal, onError })
  } catch (error) {
    if (!signal.aborted) throw error
  }
  // The request may have caught something before it was aborted. A request with the same key returns that, and catches nothing else.
  try {
    return await client.catchNext(what)
  } catch (error) {
    onError(error)
    return []
  }
}

/** The handler's result; undefined if its handoff was lost and it didn't stop in time. */
function outcomeOf (handler: Handler, handoff: Handoff, lease: Lease): Promise<Outcome | undefined> {
  return new Promise(resolve => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const settle = (outcome: Outcome | undefined) => {
      clearTimeout(timer)
      lease.signal.removeEventListener('abort', giveUp)
      resolve(outcome)
    }
    const giveUp = () => { timer = setTimeout(settle, grace, undefined) }
    if (lease.signal.aborted) return resolve(undefined)
    lease.signal.addEventListener('abort', giveUp)
    const context = { signal: lease.signal, heartbeat: (options?: HeartbeatOptions) => lease.heartbeat(options) }
    const run = async () => await handler(handoff, context)
    run().then(output => settle({ output }), (error: unknown) => settle({ error }))
  })
}
