import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import t from 'tap'
import { tenants } from '../helpers/client.ts'
import { commandsUnder, readPage } from '../helpers/pages.ts'
import { scratchDir } from '../helpers/processes.ts'
import { findPython, pythonRoot } from '../helpers/python.ts'
import { projectRoot } from '../helpers/service.ts'

/** The planners of docs/many.md, with a worker that does what they pass. */

const tenant = await tenants(t)
// What ends while what comes after it is being passed is seen by the sweep, within 3 s.
tenant().store.sweeper.start()

t.test('the planner in TypeScript has all results, and loses none when its time is over', async t => {
  const { client } = tenant()
  const dir = await scratchDir(t)
  const [block] = readPage('docs/many.md').blocks.filter(({ language }) => language === 'ts')
  await writeFile(join(dir, 'planner.ts'), block!.text.replace("'agent-handoff-client'", JSON.stringify(join(projectRoot, 'src/clients/typescript/index.ts'))) + 'export { summarise }\n')
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

t.test('the planner in Python', { skip: findPython() === undefined ? 'no Python is to be had' : false }, async t => {
  const { env } = tenant()
  const program = `${readPage('docs/many.md').blocks.filter(({ language }) => language === 'python').map(({ text }) => text).join('\n')}
import os, threading
from agent_handoff import Client

alice, bob, stop, seen = Client(key=os.environ["ALICE"]), Client(), threading.Event(), []
files = ["one", "two", "bad"]
assert summarise(alice, "run", files, 0) == "still at work: one, two, bad"

def work(handoff, context):
    file, attempt = handoff["context"]["file"], handoff.get("attempt", 1)
    seen.append(f"{file} {attempt}")
    if file == "bad" or (file == "two" and attempt == 1):
        raise ValueError("Not readable.")
    return {"summary": file.upper()}

workers = [threading.Thread(target=bob.work, args=one, kwargs={"stop": stop}, daemon=True) for one in (("summaries", work), ("reports", report))]
[one.start() for one in workers]
assert summarise(alice, "run", files, 60) == ["ONE", "TWO", None]
assert sorted(seen) == ["bad 1", "bad 2", "one 1", "two 1", "two 2"], seen
parts = [alice.pass_("Summarise.", to="summaries", context={"file": file})["handoff_id"] for file in ("october", "november")]
print(alice.wait_for(report_on(alice, parts), timeout=60)["result"]["report"])
stop.set()
[one.join() for one in workers]
`
  const { stdout } = await promisify(execFile)(findPython()!, ['-c', program], { env: { PATH: process.env.PATH, HOME: process.env.HOME, PYTHONPATH: pythonRoot, PYTHONDONTWRITEBYTECODE: '1', ...env('bob'), ALICE: env('alice').HANDOFF_KEY } })
  t.equal(stdout, 'OCTOBER, NOVEMBER\n')
})

t.test('the blocks of docs/python.md', { skip: findPython() === undefined ? 'no Python is to be had' : false }, async t => {
  const { client, env } = tenant()
  const blocks = readPage('docs/python.md').blocks.filter(({ language }) => language === 'python').map(({ text }) => text)
  const python = (program: string) => {
    const child = spawn(findPython()!, ['-c', program], { stdio: ['ignore', 'pipe', 'inherit'], env: { PATH: process.env.PATH, HOME: process.env.HOME, PYTHONPATH: pythonRoot, PYTHONDONTWRITEBYTECODE: '1', ...env('bob') } })
    return { child, said: Promise.all([text(child.stdout), once(child, 'exit')]).then(([out, [code]]) => [out, code]) }
  }
  const [first, worker, , errors, loop, webhook] = blocks as [string, string, string, string, string, string]
  t.equal(blocks.length, 6)
  const alice = client('alice')
  const running = [python(worker), python(loop)]
  t.teardown(() => running.forEach(({ child }) => child.kill('SIGKILL')))
  const { handoff_id: id } = await alice.pass({ task: 'Count.', to: 'counter', context: { text: 'a\nb' } })
  t.strictSame((await alice.waitFor(id, 'done', { timeout: 60_000 })).result, { rows: 2 })
  const { handoff_id: other } = await alice.pass({ task: 'hey', to: 'shouts' })
  t.strictSame((await alice.waitFor(other, 'done', { timeout: 60_000 })).result, { text: 'HEY' })
  for (const { child } of running) child.kill('SIGTERM')
  for (const { said } of running) t.strictSame(await said, ['', 0])
  const passing = python(first.replace(/"http:[^)]*…"/, ''))
  const [work] = await client('bob').catchNext({ inbox: 'counter', wait: 30 })
  await client('bob').done(work!.handoff_id, { rows: 5 })
  t.strictSame(await passing.said, ["done {'rows': 5}\n", 0])
  t.strictSame(await python(errors).said, ['not_found 404 None\n', 0])
  t.strictSame(await python(`${webhook}\nprint(receive({}, b"{}", "whsec_AAAA"))`).said, ['400\n', 0])
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
  await writeFile(join(dir, 'report.ts'), blocks[1]!.text.replace("'agent-handoff-client'", JSON.stringify(join(projectRoot, 'src/clients/typescript/index.ts'))) + 'export { report }\n')
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
