import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { scratchDir } from '../../helpers/processes.ts'
import { until } from '../../helpers/until.ts'
import type { Stage } from '../scenario.ts'
import { freePort } from './ports.ts'
import { loopback, run } from './process.ts'

export interface NginxOptions {
  /** Whether it may ask another replica when one has failed or was too slow; its own way where left out, which it does. */
  nextUpstream?: 'off'
  /** Milliseconds that a replica may take. */
  readTimeout: number
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

/** @param dir for its pid and what it buffers */
function nginxConfig (port: number, replicas: readonly string[], dir: string, { nextUpstream, readTimeout }: NginxOptions): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `    ${name}_temp_path ${dir}/${name};`).join('\n')
  return `daemon off;
master_process off;
pid ${dir}/nginx.pid;
error_log stderr warn;
events {}
http {
    access_log off;
${temporary}
    upstream replicas {
        # By turns, so that the second try is another replica's. One that was too slow once is asked again all the same.
${replicas.map(at => `        server ${at} max_fails=0;`).join('\n')}
        keepalive 16;
    }
    server {
        listen 127.0.0.1:${port};
        location / {
            proxy_pass http://replicas;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_read_timeout ${readTimeout}ms;
${nextUpstream === undefined ? '' : `            proxy_next_upstream ${nextUpstream};\n`}        }
    }
}
`
}

/** Runs the real nginx before replicas. @param replicas `address:port` of each @returns its URL @throws what it said, when it doesn't start */
export async function startNginx (t: Stage, replicas: readonly string[], options: NginxOptions): Promise<string> {
  const dir = await scratchDir(t)
  const port = await freePort(loopback)
  const file = join(dir, 'nginx.conf')
  await writeFile(file, nginxConfig(port, replicas, dir, options))
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
  return `http://127.0.0.1:${port}`
}
