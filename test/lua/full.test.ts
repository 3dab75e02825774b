import t from 'tap'
import type { Redis } from 'ioredis'
import { defaultCacheDir, findRedisServer } from '../../src/embedded/binary.ts'
import { startRedis } from '../../src/embedded/server.ts'
import { scratchDir } from '../helpers/processes.ts'
import { quiet, testRedis } from '../helpers/redis.ts'
import {
  approve, cancel, catchIt, decline, done, fail, heartbeat, lease, lifetimes, member, pass, put, raw, reissue, reject, run, status, sweep, tag,
} from '../helpers/scripts.ts'
import { at, payload, states } from '../helpers/states.ts'
import type { StateName } from '../helpers/states.ts'

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
  const test = testRedis(t, { url: server.socket })
  const on = raw(test)

  await put(on, states.pending)
  await fill(test.redis)

  const other = `${member}-2`
  const passAnother = () => run(on, 'pass', at.passed, [on.keys.handoff(tag, other), on.keys.due(tag)],
    [at.passed, 'passer ptok', lifetimes.expiresIn, payload])
  await t.rejects(passAnother(), /^OOM/)
  await t.rejects(pass(on, at.passed, { agent: 'passer', token: 'ptok', deadline: at.passed }), /^OOM/, 'not even one that is there already')
  t.equal(await test.redis.exists(on.keys.handoff(tag, other)), 0)

  t.strictSame(await status(on, at.passed), ['found', at.passed, states.pending.hash?.s, null, null])
  t.strictSame(await catchIt(on, at.caught, { agent: 'A', token: 'ctok', deadline: at.caught }), ['caught', at.passed, payload, null, null, null, null, null])
  t.strictSame(await done(on, at.done, { agent: 'A', token: 'dtok', deadline: at.done }), ['done', at.done])
  t.strictSame(await lease(on, at.done, 'one', 3600_000), ['held'])

  t.strictSame(await sweep(on, at.expires), ['swept', 0, 0, 0, null, 0, 0, 0])
  await test.redis.del(filler)
  await put(on, states['pending, overdue'])
  await fill(test.redis)
  await t.rejects(passAnother(), /^OOM/, 'full again')
  t.strictSame(await sweep(on, at.expires), ['swept', 1, 1, 0, null, 0, 0, 0])

  const goOn: Array<[StateName, (now: number) => Promise<unknown>]> = [
    ['caught with windows', now => heartbeat(on, now, { agent: 'A', deadline: now }, 5000, '{"percent":5}')],
    ['caught', now => cancel(on, now, { agent: 'passer', deadline: now }, 0, '"why"')],
    ['pending', now => cancel(on, now, { agent: 'passer', deadline: now }, 0, '"why"')],
    ['caught with attempts', now => fail(on, now, { agent: 'A', token: 'ftok', deadline: now })],
    ['caught with attempts', now => decline(on, now, { agent: 'A', token: 'ftok', deadline: now })],
    ['caught with attempts, overdue', now => sweep(on, now)],
    ['pending, waiting', now => approve(on, now, { agent: 'B', token: 'dectok', deadline: now })],
    ['pending, waiting', now => reject(on, now, { agent: 'B', token: 'dectok', deadline: now })],
  ]
  for (const [name, ask] of goOn) {
    await test.redis.del(filler)
    await put(on, states[name])
    await fill(test.redis)
    await t.rejects(passAnother(), /^OOM/, 'full again')
    const before = await test.dump()
    const [code] = await ask(states[name].now) as [string]
    t.match(code, /^(caught|requested|cancelled|failed|declined|reissued|swept|approved|rejected)$/, name)
    t.notSame(await test.dump(), before, `${name}: ${code}`)
  }

  const long = JSON.stringify('x'.repeat(2000))
  const makeLarger: Array<[StateName, (now: number) => Promise<unknown>]> = [
    ['caught with windows', now => heartbeat(on, now, { agent: 'A', deadline: now }, 5000, `{"message":${long}}`)],
    ['caught', now => done(on, now, { agent: 'A', token: 'dtok', deadline: now }, long)],
    ['caught', now => cancel(on, now, { agent: 'passer', deadline: now }, 0, long)],
    ['pending', now => cancel(on, now, { agent: 'passer', deadline: now }, 0, long)],
    ['caught with attempts', now => fail(on, now, { agent: 'A', token: 'ftok', deadline: now }, `{"message":${long}}`)],
    ['caught with attempts', now => decline(on, now, { agent: 'A', token: 'ftok', deadline: now }, long)],
    ['pending, waiting', now => approve(on, now, { agent: 'B', token: 'dectok', deadline: now }, long)],
    ['pending, waiting', now => reject(on, now, { agent: 'B', token: 'dectok', deadline: now }, long)],
  ]
  for (const [name, ask] of makeLarger) {
    await test.redis.del(filler)
    await put(on, states[name])
    await fill(test.redis)
    const before = await test.dump()
    t.strictSame(await ask(states[name].now), ['full'], name)
    t.strictSame(await test.dump(), before, `${name}: nothing changed`)
  }
  await test.redis.del(filler)
  await put(on, states.failed)
  await fill(test.redis)
  await t.rejects(reissue(on, states.failed.now, { agent: 'passer', deadline: states.failed.now }), /^OOM/, 'a successor that nobody needs to finish')

  await test.redis.del(filler)
  t.equal(await passAnother(), at.passed, 'with room again it takes what it refused')
})
