import { execFileSync } from 'node:child_process'
import { cp, mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import t from 'tap'
import { testedServers } from '../src/store/server-info.ts'
import { scratchDir } from './helpers/processes.ts'
import { shBlocks } from './helpers/readme.ts'
import { npmStart, projectRoot } from './helpers/service.ts'

// It installs twice, what a start needs and what the tests need, however long a busy machine takes.
t.setTimeout(1_200_000)

/** A copy as a clone has it: what git knows of or would take, and nothing that was installed or built. */
async function freshClone (directory: string): Promise<void> {
  const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: projectRoot, encoding: 'utf8' }).trim().split('\n')
  for (const file of files) {
    await mkdir(dirname(join(directory, file)), { recursive: true })
    await cp(join(projectRoot, file), join(directory, file)).catch(error => { if (error.code !== 'ENOENT') throw error })
  }
}

t.test('every link within the project leads to a file of it', async t => {
  const files = new Set(execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: projectRoot, encoding: 'utf8' }).trim().split('\n'))
  for (const page of ['README.md', 'bench/README.md']) {
    const links = [...(await readFile(join(projectRoot, page), 'utf8')).matchAll(/\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)/g)].map(([, path]) => path!)
    t.ok(links.length > 1, page)
    for (const link of links) t.ok(files.has(join(dirname(page), link)), `${page}: ${link}`)
  }
})

t.test('it names the servers that /readyz and doctor name as tested, and that CI runs on', async t => {
  const [readme, ci] = await Promise.all(['README.md', '.ci/run'].map(file => readFile(join(projectRoot, file), 'utf8')))
  for (const server of testedServers) t.match(readme, server)
  // The system's own is 7.0.
  const others = /for server in (.*); do/.exec(ci!)![1]!.split(' ')
  t.strictSame(testedServers.slice(1).map(server => server.replace(/\.\d+$/, '').replace(' ', '-').toLowerCase()), others)
})

t.test('a newcomer follows the README in an empty folder', { timeout: 1_200_000 }, async t => {
  const clone = await scratchDir(t)
  await freshClone(clone)
  const [start, test, ...calls] = await shBlocks({ butUnder: 'A fleet' }) // those: fleet/newcomer.test.ts, fleet/compose.test.ts
  t.equal(start, 'npm start')
  t.equal(test, 'npm test')
  t.equal(calls.length, 8, 'pass, catch, done and status, a wait, an approval; the command: a key, a handoff by it, the key’s end')
  const command = calls.splice(5)

  const service = await npmStart(t, { PORT: '0' }, clone)
  t.match(service.output(), 'A first call')
  // One shell for all of them, as a newcomer has; the port alone is another, since tests run side by side.
  const script = calls.join('\n').replaceAll('http://127.0.0.1:8080', service.address)
  const { REDIS_URL: _, ...env } = process.env
  const said = execFileSync('bash', ['-euo', 'pipefail', '-c', script], { cwd: clone, encoding: 'utf8', env })
  const id = /^[A-Za-z0-9_-]{25}$/m.exec(said)?.[0]
  t.ok(id, 'pass printed the id')
  const answer = /\{"(?:handoff_id|items)".*?\}(?=\{"(?:handoff_id|items)"|$)/gs
  const answers = [...said.matchAll(answer)].map(([text]) => JSON.parse(text)).filter(({ items }) => items === undefined)
  t.match(answers, [
    { handoff_id: id, status: 'caught', output: { rows: 128 } },
    { handoff_id: id, status: 'done' },
    { handoff_id: id, status: 'done', result: { summary: 'All is well.' } },
    { handoff_id: id, status: 'done', result: { summary: 'All is well.' } },
    { status: 'pending', approval: { state: 'approved', decided_by: 'approver', note: 'Go ahead.' } },
    { status: 'caught', task: 'Delete the old invoices', approval: { state: 'approved' } },
  ])
  t.match(said, /\{"items":\[\{"handoff_id":"[^"]+","task":"Delete the old invoices"/, 'the list')
  t.match(said, '"total": 1.0', 'byte for byte')

  const told = execFileSync('bash', ['-euo', 'pipefail', '-c', command.join('\n').replaceAll('http://127.0.0.1:8080', service.address)], { cwd: clone, encoding: 'utf8', env })
  t.match(told, /^id +tenant +name +scopes +created +ends +state\n\S+ +default +summariser +pass,status +\S+ +\S+ +live\n/)
  t.match(told, /^status +pending\n[^]*^passed +\S+ \(.*\) by summariser\n[^]*^key +handoff:\{...\}:h:default:\S+\nmaster +\S+redis\.sock\n/m)
  t.match(told, /^key +handoff_\S+\n[^]*^revoked: within 2 s [^]*^ok +ready: the service can serve\n[^]*^0 errors, 0 warnings, 0 notes\n$/m)

  // The suite itself, from the clone, with a Redis that it finds; one file of it, since this is part of it.
  const suite = execFileSync('npm', ['test', '--', 'test/http/operations.test.ts'], { cwd: clone, encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'ignore'] })
  t.match(suite, /^ok 1 - test.http.operations/m)
})
