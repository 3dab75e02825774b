/**
 * Which test files run when. docs/testing.md has the table, and test/docs/testing.test.ts compares it with these lists. A file in no list
 * is part of `npm test`. Paths are relative to test/.
 */
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { FilesToRun } from './files.ts'

/** Part of `npm test` too, one file at a time after the others: these files are sensitive to timing. */
export const alone: readonly string[] = [
  'dead-agent.test.ts',
  'http/draining.test.ts',
  'http/overload.test.ts',
  'store/sweeper.test.ts',
]

/** The files of `npm test` that take longest, up to half a minute. They start first, so that none of them runs alone at the end. */
export const first: readonly string[] = [
  'store/acl.test.ts',
  'web/life.test.ts',
  'web/together.test.ts',
  'auth/stored-keys.test.ts',
  'cli/unreached.test.ts',
  'web/accessibility.test.ts',
  'start.test.ts',
  'redis/cluster.test.ts',
  'web/person.test.ts',
  'redis/grown-cluster.test.ts',
]

/** One file of each long kind, which `.ci/run` adds to `npm test`. Each has a short form for it (helpers/extent.ts). */
export const smoke: readonly string[] = [
  'bench.test.ts',
  'container.test.ts',
  'dependencies.test.ts',
  'embedded/bootstrap.test.ts',
  'faults/scenarios.test.ts',
  'faults/short-cluster.test.ts',
  'faults/short-sentinel.test.ts',
  'faults/simulation.test.ts',
  'fleet/suite.test.ts',
  'hot-path.test.ts',
]

/** Files that only `npm run test:all` adds, one at a time: most of them use the whole machine. */
export const long: readonly string[] = [
  'bench-growth.test.ts',
  'docs/failover.test.ts',
  'docs/newcomer.test.ts',
  'embedded/first-start.test.ts',
  'faults/agents.test.ts',
  'faults/edge.test.ts',
  'faults/fleet-failover.test.ts',
  'faults/fleet-net.test.ts',
  'faults/mutations.test.ts',
  'faults/short-partition.test.ts',
  'fleet/compose.test.ts',
  'fleet/kubernetes.test.ts',
  'fleet/mcp.test.ts',
  'fleet/newcomer.test.ts',
  'fleet/prometheus.test.ts',
]

/** Every test file. */
export function everyFile (): string[] {
  const root = fileURLToPath(new URL('.', import.meta.url))
  return readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(path => path.endsWith('.test.ts')).sort()
}

/** Most files wait more than they compute: so many at once keep two cores busy. */
const together = 4

export const runs = ['quick', 'smoke', 'all'] as const
export type Run = typeof runs[number]

/** Files that run together, those of `alone` after the others. */
export function inBatches (files: readonly string[], jobs: number): FilesToRun[] {
  const [apart, others] = [true, false].map(isAlone => files.filter(path => alone.includes(path) === isAlone)) as [string[], string[]]
  return [{ files: others, jobs }, { files: apart, jobs: 1 }].filter(batch => batch.files.length > 0)
}

/** The batches of a run, one after the other. */
export function batchesOf (run: Run): FilesToRun[] {
  const quick = [...first, ...everyFile().filter(path => ![...first, ...smoke, ...long].includes(path))]
  const batches = { quick: inBatches(quick, together), smoke: [{ files: smoke, jobs: 3 }], all: [{ files: [...smoke, ...long], jobs: 1 }] }
  return run === 'all' ? [...batches.quick, ...batches.all] : batches[run]
}
