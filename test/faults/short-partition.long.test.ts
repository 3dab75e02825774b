import t from 'tap'
import { whyNoNamespaces } from './fleet/net.ts'
import { partitions, runPartitions } from './scenarios/partition.ts'

const skip = await whyNoNamespaces() ?? false
const options = { skip, buffered: true }

// In parallel: they mostly wait, since Sentinels take 8 s to make a returning old master a replica.
t.jobs = 3

const named = (wanted: string) => partitions.find(({ name }) => name === wanted)!

t.test('a master and a service that are cut off together lose nothing acknowledged', options, async t => {
  const { violations, result } = await runPartitions(t, [{ partition: named('the master with one service'), replicas: 1 }])
  t.strictSame(violations, [], result)
})

t.test('with a replica on their side, and all replicas required, nothing acknowledged is lost', options, async t => {
  const { violations, result } = await runPartitions(t, [{ partition: named('the master with one replica and one service'), replicas: 2 }])
  t.strictSame(violations, [], result)
})

t.test('with a replica on their side, replicas:1 may lose what was acknowledged', options, async t => {
  const { violations } = await runPartitions(t, [{ partition: named('the master with one replica and one service'), replicas: 1 }])
  t.ok(violations.some(({ invariant }) => invariant === 'I1'), 'what that replica alone has acknowledged is lost')
})
