import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import { answer, approve, ask, cancel, catchIt, decline, done, fail, heartbeat, lifetimes, member, pass, put, raw, reissue, reject, run, status, sweep, tag, tenant } from '../helpers/scripts.ts'
import { T, at, states } from '../helpers/states.ts'
import type { StateName } from '../helpers/states.ts'
import { until } from '../helpers/until.ts'

const asking = { agent: 'A', token: 'other', deadline: at.workDeadline + lifetimes.retention }

t.test('each transition tells once, those who wait for the handoff and those who look at the list; a refusal tells nobody', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const listener = test.redis.duplicate()
  t.teardown(() => listener.disconnect())
  const [handoff, waiting] = [on.keys.handoff(tag, member), on.keys.waiting(tag, tenant)]
  const inbox = on.keys.inbox(tag, tenant, 'desk')
  const channels: Record<string, string> = { [handoff]: 'handoff', [waiting]: 'list', [inbox]: 'inbox', [on.keys.asksChannel(tenant)]: 'questions' }
  for (const channel of Object.keys(channels)) await listener.ssubscribe(channel)
  let heard: string[] = []
  listener.on('smessage', (channel: string, message: string) => heard.push(`${channels[channel]}: ${message}`))
  /** What was told of it; messages of one connection come in the order that they were sent. */
  const told = async (ask: () => Promise<unknown>) => {
    heard = []
    await ask()
    await test.redis.call('SPUBLISH', waiting, 'end')
    await until(() => heard.includes('list: end'))
    return heard.slice(0, -1)
  }
  const from = (state: StateName, ask: (now: number) => Promise<unknown>) => put(on, states[state]).then(() => told(() => ask(states[state].now)))

  t.strictSame(await from('absent', now => pass(on, now, asking)), [], 'nobody can wait for what is not yet')
  t.strictSame(await from('absent', now => pass(on, now, asking, true)), ['list: pending'])
  t.strictSame(await from('pending', now => catchIt(on, now, asking)), ['handoff: caught'])
  t.strictSame(await from('pending, waiting', now => approve(on, now, asking)), ['handoff: approved', 'list: approved'])
  t.strictSame(await from('pending, waiting', now => reject(on, now, asking)), ['handoff: rejected', 'list: rejected'])
  t.strictSame(await from('caught', now => done(on, now, asking)), ['handoff: done'])
  t.strictSame(await from('pending, overdue', now => sweep(on, now)), [], 'who waits for it knows its deadline')
  t.strictSame(await from('pending, waiting, overdue', now => sweep(on, now)), ['list: expired'])
  t.strictSame(await from('caught, overdue', now => sweep(on, now)), [])

  const passer = { ...asking, agent: 'passer' }
  t.strictSame(await from('caught', now => fail(on, now, asking)), ['handoff: failed'])
  t.strictSame(await from('caught', now => decline(on, now, asking)), ['handoff: declined'])
  t.strictSame(await from('caught with attempts', now => fail(on, now, asking)), ['handoff: failed'])
  t.strictSame(await from('pending', now => cancel(on, now, passer)), ['handoff: cancelled'])
  t.strictSame(await from('pending, waiting', now => cancel(on, now, passer)), ['list: cancelled', 'handoff: cancelled'])
  t.strictSame(await from('caught', now => cancel(on, now, passer, 1)), ['handoff: cancelled'])
  t.strictSame(await from('caught', now => cancel(on, now, passer)), [], 'its catcher is told by its heartbeats, and nobody else waits for that')
  t.strictSame(await from('caught', now => heartbeat(on, now, asking, 5000, '{"percent":1}')), [])
  t.strictSame(await from('caught', now => reissue(on, now, passer)), ['handoff: cancelled'])
  t.strictSame(await from('failed', now => reissue(on, now, passer)), ['handoff: failed'], 'who waits for its successor’s name')
  t.strictSame(await from('caught, overdue', now => reissue(on, now, passer)), ['handoff: expired'])
  t.strictSame(await from('caught with attempts, overdue', now => sweep(on, now)), ['handoff: expired'], 'who waits for its successor’s name')

  const person = { agent: 'person', token: 'atok', deadline: at.workDeadline }
  t.strictSame(await from('caught', now => ask(on, now, asking)), ['handoff: asked', 'questions: changed'])
  t.strictSame(await told(() => answer(on, at.done, person)), ['handoff: answered', 'questions: changed'])
  t.strictSame(await told(() => answer(on, at.done, person)), [], 'it was answered before')
  t.strictSame(await from('caught', now => ask(on, now, asking).then(() => done(on, now, asking))), ['handoff: asked', 'questions: changed', 'questions: changed', 'handoff: done'])
  t.strictSame(await from('caught', now => ask(on, now, asking).then(() => cancel(on, now, passer, 1))), ['handoff: asked', 'questions: changed', 'questions: changed', 'handoff: cancelled'])
  t.strictSame(await told(() => run(on, 'inbox-set', T, [inbox], [T, '1', '', '', '', ''])), ['inbox: set'])

  const other = 'T_gAAAAAAAAAAAAAAAAAAAAAA'
  const release = (now: number, open: number, became = 'done') => run(on, 'pass', now, [handoff, on.keys.due(tag, tenant)],
    [now, 'passer ptok', lifetimes.expiresIn, ` Ad/${open}/1/${other.length}`, `"task":"new"${other}`]).then(() =>
    run(on, 'release', now, [handoff, on.keys.due(tag, tenant)], [now, member, other, other, became]))
  t.strictSame(await from('absent', now => release(now, 1)), ['handoff: released'])
  t.strictSame(await from('absent', now => release(now, 2)), [], 'it waits for another')
  t.strictSame(await from('absent', now => release(now, 2, 'failed')), ['handoff: cancelled'])

  t.strictSame(await from('failed, tried again', now => reissue(on, now, passer)), [])
  t.strictSame(await from('cancelled', now => cancel(on, now, passer)), [])
  t.strictSame(await from('pending', now => fail(on, now, asking)), [])
  t.strictSame(await from('pending', now => pass(on, now, asking)), [])
  t.strictSame(await from('pending, waiting', now => catchIt(on, now, asking)), [])
  t.strictSame(await from('pending, approved', now => approve(on, now, asking)), [])
  t.strictSame(await from('pending, approved', now => reject(on, now, asking)), [])
  t.strictSame(await from('pending', now => done(on, now, asking)), [])
  t.strictSame(await from('pending', now => status(on, now)), [])
  t.strictSame(await from('pending', now => sweep(on, now)), [])
})
