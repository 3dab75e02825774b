import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { HandoffClient, rawJson } from '../../src/clients/typescript/index.ts'
import type { Settled } from '../../src/clients/typescript/index.ts'
import { settle } from '../../src/clients/typescript/wait.ts'
import { answering, proxy, serve, tenants } from '../helpers/client.ts'
import { until } from '../helpers/until.ts'

/** Waiting for many handoffs. */

const tenant = await tenants(t)

t.test('waitForAll waits for all of them, over all attempts, and has each in the order asked', async t => {
  const { client, address, secrets, pass } = tenant()
  const bob = client('bob')
  const { address: behind, seen } = await proxy(t, address, (_, index) => index === 0 ? (_, response) => response.destroy() : index === 1 ? answering(503) : 'pass')
  const [tried, plain, cancelled] = [await pass({ max_attempts: 2, retry_delay: 0 }), await pass(), await pass()]
  const shaky = new HandoffClient({ baseUrl: behind, key: secrets.alice, retryFor: 0, attemptTimeout: 5000 })
  const all = shaky.waitForAll([plain, tried, 'none', plain, cancelled])
  await bob.catch(tried)
  const { reissued_as: next } = await bob.fail(tried, 'Again.')
  await bob.catch(plain)
  await bob.done(plain, rawJson('{"n":1.0}'))
  await client('alice').cancel(cancelled)
  await until(() => seen.length > 2)
  await bob.catch(next!, { wait: 5 })
  await bob.done(next!)
  const found = await all
  t.match(found, [
    { handoff_id: plain, status: 'done', result: { n: 1 } }, { handoff_id: next, asked_as: tried, status: 'done' },
    { handoff_id: 'none', status: 'unknown' }, { handoff_id: plain }, { handoff_id: cancelled, status: 'cancelled' }
  ])
  t.match(found[0]!.text, /"result":\{"n":1\.0\}/, 'with its exact text')
  t.strictSame([...new Set(seen.map(({ method, url, key, body }) => [method, url, key, body].join(' ')))], [
    `POST /api/wait?wait=50  ${JSON.stringify({ ids: [plain, tried, 'none', cancelled] })}`
  ], 'one request, asked again where the answer was lost')
  t.strictSame(await shaky.waitForAll([]), [])
  const impatient = client('alice', { attemptTimeout: 900, retryFor: 0 })
  t.match(await impatient.wait([await pass()], { wait: 1 }), { complete: false }, 'an attempt may take as long as it asks the service to wait, and more')
  t.notOk('result' in (await shaky.waitForAll([plain], { results: false }))[0]!)
  await t.rejects(client('alice', { key: 'k'.repeat(16) }).waitForAll([plain]), { code: 'unauthorized' })
})

t.test('when its time is over the error names what is open, and nothing else', async t => {
  const { client, pass } = tenant()
  const [alice, bob] = [client('alice'), client('bob')]
  const [open, ended, tried] = [await pass(), await pass(), await pass({ max_attempts: 2, retry_delay: 0 })]
  const late = t.rejects(alice.waitForAll([open, ended, tried, 'none'], { timeout: 1500 }), {
    code: 'timeout', retryable: true, open: [open, tried], detail: new RegExp(`^Not ended within 1500 ms: ${open} \\(pending\\), ${tried} \\(now [^ ]+, pending\\)\\.$`)
  })
  await bob.catch(ended)
  await bob.done(ended)
  await bob.catch(tried)
  await bob.fail(tried, 'Again.')
  await late
  t.equal((await alice.waitForAll([ended], { timeout: 0 }))[0]!.status, 'done', 'at once, where all have ended')
  await t.rejects(client('alice', { baseUrl: 'http://127.0.0.1:1' }).waitForAll([open], { timeout: 50 }), {
    code: 'timeout', open: [open], detail: `Not ended within 50 ms: ${open} (its status is not known).`
  })
})

t.test('of any that has ended first, the others stay open', async t => {
  const { client, pass } = tenant()
  const [alice, bob] = [client('alice'), client('bob')]
  const [open, ended] = [await pass(), await pass()]
  await bob.catch(ended)
  await bob.done(ended)
  const { found, open: left } = await settle(alice, [open, ended], { until: 'any' })
  t.strictSame([...left], [open])
  t.match([found.get(open), found.get(ended)], [{ status: 'pending' }, { status: 'done' }])
})

t.test('results that are too large for one answer are read one by one', async t => {
  const { client, pass } = tenant()
  const bob = client('bob')
  const text = 'x'.repeat(900_000)
  const first = await pass({ max_attempts: 2, retry_delay: 0 })
  const ids = [...await Promise.all(Array.from({ length: 5 }, () => pass())), first]
  await bob.catch(first)
  const { reissued_as: next } = await bob.fail(first, 'Again.')
  for (const id of [...ids.slice(0, 5), next!]) {
    await bob.catch(id, { wait: 5 })
    await bob.done(id, { text })
  }
  const found = await client('alice').waitForAll(ids) as Array<Exclude<Settled, { status: 'unknown' }>>
  t.strictSame(found.map(({ result, handoff_id: id, asked_as: asked }) => [result?.text === text, asked ?? id]), ids.map(id => [true, id]))
  for (const one of found) t.strictSame({ attempt: 1, ...JSON.parse(one.text) }, { ...one })
})

t.test('of any number a hundred are asked for at a time, by four requests at most, and what is open comes last', async t => {
  const ids = Array.from({ length: 1000 }, (_, n) => `id-${n}`)
  const asked: Array<{ ids: string[], at: number }> = []
  let [under, most] = [0, 0]
  let haveEnded = false
  const ended = (id: string) => haveEnded || !/^id-[0-9]$/.test(id)
  const baseUrl = await serve(t, async (request, response) => {
    if (request.url === '/healthz') return response.end('{}')
    let body = ''
    for await (const chunk of request) body += chunk
    const { ids } = JSON.parse(body) as { ids: string[] }
    asked.push({ ids, at: performance.now() })
    most = Math.max(most, ++under)
    await sleep(5)
    under--
    // It drains: it answers at once, whatever it was asked to wait.
    const items = ids.map(id => ended(id) ? { handoff_id: id, status: 'done', completed_at: 'then' } : { handoff_id: id, status: 'pending', completed_at: null })
    response.end(JSON.stringify({ items, complete: ids.every(ended) }))
  })
  const alice = new HandoffClient({ baseUrl, key: 'k'.repeat(16) })
  const found = alice.waitForAll(ids)
  await until(() => asked.length >= 13)
  const again = asked.filter(({ ids }) => ids.length === 10)
  t.strictSame(asked.filter(one => !again.includes(one)).flatMap(({ ids }) => ids).sort(), [...ids].sort(), 'each once, a hundred at a time, and then only those that are open')
  for (const [n, { at }] of again.slice(1).entries()) t.ok(at - again[n]!.at > 150, 'it pauses where it is answered early')
  haveEnded = true
  t.strictSame((await found).map(({ handoff_id: id, status }) => [id, status]), ids.map(id => [id, 'done']))
  t.ok(most > 1 && most <= 4, `${most} at once`)
  t.ok(asked.every(({ ids }) => ids.length <= 100), 'no request has more than the service takes')
})

t.test('waitFor pauses too where it is answered early, and takes a status that it doesn’t know for an end if the answer says when', async t => {
  const times: number[] = []
  const baseUrl = await serve(t, (_, response) => {
    times.push(performance.now())
    const status = times.length < 4 ? { status: 'pending' } : times.length < 7 ? { status: 'vanished', ended_at: 'then' } : { status: 'done' }
    response.end(JSON.stringify({ handoff_id: 'x', ...status }))
  })
  t.match(await new HandoffClient({ baseUrl, key: 'k'.repeat(16) }).waitFor('x', 'done'), { status: 'vanished' })
  for (const [n, at] of times.slice(1).entries()) t.ok(at - times[n]! > 150, `${at - times[n]!} ms`)
})

t.test('an error ends all of its requests', async t => {
  let [open, closed] = [0, 0]
  const baseUrl = await serve(t, (request, response) => {
    if (request.url === '/healthz') return response.end('{}')
    if (++open < 3) return response.on('close', () => { closed++ })
    response.writeHead(401).end('{"code":"unauthorized"}')
  })
  const ids = Array.from({ length: 300 }, (_, n) => `id-${n}`)
  await t.rejects(new HandoffClient({ baseUrl, key: 'k'.repeat(16) }).waitForAll(ids), { code: 'unauthorized' })
  await until(() => closed === 2)
})
