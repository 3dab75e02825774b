import { mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { defaultCacheDir, findRedisServer } from '../../src/embedded/binary.ts'
import { scratchDir } from '../helpers/processes.ts'

const real = await findRedisServer({ cacheDir: defaultCacheDir, log: (line) => t.comment(line) })
const hasApt = process.platform === 'linux' && whereIs('apt-get') !== undefined && whereIs('dpkg-deb') !== undefined

function whereIs (program: string): string | undefined {
  try {
    return execFileSync('/bin/sh', ['-c', 'command -v "$1"', 'sh', program], { encoding: 'utf8' }).trim()
  } catch {
    return undefined
  }
}

/** A PATH with only these programs of the system, and files written here. */
async function onlyPath (t: Test, programs: string[], own: Record<string, string> = {}): Promise<string> {
  const dir = await scratchDir(t)
  for (const program of programs) await symlink(whereIs(program) ?? '', join(dir, program))
  for (const [name, script] of Object.entries(own)) await writeFile(join(dir, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  const before = process.env.PATH
  process.env.PATH = dir
  t.teardown(() => { process.env.PATH = before })
  return dir
}

/** A script that runs the real server, wherever its libraries are. */
const theReal = `exec env LD_LIBRARY_PATH='${real.libraryPath ?? ''}' '${real.path}' "$@"`
const says = (line: string) => `echo '${line}'`

/** The result of findRedisServer or its error's message, and its log. */
async function find (t: Test, opts: { serverBin?: string, cacheDir?: string } = {}) {
  const lines: string[] = []
  const cacheDir = opts.cacheDir ?? join(await scratchDir(t), 'cache/redis')
  const found = await findRedisServer({ ...opts, cacheDir, log: (line) => { lines.push(line) } })
    .catch((error: Error) => ({ path: undefined, version: undefined, error: `${error.name}: ${error.message}` }))
  return { ...found, lines, cacheDir }
}

t.test('a server on PATH is used, Valkey first', async (t) => {
  const dir = await onlyPath(t, ['env'], { 'redis-server': theReal })
  t.match(await find(t), { path: join(dir, 'redis-server'), version: real.version, lines: [] })
  await writeFile(join(dir, 'valkey-server'), `#!/bin/sh\n${says('Valkey server v=8.1.1 sha=00000000:0 malloc=jemalloc')}\n`, { mode: 0o755 })
  t.match(await find(t), { path: join(dir, 'valkey-server'), version: '8.1.1', lines: [] })
})

t.test('an unsuitable server is passed over, and the log says why', async (t) => {
  const dir = await onlyPath(t, ['env'], {
    'valkey-server': 'echo "cannot find libvalkey" >&2; exit 127',
    'redis-server': says('Redis server v=6.2.14 sha=00000000:0 malloc=jemalloc')
  })
  const { error, lines } = await find(t) as { error?: string, lines: string[] }
  t.match(error, /^EmbeddedError: There is no redis-server to use: install Redis 7\.0 or newer \(or Valkey\), or set REDIS_SERVER_BIN[^\n]*$/)
  t.same(lines, [
    `passing over ${dir}/valkey-server: cannot find libvalkey`,
    `passing over ${dir}/redis-server: it is Redis 6.2.14, and 7.0 is the oldest that will do`
  ])
  await writeFile(join(dir, 'redis-server'), `#!/bin/sh\n${says('Some server v=9.0.0')}\n`)
  t.match((await find(t)).lines[1], /its --version is not that of Redis or Valkey/)
})

t.test('REDIS_SERVER_BIN is the only one looked at', async (t) => {
  const dir = await onlyPath(t, ['env'], { 'redis-server': theReal, mine: theReal, old: says('Redis server v=6.0.16 sha=0') })
  t.match(await find(t, { serverBin: join(dir, 'mine') }), { path: join(dir, 'mine'), version: real.version })
  t.match(await find(t, { serverBin: 'mine' }), { path: join(dir, 'mine') }, 'a name is looked up on PATH')
  t.match(await find(t, { serverBin: join(dir, 'old') }), { error: /^EmbeddedError: REDIS_SERVER_BIN=.*\/old cannot be used \(it is Redis 6\.0\.16, [^\n]*$/ })
  t.match(await find(t, { serverBin: join(dir, 'none') }), { error: /^EmbeddedError: REDIS_SERVER_BIN=.*\/none cannot be used \(.*No such file[^\n]*$/ })
})

t.test('apt fills the cache completely or not at all, even when several fill it, and then the cache is used', { skip: !hasApt }, async (t) => {
  // apt runs many other programs, so PATH keeps all except an installed redis-server.
  const others = (await readdir('/usr/bin')).filter((name) => /^[\w.+-]+$/.test(name) && !/^(redis|valkey)-/.test(name))
  const path = await onlyPath(t, [])
  for (const name of others) await symlink(join('/usr/bin', name), join(path, name))
  const cacheDir = join(await scratchDir(t), 'cache/redis')
  await mkdir(join(cacheDir, 'usr/bin'), { recursive: true }) // a broken cache, which must be replaced
  await writeFile(join(cacheDir, 'usr/bin/redis-server'), '')
  const all = await Promise.all([find(t, { cacheDir }), find(t, { cacheDir })])
  for (const found of all) {
    t.equal(found.path, join(cacheDir, 'usr/bin/redis-server'), found.lines.join('\n'))
    t.match(found.lines, [/^passing over .*redis-server: /, /^getting redis-server with apt into /])
  }
  t.same(await readdir(join(cacheDir, '..')), ['redis'], 'nothing else is left')
  await rm(join(path, 'apt-get'))
  t.match(await find(t, { cacheDir }), { path: join(cacheDir, 'usr/bin/redis-server'), lines: [] })
})

t.test('many that fill a broken cache at once all find a server in it', async (t) => {
  await onlyPath(t, ['env', 'mkdir', 'touch', 'sleep', 'cp', 'dirname'], {
    'the-real': theReal,
    // $2 is the configuration's path: the archives are beside it.
    'apt-get': 'case "$*" in *download-only*) touch "$(dirname "$2")/cache/archives/redis.deb"; sleep "1.$$";; esac',
    'dpkg-deb': 'mkdir -p "$3/usr/bin" && cp "$(command -v the-real)" "$3/usr/bin/redis-server"',
  })
  for (let round = 0; round < 3; round++) {
    const cacheDir = join(await scratchDir(t), 'cache/redis')
    await mkdir(join(cacheDir, 'usr/bin'), { recursive: true })
    await writeFile(join(cacheDir, 'usr/bin/redis-server'), '')
    const all = await Promise.all(Array.from({ length: 16 }, () => find(t, { cacheDir })))
    for (const { path, lines } of all) t.equal(path, join(cacheDir, 'usr/bin/redis-server'), lines.join('\n'))
    t.same(await readdir(join(cacheDir, '..')), ['redis'], 'nothing else is left')
  }
})

t.test('a failing apt leaves no cache, and its error is logged', async (t) => {
  await onlyPath(t, ['env'], { 'apt-get': 'echo "E: Unable to locate package redis-server" >&2; exit 100', 'dpkg-deb': 'exit 1' })
  const { lines, cacheDir } = await find(t)
  t.match(lines, [/^getting /, 'apt failed: E: Unable to locate package redis-server'])
  t.same(await readdir(join(cacheDir, '..')), [])
  await mkdir(join(cacheDir, 'usr/bin'), { recursive: true })
  await writeFile(join(cacheDir, 'usr/bin/redis-server'), 'what another service may be using')
  t.match((await find(t, { cacheDir })).lines, [/^passing over /, /^getting /, /^apt failed/])
  t.same(await readdir(join(cacheDir, 'usr/bin')), ['redis-server'], 'nor does it take one away')
})

t.test('brew’s server is used, and installed if it is missing', async (t) => {
  const prefix = await scratchDir(t)
  const install = `mkdir -p '${prefix}/bin' && ln -s "$(command -v the-real)" '${prefix}/bin/redis-server'`
  await onlyPath(t, ['env', 'mkdir', 'ln'], {
    'the-real': theReal,
    brew: `case "$1" in --prefix) echo '${prefix}';; install) ${install};; esac`
  })
  t.match(await find(t), { path: join(prefix, 'bin/redis-server'), lines: ['installing redis with brew'] })
  t.match(await find(t), { path: join(prefix, 'bin/redis-server'), lines: [] })
})
