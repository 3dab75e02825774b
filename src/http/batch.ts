import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { errorTable, invalid } from '../core/errors.ts'
import type { Histogram } from '../core/histogram.ts'
import type { Caller, NeededScope } from '../core/model.ts'
import { noQuery, workerHeaders } from '../core/schemas/handoffs.ts'
import { batchAnswer, batchBody } from '../core/schemas/inboxes.ts'
import { problems } from '../core/schemas/problem.ts'
import type { WaitingRequester } from '../handoffs/wait/waiter.ts'
import { admissionOf } from '../operations/admit.ts'
import type { Admission } from '../operations/admit.ts'
import type { Moved, Operated, Operation, OperationOutcome } from '../operations/operation.ts'
import { cutBatch } from './batch-body.ts'
import type { BatchEntry } from './batch-body.ts'
import { jsonType } from './body.ts'
import { logOperated, traceparentOf } from './observe.ts'
import { workerOf } from './operations.ts'
import type { DecisionLog, Requests } from './observe.ts'
import { asProblem, problemText } from './problems.ts'
import type { BatchLimit } from './rate-limit.ts'

/** An operation, as batches carry it out. */
interface Member { operation: Operation, admission: Admission, count: ReturnType<Requests['counterOf']> }

/** A batch's sender, and its request. */
interface Batcher {
  caller: Caller
  /** The requester of an operation that needs this scope. */
  requesterFor (scope: NeededScope | undefined): WaitingRequester
  /** When: of `performance.now()`. */
  came: number
  traceparent: string | undefined
  worker: string | undefined
  requestId: string
  basePath: string
  limit: BatchLimit
}

const nothing = Buffer.alloc(0)

/** Carries out the operations of a batch, each as if it were a request of its own. */
export class Batches {
  /** The operations that a batch may have: none makes more than one handoff. */
  readonly operations: ReadonlyMap<string, Operation>
  readonly #members: ReadonlyMap<string, Member>
  readonly #requests: Requests
  readonly #bodyLimit: number
  readonly #onFault: (error: unknown, batcher: Batcher) => void

  /** @param bodyLimit for each operation's body, in bytes */
  constructor (
    operations: readonly Operation[], requests: Requests, bodyLimit: number,
    onFault: (error: unknown, batcher: Batcher) => void
  ) {
    this.operations = new Map(operations.filter(({ inBatch }) => inBatch).map(one => [one.name, one]))
    this.#members = new Map([...this.operations].map(([name, operation]) =>
      [name, {
        operation,
        admission: admissionOf(operation),
        count: requests.counterOf(operation.method, operation.path!)
      }]))
    this.#requests = requests
    this.#bodyLimit = bodyLimit
    this.#onFault = onFault
  }

  /** @returns the answer's JSON in pieces, the transitions, and an operator's changes */
  async run (entries: readonly BatchEntry[], batcher: Batcher): Promise<BatchOutcome> {
    const all = await Promise.all(entries.map(async entry => {
      const member = this.#members.get(entry.op)!
      const outcome = await this.#one(member, entry, batcher)
      member.count(outcome.status, performance.now() - batcher.came)
      return outcome
    }))
    const changes = all.map(({ moved }) => moved)
    return {
      pieces: resultsText(all),
      moved: {
        to: changes.flatMap(({ to }) => to),
        ids: changes.flatMap(({ ids = [] }) => ids),
        reissued: changes.flatMap(({ reissued = [] }) => reissued)
      },
      operated: all.flatMap(({ operated }) => operated ?? []),
    }
  }

  async #one (member: Member, entry: BatchEntry, batcher: Batcher): Promise<OperationOutcome> {
    try {
      const { operation, admission } = member
      const { id, body: bytes = nothing, members, key } = entry
      const { caller, limit, traceparent, worker } = batcher
      const requester = batcher.requesterFor(operation.scope)
      const incoming = { caller, id, query: {}, bytes, members, key, traceparent, worker, requester, wait: 0 }
      const admitted = admission.admit(incoming, limit, this.#bodyLimit)
      return await operation.run(admitted instanceof Promise ? await admitted : admitted)
    } catch (error) {
      const problem = asProblem(error)
      this.#requests.refused(problem.code)
      if (problem.code === 'internal_error') this.#onFault(error, batcher)
      return {
        status: errorTable[problem.code].status,
        answer: problemText(problem, batcher.requestId, batcher.basePath),
        replayed: false,
        moved: { to: [] }
      }
    }
  }
}

interface BatchOutcome { pieces: Buffer[], moved: Moved, operated: Operated[] }

/** `{"results":[…]}`, with each answer's bytes as they are. */
function resultsText (all: readonly OperationOutcome[]): Buffer[] {
  const parts: Buffer[] = []
  let text = '{"results":['
  all.forEach(({ status, answer, replayed }, at) => {
    text += `${at === 0 ? '' : ','}{"status":${status},"body":`
    if (Buffer.isBuffer(answer)) {
      parts.push(Buffer.from(text), answer)
      text = ''
    } else text += typeof answer === 'string' ? answer : JSON.stringify(answer)
    text += replayed ? ',"replayed":true}' : '}'
  })
  return [...parts, Buffer.from(`${text}]}`)]
}

/**
 * @param sizes how many operations each batch had
 * @param bodyLimit in bytes, for the whole batch
 * @param log for what operators do
 */
interface BatchOptions { sizes: Histogram, bodyLimit: number, log: DecisionLog }

/** An answer of more bytes goes out in pieces. */
const large = 1024 * 1024

export function batchRoute (
  app: FastifyInstance, batches: Batches, { sizes, bodyLimit, log }: BatchOptions
): void {
  app.post('/api/batch', {
    bodyLimit,
    config: { isBatch: true },
    // The route itself checks the body's envelope, and each operation checks its own body.
    validatorCompiler: (
      { schema, httpPart }
    ) => httpPart === 'body' ? () => true : app.validatorCompiler!({ schema, httpPart } as never),
    schema: {
      operationId: 'batch',
      summary: 'Run many operations in one request',
      description: 'Each operation is treated as a request of its own: its scope, limit, Idempotency-Key and ' +
        'answer. They run concurrently, in no particular order, and none waits.',
      tags: ['batches'],
      querystring: noQuery,
      headers: workerHeaders,
      body: batchBody([...batches.operations.keys()]),
      response: { 200: batchAnswer, ...problems({ body: true }) },
    },
    onRequest: refuseKey,
  }, async (request, reply) => {
    const entries = cutBatch(request.bytes, batches.operations)
    sizes.add(entries.length)
    const { caller, id: requestId } = request
    const limit = request.limit!
    const requesters = new Map<NeededScope | undefined, WaitingRequester>()
    const traceparent = traceparentOf(request)
    const { pieces, moved, operated } = await batches.run(entries, {
      caller,
      requesterFor: scope => requesters.get(scope) ?? requesters.set(scope, oneOfMany(request, scope)).get(scope)!,
      came: performance.now(),
      traceparent,
      worker: workerOf(request),
      requestId,
      basePath: app.basePath,
      limit
    })
    limit.writeHeaders(reply)
    request.moved = moved
    for (const one of operated) logOperated(log, request, one)
    const size = pieces.reduce((sum, { length }) => sum + length, 0)
    reply.header('content-type', jsonType).header('content-length', size)
    // Put together, a large answer would be held twice.
    return size > large ? Readable.from(pieces) : Buffer.concat(pieces, size)
  })
}

/** The requester of a batch's operations: its key needs their scope. */
function oneOfMany (request: FastifyRequest, scope: NeededScope | undefined): WaitingRequester {
  return {
    grant: () => request.grant(scope),
    isGone: () => request.isGone(),
    onGone: listener => request.onGone(listener),
    budget: () => request.budget(),
    isOneOfMany: true
  }
}

function refuseKey (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
  const isThere = request.headers['idempotency-key'] !== undefined
  done(isThere
    ? invalid({ pointer: '/idempotency-key', message: 'headers: each operation has its own idempotency_key' })
    : undefined)
}
