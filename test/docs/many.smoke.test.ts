import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { tenants } from '../helpers/client.ts'
import { commandsUnder, readPage } from '../helpers/pages.ts'
import { scratchDir } from '../helpers/processes.ts'
import { projectRoot } from '../helpers/service.ts'

/** The planners of docs/many.md, with a worker that does what they pass. */

const tenant = await tenants(t)

t.test('the planner in TypeScript has all results, and loses none when its time is over', async t => {
  const { client } = tenant()
  const dir = await scratchDir(t)
  const [block] = readPage('docs/many.md').blocks.filter(({ language }) => language === 'ts')
  await writeFile(join(dir, 'planner.ts'), block!.text.replace("'agent-handoff-client'", JSON.stringify(join(projectRoot, 'src/client/index.ts'))) + 'export { summarise }\n')
  const { summarise } = await import(join(dir, 'planner.ts'))
  const [alice, bob] = [client('alice'), client('bob')]
  const files = ['one', 'two', 'bad']
  t.equal(await summarise(alice, 'run', files, 0), 'still at work: one, two, bad')
  t.equal((await bob.inbox('summaries')).pending, 3)
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const seen: string[] = []
  const working = bob.work('summaries', ({ context, attempt = 1 }) => {
    const { file } = context as { file: string }
    seen.push(`${file} ${attempt}`)
    if (file === 'bad' || (file === 'two' && attempt === 1)) throw new Error('Not readable.')
    return { summary: file.toUpperCase() }
  }, { signal: stop.signal })
  t.strictSame(await summarise(alice, 'run', files, 60_000), [
    { file: 'one', status: 'done', result: { summary: 'ONE' } }, { file: 'two', status: 'done', result: { summary: 'TWO' } }, { file: 'bad', status: 'failed', result: null }
  ])
  t.strictSame(seen.sort(), ['bad 1', 'bad 2', 'one 1', 'two 1', 'two 2'], 'nothing was passed twice')
  stop.abort()
  await working
})

t.test('the planner in a shell', async t => {
  const { client, env } = tenant()
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const working = client('bob').work('summaries', ({ task }) => ({ summary: task.slice(10, 13) }), { signal: stop.signal })
  const script = commandsUnder('docs/many.md', 'In a shell').replaceAll('npx handoff', `node ${join(projectRoot, 'dist/cli/main.js')}`)
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { cwd: await scratchDir(t), env: { PATH: process.env.PATH, ...env('alice') } })
  t.equal(stdout, ['oct', 'nov', 'dec'].map(month => `"result":{"summary":"${month}"}\n`).join(''))
  stop.abort()
  await working
})

t.test('what comes after the parts is there when they are done, and nobody waited', async t => {
  const { client, env } = tenant()
  const dir = await scratchDir(t)
  const blocks = readPage('docs/many.md').blocks.filter(({ language }) => language === 'ts')
  await writeFile(join(dir, 'report.ts'), blocks[1]!.text.replace("'agent-handoff-client'", JSON.stringify(join(projectRoot, 'src/client/index.ts'))) + 'export { report }\n')
  const { report } = await import(join(dir, 'report.ts'))
  const script = commandsUnder('docs/many.md', 'Run in order').replaceAll('npx handoff', `node ${join(projectRoot, 'dist/cli/main.js')}`)
  await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { cwd: dir, env: { PATH: process.env.PATH, ...env('alice') } })
  const { handoff_id: id, blocked_by: open } = JSON.parse(await readFile(join(dir, 'report'), 'utf8'))
  t.equal(open, 2)
  const [alice, bob] = [client('alice'), client('bob')]
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const working = Promise.all([
    bob.work('reports', report, { signal: stop.signal }),
    bob.work('summaries', ({ task }) => ({ summary: task.slice(10, 13) }), { signal: stop.signal }),
  ])
  t.match(await alice.waitFor(id, 'done'), { status: 'done', result: { report: 'oct, nov' } })
  stop.abort()
  await working
})
