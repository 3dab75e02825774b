import { Redis } from 'ioredis'
import { acrossRounds, figureCells, figureHeads, goalsTable, mediansOf, ratioOf, runCases } from './contest.ts'
import type { Case, Contestant, Goal } from './contest.ts'
import { exchange } from './exchange.ts'
import { startRedisStore } from './peers/stores.ts'
import { putLoad } from './load.ts'
import { caption, circumstances, markdownTable } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { startService } from './server-process.ts'

/** Enough connections to saturate (saturation.ts): with few of them, throughput is only the inverse of latency. */
const connections = 128
/** How long the replica may take to catch up, in milliseconds. */
const syncTime = 30_000
const settings = { none: 'none', 'replicas:1': 'replicas:1' }

/** The cost of waiting for a replica: two services on one master with one replica, so that both pay for replication. */
export async function durability (options: BenchOptions): Promise<Report> {
  const { rounds: count, seconds, say } = options
  const stops: Array<() => Promise<void>> = []
  try {
    const master = await startRedisStore(say)
    stops.push(master.stop)
    const { hostname, port } = new URL(master.url)
    const replica = await startRedisStore(say, ['--replicaof', `${hostname} ${port}`])
    stops.push(replica.stop)
    await inSync(master.url)
    const contestants: Contestant[] = []
    for (const [name, DURABILITY] of Object.entries(settings)) {
      const service = await startService(master.url, false, { DURABILITY })
      stops.push(service.stop)
      await exchange(service.url)
      contestants.push({ name, url: service.url, pid: service.pid, store: master })
    }
    const [{ rounds }] = await runCases('durability', contestants, options, { '1 replica': (url, seconds) => putLoad(url, connections, seconds) }) as [Case]
    const where = circumstances(master.version)
    const [medians, ratio] = [mediansOf(rounds), ratioOf(rounds, 'replicas:1', 'none')]
    const goals: Goal[] = [{
      what: 'requests/s with replicas:1, of those with none',
      atLeast: 0.95,
      measured: acrossRounds(rounds, ['replicas:1', 'none'], (replicas, none) => replicas!.perSecond / none!.perSecond),
    }]
    return {
      table: markdownTable(['DURABILITY', ...figureHeads], [
        ...Object.entries(medians).map(([name, figures]) => [name, ...figureCells(figures, true)]),
        ['replicas:1 / none', ...figureCells(ratio, true, 2)],
      ]) + goalsTable(goals) +
        `\npass, catch, done in turn on each of ${connections} connections. Medians of ${count} rounds of ${seconds} s.\n\n${caption(where)}\n`,
      figures: { ...where, rounds: count, seconds, connections, ...medians, ratio, goals, each: rounds },
    }
  } finally {
    for (const stop of stops.toReversed()) await stop()
  }
}

/** Waits until the replica has acknowledged a new write. */
async function inSync (master: string): Promise<void> {
  const redis = new Redis(master)
  await redis.set('in-sync', '1')
  const confirmed = await redis.wait(1, syncTime)
  redis.disconnect()
  if (confirmed !== 1) throw new Error(`durability: the replica has not confirmed within ${syncTime} ms`)
}
