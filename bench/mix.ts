import { fileURLToPath } from 'node:url'
import { cpuOf } from './cpu.ts'
import { exchange } from './exchange.ts'
import { passBody, putLoad } from './load.ts'
import { benchRedis } from './redis.ts'
import { caption, circumstances, markdownTable, median } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { keySettings, startServer, startService } from './server-process.ts'
import type { ServerProcess } from './server-process.ts'

const connections = 64
const names = ['service', 'floor'] as const
type Name = typeof names[number]

interface Figures {
  perSecond: number
  /** Milliseconds. */
  p50: number
  p99: number
  /** CPU time per request, in microseconds. */
  cpu: number
  redisCpu: number
}
type Round = Figures & { faults: number }

/** pass, catch, done: the service and the floor in turn. */
export async function mix (options: BenchOptions): Promise<Report> {
  const redis = await benchRedis(options.say)
  const servers: ServerProcess[] = []
  try {
    const service = await startService(redis.url)
    servers.push(service)
    const floor = await startFloor()
    servers.push(floor)
    const rounds = await alternate({ service, floor }, redis.pid, options)
    return report(rounds, redis.version, options)
  } finally {
    for (const server of servers) await server.stop()
    await redis.stop()
  }
}

function startFloor (): Promise<ServerProcess> {
  return startServer(['--import=tsx', fileURLToPath(new URL('floor.ts', import.meta.url))], keySettings)
}

async function alternate (servers: Record<Name, ServerProcess>, redisPid: number, { rounds, seconds, say }: BenchOptions): Promise<Record<Name, Round[]>> {
  const found: Record<Name, Round[]> = { service: [], floor: [] }
  for (const name of names) {
    await exchange(servers[name].url)
    // Until the compiler has seen what is hot.
    await putLoad(servers[name].url, connections, Math.min(seconds, 5))
  }
  for (let round = 1; round <= rounds; round++) {
    for (const name of names) {
      const figures = await measure(servers[name], redisPid, seconds)
      found[name].push(figures)
      say(`mix: round ${round} of ${rounds}, ${name}: ${figures.cpu.toFixed(1)} µs of CPU a request`)
    }
  }
  return found
}

async function measure (server: ServerProcess, redisPid: number, seconds: number): Promise<Round> {
  const before = { server: cpuOf(server.pid), redis: cpuOf(redisPid) }
  const { requests, perSecond, p50, p99, faults } = await putLoad(server.url, connections, seconds)
  if (faults > 0) throw new Error(`mix: ${faults} of ${requests} requests went wrong`)
  const cpu = (cpuOf(server.pid) - before.server) / requests
  const redisCpu = (cpuOf(redisPid) - before.redis) / requests
  return { perSecond, p50, p99, cpu, redisCpu, faults }
}

function report (rounds: Record<Name, Round[]>, redisVersion: string, { rounds: count, seconds }: BenchOptions): Report {
  const medians = { service: medianOf(rounds.service), floor: medianOf(rounds.floor) }
  const ratio = medianOf(rounds.service.map((service, index) => quotients(service, rounds.floor[index] as Round)))
  const where = circumstances(redisVersion)
  const payload = Buffer.byteLength(passBody)
  return {
    table: describe({ ...medians, ratio }) +
      `\npass, catch, done in turn on each of ${connections} connections, ${payload} bytes passed. Medians of ${count} rounds of ${seconds} s.\n` +
      `\n${caption(where)}\n`,
    figures: { ...where, rounds: count, seconds, connections, payload, ...medians, ratio: { ...ratio, redisCpu: undefined }, each: rounds }, // Redis does nothing for the floor
  }
}

const measures = ['perSecond', 'p50', 'p99', 'cpu', 'redisCpu'] as const satisfies Array<keyof Figures>

function each (figure: (measure: keyof Figures) => number): Figures {
  return Object.fromEntries(measures.map(measure => [measure, figure(measure)])) as unknown as Figures
}

function medianOf (rounds: readonly Figures[]): Figures {
  return each(measure => median(rounds.map(round => round[measure])))
}

/** Of neighbours in time, so that both had the same machine. */
function quotients (service: Round, floor: Round): Figures {
  return each(measure => service[measure] / floor[measure])
}

function describe ({ service, floor, ratio }: { service: Figures, floor: Figures, ratio: Figures }): string {
  const row = ({ perSecond, p50, p99, cpu }: Figures, redisCpu: string, digits: number) =>
    [perSecond.toFixed(digits), ...[p50, p99].map(time => time.toFixed(2)), cpu.toFixed(digits === 0 ? 1 : 2), redisCpu]
  return markdownTable(['', 'requests/s', 'p50, ms', 'p99, ms', 'CPU, µs/request', 'Redis CPU, µs/request'], [
    ['service', ...row(service, service.redisCpu.toFixed(1), 0)],
    ['floor', ...row(floor, '', 0)],
    ['service / floor', ...row(ratio, '', 2)],
  ])
}
