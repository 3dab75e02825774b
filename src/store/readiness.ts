import type { Redis } from 'ioredis'
import { Unavailable } from './lane.ts'
import type { Leases } from './leases.ts'

/** How long a replica's sign of life stays in Redis, in milliseconds. */
const signDuration = 10_000

/** Why Redis can't serve us now, in a sentence for an operator; null when it can. */
export async function whyNotReady (redis: Redis, leases: Leases, key: string): Promise<string | null> {
  if (redis.status !== 'ready') return 'Redis is not connected.'
  try {
    // A true write, by a script like those that serve: a replica, a stopped disk and missing rights all show.
    await leases.take(key, signDuration)
    return complaint(await redis.info('server', 'memory'))
  } catch (error) {
    return error instanceof Unavailable ? `Redis takes no writes: ${error.message}` : 'Redis does not run our scripts.'
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
