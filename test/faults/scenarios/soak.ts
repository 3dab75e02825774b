import { setTimeout as sleep } from 'node:timers/promises'
import { inboxShare, runAgents, triedShare } from '../agents.ts'
import { noCounts } from '../asking.ts'
import { EverythingLoad } from '../everything/load.ts'
import { everything } from '../everything/settings.ts'
import { startRedisServer } from '../fleet/redis.ts'
import { startServiceReplica } from '../fleet/service.ts'
import { History, clock } from '../history.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { Visitor } from '../visits.ts'
import { HookedTenant } from '../webhook-receiver.ts'
import { describeWeights, growth, kindsOfKeys, weigh } from '../weights.ts'
import type { Weights } from '../weights.ts'

const minute = 60_000
const minutesInFull = 120
const replicas = 3
/** Handoffs a second, some seven requests each. A constant rate, or the memory of different minutes couldn't be compared. */
const perSecond = 20
/** Between two requests of a visitor (ms); each replica has one. */
const pause = 500
/** In seconds: what nobody catches or ends, a question too; RETENTION; EVENTS_RETENTION. */
const [lifetime, retention, eventsRetention] = [60, 60, 180]
/** Rounds until as much ends as begins: the events of a minute are the last to go. */
const warmUp = 8
/** How long the last of it may take to go (ms): three attempts with a question each, and then their events. */
const emptying = 15 * minute
/** How long connections stay open that a visitor doesn't need any more (ms). */
const closing = 5000
/** Of a request (ms): the machine isn't the soak's alone. */
const timeout = 20_000
/**
 * The kinds of keys that are there with nothing alive: of API keys, for 30 days after their end; of feeds, for two hours;
 * of webhooks; of the replicas themselves. For some 40 days a label's values, one key a tenant and label; which ticks of a
 * schedule ran, and whose tasks an agent's inbox has.
 */
const staying = /^(k|keys.*|e|e:since|hooks?(:due|:delivered|:failed)?|dataset|sweeps|deliverer|allowed|payload-keys|filesweep|runs:.*|tick(ed)?:beside:.*|tasks:beside:.*)$/
/** Those of each visitor. */
const visitors = /^handoff:(\{\w+\}:k:|e:t-)/

const weigher = new URL('../weigh.mjs', import.meta.url).href

/**
 * Two hours of everything, with ever new inboxes, labels, tenants, agents and keys: nothing may grow, and nothing may be left. Answers are held to
 * the contract by the other scenarios.
 */
export const soak: Scenario = {
  name: 'soak',
  fault: `none: ${minutesInFull / 60} hours, ${replicas} replicas, one Redis, events, webhooks, lists, questions, \`after\`, tokens, encryption, groups, A2A, schedules, the console, ever new tenants, keys and inboxes`,
  goal: 'nothing grows by over 2 % after warm-up; nothing is left in Redis in the end',
  run,
}

async function run (t: Stage, scale: number): Promise<Outcome> {
  const redis = await startRedisServer(t)
  const settings = await everything(t)
  const envOf = (n: number) => ({
    ...settings(n),
    REDIS_URL: redis.url,
    RETENTION: `${retention}`,
    WORK_TTL: `${lifetime}`,
    MAX_WORK_TTL: `${2 * lifetime}`,
    EVENTS_RETENTION: `${eventsRetention}`,
    DECISIONS_RETENTION: `${retention}`,
  })
  const env = envOf(0)
  const services = await Promise.all(Array.from({ length: replicas }, (_, n) =>
    startServiceReplica(t, { env: envOf(n), nodeOptions: ['--expose-gc', `--import=${weigher}`] })))
  const urls = services.map(({ url }) => url)
  const hooked = new HookedTenant('north', 1)
  t.teardown(() => hooked.stop())
  await hooked.start(urls[0]!, env)

  const counts = noCounts()
  const weights: Weights[] = []
  const wrong: string[] = []
  const failed = () => wrong.length + counts.unavailable + counts.unanswered
  let visits = 0
  let delivered = 0
  const minutes = Math.max(1, Math.round(minutesInFull * scale))
  const began = clock()
  // The last visits and the weighing take longer than a minute, so there are fewer rounds than minutes.
  for (let round = 0; clock() - began < (minutes - 1) * minute || round === 0; round++) {
    const over = AbortSignal.timeout(minute)
    const load = runAgents({
      urls,
      history: new History(),
      agents: 24,
      perSecond,
      seed: 1000 + round,
      tried: triedShare,
      inboxed: inboxShare,
      // What is left in one minute's inboxes nobody catches in the next.
      suffix: `-${round}`,
      lifetime: lifetime * 1000,
      timeout,
      until: over,
      everything: true,
    })
    const beside = new EverythingLoad(urls, round, false)
    const besides = beside.run(over)
    const visiting = urls.map(async (url, number) => {
      // A visit takes about half a minute.
      for (const latest = clock() + minute / 2; clock() < latest;) {
        const visitor = new Visitor(url, `t-${round}-${number}-${++visits}`, env, pause)
        await visitor.visit()
        counts.requests += visitor.requests
        wrong.push(...visitor.wrong)
      }
    })
    const [added] = await Promise.all([load, besides, ...visiting])
    for (const name of Object.keys(counts) as Array<keyof typeof counts>) counts[name] += added[name] + beside.counts[name]
    wrong.push(...beside.faults.map(({ member, sentence }) => `${member}: ${sentence}`))
    delivered += hooked.received.size
    hooked.received.clear()
    // By then the load's and the visitors' connections are closed.
    await sleep(closing)
    const { weights: now, maps } = await weigh(services, redis.admin, visitors)
    weights.push(now)
    t.comment(`round ${round + 1}, ${Math.round((clock() - began) / minute)} minutes: ${describeWeights(now)}; ${counts.requests} operations, ${visits} visits, ${delivered} delivered, ${failed()} failed`)
    for (const one of wrong.slice(-3)) t.comment(one)
    if (round % 10 === 0) t.comment(maps)
  }
  const took = Math.round((clock() - began) / minute)
  const left = async () => [...await kindsOfKeys(redis.admin)].filter(([kind]) => !staying.test(kind)).map(([kind, count]) => `${count} ${kind}`)
  for (const end = clock() + emptying; (await left()).length > 0 && clock() < end;) await sleep(5000)
  const stays = await left()
  const { weights: idle, maps } = await weigh(services, redis.admin, visitors)
  t.comment(`in the end: ${describeWeights(idle)}; ${[...await kindsOfKeys(redis.admin)].map(([kind, count]) => `${count} ${kind}`).join(', ')}; ${maps}`)
  const { grown, described } = growth(weights.slice(Math.min(warmUp, weights.length >> 1)))
  return {
    load: `${took} minutes, ${counts.requests.toLocaleString('en')} operations (${perSecond} handoffs a second), ${visits} visits; ${delivered.toLocaleString('en')} events for webhooks`,
    result: `${described} after warm-up (${describeWeights(weights.at(-1)!)} in the end); left: ${stays.join(', ') || 'nothing'}; ${failed()} requests failed`,
    held: grown.length === 0 && stays.length === 0 && failed() === 0,
  }
}
