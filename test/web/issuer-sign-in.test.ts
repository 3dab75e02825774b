import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ServerResponse } from 'node:http'
import type { LightMyRequestResponse } from 'fastify'
import t from 'tap'
import type { Test } from 'tap'
import { loadConfig } from '../../src/config.ts'
import { Unavailable } from '../../src/core/errors.ts'
import { secrets, testApp, testKeys } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { asked, form, own, textOf } from '../helpers/forms.ts'
import { signingKey, testIssuer } from '../helpers/issuer.ts'
import { clientSecret, leadsTo, peopleProvider, personBy } from '../helpers/oidc.ts'
import { scratchDir } from '../helpers/processes.ts'
import { ofOneReplica } from '../helpers/through.ts'

/** People sign in by an issuer (docs/identity.md, "People"). */

const baseUrl = 'http://127.0.0.1:8080'
const dir = await scratchDir(t)
await writeFile(join(dir, 'secret'), `${clientSecret}\n`)
const oidc = await peopleProvider(t, {
  'carol-5': { name: 'Carol <Reyes>', groups: ['leads'] },
  'olga-7': { name: 'Olga', groups: ['operators'] },
  'rob-8': { name: 'Rob', groups: ['readers'] },
  'eve-9': { name: 'Eve <b>', groups: ['guests'] },
})
await oidc.register(baseUrl)
const { host } = new URL(oidc.url)
const rules = [
  { when: { groups: 'leads' }, tenant: 'default', agent: { claim: 'sub' }, scopes: ['approve', 'operate', 'read', 'status'] },
  { when: { groups: 'operators' }, tenant: 'default', agent: 'ops', scopes: ['operate'] },
  { when: { groups: 'readers' }, tenant: 'default', agent: 'reader', scopes: ['read', 'status'] },
]
const signInSettings = { client_id: 'handoff', client_secret: `@${join(dir, 'secret')}`, label: 'Acme <SSO>', rules }
const issuers = (more: object = {}) => JSON.stringify([{ issuer: oidc.url, sign_in: { ...signInSettings, ...more } }])
const service = await testApp(t, { ISSUERS: issuers(), BASE_URL: baseUrl })

/** A person's browser. */
const browser = (app: Pick<TestApp, 'app'> = service) => personBy(app, oidc)

const title = ({ body }: LightMyRequestResponse) => /<h1>(.*?)<\/h1>/.exec(body)?.[1]

t.test('a person whom a rule lets in signs in by the issuer, and goes where the way led', async t => {
  const { ask, signIn, start, jar } = browser()
  const page = await ask('/approvals/sign-in?next=/console/failed')
  t.match(page.body, /Acme &#60;SSO&#62;<\/a>/)
  t.match(page.body, /name="key"/)
  const link = /href="(\/sign-in\/start[^"]+)"/.exec(page.body)![1]!.replaceAll('&#38;', '&').replaceAll('&#61;', '=')
  t.strictSame(Object.fromEntries(new URL(link, baseUrl).searchParams), { issuer: oidc.url, next: '/console/failed' })
  const url = await start()
  t.strictSame([url.searchParams.get('code_challenge_method'), url.searchParams.get('response_type'), url.searchParams.get('scope'), url.searchParams.get('redirect_uri')],
    ['S256', 'code', 'openid profile email', `${baseUrl}/sign-in/callback`])
  for (const name of ['state', 'nonce', 'code_challenge']) t.equal(url.searchParams.get(name)!.length, 43)
  const in_ = await signIn('carol-5', '/console/failed')
  t.equal(in_.statusCode, 200, in_.body)
  t.equal(leadsTo(in_), '/console/failed')
  t.match(in_.headers['set-cookie'], [/^handoff_way_[\w-]{8}=;/, /^handoff_session=[\w-]{43}; Max-Age=28800; Path=\/; HttpOnly; SameSite=Strict$/])
  t.match((await ask('/console')).body, /carol-5/)
  t.equal(jar.names.filter(name => name.startsWith('handoff_way_')).length, 1, 'the other way is still open')
  t.notMatch(JSON.stringify(await service.dump()), /eyJ[\w-]+\.[\w-]+\./, 'no token is kept')
  t.equal(leadsTo(await browser().signIn('olga-7')), '/console', 'who only operates sees the console')
})

t.test('the way back is as URLs are written, however BASE_URL is', { skip: ofOneReplica }, async t => {
  const { app } = await testApp(t, { ISSUERS: issuers(), BASE_URL: 'https://Handoff.Example:443/team' })
  const { location } = (await app.inject(`/sign-in/start?${new URLSearchParams({ issuer: oidc.url })}`)).headers
  t.equal(new URL(location!).searchParams.get('redirect_uri'), 'https://handoff.example/team/sign-in/callback')
})

t.test('a decision says who it was', async t => {
  const { ask, signIn } = browser()
  await signIn('carol-5')
  const id = await asked(service, 'sign-in')
  const cookie = browser().jar
  t.equal(cookie.names.length, 0)
  const page = await ask(`/approvals/${id}`)
  const fields = Object.fromEntries([...page.body.matchAll(/name="(created_at|digest)" value="([^"]+)"/g)].map(([, name, value]) =>
    [name!, value!.replaceAll('&#61;', '=').replaceAll('&#x2F;', '/').replaceAll('&#47;', '/').replaceAll('&#43;', '+')]))
  const decided = await ask(`/approvals/${id}/approve`, { ...fields, note: 'yes' })
  t.equal(decided.statusCode, 303, textOf(decided.body))
  const { approval } = (await service.call('alice', 'GET', `/api/status/${id}`)).json()
  t.match(approval, { state: 'approved', decided_by: 'carol-5', decided_by_subject: 'carol-5', decided_by_name: 'Carol <Reyes>', note: 'yes', digest: /^sha-256=:/ })
  t.strictSame(Object.keys(approval), ['state', 'decided_at', 'decided_by', 'decided_by_subject', 'decided_by_name', 'note', 'digest'])
  const [item] = (await service.call('operator', 'GET', '/api/decisions?by=carol-5')).json().items
  t.match(item, { handoff_id: id, decided_by: 'carol-5', decided_by_subject: 'carol-5', decided_by_name: 'Carol <Reyes>' })
  const file = (await service.call('operator', 'GET', '/api/decisions?by=carol-5&format=csv')).body
  t.match(file, /,carol-5,carol-5,Carol <Reyes>,yes,/)
  const shownAs = (await ask(`/console/handoffs/${id}`)).body
  t.match(shownAs, /approved by carol-5 \(Carol &#60;Reyes&#62;\)/)
  t.match(shownAs, /<strong>approved<\/strong> by carol-5 \(Carol &#60;Reyes&#62;, carol-5\)/)
  if (!ofOneReplica) t.ok(service.lines.some(line => line.includes('"decided_by_subject":"carol-5","decided_by_name":"Carol <Reyes>"')))
  // With a key, nothing of it is there.
  const other = await asked(service)
  t.equal((await service.call('approver', 'POST', `/api/approve/${other}`, {})).statusCode, 200)
  t.notMatch((await service.call('alice', 'GET', `/api/status/${other}`)).body, /decided_by_/)
})

t.test('whom no rule lets in is told so, and by whom, and may come as another', async t => {
  for (const [person, name] of [['eve-9', 'Eve &#60;b&#62; (eve-9)'], ['rob-8', 'Rob (rob-8)']]) {
    const { signIn, ask, jar } = browser()
    const page = await signIn(person!, '/console')
    t.equal(page.statusCode, 403)
    t.equal(title(page), 'Nobody let you in here')
    t.match(page.body, `${host} signed you in as ${name},`)
    t.notOk(jar.names.includes('handoff_session'))
    const again = /href="(\/sign-in\/start[^"]+another[^"]*)"/.exec(page.body)![1]!.replaceAll('&#38;', '&').replaceAll('&#61;', '=')
    const { location } = (await ask(again)).headers
    t.equal(new URL(location!).searchParams.get('prompt'), 'login')
  }
})

t.test('what comes back without this browser’s state is shown to nobody', async t => {
  const { start, back, jar, ask } = browser()
  const url = await start('/approvals')
  oidc.person = 'carol-5'
  const answer = await oidc.visit(url)
  const strange = async (page: LightMyRequestResponse) => {
    t.strictSame([page.statusCode, title(page)], [400, 'This sign-in can’t be finished'])
    t.notMatch(page.body, /canary/)
  }
  await strange(await browser().back(answer))
  await strange(await ask('/sign-in/callback?error=access_denied&error_description=canary&state=canary'))
  await strange(await ask('/sign-in/callback?error=canary'))
  await strange(await ask(`/sign-in/callback?state=${answer.get('state')}x&code=canary`))
  await strange(await ask('/sign-in/callback?state=a&state=b'))
  // The issuer's own words are text.
  const refused = await browser().start().then(() => undefined)
  t.equal(refused, undefined)
  const other = browser()
  const { searchParams } = await other.start()
  const no = await other.back({ error: 'access_denied', error_description: '<script>no</script>', state: searchParams.get('state')!, iss: oidc.url })
  t.strictSame([no.statusCode, title(no)], [401, `${host} did not sign you in`])
  t.match(no.body, 'It says: &#60;script&#62;no&#60;/script&#62; (access_denied)')
  // Used once.
  const { header } = jar
  t.equal((await back(answer)).statusCode, 200)
  await strange(await back(answer))
  const twice = await service.app.inject({ url: `/sign-in/callback?${answer}`, headers: { ...own, cookie: header } })
  t.equal(twice.statusCode, 401, 'the issuer takes no code twice')
})

t.test('who signs in anew ends the session before, and a sign-out that fails can be tried again', { skip: ofOneReplica }, async t => {
  const { ask, signIn, start, back, jar } = browser()
  await signIn('carol-5')
  const first = jar.header
  // The cookie of a session, SameSite=Strict, doesn't come back from another site.
  oidc.person = 'olga-7'
  const answer = await oidc.visit(await start())
  const ways = jar.header.split('; ').filter(pair => pair.startsWith('handoff_way_')).join('; ')
  const page = await service.app.inject({ url: `/sign-in/callback?${answer}`, headers: { 'sec-fetch-site': 'cross-site', cookie: ways } })
  t.equal(page.statusCode, 200)
  t.equal((await service.app.inject({ url: '/approvals', headers: { ...own, cookie: first } })).statusCode, 303)
  await signIn('carol-5')
  t.ok(back)
  const broken = await testApp(t, { ISSUERS: issuers(), BASE_URL: baseUrl }, { prefix: service.prefix })
  t.intercept(broken.store.sessions, 'end', { value: async () => { throw new Unavailable('Redis is away') } })
  const out = await broken.app.inject(form('/approvals/sign-out', {}, { ...own, cookie: jar.header }))
  t.strictSame([out.statusCode, out.headers['set-cookie']], [503, undefined])
  t.equal((await ask('/approvals/sign-out', {})).statusCode, 200)
})

t.test('what a person had passed by a schedule, the same person can’t approve', async t => {
  const key = await signingKey('ES256', { kid: 'one' })
  const issuer = await testIssuer(t, [key.jwk])
  const given = {
    issuer: issuer.url,
    audience: 'us',
    rules: [
      { when: { as: 'agent' }, tenant: 'default', agent: 'planner', scopes: ['pass', 'status'] },
      { when: { as: 'person' }, tenant: 'default', agent: 'decider', scopes: ['approve', 'status'], decides: true },
    ]
  }
  const { app } = await testApp(t, { ISSUERS: JSON.stringify([given]), BASE_URL: baseUrl })
  const ask = async (as: string, sub: string, method: 'GET' | 'POST' | 'PUT', url: string, body?: object) => {
    const token = await key.sign({ iss: issuer.url, aud: 'us', sub, as, exp: Math.floor(Date.now() / 1000) + 60 })
    return await app.inject({ method, url, headers: { authorization: `Bearer ${token}` }, ...body && { body } })
  }
  const put = await ask('agent', 's', 'PUT', '/api/schedules/nightly', { every: 3600, handoff: { task: 't', require_human: true } })
  t.equal(put.statusCode, 201, put.body)
  const { handoff_id: id } = (await ask('agent', 's', 'POST', '/api/schedules/nightly/run')).json()
  t.match((await ask('person', 's', 'POST', `/api/approve/${id}`, {})).json(), { code: 'self_approval' })
  t.equal((await ask('person', 'other', 'POST', `/api/approve/${id}`, {})).statusCode, 200)
})

t.test('several windows don’t disturb each other, and too many leave the latest', async t => {
  const { start, back, jar } = browser()
  oidc.person = 'carol-5'
  const [first, second] = [await start('/approvals/abc'), await start('/console')]
  t.equal(leadsTo(await back(await oidc.visit(second))), '/console')
  t.equal(leadsTo(await back(await oidc.visit(first))), '/approvals/abc')
  for (let n = 0; n < 8; n++) await start()
  t.equal(jar.names.filter(name => name.startsWith('handoff_way_')).length, 5)
  const long = `/approvals?search=${'x'.repeat(980)}`
  const ways = []
  // All of one millisecond, in which a fast machine makes several.
  const moment = Date.now()
  const { restore } = t.intercept(Date, 'now', { value: () => moment })
  for (let n = 0; n < 5; n++) ways.push(await start(long))
  restore()
  t.ok(jar.header.length < 7000, `${jar.header.length}: proxies take header fields of 8 KB`)
  t.equal(leadsTo(await back(await oidc.visit(ways.at(-3)!))), long)
})

t.test('the way never leads out of these pages', async t => {
  for (const next of ['https://evil.example', '//evil.example', '/docs', '/approvals/../docs', 'javascript:alert(1)', `/console?${'x'.repeat(3000)}`]) {
    t.equal(leadsTo(await browser().signIn('carol-5', next)), '/approvals', next)
  }
  const { headers } = await service.app.inject({ url: '/sign-in/start?issuer=https://evil.example&next=/console' })
  t.equal(headers.location, '/approvals/sign-in?next=%2Fconsole')
})

t.test('a session ends at the sign-out, by a block, and with its rule', { skip: ofOneReplica }, async t => {
  const { ask, signIn, jar } = browser()
  await signIn('carol-5')
  const isIn = async (app: Pick<TestApp, 'app'>['app'] = service.app) =>
    (await app.inject({ url: '/approvals', headers: { ...own, cookie: jar.header } })).statusCode === 200
  t.ok(await isIn())
  // Another replica knows the session, and one without the rule doesn't.
  const same = await testApp(t, { ISSUERS: issuers(), BASE_URL: baseUrl }, { prefix: service.prefix })
  t.ok(await isIn(same.app))
  const changed = issuers({ rules: [{ ...rules[0], scopes: ['approve'] }] })
  t.notOk(await isIn((await testApp(t, { ISSUERS: changed, BASE_URL: baseUrl }, { prefix: service.prefix })).app))
  t.notOk(await isIn((await testApp(t, { BASE_URL: baseUrl }, { prefix: service.prefix })).app))
  const { cookie } = { cookie: jar.header }
  const out = await ask('/approvals/sign-out', {})
  const at = new URL(leadsTo(out)!)
  t.equal(at.origin + at.pathname, `${oidc.url}/session/end`)
  t.strictSame(Object.fromEntries(at.searchParams), { client_id: 'handoff', post_logout_redirect_uri: `${baseUrl}/approvals/sign-in` })
  t.equal((await service.app.inject({ url: '/approvals', headers: { ...own, cookie } })).statusCode, 303)
  await signIn('carol-5')
  const list = service.app.inject({ url: `/approvals/list?seen=${/seen=([\w-]+)/.exec((await ask('/approvals')).body)?.[1] ?? ''}`, headers: { ...own, cookie: jar.header, 'hx-request': 'true' } })
  await service.store.keyRecords.blocks.set(oidc.url, 'carol-5', Infinity, 'test')
  t.equal((await list).statusCode, 401, 'an open page ends too')
  t.notOk(await isIn())
  const blocked = await browser().signIn('carol-5')
  t.equal(blocked.statusCode, 403)
  t.match(blocked.body, /signed you in as [^<]*\(carol-5\), and an operator of this service has blocked you\./)
  await service.store.keyRecords.blocks.set(oidc.url, 'carol-5', null, 'test')
})

t.test('what was typed without a session is shown again after a sign-in in another window', async t => {
  const { ask, signIn } = browser()
  await signIn('carol-5')
  const id = await asked(service)
  const kept = await service.app.inject(form(`/approvals/${id}/reject`, { note: 'typed' }))
  t.equal(kept.statusCode, 401)
  t.match(kept.body, /href="\/sign-in\/start[^"]*" target="_blank" rel="noopener"/)
  t.match(kept.body, /<button formnovalidate>I am signed in: go on<\/button>/)
  const early = await service.app.inject(form(`/approvals/${id}/reject`, { note: 'typed', sign_in_key: '', next: `/approvals/${id}` }))
  t.match(early.body, /You are not signed in yet/)
  t.match(early.body, /value="typed"/)
  const page = await ask(`/approvals/${id}/reject`, { note: 'typed', sign_in_key: '', next: `/approvals/${id}` })
  t.match(page.body, /typed<\/textarea>/)
  t.match((await service.call('alice', 'GET', `/api/status/${id}`)).json(), { approval: { state: 'waiting' } })
})

t.test('SIGN_IN_KEYS=off takes the key’s field and its form away, SESSION_TTL says for how long', async t => {
  const off = await testApp(t, { ISSUERS: issuers(), BASE_URL: baseUrl, SIGN_IN_KEYS: 'off', SESSION_TTL: '90m' }, { prefix: service.prefix })
  const { body } = await off.app.inject('/approvals/sign-in')
  t.notMatch(body, /type="password"/)
  t.match(body, /at most 1 h 30 min/)
  t.equal((await off.app.inject(form('/approvals/sign-in', { key: secrets.approver }))).statusCode, 405)
  const byKey = browser()
  await byKey.ask('/approvals/sign-in', { key: secrets.approver })
  t.equal((await byKey.ask('/approvals')).statusCode, 200)
  t.equal((await off.app.inject({ url: '/approvals', headers: { ...own, cookie: byKey.jar.header } })).statusCode, 303)
  const id = await asked(off)
  const kept = await off.app.inject(form(`/approvals/${id}/approve`, { sign_in_key: secrets.approver, next: '/approvals' }))
  t.equal(kept.statusCode, 401)
  t.match((await browser(off).signIn('carol-5')).headers['set-cookie'], [/./, /Max-Age=5400/])
  const short = await testApp(t, { SESSION_TTL: '60' })
  t.match((await short.app.inject(form('/approvals/sign-in', { key: secrets.approver }))).headers['set-cookie'], /Max-Age=60;/)
  t.throws(() => loadConfig({ ...testKeys, SIGN_IN_KEYS: 'off' }), /^SIGN_IN_KEYS: /)
})

/** An issuer whose answers the test says. */
async function ownIssuer (t: Test) {
  const key = await signingKey('ES256', { kid: 'one' })
  const issuer = await testIssuer(t, [key.jwk])
  const metadata: Record<string, unknown> = {
    issuer: issuer.url, jwks_uri: `${issuer.url}/keys`, authorization_endpoint: `${issuer.url}/auth`, token_endpoint: `${issuer.url}/token`, userinfo_endpoint: `${issuer.url}/me`, authorization_response_iss_parameter_supported: true
  }
  const json = (path: string, body: () => unknown, status = 200) => {
    issuer.answers[path] = response => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body()))
  }
  json('/.well-known/openid-configuration', () => metadata)
  const settings = (more: object = {}) => JSON.stringify([{ issuer: issuer.url, sign_in: { client_id: 'handoff', label: 'Own', rules: [{ when: { groups: 'leads' }, tenant: 'default', agent: 'lead', scopes: ['approve'] }], ...more } }])
  const app = await testApp(t, { ISSUERS: settings(), BASE_URL: baseUrl })
  const user = browser(app)
  /** One way there and back. @param claims of the ID token, from the nonce */
  const way = async (claims: (nonce: string) => object, back: object = {}) => {
    const url = await user.start('/approvals', issuer.url)
    const nonce = url.searchParams.get('nonce')!
    const token = await key.sign({ iss: issuer.url, aud: 'handoff', sub: 's', iat: Math.floor(Date.now() / 1000), exp: Math.floor(Date.now() / 1000) + 60, groups: 'leads', name: 'N', ...claims(nonce) })
    json('/token', () => ({ access_token: 'a', token_type: 'bearer', id_token: token }))
    return await user.back({ code: 'c', state: url.searchParams.get('state')!, iss: issuer.url, ...back })
  }
  return { issuer, key, metadata, json, way, user, app }
}

t.test('an answer that isn’t the issuer’s, or isn’t for this, lets nobody in', { skip: ofOneReplica }, async t => {
  const { issuer, way, json, app, key } = await ownIssuer(t)
  t.equal((await way(nonce => ({ nonce }))).statusCode, 200)
  const refused = async (what: string, claims: (nonce: string) => object, back?: object) => {
    const page = await way(claims, back)
    t.strictSame([page.statusCode, title(page)], [401, 'You are not signed in'], what)
    t.notOk(page.cookies.some(({ name }) => name === 'handoff_session'), what)
  }
  const many = Array.from({ length: 300 }, (_, n) => `01234567-89ab-cdef-0123-${String(n).padStart(12, '0')}`)
  t.equal((await way(nonce => ({ nonce, groups: [...many, 'leads'] }))).statusCode, 200, 'an ID token may be longer than what stands in a header field')
  await refused('no nonce', () => ({}))
  await refused('another nonce', () => ({ nonce: 'x' }))
  await refused('another issuer', nonce => ({ nonce, iss: 'https://other.example.com' }))
  await refused('another audience', nonce => ({ nonce, aud: 'other' }))
  await refused('it is over', nonce => ({ nonce, exp: 1000 }))
  await refused('a subject that is too long', nonce => ({ nonce, sub: 's'.repeat(256) }))
  await refused('an answer of another issuer', nonce => ({ nonce }), { iss: 'https://other.example.com' })
  const noIss = await way(nonce => ({ nonce }), { iss: '' })
  t.equal(noIss.statusCode, 401)
  // Userinfo has what the ID token lacks, if it is of the same subject.
  json('/me', () => ({ sub: 's', groups: ['leads'] }))
  t.equal((await way(nonce => ({ nonce, groups: undefined }))).statusCode, 200)
  json('/me', () => ({ sub: 's', realm: { groups: 'leads' }, groups: ['none'] }))
  t.equal((await way(nonce => ({ nonce, groups: 'leads', realm: { other: 1 } }))).statusCode, 200, 'what the ID token has counts')
  json('/me', () => ({ sub: 'other', groups: ['leads'] }))
  await refused('userinfo of another', nonce => ({ nonce, groups: undefined }))
  const other = await signingKey('ES256', { kid: 'one' })
  issuer.keys.splice(0, 1, other.jwk)
  t.equal((await way(nonce => ({ nonce }))).statusCode, 200, 'its keys are known for an hour')
  t.ok(key)
  t.ok(app.lines.some(line => line.includes('a sign-in by an issuer failed')))
  let page = await way(() => ({}))
  for (let tries = 0; page.statusCode === 401 && tries < 100; tries++) page = await way(() => ({}))
  t.strictSame([page.statusCode, title(page)], [429, 'Too many sign-ins failed'])
  t.notMatch(textOf(page.body), /key/i, 'nobody typed a key')
})

t.test('an issuer that is away, or says nonsense, is said to be away', { skip: ofOneReplica }, async t => {
  const { issuer, user, metadata } = await ownIssuer(t)
  const start = () => user.ask(`/sign-in/start?issuer=${encodeURIComponent(issuer.url)}`)
  const { authorization_endpoint: place } = metadata
  for (const wrong of ['http://other.example.com/auth', 'javascript:alert(1)', undefined]) {
    metadata.authorization_endpoint = wrong
    const page = await start()
    t.strictSame([page.statusCode, title(page), page.headers['retry-after']], [503, 'You can’t sign in now', '5'], String(wrong))
  }
  metadata.authorization_endpoint = place
  t.equal((await start()).statusCode, 303)
  const url = await user.start('/approvals', issuer.url)
  for (const fault of [(response: ServerResponse) => { response.destroy() }, (response: ServerResponse) => { response.writeHead(502).end('<html>') }]) {
    issuer.answers['/token'] = fault
    const away = await user.back({ code: 'c', state: url.searchParams.get('state')!, iss: issuer.url })
    t.strictSame([away.statusCode, title(away)], [503, 'You can’t sign in now'], 'and the same way may be tried again')
  }
})
