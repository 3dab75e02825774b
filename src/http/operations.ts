import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { invalid } from '../core/errors.ts'
import { noMembers } from '../core/json.ts'
import { isWorker, workerPattern } from '../core/model.ts'
import type { NeededScope } from '../core/model.ts'
import { problems } from '../core/schemas/problem.ts'
import { toCall } from '../operations/admit.ts'
import type { Operation, OperationCall, OperationOutcome } from '../operations/operation.ts'
import { jsonType } from './body.ts'
import { noteOutcome, traceparentOf } from './observe.ts'
import type { DecisionLog } from './observe.ts'
import type { OpenStream } from '../handoffs/wait/streams.ts'
import type { WaitingRequester } from '../handoffs/wait/waiter.ts'

/** Makes a route of each operation. @param log for what people and operators do */
export function operationRoutes (app: FastifyInstance, operations: readonly Operation[], log: DecisionLog): void {
  for (const operation of operations) {
    const { name, scope, method, path, tag, summary, description, params, query, headers, body } = operation
    if (path === null) continue
    const { requireIt } = operation
    app.route({
      method,
      url: path,
      ...requireIt !== null && {
        onRequest (request: FastifyRequest, reply: FastifyReply, done: () => void) {
          requireIt()
          done()
        }
      },
      config: { scope, nested: operation.nested, ...operation.resumesTrace && { resumesTrace: true } },
      schema: {
        operationId: name,
        summary,
        ...description !== undefined && { description },
        tags: [tag],
        ...params !== undefined && { params },
        querystring: query,
        ...headers !== undefined && { headers },
        ...body !== null && { body },
        response: { ...operation.answers, ...problems({ body: body !== null }, ...operation.refusals) },
      },
      handler: operation.stream === null
        ? (request, reply) => perform(operation, request, reply, log)
        : (request, reply) => performOrStream(operation, request, reply, log),
    })
  }
}

/** Carries out an operation that came as a request of its own. */
async function perform (
  operation: Operation, request: FastifyRequest, reply: FastifyReply, log: DecisionLog
): Promise<OperationOutcome['answer']> {
  const call = callOf(request)
  const outcome = await operation.run(call)
  const { status, answer, replayed, made, traceparent } = outcome
  if (replayed) reply.header('idempotency-replayed', 'true')
  noteOutcome(log, request, call.id, outcome)
  reply.code(status)
  if (made !== undefined) reply.header('location', `${reply.server.basePath}/api/status/${made}`)
  if (traceparent !== undefined) reply.header('traceparent', traceparent)
  if (outcome.file !== undefined) sendFile(reply, outcome.file)
  else if (typeof answer === 'string' || Buffer.isBuffer(answer)) reply.header('content-type', jsonType)
  return answer
}

function sendFile (reply: FastifyReply, { name, type, next }: NonNullable<OperationOutcome['file']>): void {
  reply.headers({
    'content-type': type,
    'content-disposition': `attachment; filename="${name}"`,
    'x-content-type-options': 'nosniff',
    ...next !== undefined && { link: `<${reply.server.basePath}${next}>; rel="next"` }
  })
}

/** The same for an operation that has a stream, which the client may ask for. */
async function performOrStream (
  operation: Operation, request: FastifyRequest, reply: FastifyReply, log: DecisionLog
): Promise<OperationOutcome['answer']> {
  // Which of the two comes depends on it, so a cache must know that.
  reply.header('vary', 'accept')
  if (!wantsStream(request)) return perform(operation, request, reply, log)
  return streamBody(await operation.stream!(callOf(request), lastEventId(request)), reply)
}

/** The hooks before have made all checks of operations/admit.ts, and validation that of the body's form. */
function callOf (request: FastifyRequest): OperationCall {
  const { id, name } = request.params as { id?: string, name?: string }
  const { wait = 0 } = request.query as { wait?: number }
  const { caller, query, members, bytes } = request
  return toCall({
    caller,
    id: id ?? name ?? '',
    query,
    bytes,
    key: idempotencyKey(request),
    traceparent: traceparentOf(request),
    worker: workerOf(request),
    requester: request,
    wait
  }, members ?? noMembers)
}

/** Who asks by a request for an operation of this scope, where the request's route has no scope. */
export function requesterFor (request: FastifyRequest, scope: NeededScope | undefined): WaitingRequester {
  return {
    grant: () => request.grant(scope),
    isGone: () => request.isGone(),
    onGone: listener => request.onGone(listener),
    budget: () => request.budget()
  }
}

/** The client's Idempotency-Key. The request's schema has checked its form. */
function idempotencyKey (request: FastifyRequest): string | undefined {
  return request.headers['idempotency-key'] as string | undefined
}

/** What its worker calls itself. @throws {Problem} it can't be a name, and no schema has said so before */
export function workerOf ({ headers }: FastifyRequest): string | undefined {
  const worker = headers['handoff-worker']
  if (worker === undefined) return undefined
  if (typeof worker === 'string' && isWorker(worker)) return worker
  throw invalid({ pointer: '/handoff-worker', message: `headers: must match pattern "${workerPattern}"` })
}

const streamType = 'text/event-stream'

/** Does the client want a stream of server-sent events? One that takes JSON too gets that. */
function wantsStream ({ headers }: FastifyRequest): boolean {
  const accept = headers.accept?.toLowerCase() ?? ''
  return isAccepted(accept, streamType) && !isAccepted(accept, 'application/json')
}

/** Whether an Accept field names this media type, and not with a weight of 0 (RFC 9110, 12.5.1). */
function isAccepted (accept: string, type: string): boolean {
  return accept.split(',').some(range => {
    const [name, ...parameters] = range.split(';').map(part => part.trim())
    return name === type && !parameters.some(parameter => /^q=0(\.0*)?$/.test(parameter))
  })
}

/** The last event that a client has read whose stream broke off. */
function lastEventId ({ headers }: FastifyRequest): string | undefined {
  return headers['last-event-id'] as string | undefined || undefined
}

/** A stream as an answer's body. */
export function streamBody ({ text, close }: OpenStream, reply: FastifyReply): Readable {
  // Some proxies collect an answer before they pass it on, unless the answer says not to.
  reply.headers({ 'content-type': streamType, 'x-accel-buffering': 'no' })
  // 'close' comes whatever ends it, also where its client has gone before anything was read.
  return Readable.from(text, { objectMode: false, highWaterMark: 1 }).once('close', close)
}
