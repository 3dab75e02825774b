import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { lasting } from './plain-load.ts'
import { benchRedis } from './redis.ts'
import { percentile } from './report.ts'
import { approverKey, keySettings, passerKey, startService } from './server-process.ts'

/** How many wait, and how long the task of each is, in characters. */
const tasks = 100
const taskLength = 1_000_000
const otherKey = 'the-key-of-another-tenant'

export interface Beside {
  /** p99 of the other tenant's status in milliseconds: nobody lists, and one lists without pause. */
  alone: number
  beside: number
  /** Lists that were answered meanwhile, and the p50 of one in milliseconds. */
  lists: number
  listed: number
  /** The service's memory: how much more it was at the most, once there are lists, in bytes. */
  rss: number
}

/** One tenant lists the longest tasks there may be, without pause; another tenant asks for a status, one after the other. */
export async function besideLists (seconds: number, say: (line: string) => void): Promise<Beside> {
  const server = await benchRedis(say)
  try {
    const service = await startService(server.url, false, { API_KEYS: `${keySettings.API_KEYS},other/asker:${otherKey}` })
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

/** Milliseconds of each request, one after the other. */
async function again (ask: () => Promise<{ milliseconds: number }>, isOver: () => boolean): Promise<number[]> {
  const times: number[] = []
  while (!isOver()) times.push((await ask()).milliseconds)
  return times
}

/** Who asks on one connection. What is refused for now is an answer too: how long that took is what somebody else was made to wait. */
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
