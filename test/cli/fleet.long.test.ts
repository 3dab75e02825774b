import slotOf from 'cluster-key-slot'
import t from 'tap'
import { tags } from '../../src/core/ids.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import { startSentinelFleet } from '../faults/fleet/sentinel.ts'
import { builtHandoff, handoff, parsed } from '../helpers/command.ts'
import { pass, placeIn, untilServing } from '../helpers/handoffs.ts'
import { fleetStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

interface Findings { ok: boolean, findings: Array<{ level: string, name: string, saw: string, server: string | null }> }

/** Latency depends on the machine, and these servers have no limit of memory. */
const isOfServers = (name: string) => name !== 'latency' && name !== 'maxmemory'

async function examine (env: Record<string, string>) {
  const ended = await handoff(['doctor', '--json'], { env })
  const { findings } = parsed<Findings>(ended)
  return { code: ended.code, findings, bad: findings.filter(({ level, name }) => level === 'error' || (level === 'warning' && isOfServers(name))), all: (name: string) => findings.filter(finding => finding.name === name) }
}

t.test('Sentinel', async t => {
  const fleet = await startSentinelFleet(t, { replicas: 1, options: ['--min-replicas-to-write', '1'] })
  const env = { REDIS_URL: fleet.url, DURABILITY: 'replicas:1' }
  const store = fleetStore(t, fleet.url)
  const place = placeIn(tags[0]!)
  await untilServing(store.handoffs, place)
  await pass(store.handoffs, place)
  const { at } = await fleet.master()

  const made = parsed(await builtHandoff(['keys', 'create', '--name', 'a', '--scopes', 'pass', '--json'], { env }))
  t.match(parsed<object[]>(await handoff(['keys', 'list', '--json'], { env })), [{ id: made.id }])
  t.match(parsed(await handoff(['inspect', place.id, '--json'], { env })), { status: 'pending', master: at })

  const well = await examine(env)
  t.strictSame([well.code, well.bad], [0, []])
  t.match(well.all('sentinel').map(({ saw }) => saw).sort(), fleet.sentinels.map(sentinel => `${sentinel.at} answers`).sort())
  t.match(well.all('sentinels'), [{ level: 'ok', saw: '3, quorum 2' }])

  for (const { admin } of fleet.sentinels) await admin.call('SENTINEL', 'SET', fleet.name, 'down-after-milliseconds', 900)
  t.match((await examine(env)).all('down-after-milliseconds'), fleet.sentinels.map(() => ({ level: 'warning', saw: /^900 at / })))
  for (const { admin } of fleet.sentinels) await admin.call('SENTINEL', 'SET', fleet.name, 'down-after-milliseconds', 1100)

  await fleet.sentinels[1]!.kill()
  await fleet.sentinels[2]!.kill()
  // It says so only once it considers the others down.
  const alone = await until(async () => {
    const seen = await examine(env)
    return seen.all('quorum').length > 0 ? seen : undefined
  }, 30_000)
  t.match(alone, { code: 1, bad: [{ name: 'sentinel', level: 'warning' }, { name: 'sentinel' }, { name: 'quorum', level: 'error', saw: /NOQUORUM/ }] })
})

t.test('Cluster', async t => {
  const cluster = await startCluster(t, { replicas: 0 })
  const env = { REDIS_URL: cluster.url }
  const store = fleetStore(t, cluster.url)
  const places = [0, 1, 2].map(third => placeIn(tags[170 + third * 341]!))
  for (const place of places) {
    await untilServing(store.handoffs, place)
    await pass(store.handoffs, place)
    const { at } = await cluster.ownerOf(slotOf(place.tag))
    t.match(parsed(await handoff(['inspect', place.id, '--json'], { env })), { status: 'pending', master: at, slot: slotOf(place.tag), kept_until: /Z$/ })
  }
  const made = parsed(await handoff(['keys', 'create', '--name', 'a', '--scopes', 'pass', '--json'], { env }))
  t.match(await builtHandoff(['keys', 'revoke', String(made.id)], { env }), { code: 0 })

  const well = await examine(env)
  t.strictSame([well.code, well.bad], [0, []])
  t.equal(well.all('maxmemory-policy').length, 3, 'each master is looked at')
  t.match(well.all('slots'), [0, 1, 2].map(() => ({ level: 'ok', saw: 'all 16384 served by 3 masters' })))

  const [one, other] = cluster.servers
  await one!.admin.config('SET', 'cluster-require-full-coverage', 'yes')
  await one!.admin.config('SET', 'cluster-node-timeout', '15000')
  await one!.admin.config('SET', 'maxmemory-policy', 'volatile-ttl')
  const seen = await examine(env)
  t.match(seen.all('cluster-require-full-coverage').filter(({ level }) => level === 'warning'), [{ server: one!.at }])
  t.match(seen.all('cluster-node-timeout').filter(({ level }) => level === 'note'), [{ server: one!.at, saw: '15000', set: '5000' }])
  t.match(seen.all('maxmemory-policy').filter(({ level }) => level === 'error'), [{ server: one!.at }])
  t.equal(seen.code, 1)

  await one!.admin.config('SET', 'maxmemory-policy', 'noeviction')
  t.match(well.all('writes'), [0, 1, 2].map(() => ({ level: 'ok', saw: 'taken' })))
  for (const [setting, saw] of [['maxmemory', 'refused, because Redis is full'], ['min-replicas-to-write', 'Redis takes no writes because it has too few replicas.']] as const) {
    await one!.admin.config('SET', setting, 1)
    const refusing = await examine(env)
    t.match(refusing.all('writes').filter(({ level }) => level === 'error'), [{ server: one!.at, saw }], 'one master refuses writes')
    t.match(refusing.all('ready'), [{ level: 'ok' }])
    await one!.admin.config('SET', setting, 0)
  }

  await other!.admin.cluster('DELSLOTS', 16383, ...[8000, 8001])
  const holes = await examine(env)
  t.ok(holes.all('slots').some(({ level, saw }) => level === 'error' && /of 16384 have no master/.test(saw)))
})
