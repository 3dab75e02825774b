import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { invalid } from '../../errors.ts'
import { batchAnswer, batchBody } from '../../schemas/batch.ts'
import { noQuery } from '../../schemas/handoff.ts'
import { problems } from '../../schemas/problem.ts'
import type { Histogram } from '../../histogram.ts'
import { batchOperations, cutBatch } from '../batch-body.ts'
import type { AnswerRoom } from '../answer-room.ts'
import type { Batches } from '../batch.ts'
import { jsonType } from '../media.ts'
import { traceparentOf } from '../traceparent.ts'
import { askerOf } from '../waiting.ts'

/** @param sizes how many operations each batch had @param bodyLimit in bytes, for the whole batch @param room for the answers of all batches */
export interface BatchOptions { sizes: Histogram, bodyLimit: number, room: AnswerRoom }

/** An answer of more bytes goes out in pieces. */
const large = 1024 * 1024

export function batchRoute (app: FastifyInstance, batches: Batches, { sizes, bodyLimit, room }: BatchOptions): void {
  app.post('/api/batch', {
    bodyLimit,
    config: { isBatch: true },
    // The route itself checks the body's envelope, and each operation checks its own body.
    validatorCompiler: ({ schema, httpPart }) => httpPart === 'body' ? () => true : app.validatorCompiler!({ schema, httpPart } as never),
    schema: {
      operationId: 'batch',
      summary: 'Run many operations in one request',
      description: 'Each operation is treated as a request of its own: its scope, limit, Idempotency-Key and answer. They run concurrently, in no particular order, and none waits.',
      tags: ['batches'],
      querystring: noQuery,
      body: batchBody(batchOperations),
      response: { 200: batchAnswer, ...problems({ body: true }) },
    },
    onRequest: refuseKey,
  }, async (request, reply) => {
    const entries = cutBatch(request.bytes)
    sizes.add(entries.length)
    const { caller, id: requestId } = request
    const limit = request.limit!
    const answers = room.open(caller.tenant)
    whenOver(request, reply, () => answers.end())
    const { pieces, moved } = await batches.run(entries, { caller, traceparent: traceparentOf(request), requestId, limit, answers, ...askerOf(request) })
    limit.tell(reply)
    request.moved = moved
    const size = pieces.reduce((sum, { length }) => sum + length, 0)
    reply.header('content-type', jsonType).header('content-length', size)
    // Put together, a large answer would be held twice.
    return size > large ? Readable.from(pieces) : Buffer.concat(pieces, size)
  })
}

function refuseKey (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
  const isThere = request.headers['idempotency-key'] !== undefined
  done(isThere ? invalid({ pointer: '/idempotency-key', message: 'headers: each operation has its own idempotency_key' }) : undefined)
}

/** Calls once when the answer is sent, or the connection is closed. A response that waits for another one's end doesn't learn of the latter. */
function whenOver ({ raw: { socket } }: FastifyRequest, { raw }: FastifyReply, over: () => void): void {
  const end = () => {
    socket.off('close', end)
    over()
  }
  // It may have closed already, and then the event doesn't come again.
  if (socket.destroyed) return over()
  raw.once('close', end)
  socket.once('close', end)
}
