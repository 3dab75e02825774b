import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Unavailable } from '../../src/core/errors.ts'
import { tags } from '../../src/core/ids.ts'
import { callBudget } from '../../src/redis/lanes.ts'
import type { Lanes } from '../../src/redis/lanes.ts'
import type { ScriptRequest } from '../../src/redis/call.ts'
import type { Scripts } from '../../src/redis/scripts.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import { LiveHandoffs } from '../../src/store/live.ts'
import { inVirtualTime } from '../helpers/virtual-time.ts'

/** Counts in a Cluster of three masters, in virtual time. What Redis does is made up. */

const masters = ['one', 'two', 'three'] as const
type Master = typeof masters[number]
const masterOf = (tag: string): Master => masters[tags.indexOf(tag) % masters.length]!
const sizeOf = (master: Master) => tags.filter(tag => masterOf(tag) === master).length

/** Each partition has so many live handoffs. `takes`: how long a call to a master takes (ms). `away`: those without a connection. */
function counting () {
  const cluster = { live: 1, takes: { one: 1, two: 1, three: 1 } as Record<Master, number>, away: new Set<Master>(), asked: { one: 0, two: 0, three: 0 }, underWay: 0, most: 0 }
  const call = async ({ tag, decode }: ScriptRequest<number>) => {
    const master = masterOf(tag)
    cluster.asked[master]++
    cluster.most = Math.max(cluster.most, ++cluster.underWay)
    const isLate = cluster.takes[master] > callBudget
    await sleep(Math.min(cluster.takes[master], callBudget))
    cluster.underWay--
    if (isLate) throw new Unavailable('silent')
    return decode(['counted', cluster.live])
  }
  const lanes = { call, reaches: (tag: string) => !cluster.away.has(masterOf(tag)) } as unknown as Lanes
  return { cluster, live: new LiveHandoffs(lanes, { count: {} } as Scripts, new KeyNames('p'), tags, false, masterOf) }
}

t.test('a silent master holds up a count by 2 s, and is asked once; it counts as it was', async t => {
  const told = await inVirtualTime(async () => {
    const { cluster, live } = counting()
    const first = await live.count('acme', null)
    const { most } = cluster
    Object.assign(cluster, { live: 2, takes: { one: 1, two: 1, three: Infinity }, asked: { one: 0, two: 0, three: 0 } })
    const begun = performance.now()
    const later = await live.count('acme', null)
    return { first, most, later, took: performance.now() - begun, asked: cluster.asked }
  })
  t.equal(told.first, tags.length)
  t.ok(told.most <= 66, 'few calls at once')
  t.equal(told.later, 2 * sizeOf('one') + 2 * sizeOf('two') + sizeOf('three'))
  t.equal(told.took, callBudget)
  t.match(told.asked, { one: sizeOf('one'), two: sizeOf('two') })
  t.ok(told.asked.three <= 22, 'its other partitions aren’t asked for')
})

t.test('what was never counted counts as none: a master that is away hits its own partitions alone', async t => {
  const told = await inVirtualTime(async () => {
    const { cluster, live } = counting()
    cluster.takes.three = Infinity
    const silent = await live.count('acme', null)
    cluster.away.add('three')
    const begun = performance.now()
    const away = await live.count('other', 'ann')
    const took = performance.now() - begun
    cluster.away.clear()
    cluster.takes.three = 1
    return { silent, away, took, back: await live.count('acme', null) }
  })
  t.equal(told.silent, sizeOf('one') + sizeOf('two'))
  t.equal(told.away, told.silent)
  t.ok(told.took < 100, 'without a connection it isn’t waited for')
  t.equal(told.back, tags.length)
})

t.test('a count of slow masters ends all the same, with what is known by then', async t => {
  const told = await inVirtualTime(async () => {
    const { cluster, live } = counting()
    cluster.takes = { one: 500, two: 500, three: 500 }
    const count = await live.count('acme', null)
    const { asked: { one } } = cluster
    const took = performance.now()
    await sleep(5000)
    return { count, took, one, later: cluster.asked.one }
  })
  t.equal(told.took, callBudget)
  t.ok(told.count > 0 && told.count < tags.length)
  t.equal(told.later, told.one, 'it doesn’t go on')
})

t.test('a master that refuses is asked no more in that count', async t => {
  const asked = { one: 0, three: 0 }
  const call = ({ tag }: ScriptRequest<number>) => {
    if (masterOf(tag) === 'two') return Promise.resolve(1)
    asked[masterOf(tag) as 'one' | 'three']++
    return Promise.reject(new Unavailable('BUSY'))
  }
  const lanes = { call, reaches: () => true } as unknown as Lanes
  t.equal(await new LiveHandoffs(lanes, { count: {} } as Scripts, new KeyNames('p'), tags, false, masterOf).count('acme', null), sizeOf('two'))
  t.strictSame(asked, { one: 22, three: 22 })
})

t.test('any other fault is the count’s', async t => {
  const { live, cluster } = counting()
  cluster.takes.two = 0
  const lanes = { call: () => Promise.reject(new Error('a wrong reply')), reaches: () => true } as unknown as Lanes
  await t.rejects(new LiveHandoffs(lanes, { count: {} } as Scripts, new KeyNames('p'), tags, false, masterOf).count('acme', null), { message: 'a wrong reply' })
  t.equal(await live.count('acme', null), tags.length)
})
