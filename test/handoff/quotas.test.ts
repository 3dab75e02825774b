import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { LimitTable } from '../../src/auth/limit-table.ts'
import { Unavailable } from '../../src/core/errors.ts'
import { Quotas } from '../../src/handoffs/lifecycle/quotas.ts'
import type { Store } from '../../src/store/store.ts'
import { inVirtualTime } from '../helpers/virtual-time.ts'

/** How counts are shared, and how old one may be. The tests answer what Redis would be asked. */

function quotas (max: number) {
  const asked: Array<{ resolve (live: number): void, reject (error: Error): void }> = []
  const limits = { maxLiveOf: (tenant: string) => tenant === 'other' ? undefined : { all: max, agents: new Map() }, maxLives: () => new Map() }
  const live = { count: () => new Promise<number>((resolve, reject) => { asked.push({ resolve, reject }) }) }
  const all = new Quotas(limits as unknown as LimitTable, { live, indexer: {}, attempts: {} } as unknown as Store)
  return { all, asked, take: async (tenant = 'acme') => await all.of({ tenant, agent: 'a' })!.take() !== null }
}

t.test('what is let through while a count is under way counts on in it', async t => {
  let now = 10_000
  t.intercept(performance, 'now', { value: () => now })
  const { all, asked, take } = quotas(3)
  t.equal(all.of({ tenant: 'other', agent: 'a' }), undefined)
  const first = [take(), take(), take(), take()]
  await turn()
  t.equal(asked.length, 1, 'all share one count')
  asked[0]!.resolve(1)
  t.strictSame(await Promise.all(first), [true, true, false, false])
  t.equal(asked.length, 1, 'it began with them, and they are refused by it')

  now += 1001
  const refused = take()
  await turn()
  t.equal(asked.length, 2, 'an older one refuses none')
  asked[1]!.resolve(1)
  t.equal(await refused, true)
  now += 1100
  t.equal(await take(), true, 'it isn’t waited for')
  await turn()
  t.equal(asked.length, 3, 'but counted anew')
  const last = take()
  asked[2]!.resolve(2)
  t.equal(await last, false, 'two, and the one since')
})

t.test('what one limit refuses counts for no other', async t => {
  let now = 10_000
  t.intercept(performance, 'now', { value: () => now })
  const limits = { maxLiveOf: () => ({ all: 1, agents: new Map([['a', 1]]) }), maxLives: () => new Map() }
  const live = { count: async (_: string, agent: string | null) => agent === null ? 1 : 0 }
  const all = new Quotas(limits as unknown as LimitTable, { live, indexer: {}, attempts: {} } as unknown as Store)
  const take = async () => await all.of({ tenant: 'acme', agent: 'a' })!.take() === null
  t.equal(await take(), true, 'the tenant’s, which comes after its own')
  now++
  t.equal(await Promise.race([take(), turn('it waits for a count of its own')]), true)
})

/** What limits a tenant to so many, in virtual time: `live` is how many are, and a count takes so long (ms). */
function counted (max: number, took: number) {
  const state = { live: 0, counts: 0 }
  const limits = { maxLiveOf: () => ({ all: max, agents: new Map() }), maxLives: () => new Map() }
  const count = async () => {
    state.counts++
    const { live } = state
    await sleep(took)
    return live
  }
  const all = new Quotas(limits as unknown as LimitTable, { live: { count }, indexer: {}, attempts: {} } as unknown as Store)
  return { state, take: async () => await all.of({ tenant: 'acme', agent: 'a' })!.take() !== null }
}

t.test('what ended since the last count refuses none', async t => {
  for (const max of [5, 50]) {
    for (const took of [1, 30]) {
      const told = await inVirtualTime(async () => {
        const { state, take } = counted(max, took)
        const seen = { passed: 0, refused: 0, most: 0 }
        await Promise.all([3, 4, 5].map(async lasts => {
          while (performance.now() < 10_000) {
            if (!await take()) {
              seen.refused++
              continue
            }
            seen.passed++
            seen.most = Math.max(seen.most, ++state.live)
            await sleep(lasts)
            state.live--
          }
        }))
        return { ...seen, counts: state.counts }
      })
      t.match(told, { refused: 0, most: 3 }, `${max}, ${took} ms`)
      t.ok(told.passed > 10 * max, `${told.passed} passed`)
      t.ok(told.counts <= 10_000 / Math.max(100, 10 * took) + 2, `${told.counts} counts, each of ${took} ms`)
    }
  }
})

t.test('where as many are live as may be, a refusal needs no count', async t => {
  const told = await inVirtualTime(async () => {
    const { state, take } = counted(5, 1)
    state.live = 5
    const [slow, answers] = [[] as number[], new Set<boolean>()]
    for (let n = 0; n < 10_000; n++) {
      const asked = performance.now()
      answers.add(await take())
      if (performance.now() > asked) slow.push(n)
      await sleep(1)
    }
    return { counts: state.counts, slow: slow.length, answers: [...answers] }
  })
  t.ok(told.counts <= 11, `${told.counts} counts in 10 s`)
  t.equal(told.slow, told.counts)
  t.strictSame(told.answers, [false])
})

t.test('a count that fails is made again, and one that is too old isn’t used', async t => {
  let now = 10_000
  t.intercept(performance, 'now', { value: () => now })
  const { asked, take } = quotas(5)
  const failing = take()
  await turn()
  asked[0]!.reject(new Unavailable('away'))
  await t.rejects(failing, Unavailable)
  const next = take()
  await turn()
  asked[1]!.resolve(0)
  t.equal(await next, true)
  now += 1500
  t.equal(await take(), true)
  await turn()
  asked[2]!.reject(new Unavailable('away'))
  await turn()
  now += 600
  const late = take()
  await turn()
  t.equal(asked.length, 4)
  asked[3]!.reject(new Unavailable('away'))
  await t.rejects(Promise.race([late, turn()]), Unavailable)
})

t.test('two are counted at once; meanwhile the last counts of the others refuse, until they are too old', async t => {
  let now = 10_000
  t.intercept(performance, 'now', { value: () => now })
  const { asked, take } = quotas(1)
  const tenants = ['a', 'b', 'c', 'd']
  const first = Promise.all(tenants.map(tenant => take(tenant)))
  await turn()
  t.equal(asked.length, 2, 'two at once')
  for (const n of [0, 1]) asked[n]!.resolve(1)
  await turn()
  t.equal(asked.length, 4, 'then the others')
  for (const n of [2, 3]) asked[n]!.resolve(1)
  t.strictSame(await first, [false, false, false, false])

  now += 1500
  const counted = Promise.all([take('a'), take('b')])
  t.strictSame(await Promise.race([Promise.all([take('c'), take('d')]), turn('they wait')]), [false, false], 'by the last count')
  t.equal(asked.length, 6)
  now += 600
  const [old, late] = [take('c'), take('d')]
  await turn()
  t.equal(asked.length, 6, 'an older one refuses none: they wait for their turn')
  asked[4]!.resolve(0)
  asked[5]!.resolve(1)
  t.strictSame(await counted, [true, false])
  await turn()
  t.equal(asked.length, 8)
  asked[6]!.resolve(0)
  asked[7]!.resolve(1)
  t.strictSame([await old, await late], [true, false])
})

t.test('a count that has waited for long is given up, though those before it go on', async t => {
  const told = await inVirtualTime(async () => {
    const { asked, take } = quotas(1)
    const [one, other, late] = [take('a'), take('b'), take('c')]
    const error = await late.catch(error => error)
    const waited = performance.now()
    asked[0]!.resolve(0)
    await one
    const counts = asked.length
    asked[1]!.resolve(0)
    return { error, waited, counts, others: [await one, await other] }
  })
  t.ok(told.error instanceof Unavailable)
  t.match(told, { waited: 2000, counts: 2, others: [true, true] })
})
