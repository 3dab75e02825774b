import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import type { Test } from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import { clientTest, tenants } from '../helpers/client.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'

/** `handoff events`: one line an event. */

const on = { EVENTS_RETENTION: '60' }

const next = await tenants(t, on)

function start () {
  const tenant = next()
  const env = tenant.env('alice')
  const kept = (count: number) => until(async () => (await tenant.call('alice', 'GET', '/api/events?after=0-0')).json().items.length >= count)
  const events = (...args: string[]) => handoff(['events', ...args], { env })
  return { ...tenant, env, kept, events }
}

/** The built command with --follow. */
function follow (t: Test, env: Record<string, string>, ...args: string[]): { child: ChildProcess, lines: string[], ended: Promise<unknown[]> } {
  const child = spawn(join(projectRoot, 'dist/cli/main.js'), ['events', '--follow', ...args], { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const lines: string[] = []
  createInterface(child.stdout).on('line', line => lines.push(line))
  return { child, lines, ended: once(child, 'exit') }
}

t.test('what is kept: a line an event, for people and for programs', async t => {
  const { call, pass, kept, events } = start()
  // One after the other: the feed has the events of each handoff in order, and those of several as they come.
  const ids = [await pass()]
  await kept(1)
  ids.push(await pass({ to: undefined, labels: { run: '42', team: 'red' } }))
  await kept(2)
  await call('bob', 'GET', `/api/catch/${ids[0]}`)
  await kept(3)
  const { code, stdout, stderr } = await events('--json')
  t.strictSame([code, stderr], [0, ''])
  const all = stdout.trimEnd().split('\n').map(line => JSON.parse(line))
  t.strictSame(all.map(({ type, data }) => [type, data.handoff_id]), [['handoff.passed', ids[0]], ['handoff.passed', ids[1]], ['handoff.caught', ids[0]]])
  const { items } = (await call('alice', 'GET', '/api/events?after=0-0')).json()
  t.strictSame(all, items, 'as the service has them')
  t.match((await events()).stdout, new RegExp(`^${all[0].time}  ${all[0].id}  handoff.passed  handoff_id=${ids[0]}  status=pending  to=w  passed_by=alice\n`))
  t.equal((await events()).stdout.split('\n').length, 4)
  const only = async (...args: string[]) => parsed<any>(await events('--json', ...args)).id
  t.equal(await only('--after', all[1].id), all[2].id)
  t.equal(await only('--handoff-id', ids[1]!), all[1].id)
  t.equal(await only('--types', 'handoff.caught,handoff.done'), all[2].id)
  t.equal(await only('--inbox', 'w', '--after', all[0].id), all[2].id)
  t.equal(await only('--label', 'team:red', '--label', 'run:42'), all[1].id)
  t.match(await events('--label', 'run:42', '--label', 'team:blue'), { code: 0, stdout: '', stderr: '' })
  t.match((await events('--label', 'run:42')).stdout, 'labels={"run":"42","team":"red"}\n')
  t.match(await events('--types', 'handoff.done'), { code: 0, stdout: '', stderr: '' })
})

t.test('what isn’t kept any more', async t => {
  const { pass, kept, events } = start()
  await pass()
  await kept(1)
  t.match(await events('--after', '1-0'), { code: 0, stdout: /^[^\n]+handoff\.passed[^\n]+\n$/, stderr: /^events are missing[^\n]+\n$/ })
  t.match(await events('--after', '1-0', '--json'), { code: 0, stdout: /^\{"type":"reset","data":\{\}\}\n\{"id":[^\n]+\n$/, stderr: '' })
})

t.test('refusals and wrong usage', async t => {
  const { events } = start()
  t.match(await events('--types', 'done'), { code: 1, stdout: '', stderr: /^[^\n]*\/types[^\n]*\n$/ })
  const problem = await events('--after', 'x', '--json', '--follow')
  t.match(problem, { code: 1, stderr: '' })
  t.match(JSON.parse(problem.stdout), { code: 'invalid_request', status: 400 })
  t.match(await events('--fellow'), { code: 2 })
  t.match((await handoff(['events', '--help'])).stdout, /--after <id>[^]*--follow[^]*--types[^]*--handoff-id[^]*--inbox[^]*--label[^]*--json/)
  if (process.env.TEST_EVENTS === 'on') return
  const off = (await tenants(t, {}, 1))()
  t.match(await handoff(['events'], { env: off.env('alice') }), { code: 1, stderr: /\(events_off\)\n$/ })
})

t.test('--follow goes on until SIGINT, which is how it ends: status 0', async t => {
  const { call, pass, env } = start()
  const { child, lines, ended } = follow(t, env, '--json')
  // Until the command has its place in the feed, it tells nothing.
  await until(async () => await pass() && lines.length > 0)
  const last = await pass()
  await until(() => lines.some(line => line.includes(last)))
  child.kill('SIGINT')
  t.strictSame(await ended, [0, null])
  const told = lines.map(line => JSON.parse(line))
  const { items } = (await call('alice', 'GET', `/api/events?after=${told[0].id}`)).json()
  t.strictSame(told.slice(1), items.slice(0, told.length - 1), 'each once, in the order of the feed')
})

t.test('--follow goes on after the service was away, until SIGTERM', async t => {
  const first = await clientTest(t, on)
  const alice = first.client('alice')
  const { child, lines, ended } = follow(t, { HANDOFF_URL: first.address, HANDOFF_KEY: secrets.alice }, '--json', '--after', '0-0')
  const ids = []
  for (const count of [1, 2]) {
    ids.push((await alice.pass({ task: 't' })).handoff_id)
    await until(() => lines.length === count)
  }
  await first.app.close()
  const second = await testApp(t, on, { prefix: first.prefix })
  await second.app.listen({ host: '127.0.0.1', port: Number(new URL(first.address).port) })
  ids.push((await alice.pass({ task: 't' })).handoff_id)
  await until(() => lines.length === 3)
  child.kill('SIGTERM')
  t.strictSame(await ended, [0, null])
  t.strictSame(lines.map(line => JSON.parse(line).data.handoff_id), ids)
})

t.test('a reader that closes ends it quietly', async t => {
  const { pass, kept, env } = start()
  for (let count = 0; count < 3; count++) await pass()
  await kept(3)
  const shell = spawn('bash', ['-c', 'set -o pipefail; "$0" events --follow --after 0-0 | head -1', join(projectRoot, 'dist/cli/main.js')],
    { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => shell.kill('SIGKILL'))
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) shell[name].on('data', some => { said[name] += some })
  const closed = once(shell, 'close')
  let over = false
  closed.then(() => { over = true })
  // A closed pipe shows at the next line.
  await until(async () => await pass() && over)
  t.strictSame(await closed, [0, null])
  t.match(said, { stdout: /^[^\n]+handoff\.passed[^\n]+\n$/, stderr: '' })
})
