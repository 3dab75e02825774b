import { lstat, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { complaint, run, which, type Candidate, type LogLine } from './programs.ts'

const minute = 60_000

/** The redis-server in the cache, if there is one. */
export async function cachedRedis (cacheDir: string): Promise<Candidate[]> {
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
export async function aptRedis (cacheDir: string, log: LogLine): Promise<Candidate[]> {
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
    // Only the one that was unsuitable makes room: another is the good one of a concurrent run, and in use. If apt failed, it stays too: perhaps
    // the machine could only not run it just then.
    if (unsuitable !== undefined && await inode(cacheDir) === unsuitable) await rename(cacheDir, join(temp, 'unsuitable')).catch(ignore('ENOENT'))
    // The cache is complete or missing, because a rename is atomic. If a concurrent run was faster, its cache is as good.
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
  const apt = async (...args: string[]) => run('env', ['LC_ALL=C', 'apt-get', '-c', config, '-qq', ...args], { timeout: 5 * minute })
  // One broken source among the user's makes update fail even if Debian's own lists arrived; install fails if they didn't.
  await apt('update').catch(() => undefined)
  // redis-tools contains the program that redis-server links to; --reinstall downloads both even if the system has one.
  await apt('install', '--yes', '--no-install-recommends', '--download-only', '--reinstall', 'redis-server', 'redis-tools')
  for (const name of await readdir(archives)) {
    if (name.endsWith('.deb')) await run('dpkg-deb', ['-x', join(archives, name), join(temp, 'root')], { timeout: minute })
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
