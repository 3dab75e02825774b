import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import type { Test } from 'tap'
import { scratchDir } from './helpers/processes.ts'
import { projectRoot } from './helpers/service.ts'

/** Licences that require attribution at most. */
const permissive = new Set(['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT', 'Unlicense'])

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

/** `npm run audit`, with a fake registry if one is given. */
async function audit (t: Test, registry?: string): Promise<{ said: 'clean' | 'found' | 'not asked', why: string }> {
  // With a cache of its own, because npm caches advisories.
  const own = registry === undefined ? [] : [`--registry=${registry}`, `--cache=${await scratchDir(t)}`]
  const { code, out } = await npm('run', '--silent', 'audit', '--', '--json', '--fetch-retries=0', '--fetch-timeout=20000', ...own)
  const report = JSON.parse(out)
  // If the registry couldn't be reached, npm's message is there instead.
  if (report.auditReportVersion === undefined) return { said: 'not asked', why: report.message ?? report.error?.summary ?? out }
  return code === 0 ? { said: 'clean', why: '' } : { said: 'found', why: Object.keys(report.vulnerabilities).join(', ') }
}

/** A fake registry that answers queries for advisories. */
async function advisories (t: Test, status: number, answer: object): Promise<string> {
  const server = createServer((request, response) => {
    request.resume()
    const isQuestion = request.url?.endsWith('/advisories/bulk') === true
    response.writeHead(isQuestion ? status : 404, { 'content-type': 'application/json' }).end(JSON.stringify(isQuestion ? answer : {}))
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

t.test('npm run audit fails on a serious vulnerability in a runtime dependency', async t => {
  const of = (severity: string) => ({ ioredis: [{ id: 1, url: 'https://advisory.test/1', title: 'it breaks', severity, vulnerable_versions: '<99', cwe: [], cvss: {} }] })
  t.match(await audit(t, await advisories(t, 200, of('critical'))), { said: 'found', why: /ioredis/ })
  t.match(await audit(t, await advisories(t, 200, of('low'))), { said: 'clean' })
  t.match(await audit(t, await advisories(t, 200, {})), { said: 'clean' })
  t.match(await audit(t, await advisories(t, 405, {})), { said: 'not asked', why: /405/ })
})

t.test('no serious vulnerability is known today', { timeout: 60_000 }, async t => {
  const { said, why } = await audit(t)
  if (said === 'not asked') return t.comment(`nobody could be asked: ${why}`)
  t.equal(said, 'clean', why)
})
