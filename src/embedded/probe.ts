import { Redis } from 'ioredis'

/** A connection to the Redis at `socket` for `talk` only. It has no service's name, so that it isn't mistaken for one. */
async function withConnection<T> (socket: string, talk: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis({
    path: socket,
    connectionName: 'embedded',
    lazyConnect: true,
    enableReadyCheck: false, // it must also work while Redis is loading its data
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    connectTimeout: 1000,
    commandTimeout: 1000
  })
  redis.on('error', () => {}) // the failed call reports it
  try {
    await redis.connect()
    return await talk(redis)
  } finally {
    redis.disconnect()
  }
}

/** What is at `socket`: `nobody` answers, a Redis that is `idle`, or one with a service connected, `used`. */
export async function whoAnswers (socket: string): Promise<'nobody' | 'idle' | 'used'> {
  try {
    const clients = await withConnection(socket, async (redis) => String(await redis.client('LIST')))
    return /(^| )name=handoff/m.test(clients) ? 'used' : 'idle'
  } catch {
    return 'nobody'
  }
}

/** Asks it to end. The caller checks elsewhere that it has (the connection just closes). */
export async function shutDown (socket: string): Promise<void> {
  await withConnection(socket, (redis) => redis.shutdown()).catch(() => {})
}

/**
 * Resolves when the Redis at `socket`, which may still be starting, answers PING and has loaded its data.
 * Throws when it hasn't within `timeoutMs`, or as soon as it has `ended`.
 */
export async function untilReady (socket: string, timeoutMs: number, ended: Promise<number | string>): Promise<void> {
  const redis = new Redis({ path: socket, connectionName: 'embedded', retryStrategy: () => 10, maxLoadingRetryTime: 100, maxRetriesPerRequest: null })
  redis.on('error', () => {}) // not there yet: ioredis retries
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`redis-server was not ready within ${timeoutMs / 1000} s`)), timeoutMs)
  })
  const over = ended.then((how) => { throw new Error(`redis-server ended as it started (${how})`) })
  try {
    // Sent once ioredis considers the connection ready, which is when the data is loaded.
    await Promise.race([redis.ping(), over, late])
  } finally {
    clearTimeout(timer)
    redis.disconnect()
  }
}
