import t from 'tap'
import type { Redis } from 'ioredis'
import { ownRedis } from '../helpers/own-redis.ts'
import { testRedis } from '../helpers/redis.ts'
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
  const { url } = await ownRedis(t, ['--maxmemory', '8mb'])
  const test = testRedis(t, { url })
  const on = raw(test)

  await put(on, states.pending)
  await fill(test.redis)

  const other = `${member}-2`
  const passAnother = () => run(on, 'pass', at.passed, [on.keys.handoff(tag, other), on.keys.due(tag, 'acme')],
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

  const long = JSON.stringify('x'.repeat(2000))
  /** What is asked with little, and with much: it goes on with what doesn't make Redis larger. */
  const asked: Array<[StateName, (now: number, text: string) => Promise<unknown>]> = [
    ['caught with windows', (now, text) => heartbeat(on, now, { agent: 'A', deadline: now }, 5000, `{"message":${text}}`)],
    ['caught', (now, text) => done(on, now, { agent: 'A', token: 'dtok', deadline: now }, text)],
    ['caught', (now, text) => cancel(on, now, { agent: 'passer', deadline: now }, 0, text)],
    ['pending', (now, text) => cancel(on, now, { agent: 'passer', deadline: now }, 0, text)],
    ['caught with attempts', (now, text) => fail(on, now, { agent: 'A', token: 'ftok', deadline: now }, `{"message":${text}}`)],
    ['caught with attempts', (now, text) => decline(on, now, { agent: 'A', token: 'ftok', deadline: now }, text)],
    ['pending, waiting', (now, text) => approve(on, now, { agent: 'B', token: 'dectok', deadline: now }, text)],
    ['pending, waiting', (now, text) => reject(on, now, { agent: 'B', token: 'dectok', deadline: now }, text)],
  ]
  for (const [name, ask] of asked) {
    await test.redis.del(filler)
    await put(on, states[name])
    await fill(test.redis)
    const before = await test.dump()
    t.strictSame(await ask(states[name].now, long), ['full'], name)
    t.strictSame(await test.dump(), before, `${name}: nothing changed`)
    const reply = await ask(states[name].now, '"why"')
    t.notMatch(reply, ['full'], name)
    t.notSame(await test.dump(), before, `${name}: ${reply}`)
  }
  await test.redis.del(filler)
  await put(on, states.failed)
  await fill(test.redis)
  await t.rejects(reissue(on, states.failed.now, { agent: 'passer', deadline: states.failed.now }), /^OOM/, 'a successor that nobody needs to finish')

  await test.redis.del(filler)
  t.equal(await passAnother(), at.passed, 'with room again it takes what it refused')
})
