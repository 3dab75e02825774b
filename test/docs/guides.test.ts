import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import t from 'tap'
import type { Test } from 'tap'
import { tenants } from '../helpers/client.ts'
import type { Tenant } from '../helpers/client.ts'
import { readPage } from '../helpers/pages.ts'
import { scratchDir } from '../helpers/processes.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'

/** The guides of docs/, whose files run here to their ends, as they are there. */

const tenant = await tenants(t, { EVENTS_RETENTION: '3600' })
// The next attempt of what failed can be caught after a delay, which the sweep sees.
tenant().store.sweeper.start()

/** Writes a guide's file, which the page names, where it finds the client. @returns its path */
async function fileOf (t: Test, guide: string): Promise<string> {
  const { blocks, code } = readPage(`docs/${guide}.md`)
  const programs = blocks.filter(({ language }) => language === 'js')
  t.equal(programs.length, 1, 'one file')
  t.ok(code.some(text => /^node \w[\w-]*\.mjs$/.test(text)), 'which the page says how to run')
  const client = JSON.stringify(join(projectRoot, 'src/clients/typescript/index.ts'))
  const path = join(await scratchDir(t), 'guide.mjs')
  await writeFile(path, programs[0]!.text.replace("'agent-handoff-client'", client))
  return path
}

/** Runs a guide's file in this process, as Alice. @param meanwhile gets the lines so far. @returns its lines */
async function run (t: Test, guide: string, { env }: Tenant, meanwhile: (said: string[]) => Promise<void> = async () => {}): Promise<string[]> {
  const path = await fileOf(t, guide)
  const before = { ...process.env }
  t.teardown(() => { process.env = before })
  Object.assign(process.env, env('alice'))
  const said: string[] = []
  t.intercept(console, 'log', { value: (...words: unknown[]) => { said.push(words.map(word => typeof word === 'string' ? word : JSON.stringify(word)).join(' ')) } })
  await Promise.all([import(path), meanwhile(said)])
  return said
}

t.test('fan out and in', async t => {
  t.strictSame(await run(t, 'fan-out', tenant()), ['done {"words":12}'])
})

t.test('retry and checkpoint', async t => {
  const said = await run(t, 'retries', tenant())
  t.strictSame(said, ['attempt 1 begins at row 0', 'attempt 2 begins at row 500', 'done by attempt 2: {"imported":1000}'])
  const [shown] = readPage('docs/retries.md').blocks.filter(({ language }) => language === 'text')
  t.equal(shown!.text.replace('{ imported: 1000 }', '{"imported":1000}'), `${said.join('\n')}\n`, 'as the page has it')
})

t.test('a person in the middle', async t => {
  const service = tenant()
  const person = service.client('approver')
  const said = await run(t, 'person-in-the-middle', service, async said => {
    await until(async () => said.length > 0)
    const [{ handoff_id: id }] = (await person.approvals.list()).items as [{ handoff_id: string }]
    t.equal(said[0], `a person decides at ${service.address}/approvals/${id}`)
    await person.approvals.approve(id)
    await until(async () => (await person.asks()).items.length > 0)
    const [{ ask_id: askId }] = (await person.asks()).items as [{ ask_id: string }]
    await person.answer(id, askId, { account: 'reserve' })
  })
  t.strictSame(said.slice(1), ['carol approved it', '{"invoice":17,"amount":1200,"account":"reserve"}'])
})

t.test('a person who rejects it', async t => {
  const service = tenant()
  const person = service.client('approver')
  const said = await run(t, 'person-in-the-middle', service, async said => {
    await until(async () => said.length > 0)
    const [{ handoff_id: id }] = (await person.approvals.list()).items as [{ handoff_id: string }]
    await person.approvals.reject(id, 'Paid already.')
  })
  t.strictSame(said.slice(1), ['rejected: Paid already.'])
})

t.test('watch a run', async t => {
  const said = await run(t, 'watch-a-run', tenant())
  t.strictSame(said.slice(-2), ['2 done, 1 failed, 0 live', 'failed: It is not readable.'])
  const types = said.slice(0, -2).map(line => line.split(' ')[0])
  t.strictSame(types.sort(), ['handoff.caught', 'handoff.caught', 'handoff.caught', 'handoff.done', 'handoff.done', 'handoff.failed', 'handoff.passed', 'handoff.passed', 'handoff.passed'])
})

t.test('serve from a laptop, until Ctrl-C', async t => {
  const { client, env } = tenant()
  const child = spawn(process.execPath, ['--import', 'tsx', await fileOf(t, 'laptop')], { cwd: projectRoot, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env('bob') } })
  t.teardown(() => child.kill('SIGKILL'))
  const ended = once(child, 'exit')
  const errors = text(child.stderr)
  const alice = client('alice')
  const { handoff_id: id } = await alice.pass({ task: 'Which machine are you?', to: 'laptop', heartbeat_within: 60, max_attempts: 3 })
  t.match(await alice.waitFor(id, 'done'), { status: 'done', worker: String, result: { task: 'Which machine are you?', machine: /\w/ } })
  const [line] = await once(createInterface(child.stdout), 'line')
  t.equal(line, 'done: Which machine are you?')
  child.kill('SIGINT')
  t.strictSame(await ended, [0, null])
  t.equal(await errors, '')
})
