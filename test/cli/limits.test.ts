import t from 'tap'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { handoff, parsed } from '../helpers/command.ts'
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
  t.strictSame(parsed(await run('set', '--tenant', 'acme', '--agent', 'bob', '--rate-limit', '30', '--json')), { tenant: 'acme', agent: 'bob', rate_per_minute: 30 })
  await run('set', '--tenant', 'a', '--agent', '__proto__', '--rate-limit', '1')
  t.match(await run('list'), { code: 0, stdout: 'tenant  agent         requests a minute\na       __proto__     1\nacme    all together  60\nacme    bob           30\n' })
  t.strictSame(parsed(await run('list', '--tenant', 'acme', '--json')), [{ tenant: 'acme', agent: null, rate_per_minute: 60 }, { tenant: 'acme', agent: 'bob', rate_per_minute: 30 }])
  t.strictSame(parsed(await run('list', '--tenant', 'other', '--json')), [])

  t.match(await run('remove', '--tenant', 'acme'), { code: 0, stdout: 'removed: within 2 s there is no limit for all agents of tenant acme together\n', stderr: '' })
  t.match(await run('remove', '--tenant', 'acme'), { code: 0, stdout: 'there was no limit for all agents of tenant acme together; nothing changed\n' })
  t.strictSame(parsed(await run('remove', '--tenant', 'acme', '--agent', 'bob', '--json')), { tenant: 'acme', agent: 'bob', removed: true })
  t.strictSame(parsed(await run('remove', '--tenant', 'acme', '--agent', 'bob', '--json')), { tenant: 'acme', agent: 'bob', removed: false })

  const made = await redis.keys(`${prefix}:*`)
  const wrong: Array<[args: string[], says: RegExp]> = [
    [['set', '--tenant', 'acme'], /--rate-limit.* not specified/],
    [['set', '--rate-limit', '5'], /--tenant.* not specified/],
    [['set', '--tenant', 'acme', '--rate-limit', '0'], /^--rate-limit: "0" is not valid; it takes a number of requests per minute/],
    [['set', '--tenant', 'acme', '--rate-limit', 'none'], /^--rate-limit: /],
    [['set', '--tenant', 'a/b', '--rate-limit', '5'], /^--tenant: .* it takes 1 to 64 of/],
    [['set', '--tenant', 'acme', '--agent', '*', '--rate-limit', '5'], /^--agent: /],
    [['remove'], /--tenant.* not specified/],
    [['list', '--tenant', ''], /^--tenant: /],
    [['lsit'], /unknown command/],
  ]
  for (const [args, says] of wrong) t.match(await run(...args), { code: 2, stdout: '', stderr: says }, args.join(' '))
  t.strictSame(await redis.keys(`${prefix}:*`), made)
})
