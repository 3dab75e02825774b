import t from 'tap'
import { tags } from '../../src/core/ids.ts'
import { keyRetention } from '../../src/store/api-keys.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { callsOf, newKey, testKeys } from '../helpers/stored-keys.ts'
import { ownRedis } from '../helpers/own-redis.ts'

const tag = tags[0]!
/** Ahead of Redis's own clock, by which Redis expires keys. */
const then = 1_900_000_000_000

interface Dumped { type: string, content: unknown, expires: number }

t.test('a key is created, found, listed, rotated and revoked', async t => {
  const { records, setClock } = await testKeys(t)
  await setClock(then)
  const { id, key, record } = await newKey(records, { tenant: 'acme', agent: 'bob', scopes: ['approve', 'status'], expiresIn: 60_000, ratePerMinute: 7 })
  t.strictSame(record, {
    id,
    tenant: 'acme',
    agent: 'bob',
    scopes: ['approve', 'status'],
    createdAt: then,
    endsAt: then + 60000,
    rotatedAt: null,
    previousEndsAt: null,
    revokedAt: null,
    ratePerMinute: 7,
    inboxes: null,
  })
  t.match(key, new RegExp(`^handoff_${id}_`))
  t.strictSame(await records.find(id), record)
  await setClock(then + 1000)
  const rotated = await records.rotate(id, 500, 'me')
  t.match(rotated, { outcome: 'rotated', key: new RegExp(`^handoff_${id}_`), record: { id, rotatedAt: then + 1000, previousEndsAt: then + 1500 } })
  t.not('key' in rotated && rotated.key, key)
  await setClock(then + 2000)
  t.strictSame(await records.revoke(id, 'me'), { outcome: 'revoked', at: then + 2000 })
  await setClock(then + 3000)
  t.strictSame(await records.revoke(id, 'me'), { outcome: 'already_revoked', at: then + 2000 })
  t.strictSame(await records.rotate(id, 500, 'me'), { outcome: 'revoked' })
  t.match(await records.list(), [{ id, revokedAt: then + 2000 }])

  const ended = await newKey(records, { expiresIn: 1 })
  t.match(await records.rotate(ended.id, 0, 'me'), { outcome: 'rotated' }, 'in its last millisecond')
  await setClock(then + 3001)
  t.strictSame(await records.rotate(ended.id, 0, 'me'), { outcome: 'ended' })
})

t.test('an unknown key is not found, and a malformed id asks Redis nothing', async t => {
  const redis = await ownRedis(t)
  const { records } = await testKeys(t, { url: redis.url })
  await newKey(records)
  const before = await callsOf(redis.admin, 'evalsha')
  for (const id of ['', 'x', '__proto__', '*', 'A'.repeat(13), 'ÄÄÄÄÄÄÄÄÄÄÄÄ', '0'.repeat(11) + '\n']) {
    t.equal(await records.find(id), null)
    t.strictSame(await records.rotate(id, 0, 'me'), { outcome: 'not_found' })
    t.strictSame(await records.revoke(id, 'me'), { outcome: 'not_found' })
  }
  t.equal(await callsOf(redis.admin, 'evalsha'), before)
  t.equal(await records.find('000000000000'), null)
  t.strictSame(await records.rotate('000000000000', 0, 'me'), { outcome: 'not_found' })
  t.strictSame(await records.revoke('000000000000', 'me'), { outcome: 'not_found' })
})

t.test('Redis stores no secret; ended keys are deleted after 30 days, and live ones stay', async t => {
  const { records, dump } = await testKeys(t)
  const [live, ending, revoked] = [await newKey(records), await newKey(records, { expiresIn: 1000 }), await newKey(records)]
  const rotated = await records.rotate(live.id, 1000, 'me')
  const { at } = await records.revoke(revoked.id, 'me') as { at: number }
  const all = await dump() as Record<string, Dumped>
  const text = JSON.stringify(all)
  for (const { key } of [live, ending, revoked, rotated as { key: string }]) t.notMatch(text, key.slice(21))
  t.notMatch(text, 'handoff_')
  const expiry = (id: string) => all[`{${tag}}:k:${id}`]!.expires
  t.equal(expiry(live.id), -1)
  t.equal(expiry(ending.id), ending.record.endsAt! + keyRetention)
  t.equal(expiry(revoked.id), at + keyRetention)
  t.strictSame(Object.keys(all).filter(key => !key.startsWith(`{${tag}}:k`)), [], 'all in one partition')
})

t.test('the list goes on over many keys, in order, and drops deleted ones', async t => {
  const { records, redis, prefix, setClock, dump } = await testKeys(t)
  await setClock(then)
  const made = []
  // Most have the same millisecond.
  for (let n = 0; n < 450; n++) {
    if (n % 200 === 199) await setClock(then + n)
    made.push(await newKey(records, { agent: `a${n}` }))
  }
  const listed = await records.list()
  t.strictSame(listed.map(({ id }) => id).sort(), made.map(({ id }) => id).sort())
  t.strictSame(listed.map(({ createdAt }) => createdAt), listed.map(({ createdAt }) => createdAt).sort())
  const keys = new KeyNames(prefix)
  await redis.del(keys.apiKey(tag, made[3]!.id))
  t.equal((await records.list()).length, 449)

  const old = await newKey(records, { expiresIn: 1000 })
  // A test’s clock doesn’t affect Redis’s own expiry.
  await setClock(old.record.endsAt! + keyRetention)
  await redis.del(keys.apiKey(tag, old.id))
  await newKey(records)
  const { [`{${tag}}:keys`]: index, [`{${tag}}:keys:over`]: over } = await dump() as Record<string, Dumped>
  t.notMatch(JSON.stringify(index), old.id, 'out of the index')
  t.equal(over, undefined)
})

t.test('the log has each change once, and says when it can’t', async t => {
  const { records, redis, prefix } = await testKeys(t)
  t.match(await records.changes(''), { lost: true, last: '0-0', entries: [] })
  t.match(await records.changes('0-0'), { lost: false, last: '0-0', entries: [] })
  const { id } = await newKey(records, { by: 'jörg@höhle'.repeat(100) })
  await records.rotate(id, 0, 'me')
  await records.revoke(id, 'me')
  const told = await records.changes('0-0')
  t.match(told.entries, [{ id, tenant: 'default', agent: 'alice', action: 'created' }, { id, action: 'rotated', by: 'me' }, { id, action: 'revoked' }])
  t.match(told.entries[0]!.by, /^jörg@höhlejörg/)
  t.ok(Buffer.byteLength(told.entries[0]!.by) < 300)
  t.match(await records.changes(told.last), { lost: false, last: told.last, entries: [] })

  for (let n = 0; n < 150; n++) await newKey(records)
  const first = await records.changes(told.last)
  t.strictSame([first.entries.length, first.more], [100, true])
  const second = await records.changes(first.last)
  t.strictSame([second.entries.length, second.more], [50, false])

  const log = new KeyNames(prefix).apiKeysLog(tag)
  t.match(await records.changes('9999999999999-0'), { lost: true, last: second.last }, 'of another server’s log')
  await redis.xtrim(log, 'MAXLEN', 10)
  t.match(await records.changes(told.last), { lost: true, last: second.last }, 'cut off')
  await redis.del(log)
  t.match(await records.changes(second.last), { lost: true, last: '0-0' })
})

t.test('the log doesn’t grow without end', skipInQuick, async t => {
  const { records, redis, prefix } = await testKeys(t)
  for (let n = 0; n < 1300; n++) await newKey(records, { expiresIn: 1000 })
  t.ok(await redis.xlen(new KeyNames(prefix).apiKeysLog(tag)) < 1200)
})

t.test('of updates, a rotation and a revocation at once each happens whole or not at all', async t => {
  const { records } = await testKeys(t)
  const met = new Set<string>()
  for (let round = 0; round < 30; round++) {
    const { id } = await newKey(records)
    const [one, other] = [{ scopes: ['status'] as const, inboxes: ['one'] }, { scopes: ['catch'] as const, inboxes: ['other'], expiresIn: 60_000 }]
    const asked = [
      () => records.update(id, one, 'me'), () => records.update(id, other, 'me'), () => records.rotate(id, 60_000, 'me'), () => records.revoke(id, 'me'),
    ]
    // Each is the first in some rounds.
    const outcomes = await Promise.all(asked.map((_, at) => asked[(at + round) % asked.length]!().then(reply => reply.outcome)))
    const [first, second, rotation, revocation] = asked.map((_, at) => outcomes[(at - round % asked.length + asked.length) % asked.length])
    const { record, previous } = (await records.lookUp(id))!
    t.equal(revocation, 'revoked')
    t.not(record.revokedAt, null)
    t.equal(previous !== null, rotation === 'rotated')
    const now = `${record.scopes} ${record.inboxes}`
    t.ok([...first === 'updated' ? ['status one'] : [], ...second === 'updated' ? ['catch other'] : []].includes(now) || (first !== 'updated' && second !== 'updated' && now === 'pass,catch,status null'), now)
    t.equal(record.endsAt !== null, second === 'updated')
    met.add(`${first} ${second} ${rotation}`)
  }
  t.ok(met.size > 1, [...met].join())
})
