import t from 'tap'
import { skipUnlessWhole } from '../helpers/extent.ts'
import { hasHaproxy } from './fleet/haproxy.ts'
import { whyNoNamespaces } from './fleet/net.ts'
import { mostUnservedWhenBusy, runCluster } from './scenarios/cluster.ts'
import { killedRedis, repliesCut } from './scenarios/one-redis.ts'
import { runPartitions } from './scenarios/partition.ts'
import { rollingRestarts } from './scenarios/rolling-restarts.ts'
import { runSentinel } from './scenarios/sentinel.ts'
import { runUpgrades, whyNotUpgraded } from './scenarios/upgrade.ts'

// Short forms of the scenarios of `npm run test:faults`; of those `.ci/run` takes the failover. Gaps and memory are judged by the full forms, on a machine of its own.

// However long a busy machine takes.
t.setTimeout(1_800_000)

t.test('a Redis that is killed again and again loses nothing acknowledged', skipUnlessWhole, async t => {
  const { load, result, held } = await killedRedis.run(t, 0.06)
  t.ok(held, `${load}: ${result}`)
})

t.test('a failover by Sentinel loses nothing acknowledged', async t => {
  const { load, result } = await runSentinel(t, 0.0003, ['killed'])
  t.match(result, /^0 violations/, load)
})

t.test('a Cluster whose master dies and gives slots away loses nothing', skipUnlessWhole, async t => {
  const { load, result, held } = await runCluster(t, 0.01, ['killed', 'slotsMoved'], mostUnservedWhenBusy)
  t.ok(held, `${load}: ${result}`)
})

const isCut = { skip: skipUnlessWhole.skip ?? await whyNoNamespaces() ?? false }
const apart = 'the master with one replica and one service'

t.test('a master and a service that are cut off together lose nothing acknowledged', isCut, async t => {
  const { violations, result } = await runPartitions(t, [['the master with one service', 1]])
  t.strictSame(violations, [], result)
})

t.test('with a replica on their side, and all replicas required, nothing acknowledged is lost; with one it may be', isCut, async t => {
  const { violations, result } = await runPartitions(t, [[apart, 2]])
  t.strictSame(violations, [], result)
  t.ok((await runPartitions(t, [[apart, 1]])).violations.some(({ invariant }) => invariant === 'I1'), 'what that replica alone has')
})

for (const [scenario, scale] of [[repliesCut, 0.04], ...hasHaproxy() ? [[rollingRestarts, 0.003] as const] : []] as const) {
  t.test(scenario.fault, skipUnlessWhole, async t => {
    const { load, result, held } = await scenario.run(t, scale)
    t.ok(held, `${load}: ${result}`)
  })
}

t.test('an upgrade from the last version loses nothing, and the lists are right afterwards', { skip: skipUnlessWhole.skip ?? whyNotUpgraded() }, async t => {
  const { load, result, held } = await runUpgrades(t, 0.01, ['one'])
  t.ok(held, `${load}: ${result}`)
})
