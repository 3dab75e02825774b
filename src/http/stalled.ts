import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** How long a client may take nothing of its answer, in milliseconds; twice that where the system took some of it at first. */
const stall = 4000
/** How often it is looked for connections with something to send, in milliseconds. */
const look = 250

/**
 * Ends connections whose client doesn't read its answer, within ten seconds. Neither node's request timeout nor its keep-alive
 * timeout does: it would hold the answer's bytes for as long as it likes. The timer is node's own, which knows whether the system
 * takes anything, but armed only where an answer is on its way at a look; `server.timeout` arms it for every request, which costs about 1 % of one.
 */
export function endStalled ({ server }: { server: Server }): void {
  const open = new Set<Socket>()
  server.on('connection', socket => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  const looking = setInterval(() => {
    for (const socket of open) if (socket.writableLength > 0 && socket.timeout !== stall) socket.setTimeout(stall)
  }, look).unref()
  server.once('close', () => clearInterval(looking))
  server.on('timeout', (socket: Socket) => {
    // Its answer went out after all; what comes now (a request with wait=, say) may take its time.
    if (socket.timeout === stall && socket.writableLength === 0) return socket.setTimeout(0)
    // Closed in good order, the system would go on holding megabytes for a client that never takes them.
    if (socket.timeout === stall) return socket.resetAndDestroy()
    // Any other time is the keep-alive timeout's.
    socket.destroy()
  })
}
