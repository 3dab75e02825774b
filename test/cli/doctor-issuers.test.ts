import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { handoff, parsed } from '../helpers/command.ts'
import { signingKey, testIssuer } from '../helpers/issuer.ts'
import { usedRedis } from '../helpers/redis.ts'

interface Told { level: string, name: string, saw: string, server: string | null, set: string | null, why: string | null }

/** What `handoff doctor` says of issuers. */

const { url: REDIS_URL } = await usedRedis(t)
const rule = { when: { team: 'x' }, tenant: 'default', agent: 'x', scopes: ['pass'] }

async function examine (issuers: object[]) {
  const ended = await handoff(['doctor', '--json'], { env: { REDIS_URL, ISSUERS: JSON.stringify(issuers) } })
  const { ok, findings } = parsed<{ ok: boolean, findings: Told[] }>(ended)
  return { code: ended.code, ok, found: findings.filter(({ name }) => name.startsWith('issuer ')) }
}

t.test('an issuer’s keys are asked for, and each that can’t be used has its reason', async t => {
  const [one, two, wide] = await Promise.all([signingKey('ES256', { kid: 'one' }), signingKey('RS256'), signingKey('ES384', { kid: 'wide' })])
  const short = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' })
  const issuer = await testIssuer(t, [one.jwk, two.jwk], '/tenant')
  issuer.cacheControl = 'max-age=600'
  const name = `issuer ${issuer.url}`
  t.match(await examine([{ issuer: issuer.url, rules: [rule] }]), {
    code: 0, ok: true, found: [{ level: 'ok', name, saw: /^2 keys that can be used \("one", without a kid\), fetched; the service fetches them again after (10 min|9 min 59 s)$/, server: null }]
  })
  t.strictSame(issuer.asked, ['/tenant/.well-known/openid-configuration', '/tenant/keys'])
  issuer.keys = [one.jwk, wide.jwk, { ...short, kid: 'short' }, { kty: 'oct', k: 'c2VjcmV0', kid: 'secret' }, { ...two.jwk, use: 'enc' }, { ...one.jwk, kid: '\u001b[2J', key_ops: ['sign'] }, { kty: 'EC', crv: 'P-256', x: 'no', y: 'no', kid: 'no' }, 7] as typeof issuer.keys
  const { code, found: [usable, unusable] } = await examine([{ issuer: issuer.url, rules: [rule] }])
  t.equal(code, 0)
  t.match(usable, { level: 'ok', saw: /^1 key that can be used \("one"\)/ })
  t.match(unusable, { level: 'note', name })
  for (const part of [
    /^7 keys that can’t be used/, /"short": it has 1024 bits/, /"secret": keys of its kind \("oct"\) are not taken/, /without a kid: its use is "enc"/, /"\\u001b\[2J": its key_ops have no verify/,
    /"no": \w/, /without a kid: it is no JSON object/, /"wide": none of the algorithms is for it/
  ]) t.match(unusable!.saw, part)
  issuer.keys = [wide.jwk]
  t.match(await examine([{ issuer: issuer.url, rules: [rule] }]), { code: 1, ok: false, found: [{ level: 'error', saw: 'it has no key that can be used' }, { level: 'note' }] })
  t.match(await examine([{ issuer: issuer.url, algorithms: ['ES384'], rules: [rule] }]), { code: 0, found: [{ level: 'ok', saw: /^1 key that can be used \("wide"\)/ }] })
})

t.test('one that is away is an error with its reason, and the others are told all the same', async t => {
  const key = await signingKey('ES256', { kid: 'one' })
  const [well, silent, other] = await Promise.all([testIssuer(t, [key.jwk]), testIssuer(t, []), testIssuer(t, [])])
  const metadata = '/.well-known/openid-configuration'
  const given = { issuer: 'https://id.example.com', jwks: { keys: [key.jwk] }, rules: [rule] }
  silent.answers[metadata] = () => {}
  other.answers[metadata] = response => response.end('\u001b[2J{')
  const { code, found } = await examine([{ issuer: 'http://127.0.0.1:1', rules: [rule] }, { issuer: silent.url, rules: [rule] }, { issuer: other.url, rules: [rule] }, { issuer: well.url, rules: [rule] }, given])
  t.equal(code, 1)
  t.match(found, [
    { level: 'error', name: 'issuer http://127.0.0.1:1', saw: /^its keys can’t be had: fetch failed: /, set: /jwks_uri/, why: /503/ },
    { level: 'error', saw: /^its keys can’t be had: The operation was aborted due to timeout$/ },
    { level: 'error', saw: /^its keys can’t be had: .*JSON/ },
    { level: 'ok', saw: /^1 key that can be used/ },
    { level: 'ok', saw: '1 key that can be used ("one"), in ISSUERS' },
  ])
  t.notOk(found[2]!.saw.includes('\u001b'))
})

t.test('whether people can sign in is told too, also where its keys are given', async t => {
  const key = await signingKey('ES256', { kid: 'one' })
  const [well, lacking] = await Promise.all([testIssuer(t, [key.jwk]), testIssuer(t, [key.jwk])])
  const metadata = '/.well-known/openid-configuration'
  well.answers[metadata] = response => response.end(JSON.stringify({ issuer: well.url, authorization_endpoint: `${well.url}/auth?tenant=1`, token_endpoint: `${well.url}/token` }))
  lacking.answers[metadata] = response => response.end(JSON.stringify({ issuer: lacking.url, authorization_endpoint: `${lacking.url}/auth`, token_endpoint: 'http://192.0.2.1/token' }))
  const jwks = { keys: [key.jwk] }
  const given = ({ url }: { url: string }) => ({ issuer: url, jwks, sign_in: { client_id: 'handoff', label: 'Sign in', rules: [rule] } })
  const { code, found } = await examine([given(well), given(lacking), { ...given(well), issuer: 'http://127.0.0.1:1' }])
  t.equal(code, 0, 'tokens and keys are taken all the same')
  t.match(found, [
    { level: 'ok', saw: /^1 key/ }, { level: 'ok', name: `issuer ${well.url}`, saw: 'it has what people need to sign in' },
    { level: 'ok', saw: /^1 key/ }, { level: 'warning', name: `issuer ${lacking.url}`, saw: 'people can’t sign in: its metadata has no token_endpoint that may be asked', set: /sign_in/, why: /button/ },
    { level: 'ok', saw: /^1 key/ }, { level: 'warning', saw: /^people can’t sign in: fetch failed: / },
  ])
})

t.test('a prefix that ends in no separator is warned of', async t => {
  const key = await signingKey('ES256')
  const rules = [
    { ...rule, when: { repository: ['acme*', 'acme/*', 'acme-*', 'acme_*', 'acme:*', 'Ärmelä*', 'v1*'], ref: 'refs/heads/main' } },
    { ...rule, when: { '/org~1unit/name': 'x.*', 'owner.id': 'y*' } },
  ]
  const signIn = { client_id: 'c', label: 'l', rules: [{ ...rule, when: { email: 'ann*' } }] }
  const { code, ok, found } = await examine([{ issuer: 'http://127.0.0.1:1', jwks: { keys: [key.jwk] }, rules, sign_in: signIn }])
  t.strictSame([code, ok], [0, true])
  t.strictSame(found.filter(({ level }) => level === 'warning').map(({ saw }) => saw), [
    'rule 0 takes any repository that begins with "acme"', 'rule 0 takes any repository that begins with "Ärmelä"', 'rule 0 takes any repository that begins with "v1"',
    'rule 1 takes any owner.id that begins with "y"', 'rule 0 of sign_in takes any email that begins with "ann"', found.at(-1)!.saw,
  ])
  t.match(found[1], { name: 'issuer http://127.0.0.1:1', set: /"acme\/\*"$/, why: /"acme-evil"/ })
})
