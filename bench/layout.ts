import { Redis } from 'ioredis'
import { runLayout } from './layout-round.ts'
import type { LayoutFigures } from './layout-round.ts'
import { layoutNames } from './layouts.ts'
import type { LayoutName } from './layouts.ts'
import { benchRedis } from './redis.ts'
import { caption, circumstances, markdownTable, median } from './report.ts'
import type { BenchOptions, Report } from './report.ts'

const sizes = [100, 1024, 10_240]
/** Redis's `hash-max-listpack-value`: the embedded server's, and Redis's own default. */
const listpackLimits = [2048, 64]

interface Row extends LayoutFigures { listpackLimit: number, size: number, layout: LayoutName }

/** Payload in the handoff's hash or in a string key beside it: memory and Redis's CPU time, on both settings. */
export async function layout (options: BenchOptions): Promise<Report> {
  const rows: Row[] = []
  let version = ''
  for (const listpackLimit of listpackLimits) {
    const server = await benchRedis(options.say, ['--hash-max-listpack-value', String(listpackLimit)])
    const redis = new Redis(server.url)
    version = server.version
    try {
      for (const size of sizes) {
        const measured = await alternate(redis, size, options)
        for (const [layout, figures] of measured) rows.push({ listpackLimit, size, layout, ...figures })
        options.say(`layout: hash-max-listpack-value ${listpackLimit}, ${size} bytes: measured`)
      }
    } finally {
      redis.disconnect()
      await server.stop()
    }
  }
  const where = circumstances(version)
  const { rounds, handoffs } = options
  return { table: describe(rows, options) + `\n${caption(where)}\n`, figures: { ...where, rounds, handoffs, rows } }
}

/** The layouts in turn, so that whatever else the machine does falls on both; medians of the rounds. */
async function alternate (redis: Redis, size: number, { rounds, handoffs }: BenchOptions): Promise<Map<LayoutName, LayoutFigures>> {
  const all = new Map(layoutNames.map(name => [name, [] as LayoutFigures[]]))
  // A round that doesn't count: the first makes room (memory, pages of the append-only file) that the later ones find made.
  for (let round = 0; round <= rounds; round++) {
    for (const name of layoutNames) {
      const figures = await runLayout(redis, name, size, handoffs)
      if (round > 0) all.get(name)?.push(figures)
    }
  }
  return new Map([...all].map(([name, figures]) => [name, {
    bytes: median(figures.map(one => one.bytes)),
    pass: median(figures.map(one => one.pass)),
    catch: median(figures.map(one => one.catch)),
    done: median(figures.map(one => one.done)),
  }]))
}

function describe (rows: readonly Row[], { rounds, handoffs }: BenchOptions): string {
  const head = ['hash-max-listpack-value', 'payload, bytes', 'layout', 'bytes beyond the payload', 'pass, µs', 'catch, µs', 'done, µs', 'all three, µs']
  const cells = rows.map(row => [
    String(row.listpackLimit), String(row.size), row.layout, row.bytes.toFixed(0),
    ...[row.pass, row.catch, row.done, row.pass + row.catch + row.done].map(figure => figure.toFixed(1)),
  ])
  return markdownTable(head, cells) + `\nPer handoff; µs of Redis's CPU. Medians of ${rounds} rounds of ${handoffs} handoffs, the layouts in turn.\n`
}
