// A process that owns an embedded Redis, for tests that kill it. Its argument: the data directory. It prints one line of
// JSON, {socket, pid} or {error}; another, {answered, pid}, at each SIGINT; and stops at SIGTERM.
import { Redis } from 'ioredis'
import { defaultCacheDir, findRedisServer } from '../../src/embedded/binary.ts'
import { startRedis } from '../../src/embedded/server.ts'

const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)
const quiet = { info () {}, warn () {}, error () {} }

try {
  const binary = await findRedisServer({ cacheDir: defaultCacheDir, log () {} })
  const embedded = await startRedis({ binary, dataDir: process.argv[2] ?? '', log: quiet })
  process.on('SIGTERM', () => { embedded.stop().then(() => process.exit(0)) })
  process.on('SIGINT', async () => {
    const redis = new Redis({ path: embedded.socket, connectionName: 'handoff' })
    say({ answered: await redis.ping(), pid: embedded.pid })
    redis.disconnect()
  })
  say({ socket: embedded.socket, pid: embedded.pid })
} catch (error) {
  say({ error: (error as Error).message })
}
