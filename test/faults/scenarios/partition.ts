import { setTimeout as sleep } from 'node:timers/promises'
import { inboxShare, loadSettings } from '../agents.ts'
import { startNet } from '../fleet/net.ts'
import type { NetHost, PrivateNet } from '../fleet/net.ts'
import { startSentinelFleet } from '../fleet/sentinel.ts'
import type { SentinelFleet } from '../fleet/sentinel.ts'
import { startServiceReplica } from '../fleet/service.ts'
import type { History } from '../history.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { Tally, operationsMore, runTrial } from '../trial.ts'

const roundsInFull = 30
const agents = 32
/** Operations before a cut. */
const operationsBefore = 2000
/** How long a cut stays, counted from the failover if there is one; in milliseconds. */
const cutLasts = 3000

/**
 * Hosts are cut off from each other. Nothing is lost if the new master has everything that was acknowledged. If all replicas must
 * acknowledge (N = all), that holds whatever is cut. With fewer, it holds only if the replicas that acknowledged are among those that
 * the Sentinels choose from: they take the one with the most data. A replica on the old master's side of a cut goes on acknowledging but
 * can't be chosen, and its extra data is lost when the old master learns of the new one.
 */
export const partition: Scenario = {
  name: 'partition',
  fault: 'partition by network namespace, symmetric and one-way',
  goal: '0 lost with `replicas:N`',
  run,
}

/** The hosts' roles when the cut is made. */
interface Sides {
  net: PrivateNet
  master: NetHost
  replicas: NetHost[]
  services: NetHost[]
  /** All other hosts, and the load's own. */
  except (...some: NetHost[]): NetHost[]
}

export interface Partition {
  name: string
  /** The smallest N of replicas:N with which nothing may be lost. */
  safeWith: number[]
  /** Whether the Sentinels make another master. */
  failsOver: boolean
  cut (sides: Sides): Promise<void>
}

/** The load reaches both replicas of the service all the time, even the one on the old master's side. */
export const partitions: readonly Partition[] = [
  {
    name: 'the master alone',
    safeWith: [1, 2],
    failsOver: true,
    cut: ({ net, master, except }) => net.cut([master], [net.here, ...except(master)]),
  },
  {
    name: 'the master hears nobody',
    safeWith: [1, 2],
    failsOver: true,
    cut: ({ net, master, except }) => net.cutOneWay([net.here, ...except(master)], [master]),
  },
  {
    name: 'nobody hears the master',
    safeWith: [1, 2],
    failsOver: true,
    cut: ({ net, master, except }) => net.cutOneWay([master], [net.here, ...except(master)]),
  },
  {
    name: 'the master with one service',
    safeWith: [1],
    failsOver: true,
    cut: ({ net, master, services: [service], except }) => net.cut([master, service!], except(master, service!)),
  },
  {
    // This one tells replicas:1 from replicas:2: the other replica becomes master without what the old master and its replica acknowledged.
    name: 'the master with one replica and one service',
    safeWith: [2],
    failsOver: true,
    cut: ({ net, master, replicas: [replica], services: [service], except }) => net.cut([master, replica!, service!], except(master, replica!, service!)),
  },
  {
    name: 'one replica',
    safeWith: [1, 2],
    failsOver: false,
    cut: ({ net, replicas: [replica], except }) => net.cut([replica!], except(replica!)),
  },
]

async function run (t: Stage, scale: number): Promise<Outcome> {
  const cases = partitions.flatMap(partition => partition.safeWith.map(replicas => ({ partition, replicas })))
  const rounds = Math.max(cases.length, Math.ceil(roundsInFull * scale))
  const all = Array.from({ length: rounds }, (_, round) => cases[round % cases.length]!)
  const tally = await runPartitions(t, all)
  const with2 = all.filter(({ replicas }) => replicas === 2).length
  return {
    load: `${rounds} partitions of a Sentinel fleet: ${rounds - with2} with \`replicas:1\`; ${with2} with \`replicas:2\`, which it takes where master and ` +
      `replica are cut off together; ${tally.counts.requests} requests, ${agents} agents, 2 replicas of the service`,
    result: tally.result,
    held: tally.violations.length === 0,
  }
}

/** Runs them one after another, first those with one replica required. */
export async function runPartitions (t: Stage, rounds: ReadonlyArray<{ partition: Partition, replicas: number }>): Promise<Tally> {
  const net = await startNet(t, 8)
  const fleet = await startSentinelFleet(t, { hosts: net.hosts.slice(0, 6) })
  const tally = new Tally()
  for (const needed of new Set(rounds.map(({ replicas }) => replicas))) {
    const env = { ...loadSettings, REDIS_URL: fleet.url, DURABILITY: `replicas:${needed}` }
    const hosts = net.hosts.slice(6)
    const services = await Promise.all(hosts.map(host => startServiceReplica(t, { env, host })))
    for (const [round, { partition, replicas }] of rounds.entries()) {
      if (replicas !== needed) continue
      await runTrial(t, {
        urls: services.map(({ url }) => url),
        agents,
        seed: 300 + round,
        inboxed: inboxShare,
        faults: history => befall(partition, net, fleet, hosts, history),
        async healed () {
          await fleet.untilWhole()
          const { admin } = await fleet.master()
          return [admin]
        },
      }, tally)
      // Checked handoffs are dropped, to save memory.
      await (await fleet.master()).admin.flushall()
      t.comment(`${partition.name}, replicas:${replicas}: ${tally.counts.requests} requests so far, ${tally.violations.length} violations`)
    }
    await Promise.all(services.map(service => service.stop()))
  }
  return tally
}

/** The load goes on until the fleet is whole: also while the old master is back and still believes it is a master. */
async function befall ({ cut, failsOver }: Partition, net: PrivateNet, fleet: SentinelFleet, services: NetHost[], history: History): Promise<void> {
  await operationsMore(history, operationsBefore)
  const master = (await fleet.master()).host as NetHost
  const replicas = (await fleet.replicas()).map(({ host }) => host as NetHost)
  const except = (...some: NetHost[]) => net.hosts.filter(host => !some.includes(host))
  const switched = failsOver ? fleet.switched() : undefined
  await cut({ net, master, replicas, services, except })
  await switched
  await sleep(cutLasts)
  await net.heal()
  await fleet.untilWhole()
  await operationsMore(history, 500)
}
