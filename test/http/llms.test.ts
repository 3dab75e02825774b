import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { execFile } from 'node:child_process'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { version } from '../../src/core/version.ts'
import { mcpHosts } from '../../src/http/mcp-hosts.ts'
import { skillText } from '../../src/http/routes/agent-texts.ts'
import { secrets, testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { nameServer } from '../helpers/name-server.ts'
import { isProblem } from '../helpers/problems.ts'
import { scratchDir } from '../helpers/processes.ts'
import { ofOneReplica } from '../helpers/through.ts'
import { webhookApp, webhookKeys } from '../helpers/webhooks.ts'
import { listen } from '../helpers/wire.ts'

/** Of all that needs no service of its own. */
const { app } = await testApp(t)

type Json = Record<string, any>

/** The two pages that need no key. */
const pages = ['/', '/llms.txt']

/** Every operation below /api in the document: method, path as in a route, and its object. */
async function documented (): Promise<Array<[method: string, path: string, operation: Json]>> {
  const { paths } = (await app.inject('/openapi.json')).json() as { paths: Json }
  return Object.entries(paths).filter(([path]) => path.startsWith('/api/')).flatMap(([path, methods]) => Object.entries(methods as Json)
    .map(([method, operation]): [string, string, Json] => [method.toUpperCase(), path.replace(/\{(\w+)\}/g, ':$1'), operation]))
}

t.test('neither page needs a key, and each has its media type', async t => {
  for (const [url, type] of [['/', 'text/html; charset=utf-8'], ['/llms.txt', 'text/markdown; charset=utf-8']] as const) {
    const answer = await app.inject(url)
    t.equal(answer.statusCode, 200, url)
    t.equal(answer.headers['content-type'], type)
    t.equal(answer.headers['x-content-type-options'], 'nosniff')
    t.equal(answer.headers['cache-control'], 'public, max-age=300')
    const head = await app.inject({ method: 'HEAD', url })
    t.strictSame([head.statusCode, head.body, head.headers['content-type']], [200, '', type])
    t.equal((await app.inject(`${url}?from=elsewhere`)).statusCode, 200)
    for (const method of ['POST', 'PUT', 'DELETE'] as const) {
      const refused = await app.inject({ method, url })
      isProblem(t, refused, 405, 'method_not_allowed')
      t.equal(refused.headers.allow, 'GET, HEAD')
    }
  }
})

/** What a browser shows of a page's text. */
const unescaped = (html: string) => html.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))

t.test('the service hands out the client of its own version, without a key, and says how to install it', async t => {
  const path = '/clients/agent-handoff-client.tgz'
  const versioned = `/clients/agent-handoff-client-${version}.tgz`
  const { statusCode, headers, rawPayload } = await app.inject(path)
  t.equal(statusCode, 200)
  t.match(headers, { 'content-type': 'application/gzip', 'cache-control': 'public, max-age=300', etag: /^"/, 'x-content-type-options': 'nosniff' })
  for (const known of [headers.etag!, '"a", *']) t.equal((await app.inject({ url: path, headers: { 'if-none-match': known } })).statusCode, 304, known)
  t.strictSame([(await app.inject({ method: 'HEAD', url: path })).headers['content-length'], (await app.inject({ method: 'HEAD', url: '/clients/' })).statusCode], [String(rawPayload.length), 200])
  t.match(gunzipSync(rawPayload).toString('latin1'), `"version": "${version}"`)
  for (const url of ['/clients/', ...pages, '/.well-known/agent-skills/agent-handoff/SKILL.md']) {
    for (const line of [`npm install --allow-remote=root http://127.0.0.1:8080${versioned}`, `npx -y --allow-remote=root http://127.0.0.1:8080${path}`]) t.match(unescaped((await app.inject(url)).body), line, url)
  }
  t.equal((await app.inject(`${path}?2`)).statusCode, 200, 'an address that is new to npx')
  t.match(await app.inject(versioned), { statusCode: 200, rawPayload, headers: { 'content-type': 'application/gzip', etag: headers.etag } }, 'the same bytes')
  for (const [old, present] of [['agent-handoff-client-0.0.1.tgz', versioned], ['agent_handoff-0.0.1-py3-none-any.whl', `/clients/agent_handoff-${version}-py3-none-any.whl`]]) {
    const gone = await app.inject(`/clients/${old}`)
    isProblem(t, gone, 404, 'not_found')
    t.match(gone.json().detail, new RegExp(`${old}.*http://127\\.0\\.0\\.1:8080${present!.replaceAll('.', '\\.')}`), 'an old one names the present one')
  }
  isProblem(t, await app.inject('/clients/none.tgz'), 404, 'not_found')
  isProblem(t, await app.inject('/clients/..%2fmain.js'), 404, 'not_found')
})

t.test('each host of agents has its block, on the front page and in docs/mcp.md', async t => {
  const page = unescaped((await app.inject('/')).body)
  const docs = readFileSync(new URL('../../docs/mcp.md', import.meta.url), 'utf8')
  const hosts = mcpHosts('http://127.0.0.1:8080')
  t.strictSame(hosts.map(({ name }) => name), ['Claude Code', 'Claude Desktop', 'Cursor', 'VS Code', 'Codex CLI', 'Gemini CLI'])
  for (const { name, text } of hosts) {
    t.ok(docs.includes(`\n${text}\n\`\`\``), name)
    t.ok(page.includes(`<pre>${text}</pre>`), name)
  }
})

t.test('every operation of the document is on both pages', async t => {
  const [page, text] = await Promise.all(pages.map(async url => (await app.inject(url)).body))
  const operations = await documented()
  t.ok(operations.length >= 8)
  for (const [method, path, { summary, requestBody, parameters }] of operations) {
    t.ok(text!.includes(`### ${summary}\n\n\`${method} ${path}\``), `llms.txt: ${method} ${path}`)
    t.ok(page!.includes(`<code>${method} ${path}</code>`), `the page: ${method} ${path}`)
    const own = text!.split(`\`${method} ${path}\``)[1]!.split('\n#')[0]!
    const members = Object.keys(requestBody?.content['application/json'].schema.properties ?? {})
    const others = (parameters ?? []).filter((one: Json) => one.in !== 'path').map(({ name }: Json) => name as string)
    for (const name of [...members, ...others]) t.match(own, `\`${name}\``, `${method} ${path}: ${name}`)
    t.match(own, `\`\`\`sh\ncurl ${method === 'GET' ? '"' : `-X ${method} "`}http://127.0.0.1:8080${path.replace(':id', '$ID').replace(':name', 'reviewer')}"`, 'an example')
  }
})

/** The key that an example needs, by its scope. */
const keyFor = (block: string): string => {
  const [, scope] = /scope `(approve|operate|read|webhooks)`/.exec(block) ?? []
  return scope === undefined ? secrets.alice : { approve: secrets.approver, operate: secrets.operator, read: secrets.operator, webhooks: webhookKeys.default }[scope]!
}

/** The page's examples: the section of each operation, and its command. */
async function examples ({ app }: TestApp): Promise<Array<[about: string, command: string]>> {
  const { body } = await app.inject('/llms.txt')
  return body.split(/^(?=### )/m).slice(1).map(section => [section, /```sh\n([^]*?)\n```/.exec(section)![1]!])
}

async function bash (script: string, key: string, id = ''): Promise<string> {
  const env = { PATH: process.env.PATH, HANDOFF_KEY: key, ID: id }
  return (await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { env })).stdout
}

t.test('every example can be pasted into a shell', { skip: ofOneReplica, ...skipInQuick }, async t => {
  const { files } = await nameServer(t, { 'example.com': ['93.184.215.14'] })
  const service = await webhookApp(t, { READER_KEYS: `olga:${secrets.operator}`, FILES_URL: String(pathToFileURL(await scratchDir(t))) }, { webhooks: { lookups: files }, files: { spare: { share: 0, bytes: 0 } } }, false)
  await listen(service.app)
  const all = await examples(service)
  const asked = async () => {
    const id = await service.pass()
    await service.call('alice', 'GET', `/api/catch/${id}`)
    await service.call('alice', 'POST', `/api/ask/${id}`, { question: 'q' })
    return id
  }
  for (const [about, command] of all) {
    const file = async () => (await service.call('alice', 'POST', '/api/files', { name: 'f', bytes: 0, sha256: '0'.repeat(64) })).json().file_id as string
    const id = /scope `webhooks`/.test(about)
      ? (await service.make('https://example.com/')).id
      : about.includes('/api/files/:id') ? await file() : /(GET \/api\/ask|POST \/api\/answer)\/:id/.test(about) ? await asked() : await service.pass({ require_human: true })
    if (about.includes('/api/schedules/:name')) await service.call('alice', 'PUT', '/api/schedules/reviewer', { every: 60, handoff: { task: 't' } })
    const said = await bash(command.replace('curl ', "curl -s -w '\\n%{http_code}' "), keyFor(about), id)
    t.match(said, /\n(2\d\d|409)$/, `${command}\n${said}`)
  }
  const of = (path: string) => all.find(([about]) => about.includes(`${path}\``))![1]
  const run = async (path: string, id?: string) => JSON.parse(await bash(of(path), secrets.alice, id)) as Json
  const { handoff_id: id } = await run('POST /api/pass')
  t.match(await run('GET /api/catch/:id', id), { status: 'caught' })
  t.match(await run('POST /api/done/:id', id), { status: 'done' })
  t.match(await run('GET /api/status/:id', id), { status: 'done', result: {} })
})

t.test('with a base path, every link has it', async t => {
  const { app } = await testApp(t, { BASE_URL: 'https://handoff.example/agents/' })
  for (const url of [...pages, '/agents', '/agents/', '/agents/llms.txt']) {
    const { statusCode, body } = await app.inject(url)
    t.equal(statusCode, 200, url)
    t.match(body, 'https://handoff.example/agents/api/pass', url)
    const links = [...body.matchAll(/(?:href="|\]\()([^")]+)/g)].map(([, link]) => link!).filter(link => !/^(#|data:)/.test(link))
    t.ok(links.length >= 5)
    for (const link of links) {
      const { pathname, origin } = new URL(link, 'https://handoff.example')
      t.equal(origin, 'https://handoff.example')
      t.ok(pathname.startsWith('/agents/'), link)
      t.match((await app.inject(pathname)).statusCode, /^(200|303)$/, link)
    }
  }
})

t.test('the front page has the headers of the other pages', async t => {
  const [front, approvals] = await Promise.all(['/', '/approvals/sign-in'].map(async url => (await app.inject(url)).headers))
  for (const name of ['content-security-policy', 'x-frame-options', 'referrer-policy', 'x-content-type-options', 'cross-origin-opener-policy']) {
    t.equal(front![name], approvals![name], name)
    t.ok(front![name], name)
  }
  t.notOk(front!['strict-transport-security'])
  const secure = await testApp(t, { BASE_URL: 'https://handoff.example' })
  t.ok((await secure.app.inject('/')).headers['strict-transport-security'])
})

t.test('the service is a skill, and the index says which bytes it has', async t => {
  const index = await app.inject('/.well-known/agent-skills/index.json')
  t.match(index, { statusCode: 200, headers: { 'content-type': /^application\/json/ } })
  for (const path of ['/.well-known/agent-skills', '/.well-known/agent-skills/']) t.equal((await app.inject(path)).body, index.body, path)
  const { skills: [skill] } = index.json()
  t.match(skill, { name: 'agent-handoff', type: 'skill-md', description: /^Pass a task/ })
  const path = new URL(skill.url).pathname
  t.equal(path, '/.well-known/agent-skills/agent-handoff/SKILL.md')
  const text = await app.inject(path)
  t.match(text, { statusCode: 200, headers: { 'content-type': 'text/markdown; charset=utf-8' } })
  t.equal(skill.digest, `sha256:${createHash('sha256').update(text.body).digest('hex')}`)
  const [, front] = /^---\n([^]*?)\n---\n/.exec(text.body)!
  t.strictSame(front!.split('\n').map(line => line.split(': ', 1)[0]), ['name', 'description'])
  t.ok(front!.includes(skill.description) && skill.description.length <= 1024, 'as long as a description may be')
  t.equal(text.body.match(/^\d\. (Always|Wait|A 409|Send heartbeats|Decline)/gm)!.length, 5, 'the five rules')
  t.equal((await app.inject({ method: 'HEAD', url: path })).statusCode, 200)
})

t.test('the plugin for Claude Code is as its documentation says, and has the skill that is served', async t => {
  const root = new URL('../../', import.meta.url)
  const json = (path: string, folder: URL) => JSON.parse(readFileSync(new URL(path, folder), 'utf8'))
  const marketplace = json('.claude-plugin/marketplace.json', root)
  t.match(marketplace, { name: /^[a-z]+(-[a-z]+)*$/, owner: { name: String }, description: String })
  t.strictSame([Object.keys(marketplace).sort(), marketplace.plugins.length], [['description', 'name', 'owner', 'plugins'], 1])
  const [{ name, source, ...others }] = marketplace.plugins
  t.strictSame(others, {}, 'the plugin describes itself')
  t.match(source, /^\.\/[\w./-]+$/)
  const folder = new URL(`${source}/`, root)

  // The fields of plugin.json that it knows; the objects in userConfig may have no others than these.
  const plugin = json('.claude-plugin/plugin.json', folder)
  t.equal(plugin.name, name)
  t.match(plugin, { description: String, author: { name: String }, license: json('package.json', root).license })
  t.strictSame(Object.keys(plugin).filter(key => !['name', 'displayName', 'description', 'author', 'license', 'keywords', 'userConfig', 'mcpServers'].includes(key)), [])
  for (const [key, option] of Object.entries<Json>(plugin.userConfig)) {
    t.match(key, /^[A-Za-z_]\w*$/)
    t.match(option, { type: 'string', title: String, description: String })
    t.strictSame(Object.keys(option).filter(member => !['type', 'title', 'description', 'default', 'required', 'sensitive'].includes(member)), [])
  }
  t.equal(plugin.userConfig.key.sensitive, true)
  t.equal(plugin.userConfig.url.default, 'http://127.0.0.1:8080')

  // Where components lie when the manifest names no places. What isn't secret is also filled in there.
  const command = readFileSync(new URL('commands/work.md', folder), 'utf8')
  t.match(command, /^---\ndescription: [^:]+\nargument-hint: "\[inbox\]"\ndisable-model-invocation: true\n---\n[^]*\$ARGUMENTS/)
  const { skills: [{ name: skillName }] } = (await app.inject('/.well-known/agent-skills/')).json()
  const at = new URL(`skills/${skillName}/SKILL.md`, folder)
  const skill = skillText('$' + '{user_config.url}', [])
  if (process.env.SKILL === 'write') writeFileSync(at, skill)
  t.ok(existsSync(at) && readFileSync(at, 'utf8') === skill, 'another skill is served: SKILL=write npm test -- test/http/llms.test.ts')
  for (const text of [command, skill]) t.notMatch(text, /user_config\.(?!url\})/)

  // With the values that a user gives, it is the address of the real service, and its header.
  const filled = JSON.parse(JSON.stringify(plugin.mcpServers).replace(/\$\{user_config\.(\w+)\}/g, (_, key: 'url' | 'key') => ({ url: '', key: secrets.alice })[key]))
  const { handoff: { type, url, headers } } = filled
  t.strictSame([Object.keys(filled), type], [['handoff'], 'http'])
  const payload = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  const { result } = (await app.inject({ method: 'POST', url, headers, payload })).json()
  const tools = result.tools.map((tool: Json) => tool.name)
  for (const text of [command, skill]) for (const [tool] of text.matchAll(/handoff_(?!id)[a-z_]+/g)) t.ok(tools.includes(tool), tool)
})
