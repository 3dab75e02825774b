import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { denials, setUser } from './acl.ts'

/** A user for a run of the tests, with the rights that deploy/redis/users.acl gives the service, on the tests' keys. */
export interface LimitedUser {
  url: string
  /** Takes it away again. @returns what it was refused meanwhile, a line each */
  end (): Promise<string[]>
}

/** @throws where this Redis lets us make no user */
export async function limitedUser (url: string): Promise<LimitedUser> {
  const admin = new Redis(url, { maxRetriesPerRequest: 1 })
  admin.on('error', () => {}) // who asks is told
  // Nobody else's on a Redis that isn't ours, and the log tells this run's refusals from any other's.
  const name = `handoff-test-${randomBytes(6).toString('hex')}`
  const password = randomBytes(24).toString('hex')
  try {
    // The tests' clock lies beside their keys (test/helpers/redis.ts), and they make keys as an operator does.
    await setUser(admin, { user: 'handoff', name, password, prefix: 't-', more: ['~clock-t-*', '+xadd'] })
  } catch (error) {
    admin.disconnect()
    throw error
  }
  return {
    url: asUser(url, name, password),
    async end () {
      const refused = await denials(admin, name)
      await admin.call('ACL', 'DELUSER', name)
      admin.disconnect()
      return refused
    },
  }
}

/** The same address for another user. ioredis takes a socket's in the query. */
export function asUser (url: string, name: string, password: string): string {
  if (url.startsWith('/')) return `${url}?username=${name}&password=${password}`
  const address = new URL(url)
  address.username = name
  address.password = password
  return address.href
}
