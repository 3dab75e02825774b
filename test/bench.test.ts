import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { scratchDir } from './helpers/processes.ts'

const run = fileURLToPath(new URL('../bench/run.ts', import.meta.url))

/** Runs one scenario shortly. It fails by itself where an answer is wrong. @returns its figures, as it wrote them */
async function bench (t: Test, name: string, ...options: string[]): Promise<Record<string, unknown>> {
  const results = await scratchDir(t)
  const { stdout } = await promisify(execFile)(process.execPath, ['--import=tsx', run, name, '--rounds', '1', '--results', results, ...options])
  t.ok(stdout.includes(await readFile(join(results, `${name}.md`), 'utf8')), 'the table is printed and kept')
  return JSON.parse(await readFile(join(results, `${name}.json`), 'utf8'))
}

function positive (t: Test, figures: object, names: string[]): void {
  for (const name of names) {
    const figure = (figures as Record<string, unknown>)[name]
    t.ok(Number.isFinite(figure) && figure as number > 0, `${name}: ${String(figure)}`)
  }
}

// Side by side: what is looked at here is that they go and what they say, not what they measure.
t.jobs = 2
const aside = { buffered: true }

t.test('layout', aside, async t => {
  const { rows } = await bench(t, 'layout', '--handoffs', '500') as { rows: Array<Record<string, unknown>> }
  t.equal(rows.length, 12, 'two settings, three sizes, two layouts')
  for (const row of rows) positive(t, row, ['bytes', 'pass', 'catch', 'done'])
})

interface Rounds { [name: string]: Array<Record<string, number>> }

t.test('mix', aside, async t => {
  const { service, floor, ratio, goals, each } = await bench(t, 'mix', '--seconds', '1', '--only', 'service,floor,trivial') as
    { service: object, floor: object, ratio: object, goals: Array<{ measured: number }>, each: Rounds }
  positive(t, service, ['perSecond', 'p50', 'p99', 'p999', 'cpu', 'storeCpu'])
  positive(t, floor, ['perSecond', 'p50', 'p99', 'p999', 'cpu'])
  positive(t, ratio, ['perSecond', 'p50', 'p99', 'cpu'])
  t.same(Object.keys(each), ['floor', 'service', 'trivial'])
  t.equal(goals.length, 2, 'the third is about BullMQ, who is not there')
})

t.test('operations', aside, async t => {
  const { cases } = await bench(t, 'operations', '--seconds', '1', '--only', 'service,floor') as { cases: Array<{ name: string, rounds: Rounds }> }
  t.same(cases.map(({ name }) => name), ['pass', 'status', 'catch', 'done'])
  for (const { rounds } of cases) positive(t, rounds.service?.[0] ?? {}, ['perSecond', 'p50', 'cpu', 'storeCpu'])
})

t.test('saturation', aside, async t => {
  const { rates, saturated, eased } = await bench(t, 'saturation', '--seconds', '1', '--only', 'service,floor') as
    { rates: Record<string, number>, saturated: Rounds, eased: Rounds }
  for (const name of ['service', 'floor']) {
    positive(t, saturated[name]?.[0] ?? {}, ['perSecond', 'memory'])
    positive(t, eased[name]?.[0] ?? {}, ['p50', 'p99', 'lateness'])
    t.ok(Math.abs((rates[name] ?? NaN) / (saturated[name]?.[0]?.perSecond ?? NaN) - 0.7) < 0.01, 'at 70 % of what it could')
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
  const { each } = await bench(t, 'list', '--listed', '1000') as { each: Record<'first' | 'middle', Array<{ calls: number }>> }
  for (const page of ['first', 'middle'] as const) {
    const [round] = each[page]
    positive(t, round ?? {}, ['redis', 'p50', 'p99'])
    t.equal(round?.calls, 1, `${page}: one call`)
  }
})

t.test('growth', aside, async t => {
  const { rows, each } = await bench(t, 'growth', '--seconds', '1', '--live', '1000') as
    { rows: Array<Record<string, number>>, each: Array<{ live: number, grown: object[], small: object[] }> }
  t.match(rows.map(({ live }) => live), [1000], 'no more live than asked for')
  positive(t, rows[0] ?? {}, ['service', 'redis', 'together', 'togetherSmall', 'ratio', 'perSecond', 'p99'])
  t.match(each, [{ live: 1000, grown: [{}], small: [{}] }], 'turn about')
})

t.test('tenants', aside, async t => {
  const { rows } = await bench(t, 'tenants', '--seconds', '1') as { rows: Array<Record<string, number>> }
  t.match(rows.map(({ tenants }) => tenants), [1, 10, 100, 1000])
  for (const row of rows) positive(t, row, ['service', 'redis', 'ratio', 'perSecond'])
})

t.test('due', aside, async t => {
  const { goneAfter, each } = await bench(t, 'due', '--seconds', '1', '--due', '2000') as
    { goneAfter: number, each: Array<Record<'before' | 'during', { requests: number, p99: number }>> }
  t.ok(goneAfter > 0 && goneAfter < 10, `gone after ${goneAfter} s`)
  for (const when of ['before', 'during'] as const) positive(t, each[0]?.[when] ?? {}, ['requests', 'p50', 'p99', 'longest'])
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
