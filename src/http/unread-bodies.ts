import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply } from 'fastify'

/** A body of at most so many announced bytes is read and dropped at once, and its connection stays open. */
const maxUnread = 64 * 1024
/**
 * How long the rest of a request may go on after its answer, in milliseconds, and how many bytes of it are read at
 * most.
 */
const maxLinger = 5000
const maxReadBytes = 16 * 1024 * 1024
/** At most so many connections are read from after their answer. A further one ends the longest read one. */
const maxConnections = 100
/**
 * Every so many milliseconds a few of these connections are read from, at most 64 KB or so each: together they cost as
 * little as a few small requests.
 */
const interval = 25
const readsAtOnce = 4

/** The requests that wait for `100 Continue`, with their responses. */
const expecting = new WeakMap<IncomingMessage, ServerResponse>()

/**
 * Asks a client that waits for this to send its body. Call it right before a body is read: a body that is refused
 * needn't be sent.
 */
export function continueBody (request: IncomingMessage): void {
  expecting.get(request)?.writeContinue()
  expecting.delete(request)
}

/**
 * Makes answers arrive that are given before the request's body was read. If a connection is closed with unread input,
 * the system resets it, and the client or the proxy in front loses the answer (RFC 9112, 9.6): nginx and HAProxy turn
 * it into a 502 or 503, and nginx counts the replica as failed. So after such an answer only our half is closed, and
 * what still comes is read and dropped: slowly, and not for long. Call it after whatever else sets `Connection`.
 */
export function letAnswersArrive (app: FastifyInstance): void {
  const lingering = new Lingering()
  app.server.on('checkContinue', (request, response) => {
    expecting.set(request, response)
    app.server.emit('request', request, response)
  })
  app.addHook('onSend', ({ raw }, reply, payload, done) => {
    if (raw.complete) return done()
    if (raw.headers['transfer-encoding'] === undefined) {
      answerUnread(raw, reply, lingering)
      return done()
    }
    // The end of a short chunked body often came with its head, but node hasn't got to it yet. Then the connection can
    // stay open.
    setImmediate(() => {
      if (!raw.complete) answerUnread(raw, reply, lingering)
      done()
    })
  })
}

function answerUnread (request: IncomingMessage, reply: FastifyReply, lingering: Lingering): void {
  const { 'content-length': length, 'transfer-encoding': coding, expect } = request.headers
  if (coding === undefined && !(Number(length) > 0)) return
  if (coding !== undefined || expect !== undefined || Number(length) > maxUnread) reply.header('connection', 'close')
  if (reply.getHeader('connection') === 'close') lingering.prepare(request)
}

interface Unread { request: IncomingMessage, socket: Socket, until: number, bytes: number }

/** The connections that are read from after their answer. */
class Lingering {
  readonly #open = new Set<Unread>()
  #reading: NodeJS.Timeout | undefined

  /** Takes over the end of the request's connection from node, which destroys it as soon as the answer is sent. */
  prepare (request: IncomingMessage): void {
    const { socket } = request
    if (socket?.destroySoon === undefined) return
    // A handler that has begun to read counts as a reader. Without a reader, node drops the rest as fast as it comes.
    request.pause()
    request.read()
    socket.destroySoon = () => {
      if (request.complete) return end(socket)
      socket.end()
      this.#begin({ request, socket, until: performance.now() + maxLinger, bytes: 0 })
    }
  }

  #begin (one: Unread): void {
    if (this.#open.size >= maxConnections) {
      [...this.#open].reduce((first, other) => other.until < first.until ? other : first).socket.destroy()
    }
    this.#open.add(one)
    one.socket.once('close', () => {
      this.#open.delete(one)
      if (this.#open.size > 0) return
      clearInterval(this.#reading)
      this.#reading = undefined
    })
    this.#reading ??= setInterval(() => this.#read(), interval).unref()
  }

  #read (): void {
    const now = performance.now()
    const all = [...this.#open]
    for (const { until, socket } of all) if (until < now) socket.destroy()
    for (const one of all.slice(0, readsAtOnce)) {
      // Connections that were read from go to the end of the line.
      if (!this.#open.delete(one)) continue
      if (one.socket.destroyed) continue
      this.#open.add(one)
      const some: Buffer | null = one.request.read()
      one.bytes += some === null ? 0 : some.length
      if (one.request.complete) end(one.socket)
      else if (one.bytes > maxReadBytes) one.socket.destroy()
    }
  }
}

/** Ends a connection of which everything was read: after the answer was sent. */
function end (socket: Socket): void {
  socket.end()
  if (socket.writableFinished) socket.destroy()
  else socket.once('finish', () => socket.destroy())
}
