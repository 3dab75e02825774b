import { STATUS_CODES } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem, errorTable } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import { problemType } from '../core/schemas/problem.ts'
import { newRequestId } from './observe.ts'
import { problemText } from './problems.ts'

/** The errors of node's HTTP parser and its timers, before there is a request to answer. Any other error is a 400. */
const parserCodes: Record<string, ErrorCode> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'payload_too_large',
}

/**
 * How long the client has to read the answer, in milliseconds. If a socket is closed with unread input, the answer may
 * be lost (RFC 9112, 9.6).
 */
const linger = 1000

/** Answers on the socket itself and closes it: after the error, it is unknown where the next request would begin. */
export function answerSocketErrors (base: string) {
  return (error: NodeJS.ErrnoException, socket: Socket): void => answer(base, error, socket)
}

function answer (base: string, error: NodeJS.ErrnoException, socket: Socket): void {
  // Each further piece of a request that was already answered comes here again.
  if (socket.writableEnded) return
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const known = parserCodes[error.code ?? '']
  const problem = new Problem(known ?? 'invalid_request', known === undefined
    ? { detail: 'The request is not valid HTTP/1.1 (RFC 9112).' }
    : {})
  const { status } = errorTable[problem.code]
  const requestId = newRequestId()
  const body = problemText(problem, requestId, base)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n` +
    `Content-Type: ${problemType}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
    `X-Request-Id: ${requestId}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n${body}`)
  // Node leaves closing the other half to the client, which may never do it.
  setTimeout(() => socket.destroy(), linger).unref()
}

/** How many requests of a connection may wait for the answer to one before them. */
const maxPipelined = 20

/**
 * Replaces node's own error answers, which aren't problem documents, and refuses what node should refuse but doesn't.
 * `requireHostHeader` in server.ts belongs to it.
 */
export function useNodeAnswers (app: FastifyInstance): void {
  boundPipelining(app.server)
  // By default node answers 417. A server may ignore an expectation that it doesn't know (RFC 9110, 10.1.1).
  // 100-continue never gets here.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  app.addHook('onRequest', (request, reply, done) => {
    request.response = reply.raw
    const fault = faultOf(request.raw)
    done(fault === undefined ? undefined : new Problem('invalid_request', { detail: fault }))
  })
}

/**
 * Ends a connection on which more than `maxPipelined` requests wait for the answer to one before them. Node takes 64
 * KB from a connection at once and begins all requests in them, 1,500 short ones; it doesn't look whether the client
 * reads any answer. 600 such connections without a key took 2.4 GB. Acknowledged requests stay done; others may be sent
 * again (RFC 9112, 9.3.2). No proxy that we know pipelines.
 */
function boundPipelining (server: Server): void {
  const waiting = new WeakMap<Socket, number>()
  const handlers = server.listeners('request') as ((request: IncomingMessage, response: ServerResponse) => void)[]
  server.removeAllListeners('request')
  server.on('request', (request, response) => {
    // A response has its connection once it is its turn: only those after another one are counted.
    if (response.socket === null) {
      const { socket } = request
      // Further requests that node has read already.
      if (socket.destroyed) return
      const count = (waiting.get(socket) ?? 0) + 1
      if (count > maxPipelined) {
        stopReading(socket)
        return
      }
      waiting.set(socket, count)
      response.once('close', () => waiting.set(socket, waiting.get(socket)! - 1))
    }
    for (const handle of handlers) handle.call(server, request, response)
  })
}

/**
 * Ends a connection and drops its requests that aren't begun yet. Without the second step node would make a request and
 * a response of each, and keep them until it has read from all connections that are ready: 300 of them took 600 MB.
 * `socket.parser` isn't documented; where it is missing, the connection ends all the same.
 */
function stopReading (socket: Socket): void {
  socket.destroy()
  const { parser } = socket as Socket & { parser?: { onIncoming?: () => number } | null }
  // 2: what follows is no HTTP (an upgrade), so the parser stops here.
  if (parser?.onIncoming !== undefined) parser.onIncoming = () => 2
}

/**
 * Requests that RFC 9112 wants answered with 400. The connection can stay open: the end of these requests is clear.
 */
function faultOf ({ headers, rawHeaders, httpVersion }: IncomingMessage): string | undefined {
  if (headers.host === undefined && httpVersion === '1.1') {
    return 'An HTTP/1.1 request must have a Host field (RFC 9112, 3.2).'
  }
  // Of several Host fields node keeps the first, but a proxy in front may have used another.
  if (headers.host !== undefined && hasTwoHosts(rawHeaders)) {
    return 'A request must have one Host field, not several (RFC 9112, 3.2).'
  }
  const coding = headers['transfer-encoding']
  // Node decodes only chunked, and refuses codings that don't end with it. Any other coding beneath would leave the
  // body encoded.
  if (coding !== undefined && /,\s*chunked\s*$/i.test(coding)) {
    return 'The only supported transfer coding is chunked (RFC 9112, 6.1).'
  }
  return undefined
}

/** @param fields names and values, alternating, as they came */
function hasTwoHosts (fields: readonly string[]): boolean {
  let count = 0
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string
    if (name.length === 4 && name.toLowerCase() === 'host') count++
  }
  return count > 1
}

const connections = new WeakMap<Server, ReadonlySet<Socket>>()

/**
 * The open connections of a server, from the first call on. One list and one listener for all, since ten thousand may
 * wait.
 */
function connectionsOf (server: Server): ReadonlySet<Socket> {
  const known = connections.get(server)
  if (known !== undefined) return known
  const open = new Set<Socket>()
  const forget = function (this: Socket): void { open.delete(this) }
  server.on('connection', socket => open.add(socket.on('close', forget)))
  connections.set(server, open)
  return open
}

/**
 * How long a client may read nothing of its answer, in milliseconds; twice as long if the system took some of it at
 * first.
 */
const stall = 4000
/** How often connections with unsent bytes are looked for, in milliseconds. */
const checkInterval = 250

/** Connections that have a limit of their own to the time without a byte. */
const patient = new WeakSet<Socket>()

/**
 * Lets a request and its answer take as long as they need: for files, which may be large. Only while nothing moves for
 * so many milliseconds the connection ends. `remove` isn't documented: it takes the connection from node's list, by
 * which it counts a request's time, until the request is complete; where it is missing, that has its usual time.
 * @returns to be called when nothing is to move any more, before the answer
 */
export function takeTime ({ raw: { socket, complete }, response }: FastifyRequest, idle: number): () => void {
  const { parser } = socket as Socket & { parser?: { remove?: () => void } | null }
  // One that is complete has no such time, and node would not put it back: it would not close it as idle.
  if (!complete) parser?.remove?.()
  patient.add(socket)
  socket.setTimeout(idle)
  response.once('close', () => patient.delete(socket))
  return () => { socket.setTimeout(0) }
}

/**
 * Ends connections whose client doesn't read its answer, within ten seconds. Neither node's request timeout nor its
 * keep-alive timeout does that, so such a client would make the service hold the answer's bytes for as long as it
 * likes. The timer is node's own, which knows whether the system takes any bytes. It is set only if an answer is under
 * way at a check; `server.timeout` would set it for every request, which costs about 1 % of one.
 */
export function endStalled ({ server }: { server: Server }): void {
  const open = connectionsOf(server)
  const looking = setInterval(() => {
    for (const socket of open) {
      if (socket.writableLength > 0 && socket.timeout !== stall && !patient.has(socket)) socket.setTimeout(stall)
    }
  }, checkInterval).unref()
  server.once('close', () => clearInterval(looking))
  server.on('timeout', (socket: Socket) => {
    // The answer went out after all. A later request, such as one with wait=, may take its time.
    if (socket.timeout === stall && socket.writableLength === 0) return socket.setTimeout(0)
    // After an orderly close the system would go on holding megabytes for a client that never reads them.
    if (socket.timeout === stall) return socket.resetAndDestroy()
    // Any other value is the keep-alive timeout.
    socket.destroy()
  })
}

/**
 * How long after its arrival a request relies on the first check of its key, in milliseconds. Together with the longest
 * time that a replica believes a key without asking (auth/key-ring.ts) this is below two seconds, the time within
 * which an ended key stops everywhere.
 */
const quick = 400

declare module 'fastify' {
  interface FastifyRequest {
    /** Has its client gone? */
    isGone (): boolean
    /** Calls the listener when its client goes, perhaps at once. @returns the function that removes it */
    onGone (listener: () => void): () => void
    /** Calls the listener once when its answer is sent, or its client has gone, perhaps at once. */
    onOver (listener: () => void): void
    response: ServerResponse
  }
}

/**
 * Is the request's connection closed? The response doesn't say: a pipelined response has no connection until its turn,
 * and never learns that the connection closed.
 */
export function isGone (this: FastifyRequest): boolean {
  return this.raw.socket.destroyed
}

export function onGone (this: FastifyRequest, listener: () => void): () => void {
  const { socket } = this.raw
  // It may have closed already, and then the event doesn't come again.
  if (socket.destroyed) listener()
  else socket.on('close', listener)
  return () => socket.off('close', listener)
}

/** A response that waits for another one's end doesn't learn that the connection closed. */
export function onOver (this: FastifyRequest, listener: () => void): void {
  if (this.isGone()) return listener()
  const end = () => {
    leave()
    this.response.off('close', end)
    listener()
  }
  const leave = this.onGone(end)
  this.response.once('close', end)
}

/**
 * A hook for when the body has arrived, which may take long. The key may have ended or changed meanwhile, so it is
 * checked again.
 */
export function authoriseAgain (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
  if (performance.now() - request.startedAt < quick) return done()
  authorise(request).then(() => done(), done)
}

async function authorise (request: FastifyRequest): Promise<void> {
  // What needs no key has no grant.
  if (request.granted !== null) request.caller = await request.grant().authorise()
}

declare module 'fastify' {
  interface FastifyInstance {
    draining: Draining
  }
}

interface Draining {
  /** Is the service about to stop? Then it still serves, and asks clients to close their connections. */
  now: boolean
  start (): void
  /** How many connections had to be cut because they didn't end in time. */
  cut: number
}

/** The time that is kept free before DRAIN_TIMEOUT for closing everything but connections, in milliseconds. */
const closingTime = 1000
/**
 * How long a connection may take to send its first byte while the server closes, in milliseconds; it is also checked so
 * often.
 */
const firstByteTime = 250

/**
 * Adds `app.draining.start()`: from then on answers carry `Connection: close`. And makes sure that `app.close()` ends.
 * Node leaves that to the clients: it waits forever for one that has sent nothing, or half a request, or doesn't read
 * its answer.
 * @param alsoThen called when draining begins
 * @param drainTimeout milliseconds from the start of draining to the end of the process
 */
export function useDraining (app: FastifyInstance, alsoThen: () => void, drainTimeout = 15_000): void {
  const { server } = app
  const sockets = connectionsOf(server)
  let lastMoment = Infinity
  const draining: Draining = {
    now: false,
    cut: 0,
    start () {
      draining.now = true
      lastMoment = performance.now() + Math.max(0, drainTimeout - closingTime)
      alsoThen()
    },
  }
  const cutLate = () => {
    if (performance.now() < lastMoment) return
    draining.cut += sockets.size
    // Node's own list lacks those that may take their time.
    for (const socket of sockets) socket.destroy()
  }
  app.decorate('draining', draining)
  // When the answer is sent, not when the request came: it may have waited since before draining.
  app.addHook('onSend', (request, reply, payload, done) => {
    if (draining.now) reply.header('connection', 'close')
    done()
  })
  app.addHook('preClose', async () => {
    // Node counts a connection as idle once its answer is written, even if the client hasn't received it yet; closing
    // would cut it off.
    while (performance.now() < lastMoment && some(sockets, isWriting)) await sleep(20)
    cutLate()
    const timer = setInterval(() => {
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
      // Fastify does this once: a connection whose answer was under way would stay until its client’s next request.
      if (!some(sockets, isWriting)) server.closeIdleConnections()
      cutLate()
    }, firstByteTime)
    server.once('close', () => clearInterval(timer))
  })
}

function isWriting (socket: Socket): boolean {
  return socket.writableLength > 0
}

function some<T> (all: Iterable<T>, is: (one: T) => boolean): boolean {
  for (const one of all) if (is(one)) return true
  return false
}
