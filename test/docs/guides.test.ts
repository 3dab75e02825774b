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

/** The programs of the guides in docs/, and of README.md's first screen, run to their ends as they are there. */

const tenant = await tenants(t, { EVENTS_RETENTION: '3600' })
// The next attempt of what failed can be caught after a delay, which the sweep sees.
tenant().store.sweeper.start()

/** Writes the one program of a page where it finds the client. @returns its path */
async function fileOf (t: Test, page: string): Promise<string> {
  const { blocks, code } = readPage(page)
  const programs = blocks.filter(({ language }) => language === 'js')
  t.equal(programs.length, 1, 'one file')
  if (page !== 'README.md') t.ok(code.some(text => /^node \w[\w-]*\.mjs$/.test(text)), 'which the page says how to run')
  const client = JSON.stringify(join(projectRoot, 'src/clients/typescript/index.ts'))
  const path = join(await scratchDir(t), 'guide.mjs')
  await writeFile(path, programs[0]!.text.replace("'agent-handoff-client'", client))
  return path
}

/** Runs a guide's file in this process, as Alice. @param meanwhile gets the lines so far. @returns its lines */
async function run (t: Test, guide: string, { env }: Tenant, meanwhile: (said: string[]) => Promise<void> = async () => {}): Promise<string[]> {
  const path = await fileOf(t, `docs/${guide}.md`)
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
    const id = (await person.approvals.list()).items[0]!.handoff_id
    t.equal(said[0], `a person decides at ${service.address}/approvals/${id}`)
    await person.approvals.approve(id)
    await until(async () => (await person.asks()).items.length > 0)
    const askId = (await person.asks()).items[0]!.ask_id
    await person.answer(id, askId, { account: 'reserve' })
  })
  t.strictSame(said.slice(1), ['carol approved it', '{"invoice":17,"amount":1200,"account":"reserve"}'])
})

t.test('a person who rejects it', async t => {
  const service = tenant()
  const person = service.client('approver')
  const said = await run(t, 'person-in-the-middle', service, async said => {
    await until(async () => said.length > 0)
    const id = (await person.approvals.list()).items[0]!.handoff_id
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

/** Runs a page's file in a process of its own, as Bob, which doesn't end by itself. */
async function start (t: Test, page: string, { env }: Tenant) {
  const child = spawn(process.execPath, ['--import', 'tsx', await fileOf(t, page)], { cwd: projectRoot, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env('bob') } })
  t.teardown(() => child.kill('SIGKILL'))
  return { child, ended: once(child, 'exit'), said: once(createInterface(child.stdout), 'line'), errors: text(child.stderr) }
}

t.test('serve from a laptop, until Ctrl-C', async t => {
  const service = tenant()
  const { child, ended, said, errors } = await start(t, 'docs/laptop.md', service)
  const alice = service.client('alice')
  const { handoff_id: id } = await alice.pass({ task: 'Which machine are you?', to: 'laptop', heartbeat_within: 60, max_attempts: 3 })
  t.match(await alice.waitFor(id, 'done'), { status: 'done', worker: String, result: { task: 'Which machine are you?', machine: /\w/ } })
  t.strictSame(await said, ['done: Which machine are you?'])
  child.kill('SIGINT')
  t.strictSame(await ended, [0, null])
  t.equal(await errors, '')
})

t.test('the first screen of README.md passes, works, and has the result', async t => {
  const { said } = await start(t, 'README.md', tenant())
  t.strictSame(await said, ["done { text: 'HELLO' }"])
  const [program] = readPage('README.md').blocks
  t.match(program!.text.trimEnd().split('\n'), { length: 9 }, 'in at most ten lines')
})
