import { readFile, readdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { loadConfig } from '../../src/config.ts'
import { BucketStore } from '../../src/files/bucket.ts'
import { DirectoryStore } from '../../src/files/directory.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { filesApp, sha256 } from '../helpers/files.ts'
import { scratchDir } from '../helpers/processes.ts'
import { usedRedis } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

interface Told { level: string, name: string, saw: string, server: string | null, set: string | null, why: string | null }

/** What `handoff doctor` says of the store of files, and the metrics of it. */

const { url: REDIS_URL } = await usedRedis(t)

async function examine (env: Record<string, string>) {
  const ended = await handoff(['doctor', '--json'], { env: { REDIS_URL, ...env } })
  return parsed<{ ok: boolean, findings: Told[] }>(ended).findings.filter(({ name }) => name === 'files')
}

t.test('a directory', async t => {
  t.strictSame(await examine({}), [], 'without a store there is nothing to say')
  const directory = await scratchDir(t)
  const FILES_URL = String(pathToFileURL(directory))
  const [found] = await examine({ FILES_URL })
  t.match(found, { level: 'ok', saw: /the first upload begins there/ })
  t.strictSame(await readdir(directory), [], 'nothing is made')
  const { make, prefix, store } = await filesApp(t, {}, { directory, url: REDIS_URL, limitedUrl: REDIS_URL })
  await store.whyNotReady()
  t.equal((await make('four')).statusCode, 201)
  const right = await examine({ FILES_URL, REDIS_KEY_PREFIX: prefix })
  t.equal(right.length, 1)
  // Whether there is room depends on the disk of this machine.
  t.match(right[0]!.saw, /GiB (free$|of the disk)/)
  const elsewhere = await scratchDir(t)
  const another = () => examine({ FILES_URL: String(pathToFileURL(elsewhere)), REDIS_KEY_PREFIX: prefix })
  t.match(await another(), [{ level: 'error', saw: /has no store.json: it isn’t mounted/ }])
  t.strictSame(await readdir(elsewhere), [], 'nothing is made there')
  const mine = await new DirectoryStore(elsewhere, () => '').open(true)
  const { id } = JSON.parse(await readFile(join(directory, 'store.json'), 'utf8'))
  t.match(await another(), [{ level: 'error', saw: `the store here is ${mine}, and Redis has the records of files in ${id}`, set: new RegExp(`FILES_URL here to ${id}`), why: /503/ }, {}])
  const file = join(await scratchDir(t), 'file')
  await writeFile(file, '')
  t.match(await examine({ FILES_URL: String(pathToFileURL(file)) }), [{ level: 'error', saw: /can’t be used: (EEXIST|ENOTDIR)/ }])
})

t.test('a bucket', async t => {
  let status = 403
  const server = createServer((request, response) => { request.resume().once('end', () => response.writeHead(status).end()) }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const env = {
    FILES_URL: 's3://handoff-files', S3_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, S3_PATH_STYLE: 'on', AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'a-hidden-secret'
  }
  t.match(await examine(env), [{ level: 'error', saw: 'the store of files answered 403' }])
  status = 200
  t.match(await examine(env), [{ level: 'error', saw: /s3:\/\/handoff-files\/ can’t have files: it took bytes with another SHA-256/ }])
  status = 400
  t.match(await examine(env), [{ level: 'error', saw: /it answered 400 to the right bytes/ }])
  t.match(await examine({ ...env, S3_ENDPOINT: 'http://127.0.0.1:1' }), [{ level: 'error', saw: /doesn’t answer/ }])
  t.notOk(JSON.stringify(await examine(env)).includes('a-hidden-secret'))
})

t.test('the trial of a bucket leaves nothing, and what may go by is tried again', async t => {
  let answer = (_method: string, _count: number) => 200
  let sums = ''
  const seen: string[] = []
  const server = createServer((request, response) => {
    seen.push(request.method!)
    request.resume().once('end', () => response.writeHead(answer(request.method!, seen.length), sums === '' ? {} : { 'x-amz-checksum-sha256': sums, 'content-length': 5 }).end(request.method === 'HEAD' ? '' : 'right'))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const { files } = loadConfig({ FILES_URL: 's3://handoff-files', S3_ENDPOINT: `http://127.0.0.1:${port}`, S3_PATH_STYLE: 'on', AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'a-hidden-secret' })
  const store = new BucketStore(files as Extract<typeof files, { kind: 'bucket' }>)
  for (const status of [301, 403, 404, 408, 429, 500, 503]) {
    answer = () => status
    await t.rejects(store.fault(), { name: 'Unavailable', message: new RegExp(`answered ${status}`) }, `${status} to the wrong bytes`)
    answer = (method, count) => method === 'PUT' && count === 1 ? 400 : status
    seen.length = 0
    await t.rejects(store.fault(), { name: 'Unavailable' }, `${status} to the right bytes`)
    answer = (method, count) => method === 'HEAD' ? status : count === 1 ? 400 : 200
    seen.length = 0
    if (status !== 404) await t.rejects(store.fault(), { name: 'Unavailable' }, `${status} to a look at them`)
    if (status !== 404) t.strictSame(seen, ['PUT', 'PUT', 'HEAD', 'DELETE'])
  }
  answer = method => method === 'DELETE' ? 503 : 200
  t.match(await store.fault(), /another SHA-256/, 'a verdict, though it could not be removed')
  answer = () => 503
  t.match(await store.fault(), /another SHA-256/, 'which stays')

  const said: Array<string | null> = []
  const retried = new BucketStore(files as Extract<typeof files, { kind: 'bucket' }>, fault => said.push(fault), 300)
  const wanted = { bytes: 5, sha256: sha256('right') }
  answer = () => 400
  const passing = /answered 400 to the right bytes/
  t.match(await retried.fault(), passing)
  answer = (method, count) => count === 1 ? 400 : 200
  seen.length = 0
  t.match(await retried.fault(), passing, 'not asked anew at once')
  t.strictSame(seen, [])
  sums = Buffer.from(wanted.sha256, 'hex').toString('base64')
  await until(async () => await retried.fault() === null)
  answer = () => 400
  t.equal(await retried.fault(), null, 'and then it can be used')
  t.match(said, [passing, null])
})

t.test('metrics count what came, went and was removed', async t => {
  const { put, make, call, app } = await filesApp(t)
  const id = await put('four')
  const { url } = (await call('alice', 'GET', `/api/files/${id}`)).json()
  await (await fetch(url)).text()
  const { upload } = (await make('four')).json()
  t.equal((await fetch(upload.url, { method: 'PUT', body: 'FOUR' })).status, 400)
  const { body } = await app.inject('/metrics')
  const value = (name: string) => Number(body.split('\n').find(line => line.startsWith(`${name} `))?.split(' ')[1])
  t.equal(value('handoff_file_bytes_total{direction="put"}'), 8)
  t.equal(value('handoff_file_bytes_total{direction="got"}'), 4)
  t.equal(value('handoff_file_transfers_total{direction="put",outcome="done"}'), 1)
  t.equal(value('handoff_file_transfers_total{direction="put",outcome="failed"}'), 1)
  t.equal(value('handoff_file_transfers_total{direction="got",outcome="done"}'), 1)
  t.equal(value('handoff_file_transfers'), 0)
  t.equal(value('handoff_files_removed_total{because="unheld"}'), 0)
})
