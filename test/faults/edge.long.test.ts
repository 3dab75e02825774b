import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { hasHaproxy } from './fleet/haproxy.ts'
import { hasNginx, startNginx } from './fleet/nginx.ts'
import { startRedisServer } from './fleet/redis.ts'
import { startServiceReplica } from './fleet/service.ts'
import { agentKeys, loadSettings, within } from './load-keys.ts'
import { isAsItMustBe, sendFuzz } from './scenarios/fuzz.ts'
import { rollingRestarts } from './scenarios/rolling-restarts.ts'
import { besideSlowClients, total } from './scenarios/slow-clients.ts'

const noHaproxy = hasHaproxy() ? false : 'haproxy is not installed'
const noNginx = hasNginx() ? false : 'nginx is not installed'

// In parallel, since all but one of them mostly wait. Durations are judged by the long forms, on a machine of their own.
t.jobs = 4

t.test('a rolling restart behind HAProxy breaks no request', { skip: noHaproxy, buffered: true }, async t => {
  const { load, result, held } = await rollingRestarts.run(t, 0.003)
  t.ok(held, `${load}: ${result}`)
})

t.test('malformed bodies are refused and break nothing', { buffered: true }, async t => {
  const { tally } = await sendFuzz(t, 5000)
  t.strictSame(tally.faults, [])
  t.ok(isAsItMustBe(tally, 5000), `${tally.bodies} sent, ${tally.compared} of ${tally.accepted} read back`)
})

t.test('slow clients do not slow the others down', { buffered: true }, async t => {
  const { faults, fates } = await besideSlowClients(t, 200, 1, 4000)
  t.equal(faults, 0, 'of the others')
  t.equal(total(fates, 'refused'), 0)
  t.equal(total(fates, 'left'), 0, 'all that were there for long enough have been closed')
  for (const [kind, { closed }] of Object.entries(fates[0]!)) t.ok(closed > 0, kind)
})

const [passer, catcher] = within(agentKeys, 'north').map(({ secret }) => secret) as [string, string]
type Ask = (method: string, path: string, key: string, body?: string, idempotencyKey?: string) => Promise<{ status: number, body: Record<string, unknown> }>

const asker = (url: string): Ask => async (method, path, key, body, idempotencyKey) => {
  const asking = request(url + path, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...body === undefined ? {} : { 'content-type': 'application/json' },
      ...idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
    },
  })
  asking.end(body)
  const [answer] = await once(asking, 'response') as [IncomingMessage]
  const said = await text(answer)
  return { status: answer.statusCode!, body: said.startsWith('{') ? JSON.parse(said) : {} }
}

t.test('behind nginx, a catch that times out can be retried safely with an Idempotency-Key only', { skip: noNginx, buffered: true }, async t => {
  const redis = await startRedisServer(t)
  const env = { ...loadSettings, REDIS_URL: redis.url }
  const replicas = await Promise.all([startServiceReplica(t, { env }), startServiceReplica(t, { env })])
  const at = replicas.map(({ url }) => new URL(url).host)
  const [byItself, told] = [asker(await startNginx(t, at, { readTimeout: 400, repeats: true })), asker(await startNginx(t, at, { readTimeout: 400 }))]

  /** Catches a new handoff while Redis is slower than nginx's time-out, but faster than nginx's two tries together. */
  async function slowCatch (ask: Ask, key?: string) {
    const { body: { handoff_id: id } } = await ask('POST', '/api/pass', passer, '{"task":"t"}')
    await redis.admin.call('CLIENT', 'PAUSE', '5000', 'WRITE')
    const asked = ask('GET', `/api/catch/${id}`, catcher, undefined, key)
    await sleep(600)
    await redis.admin.call('CLIENT', 'UNPAUSE')
    const answer = await asked
    // Until Redis has resumed and the replicas have its replies.
    await sleep(300)
    const { body: { status } } = await ask('GET', `/api/status/${id}`, passer)
    t.equal(status, 'caught', 'the catch has happened')
    return { id, answer }
  }

  // Which of the two tries Redis serves first varies, so a few rounds may be needed.
  const lost: Array<{ status: number, body: Record<string, unknown> }> = []
  while (lost.length < 8 && lost.at(-1)?.status !== 409) lost.push((await slowCatch(byItself)).answer)
  t.match(lost.pop(), { status: 409, body: { code: 'already_caught' } }, 'left to itself it asks again, and says of the catcher’s own catch that another was first')
  for (const { status } of lost) t.equal(status, 200)

  const { id, answer: honest } = await slowCatch(told)
  t.match(honest, { status: 503, body: { code: 'unavailable' } }, 'told not to, it says that it doesn’t know')
  t.equal((await told('GET', `/api/catch/${id}`, catcher)).status, 409, 'and the payload is lost to who can’t say that it was itself')

  const { answer: repeated } = await slowCatch(byItself, 'key-1')
  t.match(repeated, { status: 200, body: { task: 't' } }, 'with an Idempotency-Key asking again does no harm')

  const { id: kept, answer: unknown } = await slowCatch(told, 'key-2')
  t.equal(unknown.status, 503)
  t.match(await told('GET', `/api/catch/${kept}`, catcher, undefined, 'key-2'), { status: 200, body: { task: 't' } }, 'nor does the catcher’s own asking again')
})
