import { ReadStream, readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'

/**
 * Serves this instance's files from memory, and those of its child instances; register it before them. Reading a file anew for each answer makes
 * new buffers each time. When many clients ask for the documentation's largest file and don't read it, garbage collection then stops everyone three
 * times a second (test/faults, slow-clients: p99 of other requests 13 to 23 ms, without it 4 to 5). The files don't change while the service runs,
 * and they are few: 3 MB in all.
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
