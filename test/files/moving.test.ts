import { setTimeout as sleep } from 'node:timers/promises'
import slotOf from 'cluster-key-slot'
import t from 'tap'
import { homeTag, randomHomeId, tags } from '../../src/core/ids.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import { pass, placeIn, untilServing } from '../helpers/handoffs.ts'
import { beginMove, migrate } from '../helpers/moving-slot.ts'
import { fleetStore } from '../helpers/redis.ts'

/** Files whose keys move to another master, one by one. */

t.test('three masters', async t => {
  const cluster = await startCluster(t, { replicas: 0, nodeTimeoutMs: 1000 })
  const { files, handoffs } = fleetStore(t, `redis+cluster://${cluster.servers[0]!.at}`)
  await untilServing(handoffs)
  const moving = async (tag: string) => {
    const slot = slotOf(tag)
    const from = await cluster.ownerOf(slot)
    const to = cluster.servers.find(server => server !== from)!
    return { from, to, begin: () => beginMove(slot, from, to), migrate: (...keys: string[]) => migrate(from, to, ...keys), end: () => cluster.moveSlot(slot, to) }
  }
  /** A file of another tenant each time, so that each has its own partition. */
  const make = async (tenant: string) => {
    const id = randomHomeId(tenant)
    const { madeAt } = await files.make({ tenant, id, mark: 'm', agent: 'alice', bytes: 4, sha256: 'x', words: { name: 'a' }, token: 't', lasts: 1000, quota: 10 })
    await files.whole({ tenant, id, madeAt }, 1000)
    return { tenant, id, madeAt, bytes: 4 }
  }

  await t.test('no handoff that is on the other one is taken for gone', async t => {
    const place = placeIn(tags[100]!)
    const { from, to, begin, migrate, end } = await moving(place.tag)
    await pass(handoffs, place)
    await files.have('default', ['file'], place.id, 'input')
    const having = `handoff:{${place.tag}}:having:default:file`
    await from.admin.zadd(having, 1, `i:${place.id}`)
    await begin()
    await migrate(having)
    const asked = files.holders('default', 'file', place.tag)
    await sleep(300)
    await end()
    t.match(await asked, { waited: 0, holders: [{ id: place.id }] })
    t.equal(await to.admin.zcard(having), 1)
  })

  await t.test('who has a file is noted with the others', async t => {
    const [place, next] = [placeIn(tags[300]!), placeIn(tags[300]!)]
    const { to, begin, end } = await moving(place.tag)
    for (const file of ['one', 'two']) await files.have('default', [file], place.id, 'input')
    await begin()
    const noted = files.have('default', ['one', 'two'], next.id, 'input')
    await sleep(300)
    await end()
    await noted
    for (const file of ['one', 'two']) t.equal(await to.admin.zcard(`handoff:{${place.tag}}:having:default:${file}`), 2, file)
  })

  await t.test('a tenant’s last file is dropped whole', async t => {
    const file = await make('solo')
    const tag = homeTag('solo')
    const { from, to, begin, end } = await moving(tag)
    await begin()
    // What keeps it may be on the other one.
    const dropped = files.drop(file)
    await sleep(300)
    await end()
    t.equal(await dropped, 'dropped')
    for (const server of [from, to]) t.strictSame(await server.admin.keys(`handoff:{${tag}}:*`), [])
  })

  await t.test('tenants whose lists are empty, or come later, are in nobody’s way', async t => {
    const tenant = 'late'
    const file = await make(tenant)
    const tag = homeTag(tenant)
    const { from } = await moving(tag)
    const [tenants, list] = [`handoff:{${tag}}:files`, `handoff:{${tag}}:files:${tenant}`]
    await from.admin.zadd(tenants, ...Array.from({ length: 32 }, (_, n) => [0, `gone-${n}`]).flat() as [number, string])
    await from.admin.zadd(list, 1, `${file.id}:4`)
    await from.admin.zadd(tenants, 1, tenant)
    for (let round = 0; round < 2; round++) t.strictSame((await files.due(tag, 1)).due, [], 'they leave')
    t.match((await files.due(tag, 1)).due, [{ tenant, id: file.id }])
    t.strictSame(await from.admin.zrange(tenants, '0', '-1'), [tenant])
    await from.admin.zadd(list, 9e15, `${file.id}:4`)
    t.strictSame((await files.due(tag, 1)).due, [])
    t.strictSame(await from.admin.zrange(tenants, '0', '-1', 'WITHSCORES'), [tenant, '9000000000000000'])
  })
})
