import { constants } from 'node:fs'
import { lstat, mkdir, mkdtemp, open, readdir, realpath, rm, symlink } from 'node:fs/promises'
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

/**
 * What a service writes into its DATA_DIR, of any version: Redis's files, locks, keys, secrets. Redis sets the mode of
 * its socket itself.
 */
const ours =
  /^(appendonlydir|dump\.rdb|temp-.*|redis\.log|(redis|service)\.lock|(agent|approver)\.key|webhook\.secret|files)$/

/**
 * Takes away what other users may do with what is in the directory: an earlier version or a copy may have left it
 * readable. An empty directory gets mode 0700. One that has other things in it keeps its mode, because it may be
 * a user's home. Only what belongs to this user is changed, and nothing here stops a start.
 * @param warn gets a line for each thing that stays open to others
 */
export async function closeToOthers (path: string, warn: (line: string) => void): Promise<void> {
  const inside = await readdir(path).catch(() => undefined)
  if (inside === undefined) return
  if (inside.length === 0) await takeFromOthers(path)
  for (const name of inside.filter(name => ours.test(name))) {
    const file = join(path, name)
    if (!await takeFromOthers(file)) {
      warn(`${file}: other users may read it, and it isn't this user's to change: chown or remove it`)
    }
  }
  // Who can write to a directory can replace the files in it, unless it has the sticky bit, as /tmp has.
  const { mode } = await lstat(path)
  if ((mode & 0o022) !== 0 && (mode & 0o1000) === 0) {
    warn(`DATA_DIR ${path}: other users can write to it, and replace keys and data: chmod 700 ${path}`)
  }
}

/**
 * Through a descriptor and without following a link, so that it can't be changed for another file in between.
 * @returns whether others have no rights now
 */
async function takeFromOthers (file: string): Promise<boolean> {
  // Not there any more: Redis removes its temporary files.
  const isPrivate = async () => await lstat(file).then(({ mode }) => (mode & 0o077) === 0, () => true)
  if (await isPrivate()) return true
  const handle =
    await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => undefined)
  try {
    const { mode, uid } = await handle?.stat() ?? {}
    if (mode === undefined || uid !== process.geteuid?.()) return false
    await handle!.chmod(mode & 0o700)
    return true
  } catch {
    return false
  } finally {
    await handle?.close()
  }
}
