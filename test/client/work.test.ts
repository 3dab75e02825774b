import { hostname } from 'node:os'
import t from 'tap'
import { HandoffClient, isHandoffError } from '../../src/clients/typescript/index.ts'
import { aborted, answering, paths, proxy, tenants, worker } from '../helpers/client.ts'
import { until } from '../helpers/until.ts'

const tenant = await tenants(t)
const forever = () => new Promise<void>(() => {})

t.test('what the handler returns is the output, and no more are caught than it works on', async t => {
  const { alice, pass, work, ended, seen } = await worker(t, tenant())
  const ids = await pass(...Array.from({ length: 12 }, (_, index) => ({ task: String(index) })))
  let [now, most, pendingThen] = [0, 0, -1]
  const { stop } = work(async ({ task }) => {
    most = Math.max(most, ++now)
    if (task === '0') pendingThen = (await alice.inbox('in')).pending
    await new Promise(resolve => setTimeout(resolve, 20))
    now--
    return { task }
  }, { concurrency: 3 })
  const statuses = await Promise.all(ids.map(ended))
  t.strictSame(statuses.map(({ status, result }) => [status, result]), ids.map((_, index) => ['done', { task: String(index) }]))
  t.equal(most, 3)
  t.ok(pendingThen >= 9 - 3, `${pendingThen} left for others`)
  await stop()
  t.equal(new Set(paths(seen, 'done').map(({ key }) => key)).size, 12)
  t.equal(paths(seen, 'heartbeat').length, 0, 'none where nobody wants any')
})

t.test('a worker that is tried again goes on from the checkpoint', async t => {
  const { pass, work, ended } = await worker(t, tenant())
  const [id] = await pass({ task: 'rows', max_attempts: 2, retry_delay: 0 })
  const found: unknown[] = []
  const { stop } = work(async ({ checkpoint }, context) => {
    found.push(checkpoint)
    if (checkpoint !== undefined) return { from: checkpoint }
    t.match(await context.checkpoint({ rows: 1 }), { cancel_requested: false })
    await context.heartbeat({ checkpoint: { rows: 2 }, progress: { percent: 50 } })
    throw new Error('It broke.')
  })
  t.match(await ended(id!), { status: 'done', result: { from: { rows: 2 } } })
  t.strictSame(found, [undefined, { rows: 2 }])
  await stop()
})

t.test('it serves several inboxes, and always the first that has something', async t => {
  const { client, secrets, address, pass } = await worker(t, tenant())
  const [alice, own] = [client('alice'), new AbortController()]
  await pass({ task: '1', to: 'second' }, { task: '2', to: 'second' })
  await pass({ task: '3', to: 'first' })
  const served: string[] = []
  await new HandoffClient({ baseUrl: address, key: secrets.bob }).work(['first', 'second'], async ({ task, to }) => {
    served.push(task)
    if (to === 'first') await alice.pass({ task: `${task}.`, to: task.length < 3 ? 'first' : 'second' })
    if (served.length === 6) own.abort()
  }, { signal: own.signal })
  t.strictSame(served, ['3', '3.', '3..', '1', '2', '3...'])
})

t.test('a throw is a failure, and so is an output that the service doesn’t take', async t => {
  const { pass, work, ended } = await worker(t, tenant())
  const errors: unknown[] = []
  const outcomes: Record<string, () => unknown> = {
    error: () => { throw Object.assign(new Error('It broke.'), { code: 'E_BROKEN' }) },
    long: () => { throw new Error('😀'.repeat(5000)) },
    text: () => { throw 'just a text' }, // eslint-disable-line no-throw-literal
    nothing: () => { throw undefined }, // eslint-disable-line no-throw-literal
    number: () => 5,
    bigint: () => ({ n: 5n }),
    schema: () => ({ n: 'five' }),
    none: () => null,
  }
  const names = Object.keys(outcomes)
  const ids = await pass(...names.map(task => ({ task, ...task === 'schema' && { result_schema: { properties: { n: { type: 'number' } } } } })))
  const { stop } = work(({ task }) => outcomes[task]!(), { concurrency: 4, onError: error => errors.push(error) })
  const told = Object.fromEntries(await Promise.all(ids.map(async (id, index) => [names[index], await ended(id)] as const)))
  t.match(told, {
    error: { status: 'failed', error: { message: 'It broke.', code: 'E_BROKEN' } },
    long: { status: 'failed', error: { message: '😀'.repeat(4000) } },
    text: { error: { message: 'just a text' } },
    nothing: { error: { message: 'undefined' } },
    number: { status: 'failed', error: { code: 'invalid_request' } },
    bigint: { status: 'failed', error: { message: /BigInt/ } },
    schema: { status: 'failed', error: { code: 'result_invalid' } },
    none: { status: 'done' },
  })
  // Each is told once its report has been answered, which its status may show before.
  await until(() => errors.length === 3)
  await stop()
})

t.test('heartbeats are sent at a third of the time', async t => {
  const { pass, work, ended, seen } = await worker(t, tenant())
  const times: number[] = []
  const [id] = await pass({ task: 'long', heartbeat_within: 5 }, { task: 'short', heartbeat_within: 5 })
  const { stop } = work(async ({ task }) => {
    if (task === 'short') return
    const began = performance.now()
    for (let known = 0; times.length < 2;) {
      await until(() => paths(seen, 'heartbeat').length > known)
      known = paths(seen, 'heartbeat').length
      times.push(performance.now() - began)
    }
  }, { concurrency: 2 })
  t.match(await ended(id!), { status: 'done' })
  t.strictSame([...new Set(paths(seen, 'heartbeat').map(({ url }) => url))], [`/api/heartbeat/${id}`], 'none for what is done')
  t.ok(times[0]! > 1200, `${times}`)
  t.ok(times[1]! - times[0]! > 1200, `${times}`)
  await stop()
})

t.test('a requested cancel ends nothing, and the handler can see it; a forced one ends it', async t => {
  const { alice, pass, work, ended } = await worker(t, tenant())
  const [asked, forced] = await pass({ task: 'asked', heartbeat_within: 5 }, { task: 'forced', heartbeat_within: 5 })
  const reasons: unknown[] = []
  const { stop } = work(async ({ task, handoff_id: id }, { signal, heartbeat }) => {
    if (task === 'asked') {
      await alice.cancel(id, { reason: 'Please.' })
      const { cancel_requested: isRequested, cancel_reason: why } = await heartbeat({ progress: { message: 'half' } })
      return { isRequested, why, aborted: signal.aborted }
    }
    const reason = aborted(signal)
    await alice.cancel(id, { force: true })
    reasons.push(await reason)
    await heartbeat().catch((error: unknown) => reasons.push(error))
    throw new Error('nobody reads it')
  }, { onError: error => t.fail(String(error)) })
  t.match(await ended(asked!), { status: 'done', result: { isRequested: true, why: 'Please.', aborted: false }, progress: { message: 'half' } })
  t.match(await ended(forced!), { status: 'cancelled' })
  await until(() => reasons.length === 2)
  t.ok(reasons.every(reason => isHandoffError(reason, 'cancelled')))
  await stop()
})

t.test('a refusal of what the handler’s heartbeat says ends nothing', async t => {
  const { pass, work, ended } = await worker(t, tenant())
  const [id] = await pass({})
  const { stop } = work(async (_, { signal, heartbeat }) => {
    const error = await heartbeat({ progress: { percent: 200 } }).catch((error: unknown) => error)
    return { code: (error as { code: string }).code, aborted: signal.aborted }
  })
  t.match(await ended(id!), { result: { code: 'invalid_request', aborted: false } })
  await stop()
})

t.test('a handler that never ends holds nobody up once its handoff is lost', async t => {
  const { alice, pass, work, ended } = await worker(t, tenant())
  const [first, second] = await pass({ task: 'stuck', priority: 9 }, { task: 'next' })
  const { stop } = work(async ({ task, handoff_id: id }, { heartbeat }) => {
    if (task !== 'stuck') return { task }
    await alice.cancel(id, { force: true })
    await heartbeat().catch(() => {})
    await forever()
  })
  t.match(await ended(second!), { status: 'done', result: { task: 'next' } })
  t.match(await ended(first!), { status: 'cancelled' })
  await stop()
})

t.test('lost by its own clock: a machine that slept reports nothing', async t => {
  const { pass, work, seen } = await worker(t, tenant(), ({ url }) => url.startsWith('/api/heartbeat') ? () => {} : 'pass')
  await pass({ task: 'waits', heartbeat_within: 5 }, { task: 'returns', heartbeat_within: 5 })
  const { now } = Date
  t.teardown(() => { Date.now = now })
  const reasons: unknown[] = []
  let begun = 0
  const { stop } = work(async ({ task }, { signal }) => {
    const reason = aborted(signal)
    begun++
    await until(() => begun === 2)
    // The steady clock doesn't see that the machine slept.
    Date.now = () => now() + 5000
    if (task === 'waits') reasons.push(await reason)
    else reasons.push('returned')
  }, { concurrency: 2 })
  await until(() => reasons.length === 2)
  Date.now = now
  t.ok(reasons.some(reason => isHandoffError(reason, 'expired')))
  await stop()
  t.equal(paths(seen, 'done').length, 0)
})

t.test('without heartbeats the end of its work’s time ends it too', async t => {
  const { alice, pass, work } = await worker(t, tenant())
  const [id] = await pass({ work_within: 1 })
  let reason: unknown
  const { stop } = work(async (_, { signal }) => { reason = await aborted(signal) })
  await until(() => reason)
  t.ok(isHandoffError(reason, 'expired'))
  t.match(await alice.status(id!), { status: 'expired', expired_because: 'not_done' })
  await stop()
})

t.test('its signal takes no more, finishes what it has, and loses nothing that was caught meanwhile', async t => {
  const { client, address, secrets } = tenant()
  const alice = client('alice')
  let caught = () => {}
  const isCaught = new Promise<void>(resolve => { caught = resolve })
  let catches = 0
  // The service's answer is there, but doesn't arrive.
  const held = await proxy(t, address, ({ url, key, body }) => {
    if (!url.startsWith('/api/catch') || ++catches !== 2) return 'pass'
    return () => {
      fetch(`${address}/api/catch`, { method: 'POST', body, headers: { authorization: `Bearer ${secrets.bob}`, 'idempotency-key': key!, 'content-type': 'application/json' } }).then(caught)
    }
  })
  const ids = []
  for (const task of ['first', 'second', 'third']) ids.push((await alice.pass({ task, to: 'in' })).handoff_id)
  const own = new AbortController()
  const begun: string[] = []
  let finish = () => {}
  const working = new HandoffClient({ baseUrl: held.address, key: secrets.bob }).work('in', async ({ task }) => {
    begun.push(task)
    if (task === 'first') await new Promise<void>(resolve => { finish = resolve })
    return { task }
  }, { signal: own.signal, concurrency: 1 })
  await until(() => begun.length === 1)
  finish()
  await isCaught
  own.abort()
  await working
  t.strictSame(begun, ['first', 'second'])
  t.match(await alice.status(ids[0]!), { status: 'done' })
  t.match(await alice.status(ids[1]!), { status: 'done' })
  t.match(await alice.status(ids[2]!), { status: 'pending' })
})

t.test('it goes on through what may pass, and loses no answer', async t => {
  const lost = new Set<string>()
  const { pass, work, ended } = await worker(t, tenant(), ({ url, key }, index) => {
    if (index === 1) return answering(500, '{"code":"internal_error"}')
    if (index < 3) return answering(503, 'not now')
    if (lost.has(`${url} ${key}`)) return 'pass'
    lost.add(`${url} ${key}`)
    return 'drop'
  })
  const begun: string[] = []
  const { stop } = work(({ task }) => { begun.push(task) })
  const ids = await pass({ task: 'one' }, { task: 'two' })
  for (const id of ids) t.match(await ended(id), { status: 'done' })
  t.strictSame(begun.sort(), ['one', 'two'])
  await stop()
})

t.test('never before Retry-After, however short its calls are', async t => {
  const times: number[] = []
  const { client, address, secrets } = tenant()
  const { address: limiting } = await proxy(t, address, ({ url }) => {
    if (!url.startsWith('/api/catch') || times.push(performance.now()) > 1) return 'pass'
    return answering(429, '{"code":"rate_limited"}', { 'retry-after': '2' })
  })
  const { handoff_id: id } = await client('alice').pass({ task: 'x', to: 'in', work_within: 60 })
  const own = new AbortController()
  const working = new HandoffClient({ baseUrl: limiting, key: secrets.bob, retryFor: 0 }).work('in', () => {}, { signal: own.signal })
  t.match(await client('alice').waitFor(id, 'done'), { status: 'done' })
  own.abort()
  await working
  t.ok(times[1]! - times[0]! >= 2000, `${times}`)
})

t.test('a wrong key ends it, after what it has is finished', async t => {
  const { address } = tenant()
  await t.rejects(new HandoffClient({ baseUrl: address, key: 'wrong-key-0123456789' }).work('in', () => {}), { code: 'unauthorized' })
  const { alice, pass, work, seen } = await worker(t, tenant(), ({ url }) => url.startsWith('/api/catch') && seen.length > 1 ? answering(403, '{"code":"not_addressee"}') : 'pass')
  const [id] = await pass({})
  let finish = () => {}
  const { ended } = work(async () => { await new Promise<void>(resolve => { finish = resolve }) }, { concurrency: 2 })
  const rejected = t.rejects(ended, { code: 'not_addressee' })
  await until(() => paths(seen, 'catch').length === 2)
  finish()
  await rejected
  t.match(await alice.status(id!), { status: 'done' })
  await t.rejects(alice.work('in', () => {}, { concurrency: 0, signal: AbortSignal.abort() }), TypeError)
})

t.test('a handoff that was taken from it, or that the handler has ended itself, doesn’t stop it', async t => {
  const { alice, client, pass, work, ended } = await worker(t, tenant())
  const bob = client('bob')
  const [taken, declined, last] = await pass({ task: 'taken', priority: 2 }, { task: 'declined', priority: 1 }, {})
  const errors: Array<[string, string | undefined]> = []
  const ends: Array<[string, string]> = []
  const { stop } = work(async ({ task, handoff_id: id }) => {
    if (task === 'taken') await alice.cancel(id, { force: true })
    if (task === 'declined') await bob.decline(id, 'Not mine.')
    return task === 'declined' ? {} : { text: 'x'.repeat(2 ** 21) }
  }, {
    onError: (error, handoff) => errors.push([(error as { code: string }).code, handoff?.handoff_id]),
    onEnd: (handoff, how) => ends.push([how, handoff.handoff_id]),
  })
  t.match(await ended(last!), { status: 'failed' })
  t.match(await alice.status(declined!), { status: 'declined' })
  await stop()
  t.strictSame(errors, [['cancelled', taken], ['payload_too_large', last]])
  t.strictSame(ends, [['declined', declined], ['failed', last]])
})

t.test('its calls say which worker makes them', async t => {
  const names = async (options: object, said?: string) => {
    const headers = new Set<unknown>()
    const { address, secrets, pass } = tenant()
    const id = await pass({ to: 'in', heartbeat_within: 60 })
    const fetch = (url: string, init: RequestInit) => {
      if (/api\/(catch|heartbeat|done)/.test(url)) headers.add((init.headers as Record<string, string>)['handoff-worker'])
      return globalThis.fetch(url, init)
    }
    const own = new AbortController()
    if (said !== undefined) process.env.HANDOFF_WORKER = said
    t.teardown(() => { delete process.env.HANDOFF_WORKER })
    await new HandoffClient({ baseUrl: address, key: secrets.bob, fetch }).work('in', async ({ attempt }, { heartbeat }) => {
      t.equal(attempt, 1, 'which the service leaves out')
      await heartbeat()
    }, { signal: own.signal, onEnd: () => own.abort(), ...options })
    t.match(await new HandoffClient({ baseUrl: address, key: secrets.alice }).status(id), { status: 'done', attempt: 1 })
    return [...headers]
  }
  t.strictSame(await names({}), [`${hostname().replace(/[^A-Za-z0-9._:@/-]/g, '-')}:${process.pid}`])
  t.strictSame(await names({}, 'žba 1/ü@x:y'), ['-ba-1/-@x:y'])
  t.strictSame(await names({}, 'x'.repeat(101)), ['x'.repeat(100)])
  t.strictSame(await names({}, ''), [undefined])
  t.strictSame(await names({ worker: 'mine' }, 'other'), ['mine'])
})
