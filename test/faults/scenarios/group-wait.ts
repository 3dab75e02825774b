import { keySettings } from '../../../bench/server-process.ts'
import { putLoad } from '../../../bench/load.ts'
import { median } from '../../../bench/report.ts'
import { startRedisServer } from '../fleet/redis.ts'
import { startServiceReplica } from '../fleet/service.ts'
import { until } from '../../helpers/until.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'

const connections = 128
const roundsInFull = 7
const secondsInFull = 8

/** The cost of waiting for replicas: two services take turns on one master with two replicas. */
export const groupWait: Scenario = {
  name: 'group-wait',
  fault: 'group WAIT against none',
  goal: 'throughput ≥ 0.95 of none',
  run,
}

async function run (t: Stage, scale: number): Promise<Outcome> {
  const master = await startRedisServer(t)
  const replicaOf = ['--replicaof', `${master.host.address} ${master.port}`]
  await Promise.all([startRedisServer(t, { options: replicaOf }), startRedisServer(t, { options: replicaOf })])
  await until(async () => /connected_slaves:2/.test(await master.admin.info('replication')), 20_000)
  const env = { ...keySettings, REDIS_URL: master.url, DRAIN_DELAY: '0' }
  const urls = {
    none: (await startServiceReplica(t, { env })).url,
    replicas: (await startServiceReplica(t, { env: { ...env, DURABILITY: 'replicas:1' } })).url,
  }
  const seconds = Math.max(1, secondsInFull * scale)
  // Both are warmed up before measuring.
  for (const url of Object.values(urls)) await putLoad(url, connections, Math.min(3, seconds))
  const rounds: Array<{ none: number, replicas: number }> = []
  let faults = 0
  for (let round = 0; round < Math.max(1, Math.round(roundsInFull * scale)); round++) {
    const perSecond = { none: 0, replicas: 0 }
    for (const name of round % 2 === 0 ? ['none', 'replicas'] as const : ['replicas', 'none'] as const) {
      const load = await putLoad(urls[name], connections, seconds)
      perSecond[name] = load.perSecond
      faults += load.faults
    }
    t.comment(`round ${round + 1}: none ${Math.round(perSecond.none)}/s, replicas:1 ${Math.round(perSecond.replicas)}/s`)
    rounds.push(perSecond)
  }
  const ratio = median(rounds.map(({ none, replicas }) => replicas / none))
  const typical = (name: 'none' | 'replicas') => Math.round(median(rounds.map(round => round[name])))
  return {
    load: `pass, catch, done of 0.9 KB, ${connections} clients, 2 replicas, ${rounds.length} rounds turn about`,
    result: `${ratio.toFixed(2)} (${typical('replicas')}/s of ${typical('none')}/s), ${faults} faults`,
    held: ratio >= 0.95 && faults === 0,
  }
}
