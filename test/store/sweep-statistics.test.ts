import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { SweepStatistics } from '../../src/store/sweeper.ts'

const near = (seen: number | undefined, expected: number) => seen !== undefined && seen >= expected - 1 && seen < expected + 1000

t.test('a replica that doesn’t sweep knows nothing, a new sweeper knows all after a round', async t => {
  const census = new SweepStatistics(['a', 'b', 'c'])
  t.equal(census.read(), undefined)
  census.begin()
  t.equal(census.read()?.whole, null)
  census.saw('a', 5, 60_000)
  census.saw('b', 0, null)
  t.equal(census.read()?.whole, null, 'one is missing')
  census.saw('c', 7, 1000)
  t.strictSame(census.read()?.whole, { live: 12, oldestDueAge: 0 })
  census.saw('a', 2, 60_000)
  t.equal(census.read()?.whole?.live, 9, 'each by its last')
  census.end()
  t.equal(census.read(), undefined)
  census.begin()
  t.equal(census.read()?.whole, null, 'what it knew is out of date')
})

t.test('overdue counts what was due and what has become due since', async t => {
  const census = new SweepStatistics(['a', 'b'])
  census.begin()
  census.saw('a', 3, -5000)
  census.saw('b', 1, -2000)
  t.ok(near(census.read()?.whole?.oldestDueAge, 5000))
  census.saw('a', 3, 30)
  t.ok(near(census.read()?.whole?.oldestDueAge, 2000))
  census.saw('b', 0, null)
  await sleep(130) // past the deadlines that were still ahead
  t.ok(near(census.read()?.whole?.oldestDueAge, 100))
})

t.test('the lag is of the partition that has waited longest', async t => {
  const census = new SweepStatistics(['a', 'b'])
  census.begin()
  await sleep(50)
  census.saw('a', 0, null)
  t.ok(near(census.read()?.lag, 50), 'b was never seen')
  census.saw('b', 0, null)
  t.ok(census.read()!.lag < 50)
})
