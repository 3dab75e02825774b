import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { GenericContainer, Network, Wait, getContainerRuntimeClient } from 'testcontainers'
import type { StartedTestContainer } from 'testcontainers'
import { loadConfig } from '../src/config.ts'
import { commandsUnder } from './helpers/pages.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const image = `localhost/handoff-test:${process.pid}`
const secrets = { alice: 'alice-secret-0123456789', bob: 'bob-secret-0123456789' }
const minute = 60_000
/** README.md's command to run the image. */
const hardened = toldByPage(commandsUnder('README.md', 'Image')).flags

t.setTimeout(10 * minute)
const engine = await getContainerRuntimeClient().catch(() => undefined)
if (engine === undefined) t.skip('no container engine answers: the image is neither built nor run', () => {})
else await testImage(engine.container.dockerode)

type Dockerode = NonNullable<typeof engine>['container']['dockerode']

async function testImage (docker: Dockerode): Promise<void> {
  t.teardown(() => docker.getImage(image).remove({ force: true }))
  await build(docker)

  t.test('the settings that README.md gives the container exist', async t => {
    const env = Object.fromEntries(hardened['-e']!.map(setting => setting.split('=')))
    t.match(loadConfig(env), { redisUrl: env.REDIS_URL, apiKeys: [{ caller: { agent: 'writer' } }] })
  })

  t.test('with a Redis beside it', async t => {
    const service = await startBesideRedis(t)
    await t.test('the image contains the service and nothing else', t => holdsNothingElse(t, service))
    await t.test('a handoff goes from pass to done', t => carriesHandoff(t, service))
    await t.test('the health check tells a service that answers from one that doesn’t', t => checksHealth(t, service, docker))
    await t.test('the command makes a key that the service accepts', t => makesKey(t, service))
    await t.test('SIGTERM ends it gracefully', t => endsByItself(t, service, docker))
  })

  t.test('on a read-only file system, without capabilities', async t => {
    const service = await startBesideRedis(t, new Hardened(image))
    await t.test('the container is hardened', t => isHardened(t, service))
    await t.test('a handoff goes from pass to done', t => carriesHandoff(t, service))
    await t.test('the health check tells a service that answers from one that doesn’t', t => checksHealth(t, service, docker))
    await t.test('SIGTERM ends it gracefully', t => endsByItself(t, service, docker))
  })

  // If the service found a Redis after all, it would run for ever.
  t.test('without REDIS_URL one line says so', { timeout: minute }, async t => {
    const container = await docker.createContainer({ Image: image })
    t.teardown(() => container.remove({ force: true }))
    await container.start()
    t.match(await container.wait(), { StatusCode: 1 })
    t.match(await stderrOf(container, docker), /^There is no redis-server to use: [^\n]*REDIS_URL[^\n]*\n$/)
  })
}

async function build (docker: Dockerode): Promise<void> {
  const needed = ['.dockerignore', 'Dockerfile', 'LICENSE', 'lua', 'package-lock.json', 'package.json', 'src', 'tsconfig.json']
  const context = spawn('tar', ['-c', ...needed], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  // With the machine's network, so that npm reaches its registry from inside as well.
  const output = await text(await docker.buildImage(context.stdout, { t: image, networkmode: 'host' }))
  const steps: Array<{ stream?: string, error?: string }> = output.trim().split('\n').map(line => JSON.parse(line))
  if (steps.some(step => step.error !== undefined)) throw new Error(steps.map(step => step.stream ?? step.error).join(''))
}

/** A `docker run` of the documentation: the flags by name, and the command in the image. */
function toldByPage (commands: string) {
  const [build, ...run] = commands.trim().split('\n')
  if (build !== 'docker build -t handoff .') throw new Error(`not what is tested here: ${build}`)
  const words = run.join(' ').replaceAll('\\', '').split(/\s+/).slice(2)
  const flags: Record<string, string[]> = {}
  for (const single = ['--rm', '--read-only']; words[0]!.startsWith('-');) {
    const flag = words.shift()!
    flags[flag] = [...flags[flag] ?? [], single.includes(flag) ? '' : words.shift()!]
  }
  const [image, ...command] = words
  if (image !== 'handoff') throw new Error(`${image} is not what was built`)
  return { flags, command }
}

class Hardened extends GenericContainer {
  constructor (image: string) {
    super(image)
    this.hostConfig.ReadonlyRootfs = '--read-only' in hardened
    this.withDroppedCapabilities(...hardened['--cap-drop']!).withSecurityOpt(...hardened['--security-opt']!)
  }
}

async function startBesideRedis (t: Test, container = new GenericContainer(image)): Promise<StartedTestContainer> {
  const network = await new Network().start()
  t.teardown(() => network.stop())
  // Only the service uses the port, but Podman waits for the publication of every exposed port.
  const redis = await new GenericContainer('redis:7').withNetwork(network).withNetworkAliases('redis').withExposedPorts(6379).start()
  t.teardown(() => redis.stop())
  const service = await container
    .withNetwork(network)
    .withExposedPorts(Number(hardened['-p']![0]!.split(':')[1]))
    .withEnvironment({ REDIS_URL: 'redis://redis:6379', API_KEYS: Object.entries(secrets).map(entry => entry.join(':')).join() })
    .withWaitStrategy(Wait.forHttp('/readyz', 8080))
    .start()
  t.teardown(() => service.stop())
  return service
}

async function holdsNothingElse (t: Test, service: StartedTestContainer): Promise<void> {
  const sh = async (script: string, user: string) => (await service.exec(['sh', '-c', script], { user })).stdout.trim()
  t.equal((await service.exec(['id', '-un'])).stdout.trim(), 'node')
  t.match((await service.exec(['node', '--version'])).stdout, /^v24\./, 'the LTS that README.md names')
  t.equal(await sh('find /app -writable | head', 'node'), '', 'the service cannot change itself')
  t.equal(await sh('ls -A /app | sort | xargs', 'root'), 'LICENSE dist lua node_modules package.json src')
  t.equal(await sh('find /app/src -type f ! -path "/app/src/web/assets/*" ! -path "/app/src/result-schema/worker/*"', 'root'), '', 'of the sources only what runs as it is')
  t.equal(await sh('command -v tsc tsx tap gcc cc make', 'root'), '')
  t.equal(await sh('ls -A /root/.npm /home/node/.npm 2>/dev/null', 'root'), '', 'no cache of npm')
  // By the lock file, since a package may be both a development tool and a runtime dependency.
  const { packages } = JSON.parse(await readFile(new URL('../package-lock.json', import.meta.url), 'utf8'))
  const installed = (await sh('ls -d node_modules/* node_modules/@*/*', 'root')).split('\n')
  t.ok(installed.includes('node_modules/fastify'))
  t.strictSame(installed.filter(path => packages[path]?.dev), [])
}

async function isHardened (t: Test, service: StartedTestContainer): Promise<void> {
  const sh = async (script: string) => (await service.exec(['sh', '-c', script])).output.trim()
  const status = await sh('cat /proc/1/status')
  t.match(status, /^Uid:\t([1-9]\d*)\t\1\t\1\t\1$/m, 'not root')
  t.match(status, /^CapEff:\t0+$/m)
  t.match(status, /^CapBnd:\t0+$/m, 'nor is there a capability to be had')
  t.match(status, /^NoNewPrivs:\t1$/m)
  // Podman puts a scratch file system of its own on /tmp.
  for (const place of ['/app', '/home/node', '/usr/local/bin']) t.match(await sh(`touch ${place}/x`), /Read-only file system/, place)
}

async function carriesHandoff (t: Test, service: StartedTestContainer): Promise<void> {
  const call = async (who: keyof typeof secrets, path: string, body?: object) => {
    const response = await fetch(`http://${service.getHost()}:${service.getMappedPort(8080)}${path}`, {
      headers: { authorization: `Bearer ${secrets[who]}`, ...body && { 'content-type': 'application/json' } },
      ...body && { method: 'POST', body: JSON.stringify(body) },
    })
    return { status: response.status, body: await response.json() as Record<string, unknown> }
  }
  const passed = await call('alice', '/api/pass', { task: 'count', output: { rows: 3 } })
  t.match(passed, { status: 201, body: { status: 'pending' } })
  const id = passed.body.handoff_id
  t.match(await call('bob', `/api/catch/${id}`), { status: 200, body: { status: 'caught', task: 'count', output: { rows: 3 } } })
  t.match(await call('bob', `/api/done/${id}`, { output: { sum: 6 } }), { status: 200, body: { status: 'done' } })
  const page = await fetch(`http://${service.getHost()}:${service.getMappedPort(8080)}/approvals/assets/page.css`)
  t.match(page, { status: 200 }, 'the page has its assets')
  t.match(await call('alice', `/api/status/${id}`), { status: 200, body: { status: 'done', caught_by: 'bob', result: { sum: 6 } } })
}

/** Runs the image's health check as an engine would: Podman leaves its timing to systemd, which not every machine has. */
async function checksHealth (t: Test, service: StartedTestContainer, docker: Dockerode): Promise<void> {
  const { Config } = await docker.getContainer(service.getId()).inspect() as { Config: { Healthcheck?: { Test: string[] } } }
  const [form, ...command] = Config.Healthcheck?.Test ?? []
  t.equal(form, 'CMD')
  t.match(await service.exec(command), { exitCode: 0 })
  t.match(await service.exec(command, { env: { PORT: '9' } }), { exitCode: 1 }, 'where nobody listens')
}

async function makesKey (t: Test, service: StartedTestContainer): Promise<void> {
  const made = await service.exec(['handoff', 'keys', 'create', '--name', 'reader', '--scopes', 'status', '--json'])
  t.equal(made.exitCode, 0)
  const { command } = toldByPage(commandsUnder('docs/deploy.md', 'The image'))
  t.match(await service.exec(command), { exitCode: 0, stdout: /reader/ }, 'as docs/deploy.md has it')
  const { key } = JSON.parse(made.stdout) as { key: string }
  const answer = await fetch(`http://${service.getHost()}:${service.getMappedPort(8080)}/api/status/x`, { headers: { authorization: `Bearer ${key}` } })
  t.match(await answer.json(), { code: 'not_found' }, 'the key is good')
  t.match(await service.exec(['handoff', 'doctor']), { exitCode: 1, stdout: /persistence: / }, 'a Redis as it comes keeps nothing')
}

async function endsByItself (t: Test, service: StartedTestContainer, docker: Dockerode): Promise<void> {
  // After that time the engine kills it, and the exit code is 137.
  const drainTimeout = 15_000
  await service.stop({ remove: false, timeout: drainTimeout })
  const container = docker.getContainer(service.getId())
  t.teardown(() => container.remove())
  // Waited for: Podman may still be reading how the process ended when it answers the stop.
  const { StatusCode } = await container.wait() as { StatusCode: number }
  t.equal(StatusCode, 0, 'it ended by itself', { log: String(await container.logs({ stdout: true, stderr: true })) })
}

async function stderrOf (container: ReturnType<Dockerode['getContainer']>, docker: Dockerode): Promise<string> {
  const log = await container.logs({ follow: true, stderr: true })
  const stderr = new PassThrough()
  docker.modem.demuxStream(log, new PassThrough(), stderr)
  log.on('end', () => stderr.end()).on('error', error => stderr.destroy(error))
  return await text(stderr)
}
