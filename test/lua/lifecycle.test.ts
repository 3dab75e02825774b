import t from 'tap'
import { loadScripts } from '../../src/redis/scripts.ts'
import { testRedis } from '../helpers/redis.ts'
import { attempts, fault, furtherStates, line, progress, reason, schema, windows } from '../helpers/further-states.ts'
import { approve, cancel, catchIt, decline, done, dumped, fail, heartbeat, lifetimes, member, nextMember, pass, put, raw, reissue, reject, sweep, tag } from '../helpers/scripts.ts'
import type { Raw } from '../helpers/scripts.ts'
import { T, at, note, payload, result, states } from '../helpers/states.ts'
import type { StateName } from '../helpers/states.ts'

const passer = { agent: 'passer', token: 'ptok', deadline: at.passed }
const catcher = { agent: 'A', token: 'ctok', deadline: at.caught }
const approver = { agent: 'approver', token: 'dectok', deadline: at.decided }
const finisher = { agent: 'A', token: 'dtok', deadline: at.done }

t.test('the states of the tables are those that the scripts make', async t => {
  const test = testRedis(t)
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

type Step = (on: Raw) => Promise<unknown>

const asking = (now: number, agent = 'passer', token = 'ptok') => ({ agent, token, deadline: now })
const passed = (options: string, requireHuman = false): Step => on =>
  pass(on, at.passed, asking(at.passed), requireHuman, options.includes(' z') ? payload + schema : payload, options)
const approved: Step = on => approve(on, at.decided, approver, note)
const rejected: Step = on => reject(on, at.decided, approver, note)
const caught: Step = on => catchIt(on, at.caught, catcher)
const beaten = (extendBy: number | '' = '', told = ''): Step => on => heartbeat(on, at.done, asking(at.done, 'A'), extendBy, told)
const finished: Step = on => done(on, at.done, finisher, result, 'itsschema')
const failed = (mayRetry: number): Step => on => fail(on, at.done, asking(at.done, 'A', 'ftok'), fault, mayRetry)
const declined: Step = on => decline(on, at.done, asking(at.done, 'A', 'ftok'), reason)
const cancelled = (force = 0, why = ''): Step => on => cancel(on, at.cancelled, asking(at.cancelled), force, why)
const reissued: Step = on => reissue(on, at.done, asking(at.done))
const swept = (now: number): Step => on => sweep(on, now)
/** From here on it is about the next attempt alone. */
const second: Step = async on => {
  await on.redis.del(on.keys.handoff(tag, member))
  on.member = nextMember
}
const caughtAgain: Step = on => catchIt(on, T + 600, asking(T + 600, 'A', 'ctok'))

/** Lives in steps, and by their names the states that they lead through. */
const lives: Array<Array<Step | StateName>> = [
  [passed(' a80'), 'delayed', 'delayed, its last millisecond', 'delayed no more', 'delayed, overdue', swept(at.expires), 'delayed, expired'],
  [passed(' a80', true), 'delayed, waiting', 'delayed no more, waiting', 'delayed, waiting, overdue', swept(at.expires), 'delayed, expired while waiting'],
  [passed(' a80', true), approved, 'delayed, approved'],
  [passed(' a80', true), rejected, 'delayed, rejected'],
  [passed(windows), 'pending with windows', caught, 'caught with windows', 'caught with windows, its last millisecond', 'caught with windows, stalled',
    swept(at.heard), 'expired with windows, stalled'],
  [passed(windows), caught, beaten('', progress), 'caught with windows, heard of', 'caught with windows, heard of, stalled'],
  [passed(windows), caught, beaten(5000), 'caught with windows, extended'],
  [passed(' b300'), caught, 'caught, to be heard of'],
  [passed(' w700'), caught, 'caught with little time', 'caught with little time, overdue'],
  [passed(' w300 b300'), caught, 'caught, both deadlines together, overdue'],
  [passed(''), caught, beaten(), 'caught', beaten(5000), 'caught, extended', 'caught, extended, overdue'],
  [passed(''), caught, beaten('', progress), 'caught with progress'],
  [passed(''), caught, cancelled(), 'caught, cancel requested', cancelled(0, reason), 'caught, cancel requested with a reason', finished,
    'done although cancel was requested'],
  [passed(attempts), 'pending with attempts', caught, cancelled(), 'caught, cancel requested, overdue', swept(at.workDeadline), 'expired, cancel requested'],
  [passed(` sitsschema z${schema.length}`), 'pending with schema', caught, 'caught with schema', finished, 'done with schema'],
  [passed(line), 'pending in a line'],
  [passed(attempts, true), 'pending with attempts, waiting', approved, caught, 'caught with attempts after approval, overdue', swept(at.workDeadline),
    'expired after approval, tried again'],
  [passed(attempts), caught, 'caught with attempts', 'caught with attempts, overdue', swept(at.workDeadline), 'expired, tried again'],
  [passed(`${windows} m2`), caught, 'caught with attempts, stalled', swept(at.heard), 'expired, stalled, tried again'],

  [passed(''), caught, failed(1), 'failed'],
  [passed('', true), approved, caught, failed(1), 'failed after approval'],
  [passed(attempts), caught, failed(0), 'failed, not to be tried again'],
  [passed(attempts), caught, failed(1), 'failed, tried again', second, 'second, delayed', 'second, pending', 'second, overdue', caughtAgain, 'second, caught'],
  [passed(attempts, true), approved, caught, failed(1), 'failed after approval, tried again', second, 'second, approved'],
  [passed(''), caught, declined, 'declined'],
  [passed(attempts), caught, declined, 'declined, tried again'],
  [passed(attempts), caught, cancelled(0, reason), declined, 'declined, cancel requested'],

  [passed(''), cancelled(), 'cancelled'],
  [passed(''), cancelled(0, reason), 'cancelled with a reason'],
  [passed('', true), cancelled(), 'cancelled while waiting'],
  [passed('', true), approved, cancelled(), 'cancelled after approval'],
  [passed(''), caught, cancelled(1, reason), 'cancelled from caught'],
  [passed(''), caught, reissued, 'cancelled, tried again', second, 'second, by reissue'],
]

t.test('nor are there other states of what isn’t plain', async t => {
  const test = testRedis(t)
  const met = new Set<string>()
  for (const life of lives) {
    const on: Raw = raw(test)
    await put(on, states.absent)
    await on.redis.del(on.keys.handoff(tag, nextMember))
    for (const step of life) {
      if (typeof step !== 'string') await step(on)
      else t.strictSame(await test.dump(), dumped(states[step], on.member), step)
      if (typeof step === 'string') met.add(step)
      for (const [key, { expires }] of Object.entries(await test.dump()) as Array<[string, { expires: number }]>) {
        if (key.includes(':h:')) t.ok(expires > T, `${key} has a TTL`)
      }
    }
  }
  // The last of its attempts: the same with another number, which a chain of successors led to (successors.test.ts).
  t.strictSame(Object.keys(furtherStates).filter(name => !met.has(name)), ['caught for the last time, overdue'])
})

t.test('as production runs them: by digest, by Redis’s own clock', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const scripts = loadScripts()
  for (const script of Object.values(scripts)) t.equal(await test.redis.script('LOAD', script.source), script.sha1, `${script.name}: the digest`)

  const time = async () => {
    const [seconds, microseconds] = await test.redis.time()
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000)
  }
  const passAt = async (deadline: number) => await test.redis.evalsha(scripts.pass.sha1, 2, on.keys.handoff(tag, member), on.keys.due(tag),
    deadline, 'passer ptok', lifetimes.expiresIn, payload) as number | [string]

  const before = await time()
  t.strictSame(await passAt(before - 1), ['late'])
  const created = await passAt(before + 60_000) as number
  const after = await time()
  t.ok(created >= before && created <= after)
})
