/**
 * The clients of the waiting benchmark. They run in a process of their own, so that no other process's memory includes theirs. Commands come over
 * IPC: first to open requests that wait, then to report their handoffs done. Plain sockets without a client library, so that 10,000 are cheap.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { catcherKey, passerKey } from './server-process.ts'
import type { Order, Woken } from './wake-ups.ts'

/** How many connections are opened at once. More than a listen backlog holds would be retried a second later. */
const opening = 100
/** Connections for done requests, one at a time on each. */
const doers = 64

const waiters = new Map<string, Promise<number>>()

process.on('message', async (order: Order) => {
  const port = Number(new URL(order.url).port)
  process.send?.(order.do === 'open' ? await open(port, order.ids) : await wake(port, order.ids, order.perSecond))
})

/** Opens a waiting request for each handoff. @returns how many */
async function open (port: number, ids: readonly string[]): Promise<number> {
  for (let at = 0; at < ids.length; at += opening) {
    await Promise.all(ids.slice(at, at + opening).map(async id => {
      const socket = await connected(port)
      waiters.set(id, answerTo(socket, `GET /api/status/${id}?wait=60&until=done`, passerKey).then(at => {
        socket.destroy()
        return at
      }))
    }))
  }
  return ids.length
}

/** Reports each handoff done, at a fixed rate, however long the answers take. One whose connection is busy waits, and that time counts. */
async function wake (port: number, ids: readonly string[], perSecond: number): Promise<Woken[]> {
  const sockets = await Promise.all(Array.from({ length: doers }, () => connected(port)))
  const free: Array<Promise<unknown>> = sockets.map(() => Promise.resolve())
  const under: Array<Promise<Woken>> = []
  const begin = performance.now()
  for (const [index, id] of ids.entries()) {
    const due = begin + index * 1000 / perSecond
    while (performance.now() < due) await sleep(1)
    const mine = index % doers
    const done = report(sockets[mine] as Socket, id, free[mine] as Promise<unknown>)
    free[mine] = done.answered
    under.push(done.woken)
  }
  const woken = await Promise.all(under)
  for (const socket of sockets) socket.destroy()
  return woken
}

/** One done. Its times are in milliseconds from just before it is sent, or would be sent if its connection were free. */
function report (socket: Socket, id: string, free: Promise<unknown>): { answered: Promise<number>, woken: Promise<Woken> } {
  const sent = performance.now()
  const answered = free.then(() => answerTo(socket, `POST /api/done/${id}`, catcherKey))
  const woken = Promise.all([answered, waiters.get(id)]).then(([done, waiter]) => ({ answered: done - sent, woken: waiter as number - sent }))
  return { answered, woken }
}

async function connected (port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  return socket
}

/** Sends a request and reads the answer, which must say that a handoff is done. @returns when it was complete */
function answerTo (socket: Socket, request: string, key: string): Promise<number> {
  const length = request.startsWith('POST') ? 'Content-Length: 0\r\n' : ''
  socket.write(`${request} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\n${length}\r\n`)
  return new Promise((resolve, reject) => {
    let answer = ''
    const read = (chunk: Buffer) => {
      answer += chunk.toString('latin1')
      if (!isWhole(answer)) return
      const at = performance.now()
      socket.off('data', read).off('close', broken)
      if (answer.startsWith('HTTP/1.1 200') && answer.includes('"status":"done"')) resolve(at)
      else reject(new Error(`${request}: ${answer}`))
    }
    const broken = () => reject(new Error(`${request}: the connection ended`))
    socket.on('data', read).on('close', broken)
  })
}

function isWhole (answer: string): boolean {
  const endOfHead = answer.indexOf('\r\n\r\n')
  if (endOfHead === -1) return false
  const [, length = '0'] = /content-length: (\d+)/i.exec(answer.slice(0, endOfHead)) ?? []
  return answer.length >= endOfHead + 4 + Number(length)
}
