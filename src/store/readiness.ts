import type { Keys } from './keys.ts'
import { Unavailable } from './lanes.ts'
import type { Leases } from './leases.ts'
import type { Master, Masters } from './masters.ts'
import type { ConnectionLog } from './redis.ts'

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
  keys: Keys
  /** Who this replica is. */
  replica: string
  /** How many replicas every write needs. */
  replicas: number
}

/**
 * Why Redis can't serve us now, in a sentence for an operator; null when it can. Of a Cluster's masters one that serves is
 * enough, since who is not ready gets no requests at all; but none may be set up so that it drops what was acknowledged.
 */
export async function whyNotReady (readiness: Readiness): Promise<string | null> {
  const looks = await Promise.all([...readiness.masters.all()].map(master => look(master, readiness)))
  const unsafe = looks.find(({ safe }) => !safe)
  if (unsafe !== undefined) return unsafe.complaint
  return looks.some(({ complaint }) => complaint === null) ? null : looks[0]?.complaint ?? whyUnreached(readiness.masters.trouble)
}

/** The same answer, with a line in the log whenever it is another than before. */
export function told (look: () => Promise<string | null>, log: ConnectionLog): () => Promise<string | null> {
  let last: string | null | undefined
  return async () => {
    const reason = await look()
    if (reason !== null && reason !== last) log.warn({ reason }, 'not ready')
    if (reason === null && last !== null) log.info({}, 'ready')
    last = reason
    return reason
  }
}

interface Look { complaint: string | null, safe: boolean }

async function look (master: Master, { leases, keys, replica, replicas }: Readiness): Promise<Look> {
  const [tag] = master.tags
  // One that only takes slots over has nothing of ours yet.
  if (master.calls.status !== 'ready' || tag === undefined) return { complaint: whyUnreached(master.trouble), safe: true }
  // A true write, by a script like those that serve: a replica, a stopped disk and missing rights all show.
  const write = leases.take(keys.ready(tag, replica), signDuration).then(() => null, (error: Error) => error)
  const info = await master.calls.info('server', 'memory', 'replication').catch(() => null)
  const unsafe = info === null ? null : unsafeSetting(info)
  if (unsafe !== null) return { complaint: unsafe, safe: false }
  const online = info?.match(/^slave\d+:.*state=online/gm)?.length ?? 0
  if (info !== null && online < replicas) return { complaint: `Redis has ${online} replicas online; DURABILITY needs ${replicas}.`, safe: true }
  const refused = await write
  return { complaint: refused === null ? null : meaningOf(refused), safe: true }
}

function meaningOf (error: Error): string {
  const meaning = meanings.find(([start]) => error.message.startsWith(start))?.[1]
  return meaning ?? (error instanceof Unavailable ? 'Redis does not answer in time.' : 'Redis does not run our scripts.')
}

/** What makes a server one to keep nothing on, by its own INFO. */
function unsafeSetting (info: string): string | null {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1] ?? ''
  const version = field('redis_version')
  if (Number(version.split('.')[0]) < 7) return `Redis ${version} is too old: 7.0 or later is needed.`
  const policy = field('maxmemory_policy')
  if (policy !== 'noeviction') {
    return `maxmemory-policy is ${policy}: Redis may drop handoffs that were acknowledged. Set it to noeviction.`
  }
  return null
}
