import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { commandsSent } from './commands.ts'
import { cpuOf } from './cpu.ts'
import { exchange } from './exchange.ts'
import { Maker } from './handoffs.ts'
import { percentiles } from './report.ts'
import type { Percentiles } from './report.ts'
import type { BenchRedis } from './redis.ts'
import { startService } from './server-process.ts'
import type { ServerProcess, Weight } from './server-process.ts'
import { startClients } from './wake-ups.ts'
import type { Clients } from './wake-ups.ts'

export const wakeUpsPerSecond = 1000
/** How long it takes until the memory for opening requests is freed, in milliseconds. */
const settlingTime = 3000
/** How many requests wait before the first weighing, so that it includes the fixed cost of waiting. */
const vanguard = 100

export interface WaitingFigures {
  /** Bytes per waiter: the process's memory as it is, then after garbage collection, and of that JavaScript's share on the heap and outside it. */
  rss: number
  rssCollected: number
  heap: number
  external: number
  /** Calls to Redis per second. */
  nobodyWaits: Record<string, number>
  allWait: Record<string, number>
  /** Milliseconds: from sending a done to the waiter's answer, from the done's own answer to the waiter's, and from sending it to its own answer. */
  fromSending: Percentiles
  fromAnswer: Percentiles
  done: Percentiles
  /** Of the replica where they wait, during the wake-ups: bytes a wake-up, collections of young objects per thousand, and the longest, in ms. */
  allocated: number
  collections: number
  longest: number
  /** Microseconds per wake-up. */
  cpu: { waitedOn: number, doneOn: number, redis: number }
}

/** This many requests wait on one replica, and another replica wakes them. All processes except Redis are fresh. */
export async function runWaiting (server: BenchRedis, waiters: number, seconds: number): Promise<WaitingFigures> {
  const redis = new Redis(server.url)
  await redis.flushall('SYNC')
  const maker = new Maker(server.url)
  const ids = await maker.caught(vanguard + waiters)
  await maker.close()
  const stops: Array<() => Promise<void>> = [async () => redis.disconnect()]
  try {
    // It starts first, so it does the sweeping while it lives.
    const here = await startService(server.url, true)
    stops.push(here.stop)
    const there = await startService(server.url)
    stops.push(there.stop)
    const clients = startClients()
    stops.push(clients.stop)
    return await measure({ server, redis, here, there, clients, seconds }, ids.slice(0, vanguard), ids.slice(vanguard))
  } finally {
    for (const stop of stops.reverse()) await stop()
  }
}

interface Parts { server: BenchRedis, redis: Redis, here: ServerProcess, there: ServerProcess, clients: Clients, seconds: number }

async function measure ({ server, redis, here, there, clients, seconds }: Parts, first: string[], ids: string[]): Promise<WaitingFigures> {
  await exchange(there.url)
  await clients.open(here.url, first)
  await clients.wake(there.url, first, wakeUpsPerSecond)
  const nobodyWaits = await commandsSent(redis, seconds)
  const before = await here.weigh()
  await clients.open(here.url, ids)
  await allSubscribed(redis, ids.length)
  await sleep(settlingTime)
  const allWait = await commandsSent(redis, seconds)
  const after = await here.weigh()
  const cpu = () => ({ waitedOn: cpuOf(here.pid), doneOn: cpuOf(there.pid), redis: cpuOf(server.pid) })
  await here.count()
  const started = cpu()
  const woken = await clients.wake(there.url, ids, wakeUpsPerSecond)
  const ended = cpu()
  const { allocated, collections, longest } = await here.counted()
  const share = (part: keyof WaitingFigures['cpu']) => (ended[part] - started[part]) / ids.length
  return {
    ...weighed(before, after, ids.length),
    nobodyWaits,
    allWait,
    fromSending: percentiles(woken.map(one => one.woken)),
    fromAnswer: percentiles(woken.map(one => one.woken - one.answered)),
    done: percentiles(woken.map(one => one.answered)),
    allocated: allocated / ids.length,
    collections: collections * 1000 / ids.length,
    longest,
    cpu: { waitedOn: share('waitedOn'), doneOn: share('doneOn'), redis: share('redis') },
  }
}

/**
 * Nothing shows directly that a request waits; but the handoffs that somebody has subscribed to do. Not all channels count: each replica also
 * subscribes to its keys' channel.
 */
async function allSubscribed (redis: Redis, count: number): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    const channels = await redis.call('PUBSUB', 'SHARDCHANNELS', '*:h:*') as string[]
    if (channels.length === count) return
    await sleep(100)
  }
  throw new Error(`the replica has not subscribed to ${count} channels within 30 s`)
}

function weighed (before: Weight, after: Weight, count: number) {
  return {
    rss: (after.asIs.rss - before.asIs.rss) / count,
    rssCollected: (after.collected.rss - before.collected.rss) / count,
    heap: (after.collected.heapUsed - before.collected.heapUsed) / count,
    external: (after.collected.external - before.collected.external) / count,
  }
}
