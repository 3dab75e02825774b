import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { randomToken } from '../../src/core/ids.ts'
import { info, isReplicated } from '../faults/fleet/ask.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import type { RedisServer } from '../faults/fleet/redis.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { done, newPlace, pass, untilServing } from '../helpers/handoffs.ts'
import { testStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

async function callsOf (master: RedisServer, command: string): Promise<number> {
  const line = (await info(master, 'commandstats'))[`cmdstat_${command}`]
  return Number(/calls=(\d+)/.exec(line ?? 'calls=0')![1])
}

const refused = (t: Test, asked: Promise<unknown>) =>
  t.rejects(asked, { name: 'Unavailable', message: /^0 of 1 replicas acknowledged in time$|^Redis did not answer in time$/ })

t.test('a master, its replica, and a store that acknowledges only what the replica has', skipInQuick, async t => {
  const master = await startRedisServer(t)
  const replica = await startRedisServer(t, { options: ['--replicaof', `127.0.0.1 ${master.port}`] })
  await until(() => isReplicated(master, 1), 20_000)
  const { store: { handoffs }, dump, prefix } = await testStore(t, { url: master.url, replicas: 1 })
  const handoffCount = async () => Object.keys(await dump()).filter(key => key.includes(':h:')).length
  /** The replica is back, and the lane as well. */
  const goesOn = async () => {
    replica.resume()
    await until(() => isReplicated(master, 1))
    await untilServing(handoffs)
  }
  // Connected, and the script is loaded, alone and for several: no NOSCRIPT interferes.
  await pass(handoffs)
  await Promise.all([pass(handoffs), pass(handoffs)])

  await t.test('one WAIT acknowledges all calls of a tick', async t => {
    const before = await callsOf(master, 'wait')
    await Promise.all(Array.from({ length: 200 }, () => pass(handoffs)))
    t.equal(await callsOf(master, 'wait') - before, 1)
  })

  await t.test('nothing is acknowledged that the replica does not have', async t => {
    const [waiting, caught] = [newPlace(), newPlace()]
    await Promise.all([pass(handoffs, waiting), pass(handoffs, caught)])
    await handoffs.catch(caught, randomToken(), 'bob')
    replica.pause()
    const asked = [pass(handoffs), handoffs.catch(waiting, randomToken(), 'bob'), done(handoffs, caught), handoffs.status(waiting)]
    await Promise.all(asked.map(one => refused(t, one)))
    await goesOn()
  })

  await t.test('a replica that comes back within the budget goes unnoticed, and nothing happens twice', async t => {
    const [place, before] = [newPlace(), await handoffCount()]
    await pass(handoffs, place)
    replica.pause()
    const asked = Promise.all([pass(handoffs), handoffs.catch(place, randomToken(), 'bob')])
    // Longer than WAIT's time-out: both calls were retried, and recognised their own tokens.
    await sleep(800)
    replica.resume()
    t.match(await asked, [{ outcome: 'replayed' }, { outcome: 'replayed' }])
    t.equal(await handoffCount(), before + 2)
  })

  await t.test('calls that are retried after NOSCRIPT are in a group again', async t => {
    for (let flush = 0; flush < 5; flush++) {
      await master.admin.script('FLUSH')
      const waits = await callsOf(master, 'wait')
      const replies = await Promise.all(Array.from({ length: 20 }, () => pass(handoffs)))
      t.ok(replies.every(({ outcome }) => outcome === 'passed'))
      t.ok(await callsOf(master, 'wait') - waits >= 2, 'the WAIT behind NOSCRIPT is none for what came after it')
    }
    await master.admin.script('FLUSH')
    replica.pause()
    await refused(t, pass(handoffs))
    await goesOn()
  })

  await t.test('another client’s write is told only once the replica has it', async t => {
    // A store without durability writes something that no replica has.
    const { store: careless } = await testStore(t, { url: master.url, prefix })
    const place = newPlace()
    await Promise.all([untilServing(careless.handoffs), handoffs.status(newPlace())])
    replica.pause()
    await pass(careless.handoffs, place)
    let isTold = false
    const asked = handoffs.status(place).finally(() => { isTold = true })
    await sleep(800)
    t.notOk(isTold)
    replica.resume()
    t.match(await asked, { outcome: 'found' })
  })

  await t.test('reads of a master with a silent replica are not answered: it may have been replaced', async t => {
    await handoffs.status(newPlace())
    // The replica has everything and has acknowledged it, the PING of this check included.
    await until(async () => {
      const { slave0, master_repl_offset: offset } = await info(master, 'replication')
      return slave0?.includes(`offset=${offset},`)
    })
    replica.pause()
    await refused(t, handoffs.status(newPlace()))
    await goesOn()
  })

  await t.test('a stalled replica holds up only calls made while it stalls', async t => {
    replica.pause()
    const answers: Array<Promise<unknown>> = []
    const load = setInterval(() => answers.push(pass(handoffs).catch(() => {})), 1)
    t.teardown(() => clearInterval(load))
    const before = await callsOf(master, 'wait')
    await sleep(1200)
    // One group waits and one is behind it, 500 ms each: with a WAIT per tick there would be a hundred by now.
    clearInterval(load)
    replica.resume()
    t.match(await pass(handoffs), { outcome: 'passed' })
    await Promise.all(answers)
    const waits = await callsOf(master, 'wait') - before
    t.ok(waits < 20, `${waits} WAITs for ${answers.length} calls`)
  })

  await t.test('a call is refused when too few replicas acknowledge', async t => {
    const { store } = await testStore(t, { url: master.url, replicas: 2 })
    await t.rejects(pass(store.handoffs), { name: 'Unavailable', message: '1 of 2 replicas acknowledged in time' })
  })

  // The last one: the replica has another master's data then.
  await t.test('calls survive a master that becomes a replica during WAIT, and a master again', async t => {
    replica.pause()
    const asked = pass(handoffs)
    await until(async () => Number((await info(master, 'clients')).blocked_clients) === 1)
    await master.admin.replicaof('127.0.0.1', 1)
    await until(async () => Number((await info(master, 'clients')).blocked_clients) === 0)
    await master.admin.replicaof('NO', 'ONE')
    replica.resume()
    t.match(await asked, { outcome: /^(passed|replayed)$/ })
    t.match((await info(master, 'errorstats')).errorstat_UNBLOCKED, /count=[1-9]/, 'it was told so')
  })
})
