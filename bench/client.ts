import { fileURLToPath } from 'node:url'
import { HandoffClient } from '../src/clients/typescript/index.ts'
import type { Goal } from './contest.ts'
import { caption, circumstances, markdownTable, median, percentile } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { startServer } from './server-process.ts'

const connections = 16
/** Calls of a turn: so few that whatever else the machine does falls on neighbouring turns alike. */
const calls = 400
const goal = 15

const body = { task: 'x'.repeat(500), to: 'inbox' }
const ways = ['fetch', 'fetch with a signal', 'client'] as const
const requests = ['status', 'pass'] as const
type Way = typeof ways[number]
type Asked = typeof requests[number]
/** CPU of a call, in microseconds. */
type Turn = Record<Way, number>

/** What the package for agents costs its process beyond bare `fetch`, against a server that only answers. */
export async function client ({ rounds, seconds, say }: Pick<BenchOptions, 'rounds' | 'seconds' | 'say'>): Promise<Report> {
  const server = await startServer([fileURLToPath(new URL('answers.mjs', import.meta.url))], {})
  try {
    const found: Record<Asked, Turn[]> = { status: [], pass: [] }
    for (const asked of requests) {
      const asks = asksOf(server.url, asked)
      // Until the compiler has optimised the hot code.
      await turns(asks, Math.min(seconds, 2))
      for (let round = 1; round <= rounds; round++) {
        const turn = await turns(asks, seconds)
        found[asked].push(turn)
        say(`client: ${asked}, round ${round} of ${rounds}: ${ways.map(way => `${way} ${turn[way].toFixed(1)}`).join(', ')} µs of CPU a call`)
      }
    }
    return report(found, { rounds, seconds })
  } finally {
    await server.stop()
  }
}

function asksOf (url: string, asked: Asked): Record<Way, () => Promise<unknown>> {
  const client = new HandoffClient({ baseUrl: url, key: 'key' })
  const headers = { accept: 'application/json', authorization: 'Bearer key' }
  const bare = async (more: RequestInit = {}) => {
    const answer = asked === 'status'
      ? await fetch(`${url}/api/status/x`, { headers, ...more })
      : await fetch(`${url}/api/pass`, { method: 'POST', headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() }, body: JSON.stringify(body), ...more })
    return JSON.parse(await answer.text())
  }
  return {
    fetch: () => bare(),
    'fetch with a signal': () => bare({ signal: new AbortController().signal }),
    client: () => asked === 'status' ? client.status('x') : client.pass(body),
  }
}

/** All ways in turn, in a random order each time: a turn pays for the garbage of the one before. What else runs on the machine only adds to a turn. @returns the lower quartiles */
async function turns (asks: Record<Way, () => Promise<unknown>>, seconds: number): Promise<Turn> {
  const found: Record<Way, number[]> = { fetch: [], 'fetch with a signal': [], client: [] }
  for (const end = performance.now() + seconds * 1000; performance.now() < end;) {
    for (const way of shuffled(ways)) found[way].push(await turn(asks[way]))
  }
  return Object.fromEntries(ways.map(way => [way, percentile(found[way], 0.25)])) as Turn
}

async function turn (ask: () => Promise<unknown>): Promise<number> {
  let left = calls
  const before = process.cpuUsage()
  await Promise.all(Array.from({ length: connections }, async () => {
    while (left-- > 0) await ask()
  }))
  const { user, system } = process.cpuUsage(before)
  return (user + system) / calls
}

function shuffled<T> (values: readonly T[]): T[] {
  return values.map(value => ({ value, at: Math.random() })).sort((one, other) => one.at - other.at).map(({ value }) => value)
}

function report (found: Record<Asked, Turn[]>, { rounds, seconds }: Pick<BenchOptions, 'rounds' | 'seconds'>): Report {
  const where = circumstances('none')
  const rows = requests.flatMap(asked => ways.map(way => {
    const of = (figure: (turn: Turn) => number) => median(found[asked].map(figure))
    return { asked, way, cpu: of(turn => turn[way]), more: of(turn => turn[way] - turn.fetch), ratio: of(turn => turn[way] / turn.fetch) }
  }))
  const goals: Goal[] = rows.filter(({ way }) => way === 'client').map(({ asked, more }) =>
    ({ what: `CPU of the client’s ${asked} beyond bare fetch’s, µs`, atMost: goal, measured: more }))
  return {
    table: markdownTable(['', '', 'CPU, µs/call', 'more than fetch, µs', 'of fetch’s'],
      rows.map(({ asked, way, cpu, more, ratio }) => [asked, way, cpu.toFixed(1), more.toFixed(1), ratio.toFixed(2)])) +
      `\n${connections} calls at a time. Lower quartiles of turns of ${calls} calls; of those the medians of ${rounds} rounds of ${seconds} s.\n\n${caption(where)}\n`,
    figures: { ...where, rounds, seconds, connections, goals, rows, each: found },
  }
}
