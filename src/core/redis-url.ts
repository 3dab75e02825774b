/** Where Redis is, as REDIS_URL says it. A leaf: config.ts asks whether it can be, and the store connects to it. */
export type RedisAddress = Standalone | Sentinels | ClusterNodes

export interface Host { host: string, port: number }

interface Access { username: string | undefined, password: string | undefined, tls: boolean }
/** One server, by a URL that ioredis reads itself or the path of a unix socket. */
export interface Standalone { kind: 'standalone', url: string }
/**
 * The Sentinels, which know the master of that name. User and password are Redis's; the Sentinels' own are in the
 * query.
 */
export interface Sentinels extends Access {
  kind: 'sentinel'
  sentinels: Host[]
  name: string
  sentinelUsername: string | undefined
  sentinelPassword: string | undefined
}
/** Some nodes of a Cluster; they know the others. */
export interface ClusterNodes extends Access { kind: 'cluster', nodes: Host[] }

const shape = /^redis(s?)\+(sentinel|cluster):\/\/(?:([^:@/]*)(?::([^@/]*))?@)?([^@/?\s]+)(?:\/([^/?\s]*))?(\?\S*)?$/

/** @throws {TypeError | URIError} the URL is wrong */
export function parseRedisUrl (url: string): RedisAddress {
  const [, s, kind, username, password, hosts, name, query] = shape.exec(url) ?? []
  if (kind === undefined || hosts === undefined) {
    if (!url.startsWith('/')) checkStandalone(url)
    return { kind: 'standalone', url }
  }
  const access: Access = { username: decoded(username), password: decoded(password), tls: s === 's' }
  if (kind === 'cluster') {
    if (name || query) throw new TypeError('a Cluster has neither a name nor a database')
    return { kind, ...access, nodes: parseHosts(hosts, 6379) }
  }
  if (!name) throw new TypeError('the master’s name is missing')
  const own = new URLSearchParams(query)
  return {
    kind: 'sentinel',
    ...access,
    sentinels: parseHosts(hosts, 26379),
    name: decodeURIComponent(name),
    sentinelUsername: own.get('sentinel_username') ?? undefined,
    sentinelPassword: own.get('sentinel_password') ?? undefined,
  }
}

/** ioredis reads the URL itself, and takes a wrong one for something else. */
function checkStandalone (url: string): void {
  const { protocol, hostname, username, password, pathname, hash } = new URL(url)
  // A # or / in a password, unescaped, ends the host before it: a part of the secret would be looked up, and logged, as
  // a name.
  if (!/^(\/\d*)?$/.test(pathname) || hash !== '') {
    throw new TypeError('after the host there can be only a database’s number')
  }
  if (!/^rediss?:$/.test(protocol) || hostname === '' || /\s/.test(url)) {
    throw new TypeError('it is no redis:// with a host')
  }
  decodeURIComponent(username + password)
}

function parseHosts (list: string, usualPort: number): Host[] {
  return list.split(',').map(entry => {
    // An IPv6 address stands in brackets, as in any URL; who connects wants it without.
    const { hostname, port } = new URL(`redis://${entry}`)
    if (hostname === '') throw new TypeError('a host is missing')
    return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? usualPort : Number(port) }
  })
}

function decoded (part: string | undefined): string | undefined {
  return part ? decodeURIComponent(part) : undefined
}
