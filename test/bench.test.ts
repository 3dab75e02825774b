import t from 'tap'
import { missingForCallgrind } from '../bench/callgrind.ts'
import { bench, positive } from './helpers/bench.ts'
import { skipUnlessWhole } from './helpers/extent.ts'

t.setTimeout(300_000)
// Side by side: what is looked at here is that they go and what they say, not what they measure.
t.jobs = 2
const aside = { buffered: true, ...skipUnlessWhole }

t.test('layout', aside, async t => {
  const { rows } = await bench(t, 'layout', '--handoffs', '500') as { rows: Array<Record<string, unknown>> }
  t.equal(rows.length, 12, 'two settings, three sizes, two layouts')
  for (const row of rows) positive(t, row, ['bytes', 'pass', 'catch', 'done'])
})

interface Rounds { [name: string]: Array<Record<string, number>> }

t.test('mix', { buffered: true }, async t => {
  const { service, floor, ratio, goals, each } = await bench(t, 'mix', '--seconds', '1', '--only', 'service,floor,trivial') as
    { service: object, floor: object, ratio: object, goals: Array<{ measured: number }>, each: Rounds }
  positive(t, service, ['perSecond', 'p50', 'p99', 'p999', 'cpu', 'storeCpu'])
  positive(t, floor, ['perSecond', 'p50', 'p99', 'p999', 'cpu', 'loadCpu'])
  positive(t, ratio, ['perSecond', 'p50', 'p99', 'cpu'])
  t.same(Object.keys(each), ['floor', 'service', 'trivial'])
  t.equal(goals.length, 2, 'the third is about BullMQ, who is not there')
})

t.test('mix without the floor', aside, async t => {
  const { service, ratio, each } = await bench(t, 'mix', '--seconds', '1', '--only', 'service') as { service: object, ratio?: object, each: Rounds }
  positive(t, service, ['perSecond', 'p50', 'cpu', 'storeCpu'])
  t.same(Object.keys(each), ['service'])
  t.equal(ratio, undefined, 'there is nothing to compare it with')
})

t.test('operations', aside, async t => {
  const { cases } = await bench(t, 'operations', '--seconds', '1', '--only', 'service,floor') as { cases: Array<{ name: string, rounds: Rounds }> }
  t.same(cases.map(({ name }) => name), ['pass', 'status', 'catch', 'done'])
  for (const { rounds } of cases) positive(t, rounds.service?.[0] ?? {}, ['perSecond', 'p50', 'cpu', 'storeCpu'])
})

t.test('saturation', aside, async t => {
  const { saturated, eased } = await bench(t, 'saturation', '--seconds', '1', '--only', 'service,floor') as
    { saturated: Rounds, eased: Rounds }
  for (const name of ['service', 'floor']) {
    positive(t, saturated[name]?.[0] ?? {}, ['perSecond', 'memory'])
    positive(t, eased[name]?.[0] ?? {}, ['p50', 'p99', 'lateness'])
    const share = (eased[name]?.[0]?.perSecond ?? NaN) / (saturated[name]?.[0]?.perSecond ?? NaN)
    t.ok(share > 0.4 && share < 0.75, `at 70 % of what it could, less what came late: ${share}`)
  }
})

t.test('durability', aside, async t => {
  const { none, 'replicas:1': replicas, ratio } = await bench(t, 'durability', '--seconds', '1') as Record<string, object>
  for (const figures of [none, replicas]) positive(t, figures ?? {}, ['perSecond', 'p50', 'cpu', 'storeCpu'])
  positive(t, ratio ?? {}, ['perSecond'])
})

t.test('redis', aside, async t => {
  const { ratio, each } = await bench(t, 'redis', '--handoffs', '500') as { ratio: number, each: Array<Record<string, object>> }
  t.ok(ratio > 1, 'ours do more than those that only answer')
  for (const name of ['pass', 'catch', 'done']) positive(t, each[0]?.[`${name}, ours`] ?? {}, ['cpu', 'perSecond'])
})

t.test('approvals', aside, async t => {
  const { rows } = await bench(t, 'approvals', '--listed', '500', '--seconds', '1') as { rows: Array<Record<string, number>> }
  t.equal(rows.length, 3, 'without, with, and with others that wait')
  for (const row of rows) positive(t, row, ['service', 'redis', 'together', 'ratio', 'perSecond', 'p99'])
})

t.test('waiting', aside, async t => {
  const { each } = await bench(t, 'waiting', '--waiters', '200', '--seconds', '1') as
    { each: Array<Record<'nobodyWaits' | 'allWait', Record<string, number>> & Record<'fromSending' | 'done' | 'cpu', object> & { rss: number, heap: number }> }
  t.equal(each.length, 1, 'a round')
  for (const round of each) {
    positive(t, round, ['heap'])
    positive(t, round.fromSending, ['p50', 'p99'])
    positive(t, round.done, ['p50', 'p99'])
    positive(t, round.allWait, ['EVALSHA sweep'])
    t.ok(Number.isFinite(round.rss), 'weighed')
    t.notOk('EVALSHA status' in round.allWait, 'who waits asks nothing of Redis')
  }
})

t.test('list', aside, async t => {
  const { each, besides } = await bench(t, 'list', '--listed', '1000', '--seconds', '1') as { each: Record<'first' | 'middle', Array<{ calls: number }>>, besides: object[] }
  positive(t, besides[0] ?? {}, ['alone', 'beside', 'lists', 'listed'])
  for (const page of ['first', 'middle'] as const) {
    const [round] = each[page]
    positive(t, round ?? {}, ['redis', 'p50', 'p99'])
    t.equal(round?.calls, 1, `${page}: one call`)
  }
})

const missing = await missingForCallgrind()

t.test('limits', { ...aside, skip: missing !== null && `no ${missing}: instructions are not counted (Debian: valgrind)` }, async t => {
  const { rows } = await bench(t, 'limits') as { rows: Array<{ what: string, off: number, on: number }> }
  t.equal(rows.length, 9, 'three operations: JavaScript, native code and Redis')
  for (const row of rows) positive(t, { ...row }, ['off', 'on'])
})
