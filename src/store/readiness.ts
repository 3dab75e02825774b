import type { KeyNames } from './key-names.ts'
import { Unavailable } from '../redis/lanes.ts'
import type { Leases } from './leases.ts'
import type { Master, Masters } from '../redis/masters.ts'
import type { ConnectionLog } from '../redis/connect.ts'
import { unsupported } from '../redis/error-kinds.ts'
import type { Rights } from './rights.ts'
import { onlineReplicas, readInfo, testedServers, versionOf } from '../redis/server-info.ts'
import type { ServerInfo } from '../redis/server-info.ts'

/** How long a replica's readiness key stays in Redis, in milliseconds. */
const signDuration = 10_000

/** What Redis's error messages mean for an operator. The messages themselves aren't shown on a page that needs no key. */
const meanings: Array<[start: string, meaning: string]> = [
  ['READONLY', 'Redis is a replica and takes no writes.'],
  ['MISCONF', 'Redis takes no writes because it cannot save them; its own log says why.'],
  ['NOREPLICAS', 'Redis takes no writes because it has too few replicas.'],
  ['NOPERM', 'Redis does not give this service the rights that it needs.'],
  ['ERR The user executing the script', 'Redis does not give this service the rights that it needs.'],
  ['ERR ACL failure', 'Redis does not give this service the rights that it needs.'],
  ['NOAUTH', 'Redis wants a password; set it in REDIS_URL.'],
  ['WRONGPASS', 'Redis refuses the user and password of REDIS_URL.'],
  ['MOVED', 'Redis is one node of a Cluster; say so in REDIS_URL: redis+cluster://…'],
  ['CLUSTERDOWN', 'Redis Cluster is down: some of its slots have no master.'],
]

/** Node's and OpenSSL's error codes for a certificate that isn't trusted. */
const untrusted = /CERT|VERIFY_LEAF/

/** Why there is no connection, for an operator. */
export function whyUnreached (trouble: Error | undefined): string {
  const { message = '', code = '' }: Partial<NodeJS.ErrnoException> = trouble ?? {}
  if (untrusted.test(code)) return 'Redis’s certificate is not trusted; NODE_EXTRA_CA_CERTS names the file of who signed it.'
  return meanings.find(([start]) => message.includes(start))?.[1] ?? 'Redis is not connected.'
}

/** What the check needs. */
export interface Readiness {
  masters: Masters
  leases: Leases
  rights: Rights
  keyNames: KeyNames
  /** This replica's name. */
  replica: string
  /** How many replicas of Redis every write needs. */
  replicas: number
}

/** The result of a check of Redis. Redis's own messages are only for the log: /readyz needs no key. */
export interface Verdict {
  /** Why Redis can't serve, as a sentence for an operator; null if it can. */
  reason: string | null
  said?: string
  /** What couldn't be found out. It doesn't make the service unready: no answer isn't a refusal. */
  doubt?: { reason: string, said?: string }
}

/**
 * Can Redis serve now? One of a Cluster's masters is enough, since an unready service gets no requests at all. But no master may be configured so
 * that it drops acknowledged data.
 */
export async function lookAtRedis (readiness: Readiness): Promise<Verdict> {
  const looks = await Promise.all([...readiness.masters.all()].map(master => look(master, readiness)))
  return looks.find(({ unsafe }) => unsafe) ?? looks.find(({ reason }) => reason === null) ?? looks[0] ?? { reason: whyUnreached(readiness.masters.trouble) }
}

/** Returns only the reason, and logs whenever the reason changes, or what couldn't be found out. */
export function told (look: () => Promise<Verdict>, log: ConnectionLog): () => Promise<string | null> {
  let last: string | null | undefined
  let lastDoubt: string | undefined
  return async () => {
    const { reason, said, doubt } = await look()
    if (reason !== null && reason !== last) log.warn({ reason, ...said !== undefined && { said } }, 'not ready')
    if (reason === null && last !== null) log.info({}, 'ready')
    if (doubt !== undefined && doubt.reason !== lastDoubt) log.warn(doubt, 'some checks of Redis could not be made')
    last = reason
    if (reason === null) lastDoubt = doubt?.reason
    return reason
  }
}

async function look (master: Master, readiness: Readiness): Promise<Verdict & { unsafe?: boolean }> {
  const [tag] = master.tags
  // A master that is only taking over slots has no partition yet.
  if (master.calls.status !== 'ready' || tag === undefined) return { reason: whyUnreached(master.trouble) }
  const tried = tryScripts(tag, readiness).catch((error: Error) => error)
  const info = await master.calls.info('server', 'memory', 'replication')
    // Before 7.0, INFO takes at most one section. Ask without any, to learn that the server is so old.
    .catch(() => master.calls.info()).then(readInfo, () => ({} as ServerInfo))
  const unsafe = unsafeSetting(info)
  if (unsafe !== null) return { reason: unsafe, unsafe: true }
  const online = onlineReplicas(info)
  if (online !== undefined && online < readiness.replicas) return { reason: `Redis has ${online} replicas online; DURABILITY needs ${readiness.replicas}.` }
  const outcome = await tried
  return outcome instanceof Error ? { reason: meaningOf(outcome, info), said: outcome.message } : outcome
}

/** Runs a real write in a script: that shows a replica that takes no writes, and a disk that can't save. Missing rights of other scripts show before. */
async function tryScripts (tag: string, { leases, rights, keyNames, replica }: Readiness): Promise<Verdict> {
  const { lacking, missing, untold, said } = await rights.ask(tag, replica)
  if (lacking.length > 0) return { reason: `Redis does not let this service run ${lacking.join(', ')}: its user needs more rights.` }
  if (missing.length > 0) return { reason: `Redis does not have ${missing.join(', ')}, which the service needs: ${ofAnotherVersion}`, said }
  await leases.take(keyNames.ready(tag, replica), signDuration)
  return { reason: null, ...untold.length > 0 && { doubt: { reason: `Redis can’t be asked whether it lets this service run ${untold.join(', ')}.`, said } } }
}

const ofAnotherVersion = `tested are ${testedServers.join(', ')}. Its own words are in the service’s log.`

function meaningOf (error: Error, info: ServerInfo): string {
  const meaning = meanings.find(([start]) => error.message.startsWith(start))?.[1]
  if (meaning !== undefined) return meaning
  if (error instanceof Unavailable && !unsupported.test(error.message)) return 'Redis does not answer in time.'
  return `${versionOf(info)?.name ?? 'Redis'} does not run our scripts; ${ofAnotherVersion}`
}

/** Why nothing should be stored on this server, from its INFO; null if it is safe. */
function unsafeSetting (info: ServerInfo): string | null {
  const version = versionOf(info)
  if (version?.tooOld) return `${version.name} is too old: 7.0 or later is needed.`
  const policy = info.maxmemory_policy
  if (policy !== undefined && policy !== 'noeviction') {
    return `maxmemory-policy is ${policy}: Redis may drop handoffs that were acknowledged. Set it to noeviction.`
  }
  return null
}
