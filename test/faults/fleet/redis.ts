import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { defaultCacheDir, findRedisServer, withEnvironment } from '../../../src/embedded/binary.ts'
import type { RedisBinary } from '../../../src/embedded/binary.ts'
import { redisOptions } from '../../../src/embedded/server.ts'
import type { Stage } from '../scenario.ts'
import { freePort } from './ports.ts'
import { loopback, run, type Host, type Running } from './process.ts'

/** A redis-server (or a sentinel) over TCP, which keeps its port and directory over restarts. */
export interface RedisServer {
  host: Host
  port: number
  /** `address:port` */
  at: string
  url: string
  /** Its directory: the data, redis.conf (which it may rewrite) and redis.log. */
  dir: string
  /** The current process's id, which changes after a restart. */
  readonly pid: number
  /** A connection that is restored whenever the server comes back; until then its calls wait. */
  admin: Redis
  /** SIGKILL; resolves when it has ended. */
  kill (): Promise<void>
  /** SIGTERM, after which it writes its data; resolves when it has ended. */
  stop (): Promise<void>
  pause (): void
  resume (): void
  /** Restarts it on its port and data, stopping it first if it runs; resolves when the data is loaded. @throws like the first start */
  restart (): Promise<void>
}

export interface RedisServerOptions {
  host?: Host
  port?: number
  /** Options for redis-server's command line, after ours: `['--appendfsync', 'always']`. */
  options?: readonly string[]
  /** Run as a sentinel, with no settings besides `options`. */
  sentinel?: boolean
}

const startMs = 30_000

let binary: Promise<RedisBinary> | undefined

/** The redis-server that all of a process's servers use. */
export async function redisProgram (t: Stage): Promise<RedisBinary> {
  binary ??= findRedisServer({ serverBin: process.env.REDIS_SERVER_BIN, cacheDir: defaultCacheDir, log: line => t.comment(line) })
  return await binary
}

/** Starts a redis-server with the embedded one's settings. @throws with the end of its log, if it ends or isn't ready within 30 s */
export async function startRedisServer (t: Stage, { host = loopback, port, options = [], sentinel = false }: RedisServerOptions = {}): Promise<RedisServer> {
  const program = await redisProgram(t)
  const itsPort = port ?? await freePort(host)
  const dir = await mkdtemp(join(tmpdir(), 'handoff-fault-'))
  const own = sentinel ? ['--protected-mode', 'no', '--logfile', 'redis.log'] : [...redisOptions, ...fleetOptions]
  // A file and no arguments: what Sentinel makes a server rewrite (CONFIG REWRITE) must survive a restart.
  await writeFile(join(dir, 'redis.conf'), configLines([...own, '--bind', host.address, '--port', String(itsPort), ...options]))
  const admin = new Redis({
    host: host.address,
    port: itsPort,
    connectionName: 'test',
    lazyConnect: true,
    connectTimeout: 1000,
    maxRetriesPerRequest: null,
    maxLoadingRetryTime: 100,
    retryStrategy: () => 50,
  })
  admin.on('error', () => {}) // it may be away for a while; calls wait
  const start = () => {
    // Output before it has read its options, like a wrong option, goes to its log too.
    const log = openSync(join(dir, 'redis.log'), 'a')
    const started = run(host, 'env', withEnvironment(program, ['redis.conf', ...sentinel ? ['--sentinel'] : []]), { cwd: dir, stdio: ['ignore', log, log] })
    closeSync(log)
    return started
  }
  let running = start()
  t.teardown(async () => {
    admin.disconnect()
    await running.kill()
    await rm(dir, { recursive: true, force: true })
  })
  await untilReady(admin, running, dir, { address: host.address, port: itsPort })
  return {
    host,
    port: itsPort,
    at: `${host.address}:${itsPort}`,
    url: `redis://${host.address}:${itsPort}`,
    dir,
    get pid () { return running.pid },
    admin,
    kill: () => running.kill(),
    stop: () => running.stop(),
    pause: () => running.pause(),
    resume: () => running.resume(),
    async restart () {
      await running.stop()
      running = start()
      await untilReady(admin, running, dir, { address: host.address, port: itsPort })
    },
  }
}

/** A replica's first sync starts without waiting for others, and scenarios may use DEBUG. */
const fleetOptions = ['--unixsocket', '', '--protected-mode', 'no', '--repl-diskless-sync-delay', '0', '--enable-debug-command', 'yes']

/** Converts arguments to a configuration like redis-server itself: `--name value`, several values separated by spaces. */
function configLines (options: readonly string[]): string {
  const settings = options.join('\0').split(/(?:^|\0)--(?=[a-z])/).slice(1)
  return settings.map(setting => setting.split('\0').map(part => part === '' ? '""' : part).join(' ') + '\n').join('')
}

/** Asks by connections of its own until the data is loaded, so that `admin` never meets a server that is only starting. */
async function untilReady (admin: Redis, running: Running, dir: string, { address, port }: { address: string, port: number }): Promise<void> {
  const stopped = new AbortController()
  const over = running.ended.then(how => { throw new Error(`it ended (${how})`) })
  const late = sleep(startMs, undefined, { ref: false, signal: stopped.signal }).then(() => { throw new Error(`it isn't ready after ${startMs} ms`) })
  late.catch(() => {})
  let heard = ''
  const answered = async () => {
    for (; !stopped.signal.aborted && !/^(\+|-(?!LOADING))/.test(heard); await sleep(10)) heard = await firstAnswer(address, port).catch((error: Error) => error.message)
    const [, pid] = /^process_id:(\d+)/m.exec(await admin.info('server')) ?? []
    if (Number(pid) !== running.pid) throw new Error(`process ${pid} answers at its port, and it is ${running.pid}`)
  }
  try {
    await Promise.race([answered(), over, late])
  } catch (error) {
    const log = await readFile(join(dir, 'redis.log'), 'utf8').catch(() => '')
    throw new Error(`redis-server: ${(error as Error).message} (it said ${JSON.stringify(heard)}; the connection is ${admin.status}): ${log.slice(-2000)}`)
  } finally {
    stopped.abort()
  }
}

/** What a server says to PING, within a second. */
async function firstAnswer (host: string, port: number): Promise<string> {
  const socket = connect({ host, port })
  try {
    socket.write('PING\r\n')
    const [said] = await once(socket, 'data', { signal: AbortSignal.timeout(1000) }) as [Buffer]
    return said.toString()
  } finally {
    socket.destroy()
  }
}
