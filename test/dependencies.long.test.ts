import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import type { Test } from 'tap'
import { isWhole } from './helpers/extent.ts'
import { scratchDir } from './helpers/processes.ts'
import { startAuditRegistry, startSilentRegistry } from './helpers/registry.ts'
import { projectRoot } from './helpers/service.ts'

/** Licences that require attribution at most. */
const permissive = new Set(['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT', 'MIT-0', 'Unlicense'])

interface Locked { version: string, license?: string, integrity?: string, resolved?: string, dev?: boolean, link?: boolean }

/** The runtime dependencies in the lock file: each package's name and entry. The client, a workspace, is none. */
async function production (): Promise<Array<[name: string, locked: Locked]>> {
  const { packages } = JSON.parse(await readFile(new URL('../package-lock.json', import.meta.url), 'utf8')) as { packages: Record<string, Locked> }
  return Object.entries(packages).filter(([path, { dev, link }]) => path.startsWith('node_modules/') && dev !== true && link !== true)
    .map(([path, locked]) => [path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length), locked])
}

async function npm (...args: string[]): Promise<{ code: number, out: string }> {
  const child = spawn('npm', args, { cwd: projectRoot, stdio: ['ignore', 'pipe', 'ignore'] })
  const [out, [code]] = await Promise.all([text(child.stdout), once(child, 'exit') as Promise<[number]>])
  return { code, out }
}

t.test('runtime dependencies are locked by content and permissively licensed', async t => {
  const packages = await production()
  t.ok(packages.some(([name]) => name === 'ioredis') && !packages.some(([name]) => name === 'tap'))
  for (const [name, { license = 'none', integrity = 'none' }] of packages) {
    t.ok(permissive.has(license), `${name}: ${license}`)
    t.match(integrity, /^sha512-/, name)
  }
})

t.test('npm run sbom lists all of them, with version and licence, and nothing else', async t => {
  const { code, out } = await npm('run', '--silent', 'sbom')
  t.equal(code, 0)
  const bill = JSON.parse(out)
  t.match(bill, { bomFormat: 'CycloneDX', metadata: { component: { name: 'agent-handoff-service', version: /^\d+\.\d+\.\d+$/ } } })
  const named = bill.components.map((one: any) => `${one.name}@${one.version} ${one.licenses.map(({ license }: any) => license.id)}`)
  const wanted = (await production()).map(([name, { version, license }]) => `${name}@${version} ${license}`)
  t.strictSame([...new Set(named)].sort(), [...new Set(wanted)].sort())
  const known = new Set([bill.metadata.component, ...bill.components].map(one => one['bom-ref']))
  t.ok(bill.dependencies.every(({ ref, dependsOn }: any) => known.has(ref) && dependsOn.every((on: string) => known.has(on))))
})

t.test('npm run sbom -- agent-handoff-client is about the client, which depends on nothing', async t => {
  const { code, out } = await npm('run', '--silent', 'sbom', '--', 'agent-handoff-client')
  t.equal(code, 0)
  t.match(JSON.parse(out), { metadata: { component: { name: 'agent-handoff-client', 'bom-ref': /^agent-handoff-client@/ } }, components: { length: 0 } })
})

/** `npm run audit`, with a fake registry if one is given. @param cwd a folder with what the audit reads, if it isn't the project's */
async function audit (t: Test, registry?: string, cwd = projectRoot, limits = ['--fetch-retries=0', '--fetch-timeout=20000']): Promise<{ said: 'clean' | 'found' | 'not asked', lines: string }> {
  // With a cache of its own, because npm caches advisories.
  const own = registry === undefined ? [] : [`--cache=${await scratchDir(t)}`]
  const child = spawn('npm', ['run', '--silent', 'audit', '--', ...limits, ...own], {
    cwd,
    env: { ...process.env, ...registry !== undefined && { NPM_AUDIT_REGISTRY: registry } },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit') as Promise<[number]>])
  return { said: (['clean', 'found', 'not asked'] as const)[code] ?? 'not asked', lines: out + err }
}

const advisory = { id: 1, url: 'https://advisory.test/1', title: 'it breaks', severity: 'low', vulnerable_versions: '<99', cwe: [], cvss: {} }

t.test('npm run audit fails on each vulnerability that has no answer, and when nobody could be asked', async t => {
  t.match(await audit(t, await startAuditRegistry(t, 200, { ioredis: [advisory] })), { said: 'found', lines: /^audit: low: ioredis <99: it breaks: .*no answer.*\n.* 1 without an answer/m })
  t.match(await audit(t, await startAuditRegistry(t, 200, { tap: [advisory] })), { said: 'clean' }, 'the tests’ own tools are not released')
  t.match(await audit(t, await startAuditRegistry(t, 200, {})), { said: 'clean', lines: /^audit: 0 known vulnerabilities in \d\d+ / })
  t.match(await audit(t, await startAuditRegistry(t, 405, {})), { said: 'not asked', lines: /nobody could be asked: 405 [^]*NPM_AUDIT_REGISTRY=/ })
})

t.test('a registry that never answers is given up', { timeout: 90_000 }, async t => {
  // Its own limit is half a minute.
  t.match(await audit(t, await startSilentRegistry(t), projectRoot, isWhole ? [] : ['--fetch-timeout=500']), { said: 'not asked', lines: /nobody could be asked: network timeout/ })
})

t.test('docs/security.md answers findings', async t => {
  const registry = await startAuditRegistry(t, 200, { ioredis: [advisory] })
  const folder = await scratchDir(t)
  for (const name of ['.ci/audit.mjs', 'package.json', 'package-lock.json']) await cp(join(projectRoot, name), join(folder, name))
  await mkdir(join(folder, 'docs'))
  const page = await readFile(join(projectRoot, 'docs/security.md'), 'utf8')
  const auditWith = async (row: string) => {
    await writeFile(join(folder, 'docs/security.md'), page.replace(/(?<=## Known vulnerabilities in dependencies\n[^]*?\|---\|---\|---\|\n)/, `${row}\n`))
    return await audit(t, registry, folder)
  }
  t.match(await auditWith('| [one](https://advisory.test/1) | ioredis | We don’t call it. |'), { said: 'clean', lines: /answered in docs/ })
  t.match(await auditWith('| [one](https://advisory.test/1) | ioredis |  |'), { said: 'found' })
  t.match(await auditWith('| [one](https://advisory.test/2) | ioredis | We don’t call it. |'), { said: 'found', lines: /nothing needs any more: https:\/\/advisory.test\/2/ })
})

t.test('no vulnerability without an answer is known today', { timeout: 60_000 }, async t => {
  const { said, lines } = await audit(t)
  if (said === 'not asked') return t.comment(lines)
  t.equal(said, 'clean', lines)
})
