import { execFile } from 'node:child_process'
import { access, lstat, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** A redis-server with a suitable version. */
export interface RedisBinary extends Candidate { version: string }

/** `.cache/redis` in the project; src/ and dist/ are at the same depth, so the path works from both. */
export const defaultCacheDir = fileURLToPath(new URL('../../.cache/redis', import.meta.url))

const remedy = 'install Redis 7.0 or newer (or Valkey), or set REDIS_SERVER_BIN to a redis-server, or REDIS_URL to ' +
  'a Redis that runs'

/**
 * The redis-server to embed: `serverBin` if given, else the first that is new enough of PATH, the cache, apt (into the
 * cache), brew.
 * `log` gets a line for each one passed over and for each slow step.
 * Throws an EmbeddedError if `serverBin` is unsuitable, or none can be found.
 */
export async function findRedisServer (
  opts: { serverBin?: string | undefined, cacheDir: string, log: LogLine }
): Promise<RedisBinary> {
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
  if (version instanceof Error) {
    throw new EmbeddedError(`REDIS_SERVER_BIN=${serverBin} cannot be used (${version.message}): ${remedy}`)
  }
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
  if (make === 'Redis' && Number(major) < 7) {
    return new Error(`it is Redis ${version}, and 7.0 is the oldest that will do`)
  }
  return version
}

const minute = 60_000

/** The redis-server in the cache, if there is one. */
async function cachedRedis (cacheDir: string): Promise<Candidate[]> {
  const path = join(cacheDir, 'usr/bin/redis-server')
  if (await stat(path).catch(() => undefined) === undefined) return []
  const libraries = await readdir(join(cacheDir, 'usr/lib')).catch(() => [])
  const multiarch = libraries.find((name) => name.includes('-linux-'))
  // Without that directory, the system had all libraries already.
  return multiarch === undefined ? [{ path }] : [{ path, libraryPath: join(cacheDir, 'usr/lib', multiarch) }]
}

/**
 * Debian's redis-server unpacked into `cacheDir`: not installed, no root, nothing written elsewhere.
 * Empty without apt, or if apt fails (then `log` has the reason).
 */
async function aptRedis (cacheDir: string, log: LogLine): Promise<Candidate[]> {
  if (await which('apt-get') === undefined || await which('dpkg-deb') === undefined) return []
  log(`getting redis-server with apt into ${cacheDir} (nothing is installed on the system)`)
  try {
    await fill(cacheDir)
    return await cachedRedis(cacheDir)
  } catch (error) {
    log(`apt failed: ${complaint(error)}`)
    return []
  }
}

async function fill (cacheDir: string): Promise<void> {
  await mkdir(dirname(cacheDir), { recursive: true })
  await removeAbandoned(cacheDir)
  const temp = await mkdtemp(`${cacheDir}.tmp-`)
  try {
    const unsuitable = await inode(cacheDir)
    await unpack(temp)
    // Only the one that was unsuitable makes room: another is the good one of a concurrent run, and in use. If apt
    // failed, it stays too: perhaps the machine could only not run it just then.
    if (unsuitable !== undefined && await inode(cacheDir) === unsuitable) {
      await rename(cacheDir, join(temp, 'unsuitable')).catch(ignore('ENOENT'))
    }
    // The cache is complete or missing, because a rename is atomic. If a concurrent run was faster, its cache is as
    // good.
    await rename(join(temp, 'root'), cacheDir).catch(ignore('ENOTEMPTY', 'EEXIST'))
  } finally {
    await rm(temp, { recursive: true, force: true })
  }
}

/** Runs apt with its lists, archives and locks under `temp`; only the list of installed packages is the system's. */
async function unpack (temp: string): Promise<void> {
  const archives = join(temp, 'cache/archives')
  await mkdir(join(temp, 'state/lists/partial'), { recursive: true })
  await mkdir(join(archives, 'partial'), { recursive: true })
  const config = join(temp, 'apt.conf')
  await writeFile(config, aptConfig(temp))
  const apt = async (
    ...args: string[]
  ) => run('env', ['LC_ALL=C', 'apt-get', '-c', config, '-qq', ...args], { timeout: 5 * minute })
  // One broken source among the user's makes update fail even if Debian's own lists arrived; install fails if they
  // didn't.
  await apt('update').catch(() => undefined)
  // redis-tools contains the program that redis-server links to; --reinstall downloads both even if the system has one.
  await apt(
    'install', '--yes', '--no-install-recommends', '--download-only', '--reinstall', 'redis-server', 'redis-tools'
  )
  for (const name of await readdir(archives)) {
    if (name.endsWith('.deb')) {
      await run('dpkg-deb', ['-x', join(archives, name), join(temp, 'root')], { timeout: minute })
    }
  }
}

/** Passed with -c because that file is read last: so it can clear the hooks of the system's own settings. */
function aptConfig (temp: string): string {
  return `Dir::State "${temp}/state";
Dir::State::status "/var/lib/dpkg/status";
Dir::Cache "${temp}/cache";
Dir::Log "${temp}";
Debug::NoLocking "1";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Install-Pkgs;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
`
}

/** Removes the directories that killed runs left beside the cache: so old a directory belongs to no running one. */
async function removeAbandoned (cacheDir: string): Promise<void> {
  const parent = dirname(cacheDir)
  for (const name of await readdir(parent)) {
    if (!name.startsWith(`${basename(cacheDir)}.tmp-`)) continue
    const { mtimeMs } = await stat(join(parent, name)).catch(() => ({ mtimeMs: Date.now() }))
    if (Date.now() - mtimeMs > 30 * minute) await rm(join(parent, name), { recursive: true, force: true })
  }
}

async function inode (path: string): Promise<number | undefined> {
  return (await lstat(path).catch(() => undefined))?.ino
}

function ignore (...codes: string[]): (error: NodeJS.ErrnoException) => void {
  return error => { if (!codes.includes(error.code ?? '')) throw error }
}

/**
 * Homebrew's redis, which is installed if missing. Empty without brew, or if brew fails (then `log` has the reason).
 */
async function brewRedis (log: LogLine): Promise<Candidate[]> {
  if (await which('brew') === undefined) return []
  try {
    const prefix = await run('brew', ['--prefix', 'redis'])
    const path = join(prefix.stdout.trimEnd(), 'bin/redis-server')
    if (await access(path).then(() => false, () => true)) {
      log('installing redis with brew')
      await run('brew', ['install', '--quiet', 'redis'])
    }
    return [{ path }]
  } catch (error) {
    log(`brew failed: ${complaint(error)}`)
    return []
  }
}

export const run = promisify(execFile)

/** A redis-server to try; `libraryPath` is its LD_LIBRARY_PATH, if its libraries are not the system's. */
export interface Candidate { path: string, libraryPath?: string }
type LogLine = (line: string) => void

/** An error whose message is one line for the person who started the service. */
export class EmbeddedError extends Error {
  override name = 'EmbeddedError'
}

/** The absolute path of a program given by name or path. The shell looks it up, so this file needn't read PATH. */
export async function which (program: string): Promise<string | undefined> {
  const found = await run('/bin/sh', ['-c', 'command -v "$1"', 'sh', program]).catch(() => undefined)
  return found === undefined ? undefined : resolve(found.stdout.trimEnd())
}

/**
 * Arguments for `env`, which adds to the inherited environment. LC_ALL: Redis refuses to start under a locale that
 * isn't installed.
 */
export function withEnvironment ({ path, libraryPath }: Candidate, args: readonly string[]): string[] {
  return ['LANG=C', 'LC_ALL=C', ...(libraryPath === undefined ? [] : [`LD_LIBRARY_PATH=${libraryPath}`]), path, ...args]
}

/** The last line that a failed program printed. */
function complaint (error: unknown): string {
  const { stderr, message } = error as Error & { stderr?: string }
  return (stderr || message).trimEnd().split('\n').at(-1) ?? message
}
