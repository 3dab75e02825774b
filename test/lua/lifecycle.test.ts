import t from 'tap'
import { loadScripts } from '../../src/redis/scripts.ts'
import { testStore } from '../helpers/redis.ts'
import { approve, catchIt, done, dumped, lifetimes, member, pass, raw, reject, sweep, tag } from '../helpers/scripts.ts'
import { at, note, payload, result, states } from '../helpers/states.ts'
import type { StateName } from '../helpers/states.ts'

const passer = { agent: 'passer', token: 'ptok', deadline: at.passed }
const catcher = { agent: 'A', token: 'ctok', deadline: at.caught }
const approver = { agent: 'approver', token: 'dectok', deadline: at.decided }
const finisher = { agent: 'A', token: 'dtok', deadline: at.done }

t.test('the states of the tables are those that the scripts make', async t => {
  const test = await testStore(t)
  const on = raw(test)
  const is = async (name: StateName) => {
    const all = await test.dump()
    t.strictSame(all, dumped(states[name]), name)
    for (const [key, { expires }] of Object.entries(all) as Array<[string, { expires: number }]>) {
      if (key.includes(':h:')) t.ok(expires > 0, `${name}: ${key} has a TTL`)
    }
  }
  const startAgain = async () => await on.redis.del(on.keys.handoff(tag, member))

  await pass(on, at.passed, passer, false, payload)
  await is('pending')
  await catchIt(on, at.caught, catcher)
  await is('caught')
  await done(on, at.done, finisher, result)
  await is('done')

  await startAgain()
  await pass(on, at.passed, passer, true, payload)
  await is('pending, waiting')
  await sweep(on, at.expires)
  await is('expired while waiting')

  await startAgain()
  await pass(on, at.passed, passer, true, payload)
  await approve(on, at.decided, approver, note)
  await is('pending, approved')
  await sweep(on, at.expires)
  await is('expired after approval')

  await startAgain()
  await pass(on, at.passed, passer, true, payload)
  await approve(on, at.decided, approver, note)
  await catchIt(on, at.caught, catcher)
  await is('caught after approval')
  await done(on, at.done, finisher, result)
  await is('done after approval')

  await startAgain()
  await pass(on, at.passed, passer, true, payload)
  await approve(on, at.decided, approver, note)
  await catchIt(on, at.caught, catcher)
  await sweep(on, at.workDeadline)
  await is('expired from caught, after approval')

  await startAgain()
  await pass(on, at.passed, passer, true, payload)
  await reject(on, at.decided, approver, note)
  await is('rejected')

  await startAgain()
  await pass(on, at.passed, passer, false, payload)
  await sweep(on, at.expires)
  await is('expired')

  await startAgain()
  await pass(on, at.passed, passer, false, payload)
  await catchIt(on, at.caught, catcher)
  await sweep(on, at.workDeadline)
  await is('expired from caught')

  await startAgain()
  await pass(on, at.passed, passer, false, payload)
  await catchIt(on, at.caught, catcher)
  await done(on, at.done, finisher, '')
  await is('done without a result')
})

t.test('as production runs them: by digest, by Redis’s own clock', async t => {
  const test = await testStore(t)
  const on = raw(test)
  const scripts = loadScripts()
  for (const script of Object.values(scripts)) t.equal(await test.redis.script('LOAD', script.source), script.sha1, `${script.name}: the digest`)

  const time = async () => {
    const [seconds, microseconds] = await test.redis.time()
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000)
  }
  const passAt = async (deadline: number) => await test.redis.evalsha(scripts.pass.sha1, 2, on.keys.handoff(tag, member), on.keys.due(tag),
    deadline, 'ptok', 'passer', lifetimes.expiresIn, lifetimes.retention, member, 0, payload) as [string, number, number]

  const before = await time()
  t.strictSame(await passAt(before - 1), ['late'])
  const [outcome, created, expires] = await passAt(before + 60_000)
  const after = await time()
  t.equal(outcome, 'passed')
  t.ok(created >= before && created <= after)
  t.equal(expires, created + lifetimes.expiresIn)
})
