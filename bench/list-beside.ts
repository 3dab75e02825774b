import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { lasting } from './plain-load.ts'
import { benchRedis } from './redis.ts'
import { percentile } from './report.ts'
import { approverKey, keySettings, passerKey, startService } from './server-process.ts'

/** How many handoffs wait, and how long each task is, in characters. */
const tasks = 100
const taskLength = 1_000_000
const otherKey = 'the-key-of-another-tenant'

export interface Beside {
  /** p99 of the other tenant's status in milliseconds: without lists, and with one list after another. */
  alone: number
  beside: number
  /** The number of lists that were answered meanwhile, and the p50 of one in milliseconds. */
  lists: number
  listed: number
  /** How much the service's memory grew at most while there were lists, in bytes. */
  rss: number
}

/** One tenant lists the longest possible tasks without pause; another tenant sends status requests, one after another. */
export async function besideLists (seconds: number, say: (line: string) => void): Promise<Beside> {
  const server = await benchRedis(say)
  try {
    const service = await startService(server.url, false, { API_KEYS: `${keySettings.API_KEYS},other/requester:${otherKey}` })
    try {
      const body = JSON.stringify({ task: 'x'.repeat(taskLength), require_human: true })
      const passer = client(service.url, passerKey)
      for (let n = 0; n < tasks; n++) await passer('POST', '/api/pass', body)
      const other = client(service.url, otherKey)
      const { handoff_id: id } = JSON.parse((await other('POST', '/api/pass', '{"task":"t"}')).body) as { handoff_id: string }
      const asking = (isOver: () => boolean) => again(() => other('GET', `/api/status/${id}`), isOver)
      await asking(lasting(1))
      const alone = await asking(lasting(seconds))
      const before = rssOf(service.pid)
      let most = before
      const watch = setInterval(() => { most = Math.max(most, rssOf(service.pid)) }, 50)
      const person = client(service.url, approverKey)
      const [beside, lists] = await Promise.all([lasting(seconds)].flatMap(isOver => [asking(isOver), again(() => person('GET', '/api/approvals?limit=100'), isOver)]))
      clearInterval(watch)
      return { alone: percentile(alone, 0.99), beside: percentile(beside!, 0.99), lists: lists!.length, listed: percentile(lists!, 0.5), rss: most - before }
    } finally {
      await service.stop()
    }
  } finally {
    await server.stop()
  }
}

/** The time of each request in milliseconds, one request after another. */
async function again (ask: () => Promise<{ milliseconds: number }>, isOver: () => boolean): Promise<number[]> {
  const times: number[] = []
  while (!isOver()) times.push((await ask()).milliseconds)
  return times
}

/** A client with one connection. A 503 counts as an answer too: its time is how long others would have to wait. */
function client (url: string, key: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return async (method: string, path: string, body?: string): Promise<{ body: string, milliseconds: number }> => {
    const start = performance.now()
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}`, ...body !== undefined && { 'content-type': 'application/json' } }
      request(url + path, { method, agent, headers }, resolve).on('error', reject).end(body)
    })
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk as Buffer)
    if (![200, 201, 503].includes(response.statusCode!)) throw new Error(`${path} answered ${response.statusCode}: ${String(Buffer.concat(chunks))}`)
    return { body: String(Buffer.concat(chunks)), milliseconds: performance.now() - start }
  }
}

function rssOf (pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}
