import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { scratchDir } from '../../helpers/processes.ts'
import { projectRoot } from '../../helpers/service.ts'
import { until } from '../../helpers/until.ts'
import type { Stage } from '../scenario.ts'
import { freePort } from './ports.ts'
import { loopback, run } from './process.ts'

export interface NginxOptions {
  /** Whether it retries at another replica after a failure or time-out, as nginx does by default. */
  repeats?: boolean
  /** Whether a replica that failed twice is taken out, as in the configuration for operators. */
  takesOut?: boolean
  /** Milliseconds that a replica may take; by default as in the configuration for operators. */
  readTimeout?: number
}

/** Whether the program is there. */
export function hasNginx (): boolean {
  try {
    execFileSync('nginx', ['-v'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** The configuration for operators, adapted to the test. */
function nginxConfig (port: number, replicas: readonly string[], { repeats = false, takesOut = false, readTimeout }: NginxOptions): string {
  // One process, so that a signal ends all of nginx. A replica that was too slow once is not taken out.
  const differing: Array<[RegExp, string]> = [
    [/^daemon off;$/m, 'daemon off;\nmaster_process off;'],
    [/^( +server [^{}]*;\n)+/m, replicas.map(at => `server ${at} ${takesOut ? 'max_fails=2 fail_timeout=2s' : 'max_fails=0'};\n`).join('')],
    [/listen [^;]+;/, `listen 127.0.0.1:${port};`],
    ...readTimeout === undefined ? [] : [[/proxy_read_timeout [^;]+;/, `proxy_read_timeout ${readTimeout}ms;`] as [RegExp, string]],
    ...repeats ? [[/proxy_next_upstream off;/, ''] as [RegExp, string]] : [],
  ]
  return differing.reduce((text, [of, by]) => {
    if (!of.test(text)) throw new Error(`deploy/nginx/nginx.conf has no ${of}`)
    return text.replace(of, by)
  }, readFileSync(join(projectRoot, 'deploy/nginx/nginx.conf'), 'utf8'))
}

/** Runs the real nginx in front of replicas. @param replicas `address:port` of each @returns its URL @throws with its output, if it doesn't start */
export async function startNginx (t: Stage, replicas: readonly string[], options: NginxOptions = {}): Promise<string> {
  const dir = await scratchDir(t)
  const port = await freePort(loopback)
  const file = join(dir, 'nginx.conf')
  await writeFile(file, nginxConfig(port, replicas, options))
  await runNginx(t, file, dir, port)
  return `http://127.0.0.1:${port}`
}

/** Runs nginx in a directory until the stage ends. @param port the port in its configuration @throws with its output, if it doesn't start */
export async function runNginx (t: Stage, file: string, dir: string, port: number): Promise<void> {
  const proxy = run(loopback, 'nginx', ['-c', file, '-p', dir, '-e', 'stderr'], { stdio: ['ignore', 'ignore', 'pipe'] })
  t.teardown(() => proxy.kill())
  let said = ''
  proxy.child.stderr!.on('data', some => { said = (said + String(some)).slice(-5000) })
  let over = false
  proxy.ended.then(() => { over = true })
  await until(async () => {
    if (over) throw new Error(`nginx ended: ${said}`)
    const socket = connect(port, '127.0.0.1')
    return await once(socket, 'connect').then(() => true, () => false).finally(() => socket.destroy())
  })
}
