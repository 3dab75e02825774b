import { createRequire } from 'node:module'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { BucketStore } from '../../src/files/bucket.ts'
import { loadConfig } from '../../src/config.ts'
import { homeTag } from '../../src/core/ids.ts'
import { checkingFront } from '../helpers/checking-store.ts'
import { filesApp, sha256 } from '../helpers/files.ts'
import { isProblem } from '../helpers/problems.ts'
import { scratchDir } from '../helpers/processes.ts'

/**
 * Files in a bucket, at s3rver: a server that speaks S3's protocol and keeps real bytes, but checks neither signatures (v4) nor digests. So it is
 * the store that must be refused; with a front that checks digests it is one that may be used. Signatures: test/files/sigv4.test.ts.
 */

interface S3rver { run (): Promise<AddressInfo>, close (): Promise<void> }
interface AddressInfo { address: string, port: number }
const Server = createRequire(import.meta.url)('s3rver') as new (options: object) => S3rver

async function bucketServer (t: Test): Promise<string> {
  const directory = await scratchDir(t)
  const server = new Server({ address: '127.0.0.1', port: 0, silent: true, directory, configureBuckets: [{ name: 'handoff-files' }] })
  const { port } = await server.run()
  t.teardown(() => server.close())
  return `http://127.0.0.1:${port}`
}

const settings = (endpoint: string, more: Record<string, string> = {}) => ({
  FILES_URL: 's3://handoff-files/of/service', S3_ENDPOINT: endpoint, S3_PATH_STYLE: 'on', AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER', ...more
})

function storeAt (env: Record<string, string>): BucketStore {
  const { files } = loadConfig(env)
  if (files?.kind !== 'bucket') throw new Error('no bucket')
  return new BucketStore(files)
}

const objectsIn = async (store: BucketStore, than = Infinity) => {
  const found: string[] = []
  for await (const object of store.older(than)) found.push(object)
  return found
}

t.test('presigned URLs put and get, and the store deletes and lists', async t => {
  const endpoint = await bucketServer(t)
  const [id, secret] = [join(await scratchDir(t), 'id'), join(await scratchDir(t), 'secret')]
  for (const path of [id, secret]) await writeFile(path, 'S3RVER\n')
  const store = storeAt(settings(endpoint, { AWS_ACCESS_KEY_ID: `@${id}`, AWS_SECRET_ACCESS_KEY: `@${secret}` }))
  t.equal(await store.open(), 's3://handoff-files/of/service/')
  const span = { from: Date.now(), until: Date.now() + 60_000 }
  const object = (n: number) => `${'m'.repeat(22)}/t-../${'i'.repeat(25)}.${1_700_000_000_000 + n}`
  const wanted = { bytes: 4, sha256: sha256('four') }
  const upload = await store.upload(object(0), wanted, span)
  t.match(upload.headers, { 'content-length': '4', 'if-none-match': '*', 'x-amz-checksum-sha256': Buffer.from(sha256('four'), 'hex').toString('base64') })
  t.equal(new URL(upload.url).searchParams.get('X-Amz-SignedHeaders'), 'content-length;host;if-none-match;x-amz-checksum-sha256')
  t.equal((await fetch(upload.url, { method: 'PUT', body: 'four', headers: upload.headers })).status, 200)
  const got = await fetch(await store.download(object(0), { name: 'é "x".txt', media_type: 'text/plain' }, span))
  t.equal(await got.text(), 'four')
  t.match(Object.fromEntries(got.headers), { 'content-type': 'text/plain', 'content-disposition': 'attachment; filename="_ _x_.txt"; filename*=UTF-8\'\'%C3%A9%20%22x%22.txt' })
  t.equal(await store.has(object(0), wanted), false, 'it doesn’t say the digest of what it has')
  t.equal(await store.has(object(1), wanted), false)
  t.strictSame(await objectsIn(store), [object(0)])
  t.strictSame(await objectsIn(store, Date.now() - 60_000), [])
  for (const times of ['once', 'again']) await t.resolves(store.remove(object(0)), times)
  t.strictSame(await objectsIn(store), [])
  const many = Array.from({ length: 1003 }, (_, n) => object(n))
  for (const one of many) {
    const { url, headers } = await store.upload(one, wanted, span)
    await (await fetch(url, { method: 'PUT', body: 'four', headers })).text()
  }
  t.strictSame((await objectsIn(store)).sort(), many.sort(), 'in pages')
  await writeFile(secret, '')
  await store.has(object(0), wanted)
  await t.rejects(storeAt(settings(endpoint, { AWS_SECRET_ACCESS_KEY: '@/nowhere' })).has(object(0), wanted), { name: 'Unavailable', message: /ENOENT/ })
})

t.test('a store that takes wrong bytes is refused', async t => {
  const endpoint = await bucketServer(t)
  const { make, store: { files } } = await filesApp(t, settings(endpoint))
  isProblem(t, await make('four'), 503, 'unavailable')
  const store = storeAt(settings(endpoint))
  t.match(await store.fault(), /another SHA-256/)
  t.strictSame(await objectsIn(store), [])
  t.strictSame(await files.partitions(), [], 'nothing was noted')
})

t.test('a store that checks takes what was declared, and nothing else', async t => {
  const front = await checkingFront(t, await bucketServer(t))
  const env = settings(front.url)
  const { make, call, app, setClock, redis, prefix } = await filesApp(t, env)
  const store = storeAt(env)
  const made = (await make('four', { name: 'a b' })).json()
  const { file_id: id, upload } = made
  t.ok(upload.url.startsWith(`${front.url}/handoff-files/of/service/`))
  const put = async (body: string) => (await fetch(upload.url, { method: 'PUT', body, headers: { ...upload.headers, 'content-length': String(body.length) } })).status
  t.equal((await call('alice', 'GET', `/api/files/${id}`)).json().state, 'waiting')
  t.equal(await put('FOUR'), 400)
  t.equal((await call('alice', 'GET', `/api/files/${id}`)).json().state, 'waiting')
  t.equal(await put('four'), 200)
  t.equal(await put('four'), 412, 'an object is written once')
  const { state, url } = (await call('alice', 'GET', `/api/files/${id}`)).json()
  t.equal(state, 'whole')
  t.equal(await (await fetch(url)).text(), 'four')
  const key = { 'idempotency-key': 'k' }
  t.strictSame((await make('four', {}, 'alice', key)).json(), (await make('four', {}, 'alice', key)).json(), 'the same key gets the same URL')

  const begun = Date.now()
  const other = (await make('five')).json()
  await fetch(other.upload.url, { method: 'PUT', body: 'five', headers: other.upload.headers })
  await redis.del(`${prefix}:{${homeTag('default')}}:file:default:${other.file_id}`)
  t.equal((await objectsIn(store)).length, 2)
  await app.fileSweep!.sweepObjects(Date.now() + 60_000)
  t.match(await objectsIn(store), [new RegExp(id)], 'what no record names goes')
  await setClock(begun + 25 * 3_600_000)
  await app.fileSweep!.sweep()
  isProblem(t, await call('alice', 'GET', `/api/files/${id}`), 404, 'not_found')
  t.strictSame(await objectsIn(store), [], 'and what nothing has')
})

t.test('a store that is away', async t => {
  const front = await checkingFront(t, await bucketServer(t))
  const { make, call, app, setClock, store } = await filesApp(t, settings(front.url))
  const { file_id: id, upload } = (await make('four')).json()
  const { file_id: late } = (await make('four')).json()
  await fetch(upload.url, { method: 'PUT', body: 'four', headers: upload.headers })
  const begun = Date.now()
  await front.close()
  isProblem(t, await call('alice', 'GET', `/api/files/${id}`), 503, 'unavailable', 'whether it is whole')
  t.equal((await make('four')).statusCode, 201, 'that there is room needs no store, once it was tried')
  await setClock(begun + 2 * 3_600_000)
  await app.fileSweep!.sweep()
  t.ok(await store.files.get('default', id), 'what may be there isn’t dropped')
  t.equal((await call('alice', 'DELETE', `/api/files/${late}`)).statusCode, 204)
  const fresh = await filesApp(t, settings(front.url))
  isProblem(t, await fresh.make('four'), 503, 'unavailable', 'before it was tried')
})

t.test('agents get the public address, the service asks the other', async t => {
  const front = await checkingFront(t, await bucketServer(t))
  const env = settings(front.url, { S3_PUBLIC_ENDPOINT: 'https://files.example.com' })
  const { make } = await filesApp(t, env)
  t.match((await make('four')).json().upload.url, /^https:\/\/files\.example\.com\/handoff-files\/of\/service\//)
  const hosted = storeAt({ ...env, S3_PATH_STYLE: 'off' })
  const span = { from: Date.now(), until: Date.now() + 60_000 }
  t.match(await hosted.download('o', { name: 'x' }, span), /^https:\/\/handoff-files\.files\.example\.com\/of\/service\/o\?/)
})
