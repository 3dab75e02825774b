import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chown, mkdtemp, readdir, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { which } from '../../src/embedded/binary.ts'
import { startDaemon } from './daemon.ts'
import { NotInstalled } from './stores.ts'
import type { Store } from './stores.ts'
import { cpuOfTree } from './tree-cpu.ts'

const run = promisify(execFile)
/** Where Debian installs its versions; none is on PATH. */
const debian = '/usr/lib/postgresql'

/** PostgreSQL as `initdb` sets it up, on a unix socket (a little cheaper than TCP, which the other stores use). @throws {NotInstalled} */
export async function startPostgres (): Promise<Store> {
  const programs = await findPrograms()
  const dir = await mkdtemp(join(tmpdir(), 'handoff-bench-postgres-'))
  const as = await unprivileged(dir)
  const data = join(dir, 'data')
  await run(join(programs, 'initdb'), ['-D', data, '-U', 'postgres', '--auth=trust', '--no-locale', '--encoding=UTF8'], as)
  const server = await startDaemon(join(programs, 'postgres'), ['-D', data, '-c', 'listen_addresses=', '-c', `unix_socket_directories=${dir}`],
    /ready to accept connections/, as)
  const { stdout } = await run(join(programs, 'postgres'), ['--version'])
  return {
    url: `postgres://postgres@/postgres?host=${encodeURIComponent(dir)}`,
    name: 'PostgreSQL',
    version: /[\d.]+/.exec(stdout)?.[0] ?? '',
    cpu: () => cpuOfTree(server.pid),
    async clean () {
      await run(join(programs, 'psql'), ['-h', dir, '-U', 'postgres', '-v', 'ON_ERROR_STOP=1', '-c', 'TRUNCATE pgboss.job'])
    },
    async stop () {
      // SIGINT is PostgreSQL's fast shutdown.
      await server.stop('SIGINT')
      await rm(dir, { recursive: true })
    },
  }
}

/** The directory with the newest PostgreSQL's programs. */
async function findPrograms (): Promise<string> {
  // The CPU time of its processes is read there.
  if (!existsSync('/proc/self/stat')) throw new NotInstalled('PostgreSQL’s processes can only be counted where there is a /proc')
  const onPath = await which('initdb')
  // The other programs may not be where a link points.
  if (onPath !== undefined) return dirname(await realpath(onPath))
  const versions = (existsSync(debian) ? await readdir(debian) : []).map(Number).filter(Number.isFinite)
  if (versions.length === 0) throw new NotInstalled('there is no initdb on PATH and no PostgreSQL of Debian’s')
  return join(debian, String(Math.max(...versions)), 'bin')
}

/** PostgreSQL refuses to run as root. Then its own user runs it and owns the directory. */
async function unprivileged (dir: string): Promise<{ uid?: number, gid?: number }> {
  if (process.getuid?.() !== 0) return {}
  const id = (which: '-u' | '-g') => Number(execFileSync('id', [which, 'postgres'], { encoding: 'utf8' }))
  const user = { uid: id('-u'), gid: id('-g') }
  await chown(dir, user.uid, user.gid)
  return user
}
