import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Problem } from '../errors.ts'
import { cutMembers, cutNested } from '../handoff/json.ts'
import type { Bodies } from './bodies.ts'
import type { Members } from '../handoff/json.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The body's bytes; empty if there was no body. */
    bytes: Buffer
    /** Its members: their outlines, which become `request.body` and are validated, and their raw JSON text, which is kept. */
    members: Members
  }
}

const nothing = Buffer.alloc(0)
const empty = cutMembers(Buffer.from('{}'))

/** A body above so many bytes is refused for its media type before it is read. */
const large = 64 * 1024

/**
 * JSON bodies for all routes of this instance: checked and cut in one pass over the bytes, and never parsed as a whole.
 * @param standard a limit in bytes that no route of this instance is below
 */
export function useJsonBodies (app: FastifyInstance, bodies: Bodies, standard: number): void {
  app.decorateRequest('bytes', null as unknown as Buffer)
  app.decorateRequest('members', null as unknown as Members)
  app.removeAllContentTypeParsers()
  // `*` stands for every other content type, and for none at all: that is fine as long as the body is empty.
  app.addContentTypeParser(['application/json', '*'], (request, payload, done) => {
    if (Number(request.headers['content-length']) > large && !isPlainJson(request)) return done(new Problem('unsupported_media_type'))
    bodies.read(request, standard, done)
  })
  // Not in the parser: an error there closes the client's connection, which isn't needed once the body was read completely.
  app.addHook('preValidation', (request, reply, done) => {
    const { schema, config } = request.routeOptions
    if (schema?.body === undefined) return done()
    try {
      const bytes = (request.body ?? nothing) as Buffer
      if (bytes.length > 0 && !isPlainJson(request)) throw new Problem('unsupported_media_type')
      request.bytes = bytes
      if (config.isBatch !== true) cutBody(request, bytes)
      done()
    } catch (error) {
      done(error as Error)
    }
  })
}

function cutBody (request: FastifyRequest, bytes: Buffer): void {
  request.members = membersOf(bytes, request.routeOptions.config.nested)
  request.body = request.members.values
}

/** A body's members; an empty body counts as `{}`. @param nested members whose own members are to be checked */
export function membersOf (bytes: Buffer, nested: readonly string[] = []): Members {
  const members = bytes.length === 0 ? empty : cutMembers(bytes)
  for (const name of nested) {
    const inside = cutNested(members, name)
    if (inside !== undefined) members.values[name] = inside.values
  }
  return members
}

/** Is it application/json, in UTF-8 if it names a charset, and not encoded? Other parameters have no meaning (RFC 8259, 11). */
export function isPlainJson (request: FastifyRequest): boolean {
  const { 'content-type': type = '', 'content-encoding': encoding } = request.headers
  if (encoding !== undefined) return false
  if (type === 'application/json') return true
  const [media = '', ...parameters] = type.toLowerCase().split(';').map(part => part.trim())
  return media === 'application/json' &&
    parameters.every(parameter => !parameter.startsWith('charset') || /^charset="?utf-8"?$/.test(parameter))
}
