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

t.test('layout', async t => {
  const { rows } = await bench(t, 'layout', '--handoffs', '500') as { rows: Array<Record<string, unknown>> }
  t.equal(rows.length, 12, 'two settings, three sizes, two layouts')
  for (const row of rows) positive(t, row, ['bytes', 'pass', 'catch', 'done'])
})

t.test('mix', async t => {
  const { service, floor, ratio, each } = await bench(t, 'mix', '--seconds', '1') as
    { service: object, floor: object, ratio: object, each: Record<'service' | 'floor', Array<{ faults: number }>> }
  positive(t, service, ['perSecond', 'p50', 'p99', 'cpu', 'redisCpu'])
  positive(t, floor, ['perSecond', 'p50', 'p99', 'cpu'])
  positive(t, ratio, ['perSecond', 'p50', 'p99', 'cpu'])
  t.equal(each.service[0]?.faults, 0, 'the service answered everything')
  t.equal(each.floor[0]?.faults, 0, 'so did the floor')
})

t.test('waiting', async t => {
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

t.test('list', async t => {
  const { each } = await bench(t, 'list', '--listed', '1000') as { each: Record<'first' | 'middle', Array<{ calls: number }>> }
  for (const page of ['first', 'middle'] as const) {
    const [round] = each[page]
    positive(t, round ?? {}, ['redis', 'p50', 'p99'])
    t.equal(round?.calls, 1, `${page}: one call`)
  }
})
