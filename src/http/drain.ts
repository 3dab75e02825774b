import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyInstance {
    draining: Draining
  }
}

export interface Draining {
  /** Is the service about to stop? Then it still serves, and tells clients to close their connections. */
  now: boolean
  start (): void
  /** How many connections had to be cut because they didn't end in time. */
  cut: number
}

/** The time that is kept free before DRAIN_TIMEOUT for closing everything but connections, in milliseconds. */
const closingTime = 1000
/** How often connections are checked while the server closes, in milliseconds; also how long a connection may take to send its first byte. */
const checkInterval = 250

/**
 * Adds `app.draining.start()`: from then on answers carry `Connection: close`. And makes sure that `app.close()` ends. Node leaves that to the
 * clients: it waits forever for one that has sent nothing, or half a request, or doesn't read its answer.
 * @param alsoThen what else begins when draining does
 * @param drainTimeout milliseconds from the start of draining to the end of the process
 */
export function useDraining (app: FastifyInstance, alsoThen: () => void, drainTimeout = 15_000): void {
  const { server } = app
  const sockets = new Set<Socket>()
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
    server.closeAllConnections()
  }
  app.decorate('draining', draining)
  // When the answer is sent, not when the request came: it may have waited since before draining.
  app.addHook('onSend', (request, reply, payload, done) => {
    if (draining.now) reply.header('connection', 'close')
    done()
  })
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  app.addHook('preClose', async () => {
    // Node counts a connection as idle once its answer is written, even if the client hasn't received it yet; closing would cut it off.
    while (performance.now() < lastMoment && some(sockets, isWriting)) await sleep(20)
    cutLate()
    const timer = setInterval(() => {
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
      cutLate()
    }, checkInterval)
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
