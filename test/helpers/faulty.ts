import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

/** What becomes of one request, on the way between a client and the service. */
export type Fault =
  /** The connection ends as soon as it is there; one that was kept, when a request comes. */
  | { kind: 'close', reset: boolean }
  /** The service gets so many bytes of the request, and then both connections end. */
  | { kind: 'cut request', after: number }
  /** The client gets so many bytes of the answer. */
  | { kind: 'cut answer', after: number, reset: boolean }
  /** Nothing comes any more. */
  | { kind: 'swallow', what: 'request' | 'answer' }
  /** Something on the way answers by itself, and the service never hears of it. */
  | { kind: 'answer', status: number, headers: Record<string, string>, body: string }
  /** The service gets the request twice; the client gets the first answer, after the second. */
  | { kind: 'replay' }

export interface Faulty {
  url: string
  /** The next request has this fault, those after it none. What came before isn't in `said` any more. */
  arm (fault: Fault | undefined): void
  /** Whether the fault has happened. */
  hasHappened (): boolean
  /** What the client said since `arm`: the text of each connection that it said something on. */
  said (): string[]
  /** The bytes of the answers since `arm`, as the service sent them. */
  answered (): number
  /** How many connections the client has open. */
  open (): number
  close (): void
}

/** A TCP proxy in front of a port of this machine, which breaks what it is told to. */
export async function faulty (port: number): Promise<Faulty> {
  const sockets = new Set<Socket>()
  let fault: Fault | undefined
  let said = new Map<Socket, string>()
  let answered = 0
  let open = 0
  const server = createServer(near => {
    open++
    near.on('close', () => open--)
    if (fault?.kind === 'close') {
      keep(near)
      return take(near)
    }
    const far = connect(port, '127.0.0.1')
    for (const [one, other] of [[near, far], [far, near]] as const) {
      keep(one)
      one.on('close', () => other.destroy())
    }
    carry(near, far)
  })

  function keep (socket: Socket): void {
    sockets.add(socket.setNoDelay().on('error', () => {}).on('close', () => sockets.delete(socket)))
  }

  /** The fault happens here. */
  function take (near: Socket): Fault | undefined {
    const taken = fault
    fault = undefined
    if (taken?.kind === 'close') end(near, taken.reset)
    return taken
  }

  function carry (near: Socket, far: Socket): void {
    let own: Fault | undefined
    let left = 0
    const heard: Buffer[] = []
    near.on('data', chunk => {
      said.set(near, (said.get(near) ?? '') + chunk.toString('latin1'))
      if (fault !== undefined) {
        own = take(near)
        heard.length = 0
        left = own?.kind === 'cut request' || own?.kind === 'cut answer' ? own.after : 0
        if (own?.kind === 'answer') near.end(textOf(own))
      }
      heard.push(chunk)
      if (own?.kind === 'cut request') {
        const some = chunk.subarray(0, left)
        left -= some.length
        // The end comes after what was sent.
        far.write(some, () => { if (left === 0) near.destroy() })
      } else if (own === undefined || own.kind === 'cut answer' || own.kind === 'replay' || (own.kind === 'swallow' && own.what === 'answer')) {
        far.write(chunk)
      }
    })
    const held: Buffer[] = []
    far.on('data', chunk => {
      answered += chunk.length
      if (own === undefined) {
        near.write(chunk)
      } else if (own.kind === 'cut answer') {
        const { reset } = own
        const some = chunk.subarray(0, left)
        left -= some.length
        near.write(some, () => { if (left === 0) end(near, reset) })
      } else if (own.kind === 'replay') {
        held.push(chunk)
        if (held.length > 1) return
        const again = connect(port, '127.0.0.1', () => again.write(Buffer.concat(heard)))
        keep(again)
        again.once('data', () => {
          own = undefined
          near.write(Buffer.concat(held))
          again.destroy()
        })
      }
    })
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arm (next) {
      fault = next
      said = new Map()
      answered = 0
    },
    hasHappened: () => fault === undefined,
    said: () => [...said.values()],
    answered: () => answered,
    open: () => open,
    close () {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

function end (socket: Socket, reset: boolean): void {
  if (reset) socket.resetAndDestroy()
  else socket.end(() => socket.destroy())
}

function textOf ({ status, headers, body }: { status: number, headers: Record<string, string>, body: string }): string {
  const lines = Object.entries({ ...headers, 'content-length': Buffer.byteLength(body), connection: 'close' })
  return `HTTP/1.1 ${status} Whatever\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`
}
