import { execFile, execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { getContainerRuntimeClient } from 'testcontainers'
import { freePort } from '../faults/fleet/ports.ts'
import { loopback } from '../faults/fleet/process.ts'
import { commandsUnder } from '../helpers/pages.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'

const minute = 60_000
t.setTimeout(12 * minute)

/** The compose command with its common options; undefined if there is none. */
function composeCommand (): string[] | undefined {
  return [['docker', 'compose'], ['docker-compose']].find(([program, ...args]) => {
    try {
      return execFileSync(program!, [...args, 'version'], { stdio: ['ignore', 'pipe', 'ignore'] }).length > 0
    } catch {
      return false
    }
  })
}

const engine = await getContainerRuntimeClient().catch(() => undefined)
const command = composeCommand()
if (engine === undefined) t.skip('no container engine answers: the fleet is not brought up', () => {})
else if (command === undefined) t.skip('neither docker compose nor docker-compose is here: the fleet is not brought up', () => {})
else await testFleet(command, engine.container.dockerode)

async function testFleet ([program, ...first]: string[], docker: NonNullable<typeof engine>['container']['dockerode']): Promise<void> {
  const port = await freePort(loopback)
  const url = `http://127.0.0.1:${port}`
  const files = ['deploy/compose/compose.yaml', 'test/fleet/compose-here.yaml'].flatMap(file => ['-f', join(projectRoot, file)])
  const own = [program!, ...first, '-p', `handoff-test-${process.pid}`, ...files]
  const env = { ...process.env, PORT: String(port), BASE_URL: url }
  const compose = async (...args: string[]) => (await promisify(execFile)(own[0]!, [...own.slice(1), ...args], { env, maxBuffer: 1e8 })).stdout.trim()
  /** Runs a command of docs/deploy.md, with the compose command replaced and more options. */
  const sh = async (command: string) => {
    const shim = `docker () { shift 3; ${own.map(word => `'${word}'`).join(' ')} "$@"; }`
    return (await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', `${shim}\n${command}`], { env, maxBuffer: 1e8 })).stdout
  }
  const containerOf = async (service: string) => docker.getContainer(await compose('ps', '-q', service))
  const keys: Record<string, string> = {}
  const ask = async (who: string, method: string, path: string, body?: object) => {
    const answer = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${keys[who]}`, ...body && { 'content-type': 'application/json' } },
      ...body && { body: JSON.stringify(body) },
    })
    return { status: answer.status, body: await answer.json() as Record<string, unknown> }
  }

  t.teardown(() => compose('down', '-v', '-t', '1'))

  // As a subtest: after a teardown, tap ends what is idle between an assertion and the next subtest.
  t.test('the commands of docs/deploy.md bring it up, and make keys', async t => {
    const [up, ready, create, ...others] = commandsUnder('docs/deploy.md', 'Containers').trim().split('\n')
    t.strictSame(others, [])
    await sh(up!)
    await sh(ready!.replace('8080', String(port)))
    for (const name of ['alice', 'bob']) keys[name] = JSON.parse(await sh(create!.replace('writer', name))).key
  })

  t.test('a handoff goes from pass to done, through any replica', async t => {
    const { status, body: { handoff_id: id, pickup_url: pickup } } = await ask('alice', 'POST', '/api/pass', { task: 't', output: { a: 1 } })
    t.equal(status, 201)
    t.equal(pickup, `${url}/api/catch/${id}`)
    t.match(await ask('bob', 'GET', `/api/catch/${id}`), { status: 200, body: { output: { a: 1 } } })
    t.match(await ask('alice', 'GET', `/api/catch/${id}`), { status: 409, body: { code: 'already_caught' } })
    t.equal((await ask('bob', 'POST', `/api/done/${id}`)).status, 200)
    const health = await Promise.all(['replica-1', 'replica-2', 'replica-3'].map(async name => await compose('exec', '-T', name, 'id', '-un')))
    t.strictSame(health, ['node', 'node', 'node'])
    await t.rejects(compose('exec', '-T', 'replica-1', 'touch', '/app/x'), /Read-only/)
    t.match(await compose('exec', '-T', 'redis-1', 'id', '-un'), 'redis')
  })

  t.test('the master is killed: the fleet recovers by itself, and loses nothing acknowledged', async t => {
    // A Sentinel promotes only replicas that it knows, which takes some ten seconds after the start.
    const knows = async (service: string) => {
      const [, replicas, others] = /num-slaves\n(\d+)[^]*num-other-sentinels\n(\d+)/
        .exec(await compose('exec', '-T', service, 'redis-cli', '-p', '26379', 'sentinel', 'master', 'handoff')) ?? []
      return replicas === '2' && others === '2'
    }
    for (const service of ['sentinel-1', 'sentinel-2', 'sentinel-3']) await until(() => knows(service), minute)
    const acknowledged: string[] = []
    const others = new Set<string>()
    /** Passes until so many more are acknowledged. */
    const passMore = async (more: number) => {
      for (const goal = acknowledged.length + more; acknowledged.length < goal;) {
        const { status, body } = await ask('alice', 'POST', '/api/pass', { task: 't' })
        if (status === 201) acknowledged.push(body.handoff_id as string)
        else others.add(`${status} ${body.code}`)
      }
    }
    await passMore(50)
    await (await containerOf('redis-1')).kill()
    await passMore(50)
    t.strictSame([...others], ['503 unavailable'], 'what was not acknowledged was told so')
    const statuses = await Promise.all(acknowledged.map(async id => (await ask('bob', 'GET', `/api/catch/${id}`)).status))
    t.strictSame([...new Set(statuses)], [200], 'each is there to be caught')
    await (await containerOf('redis-1')).start()
    const role = async () => (await compose('exec', '-T', 'redis-1', 'redis-cli', 'role').catch(() => '')).split('\n')[0]
    await until(async () => await role() === 'slave', minute)
  })
}
