import t from 'tap'
import type { Redis } from 'ioredis'
import { defaultCacheDir, findRedisServer } from '../../src/embedded/binary.ts'
import { startRedis } from '../../src/embedded/server.ts'
import { scratchDir } from '../helpers/processes.ts'
import { quiet, testStore } from '../helpers/redis.ts'
import { catchIt, done, lease, lifetimes, member, pass, put, raw, run, status, sweep, tag } from '../helpers/scripts.ts'
import { at, payload, result, states } from '../helpers/states.ts'

const filler = 'filler'

/** One short command that takes far more than there is: Redis looks at its limit before a command, not while it runs. */
async function fill (redis: Redis): Promise<void> {
  await redis.setrange(filler, 16 * 1024 * 1024, 'x')
}

t.test('a full Redis takes no new handoff and lets those that are there go on to their end', async t => {
  const dataDir = await scratchDir(t)
  const binary = await findRedisServer({ serverBin: process.env.REDIS_SERVER_BIN, cacheDir: defaultCacheDir, log () {} })
  const server = await startRedis({ binary, dataDir, log: quiet, extra: ['--maxmemory', '8mb'] })
  t.teardown(() => server.stop())
  const test = await testStore(t, { url: server.socket })
  const on = raw(test)

  await put(on, states.pending)
  await fill(test.redis)

  const other = `${member}-2`
  const passAnother = () => run(on, 'pass', at.passed, [on.keys.handoff(tag, other), on.keys.due(tag)],
    [at.passed, 'ptok', 'passer', lifetimes.expiresIn, lifetimes.retention, other, 0, payload])
  await t.rejects(passAnother(), /^OOM/)
  await t.rejects(pass(on, at.passed, { agent: 'passer', token: 'ptok', deadline: at.passed }), /^OOM/, 'not even one that is there already')
  t.equal(await test.redis.exists(on.keys.handoff(tag, other)), 0)

  t.strictSame(await status(on, at.passed), ['found', at.passed, states.pending.hash?.s, null, null])
  t.strictSame(await catchIt(on, at.caught, { agent: 'A', token: 'ctok', deadline: at.caught }), ['caught', at.passed, payload, null])
  t.strictSame(await done(on, at.done, { agent: 'A', token: 'dtok', deadline: at.done }, result), ['done', at.done])
  t.strictSame(await lease(on, at.done, 'one', 3600_000), ['held'])

  t.strictSame(await sweep(on, at.expires), ['swept', 0, 0, 0, null])
  await test.redis.del(filler)
  await put(on, states['pending, overdue'])
  await fill(test.redis)
  await t.rejects(passAnother(), /^OOM/, 'full again')
  t.strictSame(await sweep(on, at.expires), ['swept', 1, 1, 0, null])

  await test.redis.del(filler)
  t.strictSame(await passAnother(), ['passed', at.passed, at.expires], 'with room again it takes what it refused')
})
