import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyInstance {
    draining: Draining
  }
}

export interface Draining {
  /** Is the service about to stop? Then it still serves, and says so to whoever would keep the connection. */
  now: boolean
  start (): void
  /** How many connections had to be cut, since they would not end. */
  cut: number
}

/** What stays between the last connection's end and DRAIN_TIMEOUT for whatever else is to be closed, in milliseconds. */
const closingTime = 1000
/** How often connections are looked at while the server closes, and how long one may take to send its first byte. */
const look = 250

/**
 * Lets `app.draining.start()` be called: answers carry `Connection: close` from then on. And sees to it that `app.close()` comes
 * to an end, which node leaves to the clients: it waits for ever for who has sent nothing yet, or half a request, or doesn't read.
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
  // When it is sent, not when it was asked: a request may have waited since before.
  app.addHook('onSend', (request, reply, payload, done) => {
    if (draining.now) reply.header('connection', 'close')
    done()
  })
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  app.addHook('preClose', async () => {
    // Node takes a connection whose answer is written, but not yet taken by the client, for an idle one, and closing would cut it.
    while (performance.now() < lastMoment && some(sockets, isWriting)) await sleep(20)
    cutLate()
    const timer = setInterval(() => {
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
      cutLate()
    }, look)
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
