import t from 'tap'
import { cluster } from './scenarios/cluster.ts'

t.test('a Cluster whose masters die, pause, change places and give slots away', async t => {
  const { load, result, held } = await cluster.run(t, 0.01)
  t.ok(held, `${load}: ${result}`)
})
