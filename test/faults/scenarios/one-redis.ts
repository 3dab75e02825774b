import { inboxShare } from '../agents.ts'
import { everything } from '../everything/settings.ts'
import { startRedisServer } from '../fleet/redis.ts'
import type { RedisServer } from '../fleet/redis.ts'
import { startServiceReplica } from '../fleet/service.ts'
import type { History } from '../history.ts'
import { Random } from '../random.ts'
import type { Scenario, Stage } from '../scenario.ts'
import { Tally, operationsMore, runTrial } from '../trial.ts'

const inFlight = 64

interface Fault {
  times: number
  options: readonly string[]
  befall (redis: RedisServer, history: History, random: Random): Promise<void>
}

/** A fault of one Redis, again and again under load on two replicas of the service. */
function onOneRedis (texts: Pick<Scenario, 'name' | 'fault' | 'goal'>, { times, options, befall }: Fault): Scenario {
  return {
    ...texts,
    async run (t: Stage, scale: number) {
      const redis = await startRedisServer(t, { options })
      const settings = await everything(t)
      const envOf = (n: number) => ({ ...settings(n), REDIS_URL: redis.url })
      const services = await Promise.all([0, 1].map(n => startServiceReplica(t, { env: envOf(n) })))
      const [random, tally, rounds] = [new Random(2), new Tally(), Math.ceil(times * scale)]
      await runTrial(t, {
        urls: services.map(({ url }) => url),
        agents: inFlight,
        seed: 2,
        inboxed: inboxShare,
        events: envOf(0),
        everything: true,
        async faults (history) {
          for (let round = 0; round < rounds; round++) await befall(redis, history, random)
          await operationsMore(history, 500)
        },
        healed: async () => [redis.admin],
      }, tally)
      return {
        load: `${rounds} times with ${inFlight} in flight, ${tally.counts.requests} operations; ${tally.delivered}`,
        result: tally.result,
        held: tally.violations.length === 0,
      }
    },
  }
}

/** The service's connections to Redis are cut, with calls in flight. */
export const repliesCut = onOneRedis({ name: 'replies-cut', fault: 'replies cut', goal: '0 violations' }, {
  times: 500,
  options: [],
  async befall (redis, history) {
    await operationsMore(history, 60)
    await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  },
})

/** A Redis that writes to disk before it answers is killed and restarted on its data. */
export const killedRedis = onOneRedis({ name: 'killed-redis', fault: 'kill -9 of Redis, `appendfsync always`', goal: '0 violations' }, {
  times: 50,
  options: ['--appendonly', 'yes', '--appendfsync', 'always'],
  async befall (redis, history, random) {
    await operationsMore(history, 200 + random.between(0, 300))
    await redis.kill()
    // Sometimes at once, sometimes when all agents have been told that it is away.
    await operationsMore(history, random.pick([0, 10, inFlight + 10]))
    await redis.restart()
  },
})
