import t from 'tap'
import type { Test } from 'tap'
import { BadToken } from '../../src/auth/token-check.ts'
import { TokenRing } from '../../src/auth/token-ring.ts'
import { Unavailable } from '../../src/core/errors.ts'
import { parseIssuers } from '../../src/core/issuers.ts'
import { signingKey, testIssuer } from '../helpers/issuer.ts'
import { until } from '../helpers/until.ts'

/** What is remembered of tokens. */

const key = await signingKey('ES256', { kid: 'one' })
const now = () => Math.floor(Date.now() / 1000)

/** A ring that no Redis is behind. */
function ringFor (t: Test, url: string, jwks?: object) {
  const issuers = parseIssuers(JSON.stringify([{ issuer: url, audience: 'us', jwks, rules: [{ anyone: true, tenant: 'default', agent: { claim: 'sub' }, scopes: ['pass'] }] }]), () => '')
  const log = { isRecent: () => true, timeAt: () => Date.now(), follow () {} }
  const output = { info () {}, warn () {}, error () {} }
  const ring = new TokenRing({ issuers, baseUrl: () => '', ring: { blocks: { isKnown: true, readAt: 0, isBlocked: () => false }, log } as never, output: output as never })
  ring.start()
  t.teardown(() => ring.checker.stop())
  return ring
}

t.test('a token is known by all of its text, and costs no signature again', async t => {
  const ring = ringFor(t, 'https://id.example.com', { keys: [key.jwk] })
  const tokens = await Promise.all(Array.from({ length: 1100 }, (_, n) => key.sign({ iss: 'https://id.example.com', aud: 'us', sub: `s${n}`, exp: now() + 60 })))
  // At most 500 signatures are checked in a second.
  await Promise.all(tokens.map(token => ring.find(token, 'api').catch(() => undefined)))
  for (const token of tokens) await until(() => ring.find(token, 'api').catch(() => undefined))
  t.ok(ring.checker.counts.shed > 0)
  t.strictSame(tokens.map(token => ring.recall(token, 'api')?.caller.agent), tokens.map((_, n) => `s${n}`))
  const [one, other] = tokens.slice(-2) as [string, string]
  for (const changed of [`f${one.slice(1)}`, one.replace('.', '.A'), one.slice(0, -1), other.slice(0, -40) + one.slice(-40), one.slice(-32), '']) t.equal(ring.recall(changed, 'api'), undefined, changed)
  t.equal(ring.checker.counts.verified, 1100)
})

t.test('a token that was checked counts again, like others, once its key is back', async t => {
  const issuer = await testIssuer(t, [key.jwk])
  const ring = ringFor(t, issuer.url)
  const next = await signingKey('ES256', { kid: 'two' })
  const of = { iss: issuer.url, aud: 'us', exp: now() + 600 }
  const token = await key.sign({ ...of, sub: 'ann' })
  await ring.find(token, 'api')
  issuer.keys = [next.jwk]
  await ring.find(await next.sign({ ...of, sub: 'ben' }), 'api')
  t.equal(ring.recall(token, 'api'), undefined)
  await t.rejects(ring.find(token, 'api'), new BadToken('signature'))
  issuer.keys = [key.jwk, next.jwk]
  const before = performance.now.bind(performance)
  t.intercept(performance, 'now', { value: () => before() + 31_000 })
  t.equal((await ring.find(token, 'api')).caller.agent, 'ann')
  t.ok(ring.recall(token, 'api'))
})

t.test('a token that was checked waits, like others, for an issuer that was away for longer than a day', async t => {
  const issuer = await testIssuer(t, [key.jwk])
  const ring = ringFor(t, issuer.url)
  const token = await key.sign({ iss: issuer.url, aud: 'us', sub: 'ann', exp: now() + 90_000 })
  const grant = await ring.find(token, 'api')
  t.match(grant.caller, { tenant: 'default', agent: 'ann' })
  t.ok(ring.recall(token, 'api'))
  const ended: unknown[] = []
  await grant.onEnd({ ended: why => { ended.push(why) }, changed () {} })
  issuer.answers['/keys'] = response => response.writeHead(500).end()
  let later = 24 * 3600_000 - 10_000
  const before = performance.now.bind(performance)
  t.intercept(performance, 'now', { value: () => before() + later })
  ring.caughtUp()
  t.ok(ring.recall(token, 'api'))
  t.strictSame(ended, [])
  later += 20_000
  ring.caughtUp()
  t.match(ended, [Unavailable], 'nobody said that it doesn’t count')
  t.equal(ring.recall(token, 'api'), undefined)
  await t.rejects(ring.find(token, 'api'), Unavailable)
  await t.rejects(ring.find(await key.sign({ iss: issuer.url, aud: 'us', sub: 'ben', exp: now() + 90_000 }), 'api'), Unavailable)
  delete issuer.answers['/keys']
  await until(async () => ring.find(token, 'api').then(() => true, () => false))
})
