import { buildOf } from './build-of.ts'
import { missingForCallgrind, startCallgrind } from './callgrind.ts'
import type { Instructions } from './callgrind.ts'
import { main, ofFloor, ofRedis, ofServices, operations } from './instructions-of.ts'
import type { Counts, OfRedis } from './instructions-of.ts'
import { caption, circumstances, markdownTable } from './report.ts'
import type { BenchOptions, Report } from './report.ts'

/** Two counts to compare, in instructions per request. */
interface Pair { what: string, ours: number, theirs: number }

export interface InstructionFigures extends ReturnType<typeof circumstances> {
  pairs: Pair[]
  /** The ratios that hot-path.ts keeps: ours divided by theirs. */
  ratios: Record<string, number>
  /** What another commit takes. */
  beside?: { commit: string, pairs: Pair[] }
}

/**
 * Instructions per request: the service's compared with the floor's; and Redis's for our scripts compared with scripts that only answer, and with
 * the same reads and writes as plain commands. Other work on the machine doesn't change these counts, so one round is enough.
 *
 * @param beside a commit whose service and scripts are counted in turns with these
 * @param alsoPlain whether Redis's are compared with plain commands too, which hot-path.ts doesn't keep
 */
export async function instructions ({ say, beside, alsoPlain = true }: Pick<BenchOptions, 'say' | 'beside'> & { alsoPlain?: boolean }): Promise<Report & { figures: InstructionFigures }> {
  const missing = await missingForCallgrind()
  if (missing !== null) throw new Error(`instructions: there is no ${missing} here (Debian: valgrind)`)
  const older = beside === undefined ? [] : [await buildOf(beside, say)]
  const callgrind = await startCallgrind()
  say('instructions: the floor, the service and Redis, each under valgrind')
  const mains = [main, ...older.map(({ main }) => main)]
  const counts = [ofFloor(callgrind), ofServices(callgrind, mains, say), ofRedis(callgrind, say, alsoPlain, mains[1])] as const
  try {
    const [floor, services, redis] = await Promise.all(counts)
    const { ours, trivial, plain } = redis
    const [service, theirs] = services as [Counts, Counts?]
    const guarded = [...besideFloor(service, floor), ...besideTrivial(ours.byId, trivial), ...besideTrivial(ours.inbox, trivial, ' through an inbox')]
    const found = report(guarded, plain === undefined ? [] : besidePlain(ours.byId, plain), redis.version)
    if (theirs === undefined || redis.older === undefined) return found
    return withOlder(found, older[0]!.commit, besideOlder({ service, redis: ours }, { service: theirs, redis: redis.older }))
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

interface OfBuild { service: Counts, redis: OfRedis }

/** Each operation, and the three together, which the goals are about. */
function besideOlder (ours: OfBuild, theirs: OfBuild): Pair[] {
  const ways: Array<[what: string, of: (build: OfBuild) => Counts, part: (count: Instructions) => number]> = [
    ['the service, JavaScript', ({ service }) => service, ({ javascript }) => javascript],
    ['the service, native code', ({ service }) => service, ({ native }) => native],
    ['Redis', ({ redis }) => redis.byId, total],
    ['Redis, through an inbox', ({ redis }) => redis.inbox, total],
  ]
  return ways.flatMap(([what, of, part]) => {
    const each = operations.map(name => ({ what: `${name}: ${what}`, ours: part(of(ours)[name]), theirs: part(of(theirs)[name]) }))
    const sum = (side: 'ours' | 'theirs') => each.reduce((all, pair) => all + pair[side], 0)
    return [...each, { what: `all three: ${what}`, ours: sum('ours'), theirs: sum('theirs') }]
  })
}

function withOlder ({ table, figures }: ReturnType<typeof report>, commit: string, pairs: Pair[]): ReturnType<typeof report> {
  return { table: `${table}\n${tableOf(['thousands of instructions a request', 'now', commit, 'ratio'], pairs)}`, figures: { ...figures, beside: { commit, pairs } } }
}

function total ({ javascript, native }: Instructions): number {
  return javascript + native
}

/** @param guarded the operations whose ratios hot-path.ts keeps */
function report (guarded: Pair[], others: Pair[], version: string): Report & { figures: InstructionFigures } {
  const where = circumstances(version)
  const pairs = [...guarded, ...others]
  return {
    table: tableOf(['thousands of instructions a request', 'ours', 'theirs', 'ratio'], pairs) + `\n${caption(where)}\n`,
    figures: { ...where, pairs, ratios: Object.fromEntries(guarded.map(({ what, ours, theirs }) => [what, ours / theirs])) },
  }
}

function tableOf (heads: readonly string[], pairs: readonly Pair[]): string {
  const thousands = (count: number) => (count / 1000).toFixed(1)
  return markdownTable(heads, pairs.map(({ what, ours, theirs }) => [what, thousands(ours), thousands(theirs), (ours / theirs).toFixed(2)]))
}
