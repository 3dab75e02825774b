import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Verdict } from '../store/approvals.ts'
import type { Moved } from './requests.ts'
import { readTraceparent, traceIdOf, traceparentOf } from './traceparent.ts'

/** The part of pino that the service uses. */
export interface Log extends FaultLog, DecisionLog {
  debug (details: object, message: string): void
  isLevelEnabled (level: 'debug'): boolean
}

/** The log for faults of the service itself. */
export interface FaultLog {
  error (details: object, message: string): void
}

/** The log for people's decisions. */
export interface DecisionLog {
  info (details: object, message: string): void
}

/** The fields that identify a request in each log line about it, with its trace if it has one. Nothing else that the client sent is logged. */
export function requestFields (request: FastifyRequest) {
  const traceparent = traceparentOf(request)
  return { request_id: request.id, ...traceparent !== undefined && { trace_id: traceIdOf(traceparent) } }
}

/** Logs each decision, whether it came through the API or from the page. The note isn't logged: it stays with the handoff. */
export function logDecision (log: DecisionLog, request: FastifyRequest, handoffId: string, verdict: Verdict): void {
  const { tenant, agent } = request.caller
  log.info({ handoff_id: handoffId, verdict, tenant, agent, ...requestFields(request) }, 'decided')
}

/** Logs which handoffs a request moved, and to which status. @param traceparent the trace that a catch continues */
export type TellMoved = (request: FastifyRequest, moved: Pick<Moved, 'to' | 'ids'>, traceparent: string | undefined) => void

/**
 * Logs each handoff that a request moves, at debug. Call it before the routes are registered. If debug is off at the start no hook is added, so
 * requests pay nothing; a later change of the level has no effect.
 * @returns a function for moves that are known only after the answer has begun
 */
export function logTransitions (app: FastifyInstance, log: Log): TellMoved {
  if (!log.isLevelEnabled('debug')) return () => {}
  const tell: TellMoved = (request, { to, ids }, traceparent) => {
    const { tenant, agent } = request.caller
    const fields = { tenant, agent, ...requestFields(request), ...traceparent !== undefined && { trace_id: traceIdOf(traceparent) } }
    to.forEach((status, at) => log.debug({ handoff_id: ids?.[at] ?? (request.params as { id?: string }).id, to: status, ...fields }, 'moved'))
  }
  // Not onResponse: that also runs for a connection that broke off before there was an answer.
  app.addHook('onSend', (request, reply, payload, done) => {
    const { moves } = request.routeOptions.config
    const moved = request.moved ?? { to: moves === undefined ? [] : [moves] }
    // The page answers a success with a redirect, and a refusal with a page.
    if (moved.to.length > 0 && reply.statusCode < 400) tell(request, moved, readTraceparent(String(reply.getHeader('traceparent'))))
    done()
  })
  return tell
}

/** Logs each handoff that expires by itself, at debug. Undefined if debug is off, so that Redis needn't name them. */
export function expiryLog (log: Log): ((tenant: string, id: string) => void) | undefined {
  if (!log.isLevelEnabled('debug')) return undefined
  return (tenant, id) => log.debug({ handoff_id: id, to: 'expired', tenant }, 'moved')
}
