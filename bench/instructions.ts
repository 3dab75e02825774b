import { missingForCallgrind, startCallgrind } from './callgrind.ts'
import type { Instructions } from './callgrind.ts'
import { ofFloor, ofRedis, ofService, operations } from './instructions-of.ts'
import type { Counts } from './instructions-of.ts'
import { caption, circumstances, markdownTable } from './report.ts'
import type { BenchOptions, Report } from './report.ts'

/** Two counts to compare, in instructions per request. */
interface Pair { what: string, ours: number, theirs: number }

export interface InstructionFigures extends ReturnType<typeof circumstances> {
  pairs: Pair[]
  /** The ratios that hot-path.ts keeps: ours divided by theirs. */
  ratios: Record<string, number>
}

/**
 * Instructions per request: the service's compared with the floor's; and Redis's for our scripts compared with scripts that only answer, and with
 * the same reads and writes as plain commands. Other work on the machine doesn't change these counts, so one round is enough.
 *
 * @param alsoPlain whether Redis's are compared with plain commands too, which hot-path.ts doesn't keep
 */
export async function instructions ({ say, alsoPlain = true }: Pick<BenchOptions, 'say'> & { alsoPlain?: boolean }): Promise<Report & { figures: InstructionFigures }> {
  const missing = await missingForCallgrind()
  if (missing !== null) throw new Error(`instructions: there is no ${missing} here (Debian: valgrind)`)
  const callgrind = await startCallgrind()
  say('instructions: the floor, the service and Redis, each under valgrind')
  const counts = [ofFloor(callgrind), ofService(callgrind, say), ofRedis(callgrind, say, alsoPlain)] as const
  try {
    const [floor, service, redis] = await Promise.all(counts)
    return report([...besideFloor(service, floor), ...besideTrivial(redis.ours, redis.trivial), ...besideTrivial(redis.inbox, redis.trivial, ' through an inbox')], redis.plain === undefined ? [] : besidePlain(redis.ours, redis.plain), redis.version)
  } finally {
    // If one fails, the others still run.
    await Promise.allSettled(counts)
    await callgrind.remove()
  }
}

function besideFloor (service: Counts, floor: Counts): Pair[] {
  return operations.flatMap(name => [
    { what: `${name}: service / floor, JavaScript`, ours: service[name].javascript, theirs: floor[name].javascript },
    { what: `${name}: service / floor, native code`, ours: service[name].native, theirs: floor[name].native },
  ])
}

/** Compared with the mean of the three trivial scripts. Those differ only by how many calls Redis happened to read at once. */
function besideTrivial (ours: Counts, trivial: Counts, how = ''): Pair[] {
  const theirs = operations.reduce((sum, name) => sum + total(trivial[name]), 0) / operations.length
  return operations.map(name => ({ what: `${name}${how}: Redis, our script / a trivial one`, ours: total(ours[name]), theirs }))
}

function besidePlain (ours: Counts, plain: Counts): Pair[] {
  return operations.map(name => ({ what: `${name}: Redis, our script / plain commands`, ours: total(ours[name]), theirs: total(plain[name]) }))
}

function total ({ javascript, native }: Instructions): number {
  return javascript + native
}

/** @param guarded the operations whose ratios hot-path.ts keeps */
function report (guarded: Pair[], others: Pair[], version: string): Report & { figures: InstructionFigures } {
  const where = circumstances(version)
  const pairs = [...guarded, ...others]
  const thousands = (count: number) => (count / 1000).toFixed(1)
  return {
    table: markdownTable(['thousands of instructions a request', 'ours', 'theirs', 'ratio'],
      pairs.map(({ what, ours, theirs }) => [what, thousands(ours), thousands(theirs), (ours / theirs).toFixed(2)])) + `\n${caption(where)}\n`,
    figures: { ...where, pairs, ratios: Object.fromEntries(guarded.map(({ what, ours, theirs }) => [what, ours / theirs])) },
  }
}
