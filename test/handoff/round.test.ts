import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Unavailable } from '../../src/core/errors.ts'
import { Round } from '../../src/core/round.ts'
import type { RoundOptions } from '../../src/core/round.ts'
import { inVirtualTime } from '../helpers/virtual-time.ts'

/** Rounds that take so many milliseconds each; when each began is noted, and what was reported as a fault. */
function rounds (took: (round: number) => number, options: Partial<RoundOptions> = {}) {
  const began: number[] = []
  const faults: unknown[] = []
  let [underWay, most] = [0, 0]
  const run = async () => {
    const number = began.push(performance.now())
    most = Math.max(most, ++underWay)
    await sleep(took(number))
    underWay--
    return options.run?.()
  }
  const onFault = (error: unknown) => { faults.push(error) }
  return { began, faults, most: () => most, round: new Round({ interval: 100, onFault, ...options, run }) }
}

t.test('one round at a time: at the interval, and after a longer one at its next multiple', async t => {
  const { began, most } = await inVirtualTime(async () => {
    const { began, most, round } = rounds(number => number === 3 ? 250 : 40)
    round.wake(100)
    await sleep(750)
    return { began, most: most() }
  })
  t.strictSame(began, [100, 200, 300, 600, 700])
  t.equal(most, 1)
})

t.test('it is woken early, and once more by what came during a round', async t => {
  const { began, most } = await inVirtualTime(async () => {
    const { began, most, round } = rounds(() => 40)
    round.wake()
    await sleep(60)
    round.wake()
    await sleep(10)
    round.wake()
    round.wake()
    await sleep(200)
    return { began, most: most() }
  })
  t.strictSame(began, [0, 60, 100, 200])
  t.equal(most, 1)
})

t.test('it may wake itself', async t => {
  const steps = await inVirtualTime(async () => {
    const steps: string[] = []
    const round: Round = new Round({
      interval: Infinity,
      run: async () => {
        if (steps.push('begun') < 4) round.wake()
        await sleep(10)
        steps.push('over')
      },
      onFault: error => { throw error }
    })
    round.wake()
    await sleep(1000)
    return steps
  })
  t.strictSame(steps, ['begun', 'over', 'begun', 'over', 'begun', 'over'])
})

t.test('it says itself when the next one is due, and who wakes it for later puts off nothing', async t => {
  const began = await inVirtualTime(async () => {
    const pauses = [30, 500, Infinity]
    const { began, round } = rounds(() => 10, { run: async () => pauses.shift()! })
    round.wake()
    await sleep(60)
    round.wake(700)
    round.wake(200)
    await sleep(1000)
    return began
  })
  t.strictSame(began, [0, 40, 260], 'and not at all where no other one is due')
})

t.test('only where it is this replica’s', async t => {
  const found = await inVirtualTime(async () => {
    const asked: number[] = []
    const lost: number[] = []
    const { began, round } = rounds(() => 10, {
      isMine: async () => {
        asked.push(performance.now())
        return asked.length % 2 === 0
      },
      notMine: () => { lost.push(performance.now()) }
    })
    round.wake()
    await sleep(350)
    return { asked, lost, began }
  })
  t.strictSame(found, { asked: [0, 100, 200, 300], lost: [0, 200], began: [100, 300] })
})

t.test('a fault is reported and ends nothing; that Redis is away is none', async t => {
  const { began, faults } = await inVirtualTime(async () => {
    const errors = [new Unavailable('away'), new Error('wrong')]
    const { began, faults, round } = rounds(() => 10, {
      run: async () => { if (errors.length > 0) throw errors.shift() }
    })
    round.wake()
    await sleep(250)
    return { began, faults: faults.map(String) }
  })
  t.strictSame(began, [0, 100, 200])
  t.strictSame(faults, ['Error: wrong'])
})

t.test('it ends with the service: what is under way is waited for, within a limit', async t => {
  const stopped = await inVirtualTime(async () => {
    const stopped: unknown[] = []
    for (const took of [40, 60_000]) {
      const { began, round } = rounds(() => took)
      round.wake()
      await sleep(10)
      round.wake()
      const before = performance.now()
      const stop = round.stop()
      stopped.push(round.signal.aborted)
      await stop
      stopped.push(performance.now() - before)
      round.wake()
      await sleep(100_000)
      stopped.push(began.length)
    }
    return stopped
  })
  t.strictSame(stopped, [true, 30, 1, true, 5000, 1])
})
