import { setTimeout as sleep } from 'node:timers/promises'
import { median } from '../../../bench/report.ts'
import { loadSettings } from '../agents.ts'
import { startRedisServer } from '../fleet/redis.ts'
import type { RedisServer } from '../fleet/redis.ts'
import { startServiceReplica } from '../fleet/service.ts'
import type { ServiceReplica } from '../fleet/service.ts'
import { until } from '../../helpers/until.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { Tally, runTrial } from '../trial.ts'

const minutesInFull = 30
const replicas = 3
/** Handoffs per second, some seven requests each. A constant rate, or the memory of different minutes couldn't be compared. */
const perSecond = 120
/** RETENTION in seconds: shorter than the warm-up, so that afterwards as many handoffs are deleted as are made. */
const retention = 120
/** Lifetimes in seconds of handoffs that nobody catches or reports done, so that all end. */
const lifetime = 90
/** As a share of the first value after the warm-up. */
const allowed = 1.05

const weigher = new URL('../weigh.mjs', import.meta.url).href

/** Bytes at the end of a minute: all replicas' heaps after a garbage collection, and Redis's data. */
interface Weight { services: number, redis: number }

/** Half an hour of handoffs that are passed, caught, expire and are deleted: memory must not grow anywhere. */
export const soak: Scenario = {
  name: 'soak',
  fault: `soak, ${minutesInFull} minutes, ${replicas} replicas, churn and expiry`,
  goal: 'memory flat after warm-up, I7 exact',
  run,
}

async function run (t: Stage, scale: number): Promise<Outcome> {
  const redis = await startRedisServer(t)
  const env = { ...loadSettings, REDIS_URL: redis.url, RETENTION: String(retention), WORK_TTL: String(lifetime) }
  const services = await Promise.all(Array.from({ length: replicas }, () => startServiceReplica(t, { env, nodeOptions: ['--expose-gc', `--import=${weigher}`] })))
  const minutes = Math.ceil(minutesInFull * scale)
  const tally = new Tally()
  const weights: Weight[] = []
  for (let minute = 0; minute < minutes; minute++) {
    await runTrial(t, {
      urls: services.map(({ url }) => url),
      agents: 24,
      perSecond,
      seed: 1000 + minute,
      brief: 0.3,
      lifetime,
      tolerance: { workTtl: lifetime * 1000 },
      faults: () => sleep(60_000 * Math.min(1, minutesInFull * scale)),
      healed: async () => [redis.admin],
    }, tally)
    weights.push({ services: await heldBy(services), redis: await usedMemory(redis) })
    t.comment(`minute ${minute + 1}: ${describe(weights.at(-1)!)}, ${tally.counts.requests} operations, ${tally.violations.length} violations`)
  }
  const settled = weights.slice(Math.floor(minutes / 6))
  const growth = (of: keyof Weight) => {
    const fifth = Math.max(1, Math.floor(settled.length / 5))
    return median(settled.slice(-fifth).map(weight => weight[of])) / median(settled.slice(0, fifth).map(weight => weight[of]))
  }
  const [services1, redis1] = [growth('services'), growth('redis')]
  return {
    load: `${minutes} minutes, ${tally.counts.requests} operations (${perSecond} handoffs a second), ${replicas} replicas, 3 in 10 handoffs left to expire`,
    result: `services ${percent(services1)}, Redis ${percent(redis1)} after warm-up (${describe(settled.at(-1)!)} in the end); ${tally.violations.length} violations`,
    held: services1 <= allowed && redis1 <= allowed && tally.violations.length === 0,
  }
}

async function heldBy (services: readonly ServiceReplica[]): Promise<number> {
  const held = await Promise.all(services.map(async ({ pid, lines }) => {
    const told = () => lines.filter(line => line.startsWith('{"held":'))
    const before = told().length
    process.kill(pid, 'SIGWINCH')
    await until(() => told().length > before)
    return (JSON.parse(told().at(-1)!) as { held: number }).held
  }))
  return held.reduce((sum, bytes) => sum + bytes, 0)
}

async function usedMemory ({ admin }: RedisServer): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await admin.info('memory'))![1])
}

function describe ({ services, redis }: Weight): string {
  return `services ${(services / 1e6).toFixed(1)} MB, Redis ${(redis / 1e6).toFixed(1)} MB`
}

function percent (ratio: number): string {
  return `${ratio >= 1 ? '+' : ''}${((ratio - 1) * 100).toFixed(1)} %`
}
