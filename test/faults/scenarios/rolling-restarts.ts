import { startHaproxy } from '../fleet/haproxy.ts'
import { freePort } from '../fleet/ports.ts'
import { loopback } from '../fleet/process.ts'
import { startRedisServer } from '../fleet/redis.ts'
import { startServiceReplica } from '../fleet/service.ts'
import type { ServiceReplica } from '../fleet/service.ts'
import { loadSettings } from '../load-keys.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { serveInbox } from '../inbox-workers.ts'
import { lasting, steadyLoad } from '../steady-load.ts'

const agents = 48
/** The share of handoffs with attempts. */
const tried = 0.3
/** How many workers wait for an inbox meanwhile, and what comes into it a second. */
const workers = 200
const forInbox = 20
const drainTimeout = 15_000

/** Three replicas behind HAProxy are restarted in turn while agents go on working. */
export const rollingRestarts: Scenario = {
  name: 'rolling-restarts',
  fault: '20 rolling restarts of 3 replicas behind HAProxy at 70 % load, beside 200 workers that wait for an inbox',
  goal: '≥ 1 million requests: 0 broken, 0 5xx; nothing lost from the inbox',
  async run (t: Stage, scale: number): Promise<Outcome> {
    const redis = await startRedisServer(t)
    const ports = [await freePort(loopback), await freePort(loopback), await freePort(loopback)]
    const start = (port: number) => startServiceReplica(t, {
      env: { ...loadSettings, REDIS_URL: redis.url, PORT: String(port), DRAIN_TIMEOUT: String(drainTimeout) }
    })
    const replicas = await Promise.all(ports.map(start))
    const proxy = await startHaproxy(t, ports.map(port => `127.0.0.1:${port}`))

    // Warm up first: a cold service saturates too early.
    await steadyLoad(proxy.url, { agents, perSecond: Infinity, tried, isOver: lasting(500 + 4500 * scale) })
    const { rate: saturation } = await steadyLoad(proxy.url, { agents, perSecond: Infinity, tried, isOver: lasting(1000 + 9000 * scale) })
    const wanted = 1e6 * scale
    const rounds = Math.max(1, Math.round(20 * scale))
    let restarted = false
    const perSecond = 0.7 * saturation
    const load = steadyLoad(proxy.url, { agents, perSecond, tried, isOver: requests => restarted && requests >= wanted })
    const over = new AbortController()
    const served = serveInbox(proxy.url, { workers, perSecond: forInbox, over: over.signal })
    const stops: Stop[] = []
    for (let round = 1; round <= rounds; round++) {
      for (const [index, port] of ports.entries()) {
        stops.push(await stop(replicas[index] as ServiceReplica))
        replicas[index] = await start(port)
        await proxy.untilUp(ports.length)
      }
      t.comment(`rolling-restarts: round ${round} of ${rounds}`)
    }
    restarted = true
    const tally = await load
    over.abort()
    const inbox = await served
    const { serverErrors, retries } = await proxy.counts()
    const bad = stops.filter(({ how, after }) => how !== 0 || after > drainTimeout)
    const longest = Math.max(...stops.map(({ after }) => after))
    const wrong = [...Object.entries(tally.wrong), ...Object.entries(inbox.wrong)].map(([what, times]) => `, ${times} × ${what}`).join('')
    return {
      load: `${tally.requests.toLocaleString('en')} requests at ${Math.round(tally.rate)}/s of ${Math.round(saturation)}/s, ${stops.length} restarts; ${inbox.passed} passed to the inbox, ${workers} workers`,
      result: `${tally.broken} broken, ${tally.serverErrors} 5xx (${serverErrors} by HAProxy’s count, ${retries} connections tried again)${wrong}; ` +
        `${bad.length} bad exits${bad.map(({ how, log }) => ` (${how}: ${log})`).join('')}, the longest stop took ${(longest / 1000).toFixed(1)} s; ${inbox.passed - inbox.done} of the inbox not done`,
      held: tally.broken + tally.serverErrors + serverErrors + bad.length === 0 && wrong === '' && tally.requests >= wanted && inbox.passed > 0 && inbox.done === inbox.passed,
    }
  },
}

interface Stop { how: number | string, after: number, log: string }

/** As an orchestrator does: SIGTERM, and SIGKILL long after the service should have ended. */
async function stop (replica: ServiceReplica): Promise<Stop> {
  const began = performance.now()
  await replica.stop(drainTimeout + 2000)
  return { how: await replica.ended, after: performance.now() - began, log: replica.lines.slice(-3).join(' ') }
}
