import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { scratchDir } from '../../helpers/processes.ts'
import { projectRoot } from '../../helpers/service.ts'
import { until } from '../../helpers/until.ts'
import type { Stage } from '../scenario.ts'
import { freePort } from './ports.ts'
import { loopback, run } from './process.ts'

export interface Haproxy {
  url: string
  /** `address:port` of what it tells Prometheus. */
  metrics: string
  /** How many 5xx it answered or passed on. */
  counts (): Promise<{ serverErrors: number }>
  /** Resolves once HAProxy's checks find so many replicas ready. @throws if they don't within 10 s */
  untilUp (replicas: number): Promise<void>
}

/** Whether the program is there. */
export function hasHaproxy (): boolean {
  try {
    execFileSync('haproxy', ['-v'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Runs the real HAProxy, with the configuration for operators, in front of three replicas. @param replicas `address:port` of each @throws with its output, if it doesn't start */
export async function startHaproxy (t: Stage, replicas: readonly string[]): Promise<Haproxy> {
  const port = await freePort(loopback)
  const metrics = `127.0.0.1:${await freePort(loopback)}`
  const control = join(await scratchDir(t), 'control')
  const [REPLICA1, REPLICA2, REPLICA3] = replicas
  const proxy = run(loopback, 'haproxy', ['-db', '-f', join(projectRoot, 'deploy/haproxy/haproxy.cfg')], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env.PATH, LISTEN: `127.0.0.1:${port}`, METRICS: metrics, CONTROL: control, REPLICA1, REPLICA2, REPLICA3 },
  })
  t.teardown(() => proxy.kill())
  let said = ''
  proxy.child.stderr!.on('data', some => { said = (said + String(some)).slice(-5000) })
  let over = false
  proxy.ended.then(() => { over = true })
  const rows = () => statsOf(control)
  const untilUp = async (count: number) => {
    await until(async () => {
      if (over) throw new Error(`haproxy ended: ${said}`)
      const seen = await rows().catch(() => [])
      return seen.filter(({ svname, status }) => svname?.startsWith('replica') && status === 'UP').length >= count
    }, 10_000)
  }
  await untilUp(replicas.length)
  return {
    url: `http://127.0.0.1:${port}`,
    metrics,
    untilUp,
    async counts () {
      const front = (await rows()).find(({ svname }) => svname === 'FRONTEND')
      return { serverErrors: Number(front?.hrsp_5xx) }
    },
  }
}

/** HAProxy's own statistics: a record for each front end, back end and server. */
async function statsOf (path: string): Promise<Array<Record<string, string>>> {
  const socket = connect(path)
  await once(socket, 'connect')
  socket.end('show stat\n')
  const [head = '', ...lines] = (await text(socket)).trim().split('\n')
  const names = head.replace('# ', '').split(',')
  return lines.map(line => Object.fromEntries(line.split(',').map((value, index) => [names[index], value])))
}
