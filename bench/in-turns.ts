import { cpuOf } from './cpu.ts'
import { HttpClient } from './http-client.ts'
import { catcherKey, passerKey } from './server-process.ts'
import type { ServerProcess } from './server-process.ts'

const task = 'x'.repeat(970)

/**
 * Passes, catches and completes so many handoffs of 1 KB.
 * @param keys of those who do it
 * @returns microseconds of the service's CPU a request
 */
export async function cpuOfTurn (
  { url, pid }: Pick<ServerProcess, 'url' | 'pid'>, { handoffs, connections }: { handoffs: number, connections: number },
  { passer, catcher } = { passer: passerKey, catcher: catcherKey }
): Promise<number> {
  const client = new HttpClient(10_000)
  const ask = (requests: string[], expected: number) => inTurns(client, url, requests, expected, connections)
  const before = cpuOf(pid)
  try {
    const passed = await ask(new Array<string>(handoffs).fill(post('/api/pass', passer, JSON.stringify({ task }))), 201)
    const ids = passed.map(text => (JSON.parse(text) as { handoff_id: string }).handoff_id)
    await ask(ids.map(id => get(`/api/catch/${id}`, catcher)), 200)
    await ask(ids.map(id => post(`/api/done/${id}`, catcher, '{"output":{}}')), 200)
    return (cpuOf(pid) - before) / handoffs / 3
  } finally {
    client.close()
  }
}

/** Sends these requests over several connections, one after another on each. @returns the answers' bodies, in the requests' order */
export async function inTurns (client: HttpClient, url: string, requests: string[], expected: number, connections: number): Promise<string[]> {
  const bodies: string[] = []
  let next = 0
  await Promise.all(Array.from({ length: connections }, async () => {
    while (next < requests.length) {
      const index = next++
      const reply = await client.ask(url, requests[index]!)
      if (reply?.status !== expected) throw new Error(`answered ${reply?.status} instead of ${expected}: ${reply?.body}`)
      bodies[index] = reply.body.toString()
    }
  }))
  return bodies
}

export function post (path: string, key: string, body: string): string {
  return `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

export function get (path: string, key = catcherKey): string {
  return `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n\r\n`
}
