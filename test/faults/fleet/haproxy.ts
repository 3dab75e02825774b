import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { scratchDir } from '../../helpers/processes.ts'
import { until } from '../../helpers/until.ts'
import type { Stage } from '../scenario.ts'
import { freePort } from './ports.ts'
import { loopback, run } from './process.ts'

export interface Haproxy {
  url: string
  /** How many requests it answered itself with a 5xx, or passed on with one, and how often a connection to a replica failed. */
  counts (): Promise<{ serverErrors: number, retries: number }>
  /** Resolves once so many replicas are ready in its eyes. @throws when they aren't within 10 s */
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

/** The configuration for an operator to copy; README.md has the same. @param stats the path of its control socket */
export function haproxyConfig (port: number, replicas: readonly string[], stats: string): string {
  return `global
    stats socket ${stats} mode 600 level operator

defaults
    mode http
    timeout connect 2s
    # A request must be there within the service's own 10 s; what is slower ends here and costs the service nothing.
    timeout http-request 10s
    timeout http-keep-alive 60s
    timeout client 75s
    # Longer than the longest ?wait= (60 s). A catch that is cut off here has perhaps happened, and its answer is lost.
    timeout server 75s
    # Only what never reached a replica is sent to another one: a refused connection. Never add empty-response, response-timeout
    # or all-retryable-errors to retry-on: GET /api/catch/ID changes state, and repeated without an Idempotency-Key it
    # answers 409 to the one who has caught it.
    retries 3
    retry-on conn-failure
    option redispatch 1

frontend handoff
    bind 127.0.0.1:${port}
    default_backend replicas

backend replicas
    balance leastconn
    # A stopping replica is not ready at once and serves on for DRAIN_DELAY (1.5 s). It must be out of use by then:
    # inter x fall = 0.6 s at the most. Its requests under way are not cut: no on-marked-down shutdown-sessions here.
    option httpchk
    http-check send meth GET uri /readyz
    http-check expect status 200
    timeout check 1s
    default-server check inter 300ms fall 2 rise 2
${replicas.map((at, index) => `    server replica${index + 1} ${at}`).join('\n')}
`
}

/** Runs the real HAProxy before replicas. @param replicas `address:port` of each @throws what it said, when it doesn't start */
export async function startHaproxy (t: Stage, replicas: readonly string[]): Promise<Haproxy> {
  const dir = await scratchDir(t)
  const port = await freePort(loopback)
  const [file, stats] = [join(dir, 'haproxy.cfg'), join(dir, 'stats')]
  await writeFile(file, haproxyConfig(port, replicas, stats))
  const proxy = run(loopback, 'haproxy', ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'pipe'] })
  t.teardown(() => proxy.kill())
  let said = ''
  proxy.child.stderr!.on('data', some => { said = (said + String(some)).slice(-5000) })
  let over = false
  proxy.ended.then(() => { over = true })
  const rows = () => statsOf(stats)
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
    untilUp,
    async counts () {
      const front = (await rows()).find(({ svname }) => svname === 'FRONTEND')
      const back = (await rows()).find(({ svname }) => svname === 'BACKEND')
      return { serverErrors: Number(front?.hrsp_5xx), retries: Number(back?.wretr) }
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
