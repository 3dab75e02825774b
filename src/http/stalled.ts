import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** How long a client may read nothing of its answer, in milliseconds; twice as long if the system took some of it at first. */
const stall = 4000
/** How often connections with unsent bytes are looked for, in milliseconds. */
const checkInterval = 250

/**
 * Ends connections whose client doesn't read its answer, within ten seconds. Neither node's request timeout nor its keep-alive timeout does that,
 * so such a client would make the service hold the answer's bytes for as long as it likes. The timer is node's own, which knows whether the system
 * takes any bytes. It is set only if an answer is under way at a check; `server.timeout` would set it for every request, which costs about 1 % of
 * one.
 */
export function endStalled ({ server }: { server: Server }): void {
  const open = new Set<Socket>()
  server.on('connection', socket => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  const looking = setInterval(() => {
    for (const socket of open) if (socket.writableLength > 0 && socket.timeout !== stall) socket.setTimeout(stall)
  }, checkInterval).unref()
  server.once('close', () => clearInterval(looking))
  server.on('timeout', (socket: Socket) => {
    // The answer went out after all. What comes now, such as a request with wait=, may take its time.
    if (socket.timeout === stall && socket.writableLength === 0) return socket.setTimeout(0)
    // After an orderly close the system would go on holding megabytes for a client that never reads them.
    if (socket.timeout === stall) return socket.resetAndDestroy()
    // Any other value is the keep-alive timeout.
    socket.destroy()
  })
}
