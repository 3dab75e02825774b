import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t from 'tap'
import { overloaded } from '../../src/http/overload.ts'
import type { Test } from 'tap'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { startServiceReplica } from '../faults/fleet/service.ts'
import { secrets, testKeys } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'
import { wire } from '../helpers/wire.ts'
import type { Answer } from '../helpers/wire.ts'

/** Connections, each with a request under way at all times: more than the service can serve on most machines. */
const agents = 800
const task = 'x'.repeat(1024)

type Ask = (method: 'GET' | 'POST', path: string, body?: object) => Promise<Answer>

/** Sends requests on a keep-alive connection. */
async function connected (t: Test, port: number): Promise<Ask> {
  const { send, answer } = await wire(t, port)
  return (method, path, body) => {
    const json = body === undefined ? '' : JSON.stringify(body)
    send(`${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.alice}\r\n` +
      (body === undefined ? '\r\n' : `Content-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`))
    return answer()
  }
}

t.test('an overloaded service sheds, answers /healthz, loses nothing and recovers', async t => {
  const redis = await startRedisServer(t)
  // Without V8's compilers the service is some ten times slower, so this process alone can overload it.
  const { url } = await startServiceReplica(t, { env: { ...testKeys, REDIS_URL: redis.url }, nodeOptions: ['--jitless'] })
  const port = Number(new URL(url).port)
  const asks: Ask[] = []
  for (let n = 0; n < agents; n++) {
    asks.push(await connected(t, port))
    await asks[n]!('GET', '/healthz')
  }
  const [passed, done] = [new Set<string>(), new Set<string>()]
  const told: Answer[] = []
  let [unknown, healthy] = [0, 0]
  let end = new AbortController()
  const isServed = (answer: Answer, status: number) => {
    if (answer.statusCode === status) return true
    // A Redis reply that was read too late is a 503 as well, with an unknown outcome.
    if (answer.statusCode !== 503) t.fail(`${answer.statusCode} ${answer.body}`)
    if (answer.body.includes(overloaded.detail)) told.push(answer)
    else unknown++
    return false
  }
  const agent = async (ask: Ask) => {
    while (!end.signal.aborted) {
      const answer = await ask('POST', '/api/pass', { task })
      if (!isServed(answer, 201)) continue
      const { handoff_id: id } = JSON.parse(answer.body)
      passed.add(id)
      if (!isServed(await ask('GET', `/api/catch/${id}`), 200)) continue
      if (isServed(await ask('POST', `/api/done/${id}`), 200)) done.add(id)
    }
  }
  const health = async () => {
    const ask = await connected(t, port)
    for (; !end.signal.aborted; healthy++, await sleep(50)) t.equal((await ask('GET', '/healthz')).statusCode, 200)
  }
  // As much as the service can do, with few enough requests at once that it doesn't shed.
  const saturated = Promise.all(asks.slice(0, 32).map(agent))
  await until(() => done.size > 200, 60_000)
  end.abort()
  await saturated
  t.equal(told.length, 0, 'ordinary saturation isn’t shed')

  end = new AbortController()
  const load = [...asks.map(agent), health()]
  // On a fast machine it takes more of them.
  await until(async () => {
    if (told.length < agents && load.length < 10 * agents) for (let n = 0; n < 100; n++) load.push(agent(await connected(t, port)))
    return told.length >= agents
  }, 60_000)
  const [before, healthyBefore] = [done.size, healthy]
  await until(() => done.size > before + 50 && healthy > healthyBefore + 2, 60_000)
  end.abort()
  await Promise.all(load)

  for (const answer of told.slice(0, 20)) {
    t.equal(isProblem(t, answer, 503, 'unavailable').retryable, true)
    t.equal(answer.headers['retry-after'], '1')
  }
  t.comment(`${passed.size} passed, ${done.size} done, ${told.length} shed, ${unknown} unknown, ${healthy} healthy`)
  const [ask] = asks as [Ask]
  for (let n = 0; n < 50; n++) t.equal((await ask('POST', '/api/pass', { task })).statusCode, 201, 'it recovers by itself')
  const admin = new Redis(redis.url)
  t.teardown(() => admin.disconnect())
  const keys = await admin.keys('*:h:*')
  const kept = keys.length - 50
  t.ok(kept >= passed.size && kept <= passed.size + unknown, `${kept} kept, ${passed.size} acknowledged, ${unknown} unknown: what was shed didn’t happen`)
  // From Redis, since the service would take as long for it as for all of the above.
  const records = await Promise.all(keys.map(key => admin.hget(key, 's')))
  const statuses = new Map(keys.map((key, at) => [key.slice(key.lastIndexOf(':') + 1), records[at]!.split(' ', 1)[0]]))
  for (const id of passed) {
    const status = statuses.get(id)
    if (done.has(id) ? status !== 'done' : status === undefined) t.fail(`${id} is ${status}`)
  }
})
