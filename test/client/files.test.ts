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
import { filesApp, sha256 } from '../helpers/files.ts'
import { scratchDir } from '../helpers/processes.ts'

/** The client's `files`, at a real service. */

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
