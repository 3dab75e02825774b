import slotOf from 'cluster-key-slot'
import t from 'tap'
import { buildApp } from '../../src/app.ts'
import { KeyRing } from '../../src/auth/key-ring.ts'
import { loadConfig } from '../../src/config.ts'
import { homeTag, inboxTag, tags } from '../../src/core/ids.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import type { ClusterFleet } from '../faults/fleet/cluster.ts'
import { secrets, testKeys } from '../helpers/app.ts'
import { noStoredKeys } from '../helpers/stored-keys.ts'
import type { Who } from '../helpers/app.ts'
import { placeIn, untilServing } from '../helpers/handoffs.ts'
import { logSink } from '../helpers/log-sink.ts'
import { fleetStore } from '../helpers/redis.ts'

const tenant = 'default'

/** The tenant's inboxes of which one has its home partition's master, the other one another; and the third master. */
async function inboxesOf (cluster: ClusterFleet) {
  const home = await cluster.ownerOf(slotOf(homeTag(tenant)))
  const names = Array.from({ length: 50 }, (_, n) => `work-${n}`)
  const owners = await Promise.all(names.map(name => cluster.ownerOf(slotOf(inboxTag(tenant, name)))))
  const at = owners.findIndex(owner => owner !== home)
  const third = cluster.servers.find(server => server !== home && server !== owners[at])!
  return { inboxes: [names[owners.indexOf(home)]!, names[at]!], third }
}

t.test('while one of three masters is silent, a tenant’s lists that need it keep nobody’s waiting that don’t', async t => {
  // Nothing takes its place, and the others don't give it up.
  const cluster = await startCluster(t, { replicas: 0, nodeTimeoutMs: 60_000 })
  const store = fleetStore(t, cluster.url)
  const { log } = logSink(t)
  const config = loadConfig(testKeys)
  const app = await buildApp(config, { store, keys: new KeyRing(config.apiKeys, noStoredKeys, log), log })
  t.teardown(() => app.close())
  for (const third of [0, 1, 2]) await untilServing(store.handoffs, placeIn(tags[170 + third * 341]!))
  const call = (who: Who, method: 'GET' | 'POST', url: string, payload?: object) =>
    app.inject({ method, url, headers: { authorization: `Bearer ${secrets[who]}` }, ...payload && { payload } })
  const { inboxes, third } = await inboxesOf(cluster)
  const lists = [
    ['alice', 'GET', '/api/handoffs'], ['approver', 'GET', '/api/asks'], ['approver', 'GET', '/api/approvals'], ['operator', 'POST', '/api/redrive']
  ] as const
  const listed = () => Promise.all(inboxes.flatMap(inbox => lists.map(async ([who, method, url]) => {
    const answer = await (method === 'GET' ? call(who, method, `${url}?inbox=${inbox}`) : call(who, method, url, { inbox }))
    return `${url} ${inbox} ${answer.statusCode}`
  })))
  const answered = inboxes.flatMap(inbox => lists.map(([,, url]) => `${url} ${inbox} 200`))
  t.strictSame(await listed(), answered)

  third.pause()
  // More than run at once. Each hangs until it is given up; what waited for that would be 503 too.
  const hanging = Array.from({ length: 4 }, () => call('foreignAlice', 'GET', '/api/handoffs'))
  t.strictSame(await listed(), answered)
  for (const answer of await Promise.all(hanging)) t.equal(answer.statusCode, 503)
  third.resume()
})
