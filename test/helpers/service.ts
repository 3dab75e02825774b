import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { guardOutput } from './log-sink.ts'
import { isAlive, untilGone } from './processes.ts'

export const projectRoot = fileURLToPath(new URL('../..', import.meta.url))

export interface Started {
  /** The address that it printed. */
  address: string
  /** npm's process, in a process group of its own like a terminal's job. */
  pid: number
  /** Everything that it has printed. */
  output (): string
  /** All its processes after the start: npm, node, Redis and Redis's watcher. */
  processes: number[]
  /** Resolves when it ends: with the exit code, or the signal. */
  ended: Promise<number | string>
}

/** Runs `npm start` in a folder until it has printed its address. Rejects with its output if it ends before. */
export async function npmStart (t: Test, env: Record<string, string>, cwd = projectRoot): Promise<Started> {
  const { REDIS_URL: _, ...outer } = process.env
  const guard = guardOutput(t, env)
  const child = spawn('npm', ['start'], { cwd, detached: true, stdio: ['ignore', 'pipe', 'pipe'], env: { ...outer, PORT: '0', LOG_LEVEL: 'trace', ...env } })
  let output = ''
  const ended = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | string)
  const address = new Promise<string>((resolve, reject) => {
    const take = (chunk: Buffer) => {
      output += chunk
      const said = env.REDIS_URL ? /"address":"(http:[^"]+)","msg":"listening"/ : /address +(http:\S+)[^]*A first call[^]*\}'/
      const found = said.exec(output)
      if (found) resolve(found[1]!)
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    ended.then(how => reject(new Error(`ended (${how}): ${output}`)))
  })
  // Only its log is searched for secrets: the banner for newcomers shows the new keys on purpose.
  for (const pipe of [child.stdout, child.stderr]) createInterface(pipe).on('line', line => { if (line.startsWith('{')) guard(line) })
  const pid = child.pid!
  let all = [pid]
  t.teardown(async () => {
    for (const one of all) if (isAlive(one)) process.kill(one, 'SIGKILL')
    for (const one of all) await untilGone(one)
  })
  const where = await address
  // Recorded now: once orphaned, a process can't be found by its parent.
  all = descendantsOf(pid)
  return { address: where, pid, output: () => output, processes: all, ended }
}

/** A process and all its descendants, in any session. */
export function descendantsOf (pid: number): number[] {
  const pairs = execFileSync('ps', ['-eo', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
    .map(line => line.trim().split(/\s+/).map(Number) as [number, number])
  const found = [pid]
  for (const parent of found) for (const [child, itsParent] of pairs) if (itsParent === parent) found.push(child)
  return found
}
