import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { Histogram } from '../histogram.ts'
import { errorTable } from '../errors.ts'
import type { ErrorCode } from '../errors.ts'
import { statuses } from '../model.ts'
import type { Status } from '../model.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** When it came, in this process's monotonic milliseconds. */
    startedAt: number
    /** What it did, where that isn't always what its route says (`moves`). */
    moved: Moved | null
  }
}

/** Where a request moved handoffs to, in that order, and which; and why it made successors, where it did. */
export interface Moved { to: Status[], ids?: string[], reissued?: Array<'failed' | 'declined' | 'requested'> }

/** Milliseconds; the last for those that wait (`wait=60`). */
const bounds = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000]

/** How long the requests of one method to one route took, by the status of the answer. */
export interface RouteRequests { method: string, route: string, byStatus: Array<Histogram | undefined> }

/** The refusals that say that a handoff isn't where the request wants it, or not for who asks; and that another site sent it. */
export const conflictCodes = (Object.keys(errorTable) as ErrorCode[])
  .filter(code => [403, 409, 410].includes(errorTable[code].status) && code !== 'insufficient_scope')

/** For what there is no route. Any other method is `other`: clients may make up words, and each would be a series of its own. */
const unmatchedMethods = new Set(['GET', 'HEAD', 'POST'])

/** Counts requests, what they moved and what they were refused. Plain numbers, for whoever reads them (metrics/). */
export class Requests {
  readonly routes: RouteRequests[] = []
  /** Handoffs by where they were moved to. What the sweep does isn't among it, nor a replayed answer, which moves nothing. */
  readonly moved = Object.fromEntries(statuses.map(status => [status, 0])) as Record<Status, number>
  /** Successors that were made, by why; those that the sweep makes aren't among them. */
  readonly reissued = { failed: 0, declined: 0, requested: 0 }
  /** How many operations batches had. */
  readonly batchSizes = new Histogram([1, 2, 5, 10, 20, 50, 100])
  /** Calls of MCP's tools: by tool and by `ok` or why it was refused. */
  readonly toolCalls = new Map<string, Map<string, number>>()
  readonly conflicts = new Map<ErrorCode, number>(conflictCodes.map(code => [code, 0]))

  /** Counts every request of this instance. Call it before the routes are registered: it gives each a counter of its own. */
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

  /** Counts one that no route is for. Its answer may come from anywhere, so it is waited for; for the others that would cost too much. */
  unmatched (request: FastifyRequest, reply: FastifyReply): void {
    const startedAt = performance.now()
    const method = unmatchedMethods.has(request.method) ? request.method : 'other'
    reply.raw.once('finish', () => {
      const known = this.routes.find(one => one.route === 'unmatched' && one.method === method) ?? this.#open(method, 'unmatched')
      durationsOf(known.byStatus, reply.statusCode).add(performance.now() - startedAt)
    })
  }

  /** Somebody was refused. */
  refused (code: ErrorCode): void {
    const count = this.conflicts.get(code)
    if (count !== undefined) this.conflicts.set(code, count + 1)
  }

  /** Counts what was moved. */
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
   * Made once a route: a request finds its counter by its status alone. On onSend, when all but writing the answer is done: with an
   * onResponse hook Fastify listens for each response's end, which costs more than the counting.
   */
  #counter ({ method, url, config }: RouteOptions) {
    const { byStatus } = this.#open([method].flat().join(','), url)
    const moves = config?.moves
    return (request: FastifyRequest, reply: FastifyReply, payload: unknown, done: () => void) => {
      const status = reply.statusCode
      durationsOf(byStatus, status).add(performance.now() - request.startedAt)
      if (request.moved !== null) this.count(request.moved)
      else if (moves !== undefined && status < 400) this.moved[moves]++
      done()
    }
  }

  /** Counts what came to a route otherwise than as a request of its own. @returns to be called with the status and the milliseconds of each */
  counterOf (method: string, route: string): (status: number, took: number) => void {
    const known = this.routes.find(one => one.method === method && one.route === route) ?? this.#open(method, route)
    return (status, took) => durationsOf(known.byStatus, status).add(took)
  }

  #open (method: string, route: string): RouteRequests {
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
