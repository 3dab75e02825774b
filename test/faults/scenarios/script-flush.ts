import { setTimeout as sleep } from 'node:timers/promises'
import { loadSettings } from '../agents.ts'
import { startRedisServer } from '../fleet/redis.ts'
import { startServiceReplica } from '../fleet/service.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { Tally, runTrial } from '../trial.ts'

const flushesInFull = 600
const betweenFlushes = 50

/** Redis's script cache is flushed repeatedly. */
export const scriptFlush: Scenario = {
  name: 'script-flush',
  fault: `SCRIPT FLUSH every ${betweenFlushes} ms`,
  goal: '0 errors',
  run,
}

async function run (t: Stage, scale: number): Promise<Outcome> {
  const redis = await startRedisServer(t)
  const service = await startServiceReplica(t, { env: { ...loadSettings, REDIS_URL: redis.url } })
  const flushes = Math.ceil(flushesInFull * scale)
  const tally = new Tally()
  await runTrial(t, {
    urls: [service.url],
    agents: 64,
    seed: 3,
    async faults () {
      for (let flush = 0; flush < flushes; flush++) {
        await sleep(betweenFlushes)
        await redis.admin.script('FLUSH')
      }
    },
    healed: async () => [redis.admin],
  }, tally)
  const { unavailable, unanswered, requests } = tally.counts
  return {
    load: `${flushes} flushes, ${requests} operations`,
    result: `${tally.violations.length} violations, ${unavailable + unanswered} errors`,
    held: tally.violations.length === 0 && unavailable + unanswered === 0,
  }
}
