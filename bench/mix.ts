import { barChart } from './chart.ts'
import { acrossRounds, figureCells, figureHeads, goalsTable, mediansOf, ratioOf, runCases } from './contest.ts'
import type { Case, Contestant, Figures, Goal, Rounds } from './contest.ts'
import { passBody, putLoad } from './load.ts'
import { names, startContest } from './peers/contestants.ts'
import { caption, circumstances, markdownTable } from './report.ts'
import type { BenchOptions, Report } from './report.ts'

const connections = 64

/** pass, catch and done: the service, the floor and the peers in turns. */
export async function mix (options: BenchOptions): Promise<Report> {
  const { rounds: count, seconds } = options
  const contest = await startContest(names, options)
  try {
    const { contestants } = contest
    const [{ rounds }] = await runCases('mix', contestants, options, { [`${connections} agents`]: (url, seconds) => putLoad(url, connections, seconds) }) as [Case]
    const where = { ...circumstances(contest.redis), peers: contest.peers }
    const [medians, goals] = [mediansOf(rounds), goalsOf(rounds)]
    const payload = Buffer.byteLength(passBody)
    const ratio = 'service' in rounds && 'floor' in rounds ? ratioOf(rounds, 'service', 'floor') : undefined
    return {
      table: describe(contestants, rounds, medians) + goalsTable(goals) +
        `\npass, catch, done in turn on each of ${connections} connections, ${payload} bytes passed. Medians of ${count} rounds of ${seconds} s.\n` +
        loadsOwn(medians) +
        `\n${caption(where)} ${contest.peers}\n`,
      figures: { ...where, rounds: count, seconds, connections, payload, ...medians, ratio, goals, each: rounds },
      charts: { 'mix.svg': chart(contestants, medians) },
    }
  } finally {
    await contest.stop()
  }
}

/** The ratios whose contestants took part. */
function goalsOf (rounds: Rounds): Goal[] {
  const goals: Array<[what: string, atMost: number, names: string[], reckon: (...turns: Figures[]) => number]> = [
    ['service’s CPU, of the floor’s', 1.1, ['service', 'floor'], (service, floor) => service!.cpu / floor!.cpu],
    ['Redis’s CPU, of what a trivial EVALSHA takes', 2.2, ['service', 'trivial'], (service, trivial) => service!.storeCpu / trivial!.storeCpu],
    ['what the service and Redis add to the floor, of what BullMQ and its Redis add', 1 / 3, ['service', 'floor', 'bullmq'],
      (service, floor, bullmq) => added(service!, floor!) / added(bullmq!, floor!)],
  ]
  return goals.filter(([, , names]) => names.every(name => name in rounds))
    .map(([what, atMost, names, reckon]) => ({ what, atMost, measured: acrossRounds(rounds, names, reckon) }))
}

function added (one: Figures, floor: Figures): number {
  return one.cpu + one.storeCpu - floor.cpu
}

/** The contestants' names in the chart, for readers who don't know these files. */
const titles: Record<string, string> = {
  floor: 'bare Fastify, from memory', service: 'this service', plain: 'Fastify and plain Redis commands', bullmq: 'Fastify and BullMQ', postgres: 'Fastify and pg-boss', nats: 'Fastify and JetStream',
}

function chart (contestants: readonly Contestant[], medians: Record<string, Figures>): string {
  const shown = contestants.filter(({ name }) => name !== 'trivial')
  const values = (figure: 'cpu' | 'storeCpu') => shown.map(({ name }) => medians[name]?.[figure] ?? null)
  return barChart({
    title: 'CPU a request: pass, catch and done in turn',
    x: 'µs of CPU a request',
    bars: shown.map(({ name }) => titles[name] ?? name),
    parts: [{ name: 'the server', values: values('cpu') }, { name: 'what it keeps handoffs in', values: values('storeCpu') }],
  })
}

/** The load shares the cores with the contestants. */
function loadsOwn (medians: Record<string, Figures>): string {
  const taken = Object.entries(medians).map(([name, { loadCpu }]) => `${loadCpu.toFixed(1)} (${name})`)
  return `\nThe load itself, autocannon, took so many µs of CPU a request, on the same cores: ${taken.join(', ')}.\n`
}

function describe (contestants: readonly Contestant[], rounds: Rounds, medians: Record<string, Figures>): string {
  return markdownTable(['', ...figureHeads], [
    ...contestants.map(({ name, store }) => [name, ...figureCells(medians[name] as Figures, store !== undefined)]),
    ...contestants.filter(({ name }) => name !== 'floor' && 'floor' in rounds)
      .map(({ name }) => [`${name} / floor`, ...figureCells(ratioOf(rounds, name, 'floor'), false, 2)]),
  ])
}
