import t from 'tap'
import type { Test } from 'tap'
import { Unavailable } from '../../src/core/errors.ts'
import { tags } from '../../src/core/ids.ts'
import { JointAllowance, RateAllowance, Rates, rateWindow } from '../../src/store/rates.ts'
import type { Allowance } from '../../src/store/rates.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import { Lanes } from '../../src/redis/lanes.ts'
import { OneMaster } from '../../src/redis/masters.ts'
import { loadScripts } from '../../src/redis/scripts.ts'
import { parseRedisUrl } from '../../src/core/redis-url.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { quiet, testStore } from '../helpers/redis.ts'
import type { TestStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

/** One request, as the hook counts it. */
async function spend (allowance: Allowance): Promise<boolean> {
  return allowance.spend(performance.now()) ?? await ask(allowance)
}

function ask (allowance: Allowance): Promise<boolean> {
  return new Promise((resolve, reject) => {
    allowance.settle((error, allowed) => error === null ? resolve(allowed) : reject(error))
  })
}

async function allowedOf (requests: Array<Promise<boolean>>): Promise<number> {
  return (await Promise.all(requests)).filter(Boolean).length
}

t.test('50 agents at once are limited independently', async t => {
  const { store: { rates } } = await testStore(t)
  const allowed = await Promise.all(Array.from({ length: 50 }, (_, agent) =>
    allowedOf(Array.from({ length: 30 }, () => spend(rates.of('acme', `agent-${agent}`, 20))))))
  t.strictSame(new Set(allowed), new Set([20]), 'one replica allows all of it and no more')
  t.equal(await allowedOf([spend(rates.of('other', 'agent-0', 20))]), 1, 'another tenant’s agent of that name is another')
})

t.test('replicas together allow the limit, and no more', async t => {
  const first = await testStore(t)
  const stores = [first, ...await Promise.all([1, 2, 3, 4].map(() => testStore(t, { prefix: first.prefix })))]
  await first.setClock(Date.now())
  for (const limit of [1, 2, 3, 7, 33, 200]) {
    const allowances = stores.map(({ store }) => store.rates.of('acme', `of-${limit}`, limit))
    // Requests at each replica until it refuses: unevenly distributed, and some at once.
    const each = await Promise.all(allowances.map(async (allowance, replica) => {
      let allowed = 0
      for (let atOnce = 1; ; atOnce = atOnce % (replica + 2) + 1) {
        const found = await allowedOf(Array.from({ length: atOnce }, () => spend(allowance)))
        allowed += found
        if (found < atOnce) return allowed
      }
    }))
    t.equal(each.reduce((a, b) => a + b), limit, `${limit} of ${limit}, none lost where each asks until it is refused`)
  }
})

/** The rates of so many replicas, by the real clock. */
function replicasOf (t: Test, { url, prefix }: TestStore, count: number): Rates[] {
  const masters = new OneMaster(parseRedisUrl(url) as ConstructorParameters<typeof OneMaster>[0], tags, quiet)
  const lanes = new Lanes(masters, null, true)
  t.teardown(() => {
    lanes.close()
    masters.close()
  })
  return Array.from({ length: count }, () => new Rates(lanes, loadScripts(), new KeyNames(prefix), tags))
}

t.test('at least half of the limit is allowed, however many replicas hold shares that they don’t need', async t => {
  const replicas = replicasOf(t, await testStore(t), 20)
  let agents = 0
  /** Every replica but the last may have just fetched a share when it gets no more requests. */
  const allowedOnce = async (limit: number, requests: number): Promise<number> => {
    const agent = `idle-${agents++}`
    const [last, ...idle] = replicas.map(rates => rates.of('acme', agent, limit))
    let allowed = 0
    for (const allowance of idle) for (let n = 0; n < requests; n++) if (await spend(allowance)) allowed++
    while (await spend(last!)) allowed++
    return allowed
  }
  for (const limit of [1, 2, 33, 200]) {
    for (const requests of [1, 3, 9]) {
      let allowed: number | undefined
      // A machine too busy for Redis's answer, or for all of it within a window, says nothing: another agent begins anew.
      while (allowed === undefined) {
        const began = performance.now()
        const found = await allowedOnce(limit, requests).catch(error => {
          if (!(error instanceof Unavailable)) throw error
          return undefined
        })
        if (performance.now() - began < rateWindow) allowed = found
      }
      t.ok(allowed <= limit && allowed >= limit / 2, `${allowed} of ${limit} after ${requests} each`)
    }
  }
})

t.test('what a replica holds is for its window alone, and an exhausted one is believed for a second', async t => {
  let [left, now] = [50, 0]
  const allowance = new RateAllowance(100, async needed => ({ given: Math.min(left, needed + 2), left, now, ends: 60_000 }))
  const asked = performance.now()
  t.ok(await ask(allowance))
  t.equal(allowance.spend(asked + 59_000), true)
  t.equal(allowance.spend(asked + 60_000), undefined, 'then Redis is asked');
  [left, now] = [0, 59_500]
  t.notOk(await ask(allowance))
  t.equal(allowance.spend(performance.now()), false)
  t.equal(allowance.spend(performance.now() + 500), undefined, 'no longer than its window')
  now = 0
  t.notOk(await ask(allowance))
  t.equal(allowance.spend(performance.now() + 900), false)
  t.equal(allowance.spend(performance.now() + 1000), undefined, 'its clock may have been changed')
})

t.test('a replica asks for all that wait, and for no more to hold than it has spent in this window', async t => {
  const asked: Array<[needed: number, spare: number]> = []
  let [now, ends] = [0, 60_000]
  const allowance = new RateAllowance(100, async (needed, spare) => {
    asked.push([needed, spare])
    return { given: needed, left: 50, now, ends }
  })
  t.equal(await allowedOf(Array.from({ length: 5 }, () => ask(allowance))), 5)
  t.strictSame(asked.splice(0), [[1, 1], [4, 5]])
  ends = 120_000
  for (let n = 0; n < 2; n++) await ask(allowance)
  t.strictSame(asked.splice(0), [[1, 6], [1, 2]], 'it was another window by then')
  now = ends
  for (let n = 0; n < 2; n++) await ask(allowance)
  t.strictSame(asked, [[1, 3], [1, 1]], 'it is over here')
})

t.test('a request needs a place in its agent’s minute and in its tenant’s; what one refuses, the other keeps', async t => {
  const { store: { rates }, prefix } = await testStore(t)
  const tenant = rates.ofTenant('acme', 60)
  const [a, b] = [rates.of('acme', 'a', 40), rates.of('acme', 'b', 100)]
  const [jointA, jointB] = [new JointAllowance(a, tenant), new JointAllowance(b, tenant)]
  // Some at once, so that some share a call, and some are spent from what is held.
  for (let round = 0; round < 10; round++) t.equal(await allowedOf(Array.from({ length: 5 }, () => spend(jointA))), round < 8 ? 5 : 0)
  t.strictSame([tenant.remaining, jointA.limit, jointA.remaining], [20, 40, 0], 'the agent’s is the tighter one')
  for (let round = 0; round < 10; round++) t.equal(await allowedOf(Array.from({ length: 5 }, () => spend(jointB))), round < 4 ? 5 : 0)
  t.strictSame([b.remaining, jointB.limit, jointB.remaining], [80, 60, 0], 'what the tenant refused is given back')
  t.ok(jointB.resetsIn(performance.now()) > 0)
  // A replica that doesn't know yet that the tenant has none left has to ask.
  const replica = (await testStore(t, { prefix })).store.rates
  const c = replica.of('acme', 'c', 10)
  t.equal(await allowedOf([spend(new JointAllowance(c, replica.ofTenant('acme', 60)))]), 0)
  t.equal(c.remaining, 10)
})

t.test('what the tenant refuses once the agent’s window is over isn’t given back to the next one', async t => {
  let windows = 0
  // Each window is over at once, until the third.
  const agent = new RateAllowance(1, async () => ({ given: 1, left: 0, now: 0, ends: ++windows < 3 ? windows : 60_000 }))
  let refuse = () => {}
  const tenant = new RateAllowance(1, () => new Promise(resolve => {
    refuse = () => resolve({ given: 0, left: 0, now: 0, ends: 60_000 })
  }))
  const joint = new JointAllowance(agent, tenant)
  const first = []
  for (let n = 0; n < 3; n++) {
    first.push(spend(joint))
    await until(() => windows === n + 1)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  refuse()
  t.equal(await allowedOf(first), 0)
  t.strictSame([windows, agent.remaining], [3, 1], 'the third’s own place, and no other')
})

t.test('if Redis doesn’t answer, requests are refused in time, and don’t count', async t => {
  const redis = await ownRedis(t)
  const { store: { rates } } = await testStore(t, { url: redis.url })
  const allowance = rates.of('acme', 'alice', 5)
  t.ok(await spend(allowance))
  t.ok(await spend(allowance), 'held')
  process.kill(redis.pid(), 'SIGSTOP')
  const answers = await Promise.allSettled(Array.from({ length: 10 }, () => spend(allowance)))
  for (const answer of answers) t.ok(answer.status === 'rejected' && answer.reason instanceof Unavailable)
  process.kill(redis.pid(), 'SIGCONT')
  const left = await until(async () => {
    try {
      return await allowedOf(Array.from({ length: 10 }, () => spend(allowance)))
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
    }
  })
  t.equal(left, 3, 'what was given up in time was not taken')
})

t.test('a full Redis still counts', async t => {
  const redis = await ownRedis(t, ['--maxmemory', '1', '--maxmemory-policy', 'noeviction'])
  const { store: { rates } } = await testStore(t, { url: redis.url })
  t.ok(await spend(rates.of('acme', 'alice', 5)))
})

t.test('a replica forgets agents that it hasn’t seen for long, and Redis doesn’t', async t => {
  const { store: { rates } } = await testStore(t)
  t.ok(await spend(rates.of('acme', 'alice', 1)))
  const known = rates.of('acme', 'alice', 1)
  for (let agent = 0; agent < 10_000; agent++) rates.of('acme', `agent-${agent}`, 1)
  t.not(rates.of('acme', 'alice', 1), known, 'forgotten')
  t.notOk(await spend(rates.of('acme', 'alice', 1)))
})
