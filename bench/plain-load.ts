import { setTimeout as sleep } from 'node:timers/promises'
import { HttpClient } from '../test/faults/http-client.ts'
import { doneBody, passBody } from './load.ts'
import type { LoadResult } from './load.ts'
import { percentile } from './report.ts'
import { catcherKey, passerKey } from './server-process.ts'

/**
 * The mix at a fixed rate, by plain sockets (the fault tests' own client). Everywhere else the load is autocannon (load.ts), which can hold a rate
 * of requests, but not one of handoffs whose later requests follow when they can.
 */

/** Milliseconds until an answer is given up. */
const patience = 10_000

/** A request's time: when it was due, by performance.now(), the milliseconds from then until its answer was there whole, and whether that was a 503. */
export interface Timed { due: number, milliseconds: number, unavailable: boolean }

export interface OpenResult extends LoadResult {
  times: Timed[]
  /** How late this process sent what was due, p99 in milliseconds: it is in the other times as well. */
  lateness: number
}

/**
 * The mix at a fixed rate: so many handoffs a second are passed when each is due, whatever the answers take, each on a connection
 * that is free or on a new one; its catch and its done follow as soon as they can. A pass's time counts from when it was due, so
 * what holds others up is in their times too; a catch's and a done's from the answer that it waited for, without which nobody knows the id.
 * A handoff of which a request is answered 503 ends there. @throws when any other answer is not what it must be
 */
export async function openLoad (url: string, requestsPerSecond: number, isOver: () => boolean): Promise<OpenResult> {
  const load = new Load(url)
  const late: number[] = []
  const under: Array<Promise<void>> = []
  const begin = performance.now()
  for (let index = 0; !isOver() && load.fault === undefined; index++) {
    const due = begin + index * 3000 / requestsPerSecond
    while (performance.now() < due) await sleep(1)
    late.push(performance.now() - due)
    under.push(load.handoff(due))
  }
  await Promise.all(under)
  return { ...load.end(begin), times: load.times, lateness: percentile(late, 0.99) }
}

/** Is over when so many seconds are, from now on. */
export function lasting (seconds: number): () => boolean {
  const end = performance.now() + seconds * 1000
  return () => performance.now() > end
}

class Load {
  readonly #client = new HttpClient(patience)
  readonly #url: string
  readonly #pass = post('/api/pass', passerKey, passBody)
  readonly times: Timed[] = []
  /** What was wrong with the first answer that was. */
  fault: Error | undefined

  constructor (url: string) {
    this.#url = url
  }

  /** Settles whatever comes of it. */
  async handoff (due: number): Promise<void> {
    try {
      const passed = await this.#ask(this.#pass, 201, due)
      if (passed === null) return
      const { handoff_id: id } = JSON.parse(passed) as { handoff_id: string }
      if (await this.#ask(get(`/api/catch/${id}`), 200, performance.now()) === null) return
      await this.#ask(post(`/api/done/${id}`, catcherKey, doneBody), 200, performance.now())
    } catch (error) {
      this.fault ??= error as Error
    }
  }

  /** @throws when an answer was not what it must be */
  end (begin: number): LoadResult {
    this.#client.close()
    if (this.fault !== undefined) throw this.fault
    const milliseconds = this.times.map(one => one.milliseconds)
    return {
      requests: milliseconds.length,
      perSecond: milliseconds.length / (performance.now() - begin) * 1000,
      p50: percentile(milliseconds, 0.5),
      p99: percentile(milliseconds, 0.99),
      p999: percentile(milliseconds, 0.999),
      faults: this.times.filter(one => one.unavailable).length,
    }
  }

  /** @returns the answer's body, or null where it is a 503 */
  async #ask (request: string, expected: number, due: number): Promise<string | null> {
    const reply = await this.#client.ask(this.#url, request)
    const unavailable = reply?.status === 503
    if (!unavailable && reply?.status !== expected) {
      throw new Error(`${request.slice(0, request.indexOf('\r'))}: ${reply?.status ?? 'no answer'} ${reply?.body ?? ''}`)
    }
    this.times.push({ due, milliseconds: performance.now() - due, unavailable })
    return unavailable ? null : reply.body
  }
}

function get (path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: service\r\nAuthorization: Bearer ${catcherKey}\r\n\r\n`
}

function post (path: string, key: string, body: string): string {
  return `POST ${path} HTTP/1.1\r\nHost: service\r\nAuthorization: Bearer ${key}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}
