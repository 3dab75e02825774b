import { createHash, generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { calculateJwkThumbprint, compactVerify, createLocalJWKSet, decodeProtectedHeader } from 'jose'
import type { JSONWebKeySet } from 'jose'
import t from 'tap'
import { callerOf } from '../../src/core/model.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { form, own, shown, signedIn, textOf } from '../helpers/forms.ts'
import { keepSecret } from '../helpers/log-sink.ts'
import { isProblem } from '../helpers/problems.ts'
import { scratchDir } from '../helpers/processes.ts'
import { callsOf } from '../helpers/redis.ts'

/** People's decisions are signed where SIGNING_KEY is set. Another library checks the signatures. */

const keyPair = () => generateKeyPairSync('ed25519', { privateKeyEncoding: { type: 'pkcs8', format: 'pem' }, publicKeyEncoding: { type: 'spki', format: 'pem' } })
const [first, second] = [keyPair(), keyPair()]
keepSecret(...[first, second].map(({ privateKey }) => privateKey.split('\n')[1]!))
const BASE_URL = 'https://handoff.example.com/base'
const signing = { SIGNING_KEY: first.privateKey, BASE_URL }
const service = await testApp(t, signing)
const { call } = service

const start = Date.now() - 3600_000
t.beforeEach(() => service.setClock(start))
const iso = (later = 0) => new Date(start + later).toISOString()
const jwksOf = async ({ app }: Pick<TestApp, 'app'>) => (await app.inject('/.well-known/jwks.json')).json<JSONWebKeySet>()
const claimsOf = async (signature: string, jwks: JSONWebKeySet) => {
  const { payload, protectedHeader } = await compactVerify(signature, createLocalJWKSet(jwks))
  return { text: Buffer.from(payload).toString(), header: protectedHeader }
}

t.test('the signature says who decided what, and every answer with the decision has it', async t => {
  const id = await service.pass({ task: 'hälf', output: { n: 1 }, require_human: true, to: 'box' })
  await service.setClock(start + 1500)
  const note = '"a\\u0041 \\ud800 ä \\"q\\""'
  const decided = (await call('approver', 'POST', `/api/approve/${id}`, `{"note": ${note}}`)).body
  const inspected = (await call('approver', 'GET', `/api/approvals/${id}`)).json()
  const [, approval] = /"approval":(.*)}$/.exec(decided)!
  const { signature } = JSON.parse(approval!)
  t.equal(approval, `{"state":"approved","decided_at":"${iso(1500)}","decided_by":"carol","note":${note},"digest":"${inspected.digest}","signature":"${signature}"}`)
  const { text, header } = await claimsOf(signature, await jwksOf(service))
  t.equal(text, `{"iss":"${BASE_URL}","handoff_id":"${id}","tenant":"default","to":"box","passed_by":"alice","created_at":"${iso()}","digest":"${inspected.digest}","confirmed":false,` +
    `"state":"approved","decided_at":"${iso(1500)}","decided_by":"carol","decided_by_subject":null,"note":${note}}`)
  const { keys: [key] } = await jwksOf(service)
  t.strictSame(header, { alg: 'EdDSA', typ: 'handoff-approval+jws', kid: await calculateJwkThumbprint(key!) })
  t.ok((await call('alice', 'GET', `/api/status/${id}`)).body.includes(`"approval":${approval}`), 'status')
  t.ok((await call('alice', 'POST', '/api/wait', { ids: [id] })).body.includes(`"approval":${approval}`), 'wait')
  t.ok((await call('alice', 'GET', '/api/handoffs')).body.includes(`"approval":${approval}`), 'list')
  t.strictSame(inspected.approval, JSON.parse(approval!), 'GET /api/approvals/:id')
  t.equal((await call('approver', 'GET', '/api/decisions')).json().items[0].signature, signature, 'decisions')
  const again = isProblem(t, await call('approver', 'POST', `/api/approve/${id}`), 409, 'already_decided')
  t.strictSame(again.approval, JSON.parse(approval!), 'a second decision is told the one that stands')
  const { body } = await call('bob', 'POST', '/api/catch', { inbox: 'box' })
  t.ok(body.includes(`"approval":${approval}`), 'taking from an inbox')
  const content = body.slice(body.indexOf('"task"'), body.indexOf(',"created_at"'))
  t.equal(inspected.digest, `sha-256=:${createHash('sha256').update(`{${content}}`).digest('base64')}:`)
})

t.test('a rejection is signed too, and whether the digest was sent', async t => {
  const id = await service.pass({ require_human: true })
  const { digest } = (await call('approver', 'GET', `/api/approvals/${id}`)).json()
  const { approval } = (await call('approver', 'POST', `/api/reject/${id}`, { note: 'no', digest })).json()
  const claims = JSON.parse((await claimsOf(approval.signature, await jwksOf(service))).text)
  t.match(claims, { handoff_id: id, to: null, confirmed: true, state: 'rejected', note: 'no', decided_at: approval.decided_at, digest })
})

t.test('a key that may not read notes sees no signature, which has the note', async t => {
  const caller = { ...callerOf('default', 'held', ['status']), inboxes: new Set(['other']) }
  const held = await testApp(t, signing, { prefix: service.prefix }, [{ caller, secret: 'held-secret-0123456789' }])
  const id = await service.pass({ require_human: true, to: 'box' })
  await call('approver', 'POST', `/api/approve/${id}`, { note: 'secret' })
  const { approval } = (await held.app.inject({ url: `/api/status/${id}`, headers: { authorization: 'Bearer held-secret-0123456789' } })).json()
  t.match(approval, { state: 'approved', note: null })
  t.notOk('signature' in approval)
})

t.test('the next attempt has the first one’s signature', async t => {
  const id = await service.pass({ require_human: true, max_attempts: 3, retry_delay: 0 })
  const { approval } = (await call('approver', 'POST', `/api/approve/${id}`)).json()
  await call('bob', 'GET', `/api/catch/${id}`)
  const { reissued_as: next } = (await call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'x' } })).json()
  t.strictSame((await call('bob', 'GET', `/api/catch/${next}`)).json().approval, approval)
  const third = (await call('alice', 'POST', `/api/reissue/${next}`)).json().handoff_id
  const inspected = (await call('approver', 'GET', `/api/approvals/${third}`)).json()
  t.match(inspected, { approval, attempt: 3, reissue_of: next })
  const claims = JSON.parse((await claimsOf(approval.signature, await jwksOf(service))).text)
  t.equal(claims.handoff_id, id)
})

t.test('two replicas that decide at once give one signature', async t => {
  const other = await testApp(t, { ...signing, SIGNING_KEY: second.privateKey, SIGNING_KEYS_OLD: first.publicKey }, { prefix: service.prefix })
  for (let round = 0; round < 10; round++) {
    const id = await service.pass({ require_human: true })
    const answers = await Promise.all([call('approver', 'POST', `/api/approve/${id}`), other.call('approver2', 'POST', `/api/reject/${id}`, { note: 'no' })])
    t.strictSame(answers.map(({ statusCode }) => statusCode).sort(), [200, 409])
    const [one, two] = answers.map(answer => answer.json().approval)
    t.ok(one.signature)
    t.strictSame(one, two, 'the one that lost is told the decision that stands')
    t.match(JSON.parse((await claimsOf(one.signature, await jwksOf(other))).text), { state: one.state, decided_by: one.decided_by })
  }
})

t.test('where the clock jumps in between, it is signed anew, and given up after three times', async t => {
  const { approvals } = service.store
  const read = approvals.inspect.bind(approvals)
  t.teardown(() => { approvals.inspect = read })
  for (const jump of [2001, -1]) {
    for (const jumps of [2, 3]) {
      let reads = 0
      let now = start
      await service.setClock(start)
      const id = await service.pass({ require_human: true })
      approvals.inspect = async (place, maxBytes) => {
        const found = await read(place, maxBytes)
        if (reads++ < jumps) await service.setClock(now += jump)
        return found
      }
      const answer = await call('approver', 'POST', `/api/approve/${id}`)
      t.equal(reads, 3)
      if (jumps === 3) {
        isProblem(t, answer, 503, 'unavailable')
        t.equal((await call('alice', 'GET', `/api/status/${id}`)).json().approval.state, 'waiting')
        continue
      }
      const { approval } = answer.json()
      t.equal(approval.decided_at, new Date(now).toISOString())
      t.equal(JSON.parse((await claimsOf(approval.signature, await jwksOf(service))).text).decided_at, approval.decided_at)
    }
  }
})

t.test('a refusal is what it is without a key', async t => {
  const plain = await service.pass()
  isProblem(t, await call('approver', 'POST', `/api/approve/${plain}`), 409, 'no_approval_required')
  isProblem(t, await call('approver', 'POST', `/api/approve/${plain.slice(0, 3)}${'A'.repeat(22)}`), 404, 'not_found')
  const id = await service.pass({ require_human: true })
  isProblem(t, await call('approverAlice', 'POST', `/api/approve/${id}`), 403, 'self_approval')
  const digest = `sha-256=:${createHash('sha256').update('other').digest('base64')}:`
  isProblem(t, await call('approver', 'POST', `/api/approve/${id}`, { digest }), 409, 'content_changed')
  t.equal((await call('alice', 'GET', `/api/status/${id}`)).json().approval.state, 'waiting')
})

t.test('forgetting a decision’s texts forgets its signature, which has the note', async t => {
  const id = await service.pass({ require_human: true })
  await call('approver', 'POST', `/api/approve/${id}`, { note: 'to be forgotten' })
  const place = { tenant: 'default', id, tag: id.slice(0, 3) }
  t.strictSame(await service.store.decisions.forget(place), { decisions: 1, texts: 1 })
  const { items } = (await call('approver', 'GET', '/api/decisions')).json()
  const item = items.find(({ handoff_id: its }: { handoff_id: string }) => its === id)
  t.match(item, { state: 'approved', note: null, task: null })
  t.notOk('signature' in item)
  t.strictSame(await service.store.decisions.forget(place), { decisions: 1, texts: 0 })
})

t.test('a decision on the page is signed and confirmed, and the page says so', async t => {
  const cookie = await signedIn(service)
  const id = await service.pass({ require_human: true, task: 'on the page' })
  const { created_at: createdAt, digest } = await shown(service, id, cookie)
  const pressed = await service.app.inject(form(`/approvals/${id}/approve`, { note: 'ok', created_at: createdAt, digest }, { ...own, cookie }))
  t.equal(pressed.statusCode, 303)
  const { approval } = (await call('alice', 'GET', `/api/status/${id}`)).json()
  t.match(JSON.parse((await claimsOf(approval.signature, await jwksOf(service))).text), { handoff_id: id, confirmed: true, state: 'approved', note: 'ok', digest: approval.digest })
  t.match(textOf((await service.app.inject({ url: `/approvals/${id}`, headers: { cookie } })).body), 'A decision is final, and this one is signed.')
})

t.test('as a file decisions have a column for it', async t => {
  const lines = (await call('approver', 'GET', '/api/decisions?format=csv')).body.split('\r\n')
  t.equal(lines[0], 'handoff_id,state,decided_at,decided_by,note,digest,to,labels,passed_by,task,ask_id,question,signature')
  t.ok(lines.some(line => /,eyJ[\w-]+\.[\w-]+\.[\w-]+$/.test(line)))
})

t.test('the keys are public, the present one first, and cacheable', async t => {
  const file = join(await scratchDir(t), 'old.pem')
  writeFileSync(file, `${first.publicKey}\n${second.publicKey}`)
  const rotated = await testApp(t, { SIGNING_KEY: second.privateKey.replaceAll('\n', '\\n'), SIGNING_KEYS_OLD: `@${file}` }, { prefix: service.prefix })
  const answer = await rotated.app.inject('/.well-known/jwks.json')
  t.match(answer.headers, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'public, max-age=300', 'access-control-allow-origin': '*' })
  const { keys } = answer.json()
  t.strictSame(keys.map(Object.keys), Array(2).fill(['kty', 'crv', 'x', 'kid', 'alg', 'use']))
  t.match(keys, [{ kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig' }, (await jwksOf(service)).keys[0]!], 'each once')
  t.equal((await rotated.app.inject({ url: '/.well-known/jwks.json', headers: { 'if-none-match': String(answer.headers.etag) } })).statusCode, 304)
  const id = await service.pass({ require_human: true })
  const { approval } = (await call('approver', 'POST', `/api/approve/${id}`)).json()
  t.equal(decodeProtectedHeader(approval.signature).kid, keys[1].kid)
  await claimsOf(approval.signature, { keys })
})

t.test('where texts are sealed the signature is too, and its answers are as ever', async t => {
  const PAYLOAD_KEYS = `one:${Buffer.alloc(32, 1).toString('base64')}`
  const sealing = await testApp(t, { ...signing, PAYLOAD_KEYS })
  const id = await sealing.pass({ require_human: true, to: 'box', max_attempts: 2, retry_delay: 0 })
  const { digest } = (await sealing.call('approver', 'GET', `/api/approvals/${id}`)).json()
  const { approval } = (await sealing.call('approver', 'POST', `/api/approve/${id}`, { note: 'ok', digest })).json()
  t.match(JSON.parse((await claimsOf(approval.signature, await jwksOf(sealing))).text), { handoff_id: id, digest, confirmed: true, note: 'ok' })
  t.strictSame((await sealing.call('alice', 'GET', `/api/status/${id}`)).json().approval, approval)
  t.equal((await sealing.call('approver', 'GET', '/api/decisions')).json().items[0].signature, approval.signature)
  t.notMatch(JSON.stringify(await sealing.dump()), approval.signature.split('.')[1], 'the note isn’t readable in Redis')
  await sealing.call('bob', 'GET', `/api/catch/${id}`)
  const { reissued_as: next } = (await sealing.call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'x' } })).json()
  t.strictSame((await sealing.call('bob', 'GET', `/api/catch/${next}`)).json().approval, approval)

  const locked = await testApp(t, { ...signing, PAYLOAD_KEYS: `two:${Buffer.alloc(32, 2).toString('base64')}` }, { prefix: sealing.prefix })
  isProblem(t, await locked.call('approver', 'POST', `/api/approve/${id}`), 409, 'already_decided')
  const waiting = await sealing.pass({ require_human: true })
  isProblem(t, await locked.call('approver', 'POST', `/api/approve/${waiting}`), 503, 'payload_locked')
  t.equal((await sealing.call('alice', 'GET', `/api/status/${waiting}`)).json().approval.state, 'waiting', 'nothing is approved without a signature')
  const sent = (await sealing.call('approver', 'GET', `/api/approvals/${waiting}`)).json().digest
  isProblem(t, await locked.call('approver', 'POST', `/api/reject/${waiting}`, { note: 'no', digest: sent }), 503, 'payload_locked')
  const rejected = await locked.call('approver', 'POST', `/api/reject/${waiting}`, { note: 'no' })
  t.match(rejected.json(), { status: 'rejected', approval: { state: 'rejected', note: 'no' } }, 'rejecting without a digest needs no key')
  t.notOk('signature' in rejected.json().approval)
})

t.test('what somebody wrote into Redis that no person saw is neither shown nor signed', async t => {
  const cookie = await signedIn(service)
  const [id, other] = [await service.pass({ require_human: true, task: 'pay Ann' }), await service.pass({ require_human: true, task: 'pay Eve' })]
  const [key] = await service.redis.keys(`${service.prefix}*${id}`)
  const ofOther = await service.redis.hmget(key!.replace(id, other), 'h', 'p')
  const digest = `sha-256=:${ofOther[0]}:`
  const state = async () => (await call('alice', 'GET', `/api/status/${id}`)).json().approval.state
  const itsOwn = await service.redis.hget(key!, 'h')
  await service.redis.hset(key!, 'h', ofOther[0]!)
  isProblem(t, await call('approver', 'GET', `/api/approvals/${id}`), 500, 'internal_error')
  t.equal((await service.app.inject({ url: `/approvals/${id}`, headers: { cookie } })).statusCode, 500)
  for (const [verdict, body] of [['approve', {}], ['approve', { digest }], ['reject', { note: 'no', digest }]] as const) {
    isProblem(t, await call('approver', 'POST', `/api/${verdict}/${id}`, body), 500, 'internal_error')
    t.equal(await state(), 'waiting')
  }
  isProblem(t, await call('approver', 'POST', `/api/approve/${id}`, { digest: `sha-256=:${itsOwn}:` }), 409, 'content_changed')
  isProblem(t, await call('approverAlice', 'POST', `/api/approve/${id}`), 403, 'self_approval', 'other refusals are told first')
  await service.redis.hdel(key!, 'h')
  isProblem(t, await call('approver', 'POST', `/api/approve/${id}`), 500, 'internal_error', 'nothing is signed without a digest')
  const { approval } = (await call('approver', 'POST', `/api/reject/${id}`, { note: 'no' })).json()
  t.match(approval, { state: 'rejected', note: 'no' })
  t.notOk('signature' in approval, 'rejecting needs no content')
})

t.test('a payload of a megabyte is signed as any', async t => {
  const id = await service.pass({ require_human: true, task: 'x'.repeat(900_000) })
  const { approval } = (await call('approver', 'POST', `/api/approve/${id}`)).json()
  t.equal(approval.digest, (await call('approver', 'GET', `/api/approvals/${id}`)).json().digest)
  t.match(JSON.parse((await claimsOf(approval.signature, await jwksOf(service))).text), { handoff_id: id, digest: approval.digest })
})

t.test('without a key nothing is read, and nothing is there', async t => {
  const without = await testApp(t, { BASE_URL })
  isProblem(t, await without.app.inject('/.well-known/jwks.json'), 404, 'not_found')
  await without.setClock(start)
  const id = await without.pass({ require_human: true })
  const { approval } = (await without.call('approver', 'POST', `/api/approve/${id}`)).json()
  t.strictSame(Object.keys(approval), ['state', 'decided_at', 'decided_by', 'note'])
  t.equal(callsOf(without.store, 'inspect'), 0)
  const [item] = (await without.call('approver', 'GET', '/api/decisions')).json().items
  t.notOk('signature' in item)
})
