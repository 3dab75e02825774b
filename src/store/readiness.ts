import type { Redis } from 'ioredis'
import { Unavailable } from './lane.ts'
import type { Leases } from './leases.ts'

/** How long a replica's sign of life stays in Redis, in milliseconds. */
const signDuration = 10_000

/** What Redis's own words mean for an operator; the words themselves are not for a page that needs no key. */
const meanings: Array<[start: string, meaning: string]> = [
  ['READONLY', 'Redis is a replica and takes no writes.'],
  ['MISCONF', 'Redis takes no writes because it cannot save them; its own log says why.'],
  ['NOREPLICAS', 'Redis takes no writes because it has too few replicas.'],
  ['NOPERM', 'Redis does not give this service the rights that it needs.'],
  ['NOAUTH', 'Redis wants a password; set it in REDIS_URL.'],
  ['WRONGPASS', 'Redis refuses the user and password of REDIS_URL.'],
]

/** Why Redis can't serve us now, in a sentence for an operator; null when it can. */
export async function whyNotReady (redis: Redis, leases: Leases, key: string): Promise<string | null> {
  if (redis.status !== 'ready') return 'Redis is not connected.'
  try {
    // A true write, by a script like those that serve: a replica, a stopped disk and missing rights all show.
    await leases.take(key, signDuration)
    return complaint(await redis.info('server', 'memory'))
  } catch (error) {
    const { message } = error as Error
    const meaning = meanings.find(([start]) => message.startsWith(start))?.[1]
    return meaning ?? (error instanceof Unavailable ? 'Redis does not answer in time.' : 'Redis does not run our scripts.')
  }
}

/** What is wrong with a server by its own INFO. */
function complaint (info: string): string | null {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1] ?? ''
  const version = field('redis_version')
  if (Number(version.split('.')[0]) < 7) return `Redis ${version} is too old: 7.0 or later is needed.`
  const policy = field('maxmemory_policy')
  if (policy !== 'noeviction') {
    return `maxmemory-policy is ${policy}: Redis may drop handoffs that were acknowledged. Set it to noeviction.`
  }
  return null
}
