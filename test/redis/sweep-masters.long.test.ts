import t from 'tap'
import { randomId, tags } from '../../src/core/ids.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import { untilServing, placeIn } from '../helpers/handoffs.ts'
import { fleetStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

t.test('each master of a Cluster gets two sweeping calls at once', async t => {
  const cluster = await startCluster(t, { masters: 2, replicas: 0 })
  const { handoffs, sweeper } = fleetStore(t, cluster.url)
  // Neighbours that the sweep looks at together; the first half of all is at one master.
  const partitions = tags.slice(504, 520)
  for (const tag of partitions) await untilServing(handoffs, placeIn(tag))
  await Promise.all(partitions.flatMap(tag => Array.from({ length: 100 }, () => {
    const place = { ...placeIn(tag), id: tag + randomId().slice(tag.length) }
    return handoffs.pass({ ...place, token: '-', passedBy: 'alice', requireHuman: false, options: '', expiresIn: 1, payload: Buffer.from('"task":"t"') })
  })))
  const sweep = handoffs.sweep.bind(handoffs)
  const [one, other] = [{ calls: new Set<symbol>(), most: 0 }, { calls: new Set<symbol>(), most: 0 }]
  const left = new Set(partitions)
  const glanced = new Set<string>()
  let allGlanced!: () => void
  const untilAllGlanced = new Promise<void>(resolve => { allGlanced = resolve })
  let most = 0
  await new Promise<void>(resolve => {
    handoffs.sweep = async (tag, limit, naming) => {
      // First calls have a smaller limit, and go to all partitions of a part.
      if (limit < 40) {
        const swept = await sweep(tag, limit, naming)
        if (!left.has(tag) || swept.lookedAt < limit) return swept
        // All that find more return together, so that both masters have much to do from the same tick on, also if one of them is slow.
        if (glanced.add(tag).size === partitions.length) allGlanced()
        await untilAllGlanced
        return swept
      }
      const master = tags.indexOf(tag) < tags.length / 2 ? one : other
      const call = Symbol(tag)
      const ended = () => master.calls.delete(call)
      master.most = Math.max(master.most, master.calls.add(call).size)
      most = Math.max(most, one.calls.size + other.calls.size)
      // The sweeper waits so long. Its own timer is set after this one, and so fires after it.
      const patience = setTimeout(ended, 250)
      try {
        const swept = await sweep(tag, limit, naming)
        if (swept.lookedAt < limit) left.delete(tag)
        return swept
      } finally {
        clearTimeout(patience)
        ended()
        if (left.size === 0) resolve()
      }
    }
    sweeper.start()
  })
  t.strictSame({ one: one.most, other: other.most, both: most }, { one: 2, other: 2, both: 4 })
})

t.test('a master that is connected and acknowledges nothing doesn’t hold up the sweep of the others', async t => {
  const { servers: [first, , replicaOfFirst], url } = await startCluster(t, { masters: 2, replicas: 1 })
  const { handoffs, sweeper } = fleetStore(t, url, { replicas: 1 })
  const [here, there] = [tags.slice(0, tags.length / 2), tags.slice(tags.length / 2)]
  const itsOwn = new Set(here)
  for (const tag of [here[0]!, there[0]!]) await untilServing(handoffs, placeIn(tag))
  await replicaOfFirst!.kill()
  await until(async () => /^connected_slaves:0\r$/m.test(await first!.admin.info('replication')))
  const sweep = handoffs.sweep.bind(handoffs)
  const asked = { here: 0, there: 0 }
  const acknowledged = new Set<string>()
  handoffs.sweep = async (tag, limit, naming) => {
    asked[itsOwn.has(tag) ? 'here' : 'there']++
    const swept = await sweep(tag, limit, naming)
    acknowledged.add(tag)
    return swept
  }
  sweeper.start()
  await until(() => asked.there >= 2 * there.length)
  t.ok(asked.here < asked.there / 2, `${asked.here} calls went to it, while ${asked.there} went to the other master`)
  t.ok(there.every(tag => acknowledged.has(tag)))
  await replicaOfFirst!.restart()
  await until(() => here.every(tag => acknowledged.has(tag)))
})
