import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import type { LimitTable } from '../../src/auth/limit-table.ts'
import { Unavailable } from '../../src/core/errors.ts'
import { Quotas } from '../../src/handoffs/lifecycle/quotas.ts'
import type { Store } from '../../src/store/store.ts'

/** How counts are shared, and how old one may be. The tests answer what Redis would be asked. */

function quotas (max: number) {
  const asked: Array<{ resolve (live: number): void, reject (error: Error): void }> = []
  const limits = { maxLiveOf: (tenant: string) => tenant === 'acme' ? { all: max, agents: new Map() } : undefined, maxLives: () => new Map() }
  const live = { isOneRedis: true, count: () => new Promise<number>((resolve, reject) => { asked.push({ resolve, reject }) }) }
  const all = new Quotas(limits as unknown as LimitTable, { live, indexer: {} } as unknown as Pick<Store, 'live' | 'indexer'>)
  return { all, asked, take: async () => await all.of({ tenant: 'acme', agent: 'a' })!.take() !== null }
}

t.test('what is let through while a count is under way counts on in it', async t => {
  let now = 10_000
  t.intercept(performance, 'now', { value: () => now })
  const { all, asked, take } = quotas(3)
  t.equal(all.of({ tenant: 'other', agent: 'a' }), undefined)
  const first = [take(), take(), take(), take()]
  t.equal(asked.length, 1, 'all share one count')
  asked[0]!.resolve(1)
  t.strictSame(await Promise.all(first), [true, true, false, false])
  t.equal(asked.length, 1, 'a young one refuses')

  now += 150
  const refused = take()
  t.equal(asked.length, 2, 'an older one doesn’t')
  asked[1]!.resolve(1)
  t.equal(await refused, true)
  now += 1100
  t.equal(await take(), true, 'it isn’t waited for')
  t.equal(asked.length, 3, 'but counted anew')
  const last = take()
  asked[2]!.resolve(2)
  t.equal(await last, false, 'two, and the one since')
})

t.test('a count that fails is made again, and one that is too old isn’t used', async t => {
  let now = 10_000
  t.intercept(performance, 'now', { value: () => now })
  const { asked, take } = quotas(5)
  const failing = take()
  asked[0]!.reject(new Unavailable('away'))
  await t.rejects(failing, Unavailable)
  const next = take()
  asked[1]!.resolve(0)
  t.equal(await next, true)
  now += 1500
  t.equal(await take(), true)
  asked[2]!.reject(new Unavailable('away'))
  await turn()
  now += 600
  const late = take()
  t.equal(asked.length, 4)
  asked[3]!.reject(new Unavailable('away'))
  await t.rejects(late, Unavailable)
})
