import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'

/** The ACL files for Redis and for Sentinels that operators get. */
export type AclFile = 'users.acl' | 'sentinel-users.acl'

/** A file's lines: each user with its ACL rules. */
export function usersOf (file: AclFile): Map<string, string[]> {
  const lines = readFileSync(new URL(`../../deploy/redis/${file}`, import.meta.url), 'utf8').trimEnd().split('\n')
  return new Map(lines.map(line => {
    const [keyword, name, ...rules] = line.split(' ')
    if (keyword !== 'user' || name === undefined) throw new Error(`${file}: ${line}`)
    return [name, rules]
  }))
}

/** The commands that a user is allowed, in capitals, as `CLIENT|KILL`. */
export function commandsOf (user: string, file: AclFile = 'users.acl'): string[] {
  return usersOf(file).get(user)!.filter(rule => rule.startsWith('+')).map(rule => rule.slice(1).toUpperCase()).sort()
}

export interface AclUser {
  /** The user's name in users.acl. */
  user: string
  password: string
  /** Another name to give it here. */
  name?: string
  /** The prefix of its keys and channels. */
  prefix?: string
  file?: AclFile
  /** More rules, after the file's: `-hset`. */
  more?: readonly string[]
}

/** Creates a user of the file on a server, or resets it: earlier rights are removed, open connections stay authenticated. */
export async function setUser (admin: Redis, { user, password, name = user, prefix = 'handoff:', file = 'users.acl', more = [] }: AclUser): Promise<void> {
  const rules = withPassword(usersOf(file).get(user)!, password).map(rule => rule.replace(/^([~&])handoff:/, `$1${prefix}`))
  await admin.call('ACL', 'SETUSER', name, 'reset', ...rules, ...more)
}

/** All users of a file but the default one, as options of a redis-server. */
export function asOptions (file: AclFile, password: string): string[] {
  return [...usersOf(file)].filter(([name]) => name !== 'default').flatMap(([name, rules]) => ['--user', [name, ...withPassword(rules, password)].join(' ')])
}

function withPassword (rules: readonly string[], password: string): string[] {
  return rules.map(rule => rule.replace(/^#.*/, `>${password}`))
}

/** What Redis refused the user since the ACL log began, a line each: `command hset (toplevel)`. Failed logins are left out. */
export async function denials (admin: Redis, name: string): Promise<string[]> {
  const log = await admin.call('ACL', 'LOG', '128') as Array<Array<string | number>>
  const field = (entry: Array<string | number>, name: string) => String(entry[entry.indexOf(name) + 1])
  return log.filter(entry => field(entry, 'username') === name)
    .map(entry => `${field(entry, 'reason')} ${field(entry, 'object')} (${field(entry, 'context')}), ${field(entry, 'count')} times`)
}

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
