import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem, invalid } from '../../core/errors.ts'
import type { DirectoryStore } from '../../files/directory.ts'
import { anyType, attachment, placeOf } from '../../files/objects.ts'
import type { FileService } from '../../files/service.ts'
import type { TransferCounts } from '../../files/counts.ts'
import type { FileMaking } from '../../store/files.ts'
import { takeTime } from '../connections.ts'
import { continueBody } from '../unread-bodies.ts'

/** How long a transfer may stand still (ms). */
const idle = 30_000
/** How much of a file is read at once (bytes): what each download holds, and as much on its way. */
const chunk = 65_536

interface FileRoutes { store: DirectoryStore, files: FileService, counts: TransferCounts, idle?: number | undefined }

/**
 * The bytes of a directory's files, by signed URLs, without a key. Whatever a browser makes of one, it saves it: the
 * service's own pages have its origin too.
 */
export async function fileRoutes (app: FastifyInstance, { store, files, counts, ...more }: FileRoutes): Promise<void> {
  const patience = more.idle ?? idle
  // As it comes: nothing here reads a body whole.
  app.addContentTypeParser('*', (request, payload, done) => done(null, payload))
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers({
      'x-request-id': request.id,
      'cache-control': 'private, no-store',
      'x-content-type-options': 'nosniff',
      'content-security-policy': 'sandbox',
      'referrer-policy': 'no-referrer'
    })
    done()
  })

  /**
   * The object, and what was signed of it. Without a signed URL no client makes the service look at a tenant's records.
   * @throws {Problem} signature_invalid @throws {Unavailable} this replica has another directory than its tenant's
   */
  const signedOf = async (
    request: FastifyRequest, method: 'PUT' | 'GET'
  ): Promise<{ object: string, place: FileMaking, signed: Record<string, string> }> => {
    const { mark, tenant, object } = request.params as { mark: string, tenant: string, object: string }
    const name = `${mark}/${tenant}/${object}`
    const place = placeOf(name)
    if (place === undefined) throw new Problem('signature_invalid')
    const signed = await store.verify(method, name, request.query as object as Record<string, unknown>)
    if (signed === undefined) {
      await files.requireOurs()
      throw new Problem('signature_invalid')
    }
    await files.markOf(place.tenant)
    return { object: name, place, signed }
  }

  app.put('/:mark/:tenant/:object', { schema: { hide: true } as object }, async (request, reply) => {
    const { object, place, signed: { bytes: declared, sha256 } } = await signedOf(request, 'PUT')
    const bytes = Number(declared)
    const { 'content-length': length } = request.headers
    if (length === undefined) throw new Problem('length_required')
    if (Number(length) !== bytes) {
      throw invalid({ pointer: '/content-length', message: `headers: must be ${declared}` })
    }
    const stands = () => files.stands(place)
    // What has no record has no share: it takes no room from others.
    if (!await stands()) throw new Problem('signature_invalid')
    const stop = takeTime(request, patience)
    await counts.during('put', async () => {
      await store.admit(bytes)
      continueBody(request.raw)
      await store.receive(object, { bytes, sha256: sha256! }, countedBody(request.raw, counts, stop), stands)
      // Its record may have gone meanwhile: then nothing will ever name what came.
      if (!await files.noteWhole(place)) {
        await store.remove(object)
        throw new Problem('signature_invalid')
      }
    })
    reply.code(204)
  })

  const give = async (request: FastifyRequest, reply: FastifyReply) => {
    const { object, signed: { name, type } } = await signedOf(request, 'GET')
    const found = await store.read(object)
    if (found === undefined) throw new Problem('not_found')
    const { file, bytes } = found
    try {
      // What waits for its turn on a connection never learns that that ended.
      if (request.isGone()) throw new Problem('request_timeout')
      const [, making] = object.split(/\/(?=[^/]*$)/)
      const part = rangeOf(request, bytes, `"${making}"`)
      reply.headers({
        etag: `"${making}"`,
        'accept-ranges': 'bytes',
        'content-type': type ?? anyType,
        'content-disposition': attachment({ name: name! }),
        'content-length': part.end - part.start,
        ...part.isPart && { 'content-range': `bytes ${part.start}-${part.end - 1}/${bytes}` }
      })
      reply.code(part.isPart ? 206 : 200)
      if (part.end === part.start || request.method === 'HEAD') {
        await file.close()
        return await reply.send(request.method === 'HEAD' ? undefined : Buffer.alloc(0))
      }
      takeTime(request, patience)
      const stream = file.createReadStream({ start: part.start, end: part.end - 1, highWaterMark: chunk })
      stream.on('data', some => { counts.bytes.got += some.length })
      counts.during('got', () => new Promise<void>((resolve, reject) => {
        stream.once('end', resolve).once('close', () => reject(new Error('cut')))
      })).catch(() => {})
      request.onOver(() => stream.destroy())
      return await reply.send(stream)
    } catch (error) {
      await file.close()
      throw error
    }
  }
  app.route({
    method: ['GET', 'HEAD'], url: '/:mark/:tenant/:object', schema: { hide: true } as object, handler: give
  })
}

/** @param whole called when all of it is there: what follows, on the disk, moves nothing over the connection */
async function * countedBody (
  body: AsyncIterable<Buffer>, counts: TransferCounts, whole: () => void
): AsyncIterable<Buffer> {
  try {
    for await (const some of body) {
      counts.bytes.put += some.length
      yield some
    }
  } catch {
    // Its client went, or its connection was ended because nothing came.
    throw new Problem('request_timeout')
  }
  whole()
}

interface ByteRange { start: number, end: number, isPart: boolean }

/**
 * Which bytes a request is for (RFC 9110, 14.2): one range, or all. Several ranges, and what is no range, mean all.
 * @throws {Problem} range_not_satisfiable
 */
function rangeOf ({ headers }: FastifyRequest, bytes: number, etag: string): ByteRange {
  const all = { start: 0, end: bytes, isPart: false }
  const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(headers.range ?? '') ?? []
  const condition = headers['if-range']
  if ((from === '' && to === '') || (condition !== undefined && condition !== etag)) return all
  const start = from === '' ? Math.max(0, bytes - Number(to)) : Number(from)
  const end = from === '' || to === '' ? bytes : Math.min(bytes, Number(to) + 1)
  // A range that ends before it begins is none.
  if (from !== '' && to !== '' && Number(to) < Number(from)) return all
  if (start >= bytes || start === end) {
    throw new Problem('range_not_satisfiable', { headers: { 'content-range': `bytes */${bytes}` } })
  }
  return { start, end, isPart: true }
}
