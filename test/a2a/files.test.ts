import { pathToFileURL } from 'node:url'
import t from 'tap'
import { Fields } from '../../src/a2a/fields.ts'
import { filesGiven } from '../../src/a2a/files.ts'
import { readSendRequest } from '../../src/a2a/message.ts'
import { a2aTest, bindings, sending, shown, text } from '../helpers/a2a.ts'
import { scratchDir } from '../helpers/processes.ts'
import { receiver } from '../helpers/receiver.ts'
import { front, remoteAgent } from '../helpers/remote-agent.ts'
import { until } from '../helpers/until.ts'

/** Files as `url` parts of A2A, in both directions (docs/a2a.md). */

type Json = Record<string, any>

const anyType = { defaultInputModes: ['*/*'] }
const pdf = { url: 'https://example.com/in/report%20one.pdf?v=2', mediaType: 'application/pdf' }
const sha256 = 'ab'.repeat(32)

for (const binding of bindings) {
  t.test(`${binding}: links of a message are files of the handoff, and those of the result stand behind its parts`, async t => {
    const service = await a2aTest(t, {}, anyType)
    const { call } = service
    const alice = await service.client2a('alice', binding)
    const parts = [...text('Read it.'), pdf, { data: { n: 1 } }, { url: 'https://example.com/x', filename: 'dir/a.txt', mediaType: 'text/plain; charset=utf-8' }]
    const task = shown(await alice.sendMessage(sending(parts, { returnImmediately: true })) as any)
    const files = [
      { name: 'report one.pdf', media_type: 'application/pdf', uri: pdf.url }, { name: 'a.txt', media_type: 'text/plain', uri: 'https://example.com/x' }
    ]
    const caught = (await call('bob', 'POST', '/api/catch', { inbox: 'desk' })).json().items[0]
    t.match(caught, { handoff_id: task.id, task: 'Read it.', output: { n: 1 }, file_urls: [null, null] })
    t.strictSame(caught.files, files)
    const { history } = shown(await alice.getTask({ tenant: '', id: task.id }))
    t.match(history, [{ parts: [{ text: 'Read it.' }, { data: { n: 1 } }, { ...pdf, filename: 'report one.pdf' }, { url: 'https://example.com/x', filename: 'a.txt', mediaType: 'text/plain' }] }])
    await call('bob', 'POST', `/api/done/${task.id}`, { output: { text: 'Done.' }, files: [{ name: 'out.bin', uri: 'https://example.com/out', sha256 }] })
    const { artifacts } = shown(await alice.getTask({ tenant: '', id: task.id }))
    t.match(artifacts, [{ artifactId: 'result', parts: [{ text: 'Done.' }, { url: 'https://example.com/out', filename: 'out.bin' }] }])
    t.equal(artifacts[0].parts.length, 2)
  })
}

t.test('what is a file, and what stays a part', async t => {
  const service = await a2aTest(t, {}, anyType)
  const { call, rpc } = service
  let count = 0
  const passed = async (parts: object[]) => {
    const { json } = await rpc('SendMessage', { message: { messageId: `f-${++count}`, role: 'ROLE_USER', parts }, configuration: { returnImmediately: true } })
    if (json.error !== undefined) return json
    return (await call('bob', 'GET', `/api/catch/${json.result.task.id}`)).json()
  }
  const link = (url: string, more: object = {}) => ({ url, mediaType: 'text/csv', ...more })
  const names = async (...parts: object[]) => (await passed(parts)).files?.map(({ name }: Json) => name)
  t.strictSame(await names(link('https://e.com/a.csv'), link('https://e.com/b/a.csv'), link('https://f.com/a.csv'), link('https://e.com/a-2.csv')), ['a.csv', 'a-2.csv', 'a-3.csv', 'a-2-2.csv'])
  t.strictSame(await names(link('https://e.com/'), link('https://e.com'), link('https://e.com/a/..'), link('https://e.com/%2e%2e'), link('https://e.com/x', { filename: '..' })), ['file', 'file-2', 'file-3', 'file-4', 'file-5'])
  t.strictSame(await names(link('https://e.com/%ff'), link('https://e.com/a%2Fb%5Cc%0A'), link('https://e.com/x', { filename: 'q\u0000\\r' })), ['%ff', 'c', 'r'])
  const long = await names(link('https://e.com/x', { filename: 'é'.repeat(200) + '.txt' }), link('https://e.com/y', { filename: 'é'.repeat(200) + '.txt' }))
  t.ok(long.every((name: string) => Buffer.byteLength(name) <= 255) && long[0] !== long[1], long.join())

  const alone = await passed([link('https://e.com/a.csv')])
  t.match(alone, { task: 'message', output: {}, files: [{ name: 'a.csv' }] })
  t.match(shown(await (await service.client2a('alice')).getTask({ tenant: '', id: alone.handoff_id })).history, [{ parts: [{ url: 'https://e.com/a.csv' }] }])

  for (const part of [
    { url: 'https://e.com/a.csv' }, link('http://e.com/a.csv'), link('ftp://e.com/a'), link('https://e.com/a b'), link(`https://e.com/${'a'.repeat(2048)}`), link('https://e.com/a', { mediaType: 'csv' }), { raw: 'YQ==', mediaType: 'text/csv' }
  ]) {
    const caught = await passed([...text('x'), part])
    t.strictSame(caught.output, { parts: [part] }, 'as it came')
    t.notOk('files' in caught)
  }
  const mixed = await passed([link('https://e.com/a.csv'), { url: 'http://e.com/b' }, { data: { n: 1 } }])
  t.match(mixed, { output: { parts: [{ url: 'http://e.com/b' }, { data: { n: 1 } }] }, files: [{ name: 'a.csv' }] })
  const many = await passed(Array.from({ length: 51 }, (_, at) => link(`https://e.com/${at}`)))
  t.match(many.error, { code: -32602 })
  t.match(JSON.stringify(many.error), '/message/parts')
  t.equal((await passed(Array.from({ length: 50 }, (_, at) => link(`https://e.com/${at}`)))).files.length, 50)
  // Either would keep the service busy for minutes, if its work grew with the square of what comes.
  const same = await passed(Array.from({ length: 25_000 }, () => ({ url: 'https://e.co', mediaType: 'a/b' })))
  t.match(same.error, { code: -32602, message: /more than 50 files/ })
  t.strictSame(await names(link('https://e.com/x', { filename: '😀'.repeat(220_000) })), ['😀'.repeat(63)])
})

t.test('a part is read once, however much is asked of it', async t => {
  const request = { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ url: 'https://example.com/a', mediaType: 'text/plain; charset=utf-8', filename: 'b' }, { url: 'https://example.com/c', media_type: 'text/plain' }] } }
  const { message } = readSendRequest(new Fields(Buffer.from(JSON.stringify(request))), { inputModes: ['text/*'], outputModes: [] })
  const unreadable = message.parts.map(part => ({ ...part, whole: Buffer.from('{') }))
  t.strictSame(filesGiven(unreadable), [{ name: 'b', uri: 'https://example.com/a', media_type: 'text/plain' }, { name: 'c', uri: 'https://example.com/c', media_type: 'text/plain' }])
})

t.test('files of a result that has artifacts, or nothing else, are an artifact', async t => {
  const service = await a2aTest(t)
  const { call, rpc } = service
  const file = { name: 'out.csv', uri: 'https://example.com/out', media_type: 'text/csv' }
  const part = { url: file.uri, filename: file.name, mediaType: file.media_type }
  const artifactsOf = async (output: object | null, files: object[] | null = [file]) => {
    const { json } = await rpc('SendMessage', { message: { messageId: `r-${JSON.stringify([output, files])}`, role: 'ROLE_USER', parts: text('x') }, configuration: { returnImmediately: true } })
    const { id } = json.result.task
    await call('bob', 'GET', `/api/catch/${id}`)
    t.equal((await call('bob', 'POST', `/api/done/${id}`, { output, files })).statusCode, 200)
    return (await rpc('GetTask', { id })).json.result.artifacts
  }
  t.strictSame(await artifactsOf(null), [{ artifactId: 'result', parts: [part] }])
  t.strictSame(await artifactsOf({}), [{ artifactId: 'result', parts: [part] }])
  t.strictSame(await artifactsOf({ n: 1 }), [{ artifactId: 'result', parts: [{ data: { n: 1 }, mediaType: 'application/json' }, part] }])
  t.strictSame(await artifactsOf({ parts: [{ text: 'a' }, { data: [] }] }), [{ artifactId: 'result', parts: [{ text: 'a' }, { data: [] }, part] }])
  const own = [{ artifactId: 'a', parts: [{ text: 'x' }] }]
  t.strictSame(await artifactsOf({ artifacts: own }), [...own, { artifactId: 'result', parts: [part] }])
  const named = [{ artifactId: 'result', parts: [{ text: 'x' }] }]
  t.strictSame(await artifactsOf({ artifacts: named }), [...named, { artifactId: 'result-files', parts: [part] }])
  t.strictSame(await artifactsOf({ artifacts: own }, null), own, 'without files as they are')
  t.equal(await artifactsOf({}, null), undefined)
  t.equal(await artifactsOf({ artifacts: [] }, null), undefined)
  const none = { artifacts: [], log: 'none were made' }
  t.strictSame(await artifactsOf(none, null), [{ artifactId: 'result', parts: [{ data: none, mediaType: 'application/json' }] }], 'what stands beside an empty list isn’t lost')
})

t.test('an upload of a result has a URL for now, made anew when its task is read or followed', async t => {
  const env = { FILES_URL: String(pathToFileURL(await scratchDir(t))) }
  const service = await a2aTest(t, env, {}, { files: { spare: { share: 0, bytes: 0 } } })
  const { call, rpc, address } = service
  const { uri } = await service.client('bob').files.put(Buffer.from('four'), { name: 'out.txt', mediaType: 'text/plain' })
  const files = [{ name: 'link', uri: 'https://example.com/o' }, { name: 'out.txt', uri }]
  const begun = async (messageId: string) => {
    const { json } = await rpc('SendMessage', { message: { messageId, role: 'ROLE_USER', parts: text('x') }, configuration: { returnImmediately: true } })
    await call('bob', 'GET', `/api/catch/${json.result.task.id}`)
    return json.result.task.id
  }
  const done = async (id: string) => t.equal((await call('bob', 'POST', `/api/done/${id}`, { files })).statusCode, 200)
  const isFetched = async (artifact: Json, from: string) => {
    const [link, { url, filename, mediaType }] = artifact.parts
    t.match([link.url, filename, mediaType], ['https://example.com/o', 'out.txt', 'text/plain'])
    t.ok(url.startsWith(`${address}/files/`), `${from}: ${url}`)
    t.equal(await (await fetch(url)).text(), 'four')
  }
  const id = await begun('read')
  await done(id)
  await isFetched((await rpc('GetTask', { id })).json.result.artifacts[0], 'GetTask')
  const sent = await rpc('SendMessage', { message: { messageId: 'read', role: 'ROLE_USER', parts: text('x') } })
  await isFetched(sent.json.result.task.artifacts[0], 'SendMessage')
  const listed = (await rpc('ListTasks', { includeArtifacts: true })).json.result.tasks[0]
  t.equal(listed.artifacts[0].parts[1].url, uri, 'a list has no URLs')
  const followed = await begun('followed')
  const changes = (await service.client2a('alice')).resubscribeTask({ tenant: '', id: followed })
  await changes.next()
  await done(followed)
  for await (const change of changes) {
    const { payload } = change as Json
    if (payload.$case === 'artifactUpdate') {
      const parts = payload.value.artifact.parts.map(({ content, filename, mediaType }: Json) => ({ url: content.value, filename, mediaType }))
      await isFetched({ parts }, 'a stream')
      return
    }
  }
  t.fail('no artifact came')
})

t.test('a push config is sent them with the artifact', async t => {
  const service = await a2aTest(t, { WEBHOOK_SECRET: 'webhook-root-secret-0123456789', WEBHOOK_ALLOW: '127.0.0.0/8' })
  service.app.deliverer!.start()
  const to = await receiver(t)
  const alice = await service.client2a('alice')
  const { id } = shown(await alice.sendMessage(sending(text('x'), { returnImmediately: true, taskPushNotificationConfig: { id: 'a', url: to.url } })) as any)
  await service.call('bob', 'GET', `/api/catch/${id}`)
  await service.call('bob', 'POST', `/api/done/${id}`, { files: [{ name: 'o', uri: 'https://example.com/o' }] })
  const sent = await until(() => to.got.map(({ body }) => JSON.parse(body)).find(one => one.artifactUpdate !== undefined))
  t.strictSame(sent.artifactUpdate.artifact, { artifactId: 'result', parts: [{ url: 'https://example.com/o', filename: 'o' }] })
})

t.test('a remote agent is sent a handoff’s files as url parts', async t => {
  const service = await a2aTest(t)
  const { pass, work, status } = front(service)
  const { url, asked } = await remoteAgent(t, says => says.message(text('ok')))
  const ended = work(url)
  const id = await pass({ files: [{ name: 'a.csv', uri: pdf.url, media_type: 'text/csv', sha256 }, { name: 'b', uri: 'https://example.com/b' }] })
  t.match(await ended, { code: 0 })
  t.match(await status(id), { status: 'done', result: { text: 'ok' } })
  const { params } = asked.find(({ method }) => /Send/.test(method))!
  t.strictSame(params.message.parts, [{ text: 'x' }, { url: pdf.url, filename: 'a.csv', mediaType: 'text/csv' }, { url: 'https://example.com/b', filename: 'b' }])
})
