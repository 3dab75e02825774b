import { execFile, execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { copyFile, cp, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { scratchDir } from '../helpers/processes.ts'

const project = fileURLToPath(new URL('../../', import.meta.url))

/** A small project with the real script: one source file, and only the compiler as a package, recorded as npm does. */
async function makeProject (t: Test): Promise<string> {
  const root = await scratchDir(t)
  await mkdir(join(root, 'src/sub'), { recursive: true })
  await mkdir(join(root, 'node_modules'))
  await copyFile(join(project, 'src/bootstrap.mjs'), join(root, 'src/bootstrap.mjs'))
  await copyFile(join(project, 'tsconfig.json'), join(root, 'tsconfig.json'))
  for (const name of ['typescript', '@types']) await symlink(join(project, 'node_modules', name), join(root, 'node_modules', name))
  await writeFile(join(root, 'package.json'), '{"name": "small", "version": "1.0.0", "type": "module"}')
  await writeFile(join(root, 'src/sub/one.ts'), 'export const one: number = 1\n')
  await writePackages(join(root, 'package-lock.json'), { '': { name: 'small' }, ...compiler })
  await writePackages(join(root, 'node_modules/.package-lock.json'), compiler)
  return root
}

const compiler = { 'node_modules/typescript': { version: '5.9.3', integrity: 'sha512-c', dev: true } }

function writePackages (file: string, packages: object): Promise<void> {
  return writeFile(file, JSON.stringify({ name: 'small', version: '1.0.0', lockfileVersion: 3, requires: true, packages }))
}

interface Outcome { code: number, stdout: string, stderr: string }

function runScript (root: string, env: NodeJS.ProcessEnv = process.env, ...args: string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(process.execPath, ['src/bootstrap.mjs', ...args], { cwd: root, env }, (error, stdout, stderr) => {
      // How far a slow step is says nothing that stays.
      resolve({ code: Number(error?.code ?? 0), stdout: stdout.replaceAll(/^\w+: .*\n/gm, ''), stderr })
    })
  })
}

const quiet = { code: 0, stdout: '', stderr: '' }
const built = { code: 0, stdout: 'building\n', stderr: '' }

t.test('npm start builds only when there is no current build', async (t) => {
  const root = await makeProject(t)
  t.same(await runScript(root), built)
  t.match(await readFile(join(root, 'dist/sub/one.js'), 'utf8'), 'export const one = 1')
  t.same(await runScript(root), quiet)
})

t.test('the client package’s compiler is there without the packages of tests too', async (t) => {
  const root = await makeProject(t)
  await rm(join(root, 'node_modules/typescript'))
  await writePackages(join(root, 'node_modules/.package-lock.json'), {})
  const apart = join(root, '.cache/compiler/node_modules')
  await mkdir(apart, { recursive: true })
  await symlink(join(project, 'node_modules/typescript'), join(apart, 'typescript'))
  await writePackages(join(apart, '.package-lock.json'), compiler)
  t.same(await runScript(root), built)
  t.match(await runScript(root, process.env, '--tsc', '--version'), { code: 0, stdout: /^Version 5\.\d/, stderr: '' })
  t.match(await runScript(root, process.env, '--tsc', '--noSuchOption'), { code: 1 })
  const { scripts } = JSON.parse(await readFile(join(project, 'src/clients/typescript/package.json'), 'utf8'))
  t.notMatch(scripts.build, /(^|&& )tsc/)
})

t.test('its build equals the compiler’s', async (t) => {
  const dir = await scratchDir(t)
  execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json', '--noCheck', '--outDir', join(dir, 'tsc')], { cwd: project })
  for (const place of ['src', 'lua', 'tsconfig.json', 'package.json', 'package-lock.json']) await cp(join(project, place), join(dir, place), { recursive: true })
  await symlink(join(project, 'node_modules'), join(dir, 'node_modules'))
  execFileSync(process.execPath, [join(dir, 'tsc/store/whole-scripts.js'), join(dir, 'tsc/lua')])
  t.same(await runScript(dir, process.env, '--all'), built)
  const files = (root: string) => readdirSync(root, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(root.length)).filter(name => name !== '/.sources' && !/^\/clients\/([^/]+\.(tgz|whl)|typescript\/api\.js)$/.test(name)).sort()
  t.same(files(join(dir, 'dist')), files(join(dir, 'tsc')))
  for (const file of files(join(dir, 'tsc'))) t.equal(await readFile(join(dir, 'dist', file), 'utf8'), await readFile(join(dir, 'tsc', file), 'utf8'), file)
})

t.test('the command is executable after each build, and npx finds it at once', async (t) => {
  const root = await makeProject(t)
  await mkdir(join(root, 'src/cli'))
  await mkdir(join(root, 'node_modules/.bin'))
  await writeFile(join(root, 'src/cli/main.ts'), '#!/usr/bin/env node\nconsole.log("ran")\n')
  // As npm leaves it, which links the client's command.
  await symlink('../elsewhere/main.js', join(root, 'node_modules/.bin/handoff'))
  t.same(await runScript(root), built)
  t.equal((await stat(join(root, 'dist/cli/main.js'))).mode & 0o777, 0o755)
  t.equal(execFileSync(join(root, 'node_modules/.bin/handoff'), { encoding: 'utf8' }), 'ran\n')
  t.same(await runScript(root), quiet)
})

t.test('several starts at once in one clone build once', async (t) => {
  const root = await makeProject(t)
  const all = await Promise.all([1, 2, 3].map(() => runScript(root)))
  t.same(all.map(({ stdout }) => stdout).sort(), ['', '', 'building\n'])
  t.same(all.map(({ code, stderr }) => `${code}${stderr}`), ['0', '0', '0'])
  t.same(await runScript(root), quiet)
})

t.test('a changed, added, renamed or removed source is noticed, and a removed one leaves no output', async (t) => {
  const root = await makeProject(t)
  await runScript(root)
  await writeFile(join(root, 'src/sub/one.ts'), 'export const one: number = 2\n')
  await writeFile(join(root, 'src/two.ts'), 'export const two = 2\n')
  t.same(await runScript(root), built)
  await rename(join(root, 'src/two.ts'), join(root, 'src/too.ts'))
  t.same(await runScript(root), built)
  t.same((await readdir(join(root, 'dist'))).sort(), ['.sources', 'sub', 'too.js'])
  await rm(join(root, 'src/too.ts'))
  t.same(await runScript(root), built)
  t.same((await readdir(join(root, 'dist'))).sort(), ['.sources', 'sub'])
  t.same(await runScript(root), quiet)
  await mkdir(join(root, 'lua/lib'), { recursive: true })
  await writeFile(join(root, 'lua/lib/one.lua'), 'return 1\n')
  t.same(await runScript(root), built)
  t.same(await runScript(root), quiet)
})

t.test('a failed build prints the compiler’s errors, exits with 1 and keeps the last good build', async (t) => {
  const root = await makeProject(t)
  await runScript(root)
  await writeFile(join(root, 'src/sub/one.ts'), 'export const one: number = = 1\n')
  t.match(await runScript(root), { code: 1, stdout: built.stdout, stderr: /^src\/sub\/one\.ts\(1,28\): error TS1109: / })
  t.match(await readFile(join(root, 'dist/sub/one.js'), 'utf8'), 'export const one = 1')
  t.match(await runScript(root), { code: 1 }, 'and the next run tries again')
})

t.test('installed packages are checked against package-lock.json', async (t) => {
  const root = await makeProject(t)
  const url = new URL('src/bootstrap.mjs', `file://${project}/`).href
  const { isInstalled } = await import(url) as { isInstalled: (root: string, all: boolean) => boolean }
  const installed = (packages: object) => writePackages(join(root, 'node_modules/.package-lock.json'), packages)
  const a = { version: '1.0.0', integrity: 'sha512-a' }
  const [b, c, d] = [{ ...a, optional: true }, { ...a, dev: true }, { ...a, devOptional: true }]
  await writePackages(join(root, 'package-lock.json'), { '': {}, 'node_modules/a': a, 'node_modules/b': b, 'node_modules/c': c, 'node_modules/d': d })
  const rows: Array<[present: object, toStart: boolean, all: boolean, why: string]> = [
    [{ 'node_modules/a': a, 'node_modules/c': c, 'node_modules/d': d }, true, true, 'an optional one may be missing'],
    [{ 'node_modules/a': a }, true, false, 'to start needs neither tests’ nor optional ones'],
    [{ 'node_modules/a': a, 'node_modules/c': { ...c, version: '1.0.1' } }, false, false, 'but what is there of them is held to it'],
    [{ 'node_modules/c': c, 'node_modules/d': d }, false, false, 'one too few'],
    [{ 'node_modules/a': { ...a, version: '1.0.1' }, 'node_modules/c': c, 'node_modules/d': d }, false, false, 'another version'],
    [{ 'node_modules/a': { ...a, integrity: 'sha512-b' }, 'node_modules/c': c, 'node_modules/d': d }, false, false, 'another content'],
    [{ 'node_modules/a': a, 'node_modules/c': c, 'node_modules/d': d, 'node_modules/e': a }, false, false, 'one too many'],
  ]
  for (const [present, toStart, all, why] of rows) {
    await installed(present)
    t.strictSame([isInstalled(root, false), isInstalled(root, true)], [toStart, all], why)
  }
  await rm(join(root, 'node_modules/.package-lock.json'))
  t.equal(isInstalled(root, false), false, 'an install that was cut short')
  t.equal(isInstalled(join(root, 'src'), false), false, 'nothing at all')
})

t.test('missing packages are installed, whatever npm’s own settings are', async (t) => {
  const root = await makeProject(t)
  // A package in a folder beside the project, so that no registry is needed.
  await mkdir(join(root, 'dev'))
  await writeFile(join(root, 'dev/package.json'), '{"name": "dev", "version": "1.0.0"}')
  await writeFile(join(root, 'package.json'), '{"name": "small", "version": "1.0.0", "type": "module", "devDependencies": {"dev": "file:dev"}}')
  await writePackages(join(root, 'package-lock.json'), {
    '': { name: 'small', version: '1.0.0', devDependencies: { dev: 'file:dev' } },
    dev: { version: '1.0.0', dev: true },
    'node_modules/dev': { resolved: 'dev', link: true }
  })
  const env = { ...process.env, NODE_ENV: 'production', npm_config_omit: 'dev', npm_config_dry_run: 'true', npm_config_global: 'true', npm_config_package_lock_only: 'true' }
  const { stdout, stderr } = await runScript(root, env, '--all')
  t.equal(stdout, 'installing dependencies\nbuilding\n')
  t.equal(stderr, 'package-lock.json names no TypeScript\n')
  t.match(await readFile(join(root, 'node_modules/dev/package.json'), 'utf8'), '"dev"')
  t.match((await runScript(root)).stdout, /^building\n$/, 'and once only')
})

t.test('an old Node is refused with one line', async (t) => {
  const root = await makeProject(t)
  const script = join(root, 'src/bootstrap.mjs')
  const source = await readFile(script, 'utf8')
  await writeFile(script, source.replace(/const oldest = .*/, 'const oldest = [99, 1]'))
  const { code, stdout, stderr } = await runScript(root)
  t.same({ code, stdout }, { code: 1, stdout: '' })
  t.match(stderr, /^This needs Node\.js 99\.1 or newer, and this is \d+\.\d+\.\d+: [^\n]*\n$/)
  t.same((await readdir(dirname(dirname(script)))).includes('dist'), false)
})
