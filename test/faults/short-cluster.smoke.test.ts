import t from 'tap'
import { isWhole } from '../helpers/extent.ts'
import { cluster, mostUnservedWhenBusy, runCluster } from './scenarios/cluster.ts'
import { killed, slotsMoved } from './scenarios/cluster-faults.ts'

// In full some ten minutes.
t.setTimeout(1_800_000)

t.test('a Cluster whose masters die, pause, fail over and give slots away loses nothing', async t => {
  const { load, result, held } = await (isWhole ? cluster.run(t, 0.01) : runCluster(t, 0.01, [killed, slotsMoved], mostUnservedWhenBusy))
  t.ok(held, `${load}: ${result}`)
})
