import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { mkdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { freePort } from './faults/fleet/ports.ts'
import { loopback, run } from './faults/fleet/process.ts'
import type { RunOptions, Running } from './faults/fleet/process.ts'
import { startRedisServer } from './faults/fleet/redis.ts'
import { readMetrics } from './helpers/metrics.ts'
import { scratchDir } from './helpers/processes.ts'
import { projectRoot } from './helpers/service.ts'
import { until } from './helpers/until.ts'

// A fault of the log never takes down what is logged: the service serves, ends when it is asked to, and says that lines are lost.

const secret = 'a-secret-of-sixteen'
const said = (why: string) => new RegExp(`^log lines are lost, because stdout can't be written \\(${why}\\); the service goes on\\n$`)

interface Service extends Running {
  /** Everything on its stderr. */
  stderr (): string
  /** Passes so many tasks, which at LOG_LEVEL=debug is a line each. */
  pass (count: number): Promise<void>
  lostLines (): Promise<number>
}

interface Options {
  /** A file or a pipe that a shell opens as stdout; otherwise `stdio` says what it is. */
  to?: string
  stdio?: RunOptions['stdio']
  env?: Record<string, string>
  node?: readonly string[]
}

/** The built service, whose stdout nobody can read. */
async function started (t: Test, { to, stdio = ['ignore', 'ignore', 'pipe'], env = {}, node = [] }: Options): Promise<Service> {
  const port = await freePort(loopback)
  const { url } = await startRedisServer(t)
  const line = [process.execPath, ...node, join(projectRoot, 'dist/main.js')]
  const [program, ...args] = to === undefined ? line : ['/bin/sh', '-c', 'out=$0; exec "$@" > "$out"', to, ...line]
  const settings = { PATH: process.env.PATH, REDIS_URL: url, PORT: String(port), API_KEYS: `writer:${secret}`, RATE_LIMIT_PER_MINUTE: '0', DRAIN_DELAY: '0', ...env }
  const service = run(loopback, program!, args, { cwd: projectRoot, env: settings, stdio })
  t.teardown(() => service.kill())
  let stderr = ''
  service.child.stderr?.on('data', some => { stderr += some })
  let hasEnded = false
  service.ended.then(() => { hasEnded = true })
  const ask = (path: string, options?: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, options)
  await until(async () => {
    if (hasEnded) throw new Error(`it ended (${await service.ended}): ${stderr}`)
    return (await ask('/readyz').catch(() => undefined))?.ok
  })
  async function pass (count: number): Promise<void> {
    while (count > 0) {
      const operations = Array.from({ length: Math.min(count, 100) }, () => ({ op: 'pass', body: { task: 't' } }))
      const answer = await ask('/api/batch', { method: 'POST', body: JSON.stringify({ operations }), headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' } })
      const { results } = await answer.json() as { results: Array<{ status: number }> }
      if (results.some(({ status }) => status !== 201)) throw new Error(`it passes nothing: ${JSON.stringify(results[0])}`)
      count -= operations.length
    }
  }
  const lostLines = async () => readMetrics(await (await ask('/metrics')).text()).get('handoff_log_lines_lost_total') ?? -1
  return { ...service, stderr: () => stderr, pass, lostLines }
}

/** It still serves, and ends in an orderly way. */
async function isWell (t: Test, service: Service): Promise<void> {
  await service.pass(1)
  service.child.kill('SIGTERM')
  t.equal(await service.ended, 0, 'SIGTERM')
}

t.test('the disk of the log is full', async t => {
  const service = await started(t, { to: '/dev/full', env: { LOG_LEVEL: 'debug' } })
  await service.pass(150)
  await until(async () => await service.lostLines() >= 150)
  await isWell(t, service)
  t.match(service.stderr(), said('ENOSPC'), 'said once')
})

t.test('the disk of stderr is full as well, and a collector of spans is away', async t => {
  const full = openSync('/dev/full', 'w')
  t.teardown(() => closeSync(full))
  let exports = 0
  const collector = createServer((request, response) => {
    exports++
    response.writeHead(400).end()
  }).listen(0, '127.0.0.1')
  t.teardown(() => { collector.close() })
  await once(collector, 'listening')
  const OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
  const service = await started(t, { stdio: ['ignore', full, full], node: ['--import', './dist/tracing.js'], env: { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_BSP_SCHEDULE_DELAY: '50' } })
  await until(async () => {
    await service.pass(1)
    return exports >= 2 && await service.lostLines() > 0
  })
  await isWell(t, service)
})

t.test('the reader of the log has gone', async t => {
  const service = await started(t, { stdio: ['ignore', 'pipe', 'pipe'], env: { LOG_LEVEL: 'debug' } })
  service.child.stdout!.destroy()
  await until(async () => {
    await service.pass(100)
    return await service.lostLines() >= 100
  })
  await isWell(t, service)
  t.match(service.stderr(), said('EPIPE'))
})

t.test('the reader of the log has stalled', async t => {
  for (const kind of ['a socket', 'a pipe']) {
    const fifo = join(await scratchDir(t), 'log')
    execFileSync('mkfifo', [fifo])
    const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK)
    // Nobody reads a stdout of kind 'pipe', which is a socket, as long as nobody asks for its data.
    const service = await started(t, { ...kind === 'a pipe' ? { to: fifo } : { stdio: ['ignore', 'pipe', 'pipe'] }, env: { LOG_LEVEL: 'debug' } })
    await until(async () => {
      await service.pass(1000)
      return await service.lostLines() > 0
    }, 120_000)
    const lost = await service.lostLines()
    await service.pass(1000)
    t.ok(await service.lostLines() >= lost + 1000, `${kind}: what waits has a bound`)
    t.match(service.stderr(), said('no program reads'), kind)
    if (kind === 'a pipe') await readsAgain(t, reader, service)
    await isWell(t, service)
    closeSync(reader)
  }
})

/** A reader gets all lines that waited, whole, then how many were lost, and then each new one. */
async function readsAgain (t: Test, reader: number, service: Service): Promise<void> {
  const lost = await service.lostLines()
  const chunk = Buffer.alloc(2 ** 16)
  let text = ''
  const found = await until(() => {
    try {
      text += chunk.toString('latin1', 0, readSync(reader, chunk))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
    return /^.*"msg":"log lines were lost"\}$/m.exec(text)?.[0]
  })
  t.match(JSON.parse(found), { level: 40, lines: lost })
  for (const line of text.trimEnd().split('\n')) JSON.parse(line)
}

t.test('a full disk has room again', async t => {
  const dir = await scratchDir(t)
  const disk = join(dir, 'disk')
  await mkdir(disk)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk], { stdio: 'pipe' })
  } catch {
    return t.skip('no disk can be mounted here', () => {})
  }
  t.teardown(() => { execFileSync('umount', ['-l', disk]) })
  const ballast = join(disk, 'ballast')
  await writeFile(ballast, Buffer.alloc(32 * 1024))
  const service = await started(t, { to: join(disk, 'log'), env: { LOG_LEVEL: 'debug' } })
  await until(async () => {
    await service.pass(100)
    return await service.lostLines() > 0
  })
  await truncate(ballast, 0)
  const text = await until(async () => {
    await service.pass(1)
    const log = await readFile(join(disk, 'log'), 'utf8')
    return log.includes('log lines were lost') ? log : ''
  })
  const lines = text.trimEnd().split('\n')
  const cut = lines.filter(line => !line.endsWith('}'))
  t.ok(cut.length <= 1, 'a line that was cut short ends, and the next one is whole')
  for (const line of lines.filter(line => !cut.includes(line))) JSON.parse(line)
  // Lines were under way while the room was made, so there may be more than one.
  const told = lines.filter(line => line.includes('log lines were lost')).map(line => (JSON.parse(line) as { lines: number }).lines)
  t.equal(told.reduce((sum, lines) => sum + lines, 0), await service.lostLines())
  await isWell(t, service)
  t.match(service.stderr(), said('ENOSPC'), 'said once')
})

t.test('the log of the embedded Redis cannot be opened when Redis is started again', async t => {
  const DATA_DIR = await scratchDir(t)
  const port = await freePort(loopback)
  const env = { PATH: process.env.PATH, PORT: String(port), DATA_DIR, DRAIN_DELAY: '0', ...process.env.REDIS_SERVER_BIN !== undefined && { REDIS_SERVER_BIN: process.env.REDIS_SERVER_BIN } }
  const service = run(loopback, process.execPath, [join(projectRoot, 'dist/main.js')], { cwd: projectRoot, env, stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => service.stop())
  let log = ''
  service.child.stdout!.on('data', some => { log += some })
  await until(() => log.includes('A first call'))
  // A folder in its place, which nobody can open as a file.
  const file = join(DATA_DIR, 'redis.log')
  await rm(file)
  await mkdir(file)
  const pid = Number(execFileSync('pgrep', ['-P', String(service.pid), 'redis-server|valkey-server'], { encoding: 'utf8' }))
  process.kill(pid, 'SIGKILL')
  await until(() => (log.match(/ended unexpectedly/g) ?? []).length >= 2)
  await rm(file, { recursive: true })
  await until(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok)
  service.child.kill('SIGTERM')
  t.equal(await service.ended, 0)
})
