import { setTimeout as sleep } from 'node:timers/promises'
import { HttpClient } from '../test/faults/http-client.ts'
import { doneBody, passBody } from './load.ts'
import type { LoadResult } from './load.ts'
import { percentile } from './report.ts'
import { catcherKey, passerKey } from './server-process.ts'

/** Milliseconds until an answer is given up. */
const patience = 10_000

export interface OpenResult extends LoadResult {
  /** How late this process sent what was due, p99 in milliseconds: it is in the other times as well. */
  lateness: number
}

/**
 * The mix at a fixed rate: so many handoffs a second are passed when each is due, whatever the answers take, each on a connection
 * that is free or on a new one; its catch and its done follow as soon as they can. A pass's time counts from when it was due, so
 * what holds others up is in their times too; a catch's and a done's from the answer that it waited for.
 */
export async function openLoad (url: string, requestsPerSecond: number, seconds: number): Promise<OpenResult> {
  const load = new Load(url)
  const count = Math.round(requestsPerSecond * seconds / 3)
  const late: number[] = []
  const under: Array<Promise<void>> = []
  const begin = performance.now()
  for (let index = 0; index < count; index++) {
    const due = begin + index * 3000 / requestsPerSecond
    while (performance.now() < due) await sleep(1)
    late.push(performance.now() - due)
    under.push(load.handoff(due))
  }
  await Promise.all(under)
  return { ...load.end(begin), lateness: percentile(late, 0.99) }
}

/** The same with so many agents, each of which begins the next handoff when one is done: as many as there can be. */
export async function closedLoad (url: string, agents: number, seconds: number): Promise<LoadResult> {
  const load = new Load(url)
  const begin = performance.now()
  const end = begin + seconds * 1000
  await Promise.all(Array.from({ length: agents }, async () => {
    while (performance.now() < end) await load.handoff(performance.now())
  }))
  return load.end(begin)
}

class Load {
  readonly #client = new HttpClient(patience)
  readonly #url: string
  readonly #times: number[] = []
  #faults = 0

  constructor (url: string) {
    this.#url = url
  }

  async handoff (due: number): Promise<void> {
    const passed = await this.#ask(post('/api/pass', passerKey, passBody), 201, due)
    const id = passed === null ? undefined : /"handoff_id":"([^"]+)"/.exec(passed)?.[1]
    if (id === undefined || await this.#ask(get(`/api/catch/${id}`), 200, performance.now()) === null) return
    await this.#ask(post(`/api/done/${id}`, catcherKey, doneBody), 200, performance.now())
  }

  end (begin: number): LoadResult {
    this.#client.close()
    const times = this.#times
    return {
      requests: times.length,
      perSecond: times.length / (performance.now() - begin) * 1000,
      p50: percentile(times, 0.5),
      p99: percentile(times, 0.99),
      p999: percentile(times, 0.999),
      faults: this.#faults,
    }
  }

  /** @returns the answer's body where its status is the expected one */
  async #ask (request: string, expected: number, due: number): Promise<string | null> {
    const reply = await this.#client.ask(this.#url, request)
    this.#times.push(performance.now() - due)
    if (reply?.status === expected) return reply.body
    this.#faults++
    return null
  }
}

function get (path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: service\r\nAuthorization: Bearer ${catcherKey}\r\n\r\n`
}

function post (path: string, key: string, body: string): string {
  return `POST ${path} HTTP/1.1\r\nHost: service\r\nAuthorization: Bearer ${key}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}
