import { createPublicKey } from 'node:crypto'
import { CompactSign } from 'jose'
import t from 'tap'
import type { Test } from 'tap'
import { loadConfig } from '../../src/config.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { personWith, textOf } from '../helpers/forms.ts'
import { signingKey, testIssuer } from '../helpers/issuer.ts'
import { isProblem } from '../helpers/problems.ts'

/** Tokens that others issue (docs/identity.md). */

const baseUrl = 'https://handoff.example.com/base'
const now = () => Math.floor(Date.now() / 1000)
const [first, second, unknown] = await Promise.all([
  signingKey('ES256', { kid: 'one' }), signingKey('RS256', { kid: 'two', use: 'sig' }), signingKey('ES256', { kid: 'one' })
])
const issuer = await testIssuer(t, [first.jwk, second.jwk, { kty: 'oct', k: 'c2VjcmV0', kid: 'one' }, { kty: 'EC', crv: 'P-256', x: 'no', y: 'no' }], '/tenant')
const rules = [
  { when: { groups: 'builders' }, tenant: 'default', agent: { claim: 'sub' }, scopes: ['pass', 'catch', 'status'], inboxes: ['in'] },
  { when: { groups: ['nameless'] }, tenant: { claim: '/org~1unit/name' }, agent: { claim: 'name', prefix: 'x-' }, scopes: ['pass'] },
  { when: { level: [3, true], 'repository.owner': 'acme/*' }, tenant: 'ci', agent: 'runner', scopes: { claim: 'scope', prefix: 'handoff:' } },
  { when: { role: 'lead' }, tenant: 'default', agent: { claim: 'sub' }, scopes: { claim: 'can' }, decides: true },
  { when: { 'extra.0': 'x' }, tenant: 'default', agent: 'element', scopes: ['pass'] },
]
const ISSUERS = JSON.stringify([{ issuer: issuer.url, rules, mcp: true, algorithms: ['ES256', 'RS256'] }])
const service = await testApp(t, { ISSUERS, BASE_URL: baseUrl })
const claims = (more: object = {}) =>
  ({ iss: issuer.url, aud: baseUrl, sub: 'ann', exp: now() + 600, groups: ['readers', 'builders'], ...more })
const ask = (token: string, path = '/api/whoami', method: 'GET' | 'POST' = 'GET', body?: object) =>
  service.app.inject({ method, url: path, headers: { authorization: `Bearer ${token}` }, ...body && { body } })

/** Why a token is refused: the challenge says so, and nothing else of it. */
async function refused (t: Test, token: string, path?: string): Promise<string | undefined> {
  const answer = await ask(token, path)
  isProblem(t, answer, 401, 'unauthorized')
  return /^Bearer error="invalid_token", error_description="(\w+)"(, resource_metadata.*)?$/.exec(String(answer.headers['www-authenticate']))?.[1]
}

t.test('whoever its issuer signed it for is who a rule says', async t => {
  const answer = await ask(await first.sign(claims()))
  t.equal(answer.statusCode, 200, answer.body)
  const { expires_at: ends, ...who } = answer.json()
  t.strictSame(who, { tenant: 'default', agent: 'ann', scopes: ['pass', 'catch', 'status'], inboxes: ['in'], issuer: issuer.url, subject: 'ann' })
  t.ok(Math.abs(Date.parse(ends) - (now() + 600) * 1000) < 5000)
  const name = async (more: object) => (await ask(await second.sign(claims({ groups: [], ...more })))).json()
  t.match(await name({ groups: 'nameless', 'org/unit': { name: 'acme' }, name: 'Ann Lee' }), { tenant: 'acme', agent: /^x-Ann-Lee\.[0-9a-f]{12}$/, inboxes: null })
  t.match(await name({ level: 3, repository: { owner: 'acme/web' }, scope: 'handoff:pass handoff:approve pass handoff:x handoff:catch' }), { tenant: 'ci', agent: 'runner', scopes: ['pass', 'catch'] })
  t.match(await name({ role: 'lead', can: ['approve', 'read', 7] }), { agent: 'ann', scopes: ['approve', 'read'] })
  // An agent by token and one by key are the same.
  const { handoff_id: id } = (await ask(await first.sign(claims({ sub: 'alice' })), '/api/pass', 'POST', { task: 't' })).json()
  t.equal((await service.call('bob', 'POST', `/api/cancel/${id}`)).statusCode, 403)
  t.equal((await service.call('alice', 'POST', `/api/cancel/${id}`)).statusCode, 200)
  const keyed = (await service.call('approver', 'GET', '/api/whoami')).json()
  t.strictSame(keyed, { tenant: 'default', agent: 'carol', scopes: ['approve', 'status'], inboxes: null, expires_at: null })
})

t.test('an operator sees in the console whose a token is', async t => {
  const ask = await personWith(service, secrets.operator)
  const whose = async (secret: string) => textOf((await ask('/console/keys/whose', { secret })).body)
  t.match(await whose(await first.sign(claims())), new RegExp(`This is a token of ${issuer.url} for its subject ann, of the agent ann \\. It may: pass, catch, status, from the inboxes in \\. It ends 20`))
  t.match(await whose(await first.sign(claims({ exp: now() - 60 }))), 'The token is refused: it has expired, or is not valid yet.')
  t.match(await whose(await first.sign(claims({ groups: [], level: 3, repository: { owner: 'acme/x' } }))), 'This is no key or token of this tenant', 'it is of another tenant')
})

t.test('a claim that is no name makes one that no claim is', async t => {
  const name = async (sub: string) => (await ask(await first.sign(claims({ sub })))).json().agent
  t.equal(await name('a'.repeat(64)), 'a'.repeat(64))
  t.match(await name('a'.repeat(65)), /^a{40}\.[0-9a-f]{12}$/)
  const made = await name('système:sa/é😀x')
  t.match(made, /^syst-me-sa---x\.[0-9a-f]{12}$/)
  const taken = await name(made)
  t.not(taken, made, 'a claim that looks like a made name is made once more')
  t.match(taken, /^syst-me-sa---x\.[0-9a-f]{12}\.[0-9a-f]{12}$/)
  t.not(await name('ａnn'), 'ann')
})

t.test('what is wrong is said in one word, the first of its order', async t => {
  const good = await first.sign(claims())
  t.equal((await ask(good)).statusCode, 200)
  const [header, payload, signature] = good.split('.') as [string, string, string]
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  for (const [what, token] of Object.entries({
    'no parts': '..',
    'no JSON': `${header}.${payload.slice(1)}.${signature}`,
    'a list': `${part([])}.${payload}.${signature}`,
    crit: await first.sign(claims(), { crit: ['odd'], odd: 1 }),
    typ: await first.sign(claims(), { typ: 'id+jwt' }),
    'no sub': await first.sign(claims({ sub: undefined })),
    'no iss': await first.sign(claims({ iss: undefined })),
    'no aud': await first.sign(claims({ aud: undefined })),
    'exp as text': await first.sign(claims({ exp: String(now() + 60) })),
    'nbf as text': await first.sign(claims({ nbf: 'now' })),
    'half a pair': await first.sign(`{"iss":"${issuer.url}","aud":"x","sub":"\\ud800","exp":${now() + 60}}`),
    'no UTF-8': await first.sign(Buffer.from(JSON.stringify(claims({ sub: 'ann\u00ff' })), 'latin1')),
    'too long': await first.sign(claims({ more: 'x'.repeat(8192) })),
  })) t.equal(await refused(t, token), 'malformed', what)
  t.equal(await refused(t, await first.sign(claims({ iss: `${issuer.url}/`, aud: 'x', exp: 1 }))), 'issuer')
  for (const [what, token] of Object.entries({
    'alg none': `${part({ alg: 'none' })}.${payload}.`,
    'an alg that can’t be made text': `${part({ alg: { toString: 1 } })}.${payload}.${signature}`,
    'another key with its kid': await unknown.sign(claims({ exp: 1 })),
    'another payload': `${header}.${part(claims({ sub: 'eve' }))}.${signature}`,
    'a key of its own': await unknown.sign(claims(), { jwk: unknown.jwk, jku: `${issuer.url}/keys` }),
    'not its algorithm': await (await signingKey('PS256', { kid: 'two' })).sign(claims()),
    HMAC: await new CompactSign(Buffer.from(JSON.stringify(claims()))).setProtectedHeader({ alg: 'HS256', kid: 'one' }).sign(Buffer.from('secret')),
  })) t.equal(await refused(t, token), 'signature', what)
  t.equal(await refused(t, await first.sign(claims({ exp: now() - 31, aud: 'x' }))), 'expiry')
  t.equal(await refused(t, await first.sign(claims({ nbf: now() + 40 }))), 'expiry')
  t.equal(await refused(t, await first.sign(claims({ aud: [`${baseUrl}/`, 'x'], groups: [] }))), 'audience')
  t.equal(await refused(t, await first.sign(claims({ groups: [] }))), 'rules')
  t.equal(await refused(t, await first.sign(claims({ groups: 'nameless', name: 'n' }))), 'rules', 'the rule finds no tenant')
  t.equal(await refused(t, await first.sign(claims({ groups: 'nameless', 'org/unit': { name: 'a b' }, name: 'n' }))), 'rules')
  t.equal(await refused(t, await first.sign(claims({ groups: ['nameless'], 'org/unit': { name: 'a' }, name: '' }))), 'rules', 'later rules aren’t tried')
  for (const [what, more] of Object.entries({
    'within 30 s': { exp: now() - 5, nbf: now() + 5 }, 'a float': { exp: now() + 0.5 }, 'far away': { exp: 1e15 }, 'several audiences': { aud: ['x', baseUrl] },
  })) t.equal((await ask(await first.sign(claims(more)))).statusCode, 200, what)
  for (const typ of ['JWT', 'jwt', 'at+jwt', 'application/AT+JWT']) t.equal((await ask(await first.sign(claims(), { typ }))).statusCode, 200, typ)
})

t.test('keys that a token brings or names are of its issuer, or none', async t => {
  const foreign = await testIssuer(t, [unknown.jwk])
  const two = await testApp(t, { ISSUERS: JSON.stringify([{ issuer: issuer.url, rules }, { issuer: foreign.url, rules }, { issuer: 'https://strict.example.com', jwks: { keys: [first.jwk] }, algorithms: ['RS256', 'ES384'], rules }]), BASE_URL: baseUrl })
  const code = async (token: string) => {
    const { statusCode, headers } = await two.app.inject({ url: '/api/whoami', headers: { authorization: `Bearer ${token}` } })
    return `${statusCode} ${/error_description="(\w+)"/.exec(String(headers['www-authenticate']))?.[1] ?? ''}`
  }
  t.equal(await code(await first.sign(claims())), '200 ')
  t.equal(await code(await unknown.sign(claims({ iss: foreign.url }))), '200 ', 'with the same kid')
  const { n, e } = second.jwk
  const hmac = async (alg: string, secret: string | Buffer) => await new CompactSign(Buffer.from(JSON.stringify(claims()))).setProtectedHeader({ alg, kid: 'two' }).sign(Buffer.from(secret))
  const pem = createPublicKey({ key: second.jwk as Record<string, string>, format: 'jwk' })
  for (const [what, token] of Object.entries({
    'another issuer’s key': await unknown.sign(claims()),
    'one issuer’s key for another': await first.sign(claims({ iss: foreign.url })),
    'HMAC with the public key, as PEM': await hmac('HS256', pem.export({ type: 'spki', format: 'pem' })),
    'as DER': await hmac('HS512', pem.export({ type: 'spki', format: 'der' }).toString('latin1')),
    'as its modulus': await hmac('HS256', Buffer.from(n!, 'base64url').toString('latin1')),
    'as it is published': await hmac('HS256', JSON.stringify({ kty: 'RSA', n, e })),
    'an algorithm that isn’t its issuer’s': await first.sign(claims({ iss: 'https://strict.example.com' })),
    'a curve’s key for RSA': await first.sign(claims(), { kid: 'two' }),
    ...Object.fromEntries(await Promise.all(Object.entries({
      jwk: unknown.jwk, jku: `${foreign.url}/keys`, x5u: `${foreign.url}/keys`, x5c: ['MIIB'], 'x5t#S256': 'AAAA', 'jwk of its issuer': first.jwk,
    }).map(async ([name, value]) => [name, await unknown.sign(claims(), { [name.split(' ')[0]!]: value })]))) as Record<string, string>,
    'no kid': await unknown.sign(claims(), { kid: undefined }),
  })) t.equal(await code(token), '401 signature', what)
  t.strictSame([...new Set(foreign.asked)].sort(), ['/.well-known/openid-configuration', '/keys'], 'what a token names isn’t asked for')
  t.ok(foreign.asked.length <= 4)
  for (const [what, token] of Object.entries({
    'alg in other letters': await first.sign(claims()).then(token => token.replace(/^[^.]*/, Buffer.from('{"alg":"es256","kid":"one"}').toString('base64url'))),
    'alg that is a list': await first.sign(claims()).then(token => token.replace(/^[^.]*/, Buffer.from('{"alg":["none"],"kid":"one"}').toString('base64url'))),
    'none in other letters': `${Buffer.from('{"alg":"nOnE"}').toString('base64url')}.${Buffer.from(JSON.stringify(claims())).toString('base64url')}.`,
  })) t.equal(await code(token), '401 signature', what)
  t.equal(await code(`${await first.sign(claims())}..`), '401 ', 'an encrypted one has five parts, and is an unknown key')
})

t.test('claims of any form match what equals them, and nothing else', async t => {
  const who = async (more: object) => {
    const { statusCode, body } = await ask(await first.sign(claims(more)))
    return statusCode === 200 ? JSON.parse(body).agent as string : statusCode
  }
  const many = (count: number, last: unknown) => ({ groups: [...Array(count).fill(0), last] })
  t.equal(await who(many(2500, 'builders')), 'ann')
  for (const groups of [
    {}, [], null, 0, true, '', ['builders '], 'Builders', 'bu\u0131lders', '\uff42uilders', 'builders\u200b', 'b\u0443ilders', [['builders']], [{ builders: true }], { builders: 'builders' }, { 0: 'builders' },
    [null, {}, []], 'builders,readers', { length: 1, 0: 'builders' }, { __proto__: null, toString: 'builders' },
  ]) t.equal(await who({ groups }), 401, JSON.stringify(groups))
  t.equal(await who({ groups: 'builders' }), 'ann', 'one value is as a list of it')
  for (const [what, more] of Object.entries({
    'a number as text': { level: '3' },
    'true as text': { level: 'true' },
    'another case': { level: 3, repository: { owner: 'ACME/web' } },
    'in a list': { level: 3, repository: [{ owner: 'acme/web' }] },
    'an element of a list': { extra: ['x'] },
    'a prefix that is not all of it': { level: 3, repository: { owner: 'acme' } },
    'a name with its dot': { level: 3, 'repository.owner': 'acme/web' },
    inherited: { level: 3, repository: 'acme/web' },
  })) t.equal(await who({ groups: [], scope: 'handoff:pass', ...more }), 401, what)
  for (const name of [{}, ['x'], 7, true, null, '', '\ud800']) t.equal(await who({ groups: 'nameless', 'org/unit': { name: 'acme' }, name }), 401, `an agent that is ${JSON.stringify(name)}`)
  for (const tenant of [{}, ['acme'], 7, 'a b', '\u0430cme', 'acme\n', 'a'.repeat(65), '']) t.equal(await who({ groups: 'nameless', 'org/unit': { name: tenant }, name: 'n' }), 401, `a tenant that is ${JSON.stringify(tenant)}`)
  t.equal(await refused(t, await first.sign(JSON.stringify(claims()).replace('"exp":', '"exp":1e400,"x":'))), 'malformed')
  t.equal((await ask(await first.sign(JSON.stringify(claims()).replace('"exp":', '"exp":1e300,"x":')))).statusCode, 200)
  for (const sub of [{}, ['ann'], 7, '', null]) t.equal(await refused(t, await first.sign(claims({ sub }))), 'malformed', `sub ${JSON.stringify(sub)}`)
  for (const aud of [{}, 7, null, '', [7], [baseUrl, {}], [baseUrl, '']]) t.equal(await refused(t, await first.sign(claims({ aud }))), 'malformed', `aud ${JSON.stringify(aud)}`)
  for (const aud of [[], 'x', baseUrl.toUpperCase(), `${baseUrl}?`, `${baseUrl} `, [`${baseUrl}/mcp/`]]) t.equal(await refused(t, await first.sign(claims({ aud }))), 'audience', `aud ${JSON.stringify(aud)}`)
  // At most 8 KiB.
  const whole = await first.sign(claims())
  const padded = async (length: number) => await first.sign(claims({ p: 'x'.repeat(Math.floor((length - whole.length) * 3 / 4) - 8) }))
  const longest = await padded(8192)
  t.ok(longest.length > 8180 && longest.length <= 8192, String(longest.length))
  t.equal((await ask(longest)).statusCode, 200)
  t.equal(await refused(t, await padded(8212)), 'malformed')
})

t.test('a token for /mcp alone is taken there alone, where the challenge says where to get one', async t => {
  const token = await first.sign(claims({ aud: `${baseUrl}/mcp` }))
  t.equal(await refused(t, token), 'audience')
  const mcp = (key: string | null, message: object) => service.app.inject({
    method: 'POST', url: '/mcp', headers: { ...key !== null && { authorization: `Bearer ${key}` }, accept: 'application/json, text/event-stream', 'content-type': 'application/json' }, body: { jsonrpc: '2.0', id: 1, ...message }
  })
  const hello = await mcp(token, { method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } } })
  t.match(hello.json(), { result: { instructions: /agent ann\b/ } })
  const place = 'https://handoff.example.com/.well-known/oauth-protected-resource/base/mcp'
  const wanted = 'scope="handoff:pass handoff:catch handoff:status handoff:webhooks"'
  t.equal((await mcp(null, { method: 'ping' })).headers['www-authenticate'], `Bearer resource_metadata="${place}", ${wanted}`)
  t.equal((await mcp('wrong', { method: 'ping' })).headers['www-authenticate'], `Bearer error="invalid_token", resource_metadata="${place}", ${wanted}`)
  const passer = await first.sign(claims({ groups: [], level: true, repository: { owner: 'acme/web' }, scope: 'handoff:pass' }))
  const refusal = await mcp(passer, { method: 'tools/call', params: { name: 'handoff_catch_next', arguments: { inbox: 'in' } } })
  isProblem(t, refusal, 403, 'insufficient_scope')
  t.equal(refusal.headers['www-authenticate'], `Bearer error="insufficient_scope", resource_metadata="${place}", scope="handoff:catch"`)
  const document = { authorization_servers: [issuer.url], bearer_methods_supported: ['header'], scopes_supported: ['handoff:pass', 'handoff:catch', 'handoff:status', 'handoff:webhooks'] }
  for (const [path, resource] of [['/mcp', `${baseUrl}/mcp`], ['', baseUrl]]) {
    t.strictSame((await service.app.inject(`/.well-known/oauth-protected-resource/base${path}`)).json(), { resource, ...document })
  }
  t.equal((await service.app.inject('/api/whoami')).headers['www-authenticate'], 'Bearer')
})

t.test('what fails up to its signature counts as a wrong key does; what its issuer signed doesn’t', async t => {
  const apart = await testApp(t, { ISSUERS, BASE_URL: baseUrl })
  const send = async (token: string) => (await apart.app.inject({ url: '/api/whoami', headers: { authorization: `Bearer ${token}` } })).statusCode
  const refusedOnes = [await first.sign(claims({ groups: [] })), await first.sign(claims({ exp: 1 }))]
  const good = await first.sign(claims())
  t.equal(await send(good), 200)
  for (let n = 0; n < 70; n++) t.equal(await send(refusedOnes[n % 2]!), 401)
  const bad = await unknown.sign(claims())
  const codes = []
  for (let n = 0; n < 62; n++) codes.push(await send(bad))
  t.strictSame(codes, [...Array(60).fill(401), 429, 429])
  t.equal(await send(good), 200, 'a token that was checked before goes on')
})

t.test('the setting is checked at the start, and the fault has its place', t => {
  const rule = { when: { a: 'b' }, tenant: 'default', agent: 'a', scopes: ['pass'] }
  const one = { issuer: 'https://id.example.com', rules: [rule] }
  const withRule = (more: object) => [{ ...one, rules: [{ ...rule, ...more }] }]
  const fault = (given: unknown): string => {
    try {
      loadConfig({ ISSUERS: typeof given === 'string' ? given : JSON.stringify(given) })
      return ''
    } catch (error) {
      t.notMatch((error as Error).message, /\n/)
      return /^ISSUERS: (\S+)/.exec((error as Error).message)?.[1] ?? String(error)
    }
  }
  for (const [place, given] of [
    ['/', 'no'], ['/', {}], ['/', []], ['/0', ['x']], ['/0/issuer', [{ rules: [rule] }]], ['/0/issuer', [{ ...one, issuer: 'http://id.example.com' }]],
    ['/0/issuer', [{ ...one, issuer: 'https://u:p@id.example.com' }]], ['/0/issuer', [{ ...one, issuer: 'https://id.example.com?x' }]], ['/1/issuer', [one, one]],
    ['/0/rules', [{ issuer: one.issuer }]], ['/0/rules', [{ ...one, rules: [] }]], ['/0/x', [{ ...one, x: 1 }]], ['/0/jwks', [{ ...one, jwks: { keys: [{}] }, jwks_uri: 'https://a.b/c' }]],
    ['/0/jwks_uri', [{ ...one, jwks_uri: 'http://a.b/c' }]], ['/0/algorithms/0', [{ ...one, algorithms: ['HS256'] }]], ['/0/audience', [{ ...one, audience: [] }]],
    ['/0/rules/0/when', withRule({ when: {} })], ['/0/rules/0/when', withRule({ when: undefined })], ['/0/rules/0/when/a', withRule({ when: { a: '*' } })], ['/0/rules/0/when/a', withRule({ when: { a: [] } })],
    ['/0/rules/0/when/a/1', withRule({ when: { a: ['b', null] } })], ['/0/rules/0/when/a..b', withRule({ when: { 'a..b': 'c' } })], ['/0/rules/0/tenant', withRule({ tenant: 'a b' })],
    ['/0/rules/0/tenant/prefix', withRule({ tenant: { claim: 'a', prefix: 'b' } })], ['/0/rules/0/agent/prefix', withRule({ agent: { claim: 'a', prefix: 'b c' } })],
    ['/0/rules/0/scopes/1', withRule({ scopes: ['pass', 'approve'] })], ['/0/rules/0/scopes/0', withRule({ scopes: ['all'] })], ['/0/rules/0/scopes', withRule({ scopes: [] })],
    ['/0/rules/0/inboxes/0', withRule({ inboxes: ['..'] })], ['/0/rules/0/decides', withRule({ decides: 'yes' })], ['/0/sign_in/client_id', [{ issuer: one.issuer, sign_in: { label: 'l', rules: [rule] } }]],
    ['/0/sign_in/scopes', [{ issuer: one.issuer, sign_in: { client_id: 'c', label: 'l', rules: [rule], scopes: 'profile email openid2' } }]], ['', [{ issuer: one.issuer, sign_in: { client_id: 'c', label: 'l', rules: [rule], scopes: 'email openid' } }]],
    ['', [one]], ['', [{ ...one, issuer: 'http://127.0.0.1:1/x' }]], ['', [{ ...one, issuer: 'http://id.example.com', insecure: true }]], ['', withRule({ when: {}, anyone: true })],
    ['', withRule({ scopes: ['approve'], decides: true })], ['', [{ issuer: one.issuer, sign_in: { client_id: 'c', label: 'l', rules: [{ ...rule, scopes: ['approve'] }] } }]],
  ] as const) t.equal(fault(given), place, JSON.stringify(given))
  t.throws(() => loadConfig({ ISSUERS: '@/nowhere' }), { message: 'ISSUERS: the file /nowhere can’t be read: ENOENT' })
  t.end()
})
