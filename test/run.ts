/**
 * `npm test`: finds a Redis for the tests (REDIS_URL, else a container where an engine answers, else the ladder of `npm start`),
 * runs tap with it, and takes it down again. Arguments go to tap: `npm test -- test/store/lane.test.ts`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { GenericContainer } from 'testcontainers'
import { defaultCacheDir, findRedisServer } from '../src/embedded/binary.ts'
import { startRedis } from '../src/embedded/server.ts'

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
  return await inContainer() ?? await byLadder()
}

const redis = await findRedis()
say(`Redis from ${redis.from}`)
const tap = spawn('tap', ['run', ...process.argv.slice(2)], { stdio: 'inherit', env: { ...process.env, REDIS_URL: redis.url } })
// Ctrl-C reaches tap as well; this process stays to take Redis down.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => tap.kill('SIGTERM'))
const [code] = await once(tap, 'exit')
await redis.stop()
process.exit(code ?? 1)
