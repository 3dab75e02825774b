import t from 'tap'
import { testApp } from '../helpers/app.ts'
import { signingKey, testIssuer } from '../helpers/issuer.ts'
import { grown, scrape } from '../helpers/metrics.ts'
import { until } from '../helpers/until.ts'

/** What /metrics says of tokens and of those who issue them (docs/observability.md). */

const baseUrl = 'https://handoff.example.com'
const key = await signingKey('ES256', { kid: 'one' })
const rules = [{ when: { in: true }, tenant: 'default', agent: { claim: 'sub' }, scopes: ['pass', 'status'] }]

async function served (t: Parameters<typeof testApp>[0]) {
  const issuer = await testIssuer(t, [key.jwk])
  const away = await testIssuer(t, [])
  away.answers['/.well-known/openid-configuration'] = response => response.writeHead(500).end()
  const given = { issuer: 'https://id.example.com', jwks: { keys: [key.jwk] }, rules }
  const ISSUERS = JSON.stringify([{ issuer: issuer.url, rules }, { issuer: away.url, rules }, given])
  const { app, store } = await testApp(t, { ISSUERS, BASE_URL: baseUrl })
  const send = async (claims: object, sign = key.sign) => {
    const token = await sign({ iss: issuer.url, aud: baseUrl, sub: 'ann', exp: Math.floor(Date.now() / 1000) + 600, in: true, ...claims })
    return async () => (await app.inject({ url: '/api/whoami', headers: { authorization: `Bearer ${token}` } })).statusCode
  }
  return { app, store, issuer, away, send }
}

t.test('tokens are counted by how they were known, and by why they were refused', async t => {
  const { app, store, issuer, away, send } = await served(t)
  const before = await scrape(app)
  const good = await send({})
  t.strictSame([await good(), await good(), await good()], [200, 200, 200])
  const stranger = await signingKey('ES256', { kid: 'one' })
  for (const [claims, sign] of [[{ sub: 7 }], [{ iss: 'https://x' }], [{}, stranger.sign], [{ exp: 1 }], [{ aud: 'x' }], [{ in: false }]] as Array<[object, typeof key.sign]>) {
    t.equal(await (await send(claims, sign))(), 401)
  }
  t.equal(await (await send({ iss: away.url }))(), 503)
  await store.keyRecords.blocks.set(issuer.url, 'ann', 60_000, 'me@here')
  await until(async () => await good() === 401)
  const { '{reason="blocked"}': blocked, ...others } = named(grown(before, await scrape(app), /^handoff_tokens_refused_total/), 'handoff_tokens_refused_total')
  t.strictSame(others, Object.fromEntries(['malformed', 'issuer', 'signature', 'expiry', 'audience', 'rules'].map(reason => [`{reason="${reason}"}`, 1])))
  t.ok(blocked! >= 1)
  const more = grown(before, await scrape(app), /^handoff_token_/)
  t.equal(more.handoff_token_signatures_total, 5, 'that of the good token, of a stranger’s, and of the three that are right but for something else')
  t.ok(more['handoff_token_lookups_total{result="hit"}']! >= 2)
  t.equal(more['handoff_token_lookups_total{result="miss"}'], 8 + blocked!)
})

t.test('it tells of each issuer whether it answers, and how old its keys are', async t => {
  const { app, issuer, away } = await served(t)
  const told = await until(async () => {
    const told = await scrape(app)
    const areAsked = [issuer, away].every(({ url }) => told.has(`handoff_issuer_answers{issuer="${url}"}`))
    return areAsked ? told : null
  })
  t.strictSame(named(Object.fromEntries(told), 'handoff_issuer_answers'), { [`{issuer="${issuer.url}"}`]: 1, [`{issuer="${away.url}"}`]: 0 })
  const ages = named(Object.fromEntries(told), 'handoff_issuer_keys_age_seconds')
  t.strictSame(Object.keys(ages), [`{issuer="${issuer.url}"}`])
  t.ok(Object.values(ages)[0]! >= 0 && Object.values(ages)[0]! < 60)
})

t.test('without issuers there are no such figures', async t => {
  const { app } = await testApp(t)
  t.notMatch((await app.inject('/metrics')).body, /handoff_(token|issuer)/)
})

/** The samples of a family, by their labels. */
function named (told: Record<string, number>, family: string): Record<string, number> {
  return Object.fromEntries(Object.entries(told).filter(([sample]) => sample.startsWith(`${family}{`)).map(([sample, value]) => [sample.slice(family.length), value]))
}
