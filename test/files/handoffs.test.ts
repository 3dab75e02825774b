import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { filesApp, sha256 } from '../helpers/files.ts'
import { isProblem } from '../helpers/problems.ts'

/** Uploads that handoffs are passed with, and are done with. */

const key = `june:${Buffer.alloc(32, 6).toString('base64')}`

for (const [title, isSpread, env] of [['on one Redis', false, {}], ['as in a Cluster', true, {}], ['encrypted', false, { PAYLOAD_KEYS: key }]] as const) {
  t.comment(title)
  const start = (t: Parameters<typeof filesApp>[0], more: Record<string, string> = {}) => filesApp(t, { RETENTION: '3600', ...env, ...more }, { isSpread })

  t.test('an upload is passed by its id, fetched by who catches it, and so is a result’s', async t => {
    const { call, put, pass, url } = await start(t)
    const id = await put('four')
    const uri = `handoff-file:${id}`
    const link = { name: 'link', uri: 'https://x.example/a' }
    const fetched = async (from: string) => await (await fetch(`${url}${new URL(from).pathname}${new URL(from).search}`)).text()
    const known = (await call('alice', 'GET', `/api/files/${id}`)).json()
    isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', files: [{ name: 'n', uri, bytes: 5 }] }), 400, 'invalid_request')
    const gone = { name: 'n', uri: `${uri.slice(0, -2)}${uri.endsWith('AA') ? 'BA' : 'AA'}` }
    isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', files: [gone] }), 409, 'file_missing')
    const refused = await call('alice', 'POST', '/api/pass', { task: 't', files: [{ name: 'm', uri }, gone] })
    t.match(isProblem(t, refused, 409, 'file_missing').detail, gone.uri, 'of two the one that isn’t there')
    isProblem(t, await call('bob', 'POST', '/api/pass', { task: 't', files: [{ name: 'n', uri }] }), 409, 'file_missing', 'another agent’s')
    const handoff = await pass({ files: [link, { name: 'mine', uri, sha256: sha256('four').toUpperCase() }], require_human: true, to: 'inbox', max_attempts: 2, retry_delay: 0 })
    const seen = (await call('approver', 'GET', `/api/approvals/${handoff}`)).json()
    const file = { name: 'mine', ...known.media_type !== null && { media_type: known.media_type }, bytes: 4, sha256: sha256('four'), uri }
    t.strictSame(seen.files, [link, file])
    t.strictSame(Object.keys(seen.file_urls[1]), ['url', 'expires_at'])
    t.equal(seen.file_urls[0], null)
    t.equal(await fetched(seen.file_urls[1].url), 'four')
    t.equal((await call('approver', 'POST', `/api/approve/${handoff}`, { digest: seen.digest })).statusCode, 200)
    const { items: [caught] } = (await call('bob', 'POST', '/api/catch', { inbox: 'inbox' })).json()
    t.strictSame(caught.files, [link, file])
    t.equal(await fetched(caught.file_urls[1].url), 'four')
    isProblem(t, await call('alice', 'DELETE', `/api/files/${id}`), 409, 'file_in_use')
    t.equal((await call('bob', 'GET', `/api/files/${id}`)).statusCode, 200, 'its catcher may have it')
    const { reissued_as: next } = (await call('bob', 'POST', `/api/fail/${handoff}`, { error: { message: 'm' } })).json()
    const again = (await call('bob', 'GET', `/api/catch/${next}`)).json()
    t.strictSame(again.files, [link, file])
    t.equal(await fetched(again.file_urls[1].url), 'four')
    const result = await put('a result', {}, 'bob')
    const done = { output: { n: 1 }, files: [{ name: 'out', uri: `handoff-file:${result}` }] }
    isProblem(t, await call('bob', 'POST', `/api/done/${handoff}`, done), 409, 'already_failed')
    t.equal((await call('bob', 'POST', `/api/done/${next}`, done)).statusCode, 200)
    const status = (await call('alice', 'GET', `/api/status/${next}`)).json()
    t.match(status, { result: { n: 1 }, result_files: [{ name: 'out', bytes: 8, sha256: sha256('a result') }] })
    t.equal(await fetched(status.result_file_urls[0].url), 'a result')
    t.equal((await call('alice', 'GET', `/api/files/${result}`)).statusCode, 200, 'who may read the status')
    isProblem(t, await call('bob', 'DELETE', `/api/files/${result}`), 409, 'file_in_use')
  })

  t.test('the next attempt keeps a file, whose first attempt has gone', async t => {
    const { call, put, pass, redis, prefix } = await start(t)
    const id = await put('four')
    const first = await pass({ files: [{ name: 'n', uri: `handoff-file:${id}` }], max_attempts: 3, retry_delay: 0 })
    await call('bob', 'GET', `/api/catch/${first}`)
    const { reissued_as: next } = (await call('bob', 'POST', `/api/fail/${first}`, { error: { message: 'm' } })).json()
    for (const found of await redis.keys(`${prefix}:*:h:*${first}`)) await redis.del(found)
    isProblem(t, await call('alice', 'DELETE', `/api/files/${id}`), 409, 'file_in_use')
    t.match((await call('bob', 'GET', `/api/catch/${next}`)).json(), { files: [{ name: 'n' }], file_urls: [{ url: /./ }] })
  })

  t.test('a name is nowhere readable once texts are encrypted, and a replay is found', { skip: !('PAYLOAD_KEYS' in env) }, async t => {
    const { make, dump } = await start(t)
    const made = await make('four', { name: 'canary.pdf' }, 'alice', { 'idempotency-key': 'k' })
    t.equal(made.statusCode, 201)
    t.equal((await make('four', { name: 'canary.pdf' }, 'alice', { 'idempotency-key': 'k' })).body, made.body)
    isProblem(t, await make('four', { name: 'other.pdf' }, 'alice', { 'idempotency-key': 'k' }), 422, 'idempotency_key_reused')
    t.notOk(JSON.stringify(await dump()).includes('canary'))
  })
}

const july = `july:${Buffer.alloc(32, 7).toString('base64')}`

t.test('a file whose name is locked or broken has no URL, and all else is delivered', async t => {
  const writer = await filesApp(t, { PAYLOAD_KEYS: july })
  const { prefix, directory, put, redis } = writer
  const both = await filesApp(t, { PAYLOAD_KEYS: `${key},${july}` }, { prefix, directory })
  const { call } = await filesApp(t, { PAYLOAD_KEYS: key }, { prefix, directory })
  const [locked, broken, result] = [await put('locked'), await put('broken'), await put('result', {}, 'bob')]
  const good = await both.put('good')
  const files = [locked, broken, good].map((id, at) => ({ name: `${at}`, uri: `handoff-file:${id}` }))
  const [one, ...several] = [await both.pass({ files }), await both.pass({ files, to: 'box' }), await both.pass({ files, to: 'box' })]
  for (const found of await redis.keys(`${prefix}:*:file:default:${broken}`)) {
    const words = await redis.hgetBuffer(found, 'words')
    words![words!.length - 1]! ^= 1
    await redis.hset(found, 'words', words!)
  }
  isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', files }), 503, 'payload_locked')
  isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', files, parent: 'nobody' }), 409, 'unknown_parent')
  const isDelivered = (answer: { task: string, file_urls: unknown[] }) => t.match(answer, { task: 't', file_urls: [null, null, { url: /./ }] })
  const caught = await call('bob', 'GET', `/api/catch/${one}`)
  t.equal(caught.statusCode, 200, caught.body)
  isDelivered(caught.json())
  const taken = await call('bob', 'POST', '/api/catch', { inbox: 'box', max: 2 })
  t.strictSame(taken.json().items.map(({ handoff_id: id }: { handoff_id: string }) => id).sort(), several.sort())
  for (const item of taken.json().items) isDelivered(item)
  isProblem(t, await call('bob', 'GET', `/api/files/${locked}`), 503, 'payload_locked')
  t.equal((await both.call('bob', 'POST', `/api/done/${one}`, { files: [{ name: 'r', uri: `handoff-file:${result}` }] })).statusCode, 200)
  t.match((await call('alice', 'GET', `/api/status/${one}`)).json(), { status: 'done', result_files: [{ name: 'r' }], result_file_urls: [null] })
  t.match((await both.call('alice', 'GET', `/api/status/${one}`)).json(), { result_file_urls: [{ url: /./ }] })
})

t.test('a directory whose store.json is damaged is 503, delivers what is caught, and says once why', async t => {
  const { directory, prefix, pass, put, call, make, lines: saidBefore } = await filesApp(t)
  const files = [{ name: 'n', uri: `handoff-file:${await put('four')}` }]
  const right = await readFile(join(directory, 'store.json'), 'utf8')
  const texts = ['null', '{}', '[]', '7', '', '{"id":"x"}', JSON.stringify({ ...JSON.parse(right), secret: '' }), JSON.stringify({ ...JSON.parse(right), id: 7 })]
  const handoffs = await Promise.all(texts.map(() => pass({ files })))
  for (const [at, text] of texts.entries()) {
    await writeFile(join(directory, 'store.json'), text)
    const damaged = await filesApp(t, {}, { prefix, directory })
    isProblem(t, await damaged.make('four'), 503, 'unavailable', text)
    isProblem(t, await damaged.make('four'), 503, 'unavailable')
    const get = () => damaged.call('bob', 'GET', `/api/catch/${handoffs[at]}`, undefined, { 'idempotency-key': 'k' })
    const caught = await get()
    t.match(caught.json(), { status: 'caught', file_urls: [null] }, text)
    const said = () => damaged.lines.map(line => JSON.stringify(line)).filter(line => /files (are answered 503|can be had)/.test(line))
    t.match(said(), [/store.json of the directory of files is damaged/], text)
    t.equal(said().length, 1)
    await writeFile(join(directory, 'store.json'), right)
    t.match((await get()).json(), { file_urls: [{ url: /./ }] }, 'and has them later')
    t.match(said(), [/damaged/, /again/])
  }
  t.equal((await make('four')).statusCode, 201)
  t.equal((await call('alice', 'GET', `/api/files/${files[0]!.uri.split(':')[1]}`)).statusCode, 200)
  t.notMatch(JSON.stringify(saidBefore), 'files are answered')
})

t.test('while the store is away, replays and the state come first', async t => {
  const { directory, prefix, put, pass, call } = await filesApp(t)
  const files = [{ name: 'n', uri: `handoff-file:${await put('four', {}, 'bob')}` }]
  const keyed = { 'idempotency-key': 'k' }
  const body = { task: 't', files }
  const passed = await call('bob', 'POST', '/api/pass', body, keyed)
  t.equal(passed.statusCode, 201)
  const [done, caught, pending] = [await pass(), await pass(), await pass()]
  for (const id of [done, caught]) await call('bob', 'GET', `/api/catch/${id}`)
  const made = await call('bob', 'POST', `/api/done/${done}`, { files }, keyed)
  t.equal(made.statusCode, 200)
  await rename(directory, `${directory}-away`)
  t.teardown(() => rm(`${directory}-away`, { recursive: true, force: true }))
  const away = await filesApp(t, {}, { prefix, directory })
  const replay = await away.call('bob', 'POST', '/api/pass', body, keyed)
  t.strictSame([replay.statusCode, replay.json().handoff_id, replay.headers['idempotency-replayed']], [201, passed.json().handoff_id, 'true'])
  isProblem(t, await away.call('bob', 'POST', '/api/pass', { ...body, task: 'u' }, keyed), 422, 'idempotency_key_reused')
  isProblem(t, await away.call('bob', 'POST', '/api/pass', { ...body, parent: 'nobody' }), 409, 'unknown_parent')
  isProblem(t, await away.call('bob', 'POST', '/api/pass', body), 503, 'unavailable')
  const again = await away.call('bob', 'POST', `/api/done/${done}`, { files }, keyed)
  t.strictSame([again.statusCode, again.body], [200, made.body])
  isProblem(t, await away.call('bob', 'POST', `/api/done/${done}`, { files }), 409, 'already_done')
  isProblem(t, await away.call('bob', 'POST', `/api/done/${pending}`, { files }), 409, 'not_caught')
  isProblem(t, await away.call('alice', 'POST', `/api/done/${caught}`, { files }), 403, 'not_the_catcher')
  isProblem(t, await away.call('bob', 'POST', `/api/done/${caught}`, { files }), 503, 'unavailable')
  t.match((await call('alice', 'GET', `/api/status/${caught}`)).json(), { status: 'caught' })
})
