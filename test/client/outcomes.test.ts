import t from 'tap'
import { rawJson } from '../../src/clients/typescript/index.ts'
import { tenants, worker } from '../helpers/client.ts'
import { until } from '../helpers/until.ts'

/** What a handler may come to, however odd it is: its handoff is always reported, and never as done without what it returned. */

const tenant = await tenants(t)

t.test('what JSON has no word for is no output', async t => {
  const { pass, work, ended } = await worker(t, tenant())
  const outputs: Record<string, () => unknown> = {
    nan: () => NaN,
    infinity: () => -Infinity,
    function: () => () => 1,
    symbol: () => Symbol('x'),
    date: () => new Date(NaN),
    nothing: () => ({ toJSON () {} }),
  }
  const ids = await pass(...Object.keys(outputs).map(task => ({ task })))
  const errors: unknown[] = []
  const { stop } = work(({ task }) => outputs[task]!(), { onError: error => errors.push(error) })
  for (const [index, name] of Object.keys(outputs).entries()) t.match(await ended(ids[index]!), { status: 'failed', error: { message: /JSON/ } }, name)
  await until(() => errors.length === ids.length)
  await stop()
})

t.test('but an object is, whatever its toJSON says', async t => {
  const { pass, work, ended } = await worker(t, tenant())
  const outputs: Record<string, () => unknown> = { own: () => ({ toJSON: () => ({ n: 1 }) }), raw: () => rawJson('{"n":9007199254740993}'), undefined: () => {}, null: () => null }
  const ids = await pass(...Object.keys(outputs).map(task => ({ task })))
  const { stop } = work(({ task }) => outputs[task]!(), { onError: error => t.fail(String(error)) })
  const told = await Promise.all(ids.map(ended))
  t.match(told, [{ result: { n: 1 } }, { text: /"result":\{"n":9007199254740993\}/ }, { status: 'done', result: null }, { status: 'done', result: null }])
  await stop()
})

t.test('what is thrown and can’t be told is a failure too', async t => {
  const { pass, work, ended } = await worker(t, tenant())
  const thrown: Record<string, unknown> = {
    bare: Object.create(null),
    getter: { get message () { throw new Error('not even this') } },
    text: { toString () { throw new Error('nor this') } },
    name: { message: '', name: Object.create(null) },
    revoked: (() => {
      const { proxy, revoke } = Proxy.revocable({}, {})
      revoke()
      return proxy
    })(),
  }
  const ids = await pass(...Object.keys(thrown).map(task => ({ task })))
  const { stop } = work(({ task }) => { throw thrown[task] }, { onError: error => t.fail(String(error)) })
  for (const [index, name] of Object.keys(thrown).entries()) t.match(await ended(ids[index]!), { status: 'failed', error: { message: 'The handler failed.' } }, name)
  await stop()
})

t.test('an error can be given to fail', async t => {
  const { alice, client, pass } = await worker(t, tenant())
  const [first, second] = await pass({}, {})
  const bob = client('bob')
  for (const id of [first!, second!]) await bob.catch(id)
  await bob.fail(first!, Object.assign(new TypeError('It broke.'), { code: 'E_BROKEN', path: '/x' }))
  await bob.fail(second!, Object.assign(new Error('x'.repeat(5000)), { code: 5 }) as Error)
  t.match(await alice.status(first!), { error: { message: 'It broke.', code: 'E_BROKEN' } })
  t.match(await alice.status(second!), { error: { message: 'x'.repeat(4000) } })
})

t.test('what onError throws ends work, after it has finished what it has', async t => {
  const { alice, pass, work } = await worker(t, tenant())
  const [first, second] = await pass({ priority: 9 }, {})
  let finish = () => {}
  let threw = false
  const { ended } = work(async ({ handoff_id: id }) => {
    if (id === first) return 5
    await new Promise<void>(resolve => { finish = resolve })
  }, {
    concurrency: 2,
    onError () {
      threw = true
      throw new Error('of its own')
    }
  })
  const rejected = t.rejects(ended, { message: 'of its own' })
  await until(() => threw)
  finish()
  await rejected
  t.match(await alice.status(second!), { status: 'done' })
})
