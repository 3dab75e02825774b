import { mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A unix socket's path may have 104 bytes on macOS and 108 on Linux, its terminating zero included. */
const socketPathLimit = 103

/** `path`: absolute; `socket`: the path to connect to, short enough; `close` removes the link that shortens it. */
export interface DataDir { path: string, socket: string, close: () => Promise<void> }

/** Makes the directory (mode 0700) unless it is there. */
export async function openDataDir (dataDir: string): Promise<DataDir> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const path = await realpath(dataDir)
  const socket = join(path, 'redis.sock')
  if (Buffer.byteLength(socket) <= socketPathLimit) return { path, socket, close: async () => {} }
  // The socket stays where the next start looks for it. This process reaches it by a short link of its own.
  const alias = await mkdtemp(join(tmpdir(), 'handoff-'))
  await symlink(path, join(alias, 'data'))
  return {
    path,
    socket: join(alias, 'data', 'redis.sock'),
    close: () => rm(alias, { recursive: true, force: true })
  }
}
