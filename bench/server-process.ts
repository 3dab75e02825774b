import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** A process that serves HTTP. */
export interface ServerProcess {
  url: string
  pid: number
  stop (): Promise<void>
}

/**
 * Runs node with these arguments, until it says on stdout where it listens.
 * @param env its whole environment but for what finds programs
 */
export async function startServer (args: readonly string[], env: Record<string, string>): Promise<ServerProcess> {
  const child = spawn(process.execPath, args, { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const stop = async () => {
    child.kill('SIGTERM')
    await exited
  }
  const url = await new Promise<string>((resolve, reject) => {
    let said = ''
    // It goes on being read: a full pipe would stop the process.
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-10_000)
      const address = /http:\/\/127\.0\.0\.1:\d+/.exec(said)
      if (address !== null) resolve(address[0])
    })
    exited.then(() => reject(new Error(`${args.join(' ')} ended before it listened: ${said}`)))
  })
  return { url, pid: child.pid as number, stop }
}
