import { ReadStream, readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'

/**
 * Answers from memory what this instance and those below it would read from files; register it before them. A file that is
 * read anew for each answer is new buffers for each answer, and a crowd that asks for the documentation's largest one and doesn't
 * read it makes the garbage collector stop everybody three times a second (test/faults, slow-clients: p99 13 to 23 ms beside it, 4 to
 * 5 without). Files don't change under a running service, and there are few: 3 MB in all.
 */
export function keepFilesInMemory (app: FastifyInstance): void {
  const kept = new Map<string, Buffer>()
  app.addHook('onSend', (request, reply, payload, done) => {
    if (!(payload instanceof ReadStream)) return done()
    const { path, start, end } = payload as ReadStream & { start: number, end: number }
    payload.destroy()
    let file = kept.get(String(path))
    if (file === undefined) kept.set(String(path), file = readFileSync(path))
    done(null, file.subarray(start, end + 1))
  })
}
