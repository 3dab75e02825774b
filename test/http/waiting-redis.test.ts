import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import { scrape, sum } from '../helpers/metrics.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import type { OwnRedis } from '../helpers/own-redis.ts'
import { until } from '../helpers/until.ts'
import { asleep, nobody, passed, subscribers, timed } from '../helpers/waits.ts'
import { listen, wire } from '../helpers/wire.ts'

/** How often each command was called. */
async function commands ({ admin }: OwnRedis): Promise<Record<string, number>> {
  const info = await admin.info('commandstats')
  return Object.fromEntries([...info.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)].map(([, name, calls]) => [name!, Number(calls)]))
}

t.test('a connection that breaks during a wait is restored, and changes meanwhile are seen', async t => {
  const redis = await ownRedis(t)
  const service = await testApp(t, {}, { url: redis.url })
  const other = await passed(service)
  const catches = service.call('bob', 'GET', `/api/catch/${other}?wait=30`)
  await asleep(service, other)
  // The connection may be back before the rejection; so until there was one that nobody heard of.
  let unheard = false
  for (let turn = 0; turn < 20 && !unheard; turn++) {
    const id = await passed(service)
    const waits = service.call('alice', 'GET', `/api/status/${id}?wait=30`)
    await asleep(service, id)
    const [, after] = await timed(async () => {
      t.ok(Number(await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')) > 0)
      await service.call('approver', 'POST', `/api/reject/${id}`, { note: 'n' })
      unheard = await subscribers(service, id) === 0
      t.equal((await waits).json().status, 'rejected')
    })
    t.ok(after < 10_000, `after ${Math.round(after)} ms`)
  }
  t.ok(unheard, 'nobody heard of it')
  // The new connection wakes all waiters.
  await asleep(service, other)
  await service.call('approver', 'POST', `/api/approve/${other}`)
  t.equal((await catches).statusCode, 200)
  t.ok(await nobody(service, other))
})

t.test('a wait costs Redis nothing while it lasts', async t => {
  const redis = await ownRedis(t)
  const service = await testApp(t, {}, { url: redis.url })
  const id = await passed(service)
  const waits = [...Array(40)].flatMap(() => [service.call('alice', 'GET', `/api/status/${id}?wait=3`), service.call('bob', 'GET', `/api/catch/${id}?wait=3`)])
  await asleep(service, id)
  await sleep(200)
  const looked = sum(await scrape(service.app), /^handoff_redis_call_duration_seconds_count\{script="(status|catch)"/)
  const before = await commands(redis)
  await sleep(2000)
  const after = await commands(redis)
  const called = Object.keys(after).filter(name => after[name] !== (before[name] ?? 0))
  // Pings, reads of Redis's clock, this test's own calls, and reads of the log of keys (GET is the test’s clock).
  t.strictSame(called.filter(name => !['ping', 'time', 'info', 'evalsha', 'xrange', 'xrevrange', 'get'].includes(name)), [])
  t.ok(after.evalsha! - before.evalsha! <= 6, 'twice a second one, and no script besides')
  t.ok(looked >= 82, 'each catch had looked twice; the statuses, together, at least twice')
  await Promise.all(waits)
})

t.test('while Redis is silent a wait ends in time, with the known state or 503', async t => {
  const redis = await ownRedis(t)
  const service = await testApp(t, {}, { url: redis.url })
  const id = await passed(service)
  const waits = [service.call('alice', 'GET', `/api/status/${id}?wait=1`), service.call('bob', 'GET', `/api/catch/${id}?wait=1`)]
  await asleep(service, id)
  process.kill(redis.pid(), 'SIGSTOP')
  const [answers, after] = await timed(() => Promise.all(waits))
  // The wait, plus a call's own budget.
  t.ok(after < 5000, `after ${Math.round(after)} ms`)
  t.strictSame(answers.map(({ statusCode }) => statusCode), [503, 503])
  process.kill(redis.pid(), 'SIGCONT')
  await until(async () => (await service.app.inject('/readyz')).statusCode === 200)
  t.equal((await service.call('alice', 'GET', `/api/status/${id}`)).json().status, 'pending')
  const again = service.call('alice', 'GET', `/api/status/${id}?wait=30`)
  await asleep(service, id)
  await service.call('approver', 'POST', `/api/reject/${id}`, { note: 'n' })
  t.equal((await again).json().status, 'rejected', 'and then it waits as ever')
})

t.test('a wait outlives a short outage of Redis', async t => {
  const redis = await ownRedis(t)
  const service = await testApp(t, {}, { url: redis.url })
  const id = await passed(service)
  const waits = service.call('alice', 'GET', `/api/status/${id}?wait=30`)
  await asleep(service, id)
  process.kill(redis.pid(), 'SIGSTOP')
  await sleep(1500) // longer than the service tolerates silence
  process.kill(redis.pid(), 'SIGCONT')
  await until(async () => (await service.app.inject('/readyz')).statusCode === 200)
  await service.call('approver', 'POST', `/api/reject/${id}`, { note: 'n' })
  t.equal((await waits).json().status, 'rejected')
})

t.test('a request whose client leaves during the first look does not start to wait', async t => {
  const redis = await ownRedis(t)
  const service = await testApp(t, {}, { url: redis.url })
  const id = await passed(service)
  const port = await listen(service.app)
  const connected = once(service.app.server, 'connection') as Promise<[Socket]>
  const asked = once(service.app.server, 'request')
  const { socket, send } = await wire(t, port)
  const [theirs] = await connected
  process.kill(redis.pid(), 'SIGSTOP')
  send(`GET /api/catch/${id}?wait=60 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.bob}\r\n\r\n`)
  await asked
  const closed = once(theirs, 'close')
  socket.destroy()
  await closed
  process.kill(redis.pid(), 'SIGCONT')
  // Its look was sent before this call on the same connection.
  t.equal((await service.call('alice', 'GET', `/api/status/${id}`)).json().status, 'pending')
  t.equal((await service.call('approver', 'POST', `/api/approve/${id}`)).statusCode, 200)
  await sleep(100)
  t.equal((await service.call('alice', 'GET', `/api/status/${id}`)).json().status, 'pending', 'nobody caught it')
  t.equal(await subscribers(service, id), 0)
})
