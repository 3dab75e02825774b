/**
 * Which test files run when. docs/testing.md has the table, and test/docs/testing.test.ts compares it with these lists. A file in no list
 * is part of `npm test`. Paths are relative to test/.
 */
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { FilesToRun } from './files.ts'

/**
 * Part of `npm test` too, after the others and two at a time: these files are sensitive to timing. In this order, since the first waits while
 * the second computes.
 */
export const alone: readonly string[] = [
  'dead-agent.test.ts',
  'http/overload.test.ts',
  'http/draining.test.ts',
  'store/sweeper.test.ts',
]

/** The files of `npm test` that take longest, up to a minute, most of it waiting. They start first, so that none of them runs alone at the end, and those with a browser apart from each other, since they compute. */
export const first: readonly string[] = [
  'store/acl.test.ts',
  'web/together.test.ts',
  'cli/work-commands.test.ts',
  'http/event-streams.test.ts',
  'web/life.test.ts',
  'start.test.ts',
  'cli/unreached.test.ts',
  'auth/stored-keys.test.ts',
  'web/decision-bar.test.ts',
  'http/mcp-wire.test.ts',
  'webhooks/replicas.test.ts',
  'web/accessibility.test.ts',
  'http/waiting-keys.test.ts',
  'redis/cluster.test.ts',
  'web/base-path.test.ts',
  'redis/grown-cluster.test.ts',
  'store/readiness.test.ts',
  'web/person.test.ts',
  'http/auth-stored.test.ts',
  'cli/webhooks.test.ts',
  'web/ended.test.ts',
]

/**
 * What `.ci/run` adds to `npm test`: one file of each long kind, which has a short form for it (helpers/extent.ts), and files that cost many
 * others' time and fail for changes of what they are about only: traces, packaging, the benches' and fault tests' own parts, TLS, locales.
 * The longest come first.
 */
export const smoke: readonly string[] = [
  'faults/short-sentinel.test.ts',
  'faults/short-cluster.test.ts',
  'hot-path.test.ts',
  'bench.test.ts',
  'bench-parts.test.ts',
  'client/heap.test.ts',
  'client/package.test.ts',
  'container.test.ts',
  'dependencies.test.ts',
  'embedded/bootstrap.test.ts',
  'faults/fleet.test.ts',
  'faults/scenarios.test.ts',
  'faults/simulation.test.ts',
  'fleet/suite.test.ts',
  'http/generated-client.test.ts',
  'lua/locale.test.ts',
  'redis/tls.test.ts',
  'tracing.test.ts',
]

/** Files that only `npm run test:all` adds, one at a time: most of them use the whole machine. */
export const long: readonly string[] = [
  'bench-growth.test.ts',
  'client/failover.test.ts',
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
  'fleet/outage.test.ts',
  'fleet/prometheus.test.ts',
  'release.test.ts',
]

/** Every test file. */
export function everyFile (): string[] {
  const root = fileURLToPath(new URL('.', import.meta.url))
  return readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(path => path.endsWith('.test.ts')).sort()
}

/** Most files wait more than they compute: so many at once keep two cores busy. With six, what takes two seconds alone took twenty to sixty. */
const together = 4

export const runs = ['quick', 'smoke', 'all'] as const
export type Run = typeof runs[number]

/** Files that run together: those that take longest first, those of `alone` after the others. */
export function inBatches (files: readonly string[], jobs: number): FilesToRun[] {
  const others = [...first.filter(path => files.includes(path)), ...files.filter(path => !first.includes(path) && !alone.includes(path))]
  const apart = alone.filter(path => files.includes(path))
  return [{ files: others, jobs }, { files: apart, jobs: Math.min(jobs, 2) }].filter(batch => batch.files.length > 0)
}

/** The batches of a run, one after the other. */
export function batchesOf (run: Run): FilesToRun[] {
  const quick = everyFile().filter(path => ![...smoke, ...long].includes(path))
  const batches = { quick: inBatches(quick, together), smoke: [{ files: smoke, jobs: 3 }], all: [{ files: [...smoke, ...long], jobs: 1 }] }
  return run === 'all' ? [...batches.quick, ...batches.all] : batches[run]
}
