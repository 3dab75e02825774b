import { barChart } from './chart.ts'
import { startChild } from './child.ts'
import { inTurns, measure, mediansOf } from './contest.ts'
import type { Counted, Figures, Rounds } from './contest.ts'
import { exchange } from './exchange.ts'
import { passBodyOf, putBatches, putLoad } from './load.ts'
import type { LoadResult } from './load.ts'
import type { Order } from './peers/bullmq-alone.ts'
import { startContest } from './peers/contestants.ts'
import type { Contest, ContestantName } from './peers/contestants.ts'
import { startRedisStore, startReplicated } from './peers/stores.ts'
import type { Store } from './peers/stores.ts'
import { caption, circumstances, markdownTable, median, percentiles } from './report.ts'
import type { BenchOptions, Percentiles, Report } from './report.ts'
import { startService } from './server-process.ts'
import type { ServerProcess } from './server-process.ts'
import { passesPerSecond, withWorkers } from './workers.ts'

const bytes = 1024
const body = passBodyOf(bytes)
/** Agents that hand off one at a time, and those that do so with 50. */
const agents = 64
const batches = { agents: 4, atOnce: 50 }
/** Workers that wait, and the seconds for which something comes. */
const waiting = { workers: 64, seconds: 3 }
/** Seconds of load until the compiler has optimised the hot code. */
const warming = 3

/** A way to hand off. */
interface Entrant extends Counted {
  store: Pick<Store, 'cpu' | 'clean'>
  /** Whole handoffs in one of its load's requests. */
  handoffs: number
  load (seconds: number): Promise<LoadResult>
  /** The milliseconds from each pass until a worker that waits has it, at passesPerSecond. */
  wake? (seconds: number): Promise<number[]>
}
type Stop = () => Promise<void>
/** Per handoff, where Figures are per request. */
interface Turn extends Figures { wake?: Percentiles }

const behindFastify = { bullmq: 'BullMQ behind Fastify', postgres: 'pg-boss behind Fastify', nats: 'JetStream behind Fastify' }

/** What each promises as it is measured here. */
const promiseHeads = ['', 'asked again after a lost answer', 'acknowledged when', 'after a failover', 'people approve', 'HTTP']
const promises = {
  service: [
    ['this service', 'pass, catch and done act once', 'Redis has it; on disk within 1 s', 'the last changes may be lost', 'yes', 'yes'],
    ['this service, replicas:1', 'pass, catch and done act once', 'Redis and its replica have it', 'nothing is lost if that replica takes over', 'yes', 'yes'],
  ],
  bullmq: [['BullMQ', 'an add with a `jobId` acts once, while the job is there', 'Redis has it; on disk within 1 s', 'the last changes may be lost', 'no', 'no: a library']],
  postgres: [['pg-boss', 'a send with an `id` acts once, while the job is there', 'it is on disk', 'the last changes may be lost, by default', 'no', 'no: a library']],
  nats: [['JetStream', 'a publish with a message id acts once, for 2 min', 'the system has it; on disk within 2 min', 'one server here; it can have replicas', 'no', 'no: its own protocol']],
}
const peers = ['service', 'bullmq', 'postgres', 'nats'] as const satisfies ContestantName[]

const faktory = 'Faktory is left out: neither Debian nor npm has its server.'

/** Whole handoffs a second and per CPU second: this service's ways, BullMQ in process, and the queues behind Fastify, in turns. */
export async function headline (options: BenchOptions): Promise<Report> {
  const { rounds: count, seconds, say } = options
  const stops: Stop[] = []
  try {
    const contest = await startContest(peers, options)
    stops.push(contest.stop)
    const entrants = await entrantsOf(contest, say, stops)
    for (const { load } of entrants) await load(Math.min(seconds, warming))
    const rounds: Rounds<Turn> = await inTurns(entrants, count, async (entrant, round) => {
      const figures = perHandoff(await measure(entrant, () => entrant.load(seconds)), entrant.handoffs)
      const wake = await entrant.wake?.(Math.min(seconds, waiting.seconds))
      say(`headline: round ${round} of ${count}, ${entrant.name}: ${figures.perSecond.toFixed(0)} handoffs a second, ${figures.cpu.toFixed(0)} + ${figures.storeCpu.toFixed(0)} µs of CPU each`)
      return { ...figures, ...wake !== undefined && { wake: percentiles(wake) } }
    })
    return report(contest, rounds, options)
  } finally {
    for (const stop of stops.toReversed()) await stop()
  }
}

/** @param stops collects the functions that stop what is started */
async function entrantsOf ({ contestants }: Contest, say: BenchOptions['say'], stops: Stop[]): Promise<Entrant[]> {
  const entrants: Entrant[] = []
  for (const { name, url, pid, store } of contestants) {
    const single = { pid, store: store as Store, handoffs: 1 / 3, load: (seconds: number) => putLoad(url, agents, seconds, body) }
    if (name === 'service') entrants.push(...await ours(url, single, say, stops))
    if (name === 'bullmq') entrants.push(...await bullmqAlone(say, stops))
    if (name in behindFastify) entrants.push({ ...single, name: behindFastify[name as keyof typeof behindFastify] })
  }
  return entrants
}

async function ours (url: string, single: Omit<Entrant, 'name'>, say: BenchOptions['say'], stops: Stop[]): Promise<Entrant[]> {
  const also = async (name: string, store: Entrant['store'], starting: Promise<ServerProcess>): Promise<Entrant> => {
    const service = await starting
    stops.push(service.stop)
    await exchange(service.url)
    return { ...single, name, pid: service.pid, store, load: seconds => putLoad(service.url, agents, seconds, body) }
  }
  const { master, replica } = await startReplicated(say, stops)
  const both = { cpu: () => master.cpu() + replica.cpu(), clean: master.clean }
  const told = await startRedisStore(say)
  stops.push(told.stop)
  return [
    { ...single, name: 'this service', wake: seconds => withWorkers([url], waiting.workers, pass => pass(seconds)) },
    {
      ...single,
      name: `this service, through one inbox by ${batches.atOnce}`,
      handoffs: batches.atOnce / 3,
      load: seconds => putBatches(url, batches.agents, seconds, body, batches.atOnce),
    },
    await also('this service, replicas:1', both, startService(master.url, false, { DURABILITY: 'replicas:1' })),
    await also('this service, with events', told, startService(told.url, false, { EVENTS_RETENTION: '3600' })),
  ]
}

async function bullmqAlone (say: BenchOptions['say'], stops: Stop[]): Promise<Entrant[]> {
  const store = await startRedisStore(say, [], true)
  stops.push(store.stop)
  const { pid, ask, stop } = startChild<Order>('peers/bullmq-alone.ts', { STORE_URL: store.url })
  stops.push(stop)
  const handOff = (producers: number, atOnce: number) => (seconds: number) => ask<LoadResult>({ do: 'handOff', bytes, producers, atOnce, seconds })
  const common = { pid, store, handoffs: 1 }
  return [
    {
      ...common,
      name: 'BullMQ in process',
      load: handOff(agents, 1),
      wake: seconds => ask({ do: 'wake', perSecond: passesPerSecond, seconds, concurrency: waiting.workers }),
    },
    { ...common, name: `BullMQ in process, by ${batches.atOnce}`, load: handOff(batches.agents, batches.atOnce) },
  ]
}

function perHandoff ({ perSecond, cpu, storeCpu, loadCpu, ...times }: Figures, handoffs: number): Figures {
  return { ...times, perSecond: perSecond * handoffs, cpu: cpu / handoffs, storeCpu: storeCpu / handoffs, loadCpu: loadCpu / handoffs }
}

function report ({ contestants, redis, peers: versions, leftOut }: Contest, rounds: Rounds<Turn>, { rounds: count, seconds }: BenchOptions): Report {
  const where = { ...circumstances(redis), peers: versions }
  const medians = mediansOf(rounds)
  const times = (name: string, percentile: keyof Percentiles) => {
    const found = rounds[name]!.flatMap(({ wake }) => wake?.[percentile] ?? [])
    return found.length === 0 ? '' : median(found).toFixed(1)
  }
  const each = (microseconds: number) => (1e6 / microseconds).toFixed(0)
  const rows = Object.entries(medians).map(([name, { perSecond, cpu, storeCpu }]) =>
    [name, perSecond.toFixed(0), each(cpu), each(storeCpu), each(cpu + storeCpu), times(name, 'p50'), times(name, 'p99')])
  const there = contestants.map(({ name }) => name)
  const missing = [...leftOut, faktory]
  return {
    table: markdownTable(['', 'handoffs/s', 'a CPU second of the server', 'of its store', 'of both', 'to a waiting worker: p50, ms', 'p99, ms'], rows) +
      `\nWhole handoffs of ${bytes} bytes: pass, catch and done. ${agents} agents one at a time, ${batches.agents} with ${batches.atOnce} at once; ` +
      `${waiting.workers} waiting workers, ${passesPerSecond} handoffs a second. Medians of ${count} rounds of ${seconds} s.\n\n` +
      markdownTable(promiseHeads, peers.filter(name => there.includes(name)).flatMap(name => promises[name]), 'words') +
      `\n${missing.join(' ')}\n\n${caption(where)} ${versions}\n`,
    figures: { ...where, rounds: count, seconds, bytes, agents, batches, waiting, leftOut: missing, medians, each: rounds },
    charts: { 'headline.svg': chart(medians) },
  }
}

function chart (medians: Record<string, Figures>): string {
  const bars = Object.keys(medians)
  const those = (isOurs: boolean) => bars.map(bar => bar.startsWith('this service') === isOurs ? medians[bar]!.perSecond : null)
  return barChart({
    title: 'Handoffs a second: pass, catch and done of 1 KB',
    x: 'handoffs a second, on the cores that all share',
    bars,
    parts: [{ name: 'this service', values: those(true) }, { name: 'queues', values: those(false) }],
  })
}
