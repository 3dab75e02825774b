import { readdir, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { homeTag, tagOf, tags as allTags } from '../../src/core/ids.ts'
import { FileService } from '../../src/files/service.ts'
import { StoreFaults } from '../../src/files/faults.ts'
import { Reads } from '../../src/store/reads.ts'
import { DirectoryStore } from '../../src/files/directory.ts'
import { callerOf } from '../../src/core/model.ts'
import type { Caller } from '../../src/core/model.ts'
import { arrangements } from '../helpers/extent.ts'
import { filesApp, readerSecret, sha256 } from '../helpers/files.ts'
import { isProblem } from '../helpers/problems.ts'
import { secrets } from '../helpers/app.ts'
import { scratchDir } from '../helpers/processes.ts'

/** Which handoffs have a file, who may have it for that, and what the sweep removes. */

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000]
const alice = callerOf('default', 'alice', ['pass', 'catch', 'status'])
const bob = callerOf('default', 'bob', ['pass', 'catch', 'status'])
const reads = new Reads()
const faults = new StoreFaults({ info: () => {}, warn: () => {} })

for (const isSpread of arrangements) {
  t.comment(isSpread ? 'as in a Cluster' : 'on one Redis')

  /** The service, and the part of it that pass and done are to call. */
  const start = async (t: Parameters<typeof filesApp>[0], env: Record<string, string> = {}) => {
    const test = await filesApp(t, { RETENTION: '3600', ...env }, { isSpread })
    const objects = new DirectoryStore(test.directory, () => test.url, { share: 0, bytes: 0 })
    const files = new FileService(objects, test.store.files, { limit: 100, quota: 1000, faults, reads })
    const begun = Date.now()
    const sweepAt = async (after: number) => {
      await test.setClock(begun + after)
      await test.app.fileSweep!.sweep()
    }
    const missing = async (caller: Caller, ids: string[], handoff: string) => {
      const found = await files.find(caller, ids)
      if (found.size < new Set(ids).size) return 'file_missing'
      return await files.hold(caller.tenant, ids, handoff, 'input') ? 'held' : 'gone'
    }
    const isThere = async (id: string) => (await test.call('alice', 'GET', `/api/files/${id}`)).statusCode === 200
    const objectsThere = async () => (await readdir(join(test.directory, 'objects'), { recursive: true })).filter(name => /\.\d+$/.test(name))
    return { ...test, files, sweepAt, missing, isThere, objectsThere }
  }

  t.test('what is not whole when its URL ends goes, and frees its share', async t => {
    const { make, put, sweepAt, isThere, redis, store, prefix, objectsThere } = await start(t, { FILES_QUOTA: '8' })
    const { file_id: waiting } = (await make('four')).json()
    const whole = await put('also')
    t.equal((await make('x')).statusCode, 429)
    await sweepAt(hour - minute)
    t.ok(await isThere(waiting))
    t.equal((await make('x')).statusCode, 429)
    await sweepAt(hour + minute)
    t.notOk(await isThere(waiting))
    t.ok(await isThere(whole))
    t.equal((await make('four')).statusCode, 201, 'its share is free')
    await sweepAt(day - minute)
    t.ok(await isThere(whole), 'a whole one stays for a day')
    await sweepAt(day + minute)
    t.notOk(await isThere(whole), 'that nothing has')
    t.strictSame(await objectsThere(), [])
    await sweepAt(2 * day)
    t.strictSame(await store.files.partitions(), [])
    t.strictSame((await redis.keys(`${prefix}:*file*`)).map(key => key.split(':').at(-1)), ['filestore', 'filestore'], 'and no key')
    t.strictSame(await redis.keys(`${prefix}:*shares*`), [])
  })

  t.test('what came whole though nobody said so is noted whole', async t => {
    const { make, redis, store, prefix, sweepAt, call, missing, pass } = await start(t)
    const made = [await make('four'), await make('four'), await make('four')].map(answer => answer.json())
    for (const { file_id: id, upload } of made) {
      t.equal((await fetch(upload.url, { method: 'PUT', body: 'four' })).status, 204)
      // As if Redis had been away just then.
      const tag = homeTag('default')
      await redis.hdel(`${prefix}:{${tag}}:file:default:${id}`, 'whole')
      await redis.zadd(`${prefix}:{${tag}}:files:default`, Date.now() + 2 * hour, `${id}:4`)
      await redis.zadd(`${prefix}:{${tag}}:files`, Date.now() + 2 * hour, 'default')
    }
    const [asked, named, swept] = made.map(({ file_id: id }) => id as string) as [string, string, string]
    t.equal((await call('alice', 'GET', `/api/files/${asked}`)).json().state, 'whole')
    t.equal(await missing(alice, [named], await pass()), 'held')
    await sweepAt(2 * hour + minute)
    for (const id of [asked, named, swept]) t.ok((await store.files.get('default', id))!.file.wholeAt, id)
  })

  t.test('only what is there whole, and may be read, is held', async t => {
    const { make, put, missing, pass, store, call, files } = await start(t)
    const { file_id: waiting } = (await make('four')).json()
    const [one, two] = [await put('one'), await put('two')]
    const id = await pass()
    t.equal(await missing(alice, [waiting], id), 'file_missing')
    t.equal(await missing(bob, [one], id), 'file_missing', 'not this agent’s')
    t.equal(await missing({ ...alice, tenant: 'other' }, [one], id), 'file_missing')
    for (const wrong of ['', 'x', '../../etc', id, `${one}x`]) t.equal(await missing(alice, [wrong], id), 'file_missing', wrong)
    t.equal(await missing(alice, [one, waiting], id), 'file_missing')
    const none = new FileService(null, store.files, { limit: 1, quota: 1, faults, reads })
    t.equal((await none.find(alice, [one])).size, 0)
    t.strictSame(await none.urlsOf('default', [one]), [null])
    t.equal(await missing(alice, [one, two], id), 'held')
    const gone = await put('gone')
    await call('alice', 'DELETE', `/api/files/${gone}`)
    t.equal(await files.hold('default', [one, gone], id, 'input'), false, 'what went since it was found')
  })

  t.test('what the files are, and where they can be fetched', async t => {
    const { put, make, files } = await start(t)
    const [one, two] = [await put('one', { name: '1 é', media_type: 'text/plain' }), await put('two!', { name: '2' })]
    const { file_id: waiting } = (await make('four')).json()
    t.strictSame([...await files.find(alice, [two, waiting, one])], [
      [two, { name: '2', media_type: null, bytes: 4, sha256: sha256('two!') }], [one, { name: '1 é', media_type: 'text/plain', bytes: 3, sha256: sha256('one') }]
    ])
    const [first, none, last] = await files.urlsOf('default', [two, waiting, one])
    t.equal(none, null)
    t.equal(await (await fetch(first!.url)).text(), 'two!')
    t.equal(await (await fetch(last!.url)).text(), 'one')
    t.ok(Math.abs(Date.parse(first!.expires_at) - Date.now() - 900_000) < 10_000)
  })

  t.test('a file stays as long as a handoff that has it is in Redis, and goes within an hour', async t => {
    const { put, files, pass, call, sweepAt, isThere, redis, prefix } = await start(t)
    const file = await put('four')
    const [first, last] = [await pass({ expires_in: 5 * 3600 }), await pass({ expires_in: 30 * 3600 })]
    for (const id of [first, last]) await files.hold('default', [file], id, 'input')
    const refused = await call('alice', 'DELETE', `/api/files/${file}`)
    isProblem(t, refused, 409, 'file_in_use')
    await redis.del(`${prefix}:{${tagOf(first)}}:h:default:${first}`)
    await sweepAt(11 * minute)
    t.ok(await isThere(file))
    for (const at of [5 * hour, 20 * hour, 39 * hour]) await sweepAt(at)
    t.ok(await isThere(file), 'the last one is there')
    await redis.del(`${prefix}:{${tagOf(last)}}:h:default:${last}`)
    await sweepAt(40 * hour + 30 * minute)
    await sweepAt(40 * hour + 55 * minute)
    t.notOk(await isThere(file))
  })

  t.test('a hold for a handoff that never came ends by itself', async t => {
    const { put, files, pass, sweepAt, isThere, call, redis, prefix } = await start(t)
    const [file, other] = [await put('four'), await put('five')]
    const id = await pass()
    await files.hold('default', [file, other], id, 'input')
    await redis.del(`${prefix}:{${tagOf(id)}}:h:default:${id}`)
    isProblem(t, await call('alice', 'DELETE', `/api/files/${file}`), 409, 'file_in_use', 'it may still come')
    await sweepAt(minute)
    t.ok(await isThere(file))
    await sweepAt(11 * minute)
    await sweepAt(42 * minute)
    t.notOk(await isThere(file))
    t.strictSame(await redis.keys(`${prefix}:*having*`), [], 'and nothing is noted any more')
  })

  t.test('a claim while a partition is asked counts', async t => {
    const { put, files, pass, store, setClock, isThere } = await start(t)
    const file = await put('four')
    const id = await pass()
    await files.hold('default', [file], id, 'input')
    await setClock(Date.now() + hour)
    const { file: seen } = (await store.files.get('default', file))!
    await files.hold('default', [file], await pass(), 'input')
    t.equal(await store.files.kept(seen, (await store.files.keeping(seen)).find(([tag]) => tag === tagOf(id))!, null), 'noted', 'another partition’s is nothing to this one')
    await files.hold('default', [file], id, 'input')
    const { file: now } = (await store.files.get('default', file))!
    const asked = (await store.files.keeping(now)).find(([tag]) => tag === tagOf(id))!
    await setClock(Date.now() + 2 * hour)
    await files.hold('default', [file], id, 'input')
    t.equal(await store.files.kept(now, asked, null), 'changed')
    t.equal(await store.files.drop(now), 'in_use')
    t.ok(await isThere(file))
  })

  t.test('a claim counts before its handoff is noted, whoever asks', async t => {
    const { put, pass, store, call, setClock, isThere, redis, prefix } = await start(t)
    const file = await put('four')
    const id = await pass()
    const begun = Date.now()
    await setClock(begun)
    const { file: seen } = (await store.files.get('default', file))!
    t.equal(await store.files.claim(seen, tagOf(id)), 'claimed')
    isProblem(t, await call('alice', 'DELETE', `/api/files/${file}`), 409, 'file_in_use')
    const { file: claimed } = (await store.files.get('default', file))!
    const [first] = await store.files.keeping(claimed)
    await store.files.claim(seen, tagOf(id))
    t.equal(await store.files.kept(claimed, first!, 1_800_000), 'changed', 'two at the same time are two')
    await store.files.have('default', [file], id, 'input')
    await setClock(begun + 11 * minute)
    isProblem(t, await call('alice', 'DELETE', `/api/files/${file}`), 409, 'file_in_use', 'its handoff is there')
    await redis.del(`${prefix}:{${tagOf(id)}}:h:default:${id}`)
    t.ok(await isThere(file))
    t.equal((await call('alice', 'DELETE', `/api/files/${file}`)).statusCode, 204)
  })

  t.test('a replica with another directory looks at nothing', async t => {
    const { make, put, prefix, setClock, isThere, call, directory } = await start(t)
    const ids = [(await make('four')).json().file_id, await put('four')]
    const elsewhere = await scratchDir(t)
    await new DirectoryStore(elsewhere, () => '').open(true)
    const another = await filesApp(t, {}, { prefix, isSpread, directory: elsewhere })
    for (const id of ids) isProblem(t, await another.call('alice', 'DELETE', `/api/files/${id}`), 503, 'unavailable')
    isProblem(t, await another.call('alice', 'GET', `/api/files/${homeTag('default')}${'A'.repeat(22)}`), 503, 'unavailable')
    await setClock(Date.now() + 2 * day)
    await another.app.fileSweep!.sweep()
    for (const id of ids) t.ok(await isThere(id), id)
    // As one whose directory isn't mounted.
    await rename(directory, `${directory}-away`)
    await writeFile(directory, '')
    t.teardown(() => rm(`${directory}-away`, { recursive: true, force: true }))
    const away = await filesApp(t, {}, { directory, prefix, isSpread })
    t.equal((await away.call('alice', 'DELETE', `/api/files/${ids[1]}`)).statusCode, 204, 'its record is what counts')
    t.equal((await call('alice', 'DELETE', `/api/files/${ids[0]}`)).statusCode, 204)
  })

  t.test('only the making of an upload has a partition be a store’s, and the first one’s is that of all', async t => {
    const mine = await filesApp(t, {}, { isSpread })
    const elsewhere = await scratchDir(t)
    await new DirectoryStore(elsewhere, () => '').open(true)
    const other = await filesApp(t, {}, { prefix: mine.prefix, isSpread, directory: elsewhere })
    const taken = async () => (await mine.redis.keys(`${mine.prefix}:*filestore`)).length
    const id = `${homeTag('default')}${'A'.repeat(22)}`
    const unsigned = async () => (await fetch(`${other.url}/files/${'m'.repeat(22)}/t-other/${id}.1234567890123?expires=9999999999999&signature=x`)).status
    isProblem(t, await other.call('alice', 'GET', `/api/files/${id}`), 404, 'not_found')
    isProblem(t, await other.call('alice', 'DELETE', `/api/files/${id}`), 404, 'not_found')
    isProblem(t, await other.call('alice', 'POST', '/api/pass', { task: 't', files: [{ name: 'n', uri: `handoff-file:${id}` }] }), 409, 'file_missing')
    t.equal(await unsigned(), 403)
    await other.app.fileSweep!.sweep()
    t.equal(await taken(), 0)
    t.equal((await mine.make('four')).statusCode, 201)
    const few = await taken()
    t.equal(await unsigned(), 503)
    isProblem(t, await other.make('four', {}, 'foreignAlice'), 503, 'unavailable', 'a partition that nobody had')
    t.equal(await taken(), few)
    t.equal((await mine.make('four', {}, 'foreignAlice')).statusCode, 201)
    // One that isn't mounted is no store, and becomes none.
    const empty = await scratchDir(t)
    isProblem(t, await (await filesApp(t, {}, { prefix: mine.prefix, isSpread, directory: empty })).make('four'), 503, 'unavailable')
    t.strictSame(await readdir(empty), [])
  })

  t.test('what keeps a file costs the same however many partitions have it, and a batch asks once', async t => {
    const { put, call, store, redis, prefix, setClock } = await start(t)
    const id = await put('four')
    const uri = `handoff-file:${id}`
    const made = (await store.files.get('default', id))!.file
    const tags = allTags.slice(0, 100)
    for (const tag of tags) t.equal(await store.files.claim(made, tag), 'claimed')
    const asked: Record<string, number> = {}
    for (const name of ['get', 'claim'] as const) {
      const real = store.files[name].bind(store.files) as (...given: unknown[]) => never
      store.files[name] = (...given: unknown[]) => {
        asked[name] = (asked[name] ?? 0) + 1
        return real(...given)
      }
    }
    const passed = await call('alice', 'POST', '/api/batch', { operations: Array.from({ length: 20 }, () => ({ op: 'pass', body: { task: 't', to: 'box', files: [{ name: 'n', uri }] } })) })
    t.strictSame(passed.json().results.map(({ status }: { status: number }) => status), Array.from({ length: 20 }, () => 201))
    t.comment(asked)
    t.ok(asked.get! <= 5 && asked.claim! <= 5, `${JSON.stringify(asked)} for 20 passes`)
    const handoff = passed.json().results[0].body.handoff_id
    t.equal((await redis.zcard(`${prefix}:{${homeTag('default')}}:keeping:default:${id}`)), new Set([...tags, tagOf(handoff)]).size)
    isProblem(t, await call('bob', 'GET', `/api/files/${id}`), 404, 'not_found')
    await call('bob', 'GET', `/api/catch/${handoff}`)
    t.equal((await call('bob', 'GET', `/api/files/${id}`)).statusCode, 200, 'found among all of them')
    await setClock(Date.now() + hour)
    isProblem(t, await call('alice', 'DELETE', `/api/files/${id}`), 409, 'file_in_use')
    t.equal(await redis.zcard(`${prefix}:{${homeTag('default')}}:keeping:default:${id}`), 1, 'those without handoffs have left')
  })

  t.test('who may have a file because of a handoff', async t => {
    const { put, files, call, pass, app, setClock } = await start(t)
    const reads = async (id: string, secret: string) => (await app.inject({ method: 'GET', url: `/api/files/${id}`, headers: { authorization: `Bearer ${secret}` } })).statusCode
    const file = await put('input')
    const id = await pass({ require_human: true, work_within: 600 })
    await files.hold('default', [file], id, 'input')
    t.equal(await reads(file, secrets.bob), 404, 'nobody has caught it')
    t.equal(await reads(file, secrets.approver), 200, 'approval was asked')
    t.equal(await reads(file, readerSecret), 200, 'read')
    t.equal(await reads(file, secrets.operator), 200, 'who operates may approve as well')
    await call('approver', 'POST', `/api/approve/${id}`)
    await call('bob', 'GET', `/api/catch/${id}`)
    t.equal(await reads(file, secrets.bob), 200, 'its catcher')
    const onward = await pass({}, 'bob')
    await files.hold('default', [file], onward, 'input')
    const result = await put('output', {}, 'bob')
    await files.hold('default', [result], id, 'result')
    t.equal(await reads(result, secrets.alice), 404, 'not before it is done')
    await call('bob', 'POST', `/api/done/${id}`, {})
    t.equal(await reads(result, secrets.alice), 200, 'who may read the status')
    t.equal(await reads(result, secrets.foreignAlice), 404)
    t.equal(await reads(file, secrets.bob), 200, 'as the passer of another')
    t.equal(await reads(file, secrets.foreignApprover), 404)

    const plain = await put('plain')
    const caught = await pass({ work_within: 600 })
    await files.hold('default', [plain], caught, 'input')
    t.equal(await reads(plain, secrets.approver), 404, 'no approval was asked')
    await call('bob', 'GET', `/api/catch/${caught}`)
    t.equal(await reads(plain, secrets.bob), 200)
    await setClock(Date.now() + 601_000)
    t.equal(await reads(plain, secrets.bob), 404, 'its time is over')
    isProblem(t, await call('bob', 'DELETE', `/api/files/${plain}`), 404, 'not_found', 'only who made it deletes it')
  })

  t.test('of an object without a record, that of another Redis stays', async t => {
    const { put, redis, prefix, app, objectsThere, directory, store, isThere } = await start(t)
    const [kept, lost] = [await put('kept'), await put('lost')]
    const tag = homeTag('default')
    await redis.del(`${prefix}:{${tag}}:file:default:${lost}`)
    const later = Date.now() + minute
    await app.fileSweep!.sweepObjects(Date.now() - 7 * day)
    t.equal((await objectsThere()).length, 2, 'not yet')
    await app.fileSweep!.sweepObjects(later)
    t.match(await objectsThere(), [new RegExp(kept)])
    t.match(app.fileSweep!.counts, { orphans: 1 })
    // As a Redis that was emptied.
    await redis.del(...await redis.keys(`${prefix}:*`))
    await app.fileSweep!.sweepObjects(later)
    t.match(await objectsThere(), [new RegExp(kept)])
    t.notOk(await isThere(kept))
    t.equal(store.replaced, 0)
    const temporary = join(directory, 'incoming', 'left')
    await writeFile(temporary, '')
    await app.fileSweep!.sweepObjects(later)
    t.strictSame(await readdir(join(directory, 'incoming')), ['left'])
    await utimes(temporary, 1, 1)
    await app.fileSweep!.sweepObjects(later)
    t.strictSame(await readdir(join(directory, 'incoming')), [], 'an old temporary file goes')
  })

  t.test('a file whose record ran out frees its share', async t => {
    const { make, put, redis, prefix, sweepAt } = await start(t, { FILES_QUOTA: '4' })
    const id = await put('four')
    t.equal((await make('x')).statusCode, 429)
    await redis.del(`${prefix}:{${homeTag('default')}}:file:default:${id}`)
    await sweepAt(day + minute)
    t.equal((await make('four')).statusCode, 201)
  })

  t.test('a tenant has 10,000 files at most', async t => {
    const { make, redis, prefix } = await start(t)
    const members = Array.from({ length: 9_999 }, (_, n) => [1e15, `${n}:0`]).flat()
    await redis.zadd(`${prefix}:{${homeTag('default')}}:files:default`, ...members as [number, string])
    t.equal((await make('x')).statusCode, 201)
    isProblem(t, await make('x'), 429, 'files_full')
  })
}
