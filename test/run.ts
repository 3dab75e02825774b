/**
 * `npm test`: brings up a Redis (REDIS_URL, else REDIS_SERVER_BIN, else a container if an engine answers, else as `npm start` does), runs the
 * test files with tap, and stops it. The tested service uses a Redis user with exactly the rights of deploy/redis/users.acl; the run fails if
 * Redis refuses that user anything.
 *
 * A file's name says which run it is part of (docs/testing.md): `.smoke` before `.test` is `--smoke` and `--all`, `.long` is `--all` alone.
 * Files share processes (together.ts), which costs less than one each. Named files run in full, one after the other. Where one process is enough,
 * its TAP goes to stdout as it is, because tap's command alone takes longer to start than most files take. `--jobs` says how many processes there
 * are at once; other options are those of tap's command. With TEST_COSTS, the path of a file, what each subtest took is written there.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defaultCacheDir, findRedisServer } from '../src/embedded/binary.ts'
import { startRedis } from '../src/embedded/server.ts'
import { limitedUser } from './helpers/acl.ts'

const here = fileURLToPath(new URL('.', import.meta.url))
const together = join(here, 'together.ts')
/** A file's name says which runs it is part of. */
const inRun = { quick: /(?<!\.smoke|\.long)\.test\.ts$/, smoke: /\.smoke\.test\.ts$/, long: /\.long\.test\.ts$/, all: /\.test\.ts$/ }
/** In full these use the whole machine, so nothing runs beside them. */
const usesAll = /^(?:faults.*\.long|bench)\./
const say = (line: string) => { process.stderr.write(`test: ${line}\n`) }

/** Where engines listen. Asking them takes a second, so that is only done where one may be. */
const engines = ['/var/run/docker.sock', `${process.env.XDG_RUNTIME_DIR}/docker.sock`, join(homedir(), '.docker/run/docker.sock'),
  join(homedir(), '.testcontainers.properties')]

async function inContainer () {
  if (process.env.DOCKER_HOST === undefined && !engines.some(place => existsSync(place))) return
  try {
    const { GenericContainer } = await import('testcontainers')
    const container = await new GenericContainer('redis:7').withExposedPorts(6379).start()
    return { url: `redis://${container.getHost()}:${container.getMappedPort(6379)}`, from: 'a container', stop: () => container.stop() }
  } catch (error) {
    say(`no container engine (${(error as Error).message.split('\n')[0]}); starting a redis-server instead`)
  }
}

async function byLadder () {
  const binary = await findRedisServer({ serverBin: process.env.REDIS_SERVER_BIN, cacheDir: defaultCacheDir, log: say })
  const dataDir = await mkdtemp(join(tmpdir(), 'handoff-test-'))
  // Nobody reads its data again, and to write each command to a file costs it a quarter of its time.
  const redis = await startRedis({ binary, dataDir, log: { info: say, warn: say, error: say }, extra: ['--appendonly', 'no', '--save', ''] })
  const stop = () => redis.stop().then(() => rm(dataDir, { recursive: true }))
  return { url: redis.socket, from: `redis-server ${binary.version}`, stop }
}

async function findRedis () {
  if (process.env.REDIS_URL) return { url: process.env.REDIS_URL, from: 'REDIS_URL', stop: async () => {} }
  // REDIS_SERVER_BIN: the tests' own servers use it too.
  return (process.env.REDIS_SERVER_BIN ? undefined : await inContainer()) ?? await byLadder()
}

/**
 * Which processes run these files: as many as run at once share the quick ones, the largest first; small folders of slow ones share one; long files have one each,
 * and so have slow ones outside folders. Each process reads the whole service and its packages, which costs as much as the tests of five files.
 */
function processesOf (files: string[]): string[][] {
  const isAlone = (path: string) => inRun.long.test(path) || (inRun.smoke.test(path) && dirname(path) === '.')
  const shareOf = (few: string[], max: number) => {
    const folders = [...new Set(few.map(path => dirname(path)))].map(folder => few.filter(path => dirname(path) === folder))
    const shared: string[][] = []
    for (const folder of folders.sort((a, b) => b.length - a.length)) {
      const other = shared.find(({ length }) => length + folder.length <= max)
      if (other !== undefined) other.push(...folder)
      else for (let at = 0; at < folder.length; at += max) shared.push(folder.slice(at, at + max))
    }
    return shared
  }
  const sizeOf = (path: string) => statSync(join(here, path)).size
  const quickFiles = files.filter(path => inRun.quick.test(path)).sort((a, b) => sizeOf(b) - sizeOf(a))
  const quick = Array.from({ length: Math.min(jobs, Math.ceil(quickFiles.length / 10)) }, () => quickFiles)
  const smoke = shareOf(files.filter(path => inRun.smoke.test(path) && !isAlone(path)), 3)
  const each = files.filter(isAlone).map(path => [path])
  const usesMachine = ([path]: string[]) => usesAll.test(path!)
  const others = each.filter(one => !usesMachine(one))
  // Nothing else runs beside what uses the whole machine, so it comes first. Then what takes longest: in full that is the smokes.
  return [...each.filter(usesMachine), ...run === 'all' ? [...smoke, ...others] : [...others, ...smoke], ...quick].filter(({ length }) => length > 0)
}

const [first = '', ...rest] = process.argv.slice(2)
const run = first === '--all' ? 'all' : first === '--smoke' ? 'smoke' : 'quick'
const given = first === `--${run}` ? rest : process.argv.slice(2)
const named = given.filter(arg => !arg.startsWith('-')).map(path => relative('test', path))
const options = given.filter(arg => arg.startsWith('-') && !arg.startsWith('--jobs='))
const jobs = Number(given.find(arg => arg.startsWith('--jobs='))?.slice('--jobs='.length) ?? (named.length > 0 ? 1 : run === 'quick' ? 6 : 4))

const redis = await findRedis()
const limited = await limitedUser(redis.url).catch((error: Error) => say(`the service is tested with all rights: no user could be made (${error.message})`))
say(`Redis from ${redis.from}`)
const files = named.length > 0 ? named : readdirSync(here, { recursive: true, encoding: 'utf8' }).filter(path => inRun[run].test(path) && !path.includes('node_modules')).sort()
const processes = processesOf(files)
const tsx = '--import=tsx'
const [command, ...args] = named.length > 0 && processes.length === 1 && given.length === named.length
  ? [process.execPath, tsx, together, ...files]
  : ['tap', 'run', '--timeout=0', `--node-arg=${tsx}`, ...options, together]
const tap = spawn(command!, args, {
  stdio: 'inherit',
  env: {
    ...process.env,
    REDIS_URL: redis.url,
    ...limited && { REDIS_LIMITED_URL: limited.url },
    ...named.length === 0 && { TEST_RUN: run },
    TEST_PROCESSES: JSON.stringify({ processes, jobs, alone: run === 'all' ? files.filter(path => usesAll.test(path)) : [] }),
  },
})
// On Ctrl-C tap ends by itself, and this process stays to stop Redis.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => tap.kill('SIGTERM'))
const [code, signal] = await once(tap, 'exit') as [number | null, string | null]
if (code !== 0) say(`tap ended with ${signal ?? code}`)
const refused = await limited?.end().catch((error: Error) => [`be asked what it refused (${error.message})`]) ?? []
for (const line of refused) say(`deploy/redis/users.acl does not let the service: ${line}`)
await redis.stop().catch((error: Error) => say(`the tests' Redis doesn't stop: ${error.message}`))
process.exit(code === 0 && refused.length === 0 ? 0 : 1)
