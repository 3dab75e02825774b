import { inboxShare, loadSettings } from '../agents.ts'
import { startRedisServer } from '../fleet/redis.ts'
import { startServiceReplica } from '../fleet/service.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { Tally, operationsMore, runTrial } from '../trial.ts'

const cutsInFull = 500
const operationsPerCut = 60
const inFlight = 64

/** The service's connections to Redis are cut repeatedly, with calls in flight. */
export const repliesCut: Scenario = {
  name: 'replies-cut',
  fault: 'replies cut',
  goal: '0 lost, 0 false conflicts, every repeat recognised',
  run,
}

async function run (t: Stage, scale: number): Promise<Outcome> {
  const redis = await startRedisServer(t)
  const service = await startServiceReplica(t, { env: { ...loadSettings, REDIS_URL: redis.url } })
  const cuts = Math.ceil(cutsInFull * scale)
  const tally = new Tally()
  await runTrial(t, {
    urls: [service.url],
    agents: inFlight,
    seed: 1,
    inboxed: inboxShare,
    async faults (history) {
      await operationsMore(history, operationsPerCut)
      for (let cut = 0; cut < cuts; cut++) {
        await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
        // The next cut waits for new operations, so that calls are in flight.
        await operationsMore(history, operationsPerCut)
      }
    },
    healed: async () => [redis.admin],
  }, tally)
  return {
    load: `${cuts} cuts with ${inFlight} in flight, ${tally.counts.requests} operations`,
    result: tally.result,
    held: tally.violations.length === 0,
  }
}
