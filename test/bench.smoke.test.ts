import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { readFigures } from '../bench/figures.ts'
import { skipUnlessWhole } from './helpers/extent.ts'
import { scratchDir } from './helpers/processes.ts'
import { projectRoot } from './helpers/service.ts'

// Short forms of the benches: that they go, fail on a wrong answer, and have their figures, not what they measure.

// However long a busy machine takes.
t.setTimeout(1_800_000)
t.jobs = 2

/** How often to repeat a scenario that failed with 503 because the machine was busy. */
const tries = 5

/** Each scenario's options, and some of its figures that must be above 0, or be there at least. */
const short: Record<string, [options: string, figures: string[]]> = {
  mix: ['--seconds 1 --only service,floor,trivial,plain', ['service.perSecond', 'service.p999', 'service.storeCpu', 'floor.loadCpu', 'plain.perSecond', 'ratio.cpu', 'goals.length', 'each.trivial.length']],
  headline: ['--seconds 1 --only service,bullmq', [
    ...['', ', through one inbox by 50', ', replicas:1', ', with events'].map(way => `medians.this service${way}.storeCpu`),
    ...[' in process', ' in process, by 50', ' behind Fastify'].map(way => `medians.BullMQ${way}.perSecond`), ...['this service', 'BullMQ in process'].map(name => `each.${name}.0.wake.p99`),
  ]],
  saturation: ['--seconds 1 --only service,floor', ['service', 'floor'].flatMap(name => [`saturated.${name}.0.perSecond`, `saturated.${name}.0.memory`, `eased.${name}.0.lateness`])],
  durability: ['--seconds 1', ['64 agents', '128 agents'].flatMap(agents => ['none', 'replicas:1'].map(one => `each.${agents}.${one}.0.perSecond`))],
  waiting: ['--waiters 200 --seconds 3', ['each.0.rss', 'each.0.heap', 'each.0.fromSending.p99', 'each.0.done.p99', 'each.0.cpu.redis']],
  'waiting-many': ['--waiters 30 --seconds 1', ['each.0.rss', 'each.0.heap', 'each.0.opened', 'each.0.p50', 'each.0.p99']],
  list: ['--listed 1000 --seconds 1', ['besides.0.beside', 'besides.0.lists', 'each.first.0.calls', 'each.middle.0.redis']],
  lists: ['--listed 1000 --seconds 1', ['each.0.live, first page of 20.calls', 'each.0.failed, first page of 20.p50', 'each.0.live, 3 have the label.beside']],
  client: ['--seconds 1', [...[0, 1, 2, 3, 4, 5].flatMap(row => [`rows.${row}.cpu`, `python.${row}.cpu`]), ...[0, 1].flatMap(one => [`packages.${one}.bytes`, `packages.${one}.importTime`])]],
  growth: ['--seconds 1 --live 1000', ['rows.0.service', 'rows.0.together', 'rows.0.ratio', 'each.0.live']],
  due: ['--seconds 1 --due 2000', ['goneAfter', 'each.1.0.before.p99', 'each.2.0.during.requests']],
  attempts: ['--seconds 1 --due 2000', ['costs.0.passWith', 'costs.0.heartbeat', 'bytes', 'seconds', 'p99.0']],
  inboxes: ['--due 2000', [...['byId', 'inbox', 'inboxMany', 'batch'].map(way => `costs.0.${way}.done.redis`), 'shallowCost', 'deepCost']],
  events: ['--seconds 1', ['rounds.0.bytes', 'rounds.0.off.service', 'rounds.0.on.redis']],
  webhooks: ['', ['rounds.0.alone', 'rounds.0.beside']],
  options: ['', ['rounds.0.plain.service', 'rounds.0.events on.redis', 'rounds.0.encryption on.ofPlain.service', 'goals.3.measured']],
  workers: ['--seconds 1 --waiters 30', ['rounds.0.p50', 'rounds.0.looks']],
  masters: ['--seconds 1', ['rows.0.service', 'rows.0.fullest', ...[0, 1, 2, 3, 4, 5].map(master => `each.6.0.calls.${master}`)]],
  memory: ['--live 20000', ['rows.0.bytes', 'rows.1.bytes', 'finished.0.bytes']],
}

/** Memory may shrink meanwhile: the collector frees more than few waiters take. */
const mayBeLess = /\.rss$/

for (const [name, [options, figures]] of Object.entries(short)) {
  t.test(name, { buffered: true, ...name !== 'mix' && skipUnlessWhole }, async t => {
    const found = await bench(t, name, options.split(' ').filter(word => word !== ''))
    for (const path of figures) {
      const figure = path.split('.').reduce<any>((one, name) => one?.[name], found)
      t.ok(Number.isFinite(figure) && (figure > 0 || mayBeLess.test(path)), `${path}: ${figure}`)
    }
  })
}

/** @returns the figures that it wrote */
async function bench (t: Test, name: string, options: readonly string[], left = tries): Promise<unknown> {
  const results = await scratchDir(t)
  const args = ['--import=tsx', join(projectRoot, 'bench/run.ts'), name, '--rounds', '1', '--results', results, ...options]
  try {
    const { stdout } = await promisify(execFile)(process.execPath, args)
    t.ok(stdout.includes(await readFile(join(results, `${name}.md`), 'utf8')), 'the table is printed and kept')
    return (await readFigures(results))[name]
  } catch (error) {
    if (left === 1 || !/"unavailable"|went wrong/.test((error as { stderr: string }).stderr)) throw error
    t.comment(`once more: ${name}`)
    return bench(t, name, options, left - 1)
  }
}
