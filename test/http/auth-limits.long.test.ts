import t from 'tap'
import { newKeyId, newSecret } from '../../src/store/api-keys.ts'
import { secrets, testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { form } from '../helpers/forms.ts'
import { isProblem } from '../helpers/problems.ts'
import { bearer, newKey, untilKnown } from '../helpers/stored-keys.ts'

const url = '/api/status/x'
/** A request with a key, from an address, perhaps with X-Forwarded-For. */
function from ({ app }: TestApp, remoteAddress: string, key: string, forwarded?: string) {
  return app.inject({ url, remoteAddress, headers: { ...bearer(key), ...forwarded !== undefined && { 'x-forwarded-for': forwarded } } })
}

async function failOften (service: TestApp, address: string, forwarded?: string, times = 60) {
  for (let n = 0; n < times; n++) {
    const { statusCode } = await from(service, address, `wrong-key-number-${n}`, forwarded)
    if (statusCode !== 401) throw new Error(`${statusCode} at ${n}`)
  }
}

t.test('an address that sent many wrong keys has to wait, and its good keys still work', async t => {
  const service = await testApp(t)
  await service.app.ready()
  const { keyRecords } = service.store
  const [known, unknown] = [await newKey(keyRecords), await newKey(keyRecords)]
  await untilKnown(service.keys, known.key)
  await failOften(service, '192.0.2.1')
  for (const wrong of ['wrong-key-of-no-kind', newSecret(newKeyId()), unknown.key]) {
    const answer = await from(service, '192.0.2.1', wrong)
    isProblem(t, answer, 429, 'rate_limited')
    const after = Number(answer.headers['retry-after'])
    t.ok(after > 0 && after <= 60)
    t.equal(answer.headers['ratelimit-policy'], '"failed-authentication";q=60;w=60')
    t.equal(answer.headers.ratelimit, `"failed-authentication";r=0;t=${after}`)
  }
  t.equal((await from(service, '192.0.2.1', known.key)).statusCode, 404, 'let in')
  t.equal((await from(service, '192.0.2.1', secrets.bob)).statusCode, 404, 'let in, though it comes for the first time')
  t.equal((await from(service, '192.0.2.2', 'wrong-key-of-no-kind')).statusCode, 401, 'another address')
  t.equal((await from(service, '192.0.2.2', unknown.key)).statusCode, 404)
  t.equal((await from(service, '192.0.2.1', unknown.key)).statusCode, 404, 'known by now')
  t.equal(service.keys.counts.throttled, 3)
  const signIn = await service.app.inject({ ...form('/approvals/sign-in', { key: 'wrong-key-of-no-kind' }), remoteAddress: '192.0.2.1' })
  t.equal(signIn.statusCode, 429, 'nor is the page a way round')
  t.ok(Number(signIn.headers['retry-after']) > 0)
})

t.test('an IPv6 network counts as one address', async t => {
  const service = await testApp(t)
  for (let n = 0; n < 60; n++) t.equal((await from(service, `2001:db8::${n}`, 'wrong-key-of-no-kind')).statusCode, 401)
  t.equal((await from(service, '2001:db8::ffff', 'wrong-key-of-no-kind')).statusCode, 429)
  t.equal((await from(service, '2001:db8:0:1::1', 'wrong-key-of-no-kind')).statusCode, 401)
})

t.test('only a trusted proxy’s X-Forwarded-For is believed', async t => {
  const service = await testApp(t, { TRUSTED_PROXIES: '10.0.0.0/8, 192.0.2.9,fd00::/8' })
  await failOften(service, '10.1.2.3', '198.51.100.1')
  const wrong = 'wrong-key-of-no-kind'
  t.equal((await from(service, '10.1.2.3', wrong, '198.51.100.1')).statusCode, 429)
  t.equal((await from(service, '192.0.2.9', wrong, '198.51.100.1')).statusCode, 429, 'by another proxy')
  t.equal((await from(service, 'fd00::1', wrong, '198.51.100.1')).statusCode, 429, 'by another proxy')
  t.equal((await from(service, '10.1.2.3', wrong, '198.51.100.2')).statusCode, 401, 'another client')
  t.equal((await from(service, '10.1.2.3', wrong, '198.51.100.7, 198.51.100.1')).statusCode, 429, 'what the client itself said is left of what the proxy says')

  await failOften(service, '203.0.113.5', undefined, 59)
  t.equal((await from(service, '203.0.113.5', wrong, '198.51.100.77')).statusCode, 401)
  t.equal((await from(service, '203.0.113.5', wrong, '198.51.100.78')).statusCode, 429, 'forged')
})
