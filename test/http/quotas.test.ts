import t from 'tap'
import { tagOf } from '../../src/core/ids.ts'
import { callerOf } from '../../src/core/model.ts'
import type { Scope } from '../../src/core/model.ts'
import { testApp } from '../helpers/app.ts'
import { arrangements } from '../helpers/extent.ts'
import { callText } from '../helpers/mcp.ts'
import { isProblem } from '../helpers/problems.ts'
import { callsOf } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

/** How many handoffs of a tenant, or that an agent passed, may be live. Each subtest has a tenant of its own, and there are two replicas. */

const tenants = ['counts', 'frees', 'replays', 'races', 'shares', 'ways', 'runs', 'gives', 'agents', 'lines', 'before', 'soon', 'older', 'gone', 'again', 'none'] as const
type Tenant = typeof tenants[number]
const agents: Array<[string, Scope[]]> = [['ann', ['pass', 'catch', 'status']], ['ben', ['pass', 'catch', 'status']], ['olga', ['operate', 'status', 'approve']]]
const secretOf = (tenant: string, agent: string) => `${tenant}-${agent}-secret-0123456789`
const more = tenants.flatMap(tenant => agents.map(([agent, scopes]) => ({ caller: callerOf(tenant, agent, scopes), secret: secretOf(tenant, agent) })))

for (const isSpread of arrangements) {
  t.comment(isSpread ? 'as in a Cluster' : 'on one Redis')
  const one = await testApp(t, { RETENTION: '3600' }, { isSpread }, more)
  const other = await testApp(t, { RETENTION: '3600' }, { isSpread, prefix: one.prefix }, more)
  await Promise.all([one, other].map(({ app }) => app.ready()))
  const { store, redis, prefix } = one

  function as (tenant: Tenant, agent = 'ann', { app } = one) {
    const ask = async (method: 'GET' | 'POST' | 'PUT', url: string, body?: object | string, headers: Record<string, string> = {}) => await app.inject({
      method, url, headers: { authorization: `Bearer ${secretOf(tenant, agent)}`, ...body !== undefined && { 'content-type': 'application/json' }, ...headers }, ...body !== undefined && { payload: body }
    })
    const pass = async (members: object = {}, headers: Record<string, string> = {}) => await ask('POST', '/api/pass', { task: 't', ...members }, headers)
    return {
      ask,
      pass,
      passed: async (members: object = {}): Promise<string> => {
        const answer = await pass(members)
        if (answer.statusCode !== 201) throw new Error(answer.body)
        return answer.json().handoff_id
      },
      /** Passes as soon as there is room again: a refusal may be by a count that is a second old. */
      room: async () => await until(async () => (await pass()).statusCode === 201, 3000),
      refused: async () => isProblem(t, await pass(), 429, 'too_many_live'),
    }
  }
  async function limit (tenant: Tenant, agent: string | null, maxLive: number | null) {
    await store.keyRecords.limits.set({ tenant, agent, maxLive }, 'me')
    await until(() => [one, other].every(({ keys: { limits } }) => {
      const limit = limits.maxLiveOf(tenant)
      return ((agent === null ? limit?.all : limit?.agents.get(agent)) ?? null) === maxLive
    }))
  }

  t.test('what is pending or caught counts, however it was passed', async t => {
    const { ask, pass, passed, refused, room } = as('counts')
    const first = await passed()
    await limit('counts', null, 6)
    await passed({ require_human: true })
    await passed({ to: 'work', delay: 60 })
    await passed({ after: [first] })
    await passed({ to: 'work', labels: { run: 'x' } })
    const caught = await passed({ to: 'other' })
    await as('counts', 'ben').ask('GET', `/api/catch/${caught}`)
    const answer = await pass()
    t.match(isProblem(t, answer, 429, 'too_many_live'), { retryable: true })
    t.equal(answer.headers['retry-after'], '1')
    isProblem(t, await pass({ require_human: true }), 429, 'too_many_live')
    isProblem(t, await as('counts', 'ben').pass(), 429, 'too_many_live')
    t.equal((await ask('GET', `/api/status/${first}`)).statusCode, 200, 'all else goes on')
    t.equal((await as('none').pass()).statusCode, 201, 'and so do other tenants')
    t.equal(await store.live.count('counts', null), 6)
    const calls = { before: callsOf(store, 'count'), ofCount: 0 }
    await store.live.count('counts', null)
    calls.ofCount = callsOf(store, 'count') - calls.before
    const statuses = new Set<number>()
    for (const begun = performance.now(); performance.now() - begun < 600;) statuses.add((await pass()).statusCode)
    t.strictSame([...statuses], [429])
    t.ok(callsOf(store, 'count') - calls.before <= 2 * calls.ofCount, 'refusals make at most one count a second')
    await limit('counts', null, 7)
    await room()
    await refused()
    await limit('counts', null, null)
    t.equal((await pass()).statusCode, 201)
  })

  t.test('what ends makes room', async t => {
    const { ask, pass, passed, refused, room } = as('frees')
    const ben = as('frees', 'ben')
    await limit('frees', null, 1)
    const caught = async () => {
      const id = await until(async () => (await pass({ to: 'work' })).json().handoff_id)
      t.equal((await ben.ask('GET', `/api/catch/${id}`)).statusCode, 200)
      return id
    }
    const ends: Array<() => Promise<unknown>> = [
      async () => await ben.ask('POST', `/api/done/${await caught()}`, { output: {} }),
      async () => await ben.ask('POST', `/api/fail/${await caught()}`, { error: { message: 'x' } }),
      async () => await ben.ask('POST', `/api/decline/${await caught()}`, { reason: 'x' }),
      async () => await ask('POST', `/api/cancel/${await caught()}`, { force: true }),
      async () => {
        const id = await until(async () => (await pass({ require_human: true })).json().handoff_id)
        await as('frees', 'olga').ask('POST', `/api/reject/${id}`, { note: 'n' })
      },
      async () => {
        const id = await until(async () => (await pass({ expires_in: 1 })).json().handoff_id)
        await until(async () => (await ask('GET', `/api/status/${id}`)).json().status === 'expired')
        await store.handoffs.sweep(tagOf(id), 100)
      },
    ]
    for (const [n, end] of ends.entries()) {
      await end()
      t.equal(await store.live.count('frees', null), 0, `end ${n}`)
    }
    await room()
    await refused()
    await limit('frees', null, null)
    await passed()
  })

  t.test('the same operation again is answered as before', async t => {
    const { pass, refused } = as('replays')
    await limit('replays', null, 2)
    const keyed = async (name: string, members: object = {}) => await pass(members, { 'idempotency-key': name })
    const [plain, human] = [await keyed('plain'), await keyed('human', { require_human: true })]
    t.strictSame([plain.statusCode, human.statusCode], [201, 201])
    await refused()
    for (const [first, again] of [[plain, await keyed('plain')], [human, await keyed('human', { require_human: true })]] as const) {
      t.equal(again.statusCode, 201)
      t.strictSame(again.json(), first.json())
      t.equal(again.headers['idempotency-replayed'], 'true')
    }
    isProblem(t, await keyed('plain', { context: {} }), 422, 'idempotency_key_reused')
    isProblem(t, await keyed('new'), 429, 'too_many_live')
  })

  t.test('of those that come at once no more get through', async t => {
    await limit('races', null, 10)
    const answers = await Promise.all(Array.from({ length: 40 }, async (_, n) => await as('races').pass(n % 2 === 0 ? {} : { to: 'work' })))
    t.equal(answers.filter(({ statusCode }) => statusCode === 201).length, 10)
    t.equal(await store.live.count('races', null), 10)
  })

  t.test('replicas learn within 2 s what others let through', async t => {
    const [here, there] = [as('shares'), as('shares', 'ben', other)]
    await limit('shares', null, 3)
    await here.passed()
    await there.passed()
    await here.passed()
    const begun = performance.now()
    let more = 0
    await until(async () => (await there.pass()).statusCode === 429 || ++more > 100)
    t.ok(performance.now() - begun < 2500)
    t.equal(await store.live.count('shares', null), 3 + more)
  })

  t.test('batches, MCP and schedules', async t => {
    const { ask } = as('ways')
    await limit('ways', null, 2)
    const batch = async () => (await ask('POST', '/api/batch', { operations: [1, 2, 3].map(() => ({ op: 'pass', body: { task: 't' } })) })).json().results
    t.match((await batch()).map(({ status }: { status: number }) => status).sort(), [201, 201, 429])
    t.match(await batch(), [1, 2, 3].map(() => ({ status: 429, body: { code: 'too_many_live', retryable: true } })))
    const tool = (await ask('POST', '/mcp', callText('handoff_pass', '{"task":"t"}'))).json().result
    t.match(tool, { isError: true })
    t.match(JSON.parse(tool.content[0].text), { code: 'too_many_live', retryable: true, retry_after: 1 })
    await ask('PUT', '/api/schedules/one', { every: 60, handoff: { task: 't' } })
    isProblem(t, await ask('POST', '/api/schedules/one/run'), 429, 'too_many_live')
    t.match((await ask('GET', '/api/schedules/one/runs')).json().items, [{ by: 'run', outcome: 'refused', code: 'too_many_live' }])
  })

  t.test('what is refused otherwise takes no room', async t => {
    const { pass, passed, refused } = as('gives')
    await as('gives', 'olga').ask('PUT', '/api/inboxes/full', { max_pending: 1 })
    await passed({ to: 'full' })
    await limit('gives', null, 3)
    await passed()
    for (let n = 0; n < 5; n++) isProblem(t, await pass({ to: 'full' }), 429, 'inbox_full')
    await passed()
    await refused()
    // What the tenant's limit refuses takes nothing from the agent's, either.
    await limit('gives', 'ann', 2)
    for (let n = 0; n < 3; n++) await refused()
    await limit('gives', null, null)
    await passed()
  })

  t.test('an agent’s limit is about what it passed', async t => {
    const [ann, ben] = [as('agents'), as('agents', 'ben')]
    await limit('agents', 'ann', 2)
    await ben.passed()
    const ids = [await ann.passed(), await ann.passed({ to: 'work', labels: { run: 'x' }, max_attempts: 3, retry_delay: 1 })]
    await ann.refused()
    await ben.passed()
    t.strictSame([await store.live.count('agents', 'ann'), await store.live.count('agents', null)], [2, 4])
    await ben.ask('GET', `/api/catch/${ids[1]}`)
    await ben.ask('POST', `/api/fail/${ids[1]}`, { error: { message: 'x' } })
    t.equal(await store.live.count('agents', 'ann'), 2, 'its next attempt counts')
    await ben.ask('GET', `/api/catch/${ids[0]}`)
    await ben.ask('POST', `/api/done/${ids[0]}`, {})
    t.equal(await store.live.count('agents', 'ann'), 1)
    await ann.room()
    await ann.refused()
    await limit('agents', null, 5)
    await ben.passed()
    await ben.refused()
    await limit('agents', 'ann', null)
    await ann.refused()
  })

  t.test('every end of what an agent passed makes room, and a successor is never refused', async t => {
    const [ann, ben, olga] = [as('lines'), as('lines', 'ben'), as('lines', 'olga')]
    await limit('lines', 'ann', 100)
    const live = async () => await store.live.count('lines', 'ann')
    const caught = async (members: object = {}) => {
      const id = await ann.passed({ to: 'work', ...members })
      await ben.ask('GET', `/api/catch/${id}`)
      return id
    }
    const failed = [await caught(), await caught()]
    t.equal(await live(), 2)
    await ben.ask('POST', `/api/fail/${failed[0]}`, { error: { message: 'x' } })
    await ben.ask('POST', `/api/decline/${failed[1]}`, { reason: 'x' })
    t.equal(await live(), 0)
    await ann.ask('POST', `/api/cancel/${await ann.passed()}`, {})
    await olga.ask('POST', `/api/reject/${await ann.passed({ require_human: true })}`, { note: 'n' })
    const [gone, stalled] = [await ann.passed({ expires_in: 1 }), await caught({ heartbeat_within: 5, work_within: 5, max_attempts: 2, retry_delay: 1 })]
    const first = await ann.passed()
    const second = await ann.passed({ after: [first] })
    await ann.ask('POST', `/api/cancel/${first}`, {})
    await until(async () => {
      await store.handoffs.sweep(tagOf(second), 100).then(({ ended, blocked }) => store.dependents.swept(ended, blocked))
      return (await ann.ask('GET', `/api/status/${second}`)).json().status === 'cancelled'
    })
    await until(async () => (await ann.ask('GET', `/api/status/${gone}`)).json().status === 'expired')
    await store.handoffs.sweep(tagOf(gone), 100)
    t.equal(await live(), 1)
    await one.setClock(Date.now() + 60_000)
    await store.handoffs.sweep(tagOf(stalled), 100)
    t.match((await ann.ask('GET', `/api/status/${stalled}`)).json(), { status: 'expired', reissued_as: String })
    t.equal(await live(), 1, 'its next attempt')
    await one.setClock(Date.now())

    await limit('lines', 'ann', 1)
    await ann.refused()
    t.match((await olga.ask('POST', '/api/redrive', { inbox: 'work' })).json(), { reissued: 2 })
    t.equal(await live(), 3)
    await ann.refused()
    t.strictSame(await redis.keys(`${prefix}:*ran:lines:*`), [], 'nothing is kept of what has ended')
  })

  t.test('what is tried again counts, though it had ended before its agent got a limit', async t => {
    const [ann, ben, olga] = [as('again'), as('again', 'ben'), as('again', 'olga')]
    const live = async () => await store.live.count('again', 'ann')
    const failed = async (who = ann, members: object = {}) => {
      const id = await who.passed({ to: 'work', ...members })
      await ben.ask('GET', `/api/catch/${id}`)
      await ben.ask('POST', `/api/fail/${id}`, { error: { message: 'x' } })
      return id
    }
    const [first, taken] = [await failed(), await ann.passed()]
    for (const labels of [undefined, { run: 'x' }]) await failed(ann, { ...labels && { labels } })
    await failed(ben)
    await ben.ask('GET', `/api/catch/${taken}`)
    await limit('again', 'ann', 100)
    t.equal(await live(), 0)
    const next = (await ann.ask('POST', `/api/reissue/${first}`, {})).json().handoff_id
    t.equal(await live(), 1)
    await ann.ask('POST', `/api/reissue/${first}`, {})
    t.equal(await live(), 1, 'once')
    await ann.ask('POST', `/api/reissue/${taken}`, {})
    t.equal(await live(), 2, 'what was taken from its catcher')
    t.match((await olga.ask('POST', '/api/redrive', { inbox: 'work' })).json(), { reissued: 3 })
    t.equal(await live(), 4, 'not what others passed')
    await limit('again', 'ann', 1)
    await ann.refused()
    await ben.ask('GET', `/api/catch/${next}`)
    t.match((await ben.ask('POST', `/api/done/${next}`, { output: {} })).json(), { status: 'done' })
    t.equal(await live(), 3)
    await store.indexer.round()
    t.equal(await live(), 3)
  })

  t.test('what an agent passed before it had a limit counts', async t => {
    const [ann, ben] = [as('before'), as('before', 'ben')]
    const plain = await ann.passed()
    const ids = [plain, await ann.passed({ to: 'work' }), await ann.passed({ require_human: true }), await ann.passed({ to: 'work' })]
    for (const id of ids.slice(1, 2)) await ben.ask('GET', `/api/catch/${id}`)
    await ben.passed()
    await limit('before', 'ann', 4)
    const warnings: Error[] = []
    const warned = (warning: Error) => { warnings.push(warning) }
    process.on('warning', warned)
    await store.indexer.walk('before')
    process.off('warning', warned)
    t.strictSame(warnings, [])
    t.equal(await store.live.count('before', 'ann'), 4)
    await ann.refused()
    await store.indexer.walk('before')
    await store.indexer.round()
    t.equal(await store.live.count('before', 'ann'), 4, 'once')
    await ben.ask('GET', `/api/catch/${plain}`)
    t.match((await ben.ask('POST', `/api/done/${plain}`, { output: { a: 1 } })).json(), { status: 'done' })
    t.match((await ben.ask('POST', `/api/done/${ids[1]}`, {})).json(), { status: 'done' })
    t.equal(await store.live.count('before', 'ann'), 2)
    t.match((await ann.ask('GET', `/api/status/${plain}`)).json(), { status: 'done', result: { a: 1 } })
  })

  t.test('the sweeping replica brings in what was passed before, at once', async t => {
    const service = await testApp(t, {}, { isSpread }, more)
    await service.app.ready()
    service.store.sweeper.start()
    await until(() => service.store.sweeper.isSweeping)
    const ann = as('soon', 'ann', service)
    // All in one partition.
    for (let n = 0; n < 250; n++) await ann.passed({ to: 'work' })
    await service.store.keyRecords.limits.set({ tenant: 'soon', agent: 'ann', maxLive: 250 }, 'me')
    await until(async () => await service.store.live.count('soon', 'ann') === 250, 4000)
    await until(async () => (await ann.pass()).statusCode === 429, 2000)
  })

  t.test('replicas of version 0.2.0 don’t know it: the indexer sees to that', async t => {
    const ann = as('older')
    await limit('older', 'ann', 5)
    const [ended, passed] = [await ann.passed(), await ann.passed()]
    const keyOf = (id: string) => `${prefix}:{${tagOf(id)}}:h:older:${id}`
    const lists = async () => await redis.keys(`${prefix}:*run:older:*`)
    const record = async (id: string) => (await redis.hget(keyOf(id), 's'))!
    // One ended there, and left its entry; the other one was passed there.
    await redis.hset(keyOf(ended), 's', (await record(ended)).replace('pending', 'cancelled'))
    await redis.hset(keyOf(passed), 's', (await record(passed)).replace('2:', ''))
    await redis.hdel(keyOf(passed), 'x')
    for (const list of await lists()) await redis.zrem(list, `older:${passed}`)
    await store.indexer.round()
    t.equal(await store.live.count('older', 'ann'), 1)
    await ann.ask('POST', `/api/cancel/${passed}`, {})
    t.equal(await store.live.count('older', 'ann'), 0)
    t.strictSame(await lists(), [])
  })

  t.test('what is gone without an end doesn’t count for ever', async t => {
    const ann = as('gone')
    await limit('gone', 'ann', 500)
    const ids: string[] = []
    for (let n = 0; n < 250; n++) ids.push(await ann.passed())
    const lost = ids.filter((_, n) => n % 3 === 0)
    for (const id of lost) await redis.del(`${prefix}:{${tagOf(id)}}:h:gone:${id}`)
    // All in one list, and at the same time.
    const [first] = await redis.keys(`${prefix}:*run:gone:*`)
    if (!isSpread) for (const id of ids) await redis.zadd(first!, 1, `gone:${id}`)
    t.equal(await store.live.count('gone', 'ann'), 250)
    await store.indexer.round()
    t.equal(await store.live.count('gone', 'ann'), 250 - lost.length)
  })

  t.test('without a limit nothing is counted', async t => {
    const before = callsOf(store, 'count')
    await as('none').passed()
    await as('none', 'ben').passed({ to: 'work' })
    t.equal(callsOf(store, 'count'), before)
    t.strictSame(await redis.keys(`${prefix}:*none:\\**`), [])
  })
}
