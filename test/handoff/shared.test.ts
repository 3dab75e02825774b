import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Shared } from '../../src/core/shared.ts'
import { inVirtualTime } from '../helpers/virtual-time.ts'

/** Reads that take so many milliseconds. Each gives its number, and when each began is noted. */
function reads (took = 10) {
  const began: number[] = []
  const read = async () => {
    const number = began.push(performance.now())
    await sleep(took)
    return number
  }
  return { began, read }
}

t.test('who asks while a read is under way shares it, and who asks later gets another', async t => {
  const { began, found } = await inVirtualTime(async () => {
    const shared = new Shared<number>()
    const { began, read } = reads()
    const first = [shared.get('a', read), shared.get('b', read), shared.get('a', read)]
    await sleep(9)
    first.push(shared.get('a', read))
    await sleep(2)
    return { began, found: [...await Promise.all(first), await shared.get('a', read)] }
  })
  t.strictSame(found, [1, 2, 1, 1, 3])
  t.strictSame(began, [0, 0, 11])
})

t.test('one that is kept serves others for that long since it began, and until it is over', async t => {
  const found = await inVirtualTime(async () => {
    const shared = new Shared<number>({ keptFor: 100 })
    const { read } = reads()
    const slow = reads(150)
    const found: unknown[] = [await shared.get('a', read)]
    await sleep(89)
    found.push(await shared.get('a', read))
    await sleep(2)
    found.push(await shared.get('a', read))
    const joined = [shared.get('slow', slow.read)]
    await sleep(140)
    joined.push(shared.get('slow', slow.read))
    return [...found, ...await Promise.all(joined), await shared.get('slow', slow.read)]
  })
  t.strictSame(found, [1, 1, 2, 1, 1, 2])
})

t.test('only so many are kept: the oldest goes', async t => {
  const found = await inVirtualTime(async () => {
    const shared = new Shared<number>({ keptFor: 100, max: 2 })
    const { read } = reads()
    const found: number[] = []
    for (const name of ['a', 'b', 'c', 'c', 'b', 'a', 'c']) found.push(await shared.get(name, read))
    return found
  })
  t.strictSame(found, [1, 2, 3, 3, 2, 4, 3])
})

t.test('a read that takes the place of a failed one pushes out no other', async t => {
  const found = await inVirtualTime(async () => {
    const shared = new Shared<number>({ keptFor: 100, max: 2 })
    const { read } = reads()
    const found = [await shared.get('b', read)]
    await shared.get('a', () => Promise.reject(new Error('away'))).catch(() => {})
    for (const name of ['a', 'b', 'c', 'a']) found.push(await shared.get(name, read))
    return found
  })
  t.strictSame(found, [1, 2, 1, 3, 2])
})

t.test('a failure reaches those who share the read, and is not kept', async t => {
  const found = await inVirtualTime(async () => {
    const shared = new Shared<string>({ keptFor: 1000 })
    const failing = () => sleep(10).then(() => { throw new Error('away') })
    const both = await Promise.allSettled([shared.get('a', failing), shared.get('a', failing)])
    return [...both.map(({ status }) => status), await shared.get('a', async () => 'again')]
  })
  t.strictSame(found, ['rejected', 'rejected', 'again'])
})

t.test('what is forgotten serves no one else', async t => {
  const found = await inVirtualTime(async () => {
    const shared = new Shared<number>()
    const { read } = reads()
    const before = [shared.get('x 1', read), shared.get('y 1', read)]
    await sleep(5)
    shared.forget('x ')
    const after = [shared.get('x 1', read), shared.get('y 1', read)]
    await sleep(7)
    return Promise.all([...before, ...after, shared.get('x 1', read)])
  })
  t.strictSame(found, [1, 2, 3, 2, 3], 'the end of the forgotten read removes no newer one')
})

t.test('who needs what is new shares the next read, which begins after they asked', async t => {
  const { began, found } = await inVirtualTime(async () => {
    const shared = new Shared<number>({ keptFor: 200 })
    const { began, read } = reads()
    const found = [await shared.next('a', read)]
    found.push(...await Promise.all(Array.from({ length: 50 }, () => shared.next('a', read))))
    found.push(await shared.next('b', read))
    await sleep(500)
    return { began, found: [...found, await shared.next('a', read)] }
  })
  t.strictSame(found, [1, ...Array(50).fill(2), 3, 4])
  t.strictSame(began, [0, 200, 210, 720], 'the first of a name at once, the next after the pause')
})

t.test('the next read begins when the last one is over, however long that takes, and also where it failed', async t => {
  const { began, found } = await inVirtualTime(async () => {
    const shared = new Shared<number>({ keptFor: 20 })
    const { began, read } = reads(70)
    const failing = async () => {
      await read()
      throw new Error('away')
    }
    const all = [shared.next('a', failing), shared.next('a', failing)]
    await sleep(80)
    all.push(shared.next('a', read))
    return { began, found: (await Promise.allSettled(all)).map(({ status }) => status) }
  })
  t.strictSame(found, ['rejected', 'rejected', 'fulfilled'])
  t.strictSame(began, [0, 70, 140])
})
