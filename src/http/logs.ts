import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Verdict } from '../store/approvals.ts'
import type { Moved } from './requests.ts'
import { readTraceparent, traceIdOf, traceparentOf } from './traceparent.ts'

/** Where the service tells what happens: pino, as far as it is used. */
export interface Log extends FaultLog, DecisionLog {
  debug (details: object, message: string): void
  isLevelEnabled (level: 'debug'): boolean
}

/** Where faults of ours are told. */
export interface FaultLog {
  error (details: object, message: string): void
}

/** Where it is told what people decide. */
export interface DecisionLog {
  info (details: object, message: string): void
}

/** What names a request in each line about it, and the trace that it came in where there is one. Nothing that it says otherwise. */
export function requestFields (request: FastifyRequest) {
  const traceparent = traceparentOf(request)
  return { request_id: request.id, ...traceparent !== undefined && { trace_id: traceIdOf(traceparent) } }
}

/** A line for each decision, by program or on the page. The note stays with the handoff. */
export function logDecision (log: DecisionLog, request: FastifyRequest, handoffId: string, verdict: Verdict): void {
  const { tenant, agent } = request.caller
  log.info({ handoff_id: handoffId, verdict, tenant, agent, ...requestFields(request) }, 'decided')
}

/** Tells where a request moved handoffs to. @param traceparent the trace that a catch goes on in */
export type TellMoved = (request: FastifyRequest, moved: Pick<Moved, 'to' | 'ids'>, traceparent: string | undefined) => void

/**
 * A line at debug for each handoff that a request moves. Call it before the routes are registered. Where debug is off there is
 * no hook, so that a request pays nothing; the level stays what it is at the start.
 * @returns for what is moved when the answer has begun already
 */
export function logTransitions (app: FastifyInstance, log: Log): TellMoved {
  if (!log.isLevelEnabled('debug')) return () => {}
  const tell: TellMoved = (request, { to, ids }, traceparent) => {
    const { tenant, agent } = request.caller
    const fields = { tenant, agent, ...requestFields(request), ...traceparent !== undefined && { trace_id: traceIdOf(traceparent) } }
    to.forEach((status, at) => log.debug({ handoff_id: ids?.[at] ?? (request.params as { id?: string }).id, to: status, ...fields }, 'moved'))
  }
  // Not onResponse: that comes when the connection is over, for one that broke off before there was an answer too.
  app.addHook('onSend', (request, reply, payload, done) => {
    const { moves } = request.routeOptions.config
    const moved = request.moved ?? { to: moves === undefined ? [] : [moves] }
    // The page answers with a redirection when it is done, and with a page where something is in the way.
    if (moved.to.length > 0 && reply.statusCode < 400) tell(request, moved, readTraceparent(String(reply.getHeader('traceparent'))))
    done()
  })
  return tell
}

/** What is to be told of each handoff that expires by itself: a line at debug; nothing where debug is off, so that Redis needn't name them. */
export function expiryLog (log: Log): ((tenant: string, id: string) => void) | undefined {
  if (!log.isLevelEnabled('debug')) return undefined
  return (tenant, id) => log.debug({ handoff_id: id, to: 'expired', tenant }, 'moved')
}
