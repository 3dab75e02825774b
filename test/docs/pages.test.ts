/** Static checks of the documentation: links work, a test runs each command, names exist. */
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { agents } from '../../src/cli/agents.ts'
import { errorTable } from '../../src/core/errors.ts'
import { scopes, statuses } from '../../src/core/model.ts'
import type { Services } from '../../src/operations/operation.ts'
import { operationsOf } from '../../src/operations/table.ts'
import { testedServers } from '../../src/redis/connect.ts'
import { anchorsOf, isManual, projectFiles, readPage } from '../helpers/pages.ts'
import type { Page } from '../helpers/pages.ts'
import { projectRoot } from '../helpers/service.ts'

const files = new Set(projectFiles())
const read = (path: string) => readFileSync(`${projectRoot}/${path}`, 'utf8')
const pages = new Map([...files].filter(path => path.endsWith('.md')).map(path => [path, readPage(path)]))
const manual = [...pages].filter(([path]) => isManual(path))

/** Whether it is a file or folder of the project. */
function exists (path: string): boolean {
  return files.has(path) || [...files].some(file => file.startsWith(`${path.replace(/\/$/, '')}/`))
}

/** What is wrong with a link, or undefined. @param path of its page */
function linkFault (path: string, link: string): string | undefined {
  if (/^[a-z][a-z0-9+.-]*:/i.test(link)) {
    return URL.canParse(link) && /^(https?|mailto):/.test(link) ? undefined : `${path}: ${link} is no address`
  }
  const [file = '', anchor] = link.split('#')
  if (file.startsWith('/')) return `${path}: ${link} is no way within the project`
  const target = file === '' ? path : posix.join(posix.dirname(path), decodeURI(file))
  if (!exists(target)) return `${path}: ${link} leads nowhere`
  if (anchor === undefined) return undefined
  const page = pages.get(target)
  return page !== undefined && anchorsOf(page).includes(anchor) ? undefined : `${path}: ${target} has no heading #${anchor}`
}

t.test('every link leads to a file, and to a heading of it', async t => {
  const faults = [...pages].flatMap(([path, { links }]) => links.map(link => linkFault(path, link)))
  t.strictSame(faults.filter(fault => fault !== undefined), [])
  for (const [path] of manual) if (path.startsWith('docs/')) t.ok(pages.get('README.md')!.links.includes(path), `README.md leads to ${path}`)
})

/** A line that somebody would paste into a shell. */
const looksLikeCommand = /^\s*(\$ )?([A-Z_]+=\S* )*((npm|npx|node|curl|docker|podman|kubectl|redis-cli|handoff|git|cd|haproxy|nginx|prometheus|promtool)\s+[\w./-]|export [A-Z_]+=)/

/** What is wrong with a page's fenced blocks. */
function blockFaults (path: string, { blocks }: Page): string[] {
  return blocks.flatMap(({ language, text, heading }) => {
    const where = `${path}, "${heading}"`
    if (language === '') return [`${where}: a fence without its language`]
    if (['bash', 'shell', 'console', 'zsh'].includes(language)) return [`${where}: commands are called sh, and are run by a test`]
    if (language === 'sh') return []
    return text.split('\n').filter(line => looksLikeCommand.test(line)).map(line => `${where}: a command that is not called sh: ${line}`)
  })
}

/** The commands that tests run, by page and heading: found by calls of commandsUnder in their sources. */
function commandsRun (sources: Iterable<string>): Set<string> {
  return new Set([...sources].flatMap(source => [...source.matchAll(/commandsUnder\('([^']+)', '([^']+)'\)/g)].map(([, path, heading]) => `${path}, "${heading}"`)))
}

const commandsIn = (path: string, { blocks }: Page) => blocks.filter(({ language }) => language === 'sh').map(({ heading }) => `${path}, "${heading}"`)

t.test('every command is run by a test', async t => {
  for (const [path, page] of manual) t.strictSame(blockFaults(path, page), [], path)
  // Without this file, which only mentions that function.
  const run = commandsRun([...files].filter(path => /^test\/.*\.test\.ts$/.test(path) && path !== 'test/docs/pages.test.ts').map(read))
  const there = new Set(manual.flatMap(([path, page]) => commandsIn(path, page)))
  t.strictSame([...there].filter(command => !run.has(command)), [], 'no test runs these: give them to commandsUnder in one')
  t.strictSame([...run].filter(command => !there.has(command)), [], 'tests run these, and no page has them')
  t.ok(there.size > 10, `${there.size} places`)
})

t.test('npm scripts and files that pages name exist', async t => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  for (const [path, { code, blocks }] of manual) {
    for (const text of [...code, ...blocks.map(({ text }) => text)]) {
      for (const [, name] of text.matchAll(/\bnpm run ([\w:-]+)/g)) t.ok(name! in scripts, `${path}: npm run ${name}`)
    }
    for (const text of code) {
      if (/^(src|lua|test|bench|deploy|docs|\.ci)\/[\w./-]*$/.test(text)) t.ok(exists(text), `${path}: ${text}`)
    }
  }
})

/** The texts in backticks in the first column of a page's tables. */
function firstColumn (path: string): string[] {
  return read(path).split('\n').filter(line => line.startsWith('| `')).flatMap(line => [...line.split(' | ')[0]!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!))
}

t.test('each walk through the code passes a file once', async t => {
  const [, walks] = read('docs/architecture.md').split('\n## Walks through the code\n')
  const found = walks!.split('\n\n').flatMap(text => /^\s*\*\*/.test(text) ? [text] : [])
  t.equal(found.length, 8)
  for (const text of found) {
    const passed = [...text.matchAll(/`((?:src|lua)\/[\w./-]+)`/g)].map(([, path]) => path!)
    t.strictSame(passed.filter(path => !exists(path)), [], text.slice(0, 40))
    t.strictSame(passed, [...new Set(passed)], text.slice(0, 40))
  }
})

t.test('the pages name what the code has', async t => {
  const settings = [...read('src/config.ts').matchAll(/^ {2}([A-Z][A-Z0-9_]+): /gm)].map(([, name]) => name!)
  t.ok(settings.length > 20)
  t.strictSame(firstColumn('docs/configuration.md').filter(name => /^[A-Z][A-Z0-9_]+$/.test(name)).sort(), settings.sort(), 'each setting has its row, once')
  t.strictSame(firstColumn('README.md').filter(name => /^[A-Z][A-Z0-9_]+$/.test(name) && !settings.includes(name)), [])

  const all = operationsOf({ limits: { maxExpiresIn: 1, maxWorkTtl: 1 } } as Services)
  const operations = all.flatMap(({ method, path }) => path === null ? [] : [`${method} ${path}`])
  t.ok(operations.length > 30)
  const said = read('docs/api.md') + read('docs/webhooks.md') + read('docs/schedules.md')
  t.strictSame([...operations, 'POST /api/batch'].filter(name => !said.includes(`\`${name}\``)), [], 'each operation is there, or leads to its page')

  const errors = read('docs/api.md').split('\n').filter(line => /^\| \d{3} \|/.test(line))
    .flatMap(line => [...line.split(' | ')[1]!.matchAll(/`([a-z_]+)`/g)].map(([, code]) => `${line.slice(2, 5)} ${code}`))
  t.strictSame(errors.sort(), Object.entries(errorTable).map(([code, { status }]) => `${status} ${code}`).sort(), 'each error has its row')
  for (const status of statuses) t.ok(firstColumn('docs/api.md').includes(status), `the state ${status}`)
  for (const scope of scopes) t.ok(firstColumn('docs/keys.md').includes(scope), `the scope ${scope}`)

  const metrics = [...[...files].filter(path => /^src\/metrics\/.*\.ts$/.test(path)).map(read).join('').matchAll(/name: '((?:handoff|http)_\w+)'/g)].map(([, name]) => name!)
  const told = firstColumn('docs/observability.md').map(name => name.replace(/\{.*/, ''))
  t.strictSame(metrics.filter(name => !told.includes(name)), [], 'each family of metrics has its row')

  const keys = [...read('src/store/key-names.ts').matchAll(/\$\{this\.partition\(tag\)\}(\w+(?::\w+)*)/g)].map(([, name]) => name!)
  t.ok(keys.length > 20)
  const rows = read('docs/architecture.md').split('\n').filter(line => line.startsWith('| `handoff:')).join('\n')
  t.strictSame(keys.filter(name => !new RegExp(`:${name}\\b`).test(rows)), [], 'each kind of key in Redis has its row')

  const commands = [...read('src/cli/operator.ts').matchAll(/(program|keys)\.command\('([\w-]+)'\)/g)].map(([, parent, name]) => parent === 'keys' ? `keys ${name}` : name!)
  commands.push(...[...read('src/cli/operator.ts').matchAll(/(?:verb|one)\('(\w+)'/g)].map(([, name]) => `webhooks ${name}`))
  t.equal(commands.filter(name => name.startsWith('webhooks ')).length, 9)
  commands.push(...[...read('src/cli/operator.ts').matchAll(/(?:limit|whose)\('(\w+)'/g)].map(([, name]) => `limits ${name}`))
  t.equal(commands.filter(name => name.startsWith('limits ')).length, 3)
  commands.push(...['block', 'list', 'unblock'].map(name => `tokens ${name}`), 'issuers check')
  commands.push(...Object.keys(agents))
  for (const command of commands.filter(name => !['keys', 'tokens', 'issuers'].includes(name))) {
    t.ok(firstColumn('docs/cli.md').some(name => name.startsWith(`handoff ${command}`)), `handoff ${command}`)
  }
})

t.test('the pages name the tested servers and Node versions', async t => {
  const ci = read('.ci/run')
  for (const page of ['README.md', 'docs/redis.md']) for (const server of testedServers) t.match(read(page), server, page)
  // The system's own server is 7.0.
  const others = /for server in (.*); do/.exec(ci)![1]!.split(' ')
  t.strictSame(testedServers.slice(1).map(server => server.replace(/\.\d+$/, '').replace(' ', '-').toLowerCase()), others)
  for (const major of ['20', '24']) t.match(read('README.md'), new RegExp(`Node[^.]*\\b${major}\\b`), `Node ${major}`)
})

t.test('the workflow runs .ci/run, and the forms are forms', async t => {
  const { permissions, jobs } = parse(read('.github/workflows/ci.yml'))
  t.strictSame(permissions, { contents: 'read' })
  const steps = Object.values<any>(jobs).flatMap(job => job.steps)
  t.match(steps.at(-1).run, / \.ci\/run$/)
  t.ok(exists('.ci/run'))
  const [major] = /\d+/.exec(JSON.parse(read('package.json')).engines.node)!
  t.strictSame(steps.flatMap(step => step.with?.['node-version'] ?? []), [Number(major)], 'the oldest Node that is promised')
  for (const { uses } of steps) if (uses !== undefined) t.match(uses, /@[0-9a-f]{40}$/, 'by commit: a tag can be moved')
  for (const path of [...files].filter(path => /^\.github\/ISSUE_TEMPLATE\/(?!config)/.test(path))) {
    const { name, description, body } = parse(read(path))
    t.ok(name && description, path)
    t.ok(body.every(({ type, attributes }: any) => type === 'markdown' ? attributes.value : attributes.label), path)
  }
})
