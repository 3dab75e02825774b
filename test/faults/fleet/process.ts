import { spawn, type ChildProcess } from 'node:child_process'

/** Where a process runs: an address of its own in a network namespace (net.ts), or the loopback one of this machine. */
export interface Host { address: string, namespace?: string | undefined }

export const loopback: Host = { address: '127.0.0.1' }

/** A program of a fleet. Each signal goes to the program itself, and to nobody once it has ended. */
export interface Running {
  pid: number
  child: ChildProcess
  /** Settles when it has ended, with its exit code, the signal's name, or why it never started. */
  ended: Promise<number | string>
  /** SIGKILL, which ends a paused one too; resolves when it has ended. */
  kill (): Promise<void>
  /** SIGTERM, and SIGKILL after so many ms; resolves when it has ended. One that is paused goes on, else it couldn't end. */
  stop (withinMs?: number): Promise<void>
  /** SIGSTOP: its connections stay open, and nothing answers on them. */
  pause (): void
  /** SIGCONT */
  resume (): void
}

/** @param env its whole environment; this process's own when left out */
export interface RunOptions { cwd?: string, env?: NodeJS.ProcessEnv, stdio?: Array<'ignore' | 'pipe' | 'inherit' | number> }

/**
 * Runs a program on a host. It isn't in the terminal's signal group: what a fault scenario ends, it ends itself. On Linux it
 * ends with this process, however that ends, by the kernel's hand (PR_SET_PDEATHSIG): a run that was killed leaves none behind.
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

/** Programs that become the one after them and start no other, so the pid stays and signals meet whom they are for. */
function wrapper ({ namespace }: Host): string[] {
  const dieWithUs = process.platform === 'linux' ? ['setpriv', '--pdeathsig', 'KILL'] : []
  return namespace === undefined ? dieWithUs : [...dieWithUs, 'ip', 'netns', 'exec', namespace]
}
