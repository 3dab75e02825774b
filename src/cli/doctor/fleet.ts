import type { Redis } from 'ioredis'
import type { Host, Sentinels } from '../../core/redis-url.ts'
import { connectNode, nodeName, readInfo } from '../../redis/connect.ts'
import type { ServerInfo } from '../../redis/connect.ts'
import { slotCount } from '../../redis/masters.ts'
import { readPairs, unseen } from './server.ts'
import type { Finding, ServerFacts } from './server.ts'

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
  if (assigned === slotCount && failed === 0 && info.cluster_state === 'ok') {
    return { level: 'ok', name, saw: `all ${slotCount} served by ${info.cluster_size} masters` }
  }
  const saw = `${slotCount - assigned +
    failed} of ${slotCount} have no master that answers; the Cluster’s state is ${info.cluster_state}`
  return {
    level: 'error',
    name,
    saw,
    set: 'start their master or its replica again, or CLUSTER ADDSLOTS',
    why: 'requests for handoffs in these slots are answered 503'
  }
}

function checkCoverage ({ config }: ServerFacts): Finding[] {
  const name = 'cluster-require-full-coverage'
  const saw = config?.[name]
  if (saw === undefined) return []
  if (saw === 'no') return [{ level: 'ok', name, saw }]
  return [{ level: 'warning', name, saw, set: 'no', why: 'one dead master stops all handoffs, not just its own' }]
}

function checkNodeTimeout ({ config }: Pick<ServerFacts, 'config'>): Finding[] {
  const name = 'cluster-node-timeout'
  const saw = config?.[name]
  if (saw === undefined) return []
  if (Number(saw) <= longNodeTimeout) return [{ level: 'ok', name, saw }]
  const why = 'requests for a dead master’s handoffs are answered 503 for this long and some seconds more, and for ' +
    'four times as long again if the election fails'
  return [{ level: 'note', name, saw, set: String(longNodeTimeout), why }]
}

/** A Sentinel's report about the master, or why it reports nothing. */
interface SentinelFacts {
  at: string
  silent?: string
  master?: Readonly<Record<string, string>>
  quorum?: string
}

/** Milliseconds. */
const answerTimeout = 1000

export function askSentinels (address: Sentinels): Promise<SentinelFacts[]> {
  return Promise.all(address.sentinels.map(host => askSentinel(host, address)))
}

async function askSentinel (
  host: Host, { name, sentinelUsername: username, sentinelPassword: password, tls }: Sentinels
): Promise<SentinelFacts> {
  const at = nodeName(host)
  const redis = connectNode(host, { kind: 'cluster', nodes: [], username, password, tls })
  try {
    await reached(redis)
    const master = readPairs(await redis.call('SENTINEL', 'MASTER', name) as string[])
    const quorum = await redis.call('SENTINEL', 'CKQUORUM', name).then(String, (error: Error) => error.message)
    return { at, master, quorum }
  } catch (error) {
    return { at, silent: (error as Error).message }
  } finally {
    redis.disconnect()
  }
}

function reached (redis: Redis): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`nothing within ${answerTimeout / 1000} s`)), answerTimeout)
    redis.once('ready', () => { clearTimeout(timer); resolve() })
    redis.once('error', error => { clearTimeout(timer); reject(error) })
  })
}

export function checkSentinels (sentinels: readonly SentinelFacts[]): Finding[] {
  return sentinels.map(checkReached).concat(
    sentinels.map(checkQuorum).filter(finding => finding !== null), checkDownAfter(sentinels), checkNumber(sentinels)
  )
}

function checkReached ({ at, silent }: SentinelFacts): Finding {
  if (silent === undefined) return { level: 'ok', name: 'sentinel', saw: `${at} answers` }
  // The Sentinel is there but refuses to answer.
  if (/^(NOPERM|NOAUTH|WRONGPASS)/.test(silent)) return unseen(`what the Sentinel ${at} knows`, silent)
  return {
    level: 'warning',
    name: 'sentinel',
    saw: `${at}: ${silent}`,
    set: 'start it, or remove it from REDIS_URL',
    why: 'only a majority of the Sentinels can replace a dead master'
  }
}

function checkQuorum ({ at, quorum }: SentinelFacts): Finding | null {
  if (quorum === undefined || quorum.startsWith('OK')) return null
  // Any other answer doesn't mean that there is no quorum.
  if (!quorum.startsWith('NOQUORUM')) return unseen(`whether the Sentinel ${at} has a quorum`, quorum)
  return {
    level: 'error',
    name: 'quorum',
    saw: `${at}: ${quorum}`,
    set: 'start the Sentinels that are away, or SENTINEL SET … quorum',
    why: 'no replica would replace a dead master'
  }
}

function checkDownAfter (sentinels: readonly SentinelFacts[]): Finding[] {
  return sentinels.filter(({ master }) => Number(master?.['down-after-milliseconds']) <= 1000).map((
    { at, master }
  ) => ({
    level: 'warning',
    name: 'down-after-milliseconds',
    saw: `${master!['down-after-milliseconds']} at ${at}`,
    set: 'above 1000',
    why: 'a Sentinel reconnects at most once a second to a master that refused it; with less than that, it declares ' +
      'a new master dead at once',
  }))
}

function checkNumber (sentinels: readonly SentinelFacts[]): Finding[] {
  const known = sentinels.find(({ master }) => master?.['num-other-sentinels'] !== undefined)?.master
  if (known === undefined) return []
  const number = Number(known['num-other-sentinels']) + 1
  if (number >= 3) return [{ level: 'ok', name: 'sentinels', saw: `${number}, quorum ${known.quorum}` }]
  return [{
    level: 'warning',
    name: 'sentinels',
    saw: `${number}, quorum ${known.quorum}`,
    set: 'at least three, each on its own machine',
    why: 'with fewer, there is no majority once one of them fails'
  }]
}
