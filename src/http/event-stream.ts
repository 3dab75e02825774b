import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { OpenStream } from '../handoffs/events.ts'

const streamType = 'text/event-stream'

/** Does the client want a stream of server-sent events? One that takes JSON too gets that. */
export function wantsStream ({ headers }: FastifyRequest): boolean {
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
export function lastEventId ({ headers }: FastifyRequest): string | undefined {
  return headers['last-event-id'] as string | undefined || undefined
}

/** A stream as an answer's body. */
export function bodyOf ({ text, close }: OpenStream, reply: FastifyReply): Readable {
  // Some proxies collect an answer before they pass it on, unless the answer says not to.
  reply.headers({ 'content-type': streamType, 'x-accel-buffering': 'no' })
  // 'close' comes whatever ends it, also where its client has gone before anything was read.
  return Readable.from(text, { objectMode: false, highWaterMark: 1 }).once('close', close)
}
