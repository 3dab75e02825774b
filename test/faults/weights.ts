import type { Redis } from 'ioredis'
import { median } from '../../bench/report.ts'
import { until } from '../helpers/until.ts'
import type { ServiceReplica } from './fleet/service.ts'

/** What a soak weighs each minute, and whether it is flat. */

/** Of all replicas of the service together, and of Redis. Memory in bytes. */
export interface Weights {
  /** The services' heaps after a garbage collection, and what they hold beside these, array buffers included. */
  held: number
  arrayBuffers: number
  rss: number
  /** RSS without the pages that V8 keeps although nothing is in them: how many these are depends on the last seconds' garbage. */
  taken: number
  timers: number
  /** Whatever else keeps their event loops alive, sockets included. */
  handles: number
  /** Sockets from agents, and sockets to Redis and to webhooks. */
  accepted: number
  opened: number
  /** What all of their Maps and Sets hold. */
  entries: number
  /** Redis's used_memory, and how many keys it has: without those that stay. */
  redis: number
  clients: number
  keys: number
}

/** The share by which anything may grow; counts, which are small, by so many more. */
const share = 1.02
const few = 2
const memory: ReadonlyArray<keyof Weights> = ['held', 'arrayBuffers', 'rss', 'taken', 'redis']
/** These may grow: RSS by what `taken` leaves out, and the caches of keys, tenants, agents and schemas, which fill up to their bounds. */
const unjudged: ReadonlyArray<keyof Weights> = ['rss', 'entries']

/** What weigh.mjs prints. */
interface Told extends Pick<Weights, 'held' | 'arrayBuffers' | 'rss' | 'taken' | 'accepted' | 'opened' | 'entries'> {
  weighed: number
  resources: Record<string, number>
  largest: Array<[size: number, key: string]>
  forms: Record<string, number>
}

/** @param services with weigh.mjs @param stays of which keys it is known @returns the weights, and what Maps and Sets hold */
export async function weigh (services: readonly ServiceReplica[], redis: Redis, stays: RegExp): Promise<{ weights: Weights, maps: string }> {
  const told = await Promise.all(services.map(weighOne))
  const sum = (of: (one: Told) => number) => told.reduce((total, one) => total + of(one), 0)
  const timersOf = ({ resources }: Told) => (resources.Timeout ?? 0) + (resources.Immediate ?? 0)
  const staying = (await allKeys(redis)).filter(key => stays.test(key))
  const sizes = await Promise.all(staying.map(key => redis.memory('USAGE', key)))
  const info = await redis.info()
  const weights: Weights = {
    held: sum(({ held }) => held),
    arrayBuffers: sum(({ arrayBuffers }) => arrayBuffers),
    rss: sum(({ rss }) => rss),
    taken: sum(({ taken }) => taken),
    timers: sum(timersOf),
    handles: sum(one => Object.values(one.resources).reduce((total, count) => total + count, 0) - timersOf(one)),
    accepted: sum(({ accepted }) => accepted),
    opened: sum(({ opened }) => opened),
    entries: sum(({ entries }) => entries),
    redis: numberIn(info, 'used_memory') - sizes.reduce<number>((total, size) => total + (size ?? 0), 0),
    clients: numberIn(info, 'connected_clients'),
    keys: await redis.dbsize() - staying.length,
  }
  const [{ largest }] = told as [Told]
  const forms = told.map(one => Object.entries(one.forms).map(([form, count]) => `${count} ${form}`).join(', ') || 'none')
  return { weights, maps: `largest at the first: ${largest.map(([size, key]) => `${size} ${key}`).join('; ')}; of visitors at each: ${forms.join(' | ')}` }
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

/** What has grown: medians of the last third of the minutes against those of the first third. */
export function growth (minutes: readonly Weights[]): { grown: Array<keyof Weights>, described: string } {
  const third = Math.ceil(minutes.length / 3)
  const names = Object.keys(minutes[0]!) as Array<keyof Weights>
  const ends = names.map(name => ({ name, first: median(minutes.slice(0, third).map(one => one[name])), last: median(minutes.slice(-third).map(one => one[name])) }))
  const grown = ends.filter(({ name, first, last }) => !unjudged.includes(name) && last > first * share + (memory.includes(name) ? 0 : few)).map(({ name }) => name)
  const described = ends.map(({ name, first, last }) => memory.includes(name) ? `${name} ${percent(last / first)}` : `${name} ${first} → ${last}`)
  return { grown, described: described.join(', ') }
}

export function describeWeights (weights: Weights): string {
  return Object.entries(weights).map(([name, number]) => memory.includes(name as keyof Weights) ? `${name} ${(number / 1e6).toFixed(1)} MB` : `${name} ${number}`).join(', ')
}

function percent (ratio: number): string {
  return `${ratio >= 1 ? '+' : ''}${((ratio - 1) * 100).toFixed(1)} %`
}

/** How many names of tenants, inboxes, handoffs and the like a key has after its kind (src/store/key-names.ts). */
const named: Record<string, number> = { h: 2, d: 2, i: 2, w: 1, f: 1, a: 1, n: 1, q: 1, o: 1, e: 1, hooks: 1, hook: 2, search: 1, s: 1, k: 1, r: 2 }

/** How many keys there are of each kind: `i:settings`. */
export async function kindsOfKeys (redis: Redis): Promise<Map<string, number>> {
  const kinds = new Map<string, number>()
  for (const key of await allKeys(redis)) {
    const [kind, ...rest] = key.replace(/^handoff:(\{\w+\}:)?/, '').split(':') as [string, ...string[]]
    const name = [kind, ...rest.slice(named[kind] ?? 0)].join(':')
    kinds.set(name, (kinds.get(name) ?? 0) + 1)
  }
  return kinds
}

/** While the service is quiet. */
async function allKeys (redis: Redis): Promise<string[]> {
  const keys = new Set<string>()
  for await (const some of redis.scanStream({ count: 1000 }) as AsyncIterable<string[]>) for (const key of some) keys.add(key)
  return [...keys]
}
