import { once } from 'node:events'
import { request } from 'node:http'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { mkdir, readdir, readlink, rename, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { DirectoryStore } from '../../src/files/directory.ts'
import { filesApp, sha256 } from '../helpers/files.ts'
import { isProblem } from '../helpers/problems.ts'
import { scratchDir } from '../helpers/processes.ts'
import { until } from '../helpers/until.ts'

/** Files in a directory, over real connections: what comes in, what goes out, and what is refused. */

/** A request whose body the test sends itself. */
function begin (url: string, headers: Record<string, string | number>, method = 'PUT'): ClientRequest {
  return request(url, { method, headers, agent: false })
}

async function answerOf (sent: ClientRequest): Promise<{ status: number, body: string }> {
  const [response] = await once(sent, 'response') as [IncomingMessage]
  let body = ''
  for await (const some of response) body += some
  return { status: response.statusCode!, body }
}

const codeOf = async (response: Response) => [response.status, (await response.json() as { code: string }).code]

t.test('a file is made, put, read by who made it, and given as it came', async t => {
  const { make, call, url, directory } = await filesApp(t)
  const bytes = Buffer.from('four')
  const made = await make(bytes, { name: 'ré "p".pdf', media_type: 'application/pdf', sha256: sha256(bytes).toUpperCase() })
  t.equal(made.statusCode, 201)
  const { file_id: id, uri, upload } = made.json()
  t.strictSame(Object.keys(made.json()), ['file_id', 'uri', 'upload'])
  t.equal(uri, `handoff-file:${id}`)
  t.match(upload, { method: 'PUT', headers: { 'content-length': '4' } })
  t.ok(upload.url.startsWith(`${url}/files/`))
  const left = Date.parse(upload.expires_at) - Date.now()
  t.ok(left > 3_500_000 && left <= 3_600_000)
  const waiting = { file_id: id, name: 'ré "p".pdf', bytes: 4, sha256: sha256(bytes), media_type: 'application/pdf', state: 'waiting', url: null, url_expires_at: null }
  t.strictSame((await call('alice', 'GET', `/api/files/${id}`)).json(), waiting)
  for (const time of ['once', 'again']) {
    const put = await fetch(upload.url, { method: 'PUT', body: bytes, headers: upload.headers })
    t.equal(put.status, 204, time)
  }
  const whole = (await call('alice', 'GET', `/api/files/${id}`)).json()
  t.match(whole, { state: 'whole', name: 'ré "p".pdf' })
  t.ok(Math.abs(Date.parse(whole.url_expires_at) - Date.now() - 900_000) < 10_000)
  const got = await fetch(whole.url)
  t.equal(got.status, 200)
  t.equal(await got.text(), 'four')
  t.match(Object.fromEntries(got.headers), {
    'content-type': 'application/pdf',
    'content-length': '4',
    'x-content-type-options': 'nosniff',
    'content-security-policy': 'sandbox',
    'referrer-policy': 'no-referrer',
    'content-disposition': 'attachment; filename="r_ _p_.pdf"; filename*=UTF-8\'\'r%C3%A9%20%22p%22.pdf'
  })
  t.strictSame((await readdir(join(directory, 'incoming'))), [], 'no temporary file is left')
  isProblem(t, await call('bob', 'GET', `/api/files/${id}`), 404, 'not_found', 'another agent')
  isProblem(t, await call('foreignAlice', 'GET', `/api/files/${id}`), 404, 'not_found', 'another tenant')
  isProblem(t, await call('bob', 'DELETE', `/api/files/${id}`), 404, 'not_found')
  t.equal((await call('alice', 'DELETE', `/api/files/${id}`)).statusCode, 204)
  isProblem(t, await call('alice', 'GET', `/api/files/${id}`), 404, 'not_found')
  isProblem(t, await call('alice', 'DELETE', `/api/files/${id}`), 404, 'not_found')
  t.strictSame(await codeOf(await fetch(whole.url)), [404, 'not_found'], 'and its bytes')
  t.strictSame(await codeOf(await fetch(upload.url, { method: 'PUT', body: bytes })), [403, 'signature_invalid'], 'nor can it be put any more')
  t.equal((await readdir(join(directory, 'objects'), { recursive: true })).filter(name => name.includes('.')).length, 0, 'nothing is left of it')
})

t.test('without a store each of the three says so', async t => {
  const { call } = await filesApp(t, { FILES_URL: '' })
  isProblem(t, await call('alice', 'POST', '/api/files', { name: 'a', bytes: 1, sha256: sha256('a') }), 404, 'files_off')
  isProblem(t, await call('alice', 'POST', '/api/files', { name: 1 }), 404, 'files_off', 'whatever is asked')
  isProblem(t, await call('alice', 'POST', '/api/files?x=1', 'no JSON'), 404, 'files_off')
  isProblem(t, await call('alice', 'GET', '/api/files/x?x=1'), 404, 'files_off')
  isProblem(t, await call('approver', 'POST', '/api/files', { name: 1 }), 403, 'insufficient_scope')
  isProblem(t, await call('alice', 'GET', '/api/files/x'), 404, 'files_off')
  isProblem(t, await call('alice', 'DELETE', '/api/files/x'), 404, 'files_off')
  isProblem(t, await call('approver', 'POST', '/api/files', { name: 'a', bytes: 1, sha256: sha256('a') }), 403, 'insufficient_scope')
})

t.test('names, lengths and digests', async t => {
  const { make, call, directory } = await filesApp(t, { FILE_LIMIT: '10' })
  const emoji = '😀'.repeat(63) + 'abc'
  t.equal(Buffer.byteLength(emoji), 255)
  for (const name of ['a', emoji, '...', 'a b', 'con', '-rf', '\u202etxt.exe', 'é'.normalize('NFD')]) {
    const made = await make('x', { name })
    t.equal(made.statusCode, 201, name)
    const { file_id: id, upload } = made.json()
    t.equal((await fetch(upload.url, { method: 'PUT', body: 'x' })).status, 204)
    const { url, name: kept } = (await call('alice', 'GET', `/api/files/${id}`)).json()
    t.equal(kept, name)
    const got = await fetch(url)
    t.equal(decodeURIComponent(/filename\*=UTF-8''(\S+)$/.exec(got.headers.get('content-disposition')!)![1]!), name, 'a browser gets it, coded')
  }
  for (const path of await readdir(directory, { recursive: true })) t.match(path, /^(objects|incoming|store\.json)(\/[A-Za-z0-9_-]{22}(\/t-default(\/[\w-]{25}\.\d+)?)?)?$/, 'names of files are nowhere in the directory')
  for (const name of ['', '.', '..', '../a', 'a/b', 'a\\b', 'a\0', 'a\n', '\x7f', '\x9f', emoji + 'x', '\ud800']) {
    const refused = await call('alice', 'POST', '/api/files', JSON.stringify({ name, bytes: 1, sha256: sha256('x') }))
    t.strictSame(isProblem(t, refused, 400, 'invalid_request', JSON.stringify(name)).errors.map((error: { pointer: string }) => error.pointer), ['/name'])
  }
  for (const [member, value] of [['bytes', 11], ['bytes', -1], ['bytes', 1.5], ['bytes', '1'], ['sha256', 'ab'], ['sha256', 'g'.repeat(64)], ['media_type', 'x'], ['media_type', 'a/b; c=d'], ['media_type', 'ä/b'], ['size', 1]] as const) {
    const refused = await make('x', { [member]: value })
    t.equal(isProblem(t, refused, 400, 'invalid_request').errors[0].pointer, `/${member}`)
  }
  for (const type of [`a/${'b'.repeat(125)}`, "a|b/c*d'e"]) t.equal((await make('x', { media_type: type })).statusCode, 201, type)
  isProblem(t, await make('x', { media_type: `a/${'b'.repeat(126)}` }), 400, 'invalid_request')
})

t.test('what is put must be what was declared, and a URL does what it says', async t => {
  const { make, call } = await filesApp(t)
  const { file_id: id, upload } = (await make('four')).json()
  const state = async () => (await call('alice', 'GET', `/api/files/${id}`)).json().state
  const put = async (body: string, url = upload.url, headers: Record<string, string> = {}) => await fetch(url, { method: 'PUT', body, headers })
  t.strictSame(await codeOf(await put('fou')), [400, 'invalid_request'], 'too short')
  t.strictSame(await codeOf(await put('fours')), [400, 'invalid_request'], 'too long')
  t.strictSame(await codeOf(await put('FOUR')), [400, 'invalid_request'], 'of another digest')
  const chunked = begin(upload.url, { 'transfer-encoding': 'chunked' })
  chunked.end('four')
  t.match(await answerOf(chunked), { status: 411, body: /length_required/ })
  for (const [from, to] of [[/bytes=4/, 'bytes=5'], [/sha256=./, 'sha256=z'], [/expires=\d/, 'expires=9'], [/signature=./, 'signature=-'], [/signature=.*/, 'signature='], [/$/, '&x=1'], [/\?.*/, ''], [/\.\d+\?/, '.1234567890123?'], [/t-default/, 't-other'], [/$/, '&bytes=4']] as const) {
    t.strictSame(await codeOf(await put('four', upload.url.replace(from, to))), [403, 'signature_invalid'], String(from))
  }
  t.strictSame(await codeOf(await fetch(upload.url)), [403, 'signature_invalid'], 'a put is no get')
  t.strictSame(await codeOf(await put('four', upload.url.replace(/files\/.*\?/, 'files/a/b/c?'))), [403, 'signature_invalid'])
  t.strictSame(await codeOf(await fetch(`${upload.url.split('?')[0]}`, { method: 'DELETE' })), [405, 'method_not_allowed'])
  t.equal(await state(), 'waiting')
  t.equal((await put('four', upload.url, { authorization: 'Bearer nothing', 'content-type': 'text/html' })).status, 204, 'no key, and no type, counts')
  t.equal(await state(), 'whole')
  const { url } = (await call('alice', 'GET', `/api/files/${id}`)).json()
  t.strictSame(await codeOf(await put('four', url)), [403, 'signature_invalid'], 'a get is no put')
  t.strictSame(await codeOf(await fetch(url.replace(/name=[^&]*/, 'name=x.html'))), [403, 'signature_invalid'])
  const got = await fetch(url)
  const head = await fetch(url, { method: 'HEAD' })
  const ofItsOwn = ['date', 'x-request-id', 'connection', 'keep-alive']
  const fields = ({ headers }: Response) => [...headers].filter(([name]) => !ofItsOwn.includes(name))
  t.strictSame([head.status, fields(head), await head.text()], [200, fields(got), ''], 'as a GET, without the body')
  t.equal(await got.text(), 'four')
  t.equal((await fetch(url, { method: 'HEAD', headers: { range: 'bytes=1-2' } })).headers.get('content-length'), '2')
})

t.test('a URL ends', async t => {
  const { make, setClock } = await filesApp(t)
  // A replica's clock may be five minutes ahead of Redis's.
  await setClock(Date.now() - 3_600_000 - 290_000)
  const { upload: early } = (await make('four')).json()
  t.equal((await fetch(early.url, { method: 'PUT', body: 'four' })).status, 204)
  await setClock(Date.now() - 3_600_000 - 300_000)
  const { upload } = (await make('four')).json()
  t.strictSame(await codeOf(await fetch(upload.url, { method: 'PUT', body: 'four' })), [403, 'signature_invalid'])
})

t.test('an upload that stands still leaves nothing', async t => {
  const { make, call, directory } = await filesApp(t, {}, { files: { idle: 300 } })
  const bytes = Buffer.alloc(200_000, 'x')
  const { file_id: id, upload } = (await make(bytes)).json()
  const still = begin(upload.url, upload.headers)
  still.write(bytes.subarray(0, 100_000))
  await once(still, 'error')
  await until(async () => (await readdir(join(directory, 'incoming'))).length === 0)
  t.equal((await call('alice', 'GET', `/api/files/${id}`)).json().state, 'waiting')
})

t.test('an upload that is cut leaves nothing, and two at once are one', async t => {
  // None is cut because this process is slow to go on with it.
  const { make, call, directory, lines } = await filesApp(t)
  const bytes = Buffer.alloc(200_000, 'x')
  const { file_id: id, upload } = (await make(bytes)).json()
  const incoming = async () => await readdir(join(directory, 'incoming'))
  const cut = begin(upload.url, upload.headers)
  cut.on('error', () => {})
  cut.write(bytes.subarray(0, 100_000))
  await until(async () => (await incoming()).length === 1)
  cut.destroy()
  await until(async () => (await incoming()).length === 0)

  t.equal((await call('alice', 'GET', `/api/files/${id}`)).json().state, 'waiting')

  const both = async () => {
    const sent = [begin(upload.url, upload.headers), begin(upload.url, upload.headers)] as const
    for (const one of sent) one.write(bytes.subarray(0, 100_000))
    await until(async () => (await incoming()).length === 2)
    return sent
  }
  const [right, wrong] = await both()
  t.strictSame(await codeOf(await fetch(upload.url, { method: 'PUT', body: bytes })), [503, 'unavailable'], 'a third at once')
  const answer = answerOf(wrong)
  wrong.end(Buffer.alloc(100_000, 'y'))
  t.match(await answer, { status: 400 }, 'its end has another digest')
  right.on('error', () => {}).destroy()
  await until(async () => (await incoming()).length === 0)
  const two = await both()
  const answers = two.map(answerOf)
  for (const one of two) one.end(bytes.subarray(100_000))
  t.strictSame((await Promise.all(answers)).map(({ status }) => status), [204, 204])
  t.equal((await call('alice', 'GET', `/api/files/${id}`)).json().state, 'whole')
  t.strictSame(await incoming(), [])
  t.strictSame(lines.filter(line => JSON.stringify(line).includes('internal error')), [])
})

t.test('what is on its way takes room, as what comes does', async t => {
  const directory = await scratchDir(t)
  const store = new DirectoryStore(directory, () => '', { share: 0, bytes: 0 })
  await store.open(true)
  const unavailable = { code: 'unavailable' }
  await t.rejects(store.admit(2 ** 60), unavailable)
  // More than half of what is free, whatever else writes to this disk meanwhile.
  const bytes = Math.floor((await store.room()).free * 0.7)
  await store.admit(bytes)
  const body = new PassThrough()
  const wanted = { bytes, sha256: sha256('') }
  const object = (one: number) => `${'m'.repeat(22)}/t-default/${'i'.repeat(25)}.123456789012${one}`
  const stands = async () => true
  const first = store.receive(object(1), wanted, body, stands)
  await t.rejects(store.admit(bytes), unavailable)
  await t.rejects(store.receive(object(2), wanted, new PassThrough(), stands), unavailable)
  body.end()
  await t.rejects(first, { code: 'invalid_request' }, 'it was too short')
  await store.admit(bytes)
})

t.test('what is being sent takes room for as long as its record is there', async t => {
  const store = new DirectoryStore(await scratchDir(t), () => '', { share: 0, bytes: 0 })
  await store.open(true)
  const bytes = Math.floor((await store.room()).free * 0.7)
  const admits = () => store.admit(bytes).then(() => true, () => false)
  const send = (made: number, stands: () => Promise<boolean>) => {
    const body = new PassThrough()
    const object = `${'m'.repeat(22)}/t-default/${'i'.repeat(25)}.123456789012${made}`
    const over = store.receive(object, { bytes, sha256: sha256('') }, body, stands, 20)
    body.write('x')
    return { body, object, over: t.rejects(over, { code: 'signature_invalid' }) }
  }
  let isThere: () => Promise<boolean> = () => Promise.reject(new Error('Redis is away'))
  const dripping = send(1, () => isThere())
  await until(async () => !await admits())
  await sleep(100)
  t.notOk(await admits(), 'while nobody knows, it goes on')
  isThere = async () => false
  await until(admits)
  dripping.body.write('x')
  await dripping.over
  const deleted = send(2, async () => true)
  await until(async () => !await admits())
  await store.remove(deleted.object)
  t.ok(await admits(), 'at once where it was deleted')
  deleted.body.write('x')
  await deleted.over
})

t.test('a deleted file’s upload ends, and none begins', async t => {
  const { make, call, directory } = await filesApp(t)
  const { file_id: id, upload } = (await make('four')).json()
  const dripping = begin(upload.url, upload.headers)
  const answer = answerOf(dripping)
  dripping.write('f')
  await until(async () => (await readdir(join(directory, 'incoming'))).length === 1)
  t.equal((await call('alice', 'DELETE', `/api/files/${id}`)).statusCode, 204)
  dripping.end('our')
  t.match(await answer, { status: 403, body: /signature_invalid/ })
  const late = begin(upload.url, upload.headers)
  late.flushHeaders()
  t.match(await answerOf(late), { status: 403 }, 'before any byte of it came')
  late.on('error', () => {}).destroy()
  t.strictSame(await readdir(join(directory, 'incoming')), [])
})

t.test('the disk is looked at for the size of an upload, and again while it comes', async t => {
  const directory = await scratchDir(t)
  const spare = { share: 0, bytes: 0 }
  const store = new DirectoryStore(directory, () => '', spare)
  await store.open(true)
  const bytes = Buffer.alloc(12 * 2 ** 20, 'x')
  const body = new PassThrough()
  const refused = t.rejects(store.receive(`${'m'.repeat(22)}/t-default/${'i'.repeat(25)}.1234567890123`, { bytes: bytes.length, sha256: sha256(bytes) }, body, async () => true), { code: 'unavailable', more: { detail: /disk/ } })
  body.write(bytes.subarray(0, 2 ** 20))
  await until(async () => (await readdir(join(directory, 'incoming'))).length === 1)
  spare.bytes = 2 ** 60
  body.end(bytes.subarray(2 ** 20))
  await refused
  t.strictSame(await readdir(join(directory, 'incoming')), [])
  const { free } = await store.room()
  const { make } = await filesApp(t, { FILE_LIMIT: String(5 * 2 ** 30) }, { files: { spare: { share: 0, bytes: free - 2.5 * 2 ** 30 } } })
  isProblem(t, await make('x', { bytes: 5 * 2 ** 30 }), 503, 'unavailable')
  t.equal((await make('x')).statusCode, 201)
})

t.test('downloads that wait for their turn on a connection end with it', async t => {
  const { put, call, app, url } = await filesApp(t)
  const { pathname, search } = new URL((await call('alice', 'GET', `/api/files/${await put(Buffer.alloc(20_000_000, 'x'))}`)).json().url)
  const underWay = async () => Number(/^handoff_file_transfers (\d+)$/m.exec((await app.inject('/metrics')).body)![1])
  const open = async () => (await Promise.all((await readdir('/proc/self/fd')).map(fd => readlink(`/proc/self/fd/${fd}`).catch(() => '')))).filter(path => path.includes('/objects/')).length
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.write(`GET ${pathname}${search} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(4))
  await until(async () => await underWay() === 4)
  socket.destroy()
  await until(async () => await underWay() === 0)
  if (process.platform === 'linux') await until(async () => await open() === 0)
  t.pass('and hold no file')
})

t.test('a directory that goes away is 503 at once, and nothing is lost for it', async t => {
  const { make, put, call, directory, setClock, app, store } = await filesApp(t)
  const id = await put('four')
  const { url } = (await call('alice', 'GET', `/api/files/${id}`)).json()
  const { file_id: waiting, upload } = (await make('here')).json()
  await rename(directory, `${directory}-away`)
  t.teardown(() => rm(`${directory}-away`, { recursive: true, force: true }))
  await mkdir(directory)
  t.strictSame(await codeOf(await fetch(url)), [503, 'unavailable'])
  t.strictSame(await codeOf(await fetch(upload.url, { method: 'PUT', body: 'here' })), [503, 'unavailable'])
  isProblem(t, await call('alice', 'GET', `/api/files/${waiting}`), 503, 'unavailable')
  await setClock(Date.now() + 7_300_000)
  await app.fileSweep!.sweep()
  t.ok(await store.files.get('default', waiting), 'what may be there isn’t dropped')
  t.strictSame(await readdir(directory), [], 'nothing is made where it was')
})

t.test('an upload may take longer than other requests, as long as it moves', async t => {
  const { make } = await filesApp(t)
  const { upload } = (await make(Buffer.alloc(24, 'x'))).json()
  const slow = begin(upload.url, upload.headers)
  const answered = answerOf(slow)
  const timer = setInterval(() => slow.write('x'), 500)
  t.teardown(() => clearInterval(timer))
  const begun = performance.now()
  t.equal((await answered).status, 204)
  t.ok(performance.now() - begun > 10_000)
})

t.test('one range is given, several are all, one beyond is refused', async t => {
  const { put, call } = await filesApp(t)
  const { url } = (await call('alice', 'GET', `/api/files/${await put('0123456789')}`)).json()
  const get = async (range: string, headers: Record<string, string> = {}) => {
    const got = await fetch(url, { headers: { range, ...headers } })
    return [got.status, got.headers.get('content-range'), await got.text()]
  }
  t.strictSame(await get('bytes=2-4'), [206, 'bytes 2-4/10', '234'])
  t.strictSame(await get('bytes=7-'), [206, 'bytes 7-9/10', '789'])
  t.strictSame(await get('bytes=7-99'), [206, 'bytes 7-9/10', '789'])
  t.strictSame(await get('bytes=-3'), [206, 'bytes 7-9/10', '789'])
  t.strictSame(await get('bytes=-99'), [206, 'bytes 0-9/10', '0123456789'])
  t.strictSame(await get('bytes=7-99999999999999999999'), [206, 'bytes 7-9/10', '789'])
  t.strictSame(await get('bytes=0-0'), [206, 'bytes 0-0/10', '0'])
  for (const range of ['bytes=0-1,3-4', 'lines=1-2', 'bytes=4-2', 'bytes=-', 'bytes=a-b']) t.strictSame(await get(range), [200, null, '0123456789'], range)
  for (const range of ['bytes=10-', 'bytes=10-20', 'bytes=-0', 'bytes=99999999999999999999-', `bytes=${'9'.repeat(400)}-`]) t.match(await get(range), [416, 'bytes */10', /range_not_satisfiable/], range)
  const tag = (await fetch(url)).headers.get('etag')!
  t.strictSame((await get('bytes=2-4', { 'if-range': tag }))[0], 206)
  t.strictSame((await get('bytes=2-4', { 'if-range': '"other"' }))[0], 200)
  const { url: empty } = (await call('alice', 'GET', `/api/files/${await put('', { media_type: 'text/csv' })}`)).json()
  const nothing = await fetch(empty)
  t.strictSame([await nothing.text(), nothing.headers.get('content-type')], ['', 'text/csv'])
  t.equal((await fetch(empty, { headers: { range: 'bytes=0-' } })).status, 416)
})

t.test('a disk that is full, and a directory that is away or another', async t => {
  const { make, put, call, directory, prefix } = await filesApp(t)
  const { upload } = (await make('four')).json()
  const id = await put('other')
  const full = await filesApp(t, {}, { directory, prefix, files: { spare: { share: 0, bytes: 2 ** 60 } } })
  isProblem(t, await full.make('four'), 503, 'unavailable')
  const elsewhere = upload.url.replace(/^http:\/\/[^/]*/, full.url)
  const refused = await fetch(elsewhere, { method: 'PUT', body: 'four' })
  t.match([refused.headers.get('retry-after'), ...await codeOf(refused)], ['60', 503, 'unavailable'])
  t.match((await full.call('alice', 'GET', `/api/files/${id}`)).json(), { state: 'whole' }, 'what is there is given')
  t.equal((await fetch(upload.url, { method: 'PUT', body: 'four' })).status, 204)

  const started = await filesApp(t, {}, { directory, prefix })
  const got = (await started.call('alice', 'GET', `/api/files/${id}`)).json()
  t.equal(await (await fetch(got.url)).text(), 'other', 'also by a replica that has made none')

  const another = await filesApp(t, {}, { prefix })
  isProblem(t, await another.call('alice', 'GET', `/api/files/${id}`), 503, 'unavailable', 'a replica with another directory')
  isProblem(t, await another.make('four'), 503, 'unavailable')
  t.strictSame(await codeOf(await fetch(upload.url.replace(/^http:\/\/[^/]*/, another.url), { method: 'PUT', body: 'four' })), [503, 'unavailable'])
  const { url } = (await call('alice', 'GET', `/api/files/${id}`)).json()
  t.strictSame(await codeOf(await fetch(url.replace(/^http:\/\/[^/]*/, another.url))), [503, 'unavailable'])

  // As when it isn't mounted.
  await rename(directory, `${directory}-away`)
  await writeFile(directory, '')
  t.teardown(() => rm(`${directory}-away`, { recursive: true, force: true }))
  const away = await filesApp(t, {}, { directory, prefix })
  isProblem(t, await away.make('four'), 503, 'unavailable', 'put')
  t.strictSame(await codeOf(await fetch(url)), [503, 'unavailable'], 'get')
  t.equal((await call('alice', 'DELETE', `/api/files/${id}`)).statusCode, 204, 'delete: its record is what counts')
})

t.test('the same key is the same upload', async t => {
  const { make } = await filesApp(t, { FILES_QUOTA: '10' })
  const key = { 'idempotency-key': 'k' }
  const [first, again, other] = [await make('four', {}, 'alice', key), await make('four', {}, 'alice', key), await make('five', {}, 'alice', key)]
  t.strictSame(again.json(), first.json())
  t.strictSame([first, again].map(({ headers }) => headers['idempotency-replayed']), [undefined, 'true'])
  isProblem(t, other!, 422, 'idempotency_key_reused')
  t.not((await make('four', {}, 'bob', key)).json().file_id, first.json().file_id, 'another agent’s key is another')
  const full = await make('four')
  isProblem(t, full, 429, 'files_full')
  t.equal(full.headers['retry-after'], '60')
  t.equal((await make('four', {}, 'foreignAlice')).statusCode, 201, 'another tenant has its own')
  t.equal((await make('ab')).statusCode, 201, 'exactly as much as there may be')
})

t.test('two services that begin at once make one directory', async t => {
  const directory = await scratchDir(t)
  const first = await filesApp(t, {}, { directory })
  const second = await filesApp(t, {}, { directory, prefix: first.prefix })
  const made = await Promise.all([first, second].map(({ make }) => make('four')))
  t.strictSame(made.map(({ statusCode }) => statusCode), [201, 201])
  const across = made[0]!.json().upload.url.replace(first.url, second.url)
  t.equal((await fetch(across, { method: 'PUT', body: 'four' })).status, 204, 'a URL counts at each')
})
