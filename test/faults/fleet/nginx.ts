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
function nginxConfig (port: number, replicas: readonly string[], takesOut: boolean): string {
  // One process, so that a signal ends all of nginx. A replica that was too slow once is not taken out.
  const differing: Array<[RegExp, string]> = [
    [/^daemon off;$/m, 'daemon off;\nmaster_process off;'],
    [/^( +server [^{}]*;\n)+/m, replicas.map(at => `server ${at} ${takesOut ? 'max_fails=2 fail_timeout=2s' : 'max_fails=0'};\n`).join('')],
    [/listen [^;]+;/, `listen 127.0.0.1:${port};`],
  ]
  return differing.reduce((text, [of, by]) => {
    if (!of.test(text)) throw new Error(`deploy/nginx/nginx.conf has no ${of}`)
    return text.replace(of, by)
  }, readFileSync(join(projectRoot, 'deploy/nginx/nginx.conf'), 'utf8'))
}

/** Runs the real nginx in front of replicas. @param replicas `address:port` of each @param takesOut whether one that failed twice is taken out, as in the configuration for operators @returns its URL @throws with its output, if it doesn't start */
export async function startNginx (t: Stage, replicas: readonly string[], { takesOut = false } = {}): Promise<string> {
  const dir = await scratchDir(t)
  const port = await freePort(loopback)
  const file = join(dir, 'nginx.conf')
  await writeFile(file, nginxConfig(port, replicas, takesOut))
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
