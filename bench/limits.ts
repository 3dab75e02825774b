import { missingForCallgrind, startCallgrind } from './callgrind.ts'
import type { Instructions } from './callgrind.ts'
import { ofRedisBehind, ofService, operations } from './instructions-of.ts'
import type { Counts } from './instructions-of.ts'
import { caption, circumstances, markdownTable } from './report.ts'
import type { BenchOptions, Report } from './report.ts'

/** More than the benchmark asks for: what is counted is what the limit costs whom it doesn't stop. */
const perMinute = 10_000

/** Instructions a request, without a limit and with one: the service's and Redis's. */
export async function limits ({ say }: Pick<BenchOptions, 'say'>): Promise<Report> {
  const missing = await missingForCallgrind()
  if (missing !== null) throw new Error(`limits: there is no ${missing} here (Debian: valgrind)`)
  const callgrind = await startCallgrind()
  const both = async (extra: Record<string, string>) => {
    say(`limits: the service and Redis, each under valgrind ${JSON.stringify(extra)}`)
    const counts = [ofService(callgrind, say, extra), ofRedisBehind(callgrind, say, extra)] as const
    // Where one failed the other still runs.
    await Promise.allSettled(counts)
    return Promise.all(counts)
  }
  try {
    const [off, redisOff] = await both({})
    const [limited, redisLimited] = await both({ RATE_LIMIT_PER_MINUTE: String(perMinute) })
    const where = circumstances(redisOff.version)
    const rows = operations.flatMap(name => [
      row(`${name}: the service, JavaScript`, 'javascript', name, off, limited),
      row(`${name}: the service, native code`, 'native', name, off, limited),
      row(`${name}: Redis`, 'native', name, redisOff.counts, redisLimited.counts),
    ])
    const thousands = (count: number) => (count / 1000).toFixed(1)
    return {
      table: markdownTable(['thousands of instructions a request', 'no limit', `${perMinute} a minute`, 'ratio'],
        rows.map(({ what, off, on }) => [what, thousands(off), thousands(on), (on / off).toFixed(2)])) + `\n${caption(where)}\n`,
      figures: { ...where, perMinute, rows },
    }
  } finally {
    await callgrind.remove()
  }
}

function row (what: string, part: keyof Instructions, name: typeof operations[number], off: Counts, on: Counts) {
  return { what, off: off[name][part], on: on[name][part] }
}
