import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import type { Test } from 'tap'
import { tags } from '../../src/handoff/id.ts'
import { loadScripts } from '../../src/store/scripts.ts'
import { openStore } from '../../src/store/store.ts'
import type { Store } from '../../src/store/store.ts'

const url = process.env.REDIS_URL
if (!url) throw new Error('tests are run by `npm test`, which brings a Redis up: npm test -- FILE')

export interface TestStore {
  store: Store
  /** A plain connection to the same Redis, for looking and for breaking things. */
  redis: Redis
  prefix: string
  url: string
  /** Everything under the prefix: each key's type, content and whether it has a TTL. */
  dump (): Promise<Record<string, unknown>>
  /** Redis's clock as the scripts see it. Without a call it is the true one. */
  setClock (milliseconds: number): Promise<void>
}

export interface TestStoreOptions { workTtl?: number, retention?: number, prefix?: string, url?: string, replicas?: number }

export const quiet = { info () {}, warn () {}, error () {} }

/** A store under a prefix of its own on the Redis of this run; all of it is gone when the test ends. */
export async function testStore (t: Test, options: TestStoreOptions = {}): Promise<TestStore> {
  const prefix = options.prefix ?? `t-${randomBytes(6).toString('hex')}`
  const address = options.url ?? url!
  const redis = new Redis(address)
  redis.on('error', () => {}) // some tests take Redis away
  const store = openStore({
    url: address,
    keyPrefix: prefix,
    tags,
    workTtl: options.workTtl ?? 60_000,
    retention: options.retention ?? 60_000,
    replicas: options.replicas ?? 0,
    log: quiet,
    scripts: loadScripts(movableClock(prefix)),
  })
  t.teardown(async () => {
    await store.close()
    if (options.prefix === undefined) await clear(redis, prefix)
    redis.disconnect()
  })
  return {
    store,
    redis,
    prefix,
    url: address,
    dump: () => dump(redis, prefix),
    setClock: async milliseconds => { await redis.set(clockKey(prefix), milliseconds) },
  }
}

/** A store on Sentinel's master or a Cluster, with the scripts as they are in production. Its Redis goes with the test. */
export function fleetStore (t: Test, url: string, options: TestStoreOptions = {}): Store {
  const { prefix = 'handoff', workTtl = 60_000, retention = 60_000, replicas = 0 } = options
  const store = openStore({ url, keyPrefix: prefix, tags, workTtl, retention, replicas, log: quiet })
  t.teardown(() => store.close())
  return store
}

/**
 * `clock()` for tests: the time in a key, or the true one while there is none. A call's own deadline is held against the true
 * time whatever the clock was set to: the lane knows no other.
 */
function movableClock (prefix: string): string {
  return `local function late(deadline)
    local time = redis.call('TIME')
    return time[1] * 1000 + time[2] / 1000 > tonumber(deadline)
  end
  local function clock()
    local set = redis.call('GET', '${clockKey(prefix)}')
    if set then return tonumber(set) end
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
  end
  `
}

// Outside the prefix's colon, so that a dump doesn't show it.
function clockKey (prefix: string): string {
  return `clock-${prefix}`
}

async function keysUnder (redis: Redis, prefix: string): Promise<string[]> {
  const keys: string[] = []
  for await (const some of redis.scanStream({ match: `${prefix}:*`, count: 1000 })) keys.push(...some as string[])
  return keys.sort()
}

async function dump (redis: Redis, prefix: string): Promise<Record<string, unknown>> {
  const all: Record<string, unknown> = {}
  for (const key of await keysUnder(redis, prefix)) {
    const type = await redis.type(key)
    const content = type === 'hash'
      ? await redis.hgetall(key)
      : type === 'zset' ? await redis.zrange(key, '0', '-1', 'WITHSCORES') : type === 'stream' ? await redis.xrange(key, '-', '+') : await redis.get(key)
    all[key.slice(prefix.length + 1)] = { type, content, expires: Number(await redis.pexpiretime(key)) }
  }
  return all
}

async function clear (redis: Redis, prefix: string): Promise<void> {
  const keys = await keysUnder(redis, prefix)
  await redis.del(clockKey(prefix), ...keys)
}
