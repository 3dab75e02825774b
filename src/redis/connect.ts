import { Redis } from 'ioredis'
import type { RedisOptions } from 'ioredis'
import type { ClusterNodes, Host, Sentinels, Standalone } from '../redis-url.ts'

/** What connecting needs to say: pino's shape. */
export interface ConnectionLog {
  info (details: object, message: string): void
  warn (details: object, message: string): void
}

const silent: ConnectionLog = { info () {}, warn () {} }

/** Milliseconds between attempts. An outage is noticed to be over that much late, of the 2 s that a call is asked again for. */
const retryStrategy = (attempts: number) => Math.min(25 * attempts, 100)

// CLIENT SETINFO, twice a connection: a right more that a limited user would need, and that a Redis before 7.2 doesn't know. Here,
// since ioredis has no option for its connections to Sentinels; test/store/acl-fleet sees what a Sentinel refused.
const { defaultOptions } = Redis as unknown as { defaultOptions: RedisOptions }
defaultOptions.disableClientInfo = true

/** Each setting that is not ioredis's own, with its reason. */
const options = {
  // What `CLIENT LIST` shows an operator, and how a second service knows that an embedded Redis is taken.
  connectionName: 'handoff',
  // Asking again is the lane's work: with the operation's token, within the call's budget. ioredis knows neither.
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  // A server that says nothing for this long while asked is taken for gone, with the half of a call's budget left to reconnect.
  socketTimeout: 1000,
  connectTimeout: 1000,
  // Hanging up on a server that is silent ends after this, in milliseconds: it answers no FIN. Nothing is lost that the lane doesn't ask again.
  disconnectTimeout: 10,
  retryStrategy,
  // Replies as every Redis and Valkey gives them, proxies in between included.
  protocol: 2,
  // Those who subscribe do it themselves, and know for what still.
  autoResubscribe: false,
} as const satisfies RedisOptions

/** What is more where Sentinels say who the master is. */
const sentinelOptions = {
  // Without it a master that pauses and comes back is written to until it has learned that it is none (docs/architecture.md, "Calls":
  // 89 % of what it acknowledged was lost). With it a switch that any Sentinel tells of ends the connection.
  failoverDetector: true,
  // A Sentinel that says nothing is passed over for the next.
  sentinelCommandTimeout: 500,
  sentinelRetryStrategy: retryStrategy,
  sentinelReconnectStrategy: retryStrategy,
} as const satisfies RedisOptions

/** Connects to one server, or to whichever the Sentinels say is the master. Mended for ever, until `disconnect()`. */
export function connect (address: Standalone | Sentinels, log: ConnectionLog): Redis {
  return address.kind === 'standalone'
    ? watched(new Redis(address.url, options), {}, log)
    : watched(new Redis(throughSentinels(address)), { master: address.name }, log)
}

/** Connects to one node of a Cluster, as `connect` does. */
export function connectNode ({ host, port }: Host, { username, password, tls }: ClusterNodes, log: ConnectionLog = silent): Redis {
  return watched(new Redis({ ...options, host, port, ...access(username, password), ...tls && { tls: {} } }), { node: nodeName({ host, port }) }, log)
}

/** How a Cluster itself writes it, in MOVED and ASK. */
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

/** @param which of several it is, for the log */
function watched (redis: Redis, which: object, log: ConnectionLog): Redis {
  let away = false
  redis.on('ready', () => {
    if (away) log.info(which, 'Redis is back')
    away = false
  })
  redis.on('error', (error: Error) => {
    // One line an outage: ioredis tells every attempt.
    if (!away) log.warn({ ...which, reason: error.message }, 'Redis is away')
    away = true
  })
  return redis
}
