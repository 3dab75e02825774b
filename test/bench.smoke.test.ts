import t from 'tap'
import { bench, positive } from './helpers/bench.ts'
import { skipUnlessWhole } from './helpers/extent.ts'

// However long a busy machine takes.
t.setTimeout(1_800_000)
// Side by side: what is looked at here is that they go and what they say, not what they measure.
t.jobs = 2
const aside = { buffered: true, ...skipUnlessWhole }

interface Rounds { [name: string]: Array<Record<string, number>> }

t.test('mix', { buffered: true }, async t => {
  const { service, floor, plain, ratio, goals, each } = await bench(t, 'mix', '--seconds', '1', '--only', 'service,floor,trivial,plain') as
    { service: object, floor: object, plain: object, ratio: object, goals: Array<{ measured: number }>, each: Rounds }
  positive(t, service, ['perSecond', 'p50', 'p99', 'p999', 'cpu', 'storeCpu'])
  positive(t, floor, ['perSecond', 'p50', 'p99', 'p999', 'cpu', 'loadCpu'])
  positive(t, plain, ['perSecond', 'cpu', 'storeCpu'])
  positive(t, ratio, ['perSecond', 'p50', 'p99', 'cpu'])
  t.same(Object.keys(each), ['floor', 'service', 'trivial', 'plain'])
  t.equal(goals.length, 2, 'the third is about BullMQ, who is not there')
})

t.test('mix without the floor', aside, async t => {
  const { service, ratio, each } = await bench(t, 'mix', '--seconds', '1', '--only', 'service') as { service: object, ratio?: object, each: Rounds }
  positive(t, service, ['perSecond', 'p50', 'cpu', 'storeCpu'])
  t.same(Object.keys(each), ['service'])
  t.equal(ratio, undefined, 'there is nothing to compare it with')
})

t.test('saturation', aside, async t => {
  const { saturated, eased } = await bench(t, 'saturation', '--seconds', '1', '--only', 'service,floor') as
    { saturated: Rounds, eased: Rounds }
  for (const name of ['service', 'floor']) {
    positive(t, saturated[name]?.[0] ?? {}, ['perSecond', 'memory'])
    positive(t, eased[name]?.[0] ?? {}, ['p50', 'p99', 'lateness'])
  }
})

t.test('durability', aside, async t => {
  const { each, goals } = await bench(t, 'durability', '--seconds', '1') as { each: Record<string, Rounds>, goals: Array<{ measured: number }> }
  t.strictSame(Object.keys(each), ['64 agents', '128 agents'])
  for (const rounds of Object.values(each)) {
    for (const name of ['none', 'replicas:1']) positive(t, rounds[name]?.[0] ?? {}, ['perSecond', 'p50', 'cpu', 'storeCpu'])
  }
  for (const goal of goals) positive(t, goal, ['measured'])
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

t.test('client', aside, async t => {
  const { rows } = await bench(t, 'client', '--seconds', '1') as { rows: Array<Record<string, number>> }
  t.equal(rows.length, 6)
  for (const row of rows) positive(t, row, ['cpu', 'ratio'])
})
