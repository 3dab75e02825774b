import { eventSettings, inboxShare } from '../agents.ts'
import { startRedisServer } from '../fleet/redis.ts'
import { startServiceReplica } from '../fleet/service.ts'
import { Random } from '../random.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { Tally, operationsMore, runTrial } from '../trial.ts'

const killsInFull = 50
const inFlight = 64

/** A Redis that writes to disk before it answers is killed under load and restarted on its data. */
export const killedRedis: Scenario = {
  name: 'killed-redis',
  fault: 'kill -9 of Redis, `appendfsync always`',
  goal: '0 violations',
  run,
}

async function run (t: Stage, scale: number): Promise<Outcome> {
  const redis = await startRedisServer(t, { options: ['--appendonly', 'yes', '--appendfsync', 'always'] })
  const env = { ...eventSettings, REDIS_URL: redis.url }
  const services = await Promise.all([1, 2].map(() => startServiceReplica(t, { env })))
  const kills = Math.ceil(killsInFull * scale)
  const random = new Random(2)
  const tally = new Tally()
  await runTrial(t, {
    urls: services.map(({ url }) => url),
    agents: inFlight,
    seed: 2,
    inboxed: inboxShare,
    events: env,
    async faults (history) {
      for (let kill = 0; kill < kills; kill++) {
        await operationsMore(history, 200 + random.between(0, 300))
        await redis.kill()
        // Sometimes at once, sometimes when all agents have been told that it is away.
        await operationsMore(history, random.pick([0, 10, inFlight + 10]))
        await redis.restart()
      }
      await operationsMore(history, 500)
    },
    healed: async () => [redis.admin],
  }, tally)
  return {
    load: `${kills} kills, ${tally.counts.requests} operations all along, 2 replicas of the service; ${tally.delivered}`,
    result: tally.result,
    held: tally.violations.length === 0,
  }
}
