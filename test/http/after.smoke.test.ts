import slotOf from 'cluster-key-slot'
import t from 'tap'
import { buildApp } from '../../src/app.ts'
import { KeyRing } from '../../src/auth/key-ring.ts'
import { loadConfig } from '../../src/config.ts'
import { tagOf } from '../../src/core/ids.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import { secrets, testApp, testKeys } from '../helpers/app.ts'
import type { Who } from '../helpers/app.ts'
import { untilServing } from '../helpers/handoffs.ts'
import { logSink } from '../helpers/log-sink.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { isProblem } from '../helpers/problems.ts'
import { fleetStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

t.setTimeout(300_000)

t.test('what comes after others in a Cluster, for two replicas, with slots that move and a master that changes', async t => {
  const cluster = await startCluster(t, { nodeTimeoutMs: 1000 })
  const config = loadConfig({ ...testKeys, EVENTS_RETENTION: '600' })
  const apps = await Promise.all([1, 2].map(async () => {
    const { log } = logSink(t)
    const store = fleetStore(t, cluster.url, { replicas: 1, eventsRetention: 600_000, log })
    await untilServing(store.handoffs)
    const keys = new KeyRing(config.apiKeys, store, log)
    const app = await buildApp(config, { store, keys, log })
    t.teardown(() => app.close())
    store.sweeper.start()
    return app
  }))
  let turn = 0
  const call = async (who: Who, method: 'GET' | 'POST', url: string, payload?: object): Promise<any> => {
    for (;;) {
      const answer = await apps[turn++ % 2]!.inject({ method, url, headers: { authorization: `Bearer ${secrets[who]}` }, ...payload && { payload } })
      if (answer.statusCode < 300) return answer.json()
      // A slot on the move, or a new master: the outcome may be unknown, and the next attempt tells.
      if (answer.statusCode === 409 && /already_(done|failed)/.test(answer.body)) return answer.json()
      if (answer.statusCode !== 503) throw new Error(answer.body)
    }
  }
  const pass = async (more: object = {}) => (await call('alice', 'POST', '/api/pass', { task: 't', ...more })).handoff_id as string
  const start = async (more: object = {}) => {
    const id = await pass(more)
    await call('bob', 'GET', `/api/catch/${id}`)
    return id
  }
  const done = (id: string) => call('bob', 'POST', `/api/done/${id}`, { output: { id } })
  const ended = async (ids: string[]) => (await call('alice', 'POST', '/api/wait?wait=30', { ids })).items as Array<Record<string, unknown>>
  const released = (id: string) => until(async () => !('blocked_by' in await call('alice', 'GET', `/api/status/${id}`)))

  await t.test('parts, and what sums them up', async t => {
    const parts = await Promise.all(Array.from({ length: 30 }, () => start({ max_attempts: 2, retry_delay: 0 })))
    const sum = await pass({ after: parts, to: 'sums' })
    const { reissued_as: again } = await call('bob', 'POST', `/api/fail/${parts[0]}`, { error: { message: 'm' } })
    await Promise.all(parts.slice(1).map(done))
    await call('bob', 'GET', `/api/catch/${again}`)
    await done(again)
    const { items } = await call('bob', 'POST', '/api/catch?wait=30', { inbox: 'sums' })
    t.equal(items[0].handoff_id, sum)
    t.strictSame(items[0].after.map(({ result }: any) => result.id), [again, ...parts.slice(1)])
  })

  await t.test('a failure cancels a tree of them, each once', async t => {
    const head = await start()
    const second = await Promise.all(Array.from({ length: 110 }, () => pass({ after: [head] })))
    const third = await Promise.all(second.slice(0, 10).map(id => pass({ after: [id] })))
    const ids = [...second, ...third]
    await call('bob', 'POST', `/api/fail/${head}`, { error: { message: 'm' } })
    for (let i = 0; i < ids.length; i += 100) t.ok((await ended(ids.slice(i, i + 100))).every(({ status }) => status === 'cancelled'))
    const seen = await until(async () => {
      const counts = new Map<string, number>()
      for (let after = '0-0'; ;) {
        const { items, next } = await call('alice', 'GET', `/api/events?after=${after}&types=handoff.cancelled`)
        for (const { data: { handoff_id: id } } of items) if (ids.includes(id)) counts.set(id, (counts.get(id) ?? 0) + 1)
        if (items.length === 0) break
        after = next
      }
      return counts.size === ids.length ? counts : null
    })
    t.ok([...seen.values()].every(count => count === 1))
  })

  await t.test('while slots move, and after a failover', async t => {
    const [one, two] = [await start(), await start()]
    const [first, second] = [await pass({ after: [one] }), await pass({ after: [two, one], require_human: true })]
    const from = await cluster.ownerOf(slotOf(tagOf(one)))
    const to = (await cluster.masters()).find(server => server !== from)!
    await Promise.all([cluster.moveSlot(slotOf(tagOf(one)), to), done(one)])
    await released(first)
    const [replica] = await cluster.replicasOf(await cluster.ownerOf(slotOf(tagOf(second))))
    await Promise.all([cluster.failover(replica!), done(two)])
    await released(second)
    t.match(await call('bob', 'GET', `/api/catch/${first}`), { after: [{ handoff_id: one, result: { id: one } }] })
  })
})

for (const isSpread of [false, true]) {
  t.test(`a full Redis refuses what comes after others, and releases it${isSpread ? ', as in a Cluster' : ''}`, async t => {
    const redis = await ownRedis(t)
    const service = await testApp(t, { EVENTS_RETENTION: '60' }, { url: redis.url, limitedUrl: redis.url, isSpread })
    const { call, caught, pass, store } = service
    store.sweeper.start()
    const [one, two, three] = [await caught({ output: { text: 'x'.repeat(100) } }), await caught({ work_within: 1 }), await caught({ output: { text: 'x'.repeat(100) } })]
    const released = await Promise.all(Array.from({ length: 120 }, () => pass({ after: [one], to: 'work' })))
    const [cancelled, behind, missed] = [await pass({ after: [two] }), await pass({ after: [one, two], require_human: true }), await pass({ after: [three] })]
    const next = await pass({ after: [cancelled] })
    await redis.admin.config('SET', 'maxmemory', 1)
    isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', after: [one] }), 503, 'unavailable')
    t.equal((await call('bob', 'POST', `/api/done/${one}`)).statusCode, 200)
    t.equal((await call('bob', 'POST', `/api/cancel/${three}`)).statusCode, 403)
    t.equal((await call('alice', 'POST', `/api/cancel/${three}`, { force: true })).statusCode, 200)
    const waits = [cancelled, behind, missed, next]
    const { items } = (await call('alice', 'POST', '/api/wait?wait=30', { ids: waits })).json()
    t.match(items, waits.map(() => ({ status: 'cancelled', ended_by: null })))
    await until(async () => (await call('alice', 'GET', '/api/inboxes/work')).json().blocked === 0)
    t.match((await call('alice', 'GET', '/api/inboxes/work')).json(), { pending: 120 })
    t.match((await call('bob', 'GET', `/api/catch/${released[119]}`)).json(), { after: [{ handoff_id: one, status: 'done' }] })
  })
}
