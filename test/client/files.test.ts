import { createServer } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { once } from 'node:events'
import { readFile, readdir, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { HandoffClient } from '../../src/clients/typescript/index.ts'
import { settingsOf } from '../../src/clients/typescript/settings.ts'
import { transfer } from '../../src/clients/typescript/transfer.ts'
import { secrets } from '../helpers/app.ts'
import { filesApp, sha256, smallDisk } from '../helpers/files.ts'
import { scratchDir } from '../helpers/processes.ts'

/** The client's `files`, at a real service. */

const small = await smallDisk(t)

t.test('a file goes up and comes down, by path and by bytes', async t => {
  const { url, call } = await filesApp(t)
  const sent: Array<[method: string, path: string, hasKey: boolean]> = []
  const client = new HandoffClient({
    baseUrl: url,
    key: secrets.alice,
    fetch: (address, init) => {
      sent.push([String(init.method), new URL(address).pathname.split('/')[1]!, new Headers(init.headers).has('authorization')])
      return fetch(address, init)
    }
  })
  const folder = await scratchDir(t)
  const path = join(folder, 'ä 100%.bin')
  const bytes = Buffer.alloc(300_000, 'abc')
  await writeFile(path, bytes)
  const put = await client.files.put(path, { mediaType: 'text/plain' })
  t.match(put, { name: 'ä 100%.bin', media_type: 'text/plain', bytes: 300_000, sha256: sha256(bytes), uri: /^handoff-file:/ })
  t.match(await client.files.put(pathToFileURL(path)), { name: 'ä 100%.bin', bytes: 300_000 })
  t.match(await client.files.info(put.uri), { state: 'whole', file_id: put.uri.slice('handoff-file:'.length) })
  const to = join(folder, 'came')
  t.match(await client.files.get(put.uri, to), { name: 'ä 100%.bin' })
  t.ok(bytes.equals(await readFile(to)))
  t.strictSame((await readdir(folder)).sort(), ['came', 'ä 100%.bin'])
  for (const given of [Buffer.from('four'), new Blob(['four'])]) t.match(await client.files.put(given, { name: 'n' }), { bytes: 4, sha256: sha256('four') })
  await t.rejects(client.files.put(Buffer.from('four')), /need a name/)
  t.match(await client.files.put(new Uint8Array(), { name: 'empty' }), { bytes: 0 })
  await client.files.delete(put.uri)
  await client.files.delete(put.uri).then(() => t.fail(), error => t.equal(error.code, 'not_found'))
  await t.rejects(client.files.get(put.uri, to), { code: 'not_found' })
  t.equal((await call('alice', 'GET', `/api/files/${put.uri.slice(13)}`)).statusCode, 404)
  t.strictSame(sent.filter(([, at, hasKey]) => hasKey !== (at === 'api')), [], 'the key goes to the API, and never to a file’s URL')
  t.ok(sent.some(([method, at]) => method === 'PUT' && at === 'files') && sent.some(([method, at]) => method === 'GET' && at === 'files'))
})

t.test('what comes must be what was put, and what breaks off is sent again', async t => {
  const { url } = await filesApp(t)
  const real = new HandoffClient({ baseUrl: url, key: secrets.alice })
  const folder = await scratchDir(t)
  const { uri } = await real.files.put(Buffer.from('0123456789'), { name: 'n' })
  // A store that gives something else, then breaks off, then gives it.
  let times = 0
  let seen: IncomingHttpHeaders = {}
  const store = createServer((request, response) => {
    seen = request.headers
    times++
    if (times === 1) return response.end('012345678X')
    response.writeHead(200, { 'content-length': '10' })
    response.write('01234')
    if (times === 2) return setImmediate(() => response.destroy())
    response.end('56789')
  }).listen(0, '127.0.0.1')
  await once(store, 'listening')
  t.teardown(() => store.close())
  const { port } = store.address() as AddressInfo
  const client = new HandoffClient({
    baseUrl: url,
    key: secrets.alice,
    fetch: async (address, init) => await fetch(new URL(address).pathname.startsWith('/files/') ? `http://127.0.0.1:${port}/` : address, init)
  })
  await client.files.get(uri, join(folder, 'came'))
  t.equal(await readFile(join(folder, 'came'), 'utf8'), '0123456789')
  t.equal(times, 3)
  t.equal(seen.authorization, undefined)
  t.strictSame(await readdir(folder), ['came'])
  times = 0
  await t.rejects(client.files.get(uri, join(folder, 'other'), { retryFor: 0 }), { code: 'connection_failed' })
  t.strictSame(await readdir(folder), ['came'], 'nothing is left of one that failed')
  const signal = AbortSignal.abort()
  await t.rejects(client.files.get(uri, join(folder, 'other'), { signal }), { code: 'aborted' })
})

t.test('a file that finds no room here says so, and leaves nothing', { skip: small.skip }, async t => {
  const { url } = await filesApp(t)
  const client = new HandoffClient({ baseUrl: url, key: secrets.alice })
  const { uri } = await client.files.put(Buffer.alloc(2_000_000), { name: 'n' })
  await t.rejects(client.files.get(uri, join(small.directory, 'came')), { code: 'ENOSPC' }, 'it isn’t asked for again')
  t.strictSame(await readdir(small.directory), [])
  await t.rejects(client.files.get(uri, join(small.directory, 'none', 'came')), { code: 'ENOENT' })
  const name = 'n'.repeat(255)
  await client.files.get((await client.files.put(Buffer.from('four'), { name })).uri, join(small.directory, name))
})

t.test('an upload may take longer than a store may be silent', async t => {
  let taken = 0
  // It takes a piece each ten milliseconds, and doesn't answer what is empty.
  const store = createServer(async (request, response) => {
    for await (const some of request) {
      taken += (some as Buffer).length
      await new Promise(resolve => setTimeout(resolve, 10))
    }
    if (taken > 0) response.end()
  }).listen(0, '127.0.0.1')
  await once(store, 'listening')
  t.teardown(() => {
    store.close()
    store.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(store.address() as AddressInfo).port}/`
  const send = async (body: Blob) =>
    await transfer(settingsOf({ key: secrets.alice }), { method: 'PUT', url, body }, { silence: 200, retryFor: 0 }, async ({ status }) => status)
  await t.rejects(send(new Blob([])), { code: 'connection_failed' }, 'silence ends one that has nothing to send')
  t.equal(await send(new Blob([Buffer.alloc(5_000_000)])), 200)
  t.equal(taken, 5_000_000)
})

/** The service, its clients, and what they sent. */
async function passing (t: Parameters<typeof filesApp>[0]) {
  const service = await filesApp(t)
  const sent: string[] = []
  let isCut = false
  const client = (who: 'alice' | 'bob') => new HandoffClient({
    baseUrl: service.url,
    key: secrets[who],
    retryFor: 0,
    fetch: async (address, init) => {
      sent.push(`${init.method} ${new URL(address).pathname.split('/').slice(0, 3).join('/')}`)
      if (isCut && init.method === 'PUT') throw new TypeError('fetch failed')
      return await fetch(address, init)
    }
  })
  const folder = await scratchDir(t)
  const [one, two] = [join(folder, 'one.csv'), join(folder, 'two.csv')]
  await writeFile(one, 'first')
  await writeFile(two, 'second')
  return { ...service, client, folder, one, two, sent, cut: (now: boolean) => { isCut = now } }
}

t.test('files of a pass and of a done are uploaded from their paths', async t => {
  const { client, one, two, folder } = await passing(t)
  const [alice, bob] = [client('alice'), client('bob')]
  const put = await alice.files.put(Buffer.from('put before'), { name: 'put' })
  const link = { name: 'link', uri: 'https://x.example/a' }
  const { handoff_id: id } = await alice.pass({ task: 't', files: [one, link, pathToFileURL(two), put, new File(['own'], 'own.txt')] })
  const { files } = await bob.catch(id)
  t.match(files, [
    { name: 'one.csv', bytes: 5, sha256: sha256('first'), uri: /^handoff-file:/ }, link, { name: 'two.csv', bytes: 6 }, put, { name: 'own.txt', bytes: 3 }
  ])
  await bob.files.get(files![2]!.uri, join(folder, 'came'))
  t.equal(await readFile(join(folder, 'came'), 'utf8'), 'second')
  await bob.done(id, { n: 1 }, { files: [two] })
  t.match(await alice.status(id), { result: { n: 1 }, result_files: [{ name: 'two.csv', sha256: sha256('second') }] })
  await t.rejects(alice.pass({ task: 't', files: [join(folder, 'none')] }), { code: 'ENOENT' })
  const { results } = await alice.batch([{ op: 'pass', body: { task: 'b', to: 'batch', files: [one] } }, { op: 'pass', body: { task: 'c', files: [two] } }])
  t.match(results, [{ status: 201 }, { status: 201 }])
  t.match(await bob.catchNext({ inbox: 'batch' }), [{ task: 'b', files: [{ name: 'one.csv', bytes: 5 }] }])
})

t.test('a pass that is repeated with its key uploads nothing that is there', async t => {
  const { client, one, two, sent, cut } = await passing(t)
  const alice = client('alice')
  const uploads = () => sent.splice(0).filter(request => request.startsWith('PUT')).length
  const options = { idempotencyKey: 'k'.repeat(128) }
  const pass = async () => await alice.pass({ task: 't', files: [one, two] }, options)
  cut(true)
  await t.rejects(pass(), { code: 'connection_failed' })
  cut(false)
  t.equal(uploads(), 1)
  const { handoff_id: id } = await pass()
  t.equal(uploads(), 2, 'what had not arrived is sent')
  t.equal((await pass()).handoff_id, id)
  t.equal(uploads(), 0)
  const batch = async () => (await alice.batch([{ op: 'pass', body: { task: 'a', files: [one] } }, { op: 'pass', body: { task: 'a', files: [one] } }], { idempotencyKey: 'b' })).results.map(({ body }) => body.handoff_id)
  const ids = await batch()
  t.equal(uploads(), 2, 'operations don’t share their uploads')
  t.strictSame(await batch(), ids)
  t.equal(uploads(), 0)
  const bob = client('bob')
  await bob.catch(id)
  await bob.done(id, null, { files: [one], idempotencyKey: 'd' })
  await bob.done(id, null, { files: [one], idempotencyKey: 'd' })
  t.equal(uploads(), 1)
  await writeFile(one, 'another')
  await t.rejects(pass(), { code: 'idempotency_key_reused' })
})

t.test('a handler attaches files to its result', async t => {
  const { client, two } = await passing(t)
  const [alice, bob] = [client('alice'), client('bob')]
  const own = new AbortController()
  const passed = async (task: string) => (await alice.pass({ task, to: 'in' })).handoff_id
  const ids = [await passed('works'), await passed('names what is not there'), await passed('has no file')]
  await bob.work('in', async ({ task }, { attach }) => {
    if (task === 'works') await attach(two)
    await attach(task === 'has no file' ? `${two}.none` : { name: 'x', uri: task === 'works' ? 'https://x.example/' : 'handoff-file:none' })
    return { task }
  }, { signal: own.signal, onError: () => {}, onEnd: ({ task }) => { if (task === 'has no file') own.abort() } })
  t.match(await Promise.all(ids.map(id => alice.status(id))), [
    { status: 'done', result: { task: 'works' }, result_files: [{ name: 'two.csv', bytes: 6 }, { name: 'x' }] },
    { status: 'failed', error: { code: 'file_missing' } }, { status: 'failed', error: { code: 'ENOENT' } }
  ])
})
