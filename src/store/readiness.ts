import type { KeyNames } from './key-names.ts'
import { Unavailable } from '../redis/lanes.ts'
import type { Leases } from './leases.ts'
import type { Master, Masters } from '../redis/masters.ts'
import type { ConnectionLog } from '../redis/connect.ts'
import { unsupported } from '../redis/error-kinds.ts'
import type { Rights } from './rights.ts'
import { onlineReplicas, readInfo, testedServers, versionOf } from '../redis/server-info.ts'
import type { ServerInfo } from '../redis/server-info.ts'

/** How long a replica's sign of life stays in Redis, in milliseconds. */
const signDuration = 10_000

/** What Redis's own words mean for an operator; the words themselves are not for a page that needs no key. */
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

/** Node's and OpenSSL's codes for a certificate that it doesn't take. */
const untrusted = /CERT|VERIFY_LEAF/

/** Why there is no connection. */
export function whyUnreached (trouble: Error | undefined): string {
  const { message = '', code = '' }: Partial<NodeJS.ErrnoException> = trouble ?? {}
  if (untrusted.test(code)) return 'Redis’s certificate is not trusted; NODE_EXTRA_CA_CERTS names the file of who signed it.'
  return meanings.find(([start]) => message.includes(start))?.[1] ?? 'Redis is not connected.'
}

/** What it takes to look. */
export interface Readiness {
  masters: Masters
  leases: Leases
  rights: Rights
  keyNames: KeyNames
  /** Who this replica is. */
  replica: string
  /** How many replicas every write needs. */
  replicas: number
}

/** What came of looking at Redis. Redis's own words are for the log: /readyz needs no key. */
export interface Verdict {
  /** Why Redis can't serve, in a sentence for an operator; null when it can. */
  reason: string | null
  said?: string
  /** What couldn't be found out. It hinders nothing: what isn't answered is no refusal. */
  doubt?: { reason: string, said?: string }
}

/**
 * Can Redis serve us now? Of a Cluster's masters one that serves is enough, since who is not ready gets no requests at all; but
 * none may be set up so that it drops what was acknowledged.
 */
export async function lookAtRedis (readiness: Readiness): Promise<Verdict> {
  const looks = await Promise.all([...readiness.masters.all()].map(master => look(master, readiness)))
  return looks.find(({ unsafe }) => unsafe) ?? looks.find(({ reason }) => reason === null) ?? looks[0] ?? { reason: whyUnreached(readiness.masters.trouble) }
}

/** The reason alone, with a line in the log whenever it, or what couldn't be found out, is another than before. */
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
  // One that only takes slots over has nothing of ours yet.
  if (master.calls.status !== 'ready' || tag === undefined) return { reason: whyUnreached(master.trouble) }
  const tried = tryScripts(tag, readiness).catch((error: Error) => error)
  const info = await master.calls.info('server', 'memory', 'replication')
    // Before 7.0 it takes one section or none, and it is to tell us that it is so old.
    .catch(() => master.calls.info()).then(readInfo, () => ({} as ServerInfo))
  const unsafe = unsafeSetting(info)
  if (unsafe !== null) return { reason: unsafe, unsafe: true }
  const online = onlineReplicas(info)
  if (online !== undefined && online < readiness.replicas) return { reason: `Redis has ${online} replicas online; DURABILITY needs ${readiness.replicas}.` }
  const outcome = await tried
  return outcome instanceof Error ? { reason: meaningOf(outcome, info), said: outcome.message } : outcome
}

/** A true write, by a script like those that serve: a replica and a stopped disk show. What other scripts may not do shows before. */
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

/** What makes a server one to keep nothing on, by its own INFO. */
function unsafeSetting (info: ServerInfo): string | null {
  const version = versionOf(info)
  if (version?.tooOld) return `${version.name} is too old: 7.0 or later is needed.`
  const policy = info.maxmemory_policy
  if (policy !== undefined && policy !== 'noeviction') {
    return `maxmemory-policy is ${policy}: Redis may drop handoffs that were acknowledged. Set it to noeviction.`
  }
  return null
}
