import { execFile } from 'node:child_process'
import { copyFile, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { scratchDir } from '../helpers/processes.ts'

const project = fileURLToPath(new URL('../../', import.meta.url))

/** A small project with the real script: one source, and of packages only the compiler, installed as npm would note it. */
async function makeProject (t: Test): Promise<string> {
  const root = await scratchDir(t)
  await mkdir(join(root, 'src/sub'), { recursive: true })
  await mkdir(join(root, 'node_modules'))
  await copyFile(join(project, 'src/bootstrap.mjs'), join(root, 'src/bootstrap.mjs'))
  await copyFile(join(project, 'tsconfig.json'), join(root, 'tsconfig.json'))
  for (const name of ['typescript', '@types']) await symlink(join(project, 'node_modules', name), join(root, 'node_modules', name))
  await writeFile(join(root, 'package.json'), '{"name": "small", "version": "1.0.0", "type": "module"}')
  await writeFile(join(root, 'src/sub/one.ts'), 'export const one: number = 1\n')
  await writePackages(join(root, 'package-lock.json'), { '': { name: 'small' } })
  await writePackages(join(root, 'node_modules/.package-lock.json'), {})
  return root
}

function writePackages (file: string, packages: object): Promise<void> {
  return writeFile(file, JSON.stringify({ name: 'small', version: '1.0.0', lockfileVersion: 3, requires: true, packages }))
}

interface Outcome { code: number, stdout: string, stderr: string }

function runScript (root: string, env: NodeJS.ProcessEnv = process.env): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(process.execPath, ['src/bootstrap.mjs'], { cwd: root, env }, (error, stdout, stderr) => {
      resolve({ code: Number(error?.code ?? 0), stdout, stderr })
    })
  })
}

const quiet = { code: 0, stdout: '', stderr: '' }
const built = { code: 0, stdout: 'building\n', stderr: '' }

t.test('it builds when there is no build, and only then', async (t) => {
  const root = await makeProject(t)
  t.same(await runScript(root), built)
  t.match(await readFile(join(root, 'dist/sub/one.js'), 'utf8'), 'export const one = 1')
  t.same(await runScript(root), quiet)
})

t.test('what is named as a command can be run as one, after each build', async (t) => {
  const root = await makeProject(t)
  await writeFile(join(root, 'package.json'), '{"name": "small", "version": "1.0.0", "type": "module", "bin": {"one": "dist/sub/one.js"}}')
  t.same(await runScript(root), built)
  t.equal((await stat(join(root, 'dist/sub/one.js'))).mode & 0o777, 0o755)
})

t.test('several at once in one clone build once', async (t) => {
  const root = await makeProject(t)
  const all = await Promise.all([1, 2, 3].map(() => runScript(root)))
  t.same(all.map(({ stdout }) => stdout).sort(), ['', '', 'building\n'])
  t.same(all.map(({ code, stderr }) => `${code}${stderr}`), ['0', '0', '0'])
  t.same(await runScript(root), quiet)
})

t.test('a source changed, added, renamed or removed is seen, and a removed one leaves no output', async (t) => {
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
})

t.test('a build that fails says what the compiler said, ends with 1 and leaves the last good one', async (t) => {
  const root = await makeProject(t)
  await runScript(root)
  await writeFile(join(root, 'src/sub/one.ts'), 'export const one: number = "one"\n')
  t.match(await runScript(root), { code: 1, stdout: built.stdout, stderr: /^src\/sub\/one\.ts\(1,14\): error TS2322: / })
  t.match(await readFile(join(root, 'dist/sub/one.js'), 'utf8'), 'export const one = 1')
  t.match(await runScript(root), { code: 1 }, 'and the next run tries again')
})

t.test('what is installed is held to package-lock.json', async (t) => {
  const root = await makeProject(t)
  const url = new URL('src/bootstrap.mjs', `file://${project}/`).href
  const { isInstalled } = await import(url) as { isInstalled: (root: string) => boolean }
  const installed = (packages: object) => writePackages(join(root, 'node_modules/.package-lock.json'), packages)
  const a = { version: '1.0.0', integrity: 'sha512-a' }
  await writePackages(join(root, 'package-lock.json'), { '': {}, 'node_modules/a': a, 'node_modules/b': { ...a, optional: true } })
  await installed({ 'node_modules/a': a })
  t.equal(isInstalled(root), true, 'an optional one may be missing')
  await installed({ 'node_modules/a': { ...a, version: '1.0.1' } })
  t.equal(isInstalled(root), false, 'another version')
  await installed({ 'node_modules/a': { ...a, integrity: 'sha512-b' } })
  t.equal(isInstalled(root), false, 'another content')
  await installed({ 'node_modules/a': a, 'node_modules/c': a })
  t.equal(isInstalled(root), false, 'one too many')
  await installed({})
  t.equal(isInstalled(root), false, 'one too few')
  await rm(join(root, 'node_modules/.package-lock.json'))
  t.equal(isInstalled(root), false, 'an install that was cut short')
  t.equal(isInstalled(join(root, 'src')), false, 'nothing at all')
})

t.test('it installs what is missing, whatever npm was told for its own script', async (t) => {
  const root = await makeProject(t)
  // A package beside the project, so that no registry is needed.
  await mkdir(join(root, 'dev'))
  await writeFile(join(root, 'dev/package.json'), '{"name": "dev", "version": "1.0.0"}')
  await writeFile(join(root, 'package.json'), '{"name": "small", "version": "1.0.0", "type": "module", "devDependencies": {"dev": "file:dev"}}')
  await writePackages(join(root, 'package-lock.json'), {
    '': { name: 'small', version: '1.0.0', devDependencies: { dev: 'file:dev' } },
    dev: { version: '1.0.0', dev: true },
    'node_modules/dev': { resolved: 'dev', link: true }
  })
  const env = { ...process.env, NODE_ENV: 'production', npm_config_omit: 'dev', npm_config_dry_run: 'true', npm_config_global: 'true', npm_config_package_lock_only: 'true' }
  const { stdout } = await runScript(root, env)
  t.equal(stdout, 'installing dependencies\nbuilding\n') // and the build fails: this project's lock file has no compiler
  t.match(await readFile(join(root, 'node_modules/dev/package.json'), 'utf8'), '"dev"')
  t.match((await runScript(root)).stdout, /^building\n$/, 'and once only')
})

t.test('an old Node is told so in one line', async (t) => {
  const root = await makeProject(t)
  const script = join(root, 'src/bootstrap.mjs')
  const source = await readFile(script, 'utf8')
  await writeFile(script, source.replace(/const oldest = .*/, 'const oldest = [99, 1]'))
  const { code, stdout, stderr } = await runScript(root)
  t.same({ code, stdout }, { code: 1, stdout: '' })
  t.match(stderr, /^This needs Node\.js 99\.1 or newer, and this is \d+\.\d+\.\d+: [^\n]*\n$/)
  t.same((await readdir(dirname(dirname(script)))).includes('dist'), false)
})
