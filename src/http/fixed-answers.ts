import { createHash } from 'node:crypto'
import { ReadStream, readFileSync } from 'node:fs'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** An answer that is the same for all clients. */
export interface Fixed { body: Buffer, etag: string }

export function fixed (content: string | Buffer): Fixed {
  const body = Buffer.from(content)
  return { body, etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"` }
}

/**
 * Makes once what depends on BASE_URL alone: a client needs no key, so each request must cost little. Before the
 * service listens its URL may still change, and then it is made anew.
 */
export function oncePer<T> (baseUrl: () => string, make: (baseUrl: string) => T): () => T {
  let last: { of: string, made: T } | undefined
  return () => {
    const of = baseUrl()
    if (last?.of !== of) last = { of, made: make(of) }
    return last.made
  }
}

/** Caches in between may answer for five minutes. */
export const kept = 'public, max-age=300'

/** Sends it, or 304 if the client has it already. @param cacheControl left out, clients check before each use */
export function sendFixed (
  request: FastifyRequest, reply: FastifyReply, { body, etag }: Fixed, type: string, cacheControl?: string
): FastifyReply {
  reply.headers({ 'content-type': type, 'x-content-type-options': 'nosniff', etag })
  if (cacheControl !== undefined) reply.header('cache-control', cacheControl)
  const known = request.headers['if-none-match']
  // A proxy that compresses makes the ETag a weak one.
  if (known?.split(',').some(one => ['*', etag].includes(one.trim().replace(/^W\//, '')))) return reply.code(304).send()
  return reply.send(body)
}

/**
 * Serves this instance's files from memory, and those of its child instances; register it before them. Reading a file
 * anew for each answer makes new buffers each time. When many clients ask for the documentation's largest file and
 * don't read it, garbage collection then stops everyone three times a second (test/faults, slow-clients: p99 of other
 * requests 13 to 23 ms, without it 4 to 5). The files don't change while the service runs, and they are few: 3 MB in
 * all.
 */
export function keepFilesInMemory (app: FastifyInstance): void {
  const files = new Map<string, Buffer>()
  app.addHook('onSend', (request, reply, payload, done) => {
    if (!(payload instanceof ReadStream)) return done()
    const { path, start, end } = payload as ReadStream & { start: number, end: number }
    payload.destroy()
    let file = files.get(String(path))
    if (file === undefined) files.set(String(path), file = readFileSync(path))
    done(null, file.subarray(start, end + 1))
  })
}
