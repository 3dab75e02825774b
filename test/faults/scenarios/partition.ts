import { inboxShare } from '../agents.ts'
import { everything } from '../everything/settings.ts'
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
/** Operations before a cut, and during it, from the failover on if there is one. */
const operationsBefore = 2000
const operationsMeanwhile = 500

/** The hosts' roles when the cut is made. */
interface Sides {
  net: PrivateNet
  master: NetHost
  replicas: NetHost[]
  services: NetHost[]
  /** All other hosts, and the load's own. */
  except (...some: NetHost[]): NetHost[]
}

/** @property safeWith the N of replicas:N with which nothing may be lost @property failsOver whether the Sentinels make another master */
interface Partition { safeWith: number[], failsOver: boolean, cut (sides: Sides): Promise<void> }

/**
 * Hosts are cut off from each other; the load reaches both replicas of the service all the time. Nothing is lost if the new master has
 * everything that was acknowledged. If all replicas must acknowledge (N = all), that holds whatever is cut. With fewer, it holds only if the
 * replicas that acknowledged are among those that the Sentinels choose from: they take the one with the most data. A replica on the old master's
 * side of a cut goes on acknowledging but can't be chosen, and its extra data is lost when the old master learns of the new one.
 */
const partitions = {
  'the master alone': { safeWith: [1, 2], failsOver: true, cut: ({ net, master, except }) => net.cut([master], [net.here, ...except(master)]) },
  'the master hears nobody': { safeWith: [1, 2], failsOver: true, cut: ({ net, master, except }) => net.cutOneWay([net.here, ...except(master)], [master]) },
  'nobody hears the master': { safeWith: [1, 2], failsOver: true, cut: ({ net, master, except }) => net.cutOneWay([master], [net.here, ...except(master)]) },
  'the master with one service': {
    safeWith: [1], failsOver: true, cut: ({ net, master, services: [service], except }) => net.cut([master, service!], except(master, service!)),
  },
  // This one tells replicas:1 from replicas:2: the other replica becomes master without what the old master and its replica acknowledged.
  'the master with one replica and one service': {
    safeWith: [2],
    failsOver: true,
    cut: ({ net, master, replicas: [replica], services: [service], except }) => net.cut([master, replica!, service!], except(master, replica!, service!)),
  },
  'one replica': { safeWith: [1, 2], failsOver: false, cut: ({ net, replicas: [replica], except }) => net.cut([replica!], except(replica!)) },
} satisfies Record<string, Partition>
type Round = [name: keyof typeof partitions, replicas: number]

export const partition: Scenario = {
  name: 'partition',
  fault: 'partition by network namespace, symmetric and one-way',
  goal: '0 lost with `replicas:N`',
  async run (t: Stage, scale: number): Promise<Outcome> {
    const names = Object.keys(partitions) as Array<keyof typeof partitions>
    const cases = names.flatMap(name => partitions[name].safeWith.map((replicas): Round => [name, replicas]))
    const rounds = Math.max(cases.length, Math.ceil(roundsInFull * scale))
    const tally = await runPartitions(t, Array.from({ length: rounds }, (_, round) => cases[round % cases.length]!))
    return {
      load: `${rounds} partitions of a Sentinel fleet, with \`replicas:1\` and \`replicas:2\`; ${tally.counts.requests} requests, ${agents} agents, 2 replicas of the service`,
      result: tally.result,
      held: tally.violations.length === 0,
    }
  },
}

/** Runs them one after another, first those with one replica required. */
export async function runPartitions (t: Stage, rounds: readonly Round[]): Promise<Tally> {
  const net = await startNet(t, 8)
  const fleet = await startSentinelFleet(t, { hosts: net.hosts.slice(0, 6) })
  const tally = new Tally()
  for (const needed of new Set(rounds.map(([, replicas]) => replicas))) {
    const settings = await everything(t)
    const hosts = net.hosts.slice(6)
    const services = await Promise.all(hosts.map((host, n) =>
      startServiceReplica(t, { env: { ...settings(n), REDIS_URL: fleet.url, DURABILITY: `replicas:${needed}` }, host })))
    for (const [round, [name, replicas]] of rounds.entries()) {
      if (replicas !== needed) continue
      await runTrial(t, {
        urls: services.map(({ url }) => url),
        agents,
        seed: 300 + round,
        inboxed: inboxShare,
        everything: true,
        faults: history => befall(partitions[name], net, fleet, hosts, history),
        async healed () {
          await fleet.untilWhole()
          return [(await fleet.master()).admin]
        },
      }, tally)
      // Checked handoffs are dropped, to save memory.
      await (await fleet.master()).admin.flushall()
      t.comment(`${name}, replicas:${replicas}: ${tally.result}`)
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
  await operationsMore(history, operationsMeanwhile)
  await net.heal()
  await fleet.untilWhole()
  await operationsMore(history, operationsMeanwhile)
}
