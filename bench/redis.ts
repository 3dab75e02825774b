import { mkdtemp, rm, writeFile } from 'node:fs/promises'
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

/**
 * A redis-server for the benchmark, with the embedded one's settings.
 * @param extra settings that replace those
 * @param under a program to run it under, with its arguments
 */
export async function benchRedis (say: (line: string) => void, extra: readonly string[] = [], under: readonly string[] = []): Promise<BenchRedis> {
  const binary = await findRedisServer({ serverBin: process.env.REDIS_SERVER_BIN, cacheDir: defaultCacheDir, log: say })
  const dataDir = await mkdtemp(join(tmpdir(), 'handoff-bench-'))
  const port = await freePort()
  const redis = await startRedis({
    binary: under.length === 0 ? binary : { ...binary, path: await wrap(binary.path, under, dataDir) },
    dataDir,
    log: { info: say, warn: say, error: say },
    // Otherwise one round would pay for rewriting the append-only file.
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

/** A script that runs one program under another. @returns its path, in `dir` */
async function wrap (path: string, under: readonly string[], dir: string): Promise<string> {
  const wrapper = join(dir, 'redis-server')
  await writeFile(wrapper, `#!/bin/sh\nexec ${[...under, path].map(word => `'${word}'`).join(' ')} "$@"\n`, { mode: 0o700 })
  return wrapper
}

/** Another process may take the port before Redis does; then the start fails with an error. */
async function freePort (): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
