import { spawnSync } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { EmbeddedError } from './programs.ts'

/** O_EXLOCK: open(2) also takes flock's exclusive lock. macOS has it, but Node's constants lack it. */
const O_EXLOCK = 0x20

/**
 * Takes an exclusive lock on `file` (made if missing, never removed). Returns the descriptor that holds it, or undefined if another
 * process does.
 *
 * It is flock(2)'s, so it belongs to the open file and not to a path or a process id: the kernel releases it when the last descriptor
 * closes, kill -9 included, and there are no stale locks to detect, to remove, or to race for. A child that inherits the descriptor
 * holds the lock as long as it lives.
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

/** Node has no flock, but Linux has a program: it locks the open file that it inherits, and the lock stays ours when it ends. */
function openThenLock (file: string): number | undefined {
  const fd = openSync(file, 'a', 0o600)
  const { status, error, stderr } = spawnSync('flock', ['-n', '3'], { stdio: ['ignore', 'ignore', 'pipe', fd] })
  if (status === 0) return fd
  closeSync(fd)
  if (status === 1 && stderr.length === 0) return undefined
  throw new EmbeddedError(`cannot lock ${file}: flock ${error === undefined ? stderr.toString().trim() : 'is missing (it is in util-linux)'}`)
}
