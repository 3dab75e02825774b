import { setTimeout as sleep } from 'node:timers/promises'
import { HttpClient } from '../test/faults/http-client.ts'
import { doneBody, passBody } from './load.ts'
import { catcherKey, passerKey } from './server-process.ts'

/** A request's time: when it was due, by performance.now(), the milliseconds from then until its answer was there whole, and whether that was a 503. */
export interface Timed { due: number, milliseconds: number, unavailable: boolean }

const patience = 10_000

/**
 * So many requests a second, a third of them a pass, then its catch and its done, until it is over. A pass is due at its own
 * time, whatever became of those before it: there are as many connections as that takes. Catch and done are due when the
 * answer before them is there, since nobody can know the id earlier.
 * A handoff of which a request is answered 503 ends there. @throws when any other answer is not what it must be
 */
export async function steadyLoad (url: string, perSecond: number, isOver: () => boolean): Promise<Timed[]> {
  const client = new HttpClient(patience)
  const times: Timed[] = []
  const open = new Set<Promise<void>>()
  let fault: unknown

  /** @returns the answer's body, or null where it is a 503 */
  async function ask (due: number, expected: number, request: string): Promise<string | null> {
    const reply = await client.ask(url, request)
    const unavailable = reply?.status === 503
    if (unavailable) {
      times.push({ due, milliseconds: performance.now() - due, unavailable })
      return null
    }
    if (reply?.status !== expected) throw new Error(`${request.slice(0, request.indexOf('\r'))}: ${reply?.status ?? 'no answer'} ${reply?.body ?? ''}`)
    times.push({ due, milliseconds: performance.now() - due, unavailable })
    return reply.body
  }

  async function handOver (due: number): Promise<void> {
    const passed = await ask(due, 201, requestOf('POST /api/pass', passerKey, passBody))
    if (passed === null) return
    const { handoff_id: id } = JSON.parse(passed) as { handoff_id: string }
    if (await ask(performance.now(), 200, requestOf(`GET /api/catch/${id}`, catcherKey)) === null) return
    await ask(performance.now(), 200, requestOf(`POST /api/done/${id}`, catcherKey, doneBody))
  }

  try {
    const begin = performance.now()
    for (let index = 0; !isOver(); index++) {
      const due = begin + index * 3000 / perSecond
      while (performance.now() < due) await sleep(1)
      const one = handOver(due).catch(error => { fault ??= error }).finally(() => open.delete(one))
      open.add(one)
      if (fault !== undefined) break
    }
    await Promise.all(open)
    if (fault !== undefined) throw fault
  } finally {
    client.close()
  }
  return times
}

function requestOf (line: string, key: string, body?: string): string {
  const head = `${line} HTTP/1.1\r\nHost: service\r\nAuthorization: Bearer ${key}\r\n`
  return body === undefined
    ? `${head}\r\n`
    : `${head}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}
