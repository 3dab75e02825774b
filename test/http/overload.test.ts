import { setTimeout as sleep } from 'node:timers/promises'
import Fastify from 'fastify'
import { Redis } from 'ioredis'
import t from 'tap'
import type { Test } from 'tap'
import { shedLate } from '../../src/http/shed.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { startServiceReplica } from '../faults/fleet/service.ts'
import { secrets, testKeys } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'
import { listen, wire } from '../helpers/wire.ts'
import type { Answer } from '../helpers/wire.ts'

/** More than it can serve: so many connections, each of which always asks for something. */
const agents = 800
const task = 'x'.repeat(1024)

type Ask = (method: 'GET' | 'POST', path: string, body?: object) => Promise<Answer>

/** Asks on a connection that is kept. */
async function connected (t: Test, port: number): Promise<Ask> {
  const { send, answer } = await wire(t, port)
  return (method, path, body) => {
    const json = body === undefined ? '' : JSON.stringify(body)
    send(`${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.alice}\r\n` +
      (body === undefined ? '\r\n' : `Content-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`))
    return answer()
  }
}

t.test('a service that is asked for more than it can do says so, answers /healthz, loses nothing and recovers', async t => {
  const redis = await startRedisServer(t)
  // V8 that compiles nothing is some ten times slower, so that this process alone is more than the service can serve.
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
  const end = new AbortController()
  const isServed = (answer: Answer, status: number) => {
    if (answer.statusCode === status) return true
    // Redis's answer that was read too late is a 503 as well, and of that one nobody knows what became.
    if (answer.statusCode !== 503) t.fail(`${answer.statusCode} ${answer.body}`)
    if (/nothing happened\. Ask again/.test(answer.body)) told.push(answer)
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
  const load = Promise.all([...asks.map(agent), health()])
  await until(() => told.length >= agents, 30_000)
  const [before, healthyBefore] = [done.size, healthy]
  await until(() => done.size > before + 50 && healthy > healthyBefore + 2, 20_000)
  end.abort()
  await load

  for (const answer of told.slice(0, 20)) {
    t.equal(isProblem(t, answer, 503, 'unavailable').retryable, true)
    t.equal(answer.headers['retry-after'], '1')
  }
  t.comment(`${passed.size} passed, ${done.size} done, ${told.length} shed, ${unknown} unknown, ${healthy} healthy`)
  const [ask] = asks as [Ask]
  for (let n = 0; n < 50; n++) t.equal((await ask('POST', '/api/pass', { task })).statusCode, 201, 'it recovers by itself')
  const admin = new Redis(redis.url)
  t.teardown(() => admin.disconnect())
  const kept = (await admin.keys('*:h:*')).length - 50
  t.ok(kept >= passed.size && kept <= passed.size + unknown, `${kept} kept, ${passed.size} acknowledged, ${unknown} unknown: what was shed didn’t happen`)
  for (const id of passed) {
    const { status } = JSON.parse((await ask('GET', `/api/status/${id}`)).body)
    if (done.has(id) ? status !== 'done' : status === undefined) t.fail(`${id} is ${status}`)
  }
})

t.test('only turns that are too long one after the other, and that requests made so', async t => {
  const app = Fastify()
  const refused = { limited: 0, shed: 0 }
  app.addHook('onRequest', shedLate(app, refused, 200))
  app.get<{ Params: { cost: string } }>('/:cost', async ({ params }) => {
    for (const end = performance.now() + Number(params.cost); performance.now() < end;);
    return ''
  })
  t.teardown(() => app.close())
  const port = await listen(app)
  const asks = await Promise.all(Array.from({ length: 150 }, () => connected(t, port)))
  const burst = (cost: number, asking = asks) => Promise.all(asking.map(ask => ask('GET', `/${cost}`)))
  for (let n = 0; n < 5; n++) await burst(0)
  t.equal(refused.shed, 0, 'many, but short')
  await burst(500, asks.slice(0, 1))
  await burst(0)
  t.equal(refused.shed, 0, 'a pause')
  for (let n = 0; n < 3; n++) await burst(60, asks.slice(0, 8))
  t.equal(refused.shed, 0, 'few, but long')
  const began = performance.now()
  const answers: Answer[] = []
  await Promise.all(asks.map(async ask => {
    do answers.push(await ask('GET', '/4')); while (refused.shed === 0 && performance.now() - began < 20_000)
  }))
  t.ok(refused.shed > 0, 'many and long, again and again')
  t.equal(answers.filter(({ statusCode }) => statusCode !== 200).length, refused.shed)
  t.ok(answers.filter(({ statusCode }) => statusCode === 200).length >= 64, 'in a turn some are served')
  t.ok(performance.now() - began > 1000, 'and it is told when it may come again')
  await burst(0)
  const { shed } = refused
  await burst(0)
  t.equal(refused.shed, shed, 'then it is as before')
})
