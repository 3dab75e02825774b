import { execFile, execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { access, copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { scratchDir } from '../helpers/processes.ts'
import { projectRoot } from '../helpers/service.ts'

interface Entry { version: string, integrity: string, dev?: boolean, optional?: boolean }

/** A package registry in this process. */
class Registry {
  readonly #server: Server
  readonly #tarballs = new Map<string, Buffer>()
  /** The names of the downloaded packages. */
  readonly downloads: string[] = []
  url = ''

  constructor () {
    this.#server = createServer((request, response) => {
      const [, name = '', tarball] = request.url!.split('/')
      const content = this.#tarballs.get(name)
      if (content === undefined) return response.writeHead(404).end()
      if (tarball !== undefined) {
        this.downloads.push(name)
        return response.end(content)
      }
      const dist = { tarball: `${this.url}${name}/${name}.tgz`, integrity: integrityOf(content) }
      return response.setHeader('content-type', 'application/json').end(JSON.stringify({ name, 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': { name, version: '1.0.0', dist } } }))
    })
  }

  async open (t: Test): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    t.teardown(() => this.close())
    await once(this.#server, 'listening')
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`
  }

  close (): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  /** Publishes a package with one script. @returns its entry for a lock file */
  async publish (t: Test, name: string, script: string): Promise<Entry> {
    const dir = await scratchDir(t)
    await mkdir(join(dir, 'package'))
    await writeFile(join(dir, 'package/package.json'), JSON.stringify({ name, version: '1.0.0', main: 'index.js' }))
    await writeFile(join(dir, 'package/index.js'), script)
    const content = execFileSync('tar', ['-czf', '-', '-C', dir, 'package'])
    this.#tarballs.set(name, content)
    return { version: '1.0.0', integrity: integrityOf(content) }
  }
}

const integrityOf = (content: Buffer) => `sha512-${createHash('sha512').update(content).digest('base64')}`

interface Clone {
  root: string
  registry: Registry
  /** Runs bootstrap as npm does before a start, or before the tests. */
  run (before: 'start' | 'test'): Promise<{ code: number, stdout: string, stderr: string }>
  /** `npm ci`, as a user types it. */
  byHand (...options: string[]): Promise<unknown>
  /** Whether each of these is installed. */
  has (...names: string[]): Promise<boolean[]>
  /** Rewrites package-lock.json. */
  locks (packages: Record<string, Entry>): Promise<void>
}

/** A clone without installed packages: dependencies `runs`, optional ones `may`, dev dependencies `tests`, and the real compiler. */
async function makeClone (t: Test): Promise<Clone & { packages: Record<string, Entry> }> {
  const registry = new Registry()
  await registry.open(t)
  const root = await scratchDir(t)
  const cache = await scratchDir(t)
  await mkdir(join(root, 'src'))
  await copyFile(join(projectRoot, 'src/bootstrap.mjs'), join(root, 'src/bootstrap.mjs'))
  await copyFile(join(projectRoot, 'tsconfig.json'), join(root, 'tsconfig.json'))
  await writeFile(join(root, 'src/one.ts'), 'export const one: number = 1\n')
  const manifest = { name: 'small', version: '1.0.0', type: 'module', dependencies: { runs: '1.0.0' }, optionalDependencies: { may: '1.0.0' }, devDependencies: { tests: '1.0.0', typescript: '1.0.0' } }
  await writeFile(join(root, 'package.json'), JSON.stringify(manifest))
  const { type: _, ...project } = manifest
  const locks = (packages: Record<string, Entry>) => {
    const all = Object.fromEntries(Object.entries(packages).map(([name, entry]) => [`node_modules/${name}`, entry]))
    return writeFile(join(root, 'package-lock.json'), JSON.stringify({ name: 'small', version: '1.0.0', lockfileVersion: 3, requires: true, packages: { '': project, ...all } }))
  }
  const packages = {
    runs: await registry.publish(t, 'runs', ''),
    may: { ...await registry.publish(t, 'may', ''), optional: true },
    tests: { ...await registry.publish(t, 'tests', ''), dev: true },
    typescript: { ...await registry.publish(t, 'typescript', `module.exports = require(${JSON.stringify(join(projectRoot, 'node_modules/typescript'))})`), dev: true },
  }
  await locks(packages)
  const env = { ...process.env, npm_config_registry: registry.url, npm_config_cache: cache, npm_config_fetch_retries: '0' }
  return {
    root,
    registry,
    packages,
    locks,
    run: before => new Promise(resolve => {
      execFile(process.execPath, ['src/bootstrap.mjs', ...before === 'test' ? ['--all'] : []], { cwd: root, env }, (error, stdout, stderr) => {
        // How far a slow step is says nothing that stays.
        resolve({ code: Number(error?.code ?? 0), stdout: stdout.replaceAll(/^\w+: .*\n/gm, ''), stderr })
      })
    }),
    // Not synchronous, because the registry is in this process.
    byHand: (...options) => promisify(execFile)('npm', ['ci', '--no-audit', ...options], { cwd: root, env }),
    has: (...names) => Promise.all(names.map(name => access(join(root, 'node_modules', name)).then(() => true, () => false))),
  }
}

const quiet = { code: 0, stdout: '', stderr: '' }
const [installing, building] = ['installing dependencies\n', 'building\n']

t.test('a start installs the runtime dependencies, and the compiler apart from them', async t => {
  const { root, registry, run, has, packages, locks } = await makeClone(t)
  t.strictSame(await run('start'), { ...quiet, stdout: installing + building })
  t.strictSame(await has('runs', 'may', 'tests', 'typescript'), [true, false, false, false])
  t.match(await readFile(join(root, 'dist/one.js'), 'utf8'), 'export const one = 1')
  t.strictSame(registry.downloads.toSorted(), ['runs', 'typescript'])

  await locks({ ...packages, runs: await registry.publish(t, 'runs', '// changed') })
  t.strictSame(await run('start'), { ...quiet, stdout: installing + building }, 'another lock file')
  t.equal(await readFile(join(root, 'node_modules/runs/index.js'), 'utf8'), '// changed')
  t.strictSame(await has('may', 'tests'), [false, false])

  // An interrupted install: npm writes its list last.
  await rm(join(root, 'node_modules/.package-lock.json'))
  await rm(join(root, 'node_modules/runs'), { recursive: true })
  await rm(join(root, '.cache/compiler/node_modules/.package-lock.json'))
  await rm(join(root, '.cache/compiler/node_modules/typescript'), { recursive: true })
  await rm(join(root, 'dist'), { recursive: true })
  t.strictSame(await run('start'), { ...quiet, stdout: installing + building }, 'it is repaired, the compiler’s too')
  t.strictSame(await has('runs'), [true])

  registry.close()
  t.strictSame(await run('start'), quiet, 'no network when everything is there')
  await writeFile(join(root, 'src/one.ts'), 'export const one: number = 2\n')
  t.strictSame(await run('start'), { ...quiet, stdout: building }, 'nor to build again')
})

t.test('after npm ci there is nothing to install, and an update keeps everything', async t => {
  const { root, registry, byHand, run, has, packages, locks } = await makeClone(t)
  await byHand()
  const downloads = ['may', 'runs', 'tests', 'typescript']
  t.strictSame(registry.downloads.toSorted(), downloads)
  t.strictSame(await run('start'), { ...quiet, stdout: building })
  for (const before of ['start', 'test'] as const) t.strictSame(await run(before), quiet, before)
  t.strictSame(registry.downloads.toSorted(), downloads, 'with the tests’ compiler')

  await locks({ ...packages, runs: await registry.publish(t, 'runs', '// changed') })
  t.strictSame(await run('start'), { ...quiet, stdout: installing + building })
  t.strictSame(await has('runs', 'may', 'tests', 'typescript'), [true, true, true, true])
  t.equal(await readFile(join(root, 'node_modules/runs/index.js'), 'utf8'), '// changed')
})

t.test('after npm ci --omit=dev only the compiler is missing, and tests bring theirs', async t => {
  const { registry, byHand, run, has } = await makeClone(t)
  await byHand('--omit=dev')
  t.strictSame(await run('start'), { ...quiet, stdout: building })
  t.strictSame(registry.downloads.toSorted(), ['may', 'runs', 'typescript'])
  t.strictSame(await run('test'), { ...quiet, stdout: installing })
  t.strictSame(await has('runs', 'may', 'tests', 'typescript'), [true, true, true, true])
  t.strictSame(await run('start'), quiet, 'and a start leaves them')
  t.strictSame(await has('tests'), [true])
})

t.test('without a network, one sentence says so', async t => {
  const { registry, run } = await makeClone(t)
  registry.close()
  t.strictSame(await run('start'), {
    code: 1, stdout: installing, stderr: 'npm can\'t reach its registry (ECONNREFUSED), and packages are missing: try again when there is a network\n'
  })
})

t.test('a compiler other than the lock file’s is not run', async t => {
  const { root, registry, run } = await makeClone(t)
  await registry.publish(t, 'typescript', 'throw new Error("run")')
  const { code, stderr } = await run('start')
  t.equal(code, 1)
  t.match(stderr, 'EINTEGRITY')
  await t.rejects(access(join(root, 'dist')))
})
