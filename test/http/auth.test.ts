import t from 'tap'
import { loadConfig } from '../../src/config.ts'
import { SettingError } from '../../src/core/errors.ts'
import { callerOf } from '../../src/core/model.ts'
import { randomId } from '../../src/core/ids.ts'
import { KeyRing } from '../../src/auth/key-ring.ts'
import { digest } from '../../src/store/api-keys.ts'
import { testApp, secrets } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { quiet } from '../helpers/redis.ts'
import { callerBy, noStoredKeys } from '../helpers/stored-keys.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)
const { app, call, dump } = service

const operations = [['POST', '/api/pass'], ['GET', '/api/catch/x'], ['POST', '/api/done/x'], ['GET', '/api/status/x']] as const

t.test('every operation checks the key before anything else', async t => {
  const { app, dump } = await testApp(t, { BODY_LIMIT: '1024' })
  const refused = async (headers: Record<string, string>, challenge: string | RegExp) => {
    for (const [method, url] of operations) {
      const answer = await app.inject({ method, url, headers, ...(method === 'POST' && { payload: '{bad' }) })
      isProblem(t, answer, 401, 'unauthorized', `${method} ${url} ${JSON.stringify(headers)}`)
      t.match(answer.headers['www-authenticate'], challenge)
    }
  }
  await refused({}, /^Bearer$/)
  await refused({ authorization: '' }, /^Bearer$/)
  await refused({ 'x-api-key': secrets.alice }, /^Bearer$/)
  const invalid = /^Bearer error="invalid_token"$/
  for (const credential of [
    'Bearer unknown-secret-0123456789', `Bearer ${secrets.alice}x`, `Bearer ${secrets.alice.slice(0, -1)}`, `Bearer ${secrets.alice.toUpperCase()}`,
    `Bearer ${secrets.alice} ${secrets.alice}`, `Basic ${Buffer.from(`alice:${secrets.alice}`).toString('base64')}`,
    secrets.alice, `Bearer\t${secrets.alice}`, 'Bearer ', 'Bearer', 'Bearer __proto__', `Bearer ${'a'.repeat(8000)}`,
  ]) await refused({ authorization: credential }, invalid)
  isProblem(t, await app.inject({ method: 'POST', url: '/api/pass', headers: { 'content-type': 'application/json' }, payload: 'x'.repeat(5000) }), 401, 'unauthorized', 'before the body')
  isProblem(t, await app.inject({ method: 'GET', url: `/api/status/x?key=${secrets.alice}&access_token=${secrets.alice}` }), 401, 'unauthorized', 'not in the query')
  t.strictSame(await dump(), {})
})

t.test('a key without the scope is refused with the scope that is needed', async t => {
  const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', { task: 't' })).json()
  const before = await dump()
  const attempts = [['POST', '/api/pass', 'pass'], ['GET', `/api/catch/${id}`, 'catch'], ['POST', `/api/done/${id}`, 'catch']] as const
  for (const [method, path, scope] of attempts) {
    const answer = await call('approver', method, path, method === 'POST' ? '{bad' : undefined)
    isProblem(t, answer, 403, 'insufficient_scope', path)
    t.equal(answer.headers['www-authenticate'], `Bearer error="insufficient_scope", scope="${scope}"`)
  }
  t.strictSame(await dump(), before)
  t.equal((await call('approver', 'GET', `/api/status/${id}`)).statusCode, 200)
})

t.test('the scheme’s name may be in any case', async t => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR', 'Bearer ', 'bearer  ']) {
    const answer = await app.inject({ url: `/api/status/${randomId()}`, headers: { authorization: `${scheme} ${secrets.alice}` } })
    isProblem(t, answer, 404, 'not_found', scheme)
  }
  for (const scheme of ['bearers', 'xbearer', 'basic', 'Bearer:', 'bear er', '']) {
    const answer = await app.inject({ url: `/api/status/${randomId()}`, headers: { authorization: `${scheme} ${secrets.alice}` } })
    isProblem(t, answer, 401, 'unauthorized', scheme)
    t.equal(answer.headers['www-authenticate'], 'Bearer error="invalid_token"')
  }
})

t.test('the body is checked before the state', async t => {
  isProblem(t, await call('bob', 'POST', `/api/done/${randomId()}`, '{bad'), 400, 'invalid_request')
})

t.test('a remembered secret opens no other key', async t => {
  const caller = (agent: string) => callerOf('default', agent, ['pass'])
  const keys = new KeyRing([{ secret: 'one', caller: caller('a') }, { secret: 'another', caller: caller('b') }], noStoredKeys, quiet)
  for (let time = 0; time < 3; time++) {
    t.equal(keys.recall('one')?.caller.agent, 'a')
    t.equal(keys.recall('another')?.caller.agent, 'b')
    for (const wrong of ['', 'on', 'one ', 'One', digest('one')]) t.equal(await callerBy(keys, wrong), undefined)
  }
})

/** The error of a start with these settings. */
function complaint (env: Record<string, string>): string {
  try {
    loadConfig(env)
  } catch (error) {
    if (error instanceof SettingError) return error.message
    throw error
  }
  throw new Error(`taken: ${JSON.stringify(env)}`)
}

t.test('a wrong key setting names its variable and never shows a secret', t => {
  const secret = 'canary-0123456789'
  const wrong = [
    secret, `:${secret}`, `alice ${secret}`, `al ice:${secret}`, `a/b/c:${secret}`, `/alice:${secret}`, `tenant/:${secret}`, `${'a'.repeat(65)}:${secret}`,
    'alice:canary-tooshort'.slice(0, -1), `alice:${secret}:${secret}`, `alice:${secret}é`, `alice:${secret} x`, `ok:another-0123456789,alice=${secret}`, `älice:${secret}`,
  ]
  for (const variable of ['API_KEYS', 'APPROVER_KEYS', 'OPERATOR_KEYS', 'READER_KEYS']) {
    for (const text of wrong) {
      const message = complaint({ [variable]: text })
      t.ok(message.startsWith(`${variable}: `), message)
      t.notMatch(message, /canary|another|\n/)
    }
  }
  const others = [
    [complaint({ API_KEYS: `alice:${secret}`, APPROVER_KEYS: `bob:${secret}` }), /^API_KEYS, APPROVER_KEYS, OPERATOR_KEYS, READER_KEYS: .*alice.*bob/],
    [complaint({ API_KEYS: `alice:${secret}`, READER_KEYS: `bob:${secret}` }), /alice.*bob.* the same secret/],
    [complaint({ API_KEYS: `alice:${secret}`, READER_KEYS: `t/alice:${secret}` }), /alice.*t\/alice.* the same secret/],
    [complaint({ READER_KEYS: `bob:${secret},bob:${secret}` }), /bob.*bob.* the same secret/],
    [complaint({ API_KEYS: `bob:${secret}`, OPERATOR_KEYS: `bob:${secret}`, READER_KEYS: `bob:${secret}` }), /bob.*bob.* the same secret/],
    [complaint({ APPROVER_KEYS: `bob:${secret}`, OPERATOR_KEYS: `bob:${secret}` }), /OPERATOR_KEYS, READER_KEYS: .*bob.*bob/],
    [complaint({ REDIS_URL: `http://user:${secret}@redis` }), /^REDIS_URL: /],
    [complaint({ BASE_URL: `https://user:${secret}@host?q` }), /^BASE_URL: /],
  ] as const
  for (const [message, shape] of others) {
    t.match(message, shape)
    t.notMatch(message, /canary/)
  }
  t.end()
})

t.test('keys are parsed as the contract writes them', t => {
  const { apiKeys } = loadConfig({ API_KEYS: `a:${'!'.repeat(16)}, t.1/B_-.9:${'~'.repeat(200)} ,`, APPROVER_KEYS: `${'n'.repeat(64)}:abc/def=#"\\{}0123`, OPERATOR_KEYS: 'acme/olga:0123456789abcdef', READER_KEYS: 'rita:0123456789fedcba,acme/olga:0123456789abcdef' })
  t.strictSame(apiKeys.map(({ caller }) => [caller.tenant, caller.agent, [...caller.scopes]]), [
    ['default', 'a', ['pass', 'catch', 'status']], ['t.1', 'B_-.9', ['pass', 'catch', 'status']], ['default', 'n'.repeat(64), ['approve', 'status']], ['acme', 'olga', ['operate', 'approve', 'status', 'read']], ['default', 'rita', ['read', 'status']],
  ])
  t.end()
})

t.test('wrong keys are counted, and after too many no other unknown key is looked up; a known one goes on', async t => {
  const [secret, wrong] = ['right-secret-0123456789', 'wrong-secret-0123456789']
  const keys = new KeyRing([{ secret, caller: callerOf('acme', 'ann', ['status']) }], noStoredKeys, quiet)
  let [counted, seconds] = [0, 0]
  const from = { blockedFor: async () => seconds, count: async () => counted++ }
  t.equal(await keys.find(wrong, from), undefined)
  t.equal(counted, 1)
  seconds = 7
  const headers = { 'retry-after': '7', 'ratelimit-policy': '"failed-authentication";q=60;w=60' }
  await t.rejects(keys.find(wrong, from), { code: 'rate_limited', more: { headers } })
  t.equal(keys.recall(secret)?.caller.agent, 'ann')
  t.equal(counted, 1)
  t.match(keys.counts, { refused: 1, throttled: 1 })
})
