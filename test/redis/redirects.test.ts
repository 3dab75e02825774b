import { setTimeout as sleep } from 'node:timers/promises'
import slotOf from 'cluster-key-slot'
import t from 'tap'
import { Unavailable } from '../../src/core/errors.ts'
import { randomToken, tags } from '../../src/core/ids.ts'
import type { HandoffPlace } from '../../src/store/handoffs.ts'
import { callBudget } from '../../src/redis/lanes.ts'
import { info } from '../faults/fleet/ask.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import type { ClusterFleet } from '../faults/fleet/cluster.ts'
import { freePort } from '../faults/fleet/ports.ts'
import { loopback } from '../faults/fleet/process.ts'
import type { RedisServer } from '../faults/fleet/redis.ts'
import { timeRun } from '../helpers/clock.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { done, newPlace, pass, payload, placeIn, untilServing } from '../helpers/handoffs.ts'
import { beginMove, migrate } from '../helpers/moving-slot.ts'
import { fleetStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

/** How often this server has refused with this error. */
async function refusals (server: RedisServer, word: string): Promise<number> {
  const line = (await info(server, 'errorstats'))[`errorstat_${word}`]
  return Number(/count=(\d+)/.exec(line ?? 'count=0')![1])
}

const handoffKey = ({ tag, tenant, id }: HandoffPlace) => `handoff:{${tag}}:h:${tenant}:${id}`
const dueKey = ({ tag, tenant }: HandoffPlace) => `handoff:{${tag}}:due:${tenant}`

t.test('three masters', async t => {
  const cluster = await startCluster(t, { replicas: 0, nodeTimeoutMs: 1000 })
  const dead = `127.0.0.1:${await freePort(loopback)}`
  const { handoffs, whyNotReady } = fleetStore(t, `redis+cluster://${dead},${cluster.servers[1]!.at}`)
  await untilServing(handoffs)
  let last = 0
  /** An unused partition; they are spread over all slots. */
  const freshPlace = () => placeIn(tags[(last += 97) % tags.length]!)

  await t.test('each master gets the calls of its own slots', async t => {
    const places = Array.from({ length: 150 }, () => newPlace())
    await Promise.all(places.map(place => pass(handoffs, place)))
    const caught = await Promise.all(places.map(place => handoffs.catch(place, randomToken(), 'bob')))
    t.ok(caught.every(({ outcome }) => outcome === 'caught'))
    for (const { admin } of cluster.servers) t.ok(await admin.dbsize() > 50)
    for (const server of cluster.servers) {
      t.equal(await refusals(server, 'MOVED'), 0)
      t.equal(await refusals(server, 'CROSSSLOT'), 0)
    }
  })

  await t.test('calls follow a slot that moves while it is used', async t => {
    const place = freshPlace()
    const { from, to, slot } = await move(cluster, place)
    const work = { over: false, rounds: 0 }
    const agent = async () => {
      while (!work.over) {
        const mine = placeIn(place.tag)
        await pass(handoffs, mine)
        t.match(await handoffs.catch(mine, randomToken(), 'bob'), { outcome: 'caught' })
        t.match(await handoffs.status(mine), { record: { status: 'caught' } })
        t.match(await done(handoffs, mine), { outcome: 'done' })
        work.rounds++
      }
    }
    const agents = Array.from({ length: 4 }, agent)
    const goesOn = async () => {
      const { rounds } = work
      await until(() => work.rounds > rounds + 20)
    }
    await goesOn()
    t.ok(await cluster.moveSlot(slot, to) > 0, 'with keys')
    await goesOn()
    await cluster.moveSlot(slot, from)
    await goesOn()
    work.over = true
    await Promise.all(agents)
    const sentOn = await Promise.all(['MOVED', 'ASK', 'TRYAGAIN'].map(word => refusals(from, word)))
    t.ok(sentOn.some(count => count > 0), `${work.rounds} rounds, sent on ${sentOn.join(', ')} times`)
  })

  await t.test('a handoff is served when it has moved and its slot has not', skipInQuick, async t => {
    const place = freshPlace()
    const { from, to, begin, migrate } = await move(cluster, place)
    await pass(handoffs, place)
    await begin()
    await migrate(handoffKey(place), dueKey(place))
    const before = await refusals(from, 'ASK')
    t.match(await handoffs.status(place), { outcome: 'found' })
    t.match(await handoffs.catch(place, randomToken(), 'bob'), { outcome: 'caught' })
    t.match(await done(handoffs, place), { outcome: 'done' })
    t.ok(await refusals(from, 'ASK') - before >= 3)
    t.ok(await to.admin.dbsize() > 0)
    // If the new master lacks the script, NOSCRIPT uses up the ASKING, and the call is redirected once more.
    await to.admin.script('FLUSH')
    t.match(await handoffs.status(place), { record: { status: 'done' } })
  })

  await t.test('a handoff with half of its keys moved waits until the other half is there', skipInQuick, async t => {
    const [place, other] = [freshPlace(), freshPlace()]
    const { from, slot, to, begin, migrate } = await move(cluster, place)
    const neighbour = placeIn(place.tag)
    await Promise.all([pass(handoffs, place), pass(handoffs, neighbour)])
    await begin()
    await migrate(handoffKey(place))
    const before = await refusals(from, 'TRYAGAIN')
    const caught = handoffs.catch(place, randomToken(), 'bob')
    const passed = pass(handoffs, placeIn(place.tag))
    t.match(await pass(handoffs, other), { outcome: 'passed' }, 'others don’t')
    await sleep(300)
    t.ok(await refusals(from, 'TRYAGAIN') > before)
    await cluster.moveSlot(slot, to)
    t.match(await caught, { outcome: 'caught' })
    t.match(await passed, { outcome: 'passed' })
  })

  await t.test('the sweep misses nothing of a moving slot', skipInQuick, async t => {
    const place = freshPlace()
    const { slot, to, begin, migrate } = await move(cluster, place)
    await pass(handoffs, place, 200)
    await begin()
    await migrate(handoffKey(place))
    await sleep(250)
    const swept = handoffs.sweep(place.tag, 10)
    await sleep(200)
    await cluster.moveSlot(slot, to)
    t.match(await swept, { lookedAt: 1, expired: 1 })
    t.match(await handoffs.status(place), { record: { status: 'expired' } })
  })

  await t.test('the sweep misses nothing when the due index moves before the handoffs', skipInQuick, async t => {
    const place = freshPlace()
    const { slot, to, begin, migrate } = await move(cluster, place)
    await handoffs.pass({ ...place, token: '-', passedBy: 'alice', requireHuman: true, options: ' l2 hdigest', expiresIn: 200, payload })
    const waiting = `handoff:{${place.tag}}:w:default`
    await begin()
    for (const key of [dueKey(place), `handoff:{${place.tag}}:tenants`]) await migrate(key)
    await sleep(250)
    const isDue = () => to.admin.zscore(dueKey(place), `default:${place.id}`)
    t.match(await handoffs.sweep(place.tag, 10), { lookedAt: 1, expired: 0 }, 'it isn’t there')
    await migrate(handoffKey(place))
    await until(async () => (await handoffs.sweep(place.tag, 10)).expired === 1)
    await cluster.moveSlot(slot, to)
    t.equal(await to.admin.hstrlen(handoffKey(place), 'p'), 0, 'its payload is freed')
    t.strictSame(await to.admin.zrange(waiting, '0', '-1'), [`default:${place.id}`], 'it came over after the sweep')
    await until(async () => {
      await handoffs.sweep(place.tag, 10)
      return await isDue() === null
    })
    t.equal(await to.admin.exists(waiting), 0, 'and leaves the list as well')
  })

  await t.test('two masters that redirect to each other do not cause an endless loop', skipInQuick, async t => {
    const place = freshPlace()
    const { from, to, begin } = await move(cluster, place)
    await begin(false)
    const began = timeRun()
    await t.rejects(pass(handoffs, place), Unavailable)
    t.ok(timeRun() - began < 2 * callBudget)
    const sent = await refusals(to, 'MOVED')
    t.ok(sent < 200, `${sent} times`)
    await from.admin.call('CLUSTER', 'SETSLOT', slotOf(place.tag), 'STABLE')
    t.match(await pass(handoffs, place), { outcome: 'passed' })
  })

  await t.test('a Cluster with too few masters is unavailable, and readiness says why', skipInQuick, async t => {
    const [here, away, gone] = cluster.servers as [RedisServer, RedisServer, RedisServer]
    const place = placeIn(tags[0]!)
    t.equal(await cluster.ownerOf(slotOf(place.tag)), here)
    away.pause()
    gone.pause()
    t.teardown(() => [away, gone].forEach(server => server.resume()))
    let refused: unknown
    while (!/CLUSTERDOWN/.test(String(refused))) refused = await pass(handoffs, placeIn(place.tag)).catch((error: unknown) => error)
    t.ok(refused instanceof Unavailable)
    t.equal(await whyNotReady(), 'Redis Cluster is down: some of its slots have no master.')
    away.resume()
    gone.resume()
    await untilServing(handoffs, place)
    t.match(await pass(handoffs, place), { outcome: 'passed' })
  })
})

/** Moves the partition's slot from its master to another, step by step. */
async function move (cluster: ClusterFleet, { tag }: HandoffPlace) {
  const slot = slotOf(tag)
  const from = await cluster.ownerOf(slot)
  const to = cluster.servers.find(server => server !== from)!
  return {
    slot,
    from,
    to,
    /** @param asIsRight if false, the new master isn't told of the move */
    begin: async (asIsRight = true) => asIsRight
      ? await beginMove(slot, from, to)
      : await from.admin.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', await to.admin.cluster('MYID')),
    migrate: (...keys: string[]) => migrate(from, to, ...keys),
  }
}
