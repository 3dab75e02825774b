import { execFileSync } from 'node:child_process'
import { cpus } from 'node:os'

export interface BenchOptions {
  rounds: number
  /** How long each measurement under load takes. */
  seconds: number
  /** How many requests wait at once. */
  waiters: number
  /** How many handoffs the list has. */
  listed: number
  /** The largest number of live handoffs. */
  live: number
  /** How many handoffs are due in one second. */
  due: number
  /** The contestants that take part in a comparison; all if none is named. */
  only?: readonly string[]
  /** Another commit, which takes turns with this one where a scenario can do that. */
  beside?: string
  /** Reports progress. */
  say: (line: string) => void
}

/** A scenario's results: for people (Markdown, and SVG by file name) and for programs. */
export interface Report { table: string, figures: object, charts?: Record<string, string> }

/** The machine and the versions that were measured; without them the figures mean nothing. */
export function circumstances (redisVersion: string) {
  const [cpu] = cpus()
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: commit(),
    machine: `${cpus().length} × ${cpu?.model.trim()}, ${process.platform} ${process.arch}`,
    node: process.version,
    redis: redisVersion,
  }
}

export function caption ({ date, commit, machine, node, redis }: ReturnType<typeof circumstances>): string {
  return `${date}, commit ${commit}; ${machine}; Node ${node}, Redis ${redis}.`
}

/** Files that no figure depends on: those that figures are written to, and texts. */
const apart = [':!bench/results', ':!docs', ':!*.md']

/** The commit, with `-dirty` if what is measured differs from it. */
function commit (): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: new URL('..', import.meta.url), encoding: 'utf8' }).trim()
  try {
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', '--', '.', ...apart) === '' ? '' : '-dirty')
  } catch {
    return 'unknown'
  }
}

export function median (numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? NaN)) / 2
}

/** A percentile of numbers in any order: the smallest number that at least this share of them doesn't exceed. */
export function percentile (numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  return sorted[Math.ceil(sorted.length * share) - 1] ?? NaN
}

export interface Percentiles { p50: number, p99: number }

export function percentiles (numbers: readonly number[]): Percentiles {
  return { p50: percentile(numbers, 0.5), p99: percentile(numbers, 0.99) }
}

/** @param of what its columns hold, except for the first: numbers end alike, words begin alike */
export function markdownTable (head: readonly string[], rows: ReadonlyArray<readonly string[]>, of: 'numbers' | 'words' = 'numbers'): string {
  const rule = head.map((_, index) => index === 0 || of === 'words' ? '---' : '---:')
  return [head, rule, ...rows].map(cells => `| ${cells.join(' | ')} |\n`).join('')
}
