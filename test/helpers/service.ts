import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { guardOutput } from './log-sink.ts'
import { isAlive, untilGone } from './processes.ts'

export const projectRoot = fileURLToPath(new URL('../..', import.meta.url))

export interface Started {
  /** Where it listens, as it printed it. */
  address: string
  /** npm's process, in a group of its own as a terminal's job is. */
  pid: number
  /** All that it has printed. */
  output (): string
  /** Every process of it when it had started: npm, node, Redis and what watches it. */
  processes: number[]
  /** Its end: the exit code, or the signal. */
  ended: Promise<number | string>
}

/** `npm start` in a folder, until it has printed its address, or rejects with what it printed when it ends before. */
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
  // Its log. What it prints for a newcomer has the keys that it has just made.
  for (const pipe of [child.stdout, child.stderr]) createInterface(pipe).on('line', line => { if (line.startsWith('{')) guard(line) })
  const pid = child.pid!
  let all = [pid]
  t.teardown(async () => {
    for (const one of all) if (isAlive(one)) process.kill(one, 'SIGKILL')
    for (const one of all) await untilGone(one)
  })
  const where = await address
  // What is an orphan later is found no more by then.
  all = descendantsOf(pid)
  return { address: where, pid, output: () => output, processes: all, ended }
}

/** A process and all that came of it, in whatever session they are. */
export function descendantsOf (pid: number): number[] {
  const pairs = execFileSync('ps', ['-eo', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
    .map(line => line.trim().split(/\s+/).map(Number) as [number, number])
  const found = [pid]
  for (const parent of found) for (const [child, itsParent] of pairs) if (itsParent === parent) found.push(child)
  return found
}
