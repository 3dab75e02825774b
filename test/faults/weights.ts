import type { Redis } from 'ioredis'
import { median } from '../../bench/report.ts'
import { until } from '../helpers/until.ts'
import type { ServiceReplica } from './fleet/service.ts'

/** What a soak weighs each minute, and whether it is flat. */

/** Of all replicas of the service together, and of Redis's master. Memory in bytes. */
export interface Weights {
  /** The services' heaps after a garbage collection, and what they hold beside it. */
  heap: number
  rss: number
  timers: number
  /** Whatever else keeps their event loops alive, sockets included. */
  handles: number
  /** Sockets from agents, and sockets to Redis and to webhooks. */
  accepted: number
  opened: number
  /** Redis's used_memory. */
  redis: number
  clients: number
  keys: number
}

/** The share by which anything may grow; counts, which are small, by so many more. */
const share = 1.05
const few = 2
const memory: ReadonlyArray<keyof Weights> = ['heap', 'rss', 'redis']

/** What weigh.mjs prints. */
interface Told { weighed: number, held: number, rss: number, accepted: number, opened: number, resources: Record<string, number> }

/** @param services with weigh.mjs */
export async function weigh (services: readonly ServiceReplica[], master: Redis): Promise<Weights> {
  const told = await Promise.all(services.map(weighOne))
  const sum = (of: (one: Told) => number) => told.reduce((total, one) => total + of(one), 0)
  const timersOf = ({ resources }: Told) => (resources.Timeout ?? 0) + (resources.Immediate ?? 0)
  const info = await master.info()
  return {
    heap: sum(({ held }) => held),
    rss: sum(({ rss }) => rss),
    timers: sum(timersOf),
    handles: sum(one => Object.values(one.resources).reduce((total, count) => total + count, 0) - timersOf(one)),
    accepted: sum(({ accepted }) => accepted),
    opened: sum(({ opened }) => opened),
    redis: numberIn(info, 'used_memory'),
    clients: numberIn(info, 'connected_clients'),
    keys: await master.dbsize(),
  }
}

async function weighOne ({ pid, lines }: ServiceReplica): Promise<Told> {
  // The last lines are kept only, so theirs are told apart by their number.
  const newest = () => {
    const line = lines.findLast(line => line.startsWith('{"weighed":'))
    return line === undefined ? undefined : JSON.parse(line) as Told
  }
  const before = newest()?.weighed ?? 0
  process.kill(pid, 'SIGWINCH')
  return await until(() => {
    const told = newest()
    return told !== undefined && told.weighed > before ? told : undefined
  })
}

function numberIn (info: string, name: string): number {
  return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)![1])
}

/** What has grown: medians of the last fifth of the minutes against those of the first fifth. */
export function growth (minutes: readonly Weights[]): { grown: Array<keyof Weights>, told: string } {
  const fifth = Math.max(1, Math.floor(minutes.length / 5))
  const names = Object.keys(minutes[0]!) as Array<keyof Weights>
  const ends = names.map(name => ({ name, first: median(minutes.slice(0, fifth).map(one => one[name])), last: median(minutes.slice(-fifth).map(one => one[name])) }))
  const grown = ends.filter(({ name, first, last }) => last > first * share + (memory.includes(name) ? 0 : few)).map(({ name }) => name)
  const told = ends.map(({ name, first, last }) => memory.includes(name) ? `${name} ${percent(last / first)}` : `${name} ${first} → ${last}`)
  return { grown, told: told.join(', ') }
}

export function describeWeights (weights: Weights): string {
  return Object.entries(weights).map(([name, number]) => memory.includes(name as keyof Weights) ? `${name} ${(number / 1e6).toFixed(1)} MB` : `${name} ${number}`).join(', ')
}

function percent (ratio: number): string {
  return `${ratio >= 1 ? '+' : ''}${((ratio - 1) * 100).toFixed(1)} %`
}
