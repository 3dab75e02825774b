import { readFileSync } from 'node:fs'
import { isHandoffError } from '../../src/clients/typescript/index.ts'
import type { HandoffClient } from '../../src/clients/typescript/index.ts'

/** What both clients are held to: what is called, what goes over the wire, and what comes back. Python's half is in src/clients/python/tests. */
export interface Exchange {
  name: string
  typescript: { method: string, args: unknown[] }
  python: { method: string, args: unknown[], keywords: Record<string, unknown> }
  request: { method: string, path: string, body: unknown, key: boolean | string }
  /** A status that is answered first. */
  before?: number
  answer: { status: number, body?: unknown, text?: string }
  result?: unknown
  error?: Record<string, unknown>
}

export const exchanges: Exchange[] = JSON.parse(readFileSync(new URL('../../src/clients/exchanges.json', import.meta.url), 'utf8'))

/** An answer, or all that an iterator has, or an error in the words of the exchanges. */
export async function outcome (client: HandoffClient, { method, args }: Exchange['typescript']): Promise<unknown> {
  const [name, inner] = method.split('.') as [string, string | undefined]
  const from = (inner === undefined ? client : (client as any)[name]) as Record<string, (...args: unknown[]) => any>
  try {
    const found = await from[inner ?? name]!(...args)
    return found[Symbol.asyncIterator] === undefined ? found : await all(found)
  } catch (error) {
    if (!isHandoffError(error)) throw error
    const { code, status, retryable, requestId, detail, handoffStatus, reissuedAs, errors, message } = error
    return { code, status, retryable, request_id: requestId, detail, handoff_status: handoffStatus, reissued_as: reissuedAs, errors, message }
  }
}

async function all (iterator: AsyncIterable<unknown>): Promise<unknown[]> {
  const found = []
  for await (const one of iterator) found.push(one)
  return found
}
