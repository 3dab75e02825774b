import { inboxShare, triedShare } from '../agents.ts'
import { everything } from '../everything/settings.ts'
import { startHaproxy } from '../fleet/haproxy.ts'
import { freePort } from '../fleet/ports.ts'
import { loopback } from '../fleet/process.ts'
import { startRedisServer } from '../fleet/redis.ts'
import { startServiceReplica, stopReplica } from '../fleet/service.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { Tally, operationsMore, runTrial } from '../trial.ts'

const roundsInFull = 20
const drainTimeout = 15_000

/** Three replicas behind HAProxy are restarted in turn while agents go on working, some of which wait for an inbox. */
export const rollingRestarts: Scenario = {
  name: 'rolling-restarts',
  fault: `${roundsInFull} rolling restarts of 3 replicas behind HAProxy under load`,
  goal: '0 broken, 0 5xx, 0 violations',
  async run (t: Stage, scale: number): Promise<Outcome> {
    const redis = await startRedisServer(t)
    const ports = [await freePort(loopback), await freePort(loopback), await freePort(loopback)]
    const settings = await everything(t)
    const start = (port: number) => startServiceReplica(t, {
      env: { ...settings(ports.indexOf(port)), REDIS_URL: redis.url, PORT: String(port), DRAIN_TIMEOUT: String(drainTimeout) },
    })
    const replicas = await Promise.all(ports.map(start))
    const proxy = await startHaproxy(t, ports.map(port => `127.0.0.1:${port}`))
    const tally = new Tally()
    const bad: string[] = []
    let restarts = 0
    await runTrial(t, {
      urls: [proxy.url],
      agents: 48,
      seed: 4,
      tried: triedShare,
      inboxed: inboxShare,
      everything: true,
      timeout: drainTimeout,
      async faults (history) {
        for (let round = 0; round < Math.max(1, Math.round(roundsInFull * scale)); round++) {
          for (const [index, port] of ports.entries()) {
            await operationsMore(history, 500)
            bad.push(...await stopReplica(replicas[index]!, drainTimeout + 2000))
            replicas[index] = await start(port)
            await proxy.untilUp(ports.length)
            restarts++
          }
        }
      },
      healed: async () => [redis.admin],
    }, tally)
    const { serverErrors } = await proxy.counts()
    const { requests, unanswered, unavailable } = tally.counts
    return {
      load: `${requests.toLocaleString('en')} requests, ${restarts} restarts`,
      result: `${unanswered} broken, ${unavailable} 5xx (${serverErrors} by HAProxy’s count), ${tally.result}; ${bad.length} bad exits${bad.map(one => ` (${one})`).join('')}`,
      held: unanswered + unavailable + serverErrors + bad.length + tally.violations.length === 0,
    }
  },
}
