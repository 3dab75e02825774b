import t from 'tap'
import { HandoffClient, isHandoffError } from '../../src/clients/typescript/index.ts'
import type { ListedHandoff } from '../../src/clients/typescript/index.ts'
import { tenants } from '../helpers/client.ts'

/** Lists, and what operators do to many handoffs at once. */

const operator = 'operator-of-0-0123456789'
const next = await tenants(t, { OPERATOR_KEYS: `t0/olga:${operator}` }, 1)
const { client, address } = next()
const [alice, bob, olga] = [client('alice'), client('bob'), new HandoffClient({ baseUrl: address, key: operator })]

t.test('a page, each item with its own text, and all pages', async t => {
  const ids: string[] = []
  for (let n = 0; n < 3; n++) ids.push((await alice.pass({ task: 'a "quoted" [one]', to: 'in', labels: { run: '42', n: String(n) }, expires_in: 60 + n })).handoff_id)
  await bob.catch(ids[2]!)
  const page = await olga.list({ inbox: 'in', limit: 2 })
  t.match(page, { items: [{}, {}], next_cursor: /./ })
  for (const item of page.items) t.strictSame({ attempt: 1, ...JSON.parse(item.text) }, { ...item })
  t.match(page.text, /^\{"items":\[\{"handoff_id"/)
  const rest = await olga.list({ inbox: 'in', limit: 2, cursor: page.next_cursor! })
  const seen = [...page.items, ...rest.items].map(({ handoff_id: id }) => id)
  t.strictSame(seen.toSorted(), ids.toSorted())
  const all: ListedHandoff[] = []
  for await (const item of olga.listAll({ inbox: 'in', limit: 1 })) if (all.push(item) > seen.length) break
  t.strictSame(all.map(({ handoff_id: id }) => id), seen)
  t.match(all[0]!.text, /^\{"handoff_id"/)
  t.strictSame((await alice.list({ caughtBy: 'bob', passedBy: 'alice', labels: { run: '42', n: '2' } })).items.map(item => [item.handoff_id, item.task]), [[ids[2], undefined]])
  t.strictSame((await alice.list({ labels: { n: '2', run: '41' } })).items, [])
  t.strictSame((await alice.list({ passedBy: 'bob' })).items, [])
  await t.rejects(alice.list({ since: '2026-11-20T09:00:00Z' }), { code: 'invalid_request', errors: [{ pointer: '/since' }] })
})

t.test('what failed is reissued', async t => {
  const failed = async (code: string, labels: Record<string, string> = { a: 'b' }) => {
    const { handoff_id: id } = await alice.pass({ task: 't', to: 'f', labels })
    await bob.catch(id)
    await bob.fail(id, { message: 'no', code })
    return id
  }
  const [first, second] = [await failed('E1', JSON.parse('{"__proto__":"1"}')), await failed('E2')]
  const wanted = { inbox: 'f', passedBy: 'alice', status: ['failed', 'expired'], since: '2020-01-01T00:00:00Z', until: '2100-01-01T00:00:00Z' } as const
  t.strictSame((await alice.list({ state: 'failed', ...wanted, errorCode: 'E1' })).items.map(({ handoff_id: id }) => id), [first])
  t.match(await olga.redrive({ ...wanted, errorCode: 'E1', labels: JSON.parse('{"__proto__":"2"}') }), { reissued: 0 })
  t.match(await olga.redrive({ ...wanted, errorCode: 'E3' }), { reissued: 0 })
  t.match(await olga.redrive({ ...wanted, errorCode: 'E1', labels: JSON.parse('{"__proto__":"1"}') }), { reissued: 1, skipped: 0, more: false, text: '{"reissued":1,"skipped":0,"more":false}' })
  t.match(await alice.status(first), { reissued_as: /./ })
  t.notMatch(await alice.status(second), { reissued_as: /./ })
  t.match(await olga.redrive({ limit: 1 }), { reissued: 1, more: false })
  t.ok(isHandoffError(await alice.redrive().catch(error => error), 'insufficient_scope'))
})

t.test('what is pending in an inbox is cancelled', async t => {
  const ids = []
  for (const run of ['1', '2', '2']) ids.push((await alice.pass({ task: 't', to: 'p', labels: { run } })).handoff_id)
  t.match(await olga.purge('p', { labels: { run: '1' }, reason: 'mistaken' }), { cancelled: 1, more: false })
  t.match(await alice.status(ids[0]!), { status: 'cancelled', ended_by: 'olga', cancel_reason: 'mistaken' })
  t.match(await olga.purge('p', { limit: 1 }), { cancelled: 1, more: true })
  t.match(await olga.purge('p'), { cancelled: 1, more: false, text: '{"cancelled":1,"more":false}' })
  t.ok(isHandoffError(await alice.purge('p').catch(error => error), 'insufficient_scope'))
})

t.test('inboxes are listed, each with its own text, and set', async t => {
  await alice.pass({ task: 't', to: 'listed-1' })
  await alice.pass({ task: 't', to: 'listed-2' })
  const page = await alice.inboxes({ limit: 100 })
  for (const item of page.items) t.strictSame(JSON.parse(item.text), { ...item })
  t.match(page.items.filter(({ inbox }) => inbox.startsWith('listed')), [{ inbox: 'listed-1', pending: 1 }, { inbox: 'listed-2', pending: 1 }])
  t.match(await alice.inboxes({ limit: 1 }), { items: [{}], next_cursor: /./ })
  t.match(await olga.setInbox('listed-1', { paused: true, maxCaught: 3, maxPending: 4 }), { paused: true, max_caught: 3, max_pending: 4, text: /^\{/ })
  t.match(await olga.setInbox('listed-1', { maxCaught: null }), { paused: true, max_caught: null, max_pending: 4 })
  t.match(await alice.inbox('listed-1'), { paused: true, max_caught: null, max_pending: 4 })
  await t.rejects(alice.setInbox('listed-1', { paused: false }), { code: 'insufficient_scope' })
})
