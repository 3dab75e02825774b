import { longestWait, moment, pause, since } from './clock.ts'
import type { Moment } from './clock.ts'
import { isHandoffError } from './errors.ts'
import { insist } from './insist.ts'
import { Lease } from './lease.ts'
import type { HeartbeatOptions } from './lease.ts'
import type { Operations } from './operations.ts'
import { report } from './report.ts'
import type { Outcome } from './report.ts'
import type { Handoff, Heartbeat } from './types.ts'

export interface WorkContext {
  /** Aborted when the handoff isn't this worker's any more: cancelled by force, or its time is over. */
  signal: AbortSignal
  /** Says how far the work is, or that it takes longer; its answer has `cancel_requested`. Those that are due are sent in any case. */
  heartbeat: (options?: HeartbeatOptions) => Promise<Heartbeat>
}

/** Does the work. What it returns, an object or nothing, is the output; what it throws is why the handoff failed. */
export type Handler = (handoff: Handoff, context: WorkContext) => unknown

export interface WorkOptions {
  /** How many handoffs it works on at a time: 1 where it is left out. */
  concurrency?: number | undefined
  /** Ends it: nothing more is caught, what it has is finished, and then work() resolves. */
  signal?: AbortSignal | undefined
  /** Told what went wrong while work goes on: no answer, or a report that was refused. */
  onError?: ((error: unknown, handoff?: Handoff) => void) | undefined
}

/** How many handoffs one request can catch. */
const mostAtOnce = 100
/** Milliseconds that a handler has to stop in when its handoff is lost; then its place is given to another. */
const grace = 2000

export async function work (client: Operations, inbox: string | undefined, handler: Handler, options: WorkOptions): Promise<void> {
  const { concurrency = 1, signal, onError = () => {} } = options
  if (!Number.isInteger(concurrency) || concurrency < 1) throw new TypeError('concurrency is a whole number, 1 or more')
  const running = new Set<Handoff>()
  let wake = () => {}
  let isOver = false
  const oneEnds = () => new Promise<void>(resolve => { wake = resolve })

  async function serve (handoff: Handoff, asked: Moment): Promise<void> {
    running.add(handoff)
    const lease = new Lease(client, handoff, asked)
    try {
      const outcome = await outcomeOf(handler, handoff, lease)
      if (outcome !== undefined && !lease.isLost()) await report(client, handoff, outcome, lease, () => !isOver && signal?.aborted !== true)
    } catch (error) {
      // The handler may have ended its handoff itself: then that stands.
      const isEnded = isHandoffError(error) && error.code.startsWith('already_')
      if (!isEnded && !lease.isLost()) onError(error, handoff)
    } finally {
      lease.close()
      running.delete(handoff)
      wake()
    }
  }

  try {
    while (signal?.aborted !== true) {
      if (running.size >= concurrency) {
        await oneEnds()
        continue
      }
      const asked = moment()
      const items = await take(client, inbox, Math.min(mostAtOnce, concurrency - running.size), signal, onError)
      for (const item of items) serve(item, asked)
      // An empty answer before its time: the service stops, or something in front of it doesn't let requests wait.
      if (items.length === 0 && since(asked) < 1000) await pause(200 + Math.random() * 800, signal).catch(() => {})
    }
  } finally {
    isOver = true
    while (running.size > 0) await oneEnds()
  }
}

/** What comes next; nothing when the signal ends it, unless something had been caught by then. */
async function take (client: Operations, inbox: string | undefined, max: number, signal: AbortSignal | undefined, onError: (error: unknown) => void): Promise<Handoff[]> {
  const what = { inbox, max, idempotencyKey: crypto.randomUUID() }
  try {
    return await insist(() => client.catchNext({ ...what, wait: longestWait, signal }), { signal, onError })
  } catch (error) {
    if (signal?.aborted !== true) throw error
  }
  // The request may have caught something before it was ended. The same key tells, and catches nothing twice.
  try {
    return await client.catchNext(what)
  } catch (error) {
    onError(error)
    return []
  }
}

/** What the handler came to; undefined where its handoff was lost and it didn't stop by itself. */
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
