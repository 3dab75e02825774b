/** Somebody releases a version from a clone, by the commands in CONTRIBUTING.md. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { commandsUnder, freshClone } from './helpers/pages.ts'
import { scratchDir } from './helpers/processes.ts'
import { startAuditRegistry } from './helpers/registry.ts'

const minute = 60_000
t.setTimeout(40 * minute)

/** No version that anybody has an image of. */
const version = `0.2.1-rc.${process.pid}`
const pattern = version.replaceAll('.', '\\.')
const image = `agent-handoff-service:${version}`
const nowhere = 'tcp://127.0.0.1:9'

const [setVersion, commit, release, ...others] = commandsUnder('CONTRIBUTING.md', 'Releasing').replaceAll('0.2.0', version).trim().split('\n')
const run = promisify(execFile)

interface Said { code: number, out: string, err: string }

class Clone {
  readonly folder: string

  constructor (folder: string) {
    this.folder = folder
  }

  async sh (command: string, env: Record<string, string> = {}): Promise<Said> {
    const author = { GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@example.com', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@example.com' }
    const options = { cwd: this.folder, env: { ...process.env, ...author, ...env }, maxBuffer: 1 << 26 }
    return await run('bash', ['-c', command], options).then(
      ({ stdout, stderr }) => ({ code: 0, out: stdout, err: stderr }),
      ({ code, stdout, stderr }: { code: number, stdout: string, stderr: string }) => ({ code, out: stdout, err: stderr }))
  }

  async must (command: string, env: Record<string, string> = {}): Promise<string> {
    const { code, out, err } = await this.sh(command, env)
    if (code !== 0) throw new Error(`${command} (${code}): ${out}${err}`)
    return out
  }

  read (path: string): Promise<string> {
    return readFile(join(this.folder, path), 'utf8')
  }

  async edit (path: string, change: (text: string) => string): Promise<void> {
    await writeFile(join(this.folder, path), change(await this.read(path)))
  }
}

/** With this heading in place of the last version's. */
const headed = (heading: string) => (changelog: string) => changelog.replace(/^## \[\d.*$/m, heading)

t.test('a version is released from a clone', { timeout: 40 * minute }, async t => {
  t.equal(release, 'npm run release')
  t.strictSame(others, [])
  const clone = new Clone(await scratchDir(t))
  await freshClone(clone.folder)
  await clone.must('git init --quiet && git add --all && git commit --quiet --message Begin')

  await t.test('what is not ready is refused', t => refuses(t, clone))
  await t.test('an image that is not built leaves what was made before', t => leavesWhatWas(t, clone))
  const answers = await clone.sh('docker version').then(({ code }) => code === 0)
  await t.test('all of it is made', { skip: !answers && 'no container engine answers (docker version)' }, t => makesAll(t, clone))
})

async function refuses (t: Test, clone: Clone): Promise<void> {
  const refused = async (sentence: RegExp) => {
    const { code, out, err } = await clone.sh(release!, { DOCKER_HOST: nowhere })
    t.match({ code, err: err.split('\n').filter(line => !line.startsWith('npm ')).join('\n') }, { code: 1, err: sentence })
    t.notMatch(out, 'SHA256')
  }
  await writeFile(join(clone.folder, 'new.txt'), '')
  await refused(/^release: the checkout has changes; commit them first:\n\?\? new\.txt$/m)
  await rm(join(clone.folder, 'new.txt'))

  await clone.edit('src/clients/typescript/package.json', text => text.replace(/"version": ".*"/, '"version": "0.0.9"'))
  await clone.must(commit!)
  await refused(/^release: package\.json has the version 0\.\S+, and src\/clients\/typescript\/package\.json has 0\.0\.9$/m)

  await clone.must(setVersion!)
  await clone.edit('CHANGELOG.md', headed(`## [${version}]`))
  await clone.must(commit!)
  await refused(new RegExp(`^release: CHANGELOG\\.md has no heading with a date for this version, like: ## \\[${pattern}\\] - \\d{4}-\\d\\d-\\d\\d$`, 'm'))

  await clone.edit('CHANGELOG.md', text => text.replace(`## [${version}]`, `## [${version}] - 2026-11-30`))
  await clone.must(commit!)
  await refused(/^release: no container engine answers/m)
  t.notOk((await readdir(clone.folder)).includes('release'))
}

async function leavesWhatWas (t: Test, clone: Clone): Promise<void> {
  const engine = await scratchDir(t)
  await writeFile(join(engine, 'docker'), '#!/bin/sh\n[ "$1" != build ]\n', { mode: 0o755 })
  await mkdir(join(clone.folder, 'release'))
  await writeFile(join(clone.folder, 'release/SHA256SUMS'), 'those of before')
  const { code, err } = await clone.sh(release!, { AUDIT: 'skipped', PATH: `${engine}:${process.env.PATH}` })
  t.match({ code, err }, { code: 1, err: /^release: the image was not built$/m })
  t.strictSame(await readdir(join(clone.folder, 'release')), ['SHA256SUMS'])
  t.equal(await clone.read('release/SHA256SUMS'), 'those of before')
  t.notOk((await readdir(join(clone.folder, '.cache'))).includes('release'), 'nor is anything half made left')
  await rm(join(clone.folder, 'release'), { recursive: true })
}

async function makesAll (t: Test, clone: Clone): Promise<void> {
  t.teardown(() => clone.sh(`docker rmi ${image}`))
  const unasked = await clone.sh(release!, { NPM_AUDIT_REGISTRY: await startAuditRegistry(t, 405, {}) })
  t.match(unasked, { code: 1, err: /^audit: nobody could be asked: 405 [^]*^release: the audit must pass\..* AUDIT=skipped/m })
  t.notOk((await readdir(clone.folder)).includes('release'))

  const said = await clone.must(release!, { NPM_AUDIT_REGISTRY: await startAuditRegistry(t, 200, {}) })
  const sums = await clone.read('release/SHA256SUMS')
  t.ok(said.endsWith(sums), 'the checksums come last')
  const client = `agent-handoff-client-${version}`
  const service = `agent-handoff-service-${version}`
  const [wheel = 'no wheel'] = (await readdir(join(clone.folder, 'release'))).filter(name => name.endsWith('.whl'))
  const made = ['NOTES.md', 'SHA256SUMS', `${client}.cdx.json`, `${client}.tgz`, `${service}-image.tar.gz`, `${service}.cdx.json`, wheel]
  t.strictSame((await readdir(join(clone.folder, 'release'))).sort(), made)
  t.equal(sums.trim().split('\n').length, made.length - 1)
  t.match(await clone.must('cd release && sha256sum -c SHA256SUMS'), /NOTES\.md: OK/)
  t.equal(await clone.must('git status --porcelain'), '', 'nothing of it is to be committed')

  await t.test('the client can be imported', async t => {
    const folder = await scratchDir(t)
    await run('tar', ['-xzf', join(clone.folder, `release/${client}.tgz`), '-C', folder])
    t.match(JSON.parse(await readFile(join(folder, 'package/package.json'), 'utf8')), { name: 'agent-handoff-client', version })
    const { HandoffClient } = await import(pathToFileURL(join(folder, 'package/dist/index.js')).href) as { HandoffClient: unknown }
    t.type(HandoffClient, 'function')
  })

  await t.test('the client for Python can be installed', async t => {
    const folder = await scratchDir(t)
    await run('python3', ['-m', 'pip', 'install', '--no-index', '--target', folder, join(clone.folder, 'release', wheel)])
    const { stdout } = await run('python3', ['-c', 'import agent_handoff; print(agent_handoff.Client.__name__)'], { env: { ...process.env, PYTHONPATH: folder } })
    t.equal(stdout.trim(), 'Client')
    t.match(wheel, /^agent_handoff-.*-py3-none-any\.whl$/)
  })

  await t.test('the image says what it is', async t => {
    // Not every engine reads it compressed.
    await clone.must(`docker rmi ${image} && gzip -dc release/${service}-image.tar.gz | docker load`)
    const labels = JSON.parse(await clone.must(`docker image inspect --format '{{json .Config.Labels}}' ${image}`)) as Record<string, string>
    const [revision, seconds] = (await clone.must('git log -1 --format="%H %ct"')).trim().split(' ')
    const label = (name: string) => labels[`org.opencontainers.image.${name}`]
    t.strictSame([label('version'), label('revision'), Date.parse(label('created')!)], [version, revision, Number(seconds) * 1000])
    t.equal((await clone.must(`docker run --rm ${image} handoff --version`)).trim(), version)
  })

  t.match(await clone.read('release/NOTES.md'), new RegExp(`^## \\[${pattern}\\] - 2026-11-30\\n[^]*### Added\\n[^]*- audit passed: `))
  await t.test('the same commit makes the same files, apart from the image', async t => {
    const again = await clone.must(release!, { AUDIT: 'skipped' })
    const differs = (line: string) => !/NOTES\.md|-image\./.test(line)
    t.strictSame(again.split('\n').filter(line => /^[0-9a-f]{64} /.test(line)).filter(differs), sums.trim().split('\n').filter(differs))
    t.match(await clone.read('release/NOTES.md'), /- audit skipped: nobody was asked/)
  })
}
