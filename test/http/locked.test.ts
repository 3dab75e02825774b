import t from 'tap'
import type { Test } from 'tap'
import { inboxTag, randomToken } from '../../src/core/ids.ts'
import { parsePayloadKeys } from '../../src/core/payload-keys.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { personWith, textOf } from '../helpers/forms.ts'
import { grown, scrape } from '../helpers/metrics.ts'
import { isProblem } from '../helpers/problems.ts'
import { callsOf } from '../helpers/redis.ts'
import { through } from '../helpers/through.ts'
import { until } from '../helpers/until.ts'

/** What operators learn of texts that a replica can't decrypt: the kid, in the metrics, the log and waits_for (docs/encryption.md). */

const key = (kid: string, byte: number) => `${kid}:${Buffer.alloc(32, byte).toString('base64')}`
const [old, next] = [key('old', 1), key('next', 2)]
const alone = through === undefined ? {} : { skip: 'each replica has keys of its own' }

/** Two replicas on one Redis, each with its own PAYLOAD_KEYS. */
async function two (t: Test, first: string, second: string) {
  const one = await testApp(t, { PAYLOAD_KEYS: first })
  const other = await testApp(t, second === '' ? {} : { PAYLOAD_KEYS: second }, { prefix: one.prefix })
  return { one, other }
}

t.test('the kid of a key that only another replica has', alone, async t => {
  const { one, other } = await two(t, old, next)
  await one.store.payloadKeyNotes.note()
  const id = await one.pass({ to: 'box', task: 'secret words' })
  const why = async () => (await other.call('alice', 'GET', `/api/status/${id}?explain=true`)).json().waits_for
  const set = (body: object) => other.call('operator', 'PUT', '/api/inboxes/box', body)
  t.strictSame(await why(), [{ reason: 'locked', kid: 'old' }, { reason: 'no_listener' }])
  await set({ paused: true })
  t.strictSame(await why(), [{ reason: 'locked', kid: 'old' }, { reason: 'paused' }, { reason: 'no_listener' }])
  const blocked = await one.pass({ to: 'box', after: [id] })
  t.match((await other.call('alice', 'GET', `/api/status/${blocked}?explain=true`)).json().waits_for, [{ reason: 'after' }, { reason: 'locked' }, { reason: 'paused' }])
  t.strictSame((await one.call('alice', 'GET', `/api/status/${id}?explain=true`)).json().waits_for, [{ reason: 'paused' }, { reason: 'no_listener' }], 'where the key is, it isn’t locked')

  const before = await scrape(other.app)
  isProblem(t, await other.call('bob', 'GET', `/api/catch/${id}`), 503, 'payload_locked')
  const more = await until(async () => {
    const more = grown(before, await scrape(other.app), /^handoff_payloads_/)
    return Object.keys(more).length > 0 ? more : null
  })
  t.strictSame(more, { 'handoff_payloads_locked_total{kid="old"}': 1 })
  await other.call('bob', 'GET', `/api/catch/${id}`)
  await until(async () => grown(before, await scrape(other.app), /^handoff_payloads_/)['handoff_payloads_locked_total{kid="old"}'] === 2)
  const warnings = other.lines.filter(line => line.includes('texts are locked'))
  t.equal(warnings.length, 1, 'once a minute')
  t.match(JSON.parse(warnings[0]!), { kid: 'old', level: 40 })
  t.equal(callsOf(other.store, 'payload-keys'), 1, 'the notes are read once')
})

t.test('a key that nobody has is known by its name, and a text that was changed is broken', alone, async t => {
  const { one, other } = await two(t, old, '')
  const id = await one.pass({ task: 'secret words' })
  const { name } = parsePayloadKeys(old)[0]!
  t.strictSame((await other.call('alice', 'GET', `/api/status/${id}?explain=true`)).json().waits_for, [{ reason: 'locked', kid: name }])
  await other.call('bob', 'GET', `/api/catch/${id}`)
  await until(async () => (await scrape(other.app)).get(`handoff_payloads_locked_total{kid="${name}"}`))

  const handoff = (await one.redis.keys(`${one.prefix}:*:h:*${id}`))[0]!
  const payload = (await one.redis.hgetBuffer(handoff, 'p'))!
  payload[payload.length - 1]! ^= 1
  await one.redis.hset(handoff, 'p', payload)
  isProblem(t, await one.call('bob', 'GET', `/api/catch/${id}`), 500, 'internal')
  t.equal((await scrape(one.app)).get('handoff_payloads_broken_total{kid="old"}'), 1)
  t.match(JSON.parse(one.lines.find(line => line.includes('did not open'))!), { kid: 'old', level: 40 })
  t.notOk([...one.lines, ...other.lines].some(line => line.includes('secret words')))
})

t.test('who is told of a text that is locked is told so', alone, async t => {
  const { one, other } = await two(t, old, '')
  const [asked, decided] = [await one.caught({ task: 'stop me' }), await one.pass({ task: 'secret words', require_human: true })]
  await one.call('alice', 'POST', `/api/cancel/${asked}`, { reason: 'secret words' })
  await one.call('approver', 'POST', `/api/approve/${decided}`, { note: 'secret words' })
  const beat = async ({ call }: typeof one) => (await call('bob', 'POST', `/api/heartbeat/${asked}`)).json()
  t.match(await beat(other), { cancel_requested: true, cancel_reason: null, locked: true })
  t.match([(await beat(one)).cancel_reason, (await beat(one)).locked], ['secret words', undefined])
  const again = async ({ call }: typeof one) => (await call('approver', 'POST', `/api/reject/${decided}`, { note: 'no' })).json()
  t.match(await again(other), { code: 'already_decided', approval: { state: 'approved', note: null }, locked: true })
  t.match([(await again(one)).approval.note, (await again(one)).locked], ['secret words', undefined])

  const fileOf = async ({ call }: typeof one) => {
    const [head, row] = (await call('approver', 'GET', '/api/decisions?format=csv')).body.split('\r\n')
    return Object.fromEntries(head!.split(',').map((name, at) => [name, row!.split(',')[at]]))
  }
  t.match(await fileOf(other), { handoff_id: decided, note: '', task: '', locked: 'true' })
  t.match(await fileOf(one), { note: 'secret words', task: 'secret words', locked: '' })
  const { body } = await (await personWith(other, secrets.approver))('/approvals?tab=approvals')
  t.match(textOf(body), /Decided last Handoff from alice, which can’t be decrypted here approved by you/)
})

t.test('groups of which a replica lacks the key hold up no others there', alone, async t => {
  const { one, other } = await two(t, old, next)
  const take = async ({ call }: typeof one, inbox: string, max = 1) =>
    (await call('bob', 'POST', '/api/catch', { inbox, max })).json().items.map(({ group = null }) => group)
  for (let n = 0; n < 80; n++) await one.pass({ to: 'box', group: n < 40 ? 'a' : 'b' })
  for (const group of [null, 'c', 'c', 'b']) await other.pass({ to: 'box', group })
  t.strictSame(await take(other, 'box'), [null])
  t.strictSame(await take(other, 'box', 2), ['c', 'c'])
  t.strictSame(await take(other, 'box'), [], 'deep within a group it finds none')
  t.strictSame(await take(one, 'box', 4), ['a', 'b', 'a', 'b'], 'elsewhere they have their turns')

  for (let n = 0; n < 63; n++) await one.pass({ to: 'many', group: `g${n}` })
  await other.pass({ to: 'many', group: 'last' })
  t.strictSame(await take(other, 'many'), ['last'], 'however many groups')
  for (let n = 0; n < 5; n++) await one.pass({ to: 'few', group: 'a' })
  await other.pass({ to: 'few', group: 'a' })
  t.strictSame(await take(other, 'few'), ['a'], 'some are looked at within a group')

  for (let n = 0; n < 70; n++) await one.pass({ to: 'none', group: `g${n}` })
  const place = { tenant: 'default', inbox: 'none', tag: inboxTag('default', 'none') }
  t.match(await other.store.inboxes.take(place, { token: randomToken(), agent: 'bob', max: 1, lifetime: null, request: '-' }),
    { isMore: false, items: [] }, 'to look again at once would find no more')
})

t.test('a note goes with its replica, or some minutes later, and one without keys is noted beside others alone', async t => {
  const { one, other } = await two(t, `${old},${next}`, '')
  await other.store.payloadKeyNotes.note()
  t.strictSame(await other.store.payloadKeyNotes.read(), [])
  one.store.payloadKeyNotes.start()
  const noted = await until(async () => {
    const notes = await other.store.payloadKeyNotes.read()
    return notes.length > 0 ? notes : null
  })
  t.strictSame(noted.map(({ keys }) => keys.map(({ kid }) => kid)), [['old', 'next']])
  await other.store.payloadKeyNotes.note()
  t.strictSame((await other.store.payloadKeyNotes.read()).map(({ keys }) => keys.length).sort(), [0, 2])
  await one.store.payloadKeyNotes.stop()
  t.strictSame((await other.store.payloadKeyNotes.read()).map(({ keys }) => keys.length), [0])
  await other.store.payloadKeyNotes.note()
  t.strictSame(await other.store.payloadKeyNotes.read(), [], 'those without keys don’t stay for each other')
  await one.store.payloadKeyNotes.note()
  const hash = (await one.redis.keys(`${one.prefix}:*:payload-keys`))[0]!
  const [seconds] = await one.redis.time()
  const third = await testApp(t, { PAYLOAD_KEYS: next }, { prefix: one.prefix })
  await third.setClock((Number(seconds) + 400) * 1000)
  await third.store.payloadKeyNotes.note()
  t.equal(await one.redis.hlen(hash), 1)
  t.strictSame((await other.store.payloadKeyNotes.read()).map(({ keys }) => keys.map(({ kid }) => kid)), [['next']])
})

t.test('a schedule whose key is missing rests alone, and a replica that has the key runs it', alone, async t => {
  const { one, other } = await two(t, old, next)
  const start = Math.floor(Date.now() / 60_000) * 60_000
  const at = async (seconds: number) => await Promise.all([one, other].map(app => app.setClock(start + seconds * 1000)))
  const handoff = { task: 'now', to: 'box' }
  const runs = async (name: string) => (await one.call('alice', 'GET', `/api/schedules/${name}/runs`)).json().items.map(({ outcome }: { outcome: string }) => outcome)
  await at(0)
  for (const [replica, name] of [[one, 'a-locked'], [other, 'b-open']] as const) t.equal((await replica.call('alice', 'PUT', `/api/schedules/${name}`, { every: 60, overlap: 'allow', handoff })).statusCode, 201)
  for (const minute of [1, 2]) {
    await at(60 * minute)
    await other.app.ticker.go(true)
    t.equal((await runs('b-open')).length, minute, 'each tick of another schedule runs at its time')
    t.strictSame(await runs('a-locked'), [])
  }
  isProblem(t, await other.call('alice', 'GET', '/api/schedules/a-locked'), 503, 'payload_locked')

  await at(135)
  one.app.ticker.start()
  t.teardown(async () => await one.app.ticker.stop())
  await until(async () => (await runs('a-locked')).length === 2)
  await at(180)
  const before = callsOf(one.store, 'schedule-due')
  await until(async () => {
    await other.app.ticker.go(true)
    return (await runs('a-locked')).length === 3
  })
  t.ok(callsOf(one.store, 'schedule-due') > before, 'the replica that has the lease tells the others')
  await one.app.ticker.stop()

  for (const [verb, paused] of [['pause', true], ['resume', false]] as const) {
    const answer = await other.call('alice', 'POST', `/api/schedules/a-locked/${verb}`)
    t.equal(answer.statusCode, 200)
    t.match(answer.json(), { paused, handoff: null, locked: true })
    const seen = (await one.call('alice', 'GET', '/api/schedules/a-locked')).json()
    t.match(seen, { paused, handoff })
    t.notOk('locked' in seen)
  }
  await at(300)
  await until(async () => {
    await one.app.ticker.go(true)
    return (await runs('a-locked')).length > 3
  })
  t.equal((await other.call('alice', 'DELETE', '/api/schedules/a-locked')).statusCode, 204)
})

t.test('of many locked schedules that are due some are looked at later, so that others come', alone, async t => {
  const { one, other } = await two(t, old, next)
  const start = Math.floor(Date.now() / 60_000) * 60_000
  const at = async (seconds: number) => await Promise.all([one, other].map(app => app.setClock(start + seconds * 1000)))
  await at(0)
  const put = (replica: typeof one, name: string) => replica.call('alice', 'PUT', `/api/schedules/${name}`, { every: 60, handoff: { task: 'now', to: 'box' } })
  for (let n = 0; n < 40; n++) await put(one, `a${n}`)
  await put(other, 'open')
  await at(61)
  await other.app.ticker.go(true)
  const outcomes = async (name: string) => (await one.call('alice', 'GET', `/api/schedules/${name}/runs`)).json().items.length
  t.equal(await outcomes('open'), 1)
  await at(122)
  await one.app.ticker.go(true)
  for (let n = 0; n < 40; n++) t.ok(await outcomes(`a${n}`) > 0, `a${n}`)
})
