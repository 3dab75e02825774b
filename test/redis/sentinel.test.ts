import { once } from 'node:events'
import t from 'tap'
import { Unavailable } from '../../src/core/errors.ts'
import { randomToken, tags } from '../../src/core/ids.ts'
import { parseRedisUrl } from '../../src/core/redis-url.ts'
import type { Sentinels, Standalone } from '../../src/core/redis-url.ts'
import type { HandoffPlace } from '../../src/store/handoffs.ts'
import { OneMaster } from '../../src/redis/masters.ts'
import { connect } from '../../src/redis/connect.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { startSentinelFleet } from '../faults/fleet/sentinel.ts'
import { timeRun } from '../helpers/clock.ts'
import { newPlace, pass, untilServing } from '../helpers/handoffs.ts'
import { fleetStore, quiet } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

t.test('a failover loses nothing that was acknowledged', { timeout: 60_000 }, async t => {
  const fleet = await startSentinelFleet(t, { downAfterMs: 600, failoverTimeoutMs: 2000 })
  // A silent Sentinel is passed over, whichever it is.
  fleet.sentinels[0]!.pause()
  const { handoffs, whyNotReady } = fleetStore(t, fleet.url, { replicas: 1 })
  await untilServing(handoffs)
  fleet.sentinels[0]!.resume()
  t.equal(await whyNotReady(), null)
  await fleet.untilWhole()

  const acknowledged: HandoffPlace[] = []
  const passOne = async (place = newPlace()) => pass(handoffs, place).then(() => { acknowledged.push(place) })
  for (let n = 0; n < 50; n++) await passOne()
  const master = await fleet.master()
  const switched = fleet.switched()
  await master.kill()
  const meanwhile = Promise.allSettled(Array.from({ length: 10 }, () => passOne()))
  t.not(await switched, master)
  for (const { status, reason } of await meanwhile as PromiseRejectedResult[]) {
    t.ok(status !== 'rejected' || reason instanceof Unavailable)
  }
  await untilServing(handoffs)
  for (const place of acknowledged) t.match(await handoffs.catch(place, randomToken(), 'bob'), { outcome: 'caught' })
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
