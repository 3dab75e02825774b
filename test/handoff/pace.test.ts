import t from 'tap'
import { Pace } from '../../src/core/pace.ts'

t.test('callers during the pause share the next run, which begins after they asked', async t => {
  const pace = new Pace<number>(200)
  const began: number[] = []
  const work = async () => began.push(performance.now())
  t.equal(await pace.run('a', work), 1, 'the first at once')
  const asked = performance.now()
  const all = await Promise.all(Array.from({ length: 50 }, () => pace.run('a', work)))
  t.strictSame(all, Array(50).fill(2), 'one for all')
  t.ok(began[1]! > asked)
  t.ok(began[1]! - began[0]! > 190, `${began[1]! - began[0]!} ms apart`)
  t.equal(await pace.run('b', work), 3, 'another key has a pace of its own')
})

t.test('a failed run fails for its callers only, and the next run is another', async t => {
  const pace = new Pace<string>(20)
  t.equal(await pace.run('a', async () => 'one'), 'one')
  const failing = Array.from({ length: 3 }, () => pace.run('a', async () => { throw new Error('away') }))
  for (const one of failing) await t.rejects(one, /away/)
  t.equal(await pace.run('a', async () => 'two'), 'two')
})
