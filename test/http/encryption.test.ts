import { readFile, readdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { memberOf, KeyNames } from '../../src/store/key-names.ts'
import { tagOf } from '../../src/core/ids.ts'
import { PayloadKeys, parsePayloadKeys } from '../../src/core/payload-keys.ts'
import { Seal } from '../../src/core/seal.ts'
import { secrets, testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { filesApp, sha256 } from '../helpers/files.ts'
import type { FilesApp } from '../helpers/files.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { personWith } from '../helpers/forms.ts'
import { bearer, newKey } from '../helpers/stored-keys.ts'
import { isProblem } from '../helpers/problems.ts'
import { callsOf } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

/** What is encrypted, what it is bound to, and what a replica without a key does. */

const key = (kid: string, byte: number) => `${kid}:${Buffer.alloc(32, byte).toString('base64')}`
const [june, july] = [key('june', 6), key('july', 7)]
const asked = { 'content-type': 'application/json', 'a2a-version': '1.0' }

/** Replicas with these settings on one Redis. */
async function replicas<Name extends string> (t: Test, settings: Record<Name, string | null>, env: Record<string, string> = {}): Promise<Record<Name, TestApp>> {
  const made: Array<[string, TestApp]> = []
  for (const [name, keys] of Object.entries<string | null>(settings)) {
    made.push([name, await testApp(t, { ...env, ...keys !== null && { PAYLOAD_KEYS: keys } }, { ...made[0] !== undefined && { prefix: made[0][1].prefix } })])
  }
  return Object.fromEntries(made) as Record<Name, TestApp>
}

const keyOf = ({ prefix }: TestApp, id: string) => new KeyNames(prefix).handoff(tagOf(id), memberOf('default', id))

t.test('none of what agents and people write is readable in Redis, nor on the way there', async t => {
  const { url, admin } = await ownRedis(t, ['--rdbcompression', 'no'])
  const env = { PAYLOAD_KEYS: june, EVENTS_RETENTION: '3600', WEBHOOK_SECRET: 'a-secret-of-webhooks-0123', WEBHOOK_ALLOW: '127.0.0.0/8', LOG_LEVEL: 'trace' }
  const service = await filesApp(t, env, { url, limitedUrl: url, prefix: 'handoff' })
  const { lines } = service
  const called: string[] = []
  const call: TestApp['call'] = (who, method, path, ...more) => {
    called.push(`${method} ${path.split('?')[0]}`)
    return service.call(who, method, path, ...more)
  }
  const monitor = connect(url)
  let commands = ''
  monitor.setEncoding('latin1').on('data', some => { commands += some }).on('error', () => {}).write('MONITOR\r\n')
  await until(() => commands.includes('+OK\r\n'))
  const canary = (where: string) => `canary-${where} ${'of some length '.repeat(where.includes('long') ? 500 : 1)}`
  const ok = async (...of: Parameters<typeof call>) => {
    const answer = await call(...of)
    t.ok(answer.statusCode < 300, `${of[1]} ${of[2].replace(/[\w-]{25}/, 'ID')} ${answer.body.slice(0, 900)}`)
    return answer.body === '' ? null : answer.json()
  }
  const payload = (name: string) => ({
    task: canary(`${name}-task`),
    output: { a: canary(`${name}-output-long`) },
    context: { b: canary(`${name}-context`) },
    constraints: canary(`${name}-constraints`),
    result_schema: { type: 'object', title: canary(`${name}-schema`) },
    to: 'inbox',
    labels: { run: name },
    callback: { url: 'http://127.0.0.1:9/', token: `canary-${name}-callback`, result: true }
  })
  const caught = async (name: string, more: object = {}) => {
    const { handoff_id: id } = await ok('alice', 'POST', '/api/pass', { ...payload(name), max_attempts: 3, retry_delay: 0, ...more }, { 'idempotency-key': name })
    await ok('bob', 'GET', `/api/catch/${id}`)
    return id as string
  }
  const done = await caught('done')
  await ok('alice', 'POST', '/api/pass', { ...payload('child'), parent: null })
  await ok('bob', 'POST', '/api/pass', { task: canary('child-task'), parent: done })
  await ok('bob', 'POST', `/api/heartbeat/${done}`, { progress: { message: canary('progress') }, checkpoint: { at: canary('checkpoint') } })
  const { ask_id: askId } = await ok('bob', 'POST', `/api/ask/${done}`, { question: canary('question'), details: { d: canary('details') }, schema: { type: 'object', title: canary('ask-schema') } })
  t.match(await ok('approver', 'GET', '/api/asks'), { items: [{ question: /^canary-question/ }] })
  await ok('approver', 'POST', `/api/answer/${done}`, { ask_id: askId, answer: { a: canary('answer') }, note: canary('answer-note') })
  t.match(await ok('bob', 'GET', `/api/ask/${done}`), { answer: { a: canary('answer') }, note: canary('answer-note'), details: { d: canary('details') } })
  await ok('bob', 'POST', `/api/done/${done}`, { output: { r: canary('result-long') } }, { 'idempotency-key': 'done' })
  t.match(await ok('alice', 'GET', `/api/status/${done}`), { result: { r: canary('result-long') } })
  const failed = await caught('failed')
  const { reissued_as: second } = await ok('bob', 'POST', `/api/fail/${failed}`, { error: { message: canary('error'), code: 'no_disk', data: { e: canary('error-data') } }, checkpoint: { c: canary('second') } })
  t.match(await ok('bob', 'GET', `/api/catch/${second}`), { task: canary('failed-task'), checkpoint: { c: canary('second') } })
  const { reissued_as: third } = await ok('bob', 'POST', `/api/decline/${second}`, { reason: canary('reason'), checkpoint: { c: canary('third') } })
  t.match(await ok('bob', 'GET', `/api/catch/${third}`), { checkpoint: { c: canary('third') } })
  await ok('bob', 'POST', `/api/heartbeat/${third}`, { checkpoint: { c: canary('fourth') } })
  await ok('alice', 'POST', `/api/cancel/${third}`, { reason: canary('cancel') })
  await ok('alice', 'POST', `/api/cancel/${third}`, { reason: canary('cancel'), force: true })
  for (const verdict of ['approve', 'reject']) {
    const { handoff_id: id } = await ok('alice', 'POST', '/api/pass', { ...payload(verdict), require_human: true })
    t.match(await ok('approver', 'GET', '/api/approvals'), { items: [{ task: /^canary-/ }] })
    const { digest } = await ok('approver', 'GET', `/api/approvals/${id}`)
    t.match(await ok('approver', 'POST', `/api/${verdict}/${id}`, { note: canary('note'), digest }), { approval: { note: canary('note'), digest } })
    t.match(await ok('alice', 'GET', `/api/status/${id}`), { approval: { note: canary('note'), digest } })
    t.match((await call('approver', 'POST', `/api/${verdict}/${id}`, { note: 'again' })).json(), { approval: { note: canary('note'), digest } })
    if (verdict === 'approve') t.match(await ok('bob', 'GET', `/api/catch/${id}`), { approval: { note: canary('note'), digest } })
  }
  t.match(await ok('approver', 'GET', '/api/decisions'), { items: [{ note: canary('note'), task: /^canary-/ }, {}, { question: /^canary-question/ }] })
  await ok('alice', 'PUT', '/api/schedules/daily', { cron: '0 9 * * *', handoff: { task: canary('schedule'), context: { c: canary('schedule-context') } } })
  t.match(await ok('alice', 'GET', '/api/schedules/daily'), { handoff: { task: canary('schedule') } })
  await ok('operator', 'PUT', '/api/inboxes/desk', { card: { description: 'Reviews.', skills: [{ id: 'a', name: 'a', description: 'a', tags: ['a'] }] } })
  const send = (message: object) => ok('alice', 'POST', '/a2a/default/desk', {
    jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: { role: 'ROLE_USER', messageId: canary('message-id').trim(), ...message }, configuration: { returnImmediately: true, taskPushNotificationConfig: { url: 'http://127.0.0.1:9/', token: 'canary-push-token', authentication: { scheme: 'Bearer', credentials: 'canary-push-credentials' } } } }
  }, asked)
  const { result: { task: { id: task } } } = await send({ parts: [{ text: canary('a2a-text') }, { data: { a: canary('a2a-data') } }], metadata: { m: canary('a2a-metadata') } })
  const { items: [item] } = await ok('bob', 'POST', '/api/catch', { inbox: 'desk', max: 1 })
  t.equal(item.handoff_id, task)
  await ok('bob', 'POST', `/api/heartbeat/${task}`, { progress: { message: canary('a2a-progress') } })
  const { ask_id: toPasser } = await ok('bob', 'POST', `/api/ask/${task}`, { question: canary('a2a-question'), of: 'passer' })
  t.ok(toPasser)
  await send({ messageId: 'two', taskId: task, parts: [{ text: canary('a2a-answer') }] })
  await ok('bob', 'POST', `/api/done/${task}`, { output: { text: canary('a2a-result') } })
  t.match(await ok('alice', 'POST', '/a2a/default/desk', { jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: task } }, asked), { result: { artifacts: [{ parts: [{ text: canary('a2a-result') }] }] } })
  await ok('bob', 'GET', `/api/status/${task}`)
  t.match(await ok('operator', 'GET', '/api/handoffs?state=ended'), { items: [{ title: 'canary-a2a-text of some length ' }] })

  await everythingElse(service, ok, canary)
  const { paths } = (await call(null, 'GET', '/openapi.json')).json() as { paths: Record<string, object> }
  const notCalled = Object.entries(paths).filter(([path]) => path.startsWith('/api/')).flatMap(([path, methods]) =>
    Object.keys(methods).map(method => `${method.toUpperCase()} ${path}`).filter(one => {
      const pattern = new RegExp(`^${one.replace(/\{\w+\}/g, '[^/]+')}$`)
      return !called.some(one => pattern.test(one))
    }))
  t.strictSame(notCalled, [], 'every operation has been called')

  monitor.destroy()
  const found = (text: string) => [...new Set([...text.matchAll(/canary-[\w-]+/g)].map(([found]) => found))]
  t.ok(commands.includes('EVALSHA') || commands.includes('evalsha'))
  t.strictSame(found(commands), [], 'in no command')
  t.strictSame(found(JSON.stringify(await service.dump())), [], 'in no value')
  t.strictSame(found(lines.join('\n')), [], 'in no line of the log')
  await admin.save()
  const [, dir] = await admin.config('GET', 'dir') as [string, string]
  const names = (await readdir(dir, { recursive: true, withFileTypes: true })).filter(one => one.isFile())
  const files = await Promise.all(names.map(async ({ parentPath, name }) => [name, await readFile(join(parentPath, name), 'latin1')] as const))
  for (const kind of [/\.rdb$/, /\.aof$/]) t.ok(files.some(([name, text]) => kind.test(name) && text.includes('handoff:')), `there is one ${kind}`)
  for (const [name, text] of files) t.strictSame(found(text), [], name)
})

/** What the test above doesn't call for its answers. */
async function everythingElse ({ url, store }: FilesApp, ok: (...of: Parameters<TestApp['call']>) => Promise<any>, canary: (where: string) => string): Promise<void> {
  const bytes = 'the bytes of a file'
  const upload = async (name: string) => {
    const made = await ok('alice', 'POST', '/api/files', { name: canary(`${name}-name`).trim(), bytes: bytes.length, sha256: sha256(bytes) })
    await fetch(made.upload.url, { method: 'PUT', body: bytes, headers: made.upload.headers })
    return made as { file_id: string, uri: string }
  }
  const [kept, unused] = [await upload('kept'), await upload('unused')]
  await ok('alice', 'GET', `/api/files/${unused.file_id}`)
  await ok('alice', 'DELETE', `/api/files/${unused.file_id}`)
  const link = (name: string) => ({ name: canary(`${name}-name`).trim(), uri: `https://files.example/canary-${name}-uri` })
  const batch = await ok('alice', 'POST', '/api/batch', {
    operations: [
      { op: 'pass', body: { task: canary('batch-task'), to: 'batched', files: [{ name: canary('held-name').trim(), uri: kept.uri }, link('link')] } },
      { op: 'pass', body: { task: canary('after-task'), to: 'batched', group: 'g' } },
    ]
  })
  const [first, second] = batch.results.map(({ body }: { body: { handoff_id: string } }) => body.handoff_id)
  await ok('bob', 'GET', `/api/catch/${first}`)
  await ok('bob', 'POST', `/api/done/${first}`, { output: { r: canary('done-with-files') }, files: [link('result')] })
  const after = await ok('alice', 'POST', '/api/pass', { task: canary('later-task'), after: [first] })
  await ok('bob', 'GET', `/api/catch/${after.handoff_id}`)
  for (const path of ['/api/inboxes', '/api/inboxes/batched', '/api/inboxes/batched/groups', '/api/inboxes/batched/workers', '/api/runs?label=run', '/api/events', '/api/callbacks/secret', '/api/whoami', '/api/schedules', '/api/schedules/daily/runs']) await ok('alice', 'GET', path)
  await ok('alice', 'POST', '/api/wait', { ids: [first, second] })
  await ok('alice', 'POST', '/api/callbacks/rotate')
  await ok('bob', 'GET', `/api/catch/${second}`)
  await ok('alice', 'POST', `/api/reissue/${second}`)
  const failing = await ok('alice', 'POST', '/api/pass', { task: canary('failing-task'), to: 'failing' })
  await ok('bob', 'GET', `/api/catch/${failing.handoff_id}`)
  await ok('bob', 'POST', `/api/fail/${failing.handoff_id}`, { error: { message: canary('failing-error') } })
  await ok('operator', 'POST', '/api/redrive', { inbox: 'failing' })
  await ok('operator', 'POST', '/api/purge', { inbox: 'failing', reason: canary('purge-reason') })
  const { key } = await newKey(store.keyRecords, { scopes: ['read', 'webhooks'], agent: 'wendy' })
  const asWendy = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: object) => ok(null, method, path, body, bearer(key))
  t.match(await asWendy('GET', `/api/handoffs/${first}`), { result: { r: canary('done-with-files') } })
  const { id: hook } = await asWendy('POST', '/api/webhooks', { url: `${url}/nowhere` })
  for (const path of ['', `/${hook}`, `/${hook}/deliveries`]) await asWendy('GET', `/api/webhooks${path}`)
  for (const path of ['rotate', 'enable', 'test']) await asWendy('POST', `/api/webhooks/${hook}/${path}`)
  await asWendy('POST', `/api/webhooks/${hook}/replay`, { since: new Date(0).toISOString() })
  await asWendy('DELETE', `/api/webhooks/${hook}`)
  for (const path of ['pause', 'resume', 'run']) await ok('alice', 'POST', `/api/schedules/daily/${path}`)
  await ok('alice', 'POST', '/api/schedules/daily/backfill', { since: new Date(Date.now() - 3 * 86_400_000).toISOString(), until: new Date().toISOString() })
  await ok('alice', 'DELETE', '/api/schedules/daily')
}

t.test('with a second key that writes first, all that the first sealed goes on, and is found again', async t => {
  const { before, between, after } = await replicas(t, { before: june, between: `${june},${july}`, after: `${july},${june}` })
  const pass = { task: 'the same', require_human: true, result_schema: { type: 'object' } }
  const first = await before.call('alice', 'POST', '/api/pass', pass, { 'idempotency-key': 'k' })
  for (const one of [between, after]) {
    const again = await one.call('alice', 'POST', '/api/pass', pass, { 'idempotency-key': 'k' })
    t.equal(again.body, first.body)
    t.equal(again.headers['idempotency-replayed'], 'true')
    isProblem(t, await one.call('alice', 'POST', '/api/pass', { ...pass, task: 'another' }, { 'idempotency-key': 'k' }), 422, 'idempotency_key_reused')
  }
  const { handoff_id: id } = first.json()
  const { digest } = (await after.call('approver', 'GET', `/api/approvals/${id}`)).json()
  isProblem(t, await after.call('approver', 'POST', `/api/approve/${id}`, { digest: digest.replace(/.=:$/, 'A=:').replace('sha-256=:', 'sha-256=:').replace(/:(.)/, (_: string, one: string) => `:${one === 'A' ? 'B' : 'A'}`) }), 409, 'content_changed')
  t.equal((await after.call('approver', 'POST', `/api/approve/${id}`, { digest, note: 'yes' })).statusCode, 200)
  t.match((await before.call('bob', 'GET', `/api/catch/${id}`)).statusCode, 503, 'the note is sealed with a key that it does not have')
  t.match((await between.call('bob', 'GET', `/api/catch/${id}`)).json(), { task: 'the same', approval: { note: 'yes', digest } })
  isProblem(t, await after.call('bob', 'POST', `/api/done/${id}`, { output: [] }), 400, 'invalid_request')
  const done = await before.call('bob', 'POST', `/api/done/${id}`, { output: { n: 1 } }, { 'idempotency-key': 'd' })
  t.equal(done.statusCode, 200)
  t.equal((await after.call('bob', 'POST', `/api/done/${id}`, { output: { n: 1 } }, { 'idempotency-key': 'd' })).body, done.body)
  isProblem(t, await after.call('bob', 'POST', `/api/done/${id}`, { output: { n: 2 } }, { 'idempotency-key': 'd' }), 409, 'already_done')
  t.strictSame((await after.call('alice', 'GET', `/api/status/${id}`)).json().result, { n: 1 })
})

t.test('what was written before there were keys reads on, and its operations are found again', async t => {
  const { plain, sealed } = await replicas(t, { plain: null, sealed: june })
  const first = await plain.call('alice', 'POST', '/api/pass', { task: 'x', output: { a: 1 } }, { 'idempotency-key': 'k' })
  t.equal((await sealed.call('alice', 'POST', '/api/pass', { task: 'x', output: { a: 1 } }, { 'idempotency-key': 'k' })).body, first.body)
  const { handoff_id: id } = first.json()
  t.match((await sealed.call('bob', 'GET', `/api/catch/${id}`)).json(), { task: 'x', output: { a: 1 } })
  t.equal((await sealed.call('bob', 'POST', `/api/done/${id}`, { output: { r: 1 } })).statusCode, 200)
  t.match((await sealed.call('alice', 'GET', `/api/status/${id}`)).json(), { status: 'done', result: { r: 1 } })
  const locked = (await plain.call('alice', 'GET', `/api/status/${id}`)).json()
  t.match(locked, { status: 'done', result: null, locked: true })
  t.equal((await sealed.redis.hget(keyOf(sealed, id), 's'))!.slice(0, 7), '4:done ', 'version 0.2.0 does not touch it')
})

t.test('version 0.2.0 touches none that is sealed, whatever has become of it', async t => {
  const { one } = await replicas(t, { one: june })
  const post = async (who: 'alice' | 'bob' | 'approver', path: string, body: object) => (await one.call(who, 'POST', path, body)).json()
  const begins = async (id: string) => (await one.redis.hget(keyOf(one, id), 's'))!.split(' ')[0]
  const id = await one.caught({ max_attempts: 2, retry_delay: 0 })
  t.equal(await begins(id), '4:caught')
  await post('bob', `/api/heartbeat/${id}`, { extend_by: 600 })
  t.equal(await begins(id), '4:caught', 'extended')
  const { ask_id: askId } = await post('bob', `/api/ask/${id}`, { question: 'q' })
  t.equal(await begins(id), '4:caught', 'asked')
  await post('approver', `/api/answer/${id}`, { ask_id: askId, answer: {} })
  t.equal(await begins(id), '4:caught', 'answered')
  const blocked = await one.pass({ after: [id] })
  t.equal(await begins(blocked), '5:pending', 'blocked')
  const { reissued_as: next } = await post('bob', `/api/fail/${id}`, { error: { message: 'm' } })
  t.strictSame([await begins(id), await begins(next)], ['4:failed', '4:pending'])
  await one.call('bob', 'GET', `/api/catch/${next}`)
  await post('bob', `/api/done/${next}`, { output: {} })
  t.strictSame([await begins(next), await begins(blocked)], ['4:done', '4:pending'], 'released')
  await post('alice', `/api/cancel/${blocked}`, {})
  t.equal(await begins(blocked), '4:cancelled')
})

t.test('a replica without the key moves nothing, and loses nothing', async t => {
  const { full, none, other } = await replicas(t, { full: june, none: null, other: key('june', 9) })
  for (const one of [none, other]) {
    const carol = await personWith(one, secrets.approver)
    const id = await full.pass({ to: 'locked', max_attempts: 2, retry_delay: 0, require_human: true, result_schema: { type: 'object' } })
    const record = async () => await full.redis.hget(keyOf(full, id), 's')
    const lockedAnswer = async (...of: Parameters<TestApp['call']>) => {
      const before = await record()
      const answer = await one.call(...of)
      isProblem(t, answer, 503, 'payload_locked')
      t.equal(answer.headers['retry-after'], '5')
      t.equal(answer.json().retryable, true)
      t.equal(await record(), before)
    }
    t.match((await one.call('approver', 'GET', '/api/approvals')).json(), { items: [{ handoff_id: id, task: null, locked: true }] })
    await lockedAnswer('approver', 'GET', `/api/approvals/${id}`)
    for (const query of ['', '?text=x']) t.equal((await carol(`/approvals${query}`)).statusCode, 200)
    t.match((await carol('/approvals')).body, /It can’t be decrypted here/)
    const { digest } = (await full.call('approver', 'GET', `/api/approvals/${id}`)).json()
    await lockedAnswer('approver', 'POST', `/api/approve/${id}`, { digest })
    isProblem(t, await one.call('bob', 'GET', `/api/catch/${id}`), 409, 'approval_required', 'refusals by state come first')
    t.equal((await one.call('approver', 'POST', `/api/approve/${id}`)).statusCode, 200, 'without a digest it can be decided')
    await lockedAnswer('bob', 'GET', `/api/catch/${id}`)
    t.strictSame((await one.call('bob', 'POST', '/api/catch', { inbox: 'locked' })).json(), { items: [] }, 'its inbox is as empty')
    t.match((await full.call('bob', 'POST', '/api/catch', { inbox: 'locked' })).json(), { items: [{ handoff_id: id }] })
    await lockedAnswer('bob', 'POST', '/api/pass', { task: 'below', parent: id })
    await lockedAnswer('bob', 'POST', `/api/done/${id}`, { output: {} })
    t.equal((await full.call('bob', 'POST', `/api/ask/${id}`, { question: 'q', schema: { type: 'object' } })).statusCode, 201)
    const { items: [asked] } = (await one.call('approver', 'GET', '/api/asks')).json()
    t.match(asked, { question: null, locked: true })
    await lockedAnswer('approver', 'GET', `/api/ask/${id}`)
    t.match((await carol('/approvals?tab=questions')).body, /It can’t be decrypted here/)
    await lockedAnswer('approver', 'POST', `/api/answer/${id}`, { ask_id: asked.ask_id, answer: {} })
    const failed = await one.call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm' } })
    t.match(failed.json(), { reissued_as: /./ }, 'what needs no text goes on')
    const next = failed.json().reissued_as
    t.match((await one.call('alice', 'GET', `/api/status/${next}`)).json(), { status: 'pending' })
    t.match((await full.call('bob', 'POST', '/api/catch?wait=5', { inbox: 'locked' })).json(), { items: [{ handoff_id: next, task: 't' }] })
    t.equal((await full.call('bob', 'POST', `/api/done/${next}`, { output: { n: 1 } })).statusCode, 200)
    t.match((await one.call('alice', 'GET', `/api/status/${next}`)).json(), { status: 'done', result: null, locked: true })
    const after = await full.pass({ after: [next] })
    t.match((await full.call('bob', 'GET', `/api/catch/${after}`)).json(), { after: [{ handoff_id: next, result: { n: 1 } }] })
  }
})

t.test('what was changed in Redis, or copied there, does not open, and nothing else falls', async t => {
  const { one } = await replicas(t, { one: june })
  const [mine, others, whole] = [await one.pass({ task: 'mine', output: { a: 1 } }), await one.pass({ task: 'others', output: { a: 2 } }), await one.pass({ task: 'whole' })]
  const payload = await one.redis.hgetBuffer(keyOf(one, others), 'p')
  await one.redis.hset(keyOf(one, mine), 'p', payload!)
  isProblem(t, await one.call('bob', 'GET', `/api/catch/${mine}`), 500, 'internal_error')
  const flipped = Buffer.from(payload!)
  flipped[flipped.length - 20]! ^= 1
  await one.redis.hset(keyOf(one, others), 'p', flipped)
  isProblem(t, await one.call('bob', 'GET', `/api/catch/${others}`), 500, 'internal_error')
  t.match(one.lines.filter(line => line.includes('internal error')), [/the payload key june does not open a payload of/, /./], 'the log names it')
  t.match((await one.call('bob', 'GET', `/api/catch/${whole}`)).json(), { task: 'whole' })
  const [first, second] = [await one.caught(), await one.caught()]
  await one.call('bob', 'POST', `/api/done/${first}`, { output: { r: 1 } })
  await one.call('bob', 'POST', `/api/done/${second}`, { output: { r: 2 } })
  await one.redis.hset(keyOf(one, first), 'p', (await one.redis.hgetBuffer(keyOf(one, second), 'p'))!)
  isProblem(t, await one.call('alice', 'GET', `/api/status/${first}`), 500, 'internal_error')
  const asProgress = await one.caught()
  await one.call('bob', 'POST', `/api/heartbeat/${asProgress}`, { progress: { message: 'm' } })
  const progress = (await one.redis.hget(keyOf(one, asProgress), 'g'))!.split(' ')[1]!
  await one.redis.hset(keyOf(one, asProgress), 'c', progress)
  isProblem(t, await one.call('alice', 'GET', `/api/status/${asProgress}`), 500, 'internal_error', 'not as another member either')
})

t.test('a text in plain does not stand for a sealed one, nor one whose first byte was changed', async t => {
  const { one } = await replicas(t, { one: june })
  const forged = async (field: string, text: string | ((sealed: Buffer) => Buffer), more: object = {}) => {
    const id = await one.pass({ task: 'mine', ...more })
    const sealed = (await one.redis.hgetBuffer(keyOf(one, id), field))!
    await one.redis.hset(keyOf(one, id), field, typeof text === 'string' ? text : text(sealed))
    isProblem(t, await one.call('bob', 'GET', `/api/catch/${id}`), 500, 'internal_error')
  }
  await forged('p', '"task":"another","output":{},"context":{},"constraints":null')
  await forged('r', '{}', { result_schema: { type: 'object' } })
  for (const bit of [2, 4, 16, 64]) await forged('p', sealed => Buffer.concat([Buffer.from([sealed[0]! ^ bit]), sealed.subarray(1)]))
  const id = await one.caught()
  await one.call('bob', 'POST', `/api/done/${id}`, { output: { r: 1 } })
  const result = (await one.redis.hgetBuffer(keyOf(one, id), 'p'))!
  await one.redis.hset(keyOf(one, id), 'p', Buffer.concat([Buffer.from([result[0]! ^ 4]), result.subarray(1)]))
  isProblem(t, await one.call('alice', 'GET', `/api/status/${id}`), 500, 'internal_error')
})

t.test('equal payloads show as equal within one line of work alone', async t => {
  const { one } = await replicas(t, { one: june })
  const same = { task: 'the same', to: 'line' }
  const pass = async (more: object) => (await one.call('bob', 'POST', '/api/pass', { ...same, ...more }))
  const rootOf = async () => {
    const id = (await pass({})).json().handoff_id as string
    await one.call('bob', 'GET', `/api/catch/${id}`)
    return id
  }
  const marks: string[] = []
  for (let n = 0; n < 2; n++) {
    const root = await rootOf()
    const child = (await pass({ parent: root })).json().handoff_id as string
    await one.call('bob', 'GET', `/api/catch/${child}`)
    marks.push(/ c(\S+)/.exec((await one.redis.hget(keyOf(one, child), 'x'))!)![1]!)
    isProblem(t, await pass({ parent: child }), 409, 'loop_detected')
  }
  t.match(marks, [/^(~.{30})\1$/, /^(~.{30})\1$/])
  t.not(marks[0], marks[1])
})

t.test('a note of a person may have any text, with keys or without', async t => {
  const { none, one } = await replicas(t, { none: null, one: june })
  for (const note of ['ok, ~5000 EUR', 'see ~/notes.md', 'about ~ 10 000 EUR', 'https://x.example/~johnsmith/a']) {
    for (const service of [none, one]) {
      const id = await none.pass({ require_human: true })
      t.equal((await none.call('approver', 'POST', `/api/approve/${id}`, { note })).statusCode, 200)
      t.match((await service.call('bob', 'GET', `/api/catch/${id}`)).json(), { approval: { note } })
    }
  }
})

t.test('a next attempt that waits for a person can be approved by its digest, and keeps its texts', async t => {
  const { one, other } = await replicas(t, { one: june, other: `${july},${june}` })
  const first = await one.pass({ to: 'again', require_human: true, expires_in: 1 })
  const { handoff_id: second } = (await until(async () => {
    const answer = await one.call('alice', 'POST', `/api/reissue/${first}`)
    return answer.statusCode === 201 && answer.json()
  }, 5000))
  for (const service of [one, other]) {
    const { digest } = (await service.call('approver', 'GET', `/api/approvals/${second}`)).json()
    t.match(digest, /^sha-256=:/)
    isProblem(t, await service.call('approver', 'POST', `/api/approve/${second}`, { digest: `sha-256=:${'A'.repeat(43)}=:` }), 409, 'content_changed')
  }
  const { digest } = (await one.call('approver', 'GET', `/api/approvals/${second}`)).json()
  t.equal((await other.call('approver', 'POST', `/api/approve/${second}`, { digest, note: 'yes' })).statusCode, 200)
  t.match((await other.call('bob', 'GET', `/api/catch/${second}`)).json(), { task: 't', approval: { note: 'yes', digest } })
})

t.test('a question that is asked again after a rotation is not asked anew', async t => {
  const { before, after } = await replicas(t, { before: `${june},${july}`, after: `${july},${june}` })
  const id = await before.caught()
  const ask = (service: TestApp) => service.call('bob', 'POST', `/api/ask/${id}`, { question: 'q' }, { 'idempotency-key': 'k' })
  const asked = await ask(before)
  t.equal((await before.call('approver', 'POST', `/api/answer/${id}`, { ask_id: asked.json().ask_id, answer: {} })).statusCode, 200)
  t.equal((await ask(after)).body, asked.body)
  t.match((await after.call('bob', 'GET', `/api/ask/${id}`)).json(), { state: 'answered', answer: {} })
})

t.test('a broken text falls alone, also in a list', async t => {
  const { one } = await replicas(t, { one: june })
  const [broken, whole] = [await one.pass({ require_human: true }), await one.pass({ require_human: true })]
  const beginning = (await one.redis.hget(keyOf(one, broken), 't'))!
  await one.redis.hset(keyOf(one, broken), 't', beginning.slice(0, -3) + (beginning.endsWith('AAA') ? 'BBB' : 'AAA'))
  const { items } = (await one.call('approver', 'GET', '/api/approvals')).json()
  t.match(items, [{ handoff_id: broken, task: null, locked: true }, { handoff_id: whole, task: 't' }])

  const broke = async (id: string, field: string) => {
    const text = (await one.redis.hgetBuffer(keyOf(one, id), field))!
    text[text.length - 1]! ^= 1
    await one.redis.hset(keyOf(one, id), field, text)
  }
  const [first, second, third] = [await one.pass({ to: 'in' }), await one.pass({ to: 'in' }), await one.pass({ to: 'in' })]
  await broke(second, 'p')
  const taken = (await one.call('bob', 'POST', '/api/catch', { inbox: 'in', max: 3 }, { 'idempotency-key': 'k' }))
  t.match(taken.json(), { items: [{ handoff_id: first }, { handoff_id: third }] })
  t.equal(taken.json().items.length, 2)
  t.equal((await one.call('bob', 'POST', '/api/catch', { inbox: 'in', max: 3 }, { 'idempotency-key': 'k' })).body, taken.body)
  const [last] = [await one.pass({ to: 'last' })]
  await broke(last, 'p')
  isProblem(t, await one.call('bob', 'POST', '/api/catch', { inbox: 'last' }), 500, 'internal_error', 'alone it is an error')

  for (const id of [first, third]) await one.call('bob', 'POST', `/api/done/${id}`, { output: { id } })
  await broke(first, 'p')
  t.match((await one.call('alice', 'POST', '/api/wait', { ids: [first, third] })).json(), { items: [{ handoff_id: first, result: null, locked: true }, { handoff_id: third, result: { id: third } }] })
  isProblem(t, await one.call('alice', 'GET', `/api/status/${first}`), 500, 'internal_error')
  const later = await one.pass({ after: [first, third] })
  t.match((await one.call('bob', 'GET', `/api/catch/${later}`)).json(), { after: [{ handoff_id: first, result_omitted: true }, { handoff_id: third, result: { id: third } }] })

  const carol = await personWith(one, secrets.approver)
  const titled = await one.pass({ to: 'titles' })
  await broke(titled, 'n')
  for (const path of ['/console', '/console/inboxes/titles', `/console/handoffs/${later}`]) t.equal((await carol(path)).statusCode, 200, path)
})

t.test('a locked or broken task of A2A falls alone in a list, and a note that is locked says that it is waited for', async t => {
  const { one, other } = await replicas(t, { one: june, other: july })
  await one.call('operator', 'PUT', '/api/inboxes/desk', { card: { description: 'd', skills: [{ id: 'a', name: 'a', description: 'a', tags: ['a'] }] } })
  const rpc = async (app: TestApp, method: string, params: object) =>
    (await app.call('alice', 'POST', '/a2a/default/desk', { jsonrpc: '2.0', id: 1, method, params }, asked)).json()
  const tasks: string[] = []
  for (const app of [one, other]) {
    const { result } = await rpc(app, 'SendMessage', { message: { messageId: `m${tasks.length}`, role: 'ROLE_USER', parts: [{ text: 'hello' }] }, configuration: { returnImmediately: true } })
    tasks.push(result.task.id)
  }
  for (const id of tasks) {
    await one.call('bob', 'GET', `/api/catch/${id}`)
    await other.call('bob', 'GET', `/api/catch/${id}`)
  }
  for (const [app, id] of [[one, tasks[0]], [other, tasks[1]]] as const) await app.call('bob', 'POST', `/api/done/${id}`, { output: { text: 'ready' } })
  const listed = async () => (await rpc(other, 'ListTasks', { includeArtifacts: true })).result.tasks
  t.match(await listed(), [{ id: tasks[1], artifacts: [{}], metadata: { handoff: { locked: undefined } } }, { id: tasks[0], artifacts: undefined, metadata: { handoff: { locked: true } } }])
  const result = (await one.redis.hgetBuffer(keyOf(one, tasks[1]!), 'p'))!
  result[result.length - 1]! ^= 1
  await one.redis.hset(keyOf(one, tasks[1]!), 'p', result)
  t.match(await listed(), [{ id: tasks[1], metadata: { handoff: { locked: true } } }, { id: tasks[0] }])
  const { error } = await rpc(other, 'GetTask', { id: tasks[0] })
  t.ok(error, 'alone it is an error')
  const { result: { task } } = await rpc(one, 'SendMessage', { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hello' }] }, configuration: { returnImmediately: true } })
  await one.call('bob', 'GET', `/api/catch/${task.id}`)
  t.match(await rpc(other, 'CancelTask', { id: task.id }), { result: { status: { state: 'TASK_STATE_WORKING' }, metadata: { handoff: { cancelRequestedAt: String, locked: true } } } }, 'its catcher was asked')

  const { none, noting } = await replicas(t, { none: null, noting: june })
  const id = await none.pass({ require_human: true })
  await noting.call('approver', 'POST', `/api/approve/${id}`, { note: 'said' })
  isProblem(t, await none.call('bob', 'GET', `/api/catch/${id}`), 503, 'payload_locked')
  t.match((await none.call('alice', 'GET', `/api/status/${id}?explain=true`)).json().waits_for, [{ reason: 'locked' }])
})

t.test('a question and an answer’s note are the same with keys as without, and as much is caught at once', async t => {
  const { none, one } = await replicas(t, { none: null, one: june })
  const texts: string[] = []
  for (const app of [none, one]) {
    const id = await app.caught()
    const { ask_id: askId } = (await app.call('bob', 'POST', `/api/ask/${id}`, { question: 'qä😀', details: { d: 'ä😀' } })).json()
    await app.call('approver', 'POST', `/api/answer/${id}`, { ask_id: askId, answer: { a: 'ä😀' }, note: 'nä😀' })
    texts.push((await app.call('bob', 'GET', `/api/ask/${id}`)).body.replaceAll(id, 'ID').replaceAll(askId, 'ASK').replace(/"\d{4}-[^"]+"/g, 'TIME'))
  }
  t.match(texts[0], /"question":".*"note":"/)
  t.equal(texts[1], texts[0])
  const small = await none.pass({ output: { x: '' } })
  const size = Math.floor(4 * 1024 * 1024 / 4) - 700 - await none.redis.hstrlen(keyOf(none, small), 'p')
  for (const [inbox, app] of [['none', none], ['one', one]] as const) {
    for (let n = 0; n < 4; n++) await app.pass({ to: inbox, output: { x: 'x'.repeat(size) } })
    t.equal((await app.call('bob', 'POST', '/api/catch', { inbox, max: 4 })).json().items.length, 4, inbox)
  }
})

t.test('a secret may begin as a sealed one does', async t => {
  for (const keys of [new PayloadKeys(), new PayloadKeys(parsePayloadKeys(june))]) {
    const seal = new Seal(keys, { tenant: 'default', id: 'id' })
    for (const secret of ['~', '~~', '~~~x', `~${'a'.repeat(60)}`, 'plain', '"']) t.equal(seal.openSecret('target', seal.secret('target', secret)), secret)
  }
})

t.test('an operation is asked for once, also again, with however many keys and whichever of them writes', async t => {
  const { one, two } = await replicas(t, { one: `${june},${july}`, two: `${july},${june}` })
  type Script = 'pass' | 'catch' | 'ask' | 'answer' | 'done' | 'give-up' | 'decide'
  const onceAt = async (app: TestApp, script: Script, ...call: Parameters<TestApp['call']>) => {
    const before = callsOf(app.store, script)
    const answer = await app.call(...call)
    t.ok(answer.statusCode < 300, answer.body)
    t.equal(callsOf(app.store, script) - before, 1, script)
    return answer
  }
  const twice = async (script: Script, ...call: Parameters<TestApp['call']>) => {
    const first = await onceAt(one, script, ...call)
    t.equal((await onceAt(two, script, ...call)).body, first.body)
    return first.json()
  }
  const keyed = { 'idempotency-key': 'k' }
  const { handoff_id: id } = await twice('pass', 'alice', 'POST', '/api/pass', { task: 't', require_human: true }, keyed)
  const { digest } = (await one.call('approver', 'GET', `/api/approvals/${id}`)).json()
  await onceAt(two, 'decide', 'approver', 'POST', `/api/approve/${id}`, { digest, note: 'yes' })
  await twice('catch', 'bob', 'GET', `/api/catch/${id}`, undefined, keyed)
  const { ask_id: askId } = await twice('ask', 'bob', 'POST', `/api/ask/${id}`, { question: 'q' }, keyed)
  await twice('answer', 'approver', 'POST', `/api/answer/${id}`, { ask_id: askId, answer: {} })
  await twice('done', 'bob', 'POST', `/api/done/${id}`, { output: {} }, keyed)
  t.match((await one.redis.hget(keyOf(one, id), 's'))!.split(' '), { 5: /^~.{30}$/, 11: /^~.{30}$/ }, 'a guess of key and body can’t be tried')
  const failed = await one.caught()
  await twice('give-up', 'bob', 'POST', `/api/fail/${failed}`, { error: { message: 'm' } }, keyed)
})
