import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { which } from '../../src/embedded/binary.ts'
import { cpuOf } from '../cpu.ts'
import { startDaemon } from './daemon.ts'
import { NotInstalled } from './stores.ts'
import type { Store } from './stores.ts'

/** A nats-server with JetStream and default settings. @throws {NotInstalled} */
export async function startNats (): Promise<Store> {
  // Debian installs it in a folder that isn't on every PATH.
  const program = await which('nats-server') ?? await which('/usr/sbin/nats-server')
  if (program === undefined) throw new NotInstalled('there is no nats-server on PATH or in /usr/sbin')
  const dir = await mkdtemp(join(tmpdir(), 'handoff-bench-nats-'))
  const server = await startDaemon(program, ['-a', '127.0.0.1', '-p', '-1', '-js', '-sd', dir], /client connections on (\S+)[^]*Server is ready/)
  const { stdout } = await promisify(execFile)(program, ['--version'])
  return {
    url: `nats://${server.said[1]}`,
    name: 'NATS',
    version: /[\d.]+/.exec(stdout)?.[0] ?? '',
    cpu: () => cpuOf(server.pid),
    // A work queue deletes what was acknowledged.
    clean: () => Promise.resolve(),
    async stop () {
      await server.stop('SIGTERM')
      await rm(dir, { recursive: true })
    },
  }
}
