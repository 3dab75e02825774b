import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { barChart, lineChart } from '../bench/chart.ts'
import { measure } from '../bench/contest.ts'
import { exchange } from '../bench/exchange.ts'
import { keepFigures, readFigures } from '../bench/figures.ts'
import { goalsOf } from '../bench/goals.ts'
import { payloadOf } from '../bench/handoffs.ts'
import { untilFaultless, WentWrong } from '../bench/instructions-of.ts'
import { passBodyOf } from '../bench/load.ts'
import { script } from '../bench/peers/contestants.ts'
import { Taken } from '../bench/peers/taken.ts'
import { cpuOfTree } from '../bench/peers/tree-cpu.ts'
import { limits, needs, scaleOf } from '../bench/scale.ts'
import { keySettings, startServer } from '../bench/server-process.ts'
import { ownRedis } from './helpers/own-redis.ts'
import { scratchDir } from './helpers/processes.ts'
import { projectRoot } from './helpers/service.ts'

t.test('payloads of a size', async t => {
  for (const bytes of [100, 1024, 10_240, 102_400]) t.equal(Buffer.byteLength(passBodyOf(bytes)), bytes)
  t.throws(() => passBodyOf(10))
})

t.test('a queue’s job is taken once', async t => {
  const taken = new Taken<string>()
  const next = async () => 'job'
  t.same(await Promise.all([taken.take('a', 'one', next), taken.take('a', 'two', next)]), ['job', null])
  t.equal(taken.finish('a', 'two'), null, 'only by who took it')
  t.equal(taken.finish('a', 'one'), 'job')
  t.equal(taken.finish('a', 'one'), null, 'and once')
  t.equal(await taken.take('b', 'one', async () => null), null)
  t.equal(await taken.take('b', 'one', next), 'job', 'there was none, now there is one')
})

t.test('the CPU of ended processes is counted', { skip: !existsSync('/proc/self/stat') }, async t => {
  const before = cpuOfTree(process.pid)
  spawnSync(process.execPath, ['-e', 'const end = process.cpuUsage().user + 300_000; while (process.cpuUsage().user < end);'])
  t.ok(cpuOfTree(process.pid) - before >= 250_000, 'the child’s 0.3 s are there')
})

t.test('charts', t => {
  const line = lineChart({ title: 'Cost by size', x: 'live', y: 'µs', logX: true, series: [{ name: 'service', points: [[1000, 30], [5e6, 33]] }, { name: 'Redis', points: [[1000, 16], [5e6, 18]] }] })
  const bars = barChart({ title: 'Cost', x: 'µs', bars: ['ours', 'theirs'], parts: [{ name: 'service', values: [30, 60] }, { name: 'store', values: [16, null] }] })
  for (const svg of [line, bars]) {
    t.match(svg, /^<svg [^>]*viewBox=/, 'it scales')
    t.match(svg, /<rect[^>]*fill="#ffffff"/, 'on a background of its own')
    t.notMatch(svg.replaceAll('http://www.w3.org/', ''), /https?:|<script|<image/, 'it needs nothing from elsewhere')
    t.ok(svg.length < 20_000, `${svg.length} characters`)
  }
  for (const text of ['Cost by size', 'live', 'µs', 'service', 'Redis', '1k', '1M']) t.ok(line.includes(`>${text}<`), text)
  for (const text of ['ours', 'theirs', '46', '60']) t.ok(bars.includes(`>${text}<`), `${text}: the parts' sum stands at the bar's end`)
  t.end()
})

t.test('the tables of goals and of the internet’s scale match the kept figures', async t => {
  const results = join(projectRoot, 'bench', 'results')
  for (const [name, tables] of [['scale', scaleOf(results)], ['goals', goalsOf(results)]] as const) {
    t.match(tables, /\d/, name)
    t.equal(await readFile(join(results, `${name}.md`), 'utf8'), tables, name)
  }
})

t.test('each run replaces the figures of its own scenarios', async t => {
  const results = await scratchDir(t)
  t.strictSame(readFigures(results), {})
  t.equal(goalsOf(results), '')
  await keepFigures(results, 'mix', { rounds: 1, goals: [{ what: 'it goes', atMost: 2, measured: 1 }] })
  await keepFigures(results, 'due', { due: 5, commit: 'def5678', goals: [{ what: 'they go', atMost: 2, measured: 3 }] })
  await keepFigures(results, 'mix', { rounds: 2, commit: 'abc1234', goals: [{ what: 'it went', atMost: 2, measured: 1 }] })
  t.match(readFigures(results), { mix: { rounds: 2 }, due: { due: 5 } })
  t.match(goalsOf(results), /\| it went \| ≤ 2.00 \| 1.00 \| yes \| abc1234 \|\n\| they go \| ≤ 2.00 \| 3.00 \| \*\*no\*\* \| def5678 \|/)
})

t.test('plain commands write what the scripts write, and a second agent is refused', async t => {
  const redis = await ownRedis(t)
  const { url, stop } = await startServer(script('plain.ts'), { ...keySettings, STORE_URL: redis.url })
  try {
    await exchange(url, true)
    const [key] = await redis.admin.keys('handoff:*:h:*')
    t.match(await redis.admin.hget(key!, 's'), /^done none \d+ \d+ passer - \d+ \d+ catcher - \d+ -$/)
    t.ok(await redis.admin.pttl(key!) > 0)
    t.strictSame(await redis.admin.keys('*:due'), [], 'what is done is due no more')
  } finally {
    await stop()
  }
})

t.test('a measurement with errors is repeated, but not for ever', async t => {
  const [requests, faults] = [[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 2, 0]]
  const load = async () => ({ requests: requests.shift() ?? 10, perSecond: 1, p50: 1, p99: 1, p999: 1, faults: faults.shift() ?? 1 })
  t.match(await measure({ name: 'it', pid: process.pid }, load), { perSecond: 1 })
  t.strictSame(faults, [], 'six without a request, one with faults, one without')
  await t.rejects(measure({ name: 'it', pid: process.pid }, load), { message: 'it: 1 requests went wrong, of 10 that were answered' })

  let tries = 0
  t.equal(await untilFaultless(async () => { if (++tries < 3) throw new WentWrong(); return tries }), 3)
  await t.rejects(untilFaultless(async () => { throw new WentWrong('each time') }), { message: 'each time' })
  await t.rejects(untilFaultless(async () => { tries++; throw new Error('something else') }), { message: 'something else' })
  t.equal(tries, 4, 'which isn’t tried again')
})

t.test('scale', t => {
  const measured = { service: 35, redis: 13, pending: 1600, finished: 320, swept: 100_000 }
  const { replicas, byCpu, byMemory, masters, bytes } = needs(measured, { handoffsPerSecond: 1e6, live: 1e9, retention: 100 })
  t.equal(replicas, 150, '3 requests a handoff of 35 µs, on cores that are 70 % busy')
  t.equal(byCpu, 56)
  t.equal(bytes, 1e9 * 1600 + 1e6 * 100 * 320)
  t.equal(byMemory, 51, '32 GB a master')
  t.equal(masters, 56, 'the more of both')
  const found = limits(measured, 86_400)
  t.match(found.map(({ handoffsPerSecond }) => handoffsPerSecond), found.map(({ handoffsPerSecond }) => handoffsPerSecond).sort((a, b) => a - b), 'what breaks first stands first')
  t.equal(found.find(({ what }) => what === 'one replica’s core')?.handoffsPerSecond, 0.7e6 / 35 / 3)
  t.end()
})

t.test('payloadOf', t => {
  t.equal(payloadOf(1024).length, 1024, 'just so many bytes')
  t.match(JSON.parse(`{${String(payloadOf(100))}}`).task, /^x+$/)
  t.end()
})
