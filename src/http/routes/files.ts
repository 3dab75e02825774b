import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Problem, invalid } from '../../core/errors.ts'
import type { DirectoryStore } from '../../files/directory.ts'
import { anyType, attachment, placeOf } from '../../files/objects.ts'
import type { FileService } from '../../files/service.ts'
import type { TransferCounts } from '../../files/counts.ts'
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

  /** The object, if this replica has the directory that its tenant's files are in. @throws {Unavailable} */
  const objectIn = async (request: FastifyRequest): Promise<string> => {
    const { mark, tenant, object } = request.params as { mark: string, tenant: string, object: string }
    const name = `${mark}/${tenant}/${object}`
    const place = placeOf(name)
    if (place === undefined) throw new Problem('signature_invalid')
    await files.markOf(place.tenant)
    return name
  }

  app.put('/:mark/:tenant/:object', { schema: { hide: true } as object }, async (request, reply) => {
    const object = await objectIn(request)
    const { bytes: declared, sha256 } = store.verify('PUT', object, request.query as object as Record<string, unknown>)
    const bytes = Number(declared)
    const { 'content-length': length } = request.headers
    if (length === undefined) throw new Problem('length_required')
    if (Number(length) !== bytes) {
      throw invalid({ pointer: '/content-length', message: `headers: must be ${declared}` })
    }
    const stop = takeTime(request, patience)
    await counts.during('put', async () => {
      await store.admit(bytes)
      continueBody(request.raw)
      const place = placeOf(object)!
      await store.receive(object, { bytes, sha256: sha256! }, countedBody(request.raw, counts, stop))
      // Its record may have gone meanwhile: then nothing will ever name what came.
      if (!await files.noteWhole(place)) {
        await store.remove(object)
        throw new Problem('signature_invalid')
      }
    })
    reply.code(204)
  })

  app.get('/:mark/:tenant/:object', { schema: { hide: true } as object }, async (request, reply) => {
    const object = await objectIn(request)
    const { name, type } = store.verify('GET', object, request.query as object as Record<string, unknown>)
    const found = await store.read(object)
    if (found === undefined) throw new Problem('not_found')
    const { file, bytes } = found
    try {
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
      takeTime(request, patience)
      if (part.end === part.start) {
        await file.close()
        return await reply.send('')
      }
      const stream = file.createReadStream({ start: part.start, end: part.end - 1, highWaterMark: chunk })
      stream.on('data', some => { counts.bytes.got += some.length })
      counts.during('got', () => new Promise<void>((resolve, reject) => {
        stream.once('end', resolve).once('close', () => reject(new Error('cut')))
      })).catch(() => {})
      return await reply.send(stream)
    } catch (error) {
      await file.close()
      throw error
    }
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
  const [, from = '', to = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(headers.range ?? '') ?? []
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
