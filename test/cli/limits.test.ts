import t from 'tap'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { pass, placeIn } from '../helpers/handoffs.ts'
import { testStore } from '../helpers/redis.ts'

// Over TCP, because REDIS_URL can't name a unix socket.
const { url } = await startRedisServer(t)

t.test('limits are set, listed and removed', async t => {
  const { prefix, redis } = await testStore(t, { url })
  const env = { REDIS_URL: url, REDIS_KEY_PREFIX: prefix }
  const run = (...args: string[]) => handoff(['limits', ...args], { env })

  t.match(await run('list'), { code: 0, stdout: 'there are no limits\n', stderr: '' })
  t.strictSame(parsed(await run('list', '--json')), [])
  t.match(await run('set', '--tenant', 'acme', '--rate-limit', '600'),
    { code: 0, stdout: 'set: within 2 s this holds everywhere\nfor    all agents of tenant acme together\nlimit  600 requests a minute\n', stderr: '' })
  t.match(await run('set', '--tenant', 'acme', '--rate-limit', '60'), { stdout: /^limit {2}60 requests a minute \(before: 600\)$/m })
  t.match(await run('set', '--tenant', 'acme', '--rate-limit', '60'), { code: 0, stdout: /^it was so before; nothing changed\n/ })
  t.strictSame(parsed(await run('set', '--tenant', 'acme', '--agent', 'bob', '--rate-limit', '30', '--json')), { tenant: 'acme', agent: 'bob', rate_per_minute: 30, max_live: null })
  await run('set', '--tenant', 'a', '--agent', '__proto__', '--rate-limit', '1')
  t.match(await run('list'), { code: 0, stdout: 'tenant  agent         requests a minute  live at most  live\na       __proto__     1                  -             -\nacme    all together  60                 -             -\nacme    bob           30                 -             -\n' })
  t.strictSame(parsed(await run('list', '--tenant', 'acme', '--json')), [
    { tenant: 'acme', agent: null, rate_per_minute: 60, max_live: null, live: null }, { tenant: 'acme', agent: 'bob', rate_per_minute: 30, max_live: null, live: null }
  ])
  t.strictSame(parsed(await run('list', '--tenant', 'other', '--json')), [])

  t.match(await run('remove', '--tenant', 'acme'), { code: 0, stdout: 'removed: within 2 s there is no limit for all agents of tenant acme together\n', stderr: '' })
  t.match(await run('remove', '--tenant', 'acme'), { code: 0, stdout: 'there was no limit for all agents of tenant acme together; nothing changed\n' })
  t.strictSame(parsed(await run('remove', '--tenant', 'acme', '--agent', 'bob', '--json')), { tenant: 'acme', agent: 'bob', removed: true })
  t.strictSame(parsed(await run('remove', '--tenant', 'acme', '--agent', 'bob', '--json')), { tenant: 'acme', agent: 'bob', removed: false })

  const made = await redis.keys(`${prefix}:*`)
  const wrong: Array<[args: string[], says: RegExp]> = [
    [['set', '--tenant', 'acme'], /nothing to set: give --max-live, --rate-limit, or both/],
    [['set', '--tenant', 'acme', '--max-live', '0'], /^--max-live: "0" is not valid; it takes a number of handoffs/],
    [['set', '--rate-limit', '5'], /--tenant.* not specified/],
    [['set', '--tenant', 'acme', '--rate-limit', '0'], /^--rate-limit: "0" is not valid; it takes a number of requests per minute/],
    [['set', '--tenant', 'acme', '--max-live', 'any'], /^--max-live: /],
    [['set', '--tenant', 'a/b', '--rate-limit', '5'], /^--tenant: .* it takes 1 to 64 of/],
    [['set', '--tenant', 'acme', '--agent', '*', '--rate-limit', '5'], /^--agent: /],
    [['remove'], /--tenant.* not specified/],
    [['list', '--tenant', ''], /^--tenant: /],
    [['lsit'], /unknown command/],
  ]
  for (const [args, says] of wrong) t.match(await run(...args), { code: 2, stdout: '', stderr: says }, args.join(' '))
  t.strictSame(await redis.keys(`${prefix}:*`), made)
})

t.test('live handoffs are limited and counted; what is left out stays', async t => {
  const { prefix, store } = await testStore(t, { url })
  const env = { REDIS_URL: url, REDIS_KEY_PREFIX: prefix }
  const run = (...args: string[]) => handoff(['limits', ...args], { env })
  const set = async (...args: string[]) => await run('set', '--tenant', 'default', ...args)

  t.match(await set('--max-live', '100'),
    { code: 0, stdout: 'set: within 2 s this holds everywhere\nfor    all agents of tenant default together\nlimit  100 live handoffs\n', stderr: '' })
  t.match(await set('--rate-limit', '60'), { stdout: /\nlimit {2}60 requests a minute\nlimit {2}100 live handoffs\n$/ })
  t.match(await set('--max-live', '100'), { stdout: /^it was so before; nothing changed\n/ })
  t.match(await set('--max-live', '50', '--rate-limit', 'none'), { stdout: /\nlimit {2}no limit in requests a minute \(before: 60\)\nlimit {2}50 live handoffs \(before: 100\)\n$/ })
  t.strictSame(parsed(await set('--agent', 'alice', '--max-live', '7', '--rate-limit', '9', '--json')), { tenant: 'default', agent: 'alice', rate_per_minute: 9, max_live: 7 })
  t.match(await set('--agent', 'alice', '--max-live', '8'), { stdout: /before: 7\)$/m })
  t.match(await set('--agent', 'carl', '--max-live', '8'), { stdout: /^set: within 2 s [^\n]*\nfor {4}carl [^\n]*\nlimit {2}8 live handoffs\nnote {3}what it passed before is counted first: with very many that takes longer than 2 s\n$/ })
  await run('remove', '--tenant', 'default', '--agent', 'carl')
  t.notMatch((await set('--agent', 'alice', '--max-live', '7')).stdout, 'note')
  t.strictSame(parsed(await set('--agent', 'bob', '--rate-limit', '9', '--json')), { tenant: 'default', agent: 'bob', rate_per_minute: 9, max_live: null })
  const places = ['AAA', 'AAB', 'AAA'].map(placeIn)
  for (const place of places) await pass(store.handoffs, place)
  t.strictSame(parsed(await run('list', '--json')), [
    { tenant: 'default', agent: null, rate_per_minute: null, max_live: 50, live: 3 },
    { tenant: 'default', agent: 'alice', rate_per_minute: 9, max_live: 7, live: 0 },
    { tenant: 'default', agent: 'bob', rate_per_minute: 9, max_live: null, live: null },
  ])
  t.match(await run('list'), { stdout: /\ndefault {2}all together {2}- {18}50 {12}3\n/ })
  t.match(await run('remove', '--tenant', 'default', '--agent', 'alice', '--json'), { stdout: /"removed":true/ })
  t.match(await set('--max-live', 'none'), { stdout: /\nlimit {2}no limit in live handoffs \(before: 50\)\n$/ })
  t.match(parsed(await run('list', '--json')), [{ agent: 'bob', max_live: null }])
})
