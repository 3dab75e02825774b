import t from 'tap'
import { testApp } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { LimitTable } from '../../src/auth/limit-table.ts'
import { Unavailable } from '../../src/core/errors.ts'
import { tags } from '../../src/core/ids.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import type { Limit } from '../../src/store/limits.ts'
import { callText } from '../helpers/mcp.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { isProblem } from '../helpers/problems.ts'
import { bearer, newKey } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'

/** The limits that operators set, with two replicas. Each test has agents or a tenant of its own. */

const one = await testApp(t)
const other = await testApp(t, {}, { prefix: one.prefix })
// They follow the log from then on.
await Promise.all([one, other].map(({ app }) => app.ready()))
const { limits } = one.store.keyRecords

const ask = (service: TestApp, who: Who) => service.call(who, 'GET', '/api/status/nowhere')
const by = (service: TestApp, key: string) => service.app.inject({ url: '/api/status/nowhere', headers: bearer(key) })
const policy = ({ headers }: { headers: Record<string, unknown> }) => headers['ratelimit-policy']
const isSo = (of: (table: LimitTable) => boolean) => until(() => [one, other].every(({ keys }) => of(keys.limits)))

t.test('a tenant’s agents share its limit, whatever keys they use and whichever replica they ask', async t => {
  const { key } = await newKey(one.store.keyRecords, { tenant: 'other', agent: 'dora' })
  t.equal(policy(await ask(one, 'foreignAlice')), undefined)
  t.strictSame(await one.redis.keys(`${one.prefix}:*:r:*`), [], 'without a limit nothing is counted')
  await limits.set({ tenant: 'other', agent: null, ratePerMinute: 6 }, 'me')
  await isSo(table => table.of('other')?.all === 6)
  const asked = [() => ask(one, 'foreignAlice'), () => ask(other, 'foreignAlice'), () => by(other, key), () => ask(one, 'foreignApprover'), () => by(one, key)]
  // Less than ten are left, so no replica holds any in advance.
  const answers = []
  for (let n = 0; n < 10; n++) answers.push(await asked[n % asked.length]!())
  t.strictSame(answers.map(({ statusCode }) => statusCode === 429), [false, false, false, false, false, false, true, true, true, true])
  t.strictSame(new Set(answers.map(policy)), new Set(['"default";q=6;w=60']))
  const refused = answers.at(-1)!
  isProblem(t, refused, 429, 'rate_limited')
  t.match(refused.json().detail, /all of its tenant together/, 'it needn’t have been this agent')
  t.match(refused.headers, { ratelimit: /^"default";r=0;t=\d+$/, 'retry-after': /^\d+$/ })

  t.equal(policy(await ask(one, 'alice')), undefined, 'another tenant has none')
  t.strictSame((await one.redis.keys(`${one.prefix}:*:r:*`)).map(name => name.split('}')[1]), [':r:other:*'], 'and nothing is counted of it')

  await limits.set({ tenant: 'other', agent: null, ratePerMinute: null }, 'me')
  await isSo(table => table.of('other') === undefined)
  t.equal((await ask(other, 'foreignAlice')).statusCode, 404)
  const told = one.lines.map(line => JSON.parse(line)).filter(({ msg }) => msg.startsWith('limit'))
  t.match(told, [{ msg: 'limit set', tenant: 'other', limit: 6, by: 'me' }, { msg: 'limit removed', tenant: 'other', by: 'me' }])
  t.notOk('agent' in told[0] || 'limit' in told[1] || 'key_id' in told[0])
})

t.test('the tightest counts, and who is over its own limit takes nothing from the others', async t => {
  const agent = (name: string, more = {}) => newKey(one.store.keyRecords, { tenant: 'acme', agent: name, ...more })
  const [a, a2, b] = [await agent('a'), await agent('a', { ratePerMinute: 1000 }), await agent('b', { ratePerMinute: 4 })]
  await limits.set({ tenant: 'acme', agent: 'a', ratePerMinute: 3 }, 'me')
  await limits.set({ tenant: 'acme', agent: null, ratePerMinute: 5 }, 'me')
  await isSo(table => table.of('acme')?.all === 5 && table.of('acme')!.agents.size === 1)
  const left: unknown[] = []
  const spend = async (service: TestApp, { key }: { key: string }) => {
    const answer = await by(service, key)
    left.push([answer.statusCode, policy(answer), /r=(\d+)/.exec(String(answer.headers.ratelimit))![1]])
  }
  for (const key of [a, a2, a, a2, a]) await spend(one, key)
  t.strictSame(left.splice(0), [
    [404, '"default";q=3;w=60', '2'], [404, '"default";q=3;w=60', '1'], [404, '"default";q=3;w=60', '0'], [429, '"default";q=3;w=60', '0'], [429, '"default";q=3;w=60', '0'],
  ], 'the agent’s is tighter than the key’s own and the tenant’s')
  for (const service of [one, other, one]) await spend(service, b)
  t.strictSame(left.map(([status]: any) => status), [404, 404, 429], 'three of the tenant’s five were a’s')
  t.strictSame(left.at(-1), [429, '"default";q=5;w=60', '0'], 'its key’s own limit is 4')
  await limits.set({ tenant: 'acme', agent: null, ratePerMinute: null }, 'me')
  await limits.set({ tenant: 'acme', agent: 'a', ratePerMinute: null }, 'me')
  await isSo(table => table.of('acme') === undefined)
  t.match(await by(other, a.key), { statusCode: 404 }, 'a has none any more')
  t.match(await by(one, b.key), { statusCode: 404, headers: { ratelimit: /r=1;/ } }, 'b’s key has its own, of which the refused one took nothing')

  const tight = await agent('c', { ratePerMinute: 2 })
  await limits.set({ tenant: 'acme', agent: 'c', ratePerMinute: 9 }, 'me')
  await isSo(table => table.of('acme')?.agents.get('c') === 9)
  t.equal(policy(await by(one, tight.key)), '"default";q=2;w=60', 'a key’s own limit may be tighter than its agent’s')
})

t.test('batches count as their operations, and MCP’s calls count', async t => {
  const { key } = await newKey(one.store.keyRecords, { tenant: 'many', agent: 'a' })
  await limits.set({ tenant: 'many', agent: null, ratePerMinute: 4 }, 'me')
  await isSo(table => table.of('many')?.all === 4)
  const post = (url: string, payload: unknown) =>
    one.app.inject({ method: 'POST', url, headers: { ...bearer(key), 'content-type': 'application/json' }, payload: payload as object })
  const batch = await post('/api/batch', { operations: [1, 2, 3].map(n => ({ op: 'status', id: `nowhere${n}` })) })
  t.match(batch.headers, { 'ratelimit-policy': '"default";q=4;w=60', ratelimit: /r=1;/ })
  t.match(await post('/mcp', callText('handoff_status', '{"id":"nowhere"}')), { headers: { ratelimit: /r=0;/ } })
  const more = await post('/api/batch', { operations: [{ op: 'status', id: 'nowhere' }] })
  t.match(more.json().results, [{ status: 429, body: { code: 'rate_limited' } }])
  t.match(JSON.parse((await post('/mcp', callText('handoff_status', '{"id":"nowhere"}'))).json().result.content[0].text), { code: 'rate_limited', retry_after: Number })
})

t.test('before the limits are known, nobody is let in without them', async t => {
  const redis = await ownRedis(t)
  const before = await testApp(t, {}, { url: redis.url })
  await before.store.keyRecords.limits.set({ tenant: 'default', agent: 'alice', ratePerMinute: 1 }, 'me')
  process.kill(redis.pid(), 'SIGSTOP')
  const service = await testApp(t, {}, { url: redis.url, prefix: before.prefix })
  const early = ask(service, 'alice')
  isProblem(t, await early, 503, 'unavailable')
  process.kill(redis.pid(), 'SIGCONT')
  await until(async () => (await ask(service, 'bob')).statusCode === 404)
  t.equal(policy(await ask(service, 'alice')), '"default";q=1;w=60')
})

t.test('until they can be read, the replica isn’t ready', async t => {
  const name = new KeyNames(one.prefix).limits(tags[0]!)
  const third = await testApp(t, {}, { prefix: one.prefix })
  await one.redis.del(name)
  await one.redis.set(name, 'something else')
  let ready = await third.app.inject('/readyz')
  await until(async () => /The limits of agents can’t be read/.test((ready = await third.app.inject('/readyz')).body))
  t.equal(ready.statusCode, 503)
  t.equal((await one.app.inject('/readyz')).statusCode, 200, 'one that knows them is')
  await one.redis.del(name)
  t.equal((await third.app.inject('/readyz')).statusCode, 200)
})

t.test('the table: one call for all who wait, the newest answer wins, a failure is asked again', async t => {
  const asked: Array<{ resolve (limits: Limit[]): void, reject (error: Error): void }> = []
  const table = new LimitTable({ list: () => new Promise((resolve, reject) => { asked.push({ resolve, reject }) }) })
  const waits = [table.whenKnown(), table.whenKnown()]
  t.equal(asked.length, 1)
  asked[0]!.reject(new Unavailable('away'))
  for (const wait of waits) await t.rejects(wait, Unavailable)
  t.equal(table.isKnown, false)
  const [first, second] = [table.read(), table.read()]
  asked[2]!.resolve([{ tenant: '__proto__', agent: 'constructor', ratePerMinute: 2, maxLive: null }])
  await second
  asked[1]!.resolve([{ tenant: 'old', agent: null, ratePerMinute: 1, maxLive: null }])
  await first
  t.equal(table.of('old'), undefined)
  t.strictSame(table.of('__proto__'), { all: null, agents: new Map([['constructor', 2]]) })
  await table.whenKnown()
  const set = (change: { tenant: string, agent: string, limit: string }) => ({ ...change, action: 'limit set' as const, by: 'me' })
  await table.change([
    set({ tenant: 'acme', agent: '', limit: '7' }), set({ tenant: 'acme', agent: 'a', limit: '5' }), set({ tenant: 'acme', agent: 'a', limit: '6' }),
    set({ tenant: '__proto__', agent: 'constructor', limit: '' }), set({ tenant: 'none', agent: 'a', limit: '' })
  ])
  t.equal(asked.length, 3, 'what the log says needs no read')
  t.strictSame(table.of('acme'), { all: 7, agents: new Map([['a', 6]]) })
  t.strictSame([table.of('__proto__'), table.of('none')], [undefined, undefined])
  const third = table.read()
  const changed = table.change([set({ tenant: 'acme', agent: '', limit: '' })])
  t.equal(asked.length, 5, 'but a read under way may not have it')
  asked[4]!.resolve([{ tenant: 'acme', agent: 'a', ratePerMinute: 6, maxLive: null }])
  asked[3]!.resolve([{ tenant: 'acme', agent: null, ratePerMinute: 7, maxLive: null }, { tenant: 'acme', agent: 'a', ratePerMinute: 6, maxLive: null }])
  await Promise.all([third, changed])
  t.strictSame(table.of('acme'), { all: null, agents: new Map([['a', 6]]) })
})
