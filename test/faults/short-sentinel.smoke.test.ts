import t from 'tap'
import { sentinel } from './scenarios/sentinel.ts'

// The length of the gap is judged by the full form, on a machine of its own.
t.test('failovers and stalled replicas lose nothing acknowledged', async t => {
  const { load, result } = await sentinel.run(t, 0.001)
  t.match(result, /^0 violations/, load)
})
