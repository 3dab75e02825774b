import { getEventListeners } from 'node:events'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { HandoffClient } from '../../src/clients/typescript/index.ts'
import type { EventsOptions, EventsReset, HandoffError, HandoffEvent } from '../../src/clients/typescript/index.ts'
import { testApp } from '../helpers/app.ts'
import { answering, clientTest, proxy, serve, tenants } from '../helpers/client.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'

const on = { EVENTS_RETENTION: '60' }
const tenant = await tenants(t, on)

/** Passes so many handoffs, in order. @returns their ids */
async function passAll (client: HandoffClient, count: number, more: object = {}): Promise<string[]> {
  const ids: string[] = []
  for (let left = count; left > 0; left -= 100) {
    const operations = Array.from({ length: Math.min(left, 100) }, () => ({ op: 'pass' as const, body: { task: 't', ...more } }))
    const { results } = await client.batch(operations)
    ids.push(...results.map(({ body }) => body.handoff_id as string))
  }
  return ids
}

/** Reads on and on. `ended` has what it threw. */
function reader (t: Test, client: HandoffClient, options: EventsOptions = {}) {
  const own = new AbortController()
  const seen: Array<HandoffEvent | EventsReset> = []
  const read = async () => { for await (const event of client.events({ signal: own.signal, ...options })) seen.push(event) }
  const ended = read().catch((error: unknown) => error)
  t.teardown(() => own.abort())
  const end = async () => {
    own.abort()
    return await ended
  }
  return { seen, end, ended, ids: () => seen.map(({ data }) => (data as HandoffEvent['data']).handoff_id) }
}

t.test('each event once and in order, while they happen and afterwards', async t => {
  const { client } = tenant()
  const alice = client('alice')
  const live = reader(t, alice, { after: '0-0' })
  const ids = await passAll(alice, 1500)
  await until(() => live.seen.length >= ids.length)
  t.equal(await live.end(), undefined, 'its signal ends it, without an error')
  t.strictSame(live.ids().sort(), [...ids].sort())
  const all: HandoffEvent[] = []
  for await (const event of alice.events({ follow: false })) if (event.type !== 'reset') all.push(event)
  t.strictSame(all.map(({ id }) => id), live.seen.map(({ id }) => id), 'the same order for every reader; without follow it ends')
  t.match(all[0], { type: 'handoff.passed', time: /Z$/, data: { status: 'pending', passed_by: 'alice' } })
  const { handoff_id: labelled } = await alice.pass({ task: 't', labels: { run: '42', team: 'red' } })
  await alice.pass({ task: 't', labels: { run: '42' } })
  const { value: found } = await alice.events({ after: '0-0', labels: { team: 'red', run: '42' } }).next()
  t.match(found, { type: 'handoff.passed', data: { handoff_id: labelled, labels: { run: '42', team: 'red' } } })
  await t.rejects(alice.events({ labels: { 'run:4': '2' } }).next(), TypeError)
  t.strictSame(JSON.parse(all[0]!.text), { ...all[0] }, 'with its text')
})

t.test('a service that ends and comes back: it goes on where it was', async t => {
  const first = await clientTest(t, on)
  const alice = first.client('alice', { retryFor: 300 })
  const { seen, end, ids } = reader(t, alice, { after: '0-0' })
  const passed = await passAll(alice, 150)
  await until(() => seen.length === 150)
  await first.app.close()
  await t.rejects(alice.pass({ task: 't' }), { code: 'connection_failed' })
  const second = await testApp(t, on, { prefix: first.prefix })
  await second.app.listen({ host: '127.0.0.1', port: Number(new URL(first.address).port) })
  passed.push(...await passAll(alice, 150))
  await until(() => seen.length === 300)
  t.equal(await end(), undefined)
  t.strictSame(ids().sort(), passed.sort(), 'each once')
})

t.test('answers that are lost, cut in the middle, or a gateway’s', skipInQuick, async t => {
  const { client, address, secrets } = tenant()
  let served = 0
  const cutShort = async (url: string) => {
    const answer = await fetch(`${address}${url}`, { headers: { authorization: `Bearer ${secrets.alice}` } })
    return { text: await answer.text(), headers: { 'content-type': 'application/json', connection: 'close' } }
  }
  const { address: through, seen: asked } = await proxy(t, address, ({ url }, index) => {
    const kind = index % 5
    if (kind === 0) return 'drop'
    if (kind === 1) return answering(index % 2 === 0 ? 500 : 502, '<html>', { 'content-type': 'text/html' })
    if (kind === 2) return answering(500, JSON.stringify({ code: 'internal_error', detail: 'D.' }))
    if (kind === 3) {
      return async (_, response) => {
        const { text, headers } = await cutShort(url)
        response.writeHead(200, { ...headers, 'content-length': text.length }).write(text.slice(0, text.length / 2), () => response.destroy())
      }
    }
    served++
    return 'pass'
  })
  const ids = await passAll(client('alice'), 350)
  const errors: HandoffError[] = []
  const { seen, end, ids: read } = reader(t, new HandoffClient({ baseUrl: through, key: secrets.alice, retryFor: 0 }), { after: '0-0', onError: error => errors.push(error as HandoffError) })
  await until(() => seen.length >= 350)
  t.ok(served >= 4 && asked.length >= 5 * served - 5)
  await end()
  t.strictSame(read().sort(), ids.sort())
  t.ok(errors.some(({ code }) => code === 'internal_error'), 'and it is told what went wrong')
})

t.test('from now on; filters', async t => {
  const { client, call } = tenant()
  const [alice, bob] = [client('alice'), client('bob')]
  const [old] = await passAll(alice, 1)
  const now = reader(t, alice, { types: ['handoff.caught', 'handoff.done'] })
  const inbox = reader(t, alice, { inbox: 'box', after: '0-0' })
  const one = reader(t, alice, { handoffId: old!, after: '0-0' })
  // The place from which it reads is known once a caught one comes.
  await until(async () => {
    const { handoff_id: id } = await alice.pass({ task: 't', to: 'box' })
    await bob.catch(id)
    return now.seen.length > 0
  })
  await bob.catch(old!)
  await bob.done(old!)
  await until(() => now.seen.at(-1)!.type === 'handoff.done' && one.seen.length === 3)
  t.strictSame(now.seen.slice(-2).map(({ type, data }) => [type, (data as HandoffEvent['data']).handoff_id]), [['handoff.caught', old], ['handoff.done', old]])
  t.ok(now.seen.slice(0, -1).every(({ type }) => type === 'handoff.caught'))
  t.strictSame(one.seen.map(({ type }) => type), ['handoff.passed', 'handoff.caught', 'handoff.done'])
  t.ok(inbox.seen.length >= 2 && inbox.seen.every(({ data }) => (data as HandoffEvent['data']).to === 'box'))
  await t.rejects(alice.events({ types: ['nothing'] }).next(), { code: 'invalid_request', status: 400 }, 'what is refused is thrown')
  await t.rejects(new HandoffClient({ baseUrl: 'http://127.0.0.1:1', key: 'k', retryFor: 0 }).events({ follow: false }).next(), { code: 'connection_failed' })
  const off = await clientTest(t, { EVENTS_RETENTION: '0' })
  if (process.env.TEST_EVENTS !== 'on') await t.rejects(off.client('alice').events().next(), { code: 'events_off', status: 404 })
  t.equal((await call('alice', 'GET', '/api/events')).statusCode, 200)
})

t.test('what isn’t kept any more is a reset, without an id, and then the oldest', async t => {
  const { client } = tenant()
  const alice = client('alice')
  const [id] = await passAll(alice, 1)
  const { seen, end } = reader(t, alice, { after: '1-0', types: ['handoff.passed'] })
  await until(() => seen.length === 2)
  await end()
  t.strictSame(seen[0], { type: 'reset', data: {} })
  t.equal(seen[0]!.text, '{"type":"reset","data":{}}')
  t.match(seen[1], { type: 'handoff.passed', data: { handoff_id: id } })
})

t.test('who is slow asks for the next page when it has used the last', async t => {
  const { client, address, secrets } = tenant()
  await passAll(client('alice'), 250)
  const { address: through, seen: asked } = await proxy(t, address, () => 'pass')
  const events = new HandoffClient({ baseUrl: through, key: secrets.alice }).events({ after: '0-0' })
  for (let count = 1; count <= 250; count++) {
    if ((await events.next()).done) t.fail('it ended')
    if (asked.length !== Math.ceil(count / 100)) t.fail(`${asked.length} requests for ${count} events`)
  }
  await events.return()
  t.equal(asked.length, 3)
})

t.test('the signal ends it wherever it is, and leaves no listener; a process ends', async t => {
  const { client, address, secrets } = tenant()
  const alice = client('alice')
  await passAll(alice, 2)
  const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length

  t.strictSame(await alice.events({ signal: AbortSignal.abort() }).next(), { done: true, value: undefined }, 'before')
  const between = new AbortController()
  const events = alice.events({ after: '0-0', signal: between.signal })
  await events.next()
  between.abort()
  t.equal((await events.next()).done, true, 'between two events')
  for (const [name, place] of [['while it waits', address], ['between two attempts', serve(t, (_, response) => { response.writeHead(503, { 'retry-after': '20' }).end() })]] as const) {
    const own = new AbortController()
    const waiting = new HandoffClient({ baseUrl: await place, key: secrets.alice }).events({ signal: own.signal })
    const next = waiting.next()
    await until(() => listeners(own.signal) > 0)
    own.abort()
    t.equal((await next).done, true, name)
    t.equal(listeners(own.signal), 0, name)
  }

  const program = `
    import { HandoffClient } from ${JSON.stringify(join(projectRoot, 'dist/clients/typescript/index.js'))}
    const own = new AbortController()
    const seen = []
    for await (const { type } of new HandoffClient().events({ after: '0-0', signal: own.signal })) {
      if (seen.push(type) === 2) setTimeout(() => own.abort(), 300)
    }
    for await (const { type } of new HandoffClient().events({ after: '0-0' })) { seen.push(type); break }
    console.log(seen.join())`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { env: { HANDOFF_URL: address, HANDOFF_KEY: secrets.alice }, timeout: 30_000 })
  t.equal(stdout, 'handoff.passed,handoff.passed,handoff.passed\n')
})
