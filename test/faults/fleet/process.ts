import { spawn, type ChildProcess } from 'node:child_process'

/** Where a process runs: an address in a network namespace (net.ts), or the loopback address of this machine. */
export interface Host { address: string, namespace?: string | undefined }

export const loopback: Host = { address: '127.0.0.1' }

/** A program of a fleet. Signals go to the program itself, and to no other process once it has ended. */
export interface Running {
  pid: number
  child: ChildProcess
  /** Settles when it has ended: with the exit code, the signal's name, or why it never started. */
  ended: Promise<number | string>
  /** SIGKILL, which ends a paused program too; resolves when it has ended. */
  kill (): Promise<void>
  /** SIGTERM, and SIGKILL after so many ms; resolves when it has ended. A paused program is resumed, or it couldn't end. */
  stop (withinMs?: number): Promise<void>
  /** SIGSTOP: its connections stay open, but nothing answers. */
  pause (): void
  /** SIGCONT */
  resume (): void
}

/** @param env its whole environment; by default this process's own */
export interface RunOptions { cwd?: string, env?: NodeJS.ProcessEnv, stdio?: Array<'ignore' | 'pipe' | 'inherit' | number> }

/**
 * Runs a program on a host, outside the terminal's process group, so that only the scenario ends it. On Linux the kernel ends it with
 * this process, however that ends (PR_SET_PDEATHSIG): a killed run leaves none behind.
 */
export function run (host: Host, program: string, args: readonly string[], options: RunOptions = {}): Running {
  const [first, ...rest] = [...wrapper(host), program, ...args] as [string, ...string[]]
  const child = spawn(first, rest, { detached: true, stdio: ['ignore', 'ignore', 'ignore'], ...options })
  const ended = new Promise<number | string>(resolve => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'))
    child.once('error', error => resolve(error.message))
  })
  const kill = async () => {
    child.kill('SIGKILL')
    await ended
  }
  const stop = async (withinMs = 10_000) => {
    child.kill('SIGTERM')
    child.kill('SIGCONT')
    const killer = setTimeout(() => child.kill('SIGKILL'), withinMs)
    await ended
    clearTimeout(killer)
  }
  return { pid: child.pid ?? 0, child, ended, kill, stop, pause: () => { child.kill('SIGSTOP') }, resume: () => { child.kill('SIGCONT') } }
}

/** Wrappers that exec the next program, so that the pid stays and signals reach the right process. */
function wrapper ({ namespace }: Host): string[] {
  const dieWithUs = process.platform === 'linux' ? ['setpriv', '--pdeathsig', 'KILL'] : []
  return namespace === undefined ? dieWithUs : [...dieWithUs, 'ip', 'netns', 'exec', namespace]
}
