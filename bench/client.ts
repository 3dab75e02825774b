import { execFile } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { HandoffClient } from '../src/clients/typescript/index.ts'
import type { Goal } from './contest.ts'
import { caption, circumstances, markdownTable, median, percentile } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { startServer } from './server-process.ts'

const connections = 16
/** Calls of a turn: so few that whatever else the machine does falls on neighbouring turns alike. */
const calls = 400
/** Of bare fetch's CPU. */
const goal = 1.15

const body = { task: 'x'.repeat(500), to: 'inbox' }
const ways = ['fetch', 'fetch with a signal', 'client'] as const
const requests = ['status', 'pass'] as const
type Way = typeof ways[number]
type Asked = typeof requests[number]
/** CPU of a call, in microseconds. */
type Turn = Record<Way, number>

/** The ways of client.py. */
const pythonWays = ['http.client', 'Client', 'AsyncClient'] as const
type PythonTurn = Record<Asked, Record<typeof pythonWays[number], number>>

/** Programs that print what the import of a client takes of their CPU, in microseconds. */
const imports = {
  npm: [process.execPath, '--input-type=module', '--eval', `const before = process.cpuUsage()
    await import(process.argv[1])
    const { user, system } = process.cpuUsage(before)
    console.log(user + system)`, builtUrl('typescript/index.js')],
  wheel: ['python3', '-c', 'import time; before = time.process_time(); import agent_handoff; print((time.process_time() - before) * 1e6)'],
} satisfies Record<string, string[]>

function builtUrl (path: string): string {
  return new URL(`../dist/clients/${path}`, import.meta.url).href
}

const run = promisify(execFile)
const pythonRoot = fileURLToPath(new URL('../src/clients/python', import.meta.url))
const inPython = { cwd: pythonRoot, env: { ...process.env, PYTHONPATH: pythonRoot, PYTHONPYCACHEPREFIX: join(tmpdir(), 'handoff-bench-pycache') } }

/**
 * What the clients cost their process, against a server that only answers: TypeScript's beyond bare `fetch`, Python's beyond bare `http.client`.
 * And how large they are, and what their import takes.
 */
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
    const python: PythonTurn[] = []
    for (let round = 1; round <= rounds; round++) {
      const { stdout } = await run('python3', [fileURLToPath(new URL('client.py', import.meta.url)), server.url, String(seconds)], inPython)
      const turn = JSON.parse(stdout) as PythonTurn
      python.push(turn)
      say(`client: Python, round ${round} of ${rounds}: ${stdout.trim()}`)
    }
    return report(found, python, await packages(), { rounds, seconds })
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

interface Package { name: string, bytes: number, importTime: number }

/** Of the newest build. */
async function packages (): Promise<Package[]> {
  const folder = fileURLToPath(builtUrl(''))
  const found: Package[] = []
  for (const [name, ending] of [['npm', '.tgz'], ['wheel', '.whl']] as const) {
    const file = readdirSync(folder).find(file => file.endsWith(ending))
    if (file === undefined) throw new Error('there are no clients in dist/clients: npm run build')
    const [program, ...args] = imports[name] as [string, ...string[]]
    const times: number[] = []
    // What else the machine does only adds to one.
    for (let count = 0; count < 20; count++) times.push(Number((await run(program, args, inPython)).stdout))
    found.push({ name, bytes: statSync(join(folder, file)).size, importTime: Math.min(...times) })
  }
  return found
}

type Extent = Pick<BenchOptions, 'rounds' | 'seconds'>

function report (found: Record<Asked, Turn[]>, python: PythonTurn[], sizes: Package[], { rounds, seconds }: Extent): Report {
  const where = circumstances('none')
  const rows = requests.flatMap(asked => rowsOf(asked, ways, found[asked]))
  const pythonRows = requests.flatMap(asked => rowsOf(asked, pythonWays, python.map(turn => turn[asked])))
  const goals: Goal[] = rows.filter(({ way }) => way === 'client').map(({ asked, ratio }) =>
    ({ what: `CPU of the client’s ${asked}, of bare fetch’s`, atMost: goal, measured: ratio }))
  const table = (base: string, some: typeof rows) => markdownTable(['', '', 'CPU, µs/call', `more than ${base}, µs`, `of ${base}’s`],
    some.map(({ asked, way, cpu, more, ratio }) => [asked, way, cpu.toFixed(1), more.toFixed(1), ratio.toFixed(2)]))
  return {
    table: table('fetch', rows) +
      `\n${connections} calls at a time. Lower quartiles of turns of ${calls} calls; of those the medians of ${rounds} rounds of ${seconds} s.\n\n` +
      table('http.client', pythonRows) + '\nPython, one call at a time.\n\n' +
      markdownTable(['', 'bytes', 'import, ms of CPU'], sizes.map(({ name, bytes, importTime }) => [name, String(bytes), (importTime / 1000).toFixed(1)])) +
      `\nThe least of 20 imports.\n\n${caption(where)}\n`,
    figures: { ...where, rounds, seconds, connections, goals, rows, python: pythonRows, packages: sizes, each: found },
  }
}

/** Medians of the rounds; the first way is what the others are compared with. */
function rowsOf<Way extends string> (asked: Asked, ways: readonly Way[], turns: Array<Record<Way, number>>) {
  const base = ways[0]!
  return ways.map(way => {
    const of = (figure: (turn: Record<Way, number>) => number) => median(turns.map(figure))
    return { asked, way: way as string, cpu: of(turn => turn[way]), more: of(turn => turn[way] - turn[base]), ratio: of(turn => turn[way] / turn[base]) }
  })
}
