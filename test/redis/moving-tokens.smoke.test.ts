import slotOf from 'cluster-key-slot'
import t from 'tap'
import { tagOf, tags } from '../../src/core/ids.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import { startServiceReplica } from '../faults/fleet/service.ts'
import { testKeys, secrets } from '../helpers/app.ts'
import { signingKey } from '../helpers/issuer.ts'
import { untilServing } from '../helpers/handoffs.ts'
import { fleetStore } from '../helpers/redis.ts'
import { timed } from '../helpers/waits.ts'
import { until } from '../helpers/until.ts'

/** Waits with tokens of an issuer while slots of a Cluster move. */

const issuer = 'https://id.example.com'
const key = await signingKey('ES256')
const token = (sub: string) => key.sign({ iss: issuer, aud: 'us', sub, exp: Math.floor(Date.now() / 1000) + 600 })
const ISSUERS = JSON.stringify([{ issuer, audience: 'us', jwks: { keys: [key.jwk] }, rules: [{ anyone: true, tenant: 'default', agent: { claim: 'sub' }, scopes: ['pass', 'catch', 'status'] }] }])

t.test('a wait goes on while its handoff’s slot moves, and ends with a block while that of the keys does', { timeout: 120_000 }, async t => {
  const cluster = await startCluster(t, { replicas: 0, nodeTimeoutMs: 1000 })
  const store = fleetStore(t, cluster.url)
  await untilServing(store.handoffs)
  const { url } = await startServiceReplica(t, { env: { ...testKeys, REDIS_URL: cluster.url, ISSUERS } })
  const ask = async (secret: string, path: string, body?: object) => {
    const answer = await fetch(`${url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${secret}`, ...body !== undefined && { 'content-type': 'application/json' } },
      ...body !== undefined && { body: JSON.stringify(body) },
    })
    return { code: answer.status, why: answer.headers.get('www-authenticate'), json: await answer.json() as Record<string, any> }
  }
  const [ann, ben] = await Promise.all([token('ann'), token('ben')])
  /** Moves the slot to a master that doesn't have it. */
  const move = async (tag: string) => {
    const slot = slotOf(tag)
    const from = await cluster.ownerOf(slot)
    await cluster.moveSlot(slot, cluster.servers.find(server => server !== from)!)
  }
  const pass = async () => {
    const { handoff_id: id } = (await ask(ann, '/api/pass', { task: 't' })).json as { handoff_id: string }
    const { admin } = await cluster.ownerOf(slotOf(tagOf(id)))
    const waits = [ann, ben].map(secret => ask(secret, `/api/status/${id}?wait=30`))
    await until(async () => (await admin.call('PUBSUB', 'SHARDNUMSUB', `handoff:{${tagOf(id)}}:h:default:${id}`) as [string, number])[1] > 0)
    return { id, waits }
  }
  const first = await pass()
  await move(tagOf(first.id))
  t.equal((await ask(secrets.bob, `/api/catch/${first.id}`)).code, 200)
  t.equal((await ask(secrets.bob, `/api/done/${first.id}`, { output: {} })).code, 200)
  for (const wait of first.waits) t.match((await wait).json, { status: 'done' })
  const second = await pass()
  const moving = move(tags[0]!)
  const [answer, after] = await timed(async () => {
    await store.keyRecords.blocks.set(issuer, 'ann', Infinity, 'me')
    return await second.waits[0]!
  })
  t.match(answer.why, /error_description="blocked"/)
  t.ok(after < 4000, `after ${Math.round(after)} ms`)
  await moving
  t.match((await ask(ann, '/api/whoami')).why, /error_description="blocked"/)
  await move(tags[0]!)
  await store.keyRecords.blocks.set(issuer, 'ann', null, 'me')
  await until(async () => (await ask(ann, '/api/whoami')).code === 200, 5000)
  t.equal((await ask(ben, '/api/whoami')).code, 200)
  t.equal((await ask(secrets.bob, `/api/catch/${second.id}`)).code, 200)
  t.equal((await ask(secrets.bob, `/api/done/${second.id}`, { output: {} })).code, 200)
  t.match((await second.waits[1]!).json, { status: 'done' })
})
