import { findRedisServer, defaultCacheDir } from './binary.ts'
import { localKeys } from './local-keys.ts'
import type { LocalKeys } from './local-keys.ts'
import { startRedis } from './server.ts'

export interface Embedded {
  /** The unix socket of the started Redis. */
  socket: string
  /** The keys of this machine, if none are configured. */
  keys: LocalKeys | undefined
  stop (): Promise<void>
}

interface EmbeddedLog {
  info (message: string): void
  warn (message: string): void
  error (message: string): void
}

/** Starts the embedded Redis and, if no keys are configured, makes keys for this machine. @throws {EmbeddedError} */
export async function startEmbedded (
  config: { redisServerBin: string | undefined, dataDir: string, apiKeys: readonly unknown[] }, log: EmbeddedLog, newKey: () => string
): Promise<Embedded> {
  const binary = await findRedisServer({ serverBin: config.redisServerBin, cacheDir: defaultCacheDir, log: line => log.info(line) })
  const redis = await startRedis({ binary, dataDir: config.dataDir, log })
  const keys = config.apiKeys.length === 0 ? await localKeys(config.dataDir, newKey) : undefined
  return { socket: redis.socket, keys, stop: redis.stop }
}
