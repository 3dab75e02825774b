import { setTimeout as sleep } from 'node:timers/promises'
import { HttpClient } from './http-client.ts'
import { doneBody, passBody } from './load.ts'
import type { LoadResult } from './load.ts'
import { percentile } from './report.ts'
import { catcherKey, passerKey } from './server-process.ts'

/**
 * The mix at a fixed rate, over plain sockets (the fault tests' own client). All other load is autocannon's (load.ts), which can hold a rate of
 * requests, but not a rate of handoffs whose later requests follow as soon as they can.
 */

/** After how many milliseconds an answer is given up. */
const patience = 10_000

/** A request's time: when it was due by performance.now(), the milliseconds from then until its answer was complete, and whether that was a 503. */
export interface Timed { due: number, milliseconds: number, unavailable: boolean }

export interface OpenResult extends LoadResult {
  times: Timed[]
  /** How late this process sent requests that were due, p99 in milliseconds. The other times include this. */
  lateness: number
}

/**
 * The mix at a fixed rate. Each pass is sent when it is due, however long the answers take, on a free connection or a new one; its catch and its
 * done follow as soon as they can. A pass's time counts from when it was due, so it includes delays by other requests. The time of a catch or done
 * counts from the answer before it, which has the id. A handoff with a 503 ends there.
 * @throws if any other answer is wrong
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

/** Ends this many seconds from now. */
export function lasting (seconds: number): () => boolean {
  const end = performance.now() + seconds * 1000
  return () => performance.now() > end
}

class Load {
  readonly #client = new HttpClient(patience)
  readonly #url: string
  readonly #pass = post('/api/pass', passerKey, passBody)
  readonly times: Timed[] = []
  /** What was wrong with the first wrong answer. */
  fault: Error | undefined

  constructor (url: string) {
    this.#url = url
  }

  /** Resolves in any case. */
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

  /** @throws if an answer was wrong */
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

  /** @returns the answer's body; null for a 503 */
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
