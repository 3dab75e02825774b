import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { denials, setUser } from './acl.ts'

/** A Redis user for a test run, with the rights of the service in deploy/redis/users.acl, on the tests' keys. */
export interface LimitedUser {
  url: string
  /** Deletes the user. @returns what Redis refused it, a line each */
  end (): Promise<string[]>
}

/** @throws if this Redis doesn't allow us to create users */
export async function limitedUser (url: string): Promise<LimitedUser> {
  const admin = new Redis(url, { maxRetriesPerRequest: 1 })
  admin.on('error', () => {}) // its calls reject with the error
  // A unique name: the Redis may not be ours, and the ACL log must tell this run's refusals from others'.
  const name = `handoff-test-${randomBytes(6).toString('hex')}`
  const password = randomBytes(24).toString('hex')
  try {
    // The tests' clock is a key outside the prefix (test/helpers/redis.ts), and tests create API keys as an operator does.
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

/** The same URL with another user. For a unix socket, ioredis takes the user from the query. */
export function asUser (url: string, name: string, password: string): string {
  if (url.startsWith('/')) return `${url}?username=${name}&password=${password}`
  const address = new URL(url)
  address.username = name
  address.password = password
  return address.href
}
