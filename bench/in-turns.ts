import type { HttpClient } from './http-client.ts'
import { catcherKey } from './server-process.ts'

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
