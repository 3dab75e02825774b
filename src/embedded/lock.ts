import { spawnSync } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { EmbeddedError } from './programs.ts'

/** open(2)'s "take flock's exclusive lock as well", which macOS has and Node's constants don't list. */
const O_EXLOCK = 0x20

/**
 * Takes an exclusive lock on `file` (made if missing, never removed): the descriptor that holds it, or undefined while
 * somebody else does.
 *
 * It is flock(2)'s, so it belongs to the open file and not to a path or a process id: the kernel lets go of it when the
 * last descriptor closes, kill -9 included, and there is no stale lock to recognise, to remove, or to lose a race over.
 * A child that is handed the descriptor holds the lock for as long as it lives.
 */
export function tryLock (file: string): number | undefined {
  return process.platform === 'darwin' ? openLocked(file) : openThenLock(file)
}

function openLocked (file: string): number | undefined {
  try {
    return openSync(file, constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK | O_EXLOCK, 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return undefined
    throw error
  }
}

/** Node has no flock, Linux has a program for it: it locks the open file it is handed, and that stays ours when it ends. */
function openThenLock (file: string): number | undefined {
  const fd = openSync(file, 'a', 0o600)
  const { status, error, stderr } = spawnSync('flock', ['-n', '3'], { stdio: ['ignore', 'ignore', 'pipe', fd] })
  if (status === 0) return fd
  closeSync(fd)
  if (status === 1 && stderr.length === 0) return undefined
  throw new EmbeddedError(`cannot lock ${file}: flock ${error === undefined ? stderr.toString().trim() : 'is missing (it is in util-linux)'}`)
}
