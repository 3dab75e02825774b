import t from 'tap'
import type { Test } from 'tap'
import { loadConfig } from '../../src/config.ts'
import { SettingError } from '../../src/core/errors.ts'
import { Unavailable } from '../../src/core/errors.ts'
import { homeTag, inboxTag } from '../../src/core/ids.ts'
import { callerOf } from '../../src/core/model.ts'
import { InboxRounds } from '../../src/metrics/inboxes.ts'
import { memoryOf } from '../../src/store/health.ts'
import type { Masters } from '../../src/redis/masters.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { scrape } from '../helpers/metrics.ts'
import { ofOneReplica } from '../helpers/through.ts'
import { until } from '../helpers/until.ts'

/** What the sweeping replica counts of inboxes, approvals and memory. On one Redis, and as in a Cluster. */

const secret = 'ann-secret-0123456789'
const hostile = '__proto__'
const more = [{ caller: callerOf(hostile, 'ann', ['pass', 'catch', 'status']), secret }]
const families = /^handoff_(inbox_(pending|caught|failed|oldest_seconds|metrics_age_seconds)|approvals_waiting|live|redis_memory_bytes)/

async function sweeping (t: Test, env: Record<string, string> = {}, isSpread = false) {
  const service = await testApp(t, env, { isSpread }, more)
  service.store.sweeper.start()
  await until(() => service.store.sweeper.counts !== undefined)
  return service
}

/** What /metrics shows of a family after one more round: by its labels. */
async function figures ({ app }: TestApp, family: string): Promise<Record<string, number>> {
  await app.inboxRounds.round()
  if (family === 'live') await app.inboxRounds.countLive()
  return shown(await scrape(app), family)
}

/** What it shows of another family, of the same round. */
async function alsoFigures ({ app }: TestApp, family: string): Promise<Record<string, number>> {
  return shown(await scrape(app), family)
}

function shown (told: ReadonlyMap<string, number>, family: string): Record<string, number> {
  return Object.fromEntries([...told].flatMap(([sample, value]) => {
    const [, name, labels = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(sample)!
    return name === `handoff_${family}` ? [[labels.replaceAll(/(tenant|inbox|kind)=|"/g, ''), value]] : []
  }))
}

for (const isSpread of [false, true]) {
  t.test(isSpread ? 'as in a Cluster' : 'on one Redis', { skip: ofOneReplica, ...isSpread && skipInQuick }, async t => {
    const service = await sweeping(t, { METRICS_INBOXES: '2' }, isSpread)
    const { call, pass, setClock } = service
    const passTo = (to: string, members: object = {}) => pass({ to, ...members })
    const approve = (id: string) => call('approver', 'POST', `/api/approve/${id}`)
    const take = (inbox: string, max = 1) => call('bob', 'POST', '/api/catch', { inbox, max })
    t.not(inboxTag('default', 'both'), homeTag('default'))
    t.strictSame(await figures(service, 'inbox_pending'), {}, 'nothing is named')
    t.strictSame(await alsoFigures(service, 'approvals_waiting'), {})

    await t.test('an inbox is the sum of its two partitions', async t => {
      const start = Date.now() - 60_000
      await setClock(start)
      const human = await passTo('both', { require_human: true })
      await passTo('both', { require_human: true })
      await pass({ require_human: true })
      await pass({ require_human: true }, 'foreignAlice')
      t.strictSame(await figures(service, 'approvals_waiting'), { default: 3, other: 1 }, 'with and without an inbox')
      t.strictSame(await alsoFigures(service, 'inbox_pending'), { 'default,both': 0 }, 'what waits for a person can’t be caught')
      await approve(human)
      await setClock(start + 10_000)
      for (let n = 0; n < 4; n++) await passTo('both')
      await passTo('both', { delay: 30 })
      await setClock(start + 25_500)
      t.strictSame(await figures(service, 'inbox_pending'), { 'default,both': 5 })
      t.strictSame(await alsoFigures(service, 'inbox_oldest_seconds'), { 'default,both': 25.5 }, 'the approved one')
      t.strictSame(await alsoFigures(service, 'approvals_waiting'), { default: 2, other: 1 })
      const [taken] = (await take('both')).json().items
      t.equal(taken.handoff_id, human)
      t.strictSame(await figures(service, 'inbox_oldest_seconds'), { 'default,both': 15.5 })
      const { items } = (await take('both', 2)).json()
      t.strictSame(await figures(service, 'inbox_caught'), { 'default,both': 3 })
      await call('bob', 'POST', `/api/fail/${human}`, { error: { message: 'no' } })
      await call('bob', 'POST', `/api/fail/${items[0].handoff_id}`, { error: { message: 'no' } })
      t.strictSame(await figures(service, 'inbox_failed'), { 'default,both': 2 })
      t.strictSame(await alsoFigures(service, 'inbox_caught'), { 'default,both': 1 })
      t.strictSame(await alsoFigures(service, 'inbox_pending'), { 'default,both': 2 })
    })

    await t.test('what is live of the tenants where that is limited', async t => {
      t.strictSame(await alsoFigures(service, 'live'), {})
      const { limits } = service.store.keyRecords
      await service.app.ready()
      await limits.set({ tenant: 'other', agent: null, maxLive: 100 }, 'me')
      await limits.set({ tenant: 'default', agent: 'alice', maxLive: 100 }, 'me')
      await until(() => service.keys.limits.maxLiveOf('default') !== undefined)
      t.strictSame(await figures(service, 'live'), { other: 1 })
      await limits.set({ tenant: 'default', agent: 'alice', maxLive: null }, 'me')
      await limits.set({ tenant: 'other', agent: null, maxLive: null }, 'me')
      await until(() => service.keys.limits.maxLiveOf('other') === undefined)
      t.strictSame(await figures(service, 'live'), {})
    })

    await t.test('those with most pending have figures of their own, the rest has one', async t => {
      for (const [to, count] of [['three', 4], ['one', 1], ['a.one', 1]] as const) for (let n = 0; n < count; n++) await passTo(to)
      t.strictSame(await figures(service, 'inbox_pending'), { 'default,three': 4, 'default,both': 2, ',other': 2 })
      t.strictSame(await alsoFigures(service, 'inbox_failed'), { 'default,three': 0, 'default,both': 2, ',other': 0 })
      t.strictSame(await alsoFigures(service, 'inbox_oldest_seconds'), { 'default,three': 0, 'default,both': 15.5, ',other': 0 })
      // One that shares the name of the rest, and then one of a tenant with a hostile name.
      for (let n = 0; n < 7; n++) await passTo('other')
      t.strictSame(await figures(service, 'inbox_pending'), { 'default,other': 7, 'default,three': 4, ',other': 4 })
      await call(null, 'POST', '/api/pass', { task: 't', to: 'constructor' }, { authorization: `Bearer ${secret}` })
      t.strictSame(await figures(service, 'inbox_pending'), { 'default,other': 7, '__proto__,constructor': 1, ',other': 8 }, 'each tenant has its turn')
      // From now on the sweep may bring in the delayed one of "both": then that has 3, still fewer than "three".
      await setClock(Date.now())
      const oldest = await figures(service, 'inbox_oldest_seconds')
      t.ok(oldest[',other']! >= 50, `that of "both", which is in the rest: ${oldest[',other']}`)
      t.ok(oldest['default,other']! >= 34 && oldest['default,other']! < oldest[',other']!, `that of its own: ${JSON.stringify(oldest)}`)
    })
  })
}

t.test('tenants take turns for figures of their own', { skip: ofOneReplica }, async t => {
  const service = await sweeping(t, { METRICS_INBOXES: '6' })
  const { call, pass } = service
  const ann = (to: string) => call(null, 'POST', '/api/pass', { task: 't', to }, { authorization: `Bearer ${secret}` })
  for (let n = 0; n < 9; n++) for (let more = 0; more <= 2 + n; more++) await pass({ to: `large${n}` })
  for (const to of ['b', 'b', 'b', 'b', 'c', 'c', 'd']) await pass({ to }, 'foreignAlice')
  t.strictSame(await figures(service, 'inbox_pending'), {
    'default,large8': 11, 'default,large7': 10, 'default,large6': 9, 'other,b': 4, 'other,c': 2, 'other,d': 1, ',other': 8 + 7 + 6 + 5 + 4 + 3
  }, 'what one does not use of its share is another’s')
  for (const to of ['e', 'f']) await pass({ to }, 'foreignAlice')
  await ann('x')
  t.strictSame(Object.keys(await figures(service, 'inbox_pending')).sort(),
    [',other', '__proto__,x', 'default,large6', 'default,large7', 'default,large8', 'other,b', 'other,c'], 'of the last turn the larger ones')

  await t.test('what is caught or failed has its turn too, what would show zeros comes last', async t => {
    await call(null, 'POST', '/api/catch', { inbox: 'x' }, { authorization: `Bearer ${secret}` })
    for (const name of ['a1', 'a2']) await call('operator', 'PUT', `/api/inboxes/${name}`, { paused: true })
    t.strictSame(await figures(service, 'inbox_caught'), {
      '__proto__,x': 1, 'default,large6': 0, 'default,large7': 0, 'default,large8': 0, 'other,b': 0, 'other,c': 0, ',other': 0
    })
  })
})

t.test('METRICS_INBOXES', async t => {
  t.equal(loadConfig({}).metricsInboxes, 100)
  t.equal(loadConfig({ METRICS_INBOXES: '' }).metricsInboxes, 100)
  for (const [given, most] of [['0', 0], ['1', 1], ['10000', 10_000]] as const) t.equal(loadConfig({ METRICS_INBOXES: given }).metricsInboxes, most)
  for (const METRICS_INBOXES of ['-1', '1.5', 'all', '10001', ' ', '1e9', '100s']) {
    t.throws(() => loadConfig({ METRICS_INBOXES }), { constructor: SettingError, message: /^METRICS_INBOXES: how many [^\n]+: 0 to 10000$/ }, METRICS_INBOXES)
  }
})

t.test('the sweeping replica alone shows them, and forgets names that have nothing', { skip: ofOneReplica }, async t => {
  const service = await sweeping(t)
  const { app, store, redis, prefix, pass, call } = service
  const other = await testApp(t, {}, { prefix })
  const id = await pass({ to: 'work' })
  const human = await pass({ require_human: true, to: 'work' })
  const name = async (tag: string) => redis.zrange(`${prefix}:{${tag}}:inboxes`, '0', '-1')
  const [own, home] = [inboxTag('default', 'work'), homeTag('default')]
  other.app.inboxRounds.start()
  await other.app.inboxRounds.round()
  t.notOk([...(await scrape(other.app)).keys()].some(sample => families.test(sample)), 'not from another')

  await t.test('memory, of Redis’s own numbers', async t => {
    const { used, max } = await figures(service, 'redis_memory_bytes')
    t.equal(max, Number(/^maxmemory:(\d+)/m.exec(await redis.info('memory'))![1]))
    t.ok(used! > 100_000)
  })

  await t.test('without INFO everything but memory', async t => {
    const rounds = new InboxRounds({ ...store, memory: () => memoryOf({ all: () => [{ tags: ['x'], calls: { info: async () => { throw new Error('NOPERM') } } }] } as unknown as Masters) }, 1, () => {})
    await rounds.round()
    t.match(rounds.figures, { inboxes: [{ inbox: 'work' }], memory: null })
  })

  await t.test('what is blocked is something: its inbox is not tidied', async t => {
    const first = await pass({ to: 'work' })
    const { handoff_id: blocked } = (await call('alice', 'POST', '/api/pass', { task: 't', to: 'later', after: [first] })).json()
    const tidied: string[] = []
    const inboxes = { allNamed: () => store.inboxes.allNamed(), tidy: async ({ inbox }: { inbox: string }) => { if (inbox !== '') tidied.push(inbox) } } as unknown as typeof store.inboxes
    const rounds = new InboxRounds({ ...store, inboxes }, 9, () => {})
    await rounds.round()
    t.strictSame(tidied, [])
    for (const one of [blocked, first]) await call('alice', 'POST', `/api/cancel/${one}`)
    await rounds.round()
    t.strictSame(tidied, ['later'], 'as it is when nothing is there')
    await figures(service, 'inbox_pending')
  })

  await t.test('names', async t => {
    t.strictSame([await name(own), await name(home)], [['default:work'], ['default:']])
    await call('approver', 'POST', `/api/reject/${human}`, { note: 'no' })
    t.strictSame(await figures(service, 'approvals_waiting'), { default: 0 }, 'once more, for who watches it')
    t.strictSame(await figures(service, 'approvals_waiting'), {})
    t.strictSame([await name(own), await name(home)], [['default:work'], []])
    await call('operator', 'PUT', '/api/inboxes/paused', { paused: true })
    await call('alice', 'POST', `/api/cancel/${id}`)
    t.strictSame(await figures(service, 'inbox_pending'), { 'default,paused': 0, 'default,work': 0 })
    t.strictSame(await figures(service, 'inbox_pending'), { 'default,paused': 0 }, 'what has settings stays')
    t.strictSame(await name(own), [])
  })

  await t.test('hostile names', async t => {
    await call(null, 'POST', '/api/pass', { task: 't', to: 'constructor', require_human: true }, { authorization: `Bearer ${secret}` })
    await call(null, 'POST', '/api/pass', { task: 't', to: '__proto__' }, { authorization: `Bearer ${secret}` })
    await call(null, 'POST', '/api/pass', { task: 't', to: 'a.-_Z9'.padEnd(64, '-') }, { authorization: `Bearer ${secret}` })
    t.strictSame(await figures(service, 'inbox_pending'), {
      '__proto__,__proto__': 1, [`__proto__,${'a.-_Z9'.padEnd(64, '-')}`]: 1, '__proto__,constructor': 0, 'default,paused': 0
    })
    t.strictSame(await alsoFigures(service, 'approvals_waiting'), Object.fromEntries([[hostile, 1]]))
  })

  await t.test('while a round is not ready, the last one’s figures are shown, with their age, and memory as it is', async t => {
    let isAway = true
    const walk = { isLong: false, isUnderWay: false }
    const { inboxes } = store
    const slow = {
      async * allNamed () {
        if (isAway) throw new Unavailable('away')
        for (; walk.isLong; await new Promise(resolve => setImmediate(resolve))) {
          walk.isUnderWay = true
          yield []
        }
        yield * inboxes.allNamed()
      },
      tidy: inboxes.tidy.bind(inboxes)
    } as typeof inboxes
    let used = 1
    const memory = async () => ({ used: used++, limit: 0 })
    const faults: unknown[] = []
    const times = { round: 5, afterFailure: 10, maxAge: 20, tick: 5 }
    const rounds = new InboxRounds({ inboxes: slow, sweeper: store.sweeper, live: store.live, memory }, 1, error => faults.push(error), times)
    rounds.start()
    t.teardown(() => rounds.stop())
    t.equal(rounds.figures, null)
    isAway = false
    t.match(await until(() => rounds.figures), { inboxes: [{}, { tenant: '', inbox: 'other' }], approvals: [{ tenant: hostile, waiting: 1 }], memory: { limit: 0 } })
    walk.isLong = true
    await until(() => walk.isUnderWay)
    const { inboxes: shown, approvals, age } = await until(() => rounds.figures!.age > times.maxAge ? rounds.figures : undefined)
    const read = used
    await until(() => rounds.figures!.memory!.used > read + 1)
    t.match(rounds.figures, { inboxes: shown, approvals }, 'although they are older than they are to be')
    t.ok(rounds.figures!.age > age)
    walk.isLong = false
    await until(() => rounds.figures!.inboxes !== shown)
    t.strictSame(faults, [], 'Redis that is away is no fault of ours')
  })

  await t.test('no figure of inboxes waits for counts of what is live, and a count that fails loses its own figure alone', async t => {
    const { inboxes, sweeper } = store
    const counts: Array<{ tenant: string, resolve (live: number): void, reject (error: Error): void }> = []
    const live = { count: (tenant: string) => new Promise<number>((resolve, reject) => counts.push({ tenant, resolve, reject })) } as unknown as typeof store.live
    const faults: unknown[] = []
    const times = { round: 5, afterFailure: 10, maxAge: 20, tick: 5 }
    const rounds = new InboxRounds({ inboxes, sweeper, live, memory: async () => null }, 1, error => faults.push(error), times)
    rounds.limited = () => ['a', 'b', 'c', 'd']
    const counted = async (n: number) => await until(() => counts[n])
    rounds.start()
    t.teardown(async () => {
      const stopped = rounds.stop()
      for (const { resolve } of counts) resolve(0)
      await stopped
    })
    const first = await until(() => rounds.figures)
    await until(() => rounds.figures!.inboxes !== first.inboxes)
    t.strictSame([counts.map(({ tenant }) => tenant), rounds.figures!.live], [['a'], []])
    const [unavailable, fault] = [new Unavailable('away'), new Error('odd')]
    counts[0]!.resolve(1)
    ;(await counted(1)).reject(unavailable)
    ;(await counted(2)).reject(fault)
    ;(await counted(3)).resolve(4)
    await counted(4)
    const found = [{ tenant: 'a', live: 1 }, { tenant: 'd', live: 4 }]
    t.strictSame(rounds.figures!.live, found)
    t.strictSame(faults, [fault])
    counts[4]!.resolve(2)
    await counted(5)
    t.strictSame(rounds.figures!.live, found, 'those of before, until the next ones are there')
  })

  await t.test('rounds come by themselves, and vanish with the sweep', async t => {
    app.inboxRounds.start()
    await pass({ to: 'later' })
    await until(async () => shown(await scrape(app), 'inbox_pending')['default,later'] === 1)
    t.ok(app.inboxRounds.figures)
    t.ok(shown(await scrape(app), 'inbox_metrics_age_seconds')['']! >= 0)
    await store.sweeper.stop()
    t.equal(app.inboxRounds.figures, null)
    t.notOk([...(await scrape(app)).keys()].some(sample => families.test(sample)))
    await app.inboxRounds.round()
    t.equal(app.inboxRounds.figures, null)
    t.strictSame(service.lines.filter(line => JSON.parse(line).level > 40), [])
  })
})
