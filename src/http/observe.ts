import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { errorTable } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import { Histogram } from '../core/histogram.ts'
import { randomToken } from '../core/ids.ts'
import { statuses } from '../core/model.ts'
import type { Status } from '../core/model.ts'
import type { Moved, Operated, OperationOutcome } from '../operations/operation.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** When it arrived, in this process's monotonic milliseconds. */
    startedAt: number
    /** Its transition; null for none. */
    moved: Moved | null
  }
}

/** Milliseconds. The last ones are for requests that wait (`wait=60`). */
const bounds = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000]

/** How long the requests to one route took, by the status of the answer. */
interface RouteRequests { method: string, route: string, byStatus: Array<Histogram | undefined> }

/**
 * The refusals that mean: the handoff isn't in the wanted state, or not for this caller, or another site sent the
 * request.
 */
const conflictCodes = (Object.keys(errorTable) as ErrorCode[])
  .filter(code => [403, 409, 410].includes(errorTable[code].status) && code !== 'insufficient_scope')

/**
 * Methods that are counted by name for unknown paths. Any other is `other`: clients may invent methods, and each would
 * be a time series.
 */
const unmatchedMethods = new Set(['GET', 'HEAD', 'POST'])

/** Counts requests, their transitions, and refusals by reason. Plain numbers, for the metrics. */
export class Requests {
  readonly routes: RouteRequests[] = []
  /**
   * Handoffs by the status that they were moved to. The sweep's moves aren't included, nor are replayed answers, which
   * move nothing.
   */
  readonly moved = Object.fromEntries(statuses.map(status => [status, 0])) as Record<Status, number>
  /** Successors that requests made, by reason, without those of the sweep. */
  readonly reissued = { failed: 0, declined: 0, requested: 0 }
  /** How many operations the batches had. */
  readonly batchSizes = new Histogram([1, 2, 5, 10, 20, 50, 100])
  /** Calls of MCP tools, by tool and by result: `ok` or the error code. */
  readonly toolCalls = new Map<string, Map<string, number>>()
  readonly conflicts = new Map<ErrorCode, number>(conflictCodes.map(code => [code, 0]))

  /**
   * Counts every request of this instance. Call it before the routes are registered: it gives each route its own
   * counter.
   */
  watch (app: FastifyInstance): void {
    app.decorateRequest('startedAt', 0)
    app.decorateRequest('moved', null)
    app.addHook('onRequest', (request, reply, done) => {
      if (request.is404) this.unmatched(request, reply)
      else request.startedAt = performance.now()
      done()
    })
    app.addHook('onRoute', route => {
      route.onSend = [route.onSend ?? [], this.#counter(route)].flat()
    })
  }

  /**
   * Counts a request without a route. Its answer may come from anywhere, so this waits until it is sent; for other
   * requests that would cost too much.
   */
  unmatched (request: FastifyRequest, reply: FastifyReply): void {
    const startedAt = performance.now()
    const method = unmatchedMethods.has(request.method) ? request.method : 'other'
    reply.raw.once('finish', () => {
      durationsOf(this.#routeOf(method, 'unmatched').byStatus, reply.statusCode).add(performance.now() - startedAt)
    })
  }

  /** Counts a refusal. */
  refused (code: ErrorCode): void {
    const count = this.conflicts.get(code)
    if (count !== undefined) this.conflicts.set(code, count + 1)
  }

  /** Counts transitions. */
  count ({ to, reissued = [] }: Moved): void {
    for (const status of to) this.moved[status]++
    for (const because of reissued) this.reissued[because]++
  }

  /** Counts a call of one of MCP's tools. */
  called (tool: string, result: string): void {
    const byResult = this.toolCalls.get(tool) ?? new Map<string, number>()
    byResult.set(result, (byResult.get(result) ?? 0) + 1)
    this.toolCalls.set(tool, byResult)
  }

  /**
   * Makes a route's counter, once, so that a request finds its count by its status alone. It runs in onSend, when only
   * writing the answer is left: with an onResponse hook Fastify listens for the end of each response, which costs more
   * than the counting.
   */
  #counter ({ method, url }: RouteOptions) {
    // A path that may end in a slash is one route with it and without it.
    const { byStatus } = this.#routeOf([method].flat().join(','), url.length > 1 ? url.replace(/\/$/, '') : url)
    return (request: FastifyRequest, reply: FastifyReply, payload: unknown, done: () => void) => {
      const status = reply.statusCode
      durationsOf(byStatus, status).add(performance.now() - request.startedAt)
      if (request.moved !== null) this.count(request.moved)
      done()
    }
  }

  /**
   * A counter for operations that don't come as a request of their own.
   * @returns a function to call with the status and the milliseconds of each
   */
  counterOf (method: string, route: string): (status: number, took: number) => void {
    const { byStatus } = this.#routeOf(method, route)
    return (status, took) => durationsOf(byStatus, status).add(took)
  }

  #routeOf (method: string, route: string): RouteRequests {
    const known = this.routes.find(one => one.method === method && one.route === route)
    if (known !== undefined) return known
    const opened = { method, route, byStatus: new Array(600).fill(undefined) }
    this.routes.push(opened)
    return opened
  }
}

function durationsOf (byStatus: Array<Histogram | undefined>, status: number): Histogram {
  const known = byStatus[status]
  if (known !== undefined) return known
  const opened = new Histogram(bounds)
  byStatus[status] = opened
  return opened
}

/** The part of pino that the service uses. */
export interface RequestLog extends FaultLog, DecisionLog {
  debug (details: object, message: string): void
  isLevelEnabled (level: 'debug'): boolean
}

/** The log for faults of the service itself. */
export interface FaultLog {
  error (details: object, message: string): void
}

/** The log for what people and operators do. */
export interface DecisionLog {
  info (details: object, message: string): void
}

/**
 * The fields that identify a request in each log line about it, with its trace if it has one. Nothing else that the
 * client sent is logged.
 */
export function requestFields (request: FastifyRequest) {
  const traceparent = traceparentOf(request)
  return { request_id: request.id, ...traceparent !== undefined && { trace_id: traceIdOf(traceparent) } }
}

/**
 * Counts an operation's transition, and logs a person's decision, an operator's change, or a reader's read. A
 * decision's note isn't logged: it stays with the handoff.
 * @param id of the operation's path
 */
export function noteOutcome (
  log: DecisionLog, request: FastifyRequest, id: string, { moved, decided: verdict, operated, isRead }: OperationOutcome
): void {
  request.moved = moved
  logOperated(log, request, operated)
  if (isRead === true) {
    const { tenant, agent: reader } = request.caller
    log.info({ handoff_id: id, reader, tenant, ...requestFields(request) }, 'read')
  }
  if (verdict === undefined) return
  const { tenant, agent, subject } = request.caller
  const person = subject?.name === undefined
    ? {}
    : { decided_by_subject: subject.subject, decided_by_name: subject.name }
  log.info({ handoff_id: id, verdict, tenant, agent, ...person, ...requestFields(request) }, 'decided')
}

/** Logs a call by which an operator changed something. @param operated undefined for what isn't an operator's */
export function logOperated (log: DecisionLog, request: FastifyRequest, operated: Operated | undefined): void {
  if (operated === undefined || operated.changed === 0) return
  const { action, asked, changed } = operated
  const { tenant, agent: operator } = request.caller
  log.info({ operator, tenant, action, ...asked, changed, ...requestFields(request) }, 'operated')
}

/** Logs which handoffs a request moved, and to which status. @param traceparent the trace that a catch continues */
type LogMoved = (
  request: FastifyRequest, moved: Pick<Moved, 'to' | 'ids'>, traceparent: string | undefined
) => void

/**
 * Logs each handoff that a request moves, at debug. Call it before the routes are registered. If debug is off at the
 * start no hook is added, so requests pay nothing; a later change of the level has no effect.
 * @returns a function for moves that are known only after the answer has begun
 */
export function logTransitions (app: FastifyInstance, log: RequestLog): LogMoved {
  if (!log.isLevelEnabled('debug')) return () => {}
  const logMoved: LogMoved = (request, { to, ids }, traceparent) => {
    const { tenant, agent } = request.caller
    const fields = {
      tenant, agent, ...requestFields(request), ...traceparent !== undefined && { trace_id: traceIdOf(traceparent) }
    }
    to.forEach((status, at) =>
      log.debug({ handoff_id: ids?.[at] ?? (request.params as { id?: string }).id, to: status, ...fields }, 'moved'))
  }
  // Not onResponse: that also runs for a connection that broke off before there was an answer.
  app.addHook('onSend', (request, reply, payload, done) => {
    const { moved } = request
    // The page answers a success with a redirect, and a refusal with a page.
    if (moved !== null && reply.statusCode < 400) {
      logMoved(request, moved, readTraceparent(String(reply.getHeader('traceparent'))))
    }
    done()
  })
  return logMoved
}

/** Logs each handoff that expires by itself, at debug. Undefined if debug is off, so that Redis needn't name them. */
export function expiryLog (log: RequestLog): ((tenant: string, id: string) => void) | undefined {
  if (!log.isLevelEnabled('debug')) return undefined
  return (tenant, id) => log.debug({ handoff_id: id, to: 'expired', tenant }, 'moved')
}

/** W3C Trace Context, 3.2: version, trace-id, parent-id, trace-flags. Fields that a later version adds are ignored. */
const shape = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const noTrace = '0'.repeat(32)
const noParent = '0'.repeat(16)
/** The one flag of version 00: the trace is recorded. */
const sampled = 1

/**
 * The request's `traceparent` in the form of version 00; undefined if there is none. An invalid one is ignored, as the
 * specification demands, and never an error. Of a later version only the fields of version 00 are used (3.2.4).
 */
export function traceparentOf (request: FastifyRequest): string | undefined {
  const { traceparent } = request.headers
  // Most requests have none.
  return traceparent === undefined ? undefined : readTraceparent(String(traceparent))
}

export function readTraceparent (given: string): string | undefined {
  const [, version, trace, parent, flags, more] = shape.exec(given) ?? []
  if (version === undefined || version === 'ff' || trace === noTrace || parent === noParent) return undefined
  if (version === '00') return more === undefined ? given : undefined
  return `00-${trace}-${parent}-0${parseInt(flags as string, 16) & sampled}`
}

/** The trace-id of a traceparent: 32 hexadecimal digits. */
function traceIdOf (traceparent: string): string {
  return traceparent.slice(3, 35)
}

const clientsOwn = /^[A-Za-z0-9._-]{1,128}$/
/** The number distinguishes one process's ids; this prefix distinguishes processes. */
const process = randomToken().slice(0, 11)
let number = 0

export function newRequestId (): string {
  return `${process}-${(++number).toString(36)}`
}

/** The client's own X-Request-Id if it is valid, else a new id. */
export function requestId (request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && clientsOwn.test(given) ? given : newRequestId()
}
