import { readFileSync } from 'node:fs'
import t from 'tap'
import { HandoffClient, isHandoffError } from '../../src/clients/typescript/index.ts'
import { answering, proxy } from '../helpers/client.ts'

/** What both clients are held to: what is called, what goes over the wire, and what comes back. Python's half is in src/clients/python/tests. */
interface Exchange {
  name: string
  typescript: { method: string, args: unknown[] }
  request: { method: string, path: string, body: unknown, key: boolean | string }
  /** A status that is answered first. */
  before?: number
  answer: { status: number, body?: unknown, text?: string }
  result?: unknown
  error?: Record<string, unknown>
}

const exchanges: Exchange[] = JSON.parse(readFileSync(new URL('../../src/clients/exchanges.json', import.meta.url), 'utf8'))

/** An answer, or all that an iterator has, or an error in the words of the exchanges. */
async function outcome (client: HandoffClient, { method, args }: Exchange['typescript']): Promise<unknown> {
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

t.test('each call says on the wire what the exchanges say, and returns what they say', async t => {
  let current: Exchange
  const { address, seen } = await proxy(t, '', (_, index) => {
    const { before, answer: { status, body, text } } = current
    return before !== undefined && index === 0 ? answering(before) : answering(status, text ?? JSON.stringify(body))
  })
  const client = new HandoffClient({ baseUrl: `${address}/base/`, key: 'a-key-of-alice-0123456789' })
  for (const exchange of exchanges) {
    current = exchange
    seen.length = 0
    const { name, before, request, result, error } = exchange
    const found = await outcome(client, exchange.typescript)
    if (error === undefined) t.strictSame(found, result, name)
    else t.match(found, error, name)
    t.equal(seen.length, before === undefined ? 1 : 2, `${name}: the requests`)
    for (const { method, url, key, body } of seen) {
      t.strictSame({ method, path: url.replace('/base', ''), body: body === '' ? null : JSON.parse(body) }, { method: request.method, path: request.path, body: request.body }, name)
      if (typeof request.key === 'string') t.equal(key, request.key, name)
      else t.equal(key !== undefined, request.key, name)
      t.equal(key, seen[0]!.key, `${name}: one key`)
    }
  }
})
