import t from 'tap'
import { bench, positive } from './helpers/bench.ts'

// However long a busy machine takes.
t.setTimeout(1_800_000)
// Side by side: what is looked at here is that they go and what they say, not what they measure.
t.jobs = 2
const aside = { buffered: true }

t.test('growth', aside, async t => {
  const { rows, each } = await bench(t, 'growth', '--seconds', '1', '--live', '1000') as
    { rows: Array<Record<string, number>>, each: Array<{ live: number, grown: object[], small: object[] }> }
  t.match(rows.map(({ live }) => live), [1000], 'no more live than asked for')
  positive(t, rows[0] ?? {}, ['service', 'redis', 'together', 'togetherSmall', 'ratio', 'perSecond', 'p99'])
  t.match(each, [{ live: 1000, grown: [{}], small: [{}] }], 'turn about')
})

t.test('due', aside, async t => {
  const { goneAfter, each } = await bench(t, 'due', '--seconds', '1', '--due', '2000') as
    { goneAfter: number, each: Record<string, Array<Record<'before' | 'during', { requests: number, p99: number }>>> }
  t.ok(goneAfter > 0, `gone after ${goneAfter} s`)
  for (const masters of [1, 2]) {
    for (const when of ['before', 'during'] as const) positive(t, each[masters]?.[0]?.[when] ?? {}, ['requests', 'p50', 'p99', 'longest'])
  }
})

t.test('attempts', aside, async t => {
  const { costs, bytes, seconds, p99 } = await bench(t, 'attempts', '--seconds', '1', '--due', '2000') as { costs: Array<Record<string, number>>, bytes: number, seconds: number, p99: number[] }
  positive(t, costs[0] ?? {}, ['pass', 'passWith', 'catch', 'catchWith', 'done', 'heartbeat'])
  t.ok(bytes > 20 && bytes < 1000, `${bytes} bytes beyond the schema`)
  t.ok(seconds > 0 && p99.every(time => time > 0), 'all that stalled have successors')
})

t.test('inboxes', aside, async t => {
  const { costs, shallowCost, deepCost } = await bench(t, 'inboxes', '--due', '2000') as { costs: Array<Record<string, Record<string, Record<string, number>>>>, shallowCost: number, deepCost: number }
  for (const way of ['byId', 'inbox', 'inboxMany', 'batch']) for (const part of ['pass', 'catch', 'done']) positive(t, costs[0]?.[way]?.[part] ?? {}, ['service', 'redis', 'wall'])
  t.ok(shallowCost > 0 && deepCost > 0, 'a catch from either costs something')
})

t.test('events', aside, async t => {
  const { rounds } = await bench(t, 'events', '--seconds', '1') as { rounds: Array<{ bytes: number, off: Record<string, number>, on: Record<string, number> }> }
  t.equal(rounds.length, 1)
  const [round] = rounds
  for (const way of ['off', 'on'] as const) positive(t, round![way], ['service', 'redis'])
  t.ok(round!.bytes > 20 && round!.bytes < 250, `${round!.bytes} bytes an event`)
})

t.test('webhooks', aside, async t => {
  const { rounds } = await bench(t, 'webhooks') as { rounds: Array<Record<string, number>> }
  t.equal(rounds.length, 1)
  positive(t, rounds[0] ?? {}, ['alone', 'beside'])
})

t.test('workers', aside, async t => {
  const { rounds } = await bench(t, 'workers', '--seconds', '1', '--waiters', '30') as { rounds: Array<Record<string, number>> }
  positive(t, rounds[0] ?? {}, ['p50', 'p99', 'looks'])
})

t.test('masters', aside, async t => {
  const { rows, each } = await bench(t, 'masters', '--seconds', '1') as
    { rows: Array<Record<string, number>>, each: Record<string, Array<{ calls: number[] }>> }
  for (const row of rows) positive(t, row, ['service', 'redis', 'ratio', 'fullest'])
  t.match(Object.values(each).map(rounds => rounds[0]?.calls.length), [1, 3, 6])
  for (const count of each[6]?.[0]?.calls ?? []) t.ok(count > 0, 'each master has its share')
})

t.test('memory', aside, async t => {
  const { rows, finished } = await bench(t, 'memory', '--live', '20000') as { rows: Array<{ bytes: number }>, finished: Array<{ bytes: number }> }
  t.equal(rows.length, 2, 'two settings')
  for (const { bytes } of rows) t.ok(bytes > 100 && bytes < 2000, `${bytes} bytes beyond the payload`)
  for (const { bytes } of finished) t.ok(bytes > 100 && bytes < 1024, `${bytes} bytes once finished: the payload is freed`)
})
