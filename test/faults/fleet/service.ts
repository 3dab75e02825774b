import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { guardOutput } from '../../helpers/log-sink.ts'
import { projectRoot } from '../../helpers/service.ts'
import type { Stage } from '../scenario.ts'
import { loopback, run, type Host, type Running } from './process.ts'

/** A replica of the built service, as a process that can be signalled. */
export interface ServiceReplica extends Pick<Running, 'pid' | 'ended' | 'kill' | 'stop' | 'pause' | 'resume'> {
  /** The address that it logged. */
  url: string
  /** The last lines that it has printed on stdout or stderr, oldest first: a thousand at most. */
  lines: string[]
}

export interface ServiceOptions {
  /** Its whole environment except PATH; HOST and PORT are by default the host's address and any free port. */
  env: Record<string, string>
  /** The folder whose dist/main.js runs; by default this project. */
  project?: string
  host?: Host
  /** Options for node itself: `['--expose-gc']` */
  nodeOptions?: readonly string[]
}

const linesKept = 1000
const startMs = 30_000

/** Starts a replica; resolves when it listens. @throws with its output, if it ends before or doesn't listen within 30 s */
export async function startServiceReplica (t: Stage, opts: ServiceOptions): Promise<ServiceReplica> {
  const { env, project = projectRoot, host = loopback, nodeOptions = [] } = opts
  const guard = guardOutput(t, env)
  const replica = run(host, process.execPath, [...nodeOptions, join(project, 'dist/main.js')], {
    cwd: project,
    env: { PATH: process.env.PATH, HOST: host.address, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => replica.kill())
  const lines: string[] = []
  const url = await new Promise<string>((resolve, reject) => {
    const fail = (why: string) => {
      clearTimeout(timer)
      reject(new Error(`${project}/dist/main.js ${why}: ${lines.join('\n')}`))
    }
    const timer = setTimeout(fail, startMs, `doesn't listen after ${startMs} ms`)
    const take = (line: string) => {
      guard(line)
      if (lines.push(line) > linesKept) lines.shift()
      const [, address] = /"address":"(http:[^"]+)","msg":"listening"/.exec(line) ?? []
      if (address === undefined) return
      clearTimeout(timer)
      resolve(address)
    }
    // The pipes are read to the end: a full pipe would block the process.
    for (const pipe of [replica.child.stdout!, replica.child.stderr!]) createInterface(pipe).on('line', take)
    // After its pipes are closed, its whole output has arrived.
    once(replica.child, 'close').then(([code, signal]) => fail(`ended (${code ?? signal})`), (error: Error) => fail(error.message))
  })
  const { pid, ended, kill, stop, pause, resume } = replica
  return { url, pid, ended, kill, stop, pause, resume, lines }
}

/** Stops a replica as an orchestrator does: SIGTERM, and SIGKILL after `patience`, in ms. @returns how it ended and its last words, if that was bad */
export async function stopReplica ({ stop, ended, lines }: ServiceReplica, patience: number): Promise<string[]> {
  await stop(patience)
  const how = await ended
  return how === 0 ? [] : [`${how}: ${lines.slice(-3).join(' ')}`]
}
