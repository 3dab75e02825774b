import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defaultCacheDir, findRedisServer } from '../src/embedded/binary.ts'
import { startRedis } from '../src/embedded/server.ts'

export interface BenchRedis {
  /** redis://, over TCP on the loopback address. */
  url: string
  pid: number
  version: string
  stop (): Promise<void>
}

/** A redis-server of the benchmark's own with the embedded one's settings. @param extra settings that replace those */
export async function benchRedis (say: (line: string) => void, extra: readonly string[] = []): Promise<BenchRedis> {
  const binary = await findRedisServer({ serverBin: process.env.REDIS_SERVER_BIN, cacheDir: defaultCacheDir, log: say })
  const dataDir = await mkdtemp(join(tmpdir(), 'handoff-bench-'))
  const port = await freePort()
  const redis = await startRedis({
    binary,
    dataDir,
    log: { info: say, warn: say, error: say },
    // Rewriting its append-only file in the midst of a round would be on that round's bill alone.
    extra: ['--port', String(port), '--bind', '127.0.0.1', '--auto-aof-rewrite-percentage', '0', ...extra],
  })
  return {
    url: `redis://127.0.0.1:${port}`,
    pid: redis.pid,
    version: binary.version,
    async stop () {
      await redis.stop()
      await rm(dataDir, { recursive: true })
    },
  }
}

/** Somebody else may take it before Redis does; then the start fails, and says so. */
async function freePort (): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
