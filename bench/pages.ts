import { Agent, get } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { approverKey } from './server-process.ts'

interface Listed { items: Array<{ handoff_id: string, created_at: string }>, next_cursor: string | null }

/** An approver's client, with one keep-alive connection. */
export interface Client {
  /** @returns the body, and the milliseconds until it had arrived completely, before parsing */
  get (path: string): Promise<{ body: Buffer, milliseconds: number }>
  close (): void
}

export function keepAliveClient (url: string, key = approverKey): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const headers = { authorization: `Bearer ${key}` }
  return {
    async get (path) {
      const start = performance.now()
      const response = await new Promise<IncomingMessage>((resolve, reject) => { get(url + path, { agent, headers }, resolve).on('error', reject) })
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk as Buffer)
      const milliseconds = performance.now() - start
      const body = Buffer.concat(chunks)
      if (response.statusCode !== 200) throw new Error(`${path} answered ${response.statusCode}: ${String(body)}`)
      return { body, milliseconds }
    },
    close: () => agent.destroy(),
  }
}

/** Reads the whole list, which must have every handoff once, oldest first. @returns the cursor at its middle */
export async function walk (client: Client, limit: number, count: number): Promise<string> {
  const seen = new Set<string>()
  let [cursor, middle, oldest] = ['', '', '']
  do {
    const { body } = await client.get(`/api/approvals?limit=${limit}${cursor && `&cursor=${cursor}`}`)
    const { items, next_cursor: next } = JSON.parse(String(body)) as Listed
    for (const { handoff_id: id, created_at: createdAt } of items) {
      if (createdAt < oldest) throw new Error('the list is not oldest first')
      oldest = createdAt
      seen.add(id)
    }
    cursor = next ?? ''
    if (seen.size * 2 <= count) middle = cursor
  } while (cursor !== '')
  if (seen.size !== count) throw new Error(`the list has ${seen.size} of ${count}`)
  return middle
}
