import { fileURLToPath } from 'node:url'
import { aptRedis, cachedRedis } from './apt.ts'
import { brewRedis } from './brew.ts'
import { EmbeddedError, complaint, run, which, withEnvironment, type Candidate, type LogLine } from './programs.ts'

/** A redis-server with a suitable version. */
export interface RedisBinary extends Candidate { version: string }

/** `.cache/redis` in the project; src/ and dist/ are at the same depth, so the path works from both. */
export const defaultCacheDir = fileURLToPath(new URL('../../.cache/redis', import.meta.url))

const remedy = 'install Redis 7.0 or newer (or Valkey), or set REDIS_SERVER_BIN to a redis-server, or REDIS_URL to a Redis that runs'

/**
 * The redis-server to embed: `serverBin` if given, else the first that is new enough of PATH, the cache, apt (into the cache), brew.
 * `log` gets a line for each one passed over and for each slow step.
 * Throws an EmbeddedError if `serverBin` is unsuitable, or none can be found.
 */
export async function findRedisServer (opts: { serverBin?: string | undefined, cacheDir: string, log: LogLine }): Promise<RedisBinary> {
  const { serverBin, cacheDir, log } = opts
  if (serverBin !== undefined) return await named(serverBin)
  for (const rung of [onPath, () => cachedRedis(cacheDir), () => aptRedis(cacheDir, log), () => brewRedis(log)]) {
    for (const candidate of await rung()) {
      const version = await acceptedVersion(candidate)
      if (!(version instanceof Error)) return { ...candidate, version }
      log(`passing over ${candidate.path}: ${version.message}`)
    }
  }
  throw new EmbeddedError(`There is no redis-server to use: ${remedy}`)
}

async function named (serverBin: string): Promise<RedisBinary> {
  const path = await which(serverBin) ?? serverBin
  const version = await acceptedVersion({ path })
  if (version instanceof Error) throw new EmbeddedError(`REDIS_SERVER_BIN=${serverBin} cannot be used (${version.message}): ${remedy}`)
  return { path, version }
}

async function onPath (): Promise<Candidate[]> {
  const found = [await which('valkey-server'), await which('redis-server')]
  return found.filter((path) => path !== undefined).map((path) => ({ path }))
}

/** Its version, or an Error that says why it is unsuitable. */
async function acceptedVersion (candidate: Candidate): Promise<string | Error> {
  const answer = await run('env', withEnvironment(candidate, ['--version']), { timeout: 30_000 })
    .catch((error: unknown) => new Error(complaint(error)))
  if (answer instanceof Error) return answer
  const [, make, version, major] = /^(Redis|Valkey) server v=((\d+)\S*)/.exec(answer.stdout) ?? []
  if (make === undefined || version === undefined) return new Error('its --version is not that of Redis or Valkey')
  if (make === 'Redis' && Number(major) < 7) return new Error(`it is Redis ${version}, and 7.0 is the oldest that will do`)
  return version
}
