import { getEventListeners } from 'node:events'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { join } from 'node:path'
import t from 'tap'
import { HandoffClient } from '../../src/clients/typescript/index.ts'
import { answering, proxy, serve, tenants } from '../helpers/client.ts'
import type { Fate } from '../helpers/client.ts'
import { projectRoot } from '../helpers/service.ts'

const tenant = await tenants(t)
const reason = new Error('enough')
const refused = { name: 'HandoffError', code: 'aborted', retryable: false, cause: reason }
const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length

t.test('the signal ends a call wherever it is, and no listener stays on it', async t => {
  const { client, address, secrets } = tenant()
  const alice = client('alice')
  const { handoff_id: id } = await alice.pass({ task: 'x' })

  await t.rejects(alice.pass({ task: 'x' }, { signal: AbortSignal.abort(reason) }), refused, 'before')

  const cases: Array<[name: string, fate: Fate]> = [['while there is no answer', () => {}], ['between two attempts', answering(503, '', { 'retry-after': '20' })], ['while it waits', 'pass']]
  for (const [name, fate] of cases) {
    const own = new AbortController()
    let came = () => {}
    const arrival = new Promise<void>(resolve => { came = resolve })
    const { address: through } = await proxy(t, address, () => {
      setTimeout(came, 50)
      return fate
    })
    const call = new HandoffClient({ baseUrl: through, key: secrets.alice }).status(id, { wait: 30, signal: own.signal })
    const ended = t.rejects(call, refused, name)
    await arrival
    t.equal(listeners(own.signal), 1, name)
    own.abort(reason)
    await ended
    t.equal(listeners(own.signal), 0, name)
  }
  const hangs = new AbortController()
  const half = await serve(t, (_, response) => {
    response.writeHead(200).write('{')
    setTimeout(() => hangs.abort(reason), 50)
  })
  await t.rejects(new HandoffClient({ baseUrl: half, key: 'k' }).status('x', { signal: hangs.signal }), refused, 'in the middle of an answer')
  t.equal(listeners(hangs.signal), 0)
})

t.test('waitFor, waitForAll and work leave no listener either', async t => {
  const { client } = tenant()
  const alice = client('alice')
  const own = new AbortController()
  const { handoff_id: id } = await alice.pass({ task: 'x' })
  await t.rejects(alice.waitFor(id, 'done', { timeout: 50, signal: own.signal }), { code: 'timeout' })
  t.equal(listeners(own.signal), 0)
  await t.rejects(alice.waitForAll([id], { timeout: 50, signal: own.signal }), { code: 'timeout' })
  t.equal(listeners(own.signal), 0)
  const waiting = t.rejects(alice.waitFor(id, 'done', { signal: own.signal }), refused)
  const all = t.rejects(alice.waitForAll([id], { timeout: 60_000, signal: own.signal }), refused)
  const working = alice.work('empty', () => {}, { signal: own.signal })
  own.abort(reason)
  await Promise.all([waiting, all, working])
  t.equal(listeners(own.signal), 0)
  await t.rejects(alice.waitFor(id, 'done', { signal: own.signal }), refused, 'at once')
  await alice.work('empty', () => {}, { signal: own.signal })
})

t.test('50 calls at once under one signal share a listener, and its end ends them all', async t => {
  const { client } = tenant()
  const alice = client('alice')
  const own = new AbortController()
  const calls = Array.from({ length: 50 }, () => t.rejects(alice.catchNext({ inbox: 'empty', wait: 30, signal: own.signal }), refused))
  t.equal(listeners(own.signal), 1)
  own.abort(reason)
  await Promise.all(calls)
  t.equal(listeners(own.signal), 0)
})

t.test('a process whose calls are over ends', async t => {
  const { client, address, secrets } = tenant()
  const { handoff_id: id } = await client('alice').pass({ task: 'x', to: 'in', heartbeat_within: 60 })
  const program = `
    import { HandoffClient } from ${JSON.stringify(join(projectRoot, 'dist/clients/typescript/index.js'))}
    const client = new HandoffClient()
    await client.waitFor('${id}', 'done', { timeout: 20 }).catch(error => console.log(error.code))
    const own = new AbortController()
    await client.work('in', (handoff) => { own.abort(); return { task: handoff.task } }, { signal: own.signal })
    console.log((await client.waitFor('${id}', 'done', { timeout: 600_000 })).status)`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { env: { HANDOFF_URL: address, HANDOFF_KEY: secrets.alice }, timeout: 30_000 })
  t.equal(stdout, 'timeout\ndone\n')
})
