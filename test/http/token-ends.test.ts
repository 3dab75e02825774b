import type { ServerResponse } from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import { signingKey, testIssuer } from '../helpers/issuer.ts'
import { isProblem } from '../helpers/problems.ts'
import { ofOneReplica } from '../helpers/through.ts'
import { until } from '../helpers/until.ts'
import { asleep } from '../helpers/waits.ts'

/** When tokens end, and what becomes of what was begun with them (docs/identity.md). */

const baseUrl = 'https://handoff.example.com'
const now = () => Math.floor(Date.now() / 1000)
const key = await signingKey('ES256', { kid: 'one' })
const rules = [
  { when: { role: 'lead' }, tenant: 'default', agent: 'lead', scopes: ['approve', 'status'], decides: true },
  { when: {}, anyone: true, tenant: 'default', agent: { claim: 'sub' }, scopes: ['pass', 'catch', 'status'] },
]

async function served (t: Test, env: Record<string, string> = {}) {
  const issuer = await testIssuer(t, [key.jwk])
  const service = await testApp(t, { ISSUERS: JSON.stringify([{ issuer: issuer.url, rules }]), BASE_URL: baseUrl, EVENTS_RETENTION: '60', ...env })
  const token = (sub: string, more: object = {}) => key.sign({ iss: issuer.url, aud: baseUrl, sub, exp: now() + 600, ...more })
  const ask = (token: string, path = '/api/whoami', method: 'GET' | 'POST' = 'GET', body?: object) =>
    service.app.inject({ method, url: path, headers: { authorization: `Bearer ${token}` }, ...body && { body } })
  return { issuer, service, token, ask, blocks: service.store.keyRecords.blocks }
}

/** Why a token is refused. */
function why (t: Test, answer: Awaited<ReturnType<Awaited<ReturnType<typeof served>>['ask']>>): string {
  isProblem(t, answer, 401, 'unauthorized')
  return /error_description="(\w+)"/.exec(String(answer.headers['www-authenticate']))?.[1] ?? ''
}

t.test('a blocked subject is refused at once, and so is what it had open; another one goes on', async t => {
  const { issuer, token, ask, service, blocks } = await served(t)
  const [ann, ben] = [await token('Änn\u{1f600} %'), await token('ben')]
  const { handoff_id: id } = (await ask(ann, '/api/pass', 'POST', { task: 't' })).json()
  const { handoff_id: other } = (await ask(ben, '/api/pass', 'POST', { task: 't' })).json()
  const waits = [ask(ann, `/api/status/${id}?wait=20`), ask(ann, '/api/catch?wait=20', 'POST', { inbox: 'in' })]
  const waiting = ask(ben, `/api/status/${other}?wait=20&until=done`)
  await asleep(service, id)
  await asleep(service, other)
  t.match(await blocks.set(issuer.url, 'Änn\u{1f600} %', 60_000, 'me@here'), { outcome: 'set', before: null })
  for (const answer of await Promise.all(waits)) t.equal(why(t, answer), 'blocked')
  t.equal(why(t, await ask(ann)), 'blocked')
  t.match(await blocks.list(), [{ issuer: issuer.url, subject: 'Änn\u{1f600} %' }])
  t.equal((await ask(ben)).statusCode, 200)
  const { before } = await blocks.set(issuer.url, 'Änn\u{1f600} %', null, 'me@here') as { before: number }
  t.ok(Math.abs(before - Date.now() - 60_000) < 10_000)
  await until(async () => (await ask(ann)).statusCode === 200)
  t.strictSame(await blocks.list(), [])
  await service.call('bob', 'GET', `/api/catch/${other}`)
  await service.call('bob', 'POST', `/api/done/${other}`, { output: {} })
  t.match((await waiting).json(), { status: 'done' })
  t.match(service.lines.map(line => JSON.parse(line) as { msg: string }).filter(({ msg }) => msg.startsWith('token ')), [
    { msg: 'token blocked', issuer: issuer.url, subject: 'Änn\u{1f600} %', by: 'me@here' }, { msg: 'token unblocked', by: 'me@here' }
  ])
})

t.test('a token ends with its time, and with its key', { skip: ofOneReplica }, async t => {
  const { issuer, token, ask } = await served(t)
  const short = await token('ann', { exp: now() - 28 })
  const { handoff_id: id } = (await ask(short, '/api/pass', 'POST', { task: 't' })).json()
  const answer = await ask(short, `/api/status/${id}?wait=20`)
  t.equal(why(t, answer), 'expiry')
  t.equal(why(t, await ask(short)), 'expiry')
  const good = await token('ann')
  t.equal((await ask(good)).statusCode, 200)
  const waiting = ask(good, `/api/status/${id}?wait=20`)
  // A kid that nobody knows has the keys fetched anew, and then the old one has gone.
  const next = await signingKey('ES256', { kid: 'two' })
  issuer.keys = [next.jwk]
  const asked = issuer.asked.length
  t.equal((await ask(await next.sign({ iss: issuer.url, aud: baseUrl, sub: 'ann', exp: now() + 60 }))).statusCode, 200)
  t.equal(issuer.asked.length, asked + 2)
  t.equal(why(t, await waiting), 'signature')
  t.equal(why(t, await ask(good)), 'signature')
  for (let sent = 0; sent < 61; sent++) await ask(good)
  t.equal((await ask(await next.sign({ iss: issuer.url, aud: baseUrl, sub: 'ben', exp: now() + 60 }))).statusCode, 200, 'no wrong key was sent')
  const third = await signingKey('ES256', { kid: 'three' })
  issuer.keys.push(third.jwk)
  t.equal(why(t, await ask(await third.sign({ iss: issuer.url, aud: baseUrl, sub: 'ann', exp: now() + 60 }))), 'signature', 'within 30 s it isn’t asked again')
  t.equal(issuer.asked.length, asked + 2)
})

t.test('an issuer that is away, or answers nonsense, makes 503 of its own tokens alone', { skip: ofOneReplica }, async t => {
  const jwks = { keys: [key.jwk] }
  const good = await testIssuer(t, [key.jwk])
  for (const [what, answer] of Object.entries({
    'an error': response => response.writeHead(500).end(),
    'another issuer': response => response.end(JSON.stringify({ issuer: `${good.url}/x`, jwks_uri: `${good.url}/keys` })),
    'a redirect': response => response.writeHead(302, { location: `${good.url}/.well-known/openid-configuration` }).end(),
    'no JSON': response => response.end('<html>'),
    'too much': (response, _url) => {
      // 50 MB, as far as anybody reads it.
      let sent = 0
      const send = () => {
        while (sent < 50 && !response.destroyed) {
          sent++
          if (!response.write(Buffer.alloc(1_000_000, ' '))) return
        }
        response.end()
      }
      response.on('drain', send).on('close', () => t.ok(sent < 10, `${sent} MB`))
      send()
    },
    'http elsewhere': (response, url) => response.end(JSON.stringify({ issuer: url, jwks_uri: 'http://192.0.2.1/keys' })),
  } as Record<string, (response: ServerResponse, url: string) => void>)) {
    const issuer = await testIssuer(t, [key.jwk])
    issuer.answers['/.well-known/openid-configuration'] = response => answer(response, issuer.url)
    const ISSUERS = JSON.stringify([{ issuer: issuer.url, rules }, { issuer: good.url, jwks, rules }])
    const service = await testApp(t, { ISSUERS, BASE_URL: baseUrl })
    const ask = async (iss: string) => await service.app.inject({ url: '/api/whoami', headers: { authorization: `Bearer ${await key.sign({ iss, aud: baseUrl, sub: 'ann', exp: now() + 60 })}` } })
    t.equal((await ask(good.url)).statusCode, 200, what)
    isProblem(t, await ask(issuer.url), 503, 'unavailable')
  }
  const silent = await testIssuer(t, [key.jwk])
  silent.answers['/.well-known/openid-configuration'] = () => {}
  const held = await testApp(t, { ISSUERS: JSON.stringify([{ issuer: silent.url, rules }, { issuer: good.url, jwks, rules }]), BASE_URL: baseUrl })
  const ended: string[] = []
  const sent = async (name: string, secret: string, code: number) => {
    const { statusCode } = await held.app.inject({ url: '/api/whoami', headers: { authorization: `Bearer ${secret}` } })
    t.equal(statusCode, code, name)
    ended.push(name)
  }
  const of = (iss: string) => key.sign({ iss, aud: baseUrl, sub: 'ann', exp: now() + 60 })
  await Promise.all([sent('of one that hangs', await of(silent.url), 503), sent('of another', await of(good.url), 200), sent('a key', secrets.alice, 200)])
  t.equal(ended.at(-1), 'of one that hangs')
  t.strictSame(good.asked, [], 'whose keys are given isn’t asked')
  const elsewhere = await testIssuer(t, [key.jwk], '/path')
  elsewhere.answers['/path/.well-known/openid-configuration'] = response => response.writeHead(404).end()
  elsewhere.answers['/.well-known/oauth-authorization-server/path'] = response => response.end(JSON.stringify({ issuer: elsewhere.url, jwks_uri: `${elsewhere.url}/keys?v=1` }))
  elsewhere.answers['/path/keys?v=1'] = response => response.end(JSON.stringify(jwks))
  const service = await testApp(t, { ISSUERS: JSON.stringify([{ issuer: elsewhere.url, rules }]), BASE_URL: baseUrl })
  const token = await key.sign({ iss: elsewhere.url, aud: baseUrl, sub: 'ann', exp: now() + 60 })
  t.equal((await service.app.inject({ url: '/api/whoami', headers: { authorization: `Bearer ${token}` } })).statusCode, 200)
})

t.test('who passed with a token can’t decide by another agent’s name, in any attempt', async t => {
  const { token, ask, service } = await served(t)
  const lead = (sub: string) => token(sub, { role: 'lead' })
  const pass = async () => (await ask(await token('ann'), '/api/pass', 'POST', { task: 't', require_human: true, max_attempts: 2, work_within: 1 })).json().handoff_id as string
  const id = await pass()
  isProblem(t, await ask(await lead('ann'), `/api/approve/${id}`, 'POST', {}), 403, 'self_approval')
  t.equal((await ask(await lead('ben'), `/api/approve/${id}`, 'POST', {})).statusCode, 200)
  const second = await pass()
  t.equal((await service.call('approver', 'POST', `/api/reject/${second}`, { note: 'no' })).statusCode, 200, 'a key’s agent may')
  const plain = (await ask(await token('ann'), '/api/pass', 'POST', { task: 't' })).json().handoff_id as string
  t.notMatch(JSON.stringify(await service.dump()).split(plain)[1]!.slice(0, 300), / U/, 'nothing is kept where no person decides')
})
