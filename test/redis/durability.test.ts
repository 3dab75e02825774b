import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { randomToken } from '../../src/core/ids.ts'
import { Unavailable, callBudget } from '../../src/redis/lanes.ts'
import { info, isReplicated } from '../faults/fleet/ask.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { done, newPlace, pass, untilServing } from '../helpers/handoffs.ts'
import { testStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

/** A master, its replica, and a store that acknowledges only what the replica has. */
async function pair (t: Test, replicas = 1) {
  const master = await startRedisServer(t)
  const replica = await startRedisServer(t, { options: ['--replicaof', `127.0.0.1 ${master.port}`] })
  await until(() => isReplicated(master, 1), 20_000)
  const test = await testStore(t, { url: master.url, replicas })
  // Connected, and the script is loaded: no NOSCRIPT interferes.
  if (replicas === 1) await pass(test.store.handoffs)
  return { ...test, master, replica, handoffs: test.store.handoffs }
}

async function callsOf (master: Awaited<ReturnType<typeof pair>>['master'], command: string): Promise<number> {
  const line = (await info(master, 'commandstats'))[`cmdstat_${command}`]
  return Number(/calls=(\d+)/.exec(line ?? 'calls=0')![1])
}

/** The outcome, and after how many milliseconds. */
async function timed<T> (asked: Promise<T>): Promise<{ answer: T | Error, after: number }> {
  const began = performance.now()
  const answer = await asked.catch((error: Error) => error)
  return { answer, after: performance.now() - began }
}

function refusedInTime (t: Test, { answer, after }: { answer: unknown, after: number }): void {
  t.ok(answer instanceof Unavailable, `not acknowledged: ${JSON.stringify(answer)}`)
  t.ok(after >= callBudget - 100 && after < 2 * callBudget, `told after ${Math.round(after)} ms`)
}

t.test('one WAIT acknowledges all calls of a tick', async t => {
  const { handoffs, master } = await pair(t)
  const before = await callsOf(master, 'wait')
  await Promise.all(Array.from({ length: 200 }, () => pass(handoffs)))
  t.equal(await callsOf(master, 'wait') - before, 1)
})

t.test('nothing is acknowledged that the replica does not have', async t => {
  const { handoffs, replica, master } = await pair(t)
  const [waiting, caught] = [newPlace(), newPlace()]
  await Promise.all([pass(handoffs, waiting), pass(handoffs, caught)])
  await handoffs.catch(caught, randomToken(), 'bob')
  replica.pause()
  const answers = await Promise.all([
    timed(pass(handoffs)), timed(handoffs.catch(waiting, randomToken(), 'bob')), timed(done(handoffs, caught)), timed(handoffs.status(waiting)),
  ])
  for (const answer of answers) refusedInTime(t, answer)
  t.match((answers[0]!.answer as Error).message, /^0 of 1 replicas acknowledged in time$|^Redis did not answer in time$/)
  replica.resume()
  await until(() => isReplicated(master, 1))
  await untilServing(handoffs)
})

t.test('a replica that comes back within the budget goes unnoticed, and nothing happens twice', async t => {
  const { handoffs, replica, dump } = await pair(t)
  const [place, other] = [newPlace(), newPlace()]
  await Promise.all([pass(handoffs, place), pass(handoffs, other)])
  await handoffs.catch(other, randomToken(), 'bob')
  const before = Object.keys(await dump()).filter(key => key.includes(':h:')).length
  replica.pause()
  const asked = Promise.all([timed(pass(handoffs)), timed(handoffs.catch(place, randomToken(), 'bob'))])
  // Longer than WAIT's time-out: both calls were retried, and recognised their own tokens.
  await sleep(800)
  replica.resume()
  const [passed, caught] = await asked
  t.match(passed.answer, { outcome: 'replayed' })
  t.match(caught.answer, { outcome: 'replayed' })
  t.ok(passed.after > 700, `after ${Math.round(passed.after)} ms, when the replica was back`)
  t.equal(Object.keys(await dump()).filter(key => key.includes(':h:')).length, before + 1)
})

t.test('a call is refused in time when too few replicas acknowledge', async t => {
  const { handoffs } = await pair(t, 2)
  const refused = await timed(pass(handoffs))
  refusedInTime(t, refused)
  t.match((refused.answer as Error).message, '1 of 2 replicas acknowledged in time')
})

t.test('calls that are retried after NOSCRIPT are in a group again', async t => {
  const { handoffs, replica, master } = await pair(t)
  for (let flush = 0; flush < 5; flush++) {
    await master.admin.script('FLUSH')
    const waits = await callsOf(master, 'wait')
    const replies = await Promise.all(Array.from({ length: 20 }, () => pass(handoffs)))
    t.ok(replies.every(({ outcome }) => outcome === 'passed'))
    t.ok(await callsOf(master, 'wait') - waits >= 2, 'the WAIT behind NOSCRIPT is none for what came after it')
  }
  await master.admin.script('FLUSH')
  replica.pause()
  refusedInTime(t, await timed(pass(handoffs)))
  replica.resume()
})

t.test('another client’s write is told only once the replica has it', async t => {
  const { handoffs, replica, master, prefix } = await pair(t)
  // A store without durability writes something that no replica has.
  const { store: careless } = await testStore(t, { url: master.url, prefix })
  const place = newPlace()
  await Promise.all([untilServing(careless.handoffs), handoffs.status(newPlace())])
  replica.pause()
  await pass(careless.handoffs, place)
  const asked = timed(handoffs.status(place))
  await sleep(800)
  replica.resume()
  const { answer, after } = await asked
  t.match(answer, { outcome: 'found' })
  t.ok(after > 700, `after ${Math.round(after)} ms, when the replica had it`)
})

t.test('reads of a master with a silent replica are not answered: it may have been replaced', async t => {
  const { handoffs, replica, master } = await pair(t)
  await handoffs.status(newPlace())
  // The replica has everything and has acknowledged it, the PING of this check included.
  await until(async () => {
    const { slave0, master_repl_offset: offset } = await info(master, 'replication')
    return slave0?.includes(`offset=${offset},`)
  })
  replica.pause()
  refusedInTime(t, await timed(handoffs.status(newPlace())))
  replica.resume()
})

t.test('calls survive a master that becomes a replica during WAIT, and a master again', async t => {
  const { handoffs, master, replica } = await pair(t)
  replica.pause()
  const asked = timed(pass(handoffs))
  await until(async () => Number((await info(master, 'clients')).blocked_clients) === 1)
  await master.admin.replicaof('127.0.0.1', 1)
  await until(async () => Number((await info(master, 'clients')).blocked_clients) === 0)
  await sleep(100)
  await master.admin.replicaof('NO', 'ONE')
  replica.resume()
  t.match((await asked).answer, { outcome: /^(passed|replayed)$/ })
  t.match((await info(master, 'errorstats')).errorstat_UNBLOCKED, /count=[1-9]/, 'it was told so')
})

t.test('a stalled replica holds up only calls made while it stalls', async t => {
  const { handoffs, master, replica } = await pair(t)
  replica.pause()
  const work = { over: false, answers: [] as Array<Promise<unknown>> }
  const load = setInterval(() => work.answers.push(pass(handoffs).catch(() => {})), 1)
  t.teardown(() => clearInterval(load))
  const before = await callsOf(master, 'wait')
  await sleep(1200)
  // One group waits and one is behind it, 500 ms each: with a WAIT per tick there would be a hundred by now.
  clearInterval(load)
  replica.resume()
  const { after } = await timed(pass(handoffs))
  t.ok(after < callBudget, `the next was answered after ${Math.round(after)} ms`)
  await Promise.all(work.answers)
  const waits = await callsOf(master, 'wait') - before
  t.ok(waits < 20, `${waits} WAITs for ${work.answers.length} calls`)
})
