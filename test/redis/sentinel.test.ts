import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { randomToken, tags } from '../../src/core/ids.ts'
import { parseRedisUrl } from '../../src/core/redis-url.ts'
import type { Sentinels, Standalone } from '../../src/core/redis-url.ts'
import type { Place } from '../../src/store/handoffs.ts'
import { Unavailable, callBudget } from '../../src/redis/lanes.ts'
import { OneMaster } from '../../src/redis/masters.ts'
import { connect } from '../../src/redis/connect.ts'
import type { Store } from '../../src/store/store.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { startSentinelFleet } from '../faults/fleet/sentinel.ts'
import { timeRun } from '../helpers/clock.ts'
import { newPlace, pass, untilServing } from '../helpers/handoffs.ts'
import { fleetStore, quiet } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

/** Agents that pass and catch continuously, and record what was acknowledged. */
function startLoad (t: Test, store: Store) {
  const load = { over: false, passed: [] as Place[], caught: [] as Place[], slowest: 0, refusals: 0 }
  const timed = async <T>(asked: Promise<T>): Promise<T | undefined> => {
    const began = timeRun()
    try {
      return await asked
    } catch (error) {
      if (!(error instanceof Unavailable)) t.fail(String(error))
      load.refusals++
    } finally {
      load.slowest = Math.max(load.slowest, timeRun() - began)
    }
  }
  const agent = async () => {
    while (!load.over) {
      const place = newPlace()
      if (await timed(pass(store.handoffs, place)) !== undefined) {
        load.passed.push(place)
        const caught = await timed(store.handoffs.catch(place, randomToken(), 'bob'))
        if (caught !== undefined) {
          if (!('payload' in caught)) t.fail(`the only catch was told ${caught.outcome}`)
          load.caught.push(place)
        }
      }
      await sleep(5)
    }
  }
  const agents = Array.from({ length: 4 }, agent)
  t.teardown(() => { load.over = true })
  return {
    load,
    goesOn: async (within: number) => {
      const before = load.caught.length
      await until(() => load.caught.length > before + 30, within)
    },
    stop: async () => {
      load.over = true
      await Promise.all(agents)
    },
  }
}

/** Checks that everything acknowledged is there: caught if that was acknowledged, and by nobody else. */
async function holds (t: Test, store: Store, { passed, caught }: ReturnType<typeof startLoad>['load']): Promise<void> {
  const records = await Promise.all(passed.map(place => store.handoffs.status(place)))
  t.equal(records.filter(({ outcome }) => outcome !== 'found').length, 0, `${passed.length} passed, none lost`)
  const again = await Promise.all(caught.map(place => store.handoffs.catch(place, randomToken(), 'eve')))
  t.equal(again.filter(({ outcome }) => outcome !== 'already_caught').length, 0, `${caught.length} caught, none twice`)
}

t.test('failovers lose nothing that was acknowledged', { timeout: 60_000 }, async t => {
  const fleet = await startSentinelFleet(t, { downAfterMs: 600, failoverTimeoutMs: 2000 })
  // A silent Sentinel is passed over, whichever it is.
  fleet.sentinels[0]!.pause()
  const store = fleetStore(t, fleet.url, { replicas: 1 })
  const began = timeRun()
  await untilServing(store.handoffs)
  t.ok(timeRun() - began < 6000, `connected after ${Math.round(timeRun() - began)} ms`)
  fleet.sentinels[0]!.resume()
  t.equal(await store.whyNotReady(), null)
  await fleet.untilWhole()

  const master = await fleet.master()
  const { load, goesOn, stop } = startLoad(t, store)
  await goesOn(5000)
  const switched = fleet.switched()
  await master.kill()
  const next = await switched
  await goesOn(8000)
  await stop()
  t.not(next, master)
  t.ok(load.slowest < 2 * callBudget, `the slowest took ${Math.round(load.slowest)} ms; ${load.refusals} were refused`)
  await holds(t, store, load)
})

t.test('Redis and the Sentinels can have different passwords', async t => {
  const master = await startRedisServer(t)
  const sentinel = await startRedisServer(t, { sentinel: true, options: ['--sentinel', `monitor handoffs 127.0.0.1 ${master.port} 1`] })
  await master.admin.config('SET', 'requirepass', 'one')
  await sentinel.admin.call('SENTINEL', 'SET', 'handoffs', 'auth-pass', 'one')
  await sentinel.admin.call('ACL', 'SETUSER', 'service', 'on', '>t%o', 'allchannels', '+@all')
  await sentinel.admin.call('ACL', 'SETUSER', 'default', 'resetpass', '>three')
  const becomes = async (url: string, reason: string | null) => {
    const store = fleetStore(t, url)
    await until(async () => await store.whyNotReady() === reason)
    t.pass(`${url}: ${reason ?? 'ready'}`)
  }
  await becomes(`redis+sentinel://:one@${sentinel.at}/handoffs?sentinel_password=three`, null)
  await becomes(`redis+sentinel://default:one@${sentinel.at}/handoffs?sentinel_username=service&sentinel_password=t%25o`, null)
  await becomes(`redis+sentinel://:wrong@${sentinel.at}/handoffs?sentinel_password=three`, 'Redis refuses the user and password of REDIS_URL.')
  await becomes(`redis+sentinel://:one@${sentinel.at}/handoffs?sentinel_password=wrong`, 'Redis refuses the user and password of REDIS_URL.')
  await becomes(`redis+sentinel://:one@${sentinel.at}/handoffs`, 'Redis wants a password; set it in REDIS_URL.')
})

t.test('a failover announced during a reconnect does not end the connection for good', async t => {
  const { url } = await startSentinelFleet(t)
  const masters = new OneMaster(parseRedisUrl(url) as Sentinels, tags, quiet)
  t.teardown(() => masters.close())
  const { calls } = masters.of()
  await until(() => calls.status === 'ready')
  // ioredis's failover detector of the broken connection, while ioredis asks the Sentinels for the next master.
  const detector = () => (calls as unknown as { connector: { failoverDetector: { disconnect (): void } | null } }).connector.failoverDetector
  await until(detector)
  calls.once('connecting', () => setImmediate(() => detector()!.disconnect()))
  let ended = false
  calls.once('end', () => { ended = true })
  calls.stream.destroy()
  await until(() => ended && calls.status === 'ready')
})

t.test('closing a connection to a silent server takes no time', async t => {
  const server = await startRedisServer(t)
  const redis = connect(parseRedisUrl(server.url) as Standalone, quiet)
  t.teardown(() => redis.disconnect())
  await once(redis, 'ready')
  server.pause()
  const closed = once(redis, 'close')
  const began = timeRun()
  redis.disconnect(true) // what ioredis does when a Sentinel announces a failover
  await closed
  const took = timeRun() - began
  server.resume()
  t.ok(took < 1500, `${Math.round(took)} ms, although no FIN comes back`)
})
