import slotOf from 'cluster-key-slot'
import t from 'tap'
import { randomHomeId, randomToken, tagOf } from '../../src/handoff/id.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { newPlace, pass, payload } from '../helpers/handoffs.ts'
import { testStore } from '../helpers/redis.ts'

// Over TCP: a socket's path is no REDIS_URL.
const redisServer = await startRedisServer(t)

t.test('it says how a handoff stands, and changes nothing', async t => {
  const { store, prefix, url, dump } = await testStore(t, { url: redisServer.url })
  const env = { REDIS_URL: url, REDIS_KEY_PREFIX: prefix }
  const place = newPlace()
  const { id, tag } = place
  const unchanged = async (...args: string[]) => {
    const before = await dump()
    const ended = await handoff(args, { env })
    t.match(ended, { code: 0, stderr: '' }, args[0]!)
    t.strictSame(await dump(), before, 'nothing changed')
    return ended
  }

  await pass(store.handoffs, place, 3600_000)
  const pending = parsed(await unchanged('status', id, '--json'))
  t.match(pending, { handoff_id: id, tenant: 'default', status: 'pending', passed_by: 'alice', caught_by: null, work_deadline: null, approval: null })
  t.ok(Number(pending.deadline_in_ms) > 3500_000 && Number(pending.deadline_in_ms) <= 3600_000, `${pending.deadline_in_ms} ms left`)
  t.strictSame([pending.payload, pending.payload_bytes, pending.key], [undefined, undefined, undefined], 'where it lies is inspect’s')

  await store.handoffs.catch(place, randomToken(), 'bob')
  const { stdout } = await unchanged('inspect', id)
  const key = `${prefix}:{${tag}}:h:default:${id}`
  for (const line of [`handoff    ${id}`, 'status     caught', 'tenant     default', `partition  ${tag}, slot ${slotOf(tag)}`, `key        ${key}`,
    `master     ${redisServer.at}`, `payload    ${payload.length} bytes`, 'result     none']) t.ok(stdout.includes(`${line}\n`), line)
  t.match(stdout, /^passed +\S+Z \(.*ago\) by alice$/m)
  t.match(stdout, /^caught +\S+Z \(.*ago\) by bob$/m)
  t.match(stdout, /^work due +\S+Z \(in .+\)$/m)
  t.match(stdout, /^kept until +\S+Z \(in .*\)$/m)
  t.notOk(stdout.includes('"task"'), 'the payload isn’t shown unasked')

  const whole = await unchanged('inspect', id, '--payload', '--json')
  t.match(parsed(whole), { status: 'caught', caught_by: 'bob', slot: slotOf(tag), master: redisServer.at, payload: { task: 't' }, result: null })
  t.ok(whole.stdout.includes(`"payload":{${payload}}`), 'as it was passed')
  t.match((await unchanged('inspect', id, '--payload')).stdout, `\n\n{${payload}}\n`)

  await store.handoffs.done(place, randomToken(), 'bob', Buffer.from('{"sum": 6.0}'))
  t.match(parsed(await unchanged('inspect', id, '--json')), { status: 'done', payload_bytes: null, result_bytes: 12, deadline_in_ms: null })
  t.ok((await unchanged('inspect', id, '--json', '--payload')).stdout.includes('"result":{"sum": 6.0}'), 'as it was given')
  t.match((await unchanged('status', id)).stdout, /^done +\S+Z \(.* ago\)$/m)
})

t.test('a person’s decision, and what has expired', async t => {
  const { store, prefix, url } = await testStore(t, { url: redisServer.url })
  const env = { REDIS_URL: url, REDIS_KEY_PREFIX: prefix }
  const place = newPlace(randomHomeId('default'))
  await store.handoffs.pass({ ...place, token: '-', passedBy: 'alice', requireHuman: true, listedLength: 2, expiresIn: 60_000, payload })
  t.match((await handoff(['status', place.id], { env })).stdout, /^approval +waiting$/m)
  await store.approvals.decide('rejected', place, randomToken(), 'carol', undefined, Buffer.from('"no\u009b2J"'))
  t.match((await handoff(['status', place.id], { env })).stdout, /^status +rejected$[^]*^approval +rejected \S+Z \(.*ago\) by carol: "no\\u009b2J"$/m)
  t.match(parsed(await handoff(['status', place.id, '--json'], { env })), { status: 'rejected', require_human: true, approval: { state: 'rejected', decided_by: 'carol' } })

  const late = newPlace()
  await pass(store.handoffs, late, 1)
  t.match((await handoff(['status', late.id], { env })).stdout, /^status +expired$[^]*^expires +\S+Z \(.*ago\)$/m, 'although no sweep has come')
})

t.test('whose it is needn’t be said where the tenant is known', async t => {
  const { store, prefix, url } = await testStore(t, { url: redisServer.url })
  const env = { REDIS_URL: url, REDIS_KEY_PREFIX: prefix }
  const place = { ...newPlace(), tenant: 'acme' }
  await pass(store.handoffs, place)
  const none = { code: 1, stdout: '', stderr: /^no such handoff: [^\n]*--tenant\)\n$/ }
  t.match(await handoff(['status', place.id], { env }), none)
  t.match(await handoff(['status', place.id, '--tenant', 'other'], { env }), none)
  t.match(parsed(await handoff(['status', place.id, '--tenant', 'acme', '--json'], { env })), { tenant: 'acme' })
  t.match(parsed(await handoff(['status', place.id, '--json'], { env: { ...env, API_KEYS: 'acme/a:a-secret-of-16-or-more' } })), { tenant: 'acme' }, 'from the settings')
  await store.keyRecords.create({ tenant: 'acme', agent: 'a', scopes: ['pass'], expiresIn: null, ratePerMinute: null, by: 'test' })
  t.match(parsed(await handoff(['status', place.id, '--json'], { env })), { tenant: 'acme' }, 'from the keys')
})

t.test('what can’t be an id never reaches Redis', async t => {
  const env = { REDIS_URL: 'redis://127.0.0.1:1' }
  for (const id of ['x', '', 'a b', 'x'.repeat(10_000), `${tagOf(newPlace().id)}${'A'.repeat(21)}B`]) {
    t.match(await handoff(['inspect', id], { env }), { code: 1, stdout: '', stderr: /^that is no handoff’s id: [^\n]*\n$/ }, id.slice(0, 30))
  }
})
