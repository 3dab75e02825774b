import { Redis } from 'ioredis'
import type { RedisOptions } from 'ioredis'
import type { ClusterNodes, Host, Sentinels, Standalone } from '../core/redis-url.ts'
import { reportRefusals } from './call.ts'

/** The log that connecting needs, a part of pino's. */
export interface ConnectionLog {
  info (details: object, message: string): void
  warn (details: object, message: string): void
}

const silent: ConnectionLog = { info () {}, warn () {} }

/** Of an outage, how many reasons the log names at most. */
export const reasonsLogged = 10

/**
 * Milliseconds between attempts. The end of an outage is noticed up to that much late, out of the 2 s for which a call
 * is retried.
 */
const retryStrategy = (attempts: number) => Math.min(25 * attempts, 100)

// Skips CLIENT SETINFO, which ioredis sends twice per connection: a limited user would need another right, and Redis
// before 7.2 doesn't know it. Done here, since ioredis has no option for its connections to Sentinels;
// test/store/acl-fleet sees what a Sentinel refused.
const { defaultOptions } = Redis as unknown as { defaultOptions: RedisOptions }
defaultOptions.disableClientInfo = true

/** Each setting that differs from ioredis's default, with its reason. */
const options = {
  // `CLIENT LIST` shows it to operators, and it tells a second service that an embedded Redis is in use.
  connectionName: 'handoff',
  // Retrying is the lane's work: with the operation's token, within the call's budget. ioredis knows neither.
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  // A server that is silent for this long during a call counts as dead, with half of a call's budget left to reconnect.
  socketTimeout: 1000,
  connectTimeout: 1000,
  // Closing a connection to a silent server, which answers no FIN, ends after this, in milliseconds. The lane retries
  // everything unanswered.
  disconnectTimeout: 10,
  retryStrategy,
  // RESP2, which every Redis, Valkey and proxy supports.
  protocol: 2,
  // Subscribers resubscribe themselves, and know which channels they still need.
  autoResubscribe: false,
} as const satisfies RedisOptions

/** Further settings with Sentinels. */
const sentinelOptions = {
  // Without this, a paused master that resumes gets writes until it learns that it is no longer master
  // (docs/architecture.md, "Calls": 89 % of what it acknowledged was lost). With it, a failover announced by any
  // Sentinel ends the connection.
  failoverDetector: true,
  // A silent Sentinel is passed over for the next one.
  sentinelCommandTimeout: 500,
  sentinelRetryStrategy: retryStrategy,
  sentinelReconnectStrategy: retryStrategy,
} as const satisfies RedisOptions

// `legacy` is the default. It is named because the compiler, to infer it, would compare all of ioredis's commands with
// themselves, and each build would take some seconds longer.

/** Connects to one server, or to the Sentinels' current master. Reconnects for ever, until `disconnect()`. */
export function connect (address: Standalone | Sentinels, log: ConnectionLog): Redis {
  return address.kind === 'standalone'
    ? watched(new Redis<'legacy'>(address.url, options), {}, log)
    : watched(new Redis<'legacy'>(throughSentinels(address)), { master: address.name }, log)
}

/** Connects to one node of a Cluster, like `connect`. */
export function connectNode (
  { host, port }: Host, { username, password, tls }: ClusterNodes, log: ConnectionLog = silent
): Redis {
  return watched(
    new Redis<'legacy'>({ ...options, host, port, ...access(username, password), ...tls && { tls: {} } }),
    { node: nodeName({ host, port }) }, log
  )
}

/** The notation of a Cluster itself, in MOVED and ASK. */
export function nodeName ({ host, port }: Host): string {
  return `${host}:${port}`
}

function throughSentinels (address: Sentinels) {
  const { sentinels, name, username, password, sentinelUsername, sentinelPassword, tls } = address
  return {
    ...options,
    ...sentinelOptions,
    sentinels,
    name,
    ...access(username, password),
    ...sentinelUsername !== undefined && { sentinelUsername },
    ...sentinelPassword !== undefined && { sentinelPassword },
    ...tls && { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true },
  }
}

function access (username: string | undefined, password: string | undefined) {
  return { ...username !== undefined && { username }, ...password !== undefined && { password } }
}

/** @param which the connection's name in the log */
function watched (redis: Redis, which: object, log: ConnectionLog): Redis {
  reportRefusals(redis)
  const reasons = new Set<string>()
  redis.on('ready', () => {
    if (reasons.size > 0) log.info(which, 'Redis is back')
    reasons.clear()
  })
  redis.on('error', ({ message: reason }: Error) => {
    // One line per reason and outage: ioredis reports every attempt. A later reason may be the one to mend: a timeout
    // hides a wrong password.
    if (reasons.has(reason) || reasons.size === reasonsLogged) return
    reasons.add(reason)
    log.warn({ ...which, reason }, 'Redis is away')
  })
  return redis
}

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

interface ServerVersion {
  /** `Redis 8.0.2`, `Valkey 8.1.1` */
  name: string
  /** It lacks something that the scripts need. */
  tooOld: boolean
  tested: boolean
}

/** Undefined if INFO doesn't report it. */
export function versionOf (info: ServerInfo): ServerVersion | undefined {
  // Valkey's redis_version is the Redis version that it is compatible with.
  const make = info.valkey_version === undefined ? 'Redis' : 'Valkey'
  const version = info.valkey_version ?? info.redis_version
  if (version === undefined) return undefined
  const [major, minor] = version.split('.')
  return {
    name: `${make} ${version}`,
    tooOld: make === 'Redis' && Number(major) < 7,
    tested: testedServers.includes(`${make} ${major}.${minor}`)
  }
}

/** Undefined if INFO doesn't report it; 0 for a master without replicas. */
export function onlineReplicas (info: ServerInfo): number | undefined {
  if (info.role === undefined) return undefined
  return Object.entries(info).filter(([field, value]) =>
    /^slave\d+$/.test(field) && value?.includes('state=online')).length
}

/** The meaning of Redis's errors for a call. */

/**
 * Not executed, and the reason may soon be over. The last two: a script met keys whose slot is moving, in the words of
 * Redis 7 and of Redis 8.
 */
export const passing =
  /^(LOADING|BUSY|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|UNBLOCKED)\b|non local key in a cluster node|during rehashing of the slot/
/** The server's version is wrong, or it hides a command: it can't execute the call. */
export const unsupported =
  /^ERR ([Uu]nknown (Redis |Valkey )?(sub)?command|Error compiling script|Unexpected flag in script shebang)\b/
/**
 * Not executed, and an operator has to act first. The last two: missing rights inside a script, whose earlier writes
 * stay.
 */
export const refusing =
  /^(OOM|MISCONF|NOREPLICAS|NOPERM|NOAUTH|WRONGPASS|ERR The user executing the script|ERR ACL failure)\b/
