import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import type { Test } from 'tap'
import type { AppDependencies } from '../../src/app.ts'
import { tags } from '../../src/core/ids.ts'
import { expiryLog } from '../../src/http/observe.ts'
import type { ScriptName } from '../../src/redis/outcomes.ts'
import { PayloadKeys, parsePayloadKeys } from '../../src/core/payload-keys.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import type { RedisServer } from '../faults/fleet/redis.ts'
import { openStore } from '../../src/store/store.ts'
import type { Store, StoreOptions } from '../../src/store/store.ts'
import { withClock } from './lua-clock.ts'
import { logSink } from './log-sink.ts'
import type { LogSink } from './log-sink.ts'
import { until } from './until.ts'

const url = process.env.REDIS_URL
if (!url) throw new Error('tests are run by `npm test`, which brings a Redis up: npm test -- FILE')
/** The same Redis as a user with the service's rights, if test/run.ts could create one. */
const limitedUrl = process.env.REDIS_LIMITED_URL ?? url

/** With TEST_EVENTS=on, events in every test that says nothing of them. */
const withEvents = process.env.TEST_EVENTS === 'on' ? 60_000 : 0

/** A prefix of its own on the Redis of this run; all keys are deleted when the test ends. */
export interface TestRedis {
  /** A plain connection with all rights, to inspect and to break things. */
  redis: Redis
  prefix: string
  /** Everything under the prefix except the data set's mark, which /readyz writes: each key's type, content and whether it has a TTL. */
  dump (): Promise<Record<string, unknown>>
}

export interface TestStore extends TestRedis, LogSink {
  store: Store
  /** The URL that the service connects to. */
  url: string
  /** Sets Redis's clock as the scripts see it. Without a call they see the real one. */
  setClock (milliseconds: number): Promise<void>
}

export interface TestStoreOptions {
  workTtl?: number
  retention?: number
  /** Milliseconds; 0, the default: events are off. */
  eventsRetention?: number
  listsEnded?: boolean
  decisionsRetention?: number | undefined
  runLabels?: readonly string[]
  prefix?: string
  url?: string
  /** The URL with the service's user. */
  limitedUrl?: string
  replicas?: number
  log?: StoreOptions['log']
  /** How webhooks are delivered where that differs from production. */
  webhooks?: AppDependencies['webhooks']
  /** The same of files. */
  files?: AppDependencies['files']
  /** Settings of the store that differ from production. */
  isSpread?: StoreOptions['isSpread']
  payloadKeys?: StoreOptions['payloadKeys']
  edit?: StoreOptions['edit']
}

type Pipeline = ReturnType<Redis['pipeline']>

/** A log for Redis child processes, which have no secrets to log. */
export const quiet = { info () {}, warn () {}, error () {} }

/** With TEST_SEALED all stores of tests seal what is written: each answer must be the same. */
const sealedByDefault = process.env.TEST_SEALED === undefined
  ? undefined
  : new PayloadKeys(parsePayloadKeys(`default:${Buffer.alloc(32, 7).toString('base64')}`))

/** For tests of scripts alone: to open a store costs as much time as the commands of a short test. */
export function testRedis (t: Test, options: Pick<TestStoreOptions, 'prefix' | 'url'> = {}): TestRedis {
  const prefix = options.prefix ?? `t-${randomBytes(6).toString('hex')}`
  const redis = new Redis(options.url ?? url!)
  redis.on('error', () => {}) // some tests take Redis away
  t.teardown(async () => {
    if (options.prefix === undefined) await clear(redis, prefix)
    redis.disconnect()
  })
  return { redis, prefix, dump: () => dump(redis, prefix) }
}

/** A store and its Redis, on which nothing else has its prefix. */
export async function testStore (t: Test, options: TestStoreOptions = {}): Promise<TestStore> {
  const { log, lines } = logSink(t)
  const test = testRedis(t, options)
  const { redis, prefix } = test
  const eventsRetention = options.eventsRetention || withEvents
  const address = options.limitedUrl ?? options.url ?? limitedUrl
  const store = openStore({
    url: address,
    keyPrefix: prefix,
    tags,
    workTtl: options.workTtl ?? 60_000,
    retention: options.retention ?? 60_000,
    eventsRetention,
    listsEnded: options.listsEnded,
    decisionsRetention: options.decisionsRetention,
    runLabels: options.runLabels,
    replicas: options.replicas ?? 0,
    log: options.log ?? log,
    onExpired: expiryLog(log),
    isSpread: options.isSpread,
    payloadKeys: options.payloadKeys ?? sealedByDefault,
    edit: asMovable,
    restPerCall: 0,
  })
  t.teardown(() => store.close())
  return {
    ...test,
    store,
    log,
    lines,
    url: address,
    setClock: async milliseconds => { await redis.set(clockKey(prefix), milliseconds) },
  }
}

/** A store on Sentinels' master or a Cluster, with the production scripts. Its Redis ends with the test. */
export function fleetStore (t: Test, url: string, options: TestStoreOptions = {}): Store {
  const { prefix = 'handoff', workTtl = 60_000, retention = 60_000, eventsRetention = withEvents, replicas = 0, log = logSink(t).log } = options
  const store = openStore({ url, keyPrefix: prefix, tags, workTtl, retention, eventsRetention, replicas, log, edit: options.edit })
  t.teardown(() => store.close())
  return store
}

/** A Redis that a service has been at: of one that is new `handoff doctor` waits to see whether its data was lost. */
export async function usedRedis (t: Test): Promise<RedisServer> {
  const server = await startRedisServer(t)
  const store = fleetStore(t, server.url)
  await until(async () => await store.whyNotReady() === null)
  await store.close()
  return server
}

/** How many of a script's calls have been answered or given up. */
export function callsOf ({ scripts }: Pick<Store, 'scripts'>, script: ScriptName): number {
  return scripts.find(({ name }) => name === script)!.took.counts.reduce((sum, count) => sum + count, 0)
}

/**
 * `clock()` for tests: the time in a key, or the real time if there is none. A call's own deadline is always compared with the real
 * time, because the lane knows no other. The prefix is that of the call's keys: the scripts of all tests are the same, and Redis compiles
 * them once.
 */
const movableClock = `local function isLate(deadline)
  local time = redis.call('TIME')
  return time[1] * 1000 + time[2] / 1000 > tonumber(deadline)
end
local function clock()
  local set = redis.call('GET', 'clock-' .. string.match(KEYS[1], '^[^:]*'))
  if set then return tonumber(set), set, '000', set end
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  return now, time[1], string.format('%06d', time[2]), string.format('%d', now)
end
`
const atMovable = withClock(movableClock)
const asMovable = (source: string) => atMovable(source).replace(/ \S+ > ARGV\[1\] \+ 0 then return { 'late' }/, " isLate(ARGV[1]) then return { 'late' }")

// Without the prefix's colon, so that a dump leaves it out.
function clockKey (prefix: string): string {
  return `clock-${prefix}`
}

async function keysUnder (redis: Redis, prefix: string): Promise<string[]> {
  const keys: string[] = []
  for await (const some of redis.scanStream({ match: `${prefix}:*`, count: 1000 })) keys.push(...some as string[])
  return keys.sort()
}

/** How each type of key is read whole. */
const readers = {
  hash: (from: Pipeline, key: string) => from.hgetall(key),
  list: (from: Pipeline, key: string) => from.lrange(key, 0, -1),
  set: (from: Pipeline, key: string) => from.smembers(key),
  zset: (from: Pipeline, key: string) => from.zrange(key, '0', '-1', 'WITHSCORES'),
  stream: (from: Pipeline, key: string) => from.xrange(key, '-', '+'),
  string: (from: Pipeline, key: string) => from.get(key),
}

/**
 * In three round trips, however many keys: tests of the scripts do little else. Leaves out when the sweep looks at which tenant, and the member
 * that keeps its index there: test/lua/due.test.ts and the simulator check those.
 */
async function dump (redis: Redis, prefix: string): Promise<Record<string, unknown>> {
  const keys = (await keysUnder(redis, prefix)).filter(key => !/}:(dataset|tenants)$/.test(key))
  const looks = redis.pipeline()
  for (const key of keys) looks.type(key).pexpiretime(key)
  const seen = await results(looks)
  const reads = redis.pipeline()
  for (const [n, key] of keys.entries()) (readers[seen[2 * n] as keyof typeof readers] ?? readers.string)(reads, key)
  const contents = await results(reads)
  return Object.fromEntries(keys.flatMap((key, n) => {
    const content = /}:due:/.test(key) ? (contents[n] as string[]).slice(0, -2) : contents[n]
    return /}:due:/.test(key) && (content as string[]).length === 0 ? [] : [[key.slice(prefix.length + 1), { type: seen[2 * n], content, expires: Number(seen[2 * n + 1]) }]]
  }))
}

async function results (of: Pipeline): Promise<unknown[]> {
  return (await of.exec())!.map(([error, result]) => {
    if (error) throw error
    return result
  })
}

async function clear (redis: Redis, prefix: string): Promise<void> {
  const keys = await keysUnder(redis, prefix)
  await redis.del(clockKey(prefix), ...keys)
}
