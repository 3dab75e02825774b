import { setTimeout as sleep } from 'node:timers/promises'
import { HttpClient } from './http-client.ts'
import { agentKeys, within } from './load-keys.ts'

/** Load at a constant rate whatever happens to the service: pass, catch and done over keep-alive connections. */

export interface SteadyOptions {
  /** The maximum number of handoffs under way. */
  agents: number
  /** Requests per second; Infinity for as many as are answered. */
  perSecond: number
  /** The share of handoffs with heartbeats, a failed first attempt and a second, or cancellations; by default none. */
  tried?: number
  /** @param requests so far */
  isOver: (requests: number) => boolean
}

export interface Tally {
  requests: number
  /** Requests a second. */
  rate: number
  /** Requests without an answer: the connection broke, or ten seconds had passed. */
  broken: number
  serverErrors: number
  /** Answers that these requests must not get, by name: `catch 409`. */
  wrong: Record<string, number>
  /** Milliseconds of each answer. */
  times: number[]
}

const patience = 10_000
const [passer, catcher] = within(agentKeys, 'north').map(({ secret }) => secret)

const passBody = JSON.stringify({
  task: 'Write a summary of the attached figures in five lines.',
  output: { source: 'quarterly-report.csv', rows: Array.from({ length: 6 }, (_, quarter) => ({ quarter, region: 'north', revenue: 125_000.5 + quarter })) },
  context: { ticket: 'OPS-1423', attempts: 1 },
})
/** A handoff with attempts. */
const triedBody = `${passBody.slice(0, -1)},"max_attempts":2,"retry_delay":0,"work_within":600,"heartbeat_within":60}`
const beatBody = '{"progress":{"percent":50}}'
const failBody = '{"error":{"message":"The source is away."}}'
const doneBody = JSON.stringify({ output: { summary: 'Revenue rose in every quarter.' } })

export function requestOf (line: string, secret: string | undefined, body?: string): string {
  const head = `${line} HTTP/1.1\r\nHost: service\r\nAuthorization: Bearer ${secret}\r\n`
  return body === undefined
    ? `${head}\r\n`
    : `${head}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

/** Puts load on the service at `url` until `isOver`, and then finishes the handoffs under way. */
export async function steadyLoad (url: string, { agents, perSecond, tried = 0, isOver }: SteadyOptions): Promise<Tally> {
  const client = new HttpClient(patience)
  const tally: Tally = { requests: 0, rate: 0, broken: 0, serverErrors: 0, wrong: {}, times: [] }
  const began = performance.now()
  let handoffs = 0
  /** The number of requests due by the time of the next handoff. */
  let due = 0

  /** @returns the answer's body if it is the expected one; it is counted either way */
  async function ask (what: string, expected: number, request: string): Promise<string | null> {
    const sent = performance.now()
    const reply = await client.ask(url, request)
    tally.requests++
    tally.times.push(performance.now() - sent)
    if (reply?.status === expected) return reply.body
    if (reply === null) tally.broken++
    else if (reply.status >= 500) tally.serverErrors++
    else tally.wrong[`${what} ${reply.status}`] = (tally.wrong[`${what} ${reply.status}`] ?? 0) + 1
    return null
  }

  const named = (member: string, answer: string | null) => answer === null ? undefined : new RegExp(`"${member}":"([^"]+)"`).exec(answer)?.[1]

  /** A handoff that fails, gets a successor and is done then; or that is cancelled. */
  async function tryTwice (isCancelled: boolean): Promise<void> {
    const id = named('handoff_id', await ask('pass', 201, requestOf('POST /api/pass', passer, triedBody)))
    if (id === undefined || await ask('catch', 200, requestOf(`GET /api/catch/${id}`, catcher)) === null) return
    await ask('heartbeat', 200, requestOf(`POST /api/heartbeat/${id}`, catcher, beatBody))
    if (isCancelled) {
      await ask('cancel', 200, requestOf(`POST /api/cancel/${id}`, passer, '{"force":true}'))
      return
    }
    const successor = named('reissued_as', await ask('fail', 200, requestOf(`POST /api/fail/${id}`, catcher, failBody)))
    if (successor === undefined || await ask('catch', 200, requestOf(`GET /api/catch/${successor}`, catcher)) === null) return
    await ask('done', 200, requestOf(`POST /api/done/${successor}`, catcher, doneBody))
  }

  async function work (): Promise<void> {
    while (!isOver(tally.requests)) {
      // Handoffs are scheduled by their number of requests; a late one starts at once.
      const early = began + due * 1000 / perSecond - performance.now()
      const isTried = ++handoffs * tried % 1 >= 1 - tried
      const isCancelled = handoffs % 4 === 0
      due += !isTried ? 3 : isCancelled ? 4 : 6
      if (early > 1) await sleep(early)
      if (isTried) {
        await tryTwice(isCancelled)
        continue
      }
      const id = named('handoff_id', await ask('pass', 201, requestOf('POST /api/pass', passer, passBody)))
      if (id === undefined || await ask('catch', 200, requestOf(`GET /api/catch/${id}`, catcher)) === null) continue
      await ask('done', 200, requestOf(`POST /api/done/${id}`, catcher, doneBody))
    }
  }

  try {
    await Promise.all(Array.from({ length: agents }, work))
  } finally {
    client.close()
  }
  tally.rate = tally.requests / (performance.now() - began) * 1000
  return tally
}

/** Whether so many milliseconds have passed from now. */
export function lasting (milliseconds: number): () => boolean {
  const end = performance.now() + milliseconds
  return () => performance.now() > end
}
