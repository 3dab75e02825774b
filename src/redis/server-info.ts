/** A server's reply to INFO. A missing field is undefined, and nothing is concluded from that. */
export type ServerInfo = Readonly<Partial<Record<string, string>>>

/** The servers that the suite runs on, as README.md and docs/redis.md name them. */
export const testedServers = ['Redis 7.0', 'Redis 8.0', 'Valkey 8.1']

export function readInfo (text: string): Record<string, string> {
  return Object.fromEntries(text.split('\r\n').filter(line => line.includes(':')).map(line => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon), line.slice(colon + 1)]
  }))
}

export interface ServerVersion {
  /** `Redis 8.0.2`, `Valkey 8.1.1` */
  name: string
  /** It lacks what the scripts need. */
  tooOld: boolean
  tested: boolean
}

/** Undefined if INFO doesn't tell. */
export function versionOf (info: ServerInfo): ServerVersion | undefined {
  // Valkey's redis_version is the Redis version that it is compatible with.
  const make = info.valkey_version === undefined ? 'Redis' : 'Valkey'
  const version = info.valkey_version ?? info.redis_version
  if (version === undefined) return undefined
  const [major, minor] = version.split('.')
  return { name: `${make} ${version}`, tooOld: make === 'Redis' && Number(major) < 7, tested: testedServers.includes(`${make} ${major}.${minor}`) }
}

/** Undefined if INFO doesn't tell; 0 for a master without replicas. */
export function onlineReplicas (info: ServerInfo): number | undefined {
  if (info.role === undefined) return undefined
  return Object.entries(info).filter(([field, value]) => /^slave\d+$/.test(field) && value?.includes('state=online')).length
}
