import { generateKeyPairSync } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { IssuerKeys } from '../../src/auth/issuer-keys.ts'
import { Unavailable } from '../../src/core/errors.ts'
import { parseIssuers } from '../../src/core/issuers.ts'
import { signingKey } from '../helpers/issuer.ts'
import { inVirtualTime } from '../helpers/virtual-time.ts'

/** When the keys of an issuer are fetched, and for how long they count, in virtual time. */

const second = 1000
const hour = 3600 * second
const issuer = 'https://id.example.com'
const keys = Object.fromEntries(await Promise.all(['a', 'b', 'c', 'd'].map(async kid => [kid, (await signingKey('ES256', { kid })).jwk] as const)))

/** What the issuer is like at a moment; `silent` never answers. */
interface Like { kids: string[], takes?: number, cacheControl?: string, status?: number, text?: string, location?: string, silent?: boolean, says?: string }

/** An issuer that is like `like`, and who asks it. */
function story (like: Like) {
  const asked: number[] = []
  const lines: string[] = []
  const log = (_fields: object, line: string) => { lines.push(line) }
  const isSaid = new Map<string, (jwks: Like) => unknown>([
    [`${issuer}/.well-known/openid-configuration`, ({ says = issuer }) => ({ issuer: says, jwks_uri: `${issuer}/keys` })],
    [`${issuer}/keys`, ({ kids }) => ({ keys: kids.map(kid => keys[kid]) })],
  ])
  const fetched = async (url: string, { redirect, signal }: { redirect: string, signal: AbortSignal }) => {
    if (url.endsWith('/keys')) asked.push(Math.round(performance.now() / second))
    const { takes = 10, cacheControl, status = 200, text, location, silent = false } = like
    if (silent) await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()))
    else await sleep(takes)
    signal.throwIfAborted()
    if (location !== undefined && redirect === 'error') throw new TypeError('fetch failed')
    const headers = { ...cacheControl !== undefined && { 'cache-control': cacheControl } }
    return new Response(text ?? JSON.stringify(isSaid.get(url)!(like)), { status, headers })
  }
  const timeout = (milliseconds: number) => {
    const end = new AbortController()
    setTimeout(() => end.abort(new Error('it took too long')), milliseconds)
    return end.signal
  }
  const [given] = parseIssuers(JSON.stringify([{ issuer, rules: [{ anyone: true, tenant: 'default', agent: 'a', scopes: ['pass'] }] }]), () => '')
  let changes = 0
  const known = new IssuerKeys(given!, { info: log, error: log } as never, () => { changes++ })
  /** What becomes of a token with this kid. */
  const token = async (kid: string): Promise<'known' | 'signature' | 'away'> => {
    try {
      for (let isRenewed = false; ; isRenewed = true) {
        if ((await known.find('ES256', kid)).some(key => key.kid === kid)) return 'known'
        if (isRenewed || !await known.renew(kid)) return 'signature'
      }
    } catch (error) {
      if (error instanceof Unavailable) return 'away'
      throw error
    }
  }
  /** Runs what happens to it, from its start to its end. */
  const tell = <T>(what: () => Promise<T>) => inVirtualTime(async () => {
    const before = { fetch: globalThis.fetch, timeout: AbortSignal.timeout }
    Object.assign(globalThis, { fetch: fetched })
    AbortSignal.timeout = timeout
    try {
      known.start()
      return await what()
    } finally {
      await known.stop()
      Object.assign(globalThis, { fetch: before.fetch })
      AbortSignal.timeout = before.timeout
    }
  })
  return { asked, lines, known, token, tell, changes: () => changes, change: (next: Like) => { like = next } }
}

t.test('keys are fetched again after an hour, and sooner where their answer says so, but not within 30 s', async t => {
  for (const [cacheControl, pause] of [
    [undefined, 3600], ['max-age=86400', 3600], ['public, max-age="600"', 600], ['Max-Age=10', 30], ['max-age=0', 30], ['no-cache', 30], ['private, no-store', 30],
    ['s-maxage=60', 3600], ['max-age=soon', 3600], ['max-age=99999999999999999999', 3600], ['x-no-cache-max-age=60', 3600],
  ] as const) {
    const { asked, tell, changes } = story({ kids: ['a'], takes: 0, ...cacheControl !== undefined && { cacheControl } })
    await tell(() => sleep(pause * 3 * second + second))
    t.strictSame(asked, [0, pause, pause * 2, pause * 3], cacheControl ?? 'nothing')
    t.equal(changes(), 4)
  }
})

t.test('an unknown kid has them fetched at once, and no more than once in 30 s', async t => {
  const { asked, token, tell, change } = story({ kids: ['a'] })
  const found = await tell(async () => {
    const found = [await token('a')]
    change({ kids: ['b'] })
    found.push(...await Promise.all([token('b'), token('b'), token('c')]))
    found.push(await token('a'))
    change({ kids: ['c'] })
    await sleep(29 * second)
    found.push(await token('c'))
    await sleep(2 * second)
    found.push(await token('c'), await token('d'))
    return found
  })
  t.strictSame(found, ['known', 'known', 'known', 'signature', 'signature', 'signature', 'known', 'signature'])
  t.strictSame(asked, [0, 0, 31], 'the first fetch doesn’t count')
})

t.test('what was fetched for a kid counts as renewed, and says when to fetch again', async t => {
  const { asked, token, tell, change } = story({ kids: ['a'] })
  await tell(async () => {
    await sleep(hour - second)
    change({ kids: ['b'], cacheControl: 'max-age=60' })
    await token('b')
    await sleep(130 * second)
  })
  t.strictSame(asked, [0, 3599, 3659, 3719])
})

t.test('a renewal doesn’t keep a kid from having them fetched', async t => {
  // It rotates every minute, just after it was asked.
  const { asked, token, tell, change } = story({ kids: ['a'], cacheControl: 'max-age=60' })
  const found = await tell(async () => {
    const found = []
    await sleep(second)
    for (const kids of [['a', 'b'], ['b', 'c'], ['c', 'd'], ['d', 'a']]) {
      change({ kids, cacheControl: 'max-age=60' })
      await sleep(5 * second)
      found.push(await token(kids[1]!), await token(kids[0]!))
      await sleep(55 * second)
    }
    return found
  })
  t.strictSame(found, Array(8).fill('known'))
  t.ok(asked.length <= 9, asked.join())
})

t.test('an issuer that is away at the start is asked again after 5 s', async t => {
  for (const [what, like] of Object.entries({
    'an error': { status: 500 },
    HTML: { text: '<!doctype html><p>Sign in' },
    'no object': { text: '[]' },
    'no keys': { text: JSON.stringify({ issuer, jwks_uri: `${issuer}/keys`, keys: {} }) },
    'another issuer': { says: `${issuer}/` },
    'a redirect': { location: 'https://elsewhere.example.com' },
    'too much': { text: `{"issuer":"${'x'.repeat(1_100_000)}"}` },
  } as Record<string, Partial<Like>>)) {
    const { token, tell, change, lines } = story({ kids: ['a'], takes: 0, ...like })
    const found = await tell(async () => {
      const found = [await token('a'), await token('a')]
      await sleep(4.9 * second)
      change({ kids: ['a'], takes: 0 })
      found.push(await token('a'))
      await sleep(0.2 * second)
      found.push(await token('a'))
      change({ kids: ['b'] })
      found.push(await token('b'))
      return found
    })
    t.strictSame(found, ['away', 'away', 'away', 'known', 'known'], what)
    t.strictSame(lines, ['an issuer’s keys could not be fetched', 'an issuer’s keys are known again'], what)
  }
})

t.test('an issuer that hangs is given up after 5 s, and asked again 5 s later', async t => {
  const { token, known, tell, change } = story({ kids: ['a'], silent: true })
  const took = await tell(async () => {
    const took: Array<[string, number]> = []
    const timed = async () => {
      const begun = performance.now()
      took.push([await token('a'), Math.round((performance.now() - begun) / second)])
    }
    await timed()
    await timed()
    await sleep(5 * second)
    await timed()
    change({ kids: ['a'] })
    await sleep(6 * second)
    await timed()
    // A service that stops waits for no issuer.
    change({ kids: ['a'], silent: true })
    await sleep(hour)
    const begun = performance.now()
    await known.stop()
    took.push(['stopped', Math.round((performance.now() - begun) / second)])
    return took
  })
  t.strictSame(took, [['away', 5], ['away', 0], ['away', 5], ['known', 0], ['stopped', 0]])
})

t.test('what is known of an issuer that is away counts on for 24 h, and then nothing does', async t => {
  const { asked, token, known, tell, change } = story({ kids: ['a'] })
  const found = await tell(async () => {
    await sleep(hour + second)
    change({ kids: ['b'], status: 500 })
    await sleep(hour)
    const found = [await token('a'), await token('b'), known.areKnown(performance.now())]
    await sleep(23 * hour - 5 * second)
    found.push(await token('a'), known.areKnown(performance.now()))
    await sleep(10 * second)
    found.push(await token('a'), known.areKnown(performance.now()))
    change({ kids: ['b'] })
    await sleep(6 * second)
    found.push(await token('b'), await token('a'), known.areKnown(performance.now()))
    return found
  })
  t.strictSame(found, ['known', 'away', true, 'known', true, 'away', false, 'known', 'signature', true])
  t.equal(asked.length, 4, 'of one that doesn’t say where its keys are, nobody asks for them')
})

t.test('a key that can’t verify a token is none, and hinders no other', async t => {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
  const { jwk: rsa } = await signingKey('RS256')
  const { jwk: curve } = await signingKey('ES256')
  const { jwk: edwards } = await signingKey('EdDSA')
  const offCurve = { ...curve, y: curve.x }
  const jwks = {
    keys: [
      publicKey.export({ format: 'jwk' }), offCurve, { kty: 'oct', k: 'c2VjcmV0' }, { ...rsa, use: 'enc' }, { ...rsa, key_ops: ['sign'] }, { ...rsa, alg: 'RSA-OAEP' }, { ...rsa, n: undefined }, { ...curve, crv: 'secp256k1' },
      { ...edwards, crv: 'X25519' }, {}, { ...rsa, kid: 'rsa', use: 'sig', key_ops: ['verify'], x5c: ['no'] }, { ...rsa, kid: 'ps', alg: 'PS256' }, { ...curve, kid: 'ec', alg: 'ES256' }, { ...edwards, kid: 'ed', alg: 'Ed25519' },
    ],
  }
  const [given] = parseIssuers(JSON.stringify([{ issuer, jwks, rules: [{ anyone: true, tenant: 'default', agent: 'a', scopes: ['pass'] }] }]), () => '')
  const known = new IssuerKeys(given!, { info () {}, error () {} } as never, () => {})
  const found = async (algorithm: string) => (await known.find(algorithm, undefined)).map(({ kid }) => kid)
  t.strictSame(await Promise.all(['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA', 'HS256', 'none', 'RSA-OAEP'].map(found)), [['rsa'], ['rsa', 'ps'], ['ec'], [], ['ed'], [], [], []])
  t.notOk(await known.renew('another'), 'keys that are given are not fetched')
})
