import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Problem } from '../core/errors.ts'
import type { Members } from '../core/json.ts'
import { membersOf } from '../core/nested.ts'
import type { RefusedCounts } from './overload.ts'
import { continueBody } from './unread-bodies.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its body may be of other types than JSON's: the route looks at it itself. */
    takesAnyType?: true
  }
  interface FastifyRequest {
    /** The body's bytes; empty if there was no body. */
    bytes: Buffer
    /**
     * Its members: their outlines, which become `request.body` and are validated, and their raw JSON text, which is
     * kept.
     */
    members: Members
  }
}

const nothing = Buffer.alloc(0)

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
    if (Number(request.headers['content-length']) > large && !isPlainJson(request) && !takesAnyType(request)) {
      return done(new Problem('unsupported_media_type'))
    }
    bodies.read(request, standard, done)
  })
  // Not in the parser: an error there closes the client's connection, which isn't needed once the body was read
  // completely.
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

function takesAnyType ({ routeOptions: { config } }: FastifyRequest): boolean {
  return config.takesAnyType === true
}

function cutBody (request: FastifyRequest, bytes: Buffer): void {
  request.members = membersOf(bytes, request.routeOptions.config.nested)
  request.body = request.members.values
}

/**
 * Is it application/json, in UTF-8 if it names a charset, and not encoded? Other parameters have no meaning (RFC 8259,
 * 11).
 */
export function isPlainJson (request: FastifyRequest): boolean {
  const { 'content-type': type = '', 'content-encoding': encoding } = request.headers
  if (encoding !== undefined) return false
  if (type === 'application/json') return true
  const [media = '', ...parameters] = type.toLowerCase().split(';').map(part => part.trim())
  return media === 'application/json' &&
    parameters.every(parameter => !parameter.startsWith('charset') || /^charset="?utf-8"?$/.test(parameter))
}

declare module 'fastify' {
  interface FastifyRequest {
    /** How many bytes of its body count as held. */
    heldBytes: number
    /** Whose they are; null before the body is read. */
    heldBy: Share | null
  }
}

type Done = (error: Error | null, bytes?: Buffer) => void

/** The first buffer for a body of unknown length, in bytes. */
const firstPiece = 4096
/** After how many shares the unused ones are removed. */
const manyShares = 10_000

/**
 * A share may hold at most so many times the bytes that are left of the limit, so a later request always finds some
 * free. Strangers send nothing but small bodies.
 */
const shareOf = { tenant: 2, agent: 1, strangers: 1 / 64, address: 1 / 128 } as const
/**
 * A body of at most so many bytes is small: for it a share may be larger, so that an agent's heartbeats don't fail for
 * its large bodies.
 */
const maxSmallBody = 16 * 1024
const moreForSmall = 8

/** The answer to a request whose body exceeds the free bytes. */
const noBytesLeft = {
  detail: 'The service holds as many request bodies as it can and did not process the request; send ' +
  'it again after Retry-After.'
}

/** The bytes that a tenant, an agent of it, all strangers or one address hold. */
class Share {
  held = 0
  readonly factor: number
  readonly whole: Share | null
  readonly parts = new Map<string, Share>()

  constructor (factor: number, whole: Share | null) {
    this.factor = factor
    this.whole = whole
  }
}

/**
 * Reads request bodies, and bounds the bytes of all bodies that this process holds at once: from before a body is read
 * until its request is answered. A request beyond the bound is refused with 503 before its body is read.
 *
 * No client can use up the bound alone. An agent may hold as much as it leaves free, so half at most, a tenant twice as
 * much, so two thirds; with small bodies eight times these multiples. All clients that aren't known yet may hold a
 * ninth together, and an address half of a ninth. The more clients hold bodies, the less each may hold.
 */
export class Bodies {
  /** The bytes held now. */
  held = 0
  readonly #limit: number
  readonly #refused: RefusedCounts
  readonly #tenants = new Map<string, Share>()
  readonly #strangers = new Share(shareOf.strangers, null)

  /** @param limit bytes */
  constructor (limit: number, refused: RefusedCounts) {
    this.#limit = limit
    this.#refused = refused
  }

  /** Gives back a request's bytes when it is answered. Call it before the routes are registered. */
  watch (app: FastifyInstance): void {
    app.decorateRequest('heldBytes', 0)
    app.decorateRequest('heldBy', null)
    app.addHook('onSend', (request, reply, payload, done) => {
      if (request.heldBy !== null) {
        // A stream's answer goes on for long, and what makes it may still need the body.
        if (isStream(payload)) reply.raw.once('close', () => this.#release(request))
        else this.#release(request)
      }
      done()
    })
  }

  /**
   * Reads a request's body into one buffer of its size. It keeps no pieces: a client decides how small they are, and
   * each costs more than a hundred bytes.
   * @param standard the limit in bytes, up to which the route needn't be asked for its own
   */
  read (request: FastifyRequest, standard: number, done: Done): void {
    const { raw } = request
    const declared = raw.headers['content-length']
    const length = declared === undefined ? undefined : Number(declared)
    const limit = length !== undefined && length <= standard ? standard : request.routeOptions.bodyLimit
    if (length !== undefined && length > limit) return done(new Problem('payload_too_large'))
    const size = length ?? Math.min(firstPiece, limit)
    if (!this.#hold(request, size)) return done(this.#refusal())
    if (raw.headers.expect !== undefined) continueBody(raw)
    receive(raw, size, {
      done,
      grow: from => {
        if (length !== undefined) return new Problem('invalid_request')
        if (from === limit) return new Problem('payload_too_large')
        const to = Math.min(2 * from, limit)
        return this.#hold(request, to - from) ? to : this.#refusal()
      },
    })
  }

  #hold (request: FastifyRequest, bytes: number): boolean {
    const share = request.heldBy ??= this.#shareOf(request)
    const free = (this.#limit - this.held - bytes) * (request.heldBytes + bytes <= maxSmallBody ? moreForSmall : 1)
    for (let one: Share | null = share; one !== null; one = one.whole) {
      if (one.held + bytes > one.factor * free) {
        return false
      }
    }
    for (let one: Share | null = share; one !== null; one = one.whole) one.held += bytes
    this.held += bytes
    request.heldBytes += bytes
    return true
  }

  #release (request: FastifyRequest): void {
    const { heldBytes, heldBy } = request
    for (let one = heldBy; one !== null; one = one.whole) one.held -= heldBytes
    this.held -= heldBytes
    request.heldBytes = 0
    request.heldBy = null
  }

  #refusal (): Problem {
    this.#refused.bodies++
    return new Problem('unavailable', noBytesLeft)
  }

  /** The agent's share, or the address's while the request's agent is unknown. */
  #shareOf (request: FastifyRequest): Share {
    const { caller } = request
    if (caller == null) return partOf(this.#strangers.parts, networkOf(request.ip), shareOf.address, this.#strangers)
    const tenant = partOf(this.#tenants, caller.tenant, shareOf.tenant, null)
    return partOf(tenant.parts, caller.agent, shareOf.agent, tenant)
  }
}

function partOf (parts: Map<string, Share>, name: string, factor: number, whole: Share | null): Share {
  const known = parts.get(name)
  if (known !== undefined) return known
  if (parts.size >= manyShares) for (const [other, { held }] of parts) if (held === 0) parts.delete(other)
  const opened = new Share(factor, whole)
  parts.set(name, opened)
  return opened
}

/** An address; of IPv6 its network of 64 bits, which one client may have to itself. */
export function networkOf (ip: string): string {
  if (!ip.includes(':') || ip.includes('.')) return ip
  const [head = '', tail] = ip.split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    const after = tail === '' ? 0 : tail.split(':').length
    while (groups.length + after < 8) groups.push('0')
  }
  return groups.slice(0, 4).join(':')
}

function isStream (payload: unknown): boolean {
  return typeof payload === 'object' && payload !== null && !Buffer.isBuffer(payload)
}

/**
 * @param size of the first buffer
 * @param grow returns the size of the next buffer when the body exceeds this one, or why there is none
 */
function receive (
  raw: IncomingMessage, size: number, { done, grow }: { done: Done, grow: (from: number) => number | Problem }
): void {
  let bytes = Buffer.allocUnsafe(size)
  let at = 0
  const stop = (error: Error | null, body?: Buffer) => {
    raw.removeListener('data', onData)
    raw.removeListener('end', onEnd)
    raw.removeListener('error', onError)
    done(error, body)
  }
  const onData = (some: Buffer) => {
    while (at + some.length > bytes.length) {
      const next = grow(bytes.length)
      if (typeof next !== 'number') {
        // The rest of the body isn't read.
        raw.pause()
        return stop(next)
      }
      const larger = Buffer.allocUnsafe(next)
      bytes.copy(larger, 0, 0, at)
      bytes = larger
    }
    some.copy(bytes, at)
    at += some.length
  }
  const onEnd = () => stop(null, at === bytes.length ? bytes : bytes.subarray(0, at))
  // The upload broke off: no client gets the answer.
  const onError = () => stop(new Problem('invalid_request'))
  raw.on('data', onData)
  raw.on('end', onEnd)
  raw.on('error', onError)
}

/** The content type of an answer whose JSON is spliced together, so that the framework can't know its type. */
export const jsonType = 'application/json; charset=utf-8'
