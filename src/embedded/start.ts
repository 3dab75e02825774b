import { findRedisServer, defaultCacheDir } from './binary.ts'
import { localKeys, localWebhookSecret, removeAddress, writeAddress } from './local-keys.ts'
import type { LocalKeys } from './local-keys.ts'
import { startRedis } from './server.ts'

export interface Embedded {
  /** The unix socket of the started Redis. */
  socket: string
  /** The keys of this machine, if none are configured. */
  keys: LocalKeys | undefined
  /** What the secrets of webhooks are derived from, if events are on and nothing else is configured. */
  webhookSecret: string | undefined
  /** Tells the command on this machine where the service listens. */
  listensAt (address: string): Promise<void>
  stop (): Promise<void>
}

interface EmbeddedLog {
  info (message: string): void
  warn (message: string): void
  error (message: string): void
}

/** Starts the embedded Redis and, if no keys are configured, makes keys for this machine. @throws {EmbeddedError} */
export async function startEmbedded (
  config: { redisServerBin: string | undefined, dataDir: string, apiKeys: readonly unknown[], eventsRetention: number, webhookSecret: string | undefined }, log: EmbeddedLog, newKey: () => string
): Promise<Embedded> {
  const binary = await findRedisServer({ serverBin: config.redisServerBin, cacheDir: defaultCacheDir, log: line => log.info(line) })
  const redis = await startRedis({ binary, dataDir: config.dataDir, log })
  // What a service left here that was killed: its address may be another program's by now.
  await removeAddress(config.dataDir)
  const keys = config.apiKeys.length === 0 ? await localKeys(config.dataDir, newKey) : undefined
  const webhookSecret = config.webhookSecret === undefined && config.eventsRetention > 0 ? await localWebhookSecret(config.dataDir, newKey) : undefined
  return {
    socket: redis.socket,
    keys,
    webhookSecret,
    async listensAt (address) {
      // Without it the command asks for an address and a key, and says so: no reason not to serve.
      await writeAddress(config.dataDir, address).catch((error: Error) => log.warn(`the command can't find this service by itself: ${error.message}`))
    },
    async stop () {
      await removeAddress(config.dataDir).catch(() => {})
      await redis.stop()
    },
  }
}
