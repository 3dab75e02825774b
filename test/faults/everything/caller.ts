import { setTimeout as sleep } from 'node:timers/promises'
import { HttpClient } from '../../../bench/http-client.ts'
import type { Reply } from '../../../bench/http-client.ts'
import { noCounts } from '../asking.ts'
import { clock } from '../history.ts'
import type { Key } from '../load-keys.ts'

/** What was answered: JSON, null for what has none. */
export interface Answer { status: number, body: any }

/** For how long a request is repeated (ms): over the longest gap. */
const patience = 90_000
/** Of one request (ms). It may wait for a second, and a service that drains goes on with it. */
const timeout = 15_000

/** Asks the replicas in turn, and again, until an answer says what happened. */
export class Caller {
  readonly counts = noCounts()
  readonly #urls: readonly string[]
  readonly #who: Key
  readonly #client = new HttpClient(timeout)
  #next = 0

  constructor (urls: readonly string[], who: Key) {
    this.#urls = urls
    this.#who = who
  }

  /** @param key Idempotency-Key: needed by what isn't to happen twice @throws if it isn't answered in time, or with a 500 */
  async ask (method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: object, key?: string): Promise<Answer> {
    const headers = {
      authorization: `Bearer ${this.#who.secret}`,
      'a2a-version': '1.0',
      ...body !== undefined && { 'content-type': 'application/json' },
      ...key !== undefined && { 'idempotency-key': key },
    }
    const reply = await this.#until(method, path, headers, body === undefined ? undefined : JSON.stringify(body))
    return { status: reply.status, body: reply.body === '' ? null : JSON.parse(reply.body) }
  }

  /** Asks for a file's text, or sends it. @param address as the service says it: of its public name, behind which is each of the replicas */
  async file (address: string, upload?: { text: string, headers: Record<string, string> }): Promise<Reply> {
    const { pathname, search } = new URL(address)
    return await this.#until(upload === undefined ? 'GET' : 'PUT', pathname + search, upload?.headers ?? {}, upload?.text)
  }

  async #until (method: string, path: string, headers: Record<string, string>, body?: string): Promise<Reply> {
    const lines = Object.entries({ host: 'service', ...headers, ...body !== undefined && { 'content-length': String(Buffer.byteLength(body)) } })
    const text = `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body ?? ''}`
    let last: Reply | null = null
    for (const end = clock() + patience; clock() < end; await sleep(100)) {
      last = await this.#client.ask(this.#urls[this.#next++ % this.#urls.length]!, text)
      this.counts.requests++
      if (last === null) this.counts.unanswered++
      else if (last.status >= 500) this.counts.unavailable++
      else if (last.status < 300) this.counts.acknowledged++
      if (last?.status === 500) break
      if (last !== null && last.status < 500 && last.status !== 408 && last.status !== 429) return last
    }
    throw new Error(`${method} ${path} isn't answered in time: ${JSON.stringify(last)}`)
  }

  close (): void {
    this.#client.close()
  }
}
