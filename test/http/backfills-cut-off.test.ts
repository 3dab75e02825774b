import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { PayloadLocked, Unavailable } from '../../src/core/errors.ts'
import { homeTag } from '../../src/core/ids.ts'
import { callerOf } from '../../src/core/model.ts'
import type { Scope } from '../../src/core/model.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'

/**
 * Backfills, and ticks, of a replica that is cut off between two of its calls, while the schedule's inbox changes, so
 * the partition too: a tick makes one handoff, and what never ran may run. Each subtest has a tenant of its own.
 */
const tenants = ['reads', 'many', 'void', 'twice', 'ticker', 'locked', 'gone', 'back', 'again', 'refused', 'deleted', 'rounds'] as const
type Tenant = typeof tenants[number]
const agents: Array<[string, Scope[]]> = [['ann', ['pass', 'catch', 'status']], ['olga', ['operate', 'status', 'approve']]]
const secretOf = (tenant: string, agent: string) => `${tenant}-${agent}-secret-0123456789`
const more = tenants.flatMap(tenant => agents.map(([agent, scopes]) => ({ caller: callerOf(tenant, agent, scopes), secret: secretOf(tenant, agent) })))
/** Redis itself ends keys by its own clock, so what is kept must end after now. */
const start = (Math.floor(Date.now() / 86_400_000) + 1) * 86_400_000 + Date.parse('1970-01-01T08:59:30.000Z')
const at = (seconds: number) => new Date(start + seconds * 1000).toISOString()

for (const isSpread of [false, true]) {
  const env = { RETENTION: '3600', EVENTS_RETENTION: '3600' }
  const { app, setClock, prefix, redis, store } = await testApp(t, env, { isSpread }, more)
  const dead = await testApp(t, env, { isSpread, prefix }, more)
  while (dead.store.reachedTags().length === 0) await sleep(10)
  const asOf = (its: TestApp['app']) => (tenant: Tenant, agent = 'ann') => {
    const ask = async (method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown) => await its.inject({
      method, url: path, headers: { authorization: `Bearer ${secretOf(tenant, agent)}`, ...body !== undefined && { 'content-type': 'application/json' } }, ...body !== undefined && { payload: JSON.stringify(body) }
    })
    return {
      ask,
      to: async (inbox: string) => await ask('PUT', '/api/schedules/one', { cron: '* * * * *', overlap: 'allow', starts_at: at(-36000), handoff: { task: 't', to: inbox } }),
      fill: async (since: number, until: number) => await ask('POST', '/api/schedules/one/backfill', { since: at(since), until: at(until) }),
      live: async () => (await ask('GET', '/api/handoffs?schedule=one&limit=100')).json().items as Array<{ handoff_id: string, to: string }>,
      runs: async () => (await ask('GET', '/api/schedules/one/runs')).json().items as object[],
      begun: async () => await redis.zrange(`${prefix}:{${homeTag(tenant)}}:schedule:${tenant}:one:begun`, '0', '-1'),
      /** Nothing more can be passed to this inbox. */
      fillUp: async (inbox: string) => {
        await asOf(its)(tenant, 'olga').ask('PUT', `/api/inboxes/${inbox}`, { max_pending: 1 })
        await ask('POST', '/api/pass', { task: 't', to: inbox })
      },
      open: async (inbox: string) => await asOf(its)(tenant, 'olga').ask('PUT', `/api/inboxes/${inbox}`, { max_pending: null })
    }
  }
  const [as, asDead] = [asOf(app), asOf(dead.app)]
  const { schedules, handoffs } = dead.store
  const { note, read } = schedules
  const { pass } = handoffs
  /** The other replica is cut off before it notes anything. */
  const cutNotes = () => { schedules.note = async () => { throw new Unavailable('killed') } }
  const heal = () => Object.assign(schedules, { note, read }) && Object.assign(handoffs, { pass })
  /** It stands still before it passes, until `go`. */
  const holdPass = () => {
    let reached = () => {}
    let go = () => {}
    const atPass = new Promise<void>(resolve => { reached = resolve })
    const held = new Promise<void>(resolve => { go = resolve })
    handoffs.pass = async handoff => {
      reached()
      await held
      return await pass.call(handoffs, handoff)
    }
    return { atPass, go }
  }
  t.beforeEach(() => setClock(start))
  t.afterEach(heal)

  t.test('what another one notes while this one reads counts', async t => {
    const { to, fill, live } = as('reads')
    await to('first')
    const { atPass, go } = holdPass()
    const first = asDead('reads').fill(-3600, -3540)
    await atPass
    await to('second')
    const reads = store.schedules.read
    let count = 0
    store.schedules.read = async (...args) => {
      const found = await reads.apply(store.schedules, args)
      if (++count === 1) {
        go()
        t.match((await first).json(), { passed: 1 })
      }
      return found
    }
    const second = await fill(-3600, -3540)
    store.schedules.read = reads
    t.match(second.json(), { passed: 0, skipped: 1 })
    t.equal((await live()).length, 1)
  })

  t.test('what ran is known where 128 others ran in its partition since', async t => {
    const { to, fill } = as('many')
    await to('first')
    let passes = 0
    cutNotes()
    handoffs.pass = async (...args) => {
      const reply = await pass.apply(handoffs, args)
      if (++passes === 3) throw new Unavailable('killed')
      return reply
    }
    t.equal((await asDead('many').fill(-3600, -3000)).statusCode, 503)
    const begun = await as('many').begun()
    t.equal(begun.length, 10)
    // Another backfill would settle them before.
    await redis.del(`${prefix}:{${homeTag('many')}}:schedule:many:one:begun`)
    await setClock(start + 1000)
    t.match((await fill(-36000, -30000)).json(), { passed: 100 })
    t.match((await fill(-30000, -28200)).json(), { passed: 30 })
    await redis.zadd(`${prefix}:{${homeTag('many')}}:schedule:many:one:begun`, ...begun.flatMap(one => [one.split(' ')[1]!, one]))
    await to('second')
    t.match((await fill(-3600, -3000)).json(), { passed: 7, skipped: 3 })
  })

  t.test('what is settled can’t run there, also where 128 others ran since it was begun', async t => {
    const { to, fill } = as('void')
    await to('first')
    const { atPass, go } = holdPass()
    const first = asDead('void').fill(-3600, -3540)
    await atPass
    t.match((await fill(-36000, -30000)).json(), { passed: 100 })
    t.match((await fill(-30000, -28200)).json(), { passed: 30 })
    await to('second')
    t.match((await fill(-3600, -3540)).json(), { passed: 1 })
    go()
    t.match((await first).json(), { passed: 0, skipped: 0, more: true, next: at(-3570) }, 'and it says where to go on')
    t.equal((await redis.keys(`${prefix}:{*}:h:void:*`)).length, 131)
  })

  t.test('what was begun later stays settled when something earlier is', async t => {
    const { to, fill, live } = as('rounds')
    await to('first')
    // It doesn't settle what it began before.
    schedules.read = async (...args) => ({ ...await read.apply(schedules, args), ...args[2]?.list === 'begun' && { beside: [] } })
    handoffs.pass = async () => { throw new Unavailable('killed') }
    t.equal((await asDead('rounds').fill(-3540, -3480)).statusCode, 503)
    const { atPass, go } = holdPass()
    const later = asDead('rounds').fill(-3600, -3540)
    await atPass
    await to('second')
    t.match((await fill(-3600, -3480)).json(), { passed: 2 })
    go()
    t.match((await later).json(), { passed: 0, more: true })
    t.equal((await live()).length, 2)
  })

  t.test('of two at one time the refused one doesn’t end what the other has begun', async t => {
    const { to, fill, fillUp, open, live } = as('twice')
    await fillUp('first')
    await to('first')
    const { atPass, go } = holdPass()
    const stuck = asDead('twice').fill(-3600, -3540)
    await atPass
    t.match((await fill(-3600, -3540)).json(), { refused: 1 })
    await to('second')
    t.match((await fill(-3600, -3540)).json(), { passed: 1 })
    await open('first')
    go()
    t.match((await stuck).json(), { passed: 0, more: true })
    t.equal((await live()).length, 1)
  })

  for (const end of ['another inbox', 'DELETE'] as const) {
    t.test(`a tick that was refused isn’t passed by who began it before: ${end}`, async t => {
      const tenant = end === 'DELETE' ? 'deleted' : 'ticker'
      const { ask, to, fill, fillUp, open, live, runs } = as(tenant)
      await fillUp('first')
      await to('first')
      let late: (() => ReturnType<typeof pass>) | undefined
      handoffs.pass = async handoff => {
        if (handoff.tenant === tenant) late = () => pass.call(handoffs, handoff)
        throw new Unavailable('it stands still')
      }
      await setClock(start + 30_000)
      await dead.app.ticker.go(true)
      t.ok(late)
      await setClock(start + 33_000)
      await app.ticker.go(true)
      t.match(await runs(), [{ scheduled_for: at(30), outcome: 'refused' }])
      if (end === 'DELETE') {
        t.equal((await ask('DELETE', '/api/schedules/one')).statusCode, 204)
      } else {
        await to('second')
        t.match((await fill(30, 31)).json(), { passed: 1 })
      }
      await open('first')
      t.match(await late!(), { outcome: 'ticked' })
      t.equal((await live()).length, end === 'DELETE' ? 0 : 1)
    })
  }

  t.test('a replica that lacks the key begins nothing', async t => {
    const { to, begun } = as('locked')
    await to('first')
    schedules.read = async (...args) => {
      const found = await read.apply(schedules, args)
      if (found.schedule !== null) Object.defineProperty(found.schedule, 'handoff', { enumerable: true, get () { throw new PayloadLocked('abcdefgh') } })
      return found
    }
    t.equal((await asDead('locked').fill(-3600, -3000)).statusCode, 503)
    t.strictSame(await begun(), [])
  })

  t.test('a run whose handoff is gone is listed', async t => {
    const { to, fill, runs } = as('gone')
    await to('first')
    cutNotes()
    t.equal((await asDead('gone').fill(-3600, -3540)).statusCode, 503)
    for (const key of await redis.keys(`${prefix}:{*}:h:gone:*`)) await redis.del(key)
    t.match((await fill(-3600, -3540)).json(), { passed: 0, skipped: 1 })
    t.match(await runs(), [{ scheduled_for: at(-3570), by: 'backfill', outcome: 'passed' }])
  })

  t.test('what was settled may run once its inbox is back, also if the clock has gone back', async t => {
    const { to, fill, fillUp } = as('back')
    await fillUp('second')
    await to('first')
    handoffs.pass = async () => { throw new Unavailable('it stands still') }
    t.equal((await asDead('back').fill(-3600, -3540)).statusCode, 503)
    await to('second')
    t.match((await fill(-3600, -3540)).json(), { refused: 1 })
    await to('first')
    await setClock(start - 500)
    t.match((await fill(-3600, -3540)).json(), { passed: 1 })
  })

  t.test('however often it was cut off, a run is listed and remembered once, and nothing stays begun', async t => {
    const { to, fill, runs, begun } = as('again')
    await to('first')
    cutNotes()
    // Each would settle what the one before began.
    schedules.read = async (...args) => ({ ...await read.apply(schedules, args), ...args[2]?.list === 'begun' && { beside: [] } })
    for (let n = 0; n < 3; n++) t.equal((await asDead('again').fill(-3600, -3000)).statusCode, 503)
    t.equal((await begun()).length, 30)
    await to('second')
    t.match((await fill(-3600, -3000)).json(), { passed: 0, skipped: 10 })
    t.equal((await runs()).length, 10)
    const key = `${prefix}:{${homeTag('again')}}:schedule:again:one`
    t.strictSame([await redis.llen(`${key}:runs`), await redis.zcard(`${key}:ran`), await begun()], [10, 1, []])
  })

  t.test('what is refused again and again isn’t begun any more either', async t => {
    const { to, fill, fillUp, begun } = as('refused')
    await fillUp('first')
    await to('first')
    handoffs.pass = async () => { throw new Unavailable('away') }
    for (let n = 0; n < 3; n++) t.equal((await asDead('refused').fill(-3600, -3000)).statusCode, 503)
    t.match((await fill(-3600, -3000)).json(), { refused: 10 })
    t.strictSame(await begun(), [])
  })
}
