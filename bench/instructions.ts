import { missingForCallgrind, startCallgrind } from './callgrind.ts'
import type { Instructions } from './callgrind.ts'
import { ofFloor, ofRedis, ofService, operations } from './instructions-of.ts'
import type { Counts } from './instructions-of.ts'
import { caption, circumstances, markdownTable } from './report.ts'
import type { BenchOptions, Report } from './report.ts'

/** Two counts that are compared, in instructions a request. */
interface Pair { what: string, ours: number, theirs: number }

export interface InstructionFigures extends ReturnType<typeof circumstances> {
  pairs: Pair[]
  /** Ours by theirs, of what hot-path.ts keeps. */
  ratios: Record<string, number>
}

/**
 * Instructions a request: the service's beside the floor's, and what Redis takes for our scripts beside scripts that only answer, and beside
 * the same reads and writes as plain commands.
 * What else the machine does makes no difference to them, so one round is enough.
 */
export async function instructions ({ say }: Pick<BenchOptions, 'say'>): Promise<Report & { figures: InstructionFigures }> {
  const missing = await missingForCallgrind()
  if (missing !== null) throw new Error(`instructions: there is no ${missing} here (Debian: valgrind)`)
  const callgrind = await startCallgrind()
  say('instructions: the floor, the service and Redis, each under valgrind')
  const counts = [ofFloor(callgrind), ofService(callgrind, say), ofRedis(callgrind, say)] as const
  try {
    const [floor, service, redis] = await Promise.all(counts)
    return report([...besideFloor(service, floor), ...besideTrivial(redis.ours, redis.trivial)], besidePlain(redis.ours, redis.plain), redis.version)
  } finally {
    // Where one failed the others still run.
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

/** Beside the mean of the three trivial ones, which hardly differ but by how many calls Redis happened to find at once. */
function besideTrivial (ours: Counts, trivial: Counts): Pair[] {
  const theirs = operations.reduce((sum, name) => sum + total(trivial[name]), 0) / operations.length
  return operations.map(name => ({ what: `${name}: Redis, our script / a trivial one`, ours: total(ours[name]), theirs }))
}

function besidePlain (ours: Counts, plain: Counts): Pair[] {
  return operations.map(name => ({ what: `${name}: Redis, our script / plain commands`, ours: total(ours[name]), theirs: total(plain[name]) }))
}

function total ({ javascript, native }: Instructions): number {
  return javascript + native
}

/** @param guarded those whose ratios hot-path.ts keeps */
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
