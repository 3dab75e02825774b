import { Redis } from 'ioredis'
import type { RedisOptions } from 'ioredis'

/** What connecting needs to say: pino's shape. */
export interface ConnectionLog {
  info (message: string): void
  warn (details: object, message: string): void
}

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
  retryStrategy: (attempts: number) => Math.min(50 * attempts, 500),
  // Replies as every Redis and Valkey gives them, proxies in between included.
  protocol: 2,
  // Those who subscribe do it themselves, and know for what still.
  autoResubscribe: false,
} as const satisfies RedisOptions

/**
 * A connection that is made now and mended for ever, until `disconnect()`.
 * @param url redis://, rediss:// or the path of a unix socket
 */
export function connect (url: string, log: ConnectionLog): Redis {
  const redis = new Redis(url, options)
  let away = false
  redis.on('ready', () => {
    if (away) log.info('Redis is back')
    away = false
  })
  redis.on('error', (error: Error) => {
    // One line an outage: ioredis tells every attempt.
    if (!away) log.warn({ err: { message: error.message } }, 'Redis is away')
    away = true
  })
  return redis
}
