/**
 * `npm test`: finds a Redis for the tests (REDIS_URL, else REDIS_SERVER_BIN, else a container if an engine answers, else as `npm start`
 * does), runs tap with it, and stops it. The tested service uses a Redis user with exactly the rights of deploy/redis/users.acl; the run
 * fails if Redis refuses that user anything.
 *
 * tiers.ts lists the files of `npm test`, `--smoke` and `--all`. Named files run one at a time, unless `--jobs` says otherwise
 * (`npm test -- --jobs=4 test/redis/*.test.ts`). Other options are tap's.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { GenericContainer } from 'testcontainers'
import { defaultCacheDir, findRedisServer } from '../src/embedded/binary.ts'
import { startRedis } from '../src/embedded/server.ts'
import { compileAll } from './compile.ts'
import { compiledTest } from './compiled.ts'
import type { FilesToRun } from './files.ts'
import { limitedUser } from './helpers/limited-user.ts'
import { batchesOf, inBatches, runs } from './tiers.ts'

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
  // REDIS_SERVER_BIN: the tests' own servers use it too.
  if (process.env.REDIS_SERVER_BIN) return await byLadder()
  return await inContainer() ?? await byLadder()
}

/** Runs test files under tap. On Ctrl-C tap ends by itself, and this process stays to stop Redis. @param options for tap @returns whether all passed */
async function runFiles (what: FilesToRun, options: readonly string[], more: Record<string, string> = {}): Promise<boolean> {
  const tap = spawn('tap', ['run', '--timeout=0', ...options, compiledTest('files.ts')], { stdio: 'inherit', env: { ...env, ...more, TEST_FILES: JSON.stringify(what) } })
  const stop = () => tap.kill('SIGTERM')
  process.once('SIGTERM', stop)
  const [code, signal] = await once(tap, 'exit') as [number | null, string | null]
  process.off('SIGTERM', stop)
  if (code !== 0) say(`tap ended with ${signal ?? code}`)
  return code === 0
}

const [first = '', ...rest] = process.argv.slice(2)
const run = runs.find(name => first === `--${name}`)
const given = run === undefined ? process.argv.slice(2) : rest
const named = given.filter(arg => !arg.startsWith('-')).map(path => relative('test', path))
const options = given.filter(arg => arg.startsWith('-') && !arg.startsWith('--jobs='))
const jobs = Number(given.find(arg => arg.startsWith('--jobs='))?.slice('--jobs='.length) ?? 1)

await compileAll()
const redis = await findRedis()
const limited = await limitedUser(redis.url).catch((error: Error) => say(`the service is tested with all rights: no user could be made (${error.message})`))
say(`Redis from ${redis.from}`)
const env = { ...process.env, REDIS_URL: redis.url, ...limited && { REDIS_LIMITED_URL: limited.url } }
let passed = true
let interrupted = false
process.on('SIGINT', () => { interrupted = true })
const batches = named.length > 0 ? inBatches(named, jobs) : batchesOf(run ?? 'quick')
const extent = named.length > 0 ? {} : { TEST_RUN: run ?? 'quick' }
for (const batch of batches) {
  if (!interrupted) passed = await runFiles(batch, options, extent) && passed
}
const refused = await limited?.end().catch((error: Error) => [`be asked what it refused (${error.message})`]) ?? []
for (const line of refused) say(`deploy/redis/users.acl does not let the service: ${line}`)
await redis.stop().catch((error: Error) => say(`the tests' Redis doesn't stop: ${error.message}`))
process.exit(passed && !interrupted && refused.length === 0 ? 0 : 1)
