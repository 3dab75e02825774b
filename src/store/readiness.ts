import type { KeyNames } from './key-names.ts'
import { Unavailable } from '../redis/lanes.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Master, Masters } from '../redis/masters.ts'
import { unsupported } from '../redis/error-kinds.ts'
import type { Rights } from './rights.ts'
import type { Scripts } from '../redis/scripts.ts'
import { onlineReplicas, readInfo, testedServers, versionOf } from '../redis/server-info.ts'
import type { ServerInfo } from '../redis/server-info.ts'

/** How long the mark of a data set stays if nobody writes it again, in milliseconds: 30 days. Whoever remembers it writes it every 5 s. */
const markDuration = 2_592_000_000

/** Why a master refuses writes, by how its error messages begin. */
const refusals = { READONLY: 'readonly', MISCONF: 'not_saved', NOREPLICAS: 'too_few_replicas' } as const

/** Full: it refuses what makes it larger, as pass does. Otherwise it refuses all writes. */
export type Refusal = 'full' | typeof refusals[keyof typeof refusals]
export const allRefusals: readonly Refusal[] = ['full', ...Object.values(refusals)]

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
  ['max number of clients', 'Redis has as many clients as its maxclients allows; raise it, or close other clients.'],
  ['DENIED', 'Redis is in protected mode, and lets in clients of its own machine only; give it a password or an ACL.'],
  ['LOADING', 'Redis is still loading its data.'],
  ['MASTERDOWN', 'Redis is a replica that has lost its master.'],
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
  lanes: Lanes
  scripts: Scripts
  rights: Rights
  keyNames: KeyNames
  /** The mark that this replica gives to a data set that has none. */
  newMark (): string
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
  /** Of each master that is connected and has partitions. */
  looks: readonly Look[]
}

/** What was found at one master. */
export interface Look extends Omit<Verdict, 'looks'> {
  /** Its name in metrics. */
  master: string
  /** Whether it may drop what was acknowledged. */
  unsafe?: boolean
  /** A full one still serves: what is caught can be done, and that makes room. So its reason is null. */
  refuses?: Refusal
  /** The mark of the data set that it has, and in which partition; left out if that wasn't seen. */
  mark?: { tag: string, value: string }
  /** In bytes, where it tells. */
  memory?: { used: number, limit: number }
}

/**
 * Can Redis serve now? One of a Cluster's masters is enough, since an unready service gets no requests at all. But no master may be configured so
 * that it drops acknowledged data.
 */
export async function lookAtRedis (readiness: Readiness): Promise<Verdict> {
  const all = [...readiness.masters.all()]
  const looks = await Promise.all(all.filter(isReached).map(master => look(master, readiness)))
  const unreached: Pick<Verdict, 'reason' | 'said' | 'doubt'> = { reason: whyUnreached(all.find(master => !isReached(master))?.trouble ?? readiness.masters.trouble) }
  const { reason, said, doubt } = looks.find(({ unsafe }) => unsafe) ?? looks.find(({ reason }) => reason === null) ?? looks[0] ?? unreached
  return { reason, ...said !== undefined && { said }, ...doubt !== undefined && { doubt }, looks }
}

/** A master that is only taking over slots has no partition yet. */
function isReached ({ calls, tags }: Master): boolean {
  return calls.status === 'ready' && tags.length > 0
}

async function look (master: Master, readiness: Readiness): Promise<Look> {
  const tried = tryScripts(master.tags[0]!, readiness).catch((error: Error) => error)
  const info = await master.calls.info('server', 'memory', 'replication')
    // Before 7.0, INFO takes at most one section. Ask without any, to learn that the server is so old.
    .catch(() => master.calls.info()).then(readInfo, () => ({} as ServerInfo))
  const seen = { master: master.name, ...info.maxmemory !== undefined && { memory: { used: Number(info.used_memory), limit: Number(info.maxmemory) } } }
  const unsafe = unsafeSetting(info)
  if (unsafe !== null) return { ...seen, reason: unsafe, unsafe: true }
  const online = onlineReplicas(info)
  if (online !== undefined && online < readiness.replicas) {
    return { ...seen, reason: `Redis has ${online} replicas online; DURABILITY needs ${readiness.replicas}.`, refuses: 'too_few_replicas' }
  }
  const outcome = await tried
  if (!(outcome instanceof Error)) return { ...seen, ...outcome }
  const [, refuses] = Object.entries(refusals).find(([start]) => outcome.message.startsWith(start)) ?? []
  return { ...seen, reason: meaningOf(outcome, info), said: outcome.message, ...refuses !== undefined && { refuses } }
}

/** Writes as pass does: that shows a replica that takes no writes, a disk that can't save, and a full Redis. Missing rights of other scripts show before. */
async function tryScripts (tag: string, { lanes, scripts, rights, keyNames, newMark }: Readiness): Promise<Omit<Look, 'master' | 'memory'>> {
  const { lacking, missing, untold, said } = await rights.ask(tag)
  if (lacking.length > 0) return { reason: `Redis does not let this service run ${lacking.join(', ')}: its user needs more rights.` }
  if (missing.length > 0) return { reason: `Redis does not have ${missing.join(', ')}, which the service needs: ${ofAnotherVersion}`, said }
  const texts = [newMark(), String(markDuration)]
  const [outcome, mark] = await lanes.call({ script: scripts.probe, tag, keys: [keyNames.dataSet(tag)], texts, decode: reply => reply as [Buffer, Buffer | null] })
  return {
    reason: null,
    ...String(outcome) === 'no_room' && { refuses: 'full' },
    ...mark !== null && { mark: { tag, value: String(mark) } },
    ...untold.length > 0 && { doubt: { reason: `Redis can’t be asked whether it lets this service run ${untold.join(', ')}.`, said } },
  }
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
