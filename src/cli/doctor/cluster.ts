import type { Redis } from 'ioredis'
import { readInfo } from '../../redis/server-info.ts'
import type { ServerInfo } from '../../redis/server-info.ts'
import type { Finding } from './finding.ts'
import type { ServerFacts } from './server.ts'
import { unseen } from './server-checks.ts'

const slotCount = 16384
/** Milliseconds. */
const longNodeTimeout = 5000

export async function checkCluster (redis: Redis, server: ServerFacts): Promise<Finding[]> {
  const info = await redis.cluster('INFO').then(reply => readInfo(String(reply)), (error: Error) => error)
  const slots = info instanceof Error ? unseen('the Cluster’s slots', info.message) : checkSlots(info)
  return [slots, ...checkCoverage(server), ...checkNodeTimeout(server)]
}

export function checkSlots (info: ServerInfo): Finding {
  const name = 'slots'
  if (info.cluster_slots_assigned === undefined) return unseen('the Cluster’s slots', 'not in CLUSTER INFO')
  const [assigned, failed] = [Number(info.cluster_slots_assigned), Number(info.cluster_slots_fail)]
  if (assigned === slotCount && failed === 0 && info.cluster_state === 'ok') return { level: 'ok', name, saw: `all ${slotCount} served by ${info.cluster_size} masters` }
  const saw = `${slotCount - assigned + failed} of ${slotCount} have no master that answers; the Cluster’s state is ${info.cluster_state}`
  return { level: 'error', name, saw, set: 'start their master or its replica again, or CLUSTER ADDSLOTS', why: 'requests for handoffs in these slots are answered 503' }
}

function checkCoverage ({ config }: ServerFacts): Finding[] {
  const name = 'cluster-require-full-coverage'
  const saw = config?.[name]
  if (saw === undefined) return []
  if (saw === 'no') return [{ level: 'ok', name, saw }]
  return [{ level: 'warning', name, saw, set: 'no', why: 'one dead master stops all handoffs, not just its own' }]
}

export function checkNodeTimeout ({ config }: Pick<ServerFacts, 'config'>): Finding[] {
  const name = 'cluster-node-timeout'
  const saw = config?.[name]
  if (saw === undefined) return []
  if (Number(saw) <= longNodeTimeout) return [{ level: 'ok', name, saw }]
  const why = 'requests for a dead master’s handoffs are answered 503 for this long and some seconds more, and for four times as long again if the election fails'
  return [{ level: 'note', name, saw, set: String(longNodeTimeout), why }]
}
