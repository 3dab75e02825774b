import { spawn } from 'node:child_process'
import type { SpawnOptions } from 'node:child_process'
import { once } from 'node:events'
import { endWithUs } from '../server-process.ts'

export interface Daemon {
  pid: number
  /** What the pattern matched in its output. */
  said: RegExpExecArray
  /** Ends it with this signal. */
  stop (signal: NodeJS.Signals): Promise<void>
}

/** Runs a program and waits until it says on stderr that it is ready. */
export async function startDaemon (program: string, args: readonly string[], ready: RegExp, options: SpawnOptions = {}): Promise<Daemon> {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'ignore', 'pipe'] })
  const exited = once(child, 'exit')
  endWithUs(child)
  const said = await new Promise<RegExpExecArray>((resolve, reject) => {
    let text = ''
    // Reading continues: a full pipe would stop the program.
    child.stderr?.setEncoding('utf8').on('data', (more: string) => {
      text = (text + more).slice(-10_000)
      const found = ready.exec(text)
      if (found !== null) resolve(found)
    })
    exited.then(() => reject(new Error(`${program} ended before it was ready: ${text}`)), reject)
  })
  return {
    pid: child.pid as number,
    said,
    async stop (signal) {
      child.kill(signal)
      await exited
    },
  }
}
