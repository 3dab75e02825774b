/**
 * `npm test`: finds a Redis for the tests (REDIS_URL, else REDIS_SERVER_BIN, else a container where an engine answers, else the
 * ladder of `npm start`), runs tap with it, and takes it down again. The service that is tested signs in as a user with the rights of
 * deploy/redis/users.acl and no more; what that user was refused meanwhile fails the run. Arguments go to tap:
 * `npm test -- test/redis/lane.test.ts`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { GenericContainer } from 'testcontainers'
import { defaultCacheDir, findRedisServer } from '../src/embedded/binary.ts'
import { startRedis } from '../src/embedded/server.ts'
import { limitedUser } from './helpers/limited-user.ts'

interface TestRedis { url: string, from: string, stop: () => Promise<unknown> }

const say = (line: string) => { process.stderr.write(`test: ${line}\n`) }

async function inContainer (): Promise<TestRedis | undefined> {
  try {
    const container = await new GenericContainer('redis:7').withExposedPorts(6379).start()
    return {
      url: `redis://${container.getHost()}:${container.getMappedPort(6379)}`,
      from: 'a container',
      stop: () => container.stop(),
    }
  } catch (error) {
    say(`no container engine (${(error as Error).message.split('\n')[0]}); starting a redis-server instead`)
  }
}

async function byLadder (): Promise<TestRedis> {
  const binary = await findRedisServer({ serverBin: process.env.REDIS_SERVER_BIN, cacheDir: defaultCacheDir, log: say })
  const dataDir = await mkdtemp(join(tmpdir(), 'handoff-test-'))
  const redis = await startRedis({ binary, dataDir, log: { info: say, warn: say, error: say } })
  const stop = async () => {
    await redis.stop()
    await rm(dataDir, { recursive: true })
  }
  return { url: redis.socket, from: `redis-server ${binary.version}`, stop }
}

async function findRedis (): Promise<TestRedis> {
  if (process.env.REDIS_URL) return { url: process.env.REDIS_URL, from: 'REDIS_URL', stop: async () => {} }
  // Somebody wants that server; the tests' own ones are of it too.
  if (process.env.REDIS_SERVER_BIN) return await byLadder()
  return await inContainer() ?? await byLadder()
}

const redis = await findRedis()
const limited = await limitedUser(redis.url).catch((error: Error) => say(`the service is tested with all rights: no user could be made (${error.message})`))
say(`Redis from ${redis.from}`)
const env = { ...process.env, REDIS_URL: redis.url, ...limited && { REDIS_LIMITED_URL: limited.url } }
const tap = spawn('tap', ['run', ...process.argv.slice(2)], { stdio: 'inherit', env })
// Ctrl-C reaches tap as well; this process stays to take Redis down.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => tap.kill('SIGTERM'))
const [code] = await once(tap, 'exit') as [number | null]
const refused = await limited?.end() ?? []
for (const line of refused) say(`deploy/redis/users.acl does not let the service: ${line}`)
await redis.stop()
process.exit(code === 0 && refused.length > 0 ? 1 : code ?? 1)
