import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import files from '@fastify/static'
import Fastify from 'fastify'
import t from 'tap'
import { keepFilesInMemory } from '../../src/http/fixed-answers.ts'
import { metricsRoute } from '../../src/metrics/registry.ts'
import { testApp } from '../helpers/app.ts'
import { scratchDir } from '../helpers/processes.ts'
import { until } from '../helpers/until.ts'
import { listen } from '../helpers/wire.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)
const { app } = service

const index = '/.well-known/agent-skills/index.json'
const skill = '/.well-known/agent-skills/agent-handoff/SKILL.md'
const pages = ['/', '/openapi.json', '/docs/json', '/docs/yaml', '/llms.txt', '/problems', index, skill]

t.test('what needs no key and is the same for everybody is made once', async t => {
  const { swagger } = app
  let made = 0
  app.swagger = ((...options: Parameters<typeof swagger>) => {
    made++
    return swagger(...options)
  }) as typeof swagger
  for (let n = 0; n < 5; n++) for (const url of ['/openapi.json', '/docs/json']) t.equal((await app.inject(url)).statusCode, 200, url)
  t.equal(made, 2)
})

t.test('it has an ETag, and who has it already is told so', async t => {
  for (const url of pages) {
    const first = await app.inject(url)
    const etag = String(first.headers.etag)
    t.match(etag, /^"[\w-]{22}"$/, url)
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const again = await app.inject({ url, headers: { 'if-none-match': known } })
      t.match({ status: again.statusCode, body: again.body, etag: again.headers.etag }, { status: 304, body: '', etag }, url)
    }
    const other = await app.inject({ url, headers: { 'if-none-match': '"other"' } })
    t.match({ status: other.statusCode, body: other.body, type: other.headers['content-type'] }, { status: 200, body: first.body, type: first.headers['content-type'] }, url)
  }
})

t.test('once the service listens, it has the service’s own URL', async t => {
  const shown = ['/', '/openapi.json', '/llms.txt', index, skill]
  const before = new Map<string, string>()
  for (const url of shown) before.set(url, (await app.inject(url)).body)
  const port = await listen(app)
  for (const url of shown) {
    const { body } = await app.inject(url)
    t.match(body, `:${port}`, url)
    t.not(body, before.get(url), url)
  }
})

t.test('metrics are made one at a time, and shared by who asks meanwhile', async t => {
  const app = Fastify()
  let made = 0
  let atOnce = 0
  let most = 0
  const ends: Array<() => void> = []
  metricsRoute(app, {
    contentType: 'text/plain',
    async metrics () {
      const own = ++made
      most = Math.max(most, ++atOnce)
      await new Promise<void>(resolve => ends.push(resolve))
      atOnce--
      if (own === 2) throw new Error('it failed')
      return String(own)
    },
  })
  const ask = () => app.inject('/metrics')
  // inject sends once somebody waits for it.
  const first = Promise.all([ask()])
  await until(() => made === 1)
  const meanwhile = Promise.all([ask(), ask(), ask()])
  await sleep(300)
  t.equal(made, 1, 'the second waits for the first, however long that takes')
  ends[0]!()
  t.equal((await first)[0].body, '1')
  await until(() => made === 2)
  const third = Promise.all([ask()])
  ends[1]!()
  for (const answer of await meanwhile) t.equal(answer.statusCode, 500)
  await until(() => made === 3)
  ends[2]!()
  t.equal((await third)[0].body, '3', 'a failure isn’t the end')
  t.equal(most, 1)
})

t.test('files are served from memory', async t => {
  const root = await scratchDir(t)
  await writeFile(join(root, 'file.txt'), '0123456789')
  const app = Fastify()
  t.teardown(() => app.close())
  keepFilesInMemory(app)
  await app.register(files, { root })

  const whole = await app.inject('/file.txt')
  t.equal(whole.body, '0123456789')
  t.equal(whole.headers['content-length'], '10')

  // The same length, so that only the content differs.
  await writeFile(join(root, 'file.txt'), 'abcdefghij')
  t.equal((await app.inject('/file.txt')).body, '0123456789', 'not read again')

  const part = await app.inject({ url: '/file.txt', headers: { range: 'bytes=2-4' } })
  t.equal(part.statusCode, 206)
  t.equal(part.body, '234')
  t.equal(part.headers['content-range'], 'bytes 2-4/10')

  const head = await app.inject({ method: 'HEAD', url: '/file.txt' })
  t.equal(head.headers['content-length'], '10')
  t.equal(head.body, '')

  const fresh = await app.inject('/file.txt')
  const unchanged = await app.inject({ url: '/file.txt', headers: { 'if-none-match': fresh.headers.etag as string } })
  t.equal(unchanged.statusCode, 304)
  t.equal(unchanged.body, '')
})
