import { once } from 'node:events'
import { connect } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Test } from 'tap'

/** A response as it came over the wire, with the same member names as inject's. */
export interface Answer { statusCode: number, headers: Record<string, string>, body: string }

export interface Wire {
  socket: Socket
  /** Sends bytes; text is sent as latin1. */
  send (bytes: string | Buffer): void
  /** The next response. One to HEAD has no body, whatever its Content-Length says. Rejects if the connection ends before it. */
  answer (to?: 'HEAD'): Promise<Answer>
  /** Resolves when the other side has ended the connection. */
  ended: Promise<unknown>
}

/** Makes the app listen if it doesn't yet. @returns its port */
export async function listen (app: FastifyInstance): Promise<number> {
  if (!app.server.listening) await app.listen({ host: '127.0.0.1', port: 0 })
  return (app.server.address() as AddressInfo).port
}

/** How many connections the app has. */
export async function connectionsOf (app: FastifyInstance): Promise<number> {
  return await new Promise(resolve => app.server.getConnections((_, count) => resolve(count)))
}

/** A raw connection, for bytes that no HTTP client sends. Its own side stays open when the other side ends. */
export async function wire (t: Test, port: number): Promise<Wire> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  let heard = Buffer.alloc(0)
  socket.on('data', some => { heard = Buffer.concat([heard, some]) })
  socket.on('error', () => {}) // 'close' follows, which ends what waits
  const ended = new Promise(resolve => socket.once('end', resolve).once('close', resolve))
  let over = false
  ended.then(() => { over = true })
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')

  async function answer (to?: 'HEAD'): Promise<Answer> {
    for (;;) {
      const one = parse(heard, to === 'HEAD')
      if (one !== undefined) {
        heard = heard.subarray(one.length)
        return one.answer
      }
      if (over) throw new Error(`the connection ended after ${JSON.stringify(heard.toString('latin1'))}`)
      await Promise.race([once(socket, 'data'), ended])
    }
  }
  return { socket, send: bytes => socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes), answer, ended }
}

/** One request, one answer, on a connection of its own. */
export async function ask (t: Test, port: number, request: string, to?: 'HEAD'): Promise<Answer> {
  const { send, answer, socket } = await wire(t, port)
  send(request)
  const heard = await answer(to)
  socket.destroy()
  return heard
}

function parse (heard: Buffer, bodiless: boolean): { answer: Answer, length: number } | undefined {
  const headEnd = heard.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const [statusLine = '', ...lines] = heard.toString('latin1', 0, headEnd).split('\r\n')
  const headers = Object.fromEntries(lines.map(line => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]))
  const length = headEnd + 4 + (bodiless ? 0 : Number(headers['content-length'] ?? 0))
  if (heard.length < length) return undefined
  return { answer: { statusCode: Number(statusLine.split(' ')[1]), headers, body: heard.toString('utf8', headEnd + 4, length) }, length }
}

/** A client that doesn't read: only what the system buffers gets through. */
export async function deaf (t: Test, port: number, bytes: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  socket.write(bytes)
  return socket
}
