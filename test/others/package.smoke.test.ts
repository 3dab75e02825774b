import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createContext, runInContext } from 'node:vm'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { build } from 'esbuild'
import { publint } from 'publint'
import t from 'tap'
import type { Test } from 'tap'
import { clientTest, serve } from '../helpers/client.ts'
import { secrets } from '../helpers/app.ts'
import { HandoffClient } from '../../src/clients/typescript/index.ts'
import { readClients } from '../../src/http/clients.ts'
import { scratchDir, withoutTap } from '../helpers/processes.ts'
import { findPython } from '../helpers/python.ts'
import { projectRoot } from '../helpers/service.ts'

const run = promisify(execFile)

interface Packed { folder: string, tarball: Buffer, files: string[] }

/** What npm would install, installed in a project of its own. */
async function pack (t: Test): Promise<Packed> {
  const folder = await scratchDir(t)
  const { stdout } = await run('npm', ['pack', '--workspace', 'agent-handoff-client', '--json', '--pack-destination', folder], { cwd: projectRoot })
  const [{ filename, files }] = JSON.parse(stdout.slice(stdout.indexOf('[\n'))) as [{ filename: string, files: Array<{ path: string }> }]
  const place = join(folder, 'node_modules/agent-handoff-client')
  await run('mkdir', ['-p', place])
  await run('tar', ['-xzf', join(folder, filename), '-C', place, '--strip-components=1'])
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  return { folder, tarball: await readFile(join(folder, filename)), files: files.map(({ path }) => path) }
}

t.test('the package', async t => {
  const { folder, tarball, files } = await pack(t)
  const { address } = await clientTest(t, { EVENTS_RETENTION: '1h' })
  const place = join(folder, 'node_modules/agent-handoff-client')

  t.ok(tarball.length < 100_000, `${tarball.length} bytes`)
  t.ok(tarball.equals(await readFile(join(projectRoot, 'dist/clients/agent-handoff-client.tgz'))), 'the service hands out just this')
  t.ok(['LICENSE', 'README.md', 'package.json', 'dist/index.js', 'dist/index.d.ts', 'dist/command/main.js'].every(path => files.includes(path)))
  t.ok(files.every(path => path.startsWith('dist/') || !path.includes('/')), 'no sources')

  await t.test('publint and are-the-types-wrong have nothing to say', async t => {
    t.strictSame((await publint({ pkgDir: place, strict: true })).messages, [])
    const checked = await checkPackage(createPackageFromTarballData(tarball))
    // Node 10 and require() in Node 16: it is a package of ES modules alone.
    t.strictSame(checked.types && checked.problems.filter(({ kind }) => !['CJSResolvesToESM', 'NoResolution'].includes(kind)), [])
  })

  await t.test('a program compiles with it, without Node’s types, and runs', async t => {
    await writeFile(join(folder, 'program.ts'), `
import { HandoffClient, isHandoffError, rawJson } from 'agent-handoff-client'
import type { Handoff, HandoffError, Passed } from 'agent-handoff-client'
const client = new HandoffClient({ baseUrl: '${address}', key: '${secrets.alice}' })
const passed: Passed = await client.pass({ task: 'x', output: rawJson('{}'), context: { a: 1 } })
const handoff: Handoff = await client.catch(passed.handoff_id)
const { status }: { status: 'done' } = await client.done(handoff.handoff_id, { text: handoff.text })
const error: HandoffError | void = await client.done(handoff.handoff_id).then(() => {}, (error: unknown) => {
  if (isHandoffError(error, 'already_done')) { const code: 'already_done' = error.code; return Object.assign(error, { code }) }
  throw error
})
// @ts-expect-error
client.pass({ tusk: 'x' })
  .catch(() => {})
// @ts-expect-error
client.done(passed.handoff_id, 'text').catch(() => {})
console.log(status, error?.code)`)
    const compilerOptions = { strict: true, exactOptionalPropertyTypes: true, target: 'es2022', module: 'nodenext', lib: ['es2022', 'dom'], types: [] }
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['program.ts'] }))
    const { stdout: said } = await run(process.execPath, [join(projectRoot, 'node_modules/typescript/bin/tsc')], { cwd: folder }).catch((error: { stdout: string }) => error)
    t.equal(said, '')
    const { stdout } = await run(process.execPath, ['program.js'], { cwd: folder })
    t.equal(stdout, 'done already_done\n')
  })

  await t.test('the worker of the front page serves its inbox', async t => {
    const clients = readClients()
    t.strictSame(clients.map(({ of }) => of), ['TypeScript and JavaScript', 'Python'])
    const page = (await (await fetch(`${address}/`)).text()).replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
    const client = new HandoffClient({ baseUrl: address, key: secrets.alice })
    for (const { of, name, worker } of clients) {
      t.ok(page.includes(`<pre class="program">${worker}</pre>`), of)
      const isPython = of === 'Python'
      const python = findPython()
      if (isPython && python === undefined) return
      await writeFile(join(folder, isPython ? 'worker.py' : 'worker.mjs'), worker)
      const wheel = fileURLToPath(new URL(`../../dist/clients/${name}`, import.meta.url))
      const env = { ...withoutTap(), HANDOFF_URL: address, HANDOFF_KEY: secrets.alice, ...isPython && { PYTHONPATH: wheel } }
      const child = spawn(isPython ? python! : process.execPath, [isPython ? 'worker.py' : 'worker.mjs'], { cwd: folder, env, stdio: 'inherit' })
      t.teardown(() => child.kill('SIGKILL'))
      const { handoff_id: id } = await client.pass({ task: of, to: 'shouts' })
      t.match(await client.waitFor(id, 'done'), { result: { loud: of.toUpperCase() } })
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
  })

  await t.test('it runs where there is nothing of Node’s', async t => {
    const { outputFiles: [bundle] } = await build({ entryPoints: [join(place, 'dist/index.js')], bundle: true, write: false, format: 'iife', globalName: 'client', platform: 'neutral', logLevel: 'silent' })
    const web = { fetch, AbortController, URL, setTimeout, clearTimeout, setInterval, clearInterval, crypto, performance, Headers }
    const context = createContext({ ...web })
    const result = await runInContext(`${bundle!.text};(async () => {
      const one = new client.HandoffClient({ baseUrl: '${address}', key: '${secrets.alice}' })
      const { handoff_id: id } = await one.pass({ task: 'x', to: 'in' })
      const own = new AbortController()
      await one.work('in', ({ task }) => { own.abort(); return { task } }, { signal: own.signal })
      const file = (() => { try { new client.HandoffClient({ keyFile: 'key' }) } catch (error) { return error.message } })()
      return (await one.status(id)).status + ' ' + typeof process + ' ' + file
    })()`, context)
    t.equal(result, 'done undefined this runtime reads no files (keyFile, HANDOFF_KEY_FILE): give key a function')
  })

  for (const [runtime, options] of [['bun', ['run']], ['deno', ['run', '--no-lock', '--allow-env', '--allow-net']]] as const) {
    const isThere = await run(runtime, ['--version']).then(() => true, () => false)
    await t.test(`it runs on ${runtime}`, { skip: !isThere && `no ${runtime} is installed` }, async t => {
      const program = join(folder, 'program.mjs')
      await copyFile(join(projectRoot, 'test/others/runtime-program.mjs'), program)
      const silent = await serve(t, () => {})
      const env = { PATH: process.env.PATH, HOME: folder, HANDOFF_URL: address, HANDOFF_KEY: secrets.alice }
      const { stdout, stderr } = await run(runtime, [...options, program, silent], { cwd: folder, env })
      t.strictSame(JSON.parse(stdout), {
        exact: true,
        result: { answer: 42 },
        again: 'already_done',
        worked: 'done',
        aborted: ['aborted'],
        closed: 'connection_failed',
        silent: 'timeout',
        event: 'handoff.passed',
      })
      t.equal(stderr, '')
    })
  }
})
