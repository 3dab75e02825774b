/**
 * Many slow clients of one service, in a process of their own, so that they don't take time of the load's event loop:
 * `slow-crowd.ts PORT COUNT SECRET`. They connect one by one over ten seconds, and each that is disconnected is replaced. Prints `full`
 * once all are connected. When its stdin ends, it prints the fate of each kind as JSON, and ends.
 */
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export const crowdProgram = fileURLToPath(import.meta.url)

/** The fate of a kind of client. Times in milliseconds from the start of its request, or from the connection if it sends none. */
export interface Fate {
  clients: number
  refused: number
  closed: number
  told408: number
  /** Not disconnected within ten seconds; `left` of them not even some time after that. */
  overdue: number
  left: number
  p50: number
  longest: number
}
export type Fates = Record<string, Fate>

interface Client { kind: string, began: number, refused: boolean, closedAfter: number, heard: string, served: boolean }

/** By when a client must have been disconnected. */
const limit = 10_000
/** How often each sends its next byte, in milliseconds. */
const drip = 2000
/** How long a deaf client needs to notice, and to read its answer, in milliseconds. */
const toFindOut = 1500

/** One client of twenty is deaf: it doesn't read. */
const kinds = ['headers', 'body', 'headers', 'body', 'headers', 'body', 'silent', 'headers', 'body', 'silent',
  'headers', 'body', 'headers', 'body', 'headers', 'body', 'silent', 'headers', 'silent', 'deaf']

/** What each kind sends at once. Then it drips a header or a body byte by byte. */
function opening (kind: string, secret: string): string {
  const head = `Host: service\r\nAuthorization: Bearer ${secret}\r\n`
  switch (kind) {
    case 'headers': return `GET /api/status/x HTTP/1.1\r\n${head}X-Slow: `
    case 'body': return `POST /api/pass HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n{"task":"`
    // More than the system buffers for a client that doesn't read: several times the largest file there is.
    case 'deaf': return `GET /docs/static/swagger-ui-bundle.js HTTP/1.1\r\n${head}\r\n`.repeat(4)
    default: return ''
  }
}

function begin (port: number, kind: string, secret: string, again: () => void): Client {
  const client: Client = { kind, began: performance.now(), refused: false, closedAfter: Infinity, heard: '', served: false }
  const socket = connect({ port, host: '127.0.0.1' })
  const timers: NodeJS.Timeout[] = []
  const over = () => { client.closedAfter = Math.min(client.closedAfter, performance.now() - client.began) }
  socket.on('connect', () => { if (kind !== 'silent') socket.write(opening(kind, secret)) })
  socket.on('error', (error: NodeJS.ErrnoException) => { if (error.code === 'ECONNREFUSED') client.refused = true })
  socket.on('end', over)
  socket.on('close', () => {
    over()
    for (const timer of timers) clearInterval(timer)
    again()
  })
  if (kind === 'deaf') timers.push(setTimeout(() => hearAgain(socket, client), limit - 300))
  else socket.on('data', some => { client.heard = (client.heard + some.toString('latin1')).slice(0, 100) })
  if (kind === 'headers' || kind === 'body') timers.push(setInterval(() => socket.write('x'), drip))
  return client
}

/** A client that doesn't read notices the end of its connection only when it reads: either at once, or it was open until now. */
function hearAgain (socket: Socket, client: Client): void {
  const asked = performance.now()
  socket.resume()
  socket.once('close', () => {
    clearTimeout(timer)
    client.closedAfter = client.served ? Infinity : asked - client.began
  })
  const timer = setTimeout(() => {
    client.served = true
    socket.destroy()
  }, 1000)
}

async function main ([port, count, secret = '']: string[]): Promise<void> {
  const crowd: Client[] = []
  let over = false
  const come = (kind: string) => {
    if (!over) crowd.push(begin(Number(port), kind, secret, () => come(kind)))
  }
  process.stdin.resume().on('end', () => {
    over = true
    process.stdout.write(`${JSON.stringify(fatesOf(crowd))}\n`, () => process.exit(0))
  })
  const began = performance.now()
  for (let index = 0; index < Number(count); index++) {
    await sleep(Math.max(0, began + index * 10_000 / Number(count) - performance.now()))
    come(kinds[index % kinds.length] as string)
  }
  process.stdout.write('full\n')
}

function fatesOf (crowd: readonly Client[]): Fates {
  const now = performance.now()
  return Object.fromEntries([...new Set(kinds)].map(kind => {
    const of = crowd.filter(client => client.kind === kind)
    const after = of.map(client => client.closedAfter).filter(Number.isFinite).toSorted((a, b) => a - b)
    return [kind, {
      clients: of.length,
      refused: of.filter(client => client.refused).length,
      closed: after.length,
      told408: of.filter(client => client.heard.startsWith('HTTP/1.1 408')).length,
      overdue: of.filter(({ closedAfter, began }) => Math.min(closedAfter, now - began - toFindOut) > limit).length,
      left: of.filter(({ closedAfter, began }) => closedAfter === Infinity && now - began > limit + 2 * toFindOut).length,
      p50: after[after.length >> 1] ?? 0,
      longest: after.at(-1) ?? 0,
    }]
  }))
}

if (process.argv[1] === crowdProgram) await main(process.argv.slice(2))
