import { connect } from 'node:net'
import type { Socket } from 'node:net'

/**
 * A minimal HTTP/1.1 client with keep-alive connections. The load runs on the same cores as the service, and Node's own client costs
 * several times as much CPU per request.
 */

export interface Reply { status: number, body: string, replayed: boolean }

interface Waiting { settle (reply: Reply | null): void, fail (error: Error): void }

const headEnd = Buffer.from('\r\n\r\n')

class Connection {
  readonly #socket: Socket
  readonly #onIdle: (connection: Connection) => void
  readonly #timer: NodeJS.Timeout
  #heard: Buffer | undefined
  #waiting: Waiting | undefined
  alive = true

  constructor (host: string, port: number, timeout: number, onIdle: (connection: Connection) => void) {
    this.#onIdle = onIdle
    this.#timer = setTimeout(() => { if (this.#waiting !== undefined) this.close() }, timeout)
    this.#socket = connect({ host, port, noDelay: true })
      .on('data', chunk => this.#take(chunk))
      .on('error', () => {}) // 'close' follows
      .on('close', () => this.close())
  }

  /** @returns null if the connection broke or timed out before the answer */
  ask (request: string | Buffer): Promise<Reply | null> {
    return new Promise((resolve, reject) => {
      this.#waiting = { settle: resolve, fail: reject }
      this.#timer.refresh()
      this.#socket.write(request)
    })
  }

  close (): void {
    this.alive = false
    clearTimeout(this.#timer)
    this.#socket.destroy()
    this.#waiting?.settle(null)
    this.#waiting = undefined
  }

  #take (chunk: Buffer): void {
    const heard = this.#heard === undefined ? chunk : Buffer.concat([this.#heard, chunk])
    this.#heard = heard
    const end = heard.indexOf(headEnd)
    if (end === -1) return
    const head = heard.toString('latin1', 0, end).toLowerCase()
    const status = Number(head.slice(9, 12))
    const length = status === 204 ? 0 : lengthOf(head)
    if (length === null) {
      this.#waiting?.fail(new Error(`the load's client can't read an answer without Content-Length: ${head}`))
      this.#waiting = undefined
      return this.close()
    }
    const start = end + headEnd.length
    if (heard.length < start + length) return
    const reply = { status, body: heard.toString('utf8', start, start + length), replayed: head.includes('\nidempotency-replayed: true') }
    const waiting = this.#waiting
    this.#heard = this.#waiting = undefined
    // More bytes than one answer: it is unclear which request the rest would answer.
    if (waiting === undefined || heard.length > start + length || head.includes('\nconnection: close')) this.close()
    else this.#onIdle(this)
    waiting?.settle(reply)
  }
}

function lengthOf (head: string): number | null {
  const at = head.indexOf('\ncontent-length:')
  return at === -1 ? null : parseInt(head.slice(at + 16), 10)
}

/** Any number of requests at once, each on a connection of its own. */
export class HttpClient {
  readonly #idle = new Map<string, Connection[]>()
  readonly #all = new Set<Connection>()
  readonly #timeout: number

  /** @param timeout milliseconds until a request is given up */
  constructor (timeout: number) {
    this.#timeout = timeout
  }

  /** @param base `http://127.0.0.1:8080` @param request head and body */
  ask (base: string, request: string | Buffer): Promise<Reply | null> {
    let idle = this.#idle.get(base)
    if (idle === undefined) this.#idle.set(base, idle = [])
    let connection = idle.pop()
    while (connection !== undefined && !connection.alive) connection = idle.pop()
    return (connection ?? this.#open(base, idle)).ask(request)
  }

  close (): void {
    for (const connection of this.#all) connection.close()
    this.#all.clear()
    this.#idle.clear()
  }

  #open (base: string, idle: Connection[]): Connection {
    const { hostname, port } = new URL(base)
    for (const old of this.#all) if (!old.alive) this.#all.delete(old)
    const connection = new Connection(hostname, Number(port || 80), this.#timeout, itself => idle.push(itself))
    this.#all.add(connection)
    return connection
  }
}
