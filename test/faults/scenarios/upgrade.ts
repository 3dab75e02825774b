import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Redis } from 'ioredis'
import { projectRoot } from '../../helpers/service.ts'
import { eventSettings, inboxShare, triedShare } from '../agents.ts'
import { startCluster } from '../fleet/cluster.ts'
import { hasHaproxy, startHaproxy } from '../fleet/haproxy.ts'
import { freePort } from '../fleet/ports.ts'
import { loopback } from '../fleet/process.ts'
import { startRedisServer } from '../fleet/redis.ts'
import { startSentinelFleet } from '../fleet/sentinel.ts'
import { startServiceReplica, stopReplica } from '../fleet/service.ts'
import { clock } from '../history.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { Tally, operationsMore, runTrial } from '../trial.ts'

/** The version before this one, and its last commit. Neighbours are held to run side by side, so this changes with each release. */
const before = { version: '0.2.0', commit: 'f402350446571953fa5095cd072517354de5593c' } as const
/** Operations between two replacements of a replica. */
const operationsInFull = 20_000
const drainTimeout = 15_000
/** The lists are right within as long as the upgrade took: at least half a minute, and what a busy machine adds to it (ms). */
const listsAtLeast = 90_000

/** What holds the state. `masters`: a connection to each, once it is whole. */
interface Store { url: string, durability: string, masters: () => Promise<readonly Redis[]> }

const stores = {
  async one (t: Stage): Promise<Store> {
    const redis = await startRedisServer(t)
    return { url: redis.url, durability: 'none', masters: async () => [redis.admin] }
  },
  async sentinel (t: Stage): Promise<Store> {
    // Nothing is to fail over, on a busy machine either.
    const fleet = await startSentinelFleet(t, { downAfterMs: 20_000 })
    return { url: fleet.url, durability: 'replicas:1', masters: async () => [(await fleet.master()).admin] }
  },
  async cluster (t: Stage): Promise<Store> {
    const fleet = await startCluster(t)
    return { url: fleet.url, durability: 'replicas:1', masters: async () => (await fleet.masters()).map(({ admin }) => admin) }
  },
}

/** Replicas of the version before this one are replaced by this one's, go back halfway, and are replaced for good, under load. */
export const upgrade: Scenario = {
  name: 'upgrade',
  fault: `upgrade from ${before.version}, replica by replica behind HAProxy: two of three, back, and all; on one Redis, with Sentinel and on a Cluster`,
  goal: '0 lost, 0 broken, 0 5xx; lists right within the upgrade’s time',
  run: (t, scale) => runUpgrades(t, scale),
}

export async function runUpgrades (t: Stage, scale: number, kinds = Object.keys(stores) as Array<keyof typeof stores>): Promise<Outcome> {
  const projects = { old: builtVersion(before.commit), new: projectRoot }
  const tally = new Tally()
  const bad: string[] = []
  let serverErrors = 0
  let replaced = 0
  for (const [number, kind] of kinds.entries()) {
    const store = await stores[kind](t)
    const ports = [await freePort(loopback), await freePort(loopback), await freePort(loopback)]
    const env = { ...eventSettings, REDIS_URL: store.url, DURABILITY: store.durability, DRAIN_TIMEOUT: String(drainTimeout) }
    const start = (version: keyof typeof projects, port: number) => startServiceReplica(t, { project: projects[version], env: { ...env, PORT: String(port) } })
    const replicas = await Promise.all(ports.map(port => start('old', port)))
    const proxy = await startHaproxy(t, ports.map(port => `127.0.0.1:${port}`))
    const replace = async (index: number, version: keyof typeof projects) => {
      bad.push(...await stopReplica(replicas[index]!, drainTimeout + 2000))
      replicas[index] = await start(version, ports[index]!)
      await proxy.untilUp(ports.length)
      replaced++
    }
    const between = Math.max(200, operationsInFull * scale)
    let took = 0
    await runTrial(t, {
      urls: [proxy.url],
      agents: 32,
      seed: 300 + number,
      tried: triedShare,
      inboxed: inboxShare,
      events: env,
      // The version before knows none.
      isCalled: false,
      timeout: drainTimeout,
      listsWithin: () => listsAtLeast + took,
      async faults (history) {
        const began = clock()
        for (const [index, version] of [[0, 'new'], [1, 'new'], [0, 'old'], [1, 'old'], [0, 'new'], [1, 'new'], [2, 'new']] as const) {
          await operationsMore(history, between)
          await replace(index, version)
          // The last of the new ones has gone: those of before find what is due only now.
          if (index === 1 && version === 'old') await goBack(env)
        }
        took = clock() - began
        await operationsMore(history, between)
      },
      healed: store.masters,
    }, tally)
    serverErrors += (await proxy.counts()).serverErrors
    for (const replica of replicas) bad.push(...await stopReplica(replica, drainTimeout + 2000))
    t.comment(`${kind}: ${replaced} replaced so far, this upgrade in ${Math.round(took / 1000)} s; ${tally.result}; ${tally.delivered}`)
  }
  const { requests, unanswered, unavailable } = tally.counts
  return {
    load: `${requests.toLocaleString('en')} requests, ${replaced} replicas replaced (${kinds.join(', ')}); ${tally.delivered}`,
    result: `${tally.result}; ${unanswered} broken, ${unavailable} 5xx (${serverErrors} by HAProxy’s count); ${bad.length} bad exits${bad.map(one => ` (${one})`).join('')}`,
    held: unanswered + unavailable + serverErrors + bad.length + tally.violations.length === 0,
  }
}

/** As docs/deploy.md says it. */
async function goBack (env: Record<string, string>): Promise<void> {
  await promisify(execFile)(process.execPath, [join(projectRoot, 'dist/cli/main.js'), 'go-back'], { env: { ...process.env, ...env } })
}

/** Why the version before this one can't be had here; false if it can. */
export function whyNotUpgraded (): string | false {
  if (!hasHaproxy()) return 'needs haproxy'
  try {
    execFileSync('git', ['cat-file', '-e', before.commit], { cwd: projectRoot, stdio: 'ignore' })
    return false
  } catch {
    return `needs a clone that has ${before.version}`
  }
}

/** The folder of a commit's built service; made once. @throws if this is no clone with that commit, or its packages can't be had */
function builtVersion (commit: string): string {
  const folder = join(projectRoot, '.cache/versions', commit)
  if (existsSync(folder)) return folder
  const making = `${folder}.making`
  mkdirSync(making, { recursive: true })
  execFileSync('bash', ['-c', `set -e; git archive ${commit} | tar -x -C "$0"; cd "$0"; node src/bootstrap.mjs`, making], { cwd: projectRoot, stdio: ['ignore', 2, 2] })
  renameSync(making, folder)
  return folder
}
