import { createHash } from 'node:crypto'
import t from 'tap'
import type { Test } from 'tap'
import { randomToken, tagOf } from '../../src/core/ids.ts'
import { secrets, testApp } from '../helpers/app.ts'
import type { Who } from '../helpers/app.ts'
import { asksAlone } from '../../src/store/sealing.ts'
import { arrangements } from '../helpers/extent.ts'
import { agentOf, told } from '../helpers/mcp.ts'
import { isProblem } from '../helpers/problems.ts'
import { receiver } from '../helpers/receiver.ts'
import { until } from '../helpers/until.ts'
import { webhookApp } from '../helpers/webhooks.ts'

/** Files that lie elsewhere, of a pass and of a done (docs/api.md, "Files"). */

type Json = Record<string, any>

const sha256 = 'Ab'.repeat(32)
const csv = { uri: 'https://files.example.com/a/figures.csv?x=%20', sha256, name: 'figures ü.csv', bytes: 1_400_000, media_type: 'text/csv' }
const link = { uri: 'https://example.com/b', name: 'b', media_type: null }
/** As they are kept. */
const kept = `[{"name":"figures ü.csv","media_type":"text/csv","bytes":1400000,"sha256":"${sha256.toLowerCase()}","uri":"${csv.uri}"},{"name":"b","uri":"https://example.com/b"}]`
const odd = '{"n":[9007199254740993,1.0,1e400],"a":1,"a":2, "s":"\\ud800","files":[{"x":1}],"t":",\\"files\\":[{}]"}'
const payload = `"task":"t","output":${odd},"context":{},"constraints":"c"`
const upload = { name: 'u', uri: 'handoff-file:AAAAAAAAAAAAAAAAAAAAAAAAA' }

for (const isSpread of arrangements) {
  t.test(isSpread ? 'in a Cluster' : 'on one Redis', async t => {
    const service = await webhookApp(t, { READER_KEYS: `olga:${secrets.operator}`, HOP_LIMIT: '3' }, { isSpread })
    const { call, pass, caught, redis, prefix } = service
    const get = (path: string, who: Who = 'alice') => call(who, 'GET', path)
    const passed = async (body: string | object, headers = {}) => {
      const reply = await call('alice', 'POST', '/api/pass', body, headers)
      t.equal(reply.statusCode, 201, reply.body)
      return reply.json().handoff_id as string
    }
    const withFiles = (more = '') => passed(`{"files":[${JSON.stringify(csv)},${JSON.stringify(link)}],${payload}${more}}`)
    /** As Redis has it, unless all that tests write is sealed. */
    const isKept = async (id: string, text: string) => {
      if (process.env.TEST_SEALED === undefined) t.equal(await redis.hget(`${prefix}:{${tagOf(id)}}:h:default:${id}`, 'p'), text)
    }

    t.test('whoever catches gets them behind the constraints, in one form, and all else literally', async t => {
      const id = await withFiles()
      await isKept(id, `${payload},"files":${kept}`)
      const { body } = await call('bob', 'GET', `/api/catch/${id}`, undefined, { 'idempotency-key': 'k' })
      t.match(body, `"status":"caught",${payload},"files":${kept},"created_at":"`)
      t.ok(body.endsWith(',"file_urls":[null,null]}'), body)
      t.equal((await call('bob', 'GET', `/api/catch/${id}`, undefined, { 'idempotency-key': 'k' })).body, body, 'a replay')
      const inbox = await withFiles(',"to":"box","labels":{"run":"1"}')
      const taken = await call('bob', 'POST', '/api/catch', { inbox: 'box' })
      t.match(taken.body, `${payload},"files":${kept},"created_at":"`)
      t.match(taken.json().items, [{ handoff_id: inbox, file_urls: [null, null] }])
    })

    t.test('without files every answer is as it was, and so is what Redis keeps', async t => {
      for (const files of ['', '"files":null,']) {
        const id = await passed(`{${files}${payload}}`)
        await isKept(id, payload)
        const one = (await call('bob', 'GET', `/api/catch/${id}`)).body
        t.match(one, new RegExp(`^\\{"handoff_id":"${id}","status":"caught",${escaped(payload)},"created_at":"[^"]+"\\}$`))
        t.equal((await call('bob', 'POST', `/api/done/${id}`, `{${files}"output":${odd}}`)).statusCode, 200)
        await isKept(id, odd)
        t.match((await get(`/api/status/${id}`)).body, new RegExp(`"approval":null,"result":${escaped(odd)}\\}$`))
      }
    })

    t.test('done gives files, behind the result', async t => {
      for (const [output, result] of [[`"output":${odd},`, odd], ['', 'null'], ['"output":null,', 'null']] as const) {
        const id = await caught({ labels: { run: 'f' } })
        const first = await call('bob', 'POST', `/api/done/${id}`, `{${output}"files":[${JSON.stringify(csv)},${JSON.stringify(link)}]}`, { 'idempotency-key': 'd' })
        t.equal(first.statusCode, 200, first.body)
        const { body } = await get(`/api/status/${id}`)
        t.match(body, `"result":${result},"result_files":${kept},"result_file_urls":[null,null]`)
        const again = await call('bob', 'POST', `/api/done/${id}`, `{${output}"files":[${JSON.stringify(csv)},${JSON.stringify(link)}]}`, { 'idempotency-key': 'd' })
        t.equal(again.body, first.body)
        t.equal(again.headers['idempotency-replayed'], 'true')
        isProblem(t, await call('bob', 'POST', `/api/done/${id}`, `{${output}"files":[${JSON.stringify(link)}]}`, { 'idempotency-key': 'd' }), 409, 'already_done')
        const waited = await call('alice', 'POST', '/api/wait', { ids: [id] })
        t.match(waited.body, `"result":${result},"result_files":${kept}`)
        t.notMatch(waited.body, 'file_urls')
        const next = await pass({ after: [id] })
        t.match((await call('bob', 'GET', `/api/catch/${next}`)).body, `"after":[{"handoff_id":"${id}","status":"done","result":${result},"result_files":${kept}}]`)
        const all = await get(`/api/handoffs/${id}`, 'operator')
        t.match(all.body, `"result":${result},"result_files":${kept},"error":null`)
        t.notMatch(all.body, 'file_urls')
      }
    })

    t.test('who may read all of it gets files without URLs', async t => {
      const id = await withFiles()
      const { body } = await get(`/api/handoffs/${id}`, 'operator')
      t.match(body, `"constraints":"c","files":${kept},"result":null,"error":null`)
      t.notMatch(body, 'file_urls')
      const plain = await passed(`{${payload}}`)
      t.notOk('files' in (await get(`/api/handoffs/${plain}`, 'operator')).json())
    })

    t.test('an approver gets them, and the digest goes to their end', async t => {
      const id = await withFiles(',"require_human":true')
      const { body, ...reply } = await get(`/api/approvals/${id}`, 'approver')
      t.match(body, `${payload},"files":${kept},"created_at":"`)
      const { digest, file_urls: urls } = reply.json()
      t.strictSame(urls, [null, null])
      t.equal(digest, digestOf(`{${payload},"files":${kept}}`))
      const plain = await passed(`{${payload},"require_human":true}`)
      const { digest: other, ...rest } = (await get(`/api/approvals/${plain}`, 'approver')).json()
      t.equal(other, digestOf(`{${payload}}`))
      t.notOk('files' in rest)
      t.notOk('file_urls' in rest)
      isProblem(t, await call('approver', 'POST', `/api/approve/${id}`, { digest: other }), 409, 'content_changed')
      t.equal((await call('approver', 'POST', `/api/approve/${id}`, { digest })).statusCode, 200)
      const { body: got } = await call('bob', 'GET', `/api/catch/${id}`)
      const [, inside] = /"status":"caught",(.*),"created_at":/.exec(got)!
      t.equal(digestOf(`{${inside}}`), digest, 'by the catch answer alone')
      await call('bob', 'POST', `/api/done/${id}`)
      t.match((await get(`/api/approvals/${id}`, 'approver')).json(), { task: null, constraints: null, digest })
      t.notOk('files' in (await get(`/api/approvals/${id}`, 'approver')).json())
    })

    t.test('successors have them, and loops are found by them', async t => {
      const id = await withFiles(',"max_attempts":2,"retry_delay":0')
      await call('bob', 'GET', `/api/catch/${id}`)
      const { reissued_as: next } = (await call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm' } })).json()
      t.match((await call('bob', 'GET', `/api/catch/${next}`)).body, `${payload},"files":${kept},"created_at":"`)
      const third = (await call('alice', 'POST', `/api/reissue/${next}`)).json().handoff_id
      t.match((await call('bob', 'GET', `/api/catch/${third}`)).body, `${payload},"files":${kept},"created_at":"`)

      let parent = await pass({ files: [csv] })
      const step = async (files: object[]) => {
        await call('alice', 'GET', `/api/catch/${parent}`)
        return await call('alice', 'POST', '/api/pass', { task: 't', files, parent })
      }
      parent = (await step([csv])).json().handoff_id
      const other = await step([{ ...csv, bytes: 1 }])
      t.equal(other.statusCode, 201, 'with another file it is other work')
      isProblem(t, await step([csv]), 409, 'loop_detected')
      isProblem(t, await step([csv, upload]), 409, 'file_missing')
    })

    t.test('a batch passes, catches and reads them, without URLs', async t => {
      const op = async (who: Who, op: string, id?: string, body?: object) => {
        const { body: text, ...reply } = await call(who, 'POST', '/api/batch', { operations: [{ op, id, body }] })
        return { text, one: reply.json().results[0] }
      }
      const { one } = await op('alice', 'pass', undefined, { task: 't', files: [csv, link] })
      t.equal(one.status, 201)
      const id = one.body.handoff_id
      const got = await op('bob', 'catch', id)
      t.match(got.text, `"files":${kept}`)
      t.notMatch(got.text, 'file_urls')
      t.equal((await op('bob', 'done', id, { files: [csv, link] })).one.status, 200)
      const seen = await op('alice', 'status', id)
      t.match(seen.text, `"result":null,"result_files":${kept}`)
      t.notMatch(seen.text, 'file_urls')
      t.match((await op('alice', 'pass', undefined, { task: 't', files: [upload] })).one, { status: 409, body: { code: 'file_missing' } })
      t.match((await op('alice', 'pass', undefined, { task: 't', files: [{ ...csv, bytes: -1 }] })).one, { status: 400, body: { errors: [{ pointer: '/files/0/bytes' }] } })
    })

    t.test('tools take them, and give them with URLs', async t => {
      const [alice, bob] = await Promise.all((['alice', 'bob'] as const).map(who => agentOf(t, service, who, '2026-07-28')))
      const { handoff_id: id } = told(await alice!.call('handoff_pass', { task: 't', files: [csv, link] }))
      for (const name of ['handoff_catch', 'handoff_read']) {
        const { content: [{ text }] } = await bob!.call(name, { id, ...name === 'handoff_read' && { offset: 0 } }) as any
        t.match(text, `"files":${kept},"created_at":"`)
        t.match(text, '"file_urls":[null,null]}')
      }
      t.match(await bob!.call('handoff_done', { id, files: [upload] }), { isError: true, content: [{ text: /file_missing/ }] })
      await bob!.call('handoff_done', { id, files: [csv, link] })
      t.match(JSON.stringify(told(await alice!.call('handoff_status', { id }))), `"result_files":${kept},"result_file_urls":[null,null]`)
      t.notMatch(JSON.stringify(told(await alice!.call('handoff_wait', { ids: [id] }))), 'file_urls')
    })

    t.test('a callback that has the result has its files, without URLs', async t => {
      const target = await receiver(t)
      const id = await caught({ callback: { url: target.url, result: true } })
      const without = await caught({ callback: { url: target.url } })
      await call('bob', 'POST', `/api/done/${id}`, `{"output":${odd},"files":[${JSON.stringify(csv)},${JSON.stringify(link)}]}`)
      await call('bob', 'POST', `/api/done/${without}`, { files: [csv] })
      await until(() => target.got.length === 2)
      const bodyOf = (id: string) => target.got.find(({ body }) => body.includes(id))!.body
      t.ok(bodyOf(id).endsWith(`,"result":${odd},"result_files":${kept}}`), bodyOf(id))
      t.notMatch(bodyOf(without), 'files')
    })

    t.test('a schedule takes links alone, and its runs have them', async t => {
      const put = (files: object[]) => call('alice', 'PUT', '/api/schedules/daily', { cron: '0 0 * * *', handoff: { task: 't', files } })
      t.match(isProblem(t, await put([csv, upload]), 400, 'invalid_request'), { errors: [{ pointer: '/handoff/files' }] })
      t.match(isProblem(t, await put([csv, csv]), 400, 'invalid_request'), { errors: [{ pointer: '/handoff/files/1/name' }] })
      t.match(isProblem(t, await put([{ ...csv, uri: 'http://example.com' }]), 400, 'invalid_request'), { errors: [{ pointer: '/handoff/files/0/uri' }] })
      t.equal((await put([csv, link])).statusCode, 201)
      const { handoff_id: id } = (await call('alice', 'POST', '/api/schedules/daily/run')).json()
      t.match((await call('bob', 'GET', `/api/catch/${id}`)).body, `"files":${kept},"created_at":"`)
    })

    t.test('what isn’t there is told after what comes before it', async t => {
      const send = (body: object, key?: string) => call('alice', 'POST', '/api/pass', { task: 't', files: [upload], ...body }, key === undefined ? {} : { 'idempotency-key': key })
      isProblem(t, await send({}), 409, 'file_missing')
      isProblem(t, await send({ files: [csv, upload] }), 409, 'file_missing')
      isProblem(t, await send({ files: [{ ...upload, uri: 'handoff-file:nothing like an id' }] }), 400, 'invalid_request')
      isProblem(t, await send({ files: [{ ...upload, uri: 'handoff-file:x' }] }), 409, 'file_missing')
      isProblem(t, await send({ parent: 'nobody' }), 409, 'unknown_parent')
      isProblem(t, await send({ after: ['nobody'] }), 409, 'unknown_handoff')
      isProblem(t, await send({ priority: 3 }), 400, 'invalid_request')
      let parent = await pass({})
      for (let hop = 0; hop < 3; hop++) {
        await call('alice', 'GET', `/api/catch/${parent}`)
        parent = await pass({ task: `hop ${hop}`, parent })
      }
      await call('alice', 'GET', `/api/catch/${parent}`)
      isProblem(t, await send({ parent }), 409, 'hop_limit')
      await call('operator', 'PUT', '/api/inboxes/full', { max_pending: 1 })
      await pass({ to: 'full' })
      isProblem(t, await send({ to: 'full' }), 409, 'file_missing')
      isProblem(t, await send({ to: 'full', files: [csv] }), 429, 'inbox_full')

      t.equal((await send({ files: [csv] }, 'once')).statusCode, 201)
      isProblem(t, await send({}, 'once'), 422, 'idempotency_key_reused')
    })

    t.test('of done the state comes before what isn’t there, and that before the schema', async t => {
      const done = (id: string, who: Who = 'bob', body: object = {}, headers = {}) => call(who, 'POST', `/api/done/${id}`, { files: [upload], ...body }, headers)
      const strict = { result_schema: { type: 'object', required: ['a'] } }
      for (const more of [{}, { to: 'box', labels: { run: '2' } }, strict]) {
        const id = await pass(more)
        isProblem(t, await done(id), 409, 'not_caught')
        await call('bob', 'GET', `/api/catch/${id}`)
        isProblem(t, await done(id, 'alice'), 403, 'not_the_catcher')
        isProblem(t, await done(id), 409, 'file_missing')
        isProblem(t, await done(id, 'bob', {}, { 'handoff-worker': 'w' }), 409, 'file_missing')
        t.match((await get(`/api/status/${id}`)).json(), { status: 'caught' }, 'it is still caught')
        t.notOk('worker' in (await get(`/api/status/${id}`)).json())
        t.equal((await done(id, 'bob', { files: [csv], output: { a: 1 } })).statusCode, 200)
        isProblem(t, await done(id), 409, 'already_done')
      }
      const id = await caught(strict)
      isProblem(t, await done(id, 'bob', { files: [csv] }), 422, 'result_invalid')
      isProblem(t, await done('A'.repeat(25)), 404, 'not_found')
      await call('alice', 'POST', `/api/cancel/${id}`, { force: true })
      isProblem(t, await done(id), 409, 'cancelled')
    })

    t.test('a done that was made is a replay, whatever is there now', async t => {
      const { handoffs } = service.store
      const [id, token] = [await caught(), randomToken()]
      const place = { tenant: 'default', id, tag: tagOf(id) }
      const asked = async (token: string) => await handoffs.done(place, token, 'bob', Buffer.alloc(0), '', asksAlone)
      t.match(await asked(token), { outcome: 'unchecked' })
      const made = await handoffs.done(place, token, 'bob', Buffer.from('{}'), '')
      t.match(made, { outcome: 'done' })
      t.match(await asked(token), { ...made, outcome: 'replayed' })
      t.match(await asked(randomToken()), { outcome: 'already_done' })
    })
  })
}

t.test('what is no list of files is refused, with its place', async t => {
  const { call, caught } = await testApp(t)
  const id = await caught()
  const long = 'é'.repeat(127)
  const wrong: Array<[files: unknown, pointer: string, message?: RegExp]> = [
    [{}, '/files'], ['a', '/files'], [[], '/files'], [[1], '/files/0'], [[null], '/files/0'],
    [Array.from({ length: 51 }, (_, at) => ({ ...link, name: `${at}` })), '/files'],
    [[{ name: 'a' }], '/files/0/uri'], [[{ uri: link.uri }], '/files/0/name'],
    [[{ ...link, nam: 'a' }], '/files/0/nam', /did you mean name/], [[{ ...link, mediaType: 'a/b' }], '/files/0/mediaType', /did you mean media_type/],
    ...['', '.', '..', 'a/b', '/', 'a\\b', 'a\nb', '\u0000', 'a\u007f', 'a\u0085', '\ud800', `${long}ab`, 7, null].map((name): [unknown, string] => [[{ ...link, name }], '/files/0/name']),
    ...['http://example.com/', 'https://', 'https:///', 'https://exa mple.com/', 'https://example.com/ä', 'ftp://a/b', 'javascript:alert(1)', 'data:,a', '//example.com', 'handoff-file:', ` ${link.uri}`, `https://example.com/${'a'.repeat(2029)}`, 7].map((uri): [unknown, string] => [[{ ...link, uri }], '/files/0/uri']),
    ...['text', 'text/', '/csv', 'text/csv; charset=utf-8', 'text/csv/x', 'text /csv', 'té/csv', `text/${'a'.repeat(123)}`, ''].map((type): [unknown, string] => [[{ ...link, media_type: type }], '/files/0/media_type']),
    ...[-1, 1.5, '1', 2 ** 53, 1e300].map((bytes): [unknown, string] => [[{ ...link, bytes }], '/files/0/bytes']),
    ...['', 'ab', 'g'.repeat(64), 'a'.repeat(65)].map((digest): [unknown, string] => [[{ ...link, sha256: digest }], '/files/0/sha256']),
    [[link, csv, { ...csv, name: 'b' }], '/files/2/name', /repeated/],
  ]
  for (const [path, at] of [['/api/pass', 'files'], [`/api/done/${id}`, 'files']] as const) {
    for (const [files, pointer, message = /./] of wrong) {
      const { errors } = isProblem(t, await call('bob', 'POST', path, { ...path === '/api/pass' && { task: 't' }, [at]: files }), 400, 'invalid_request') as Json
      t.ok(errors.some((one: Json) => one.pointer === pointer && message.test(one.message)), `${pointer} of ${JSON.stringify(files).slice(0, 100)}`, { errors })
    }
    const twice = await call('bob', 'POST', path, '{"task":"t","files":[{"name":"a","uri":"https://a.example","na\\u006de":"b"}]}')
    t.match(isProblem(t, twice, 400, 'invalid_request'), { errors: [{ pointer: '/files/0/name', message: 'repeated' }] })
    const many = JSON.stringify(Array.from({ length: 50 }, (_, at) => Object.fromEntries(Array.from({ length: 64 }, (_, n) => [`x${at}${n}`, 1]))))
    const { errors } = isProblem(t, await call('bob', 'POST', path, `{"files":${many}}`), 400, 'invalid_request') as Json
    t.ok(errors.length <= 128, `${errors.length} faults`)
  }
  await takes(t, call, [
    [{ ...link, name: `${long}a` }], [{ ...link, name: 'a'.repeat(255) }], [{ ...link, name: '😀'.repeat(63) }], [{ ...link, name: '...' }], [{ ...link, name: ' .' }],
    [{ ...link, uri: `https://example.com/${'a'.repeat(2028)}` }], [{ ...link, uri: 'https://user:password@[::1]:8443/a?b#c' }],
    [{ ...link, bytes: 0 }], [{ ...link, bytes: 2 ** 53 - 1 }], [{ ...link, media_type: `text/${'a'.repeat(122)}` }], [{ ...link, media_type: 'application/vnd.x+json', bytes: null, sha256: null }],
    Array.from({ length: 50 }, (_, at) => ({ ...link, name: `${at}` }))
  ])
})

async function takes (t: Test, call: Awaited<ReturnType<typeof testApp>>['call'], lists: object[][]): Promise<void> {
  for (const files of lists) {
    const reply = await call('alice', 'POST', '/api/pass', { task: 't', files })
    t.equal(reply.statusCode, 201, reply.body)
    const got = (await call('bob', 'GET', `/api/catch/${reply.json().handoff_id}`)).json()
    const given = files.map(file => Object.fromEntries(Object.entries(file).filter(([, value]) => value !== null)))
    t.strictSame(got.files, given)
    t.equal(got.file_urls.length, files.length)
  }
}

function digestOf (content: string): string {
  return `sha-256=:${createHash('sha256').update(content).digest('base64')}:`
}

function escaped (text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
