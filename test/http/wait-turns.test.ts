import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Problem } from '../../src/core/errors.ts'
import { randomId, tagOf } from '../../src/core/ids.ts'
import { callerOf } from '../../src/core/model.ts'
import { ManyHandoffs } from '../../src/handoffs/many.ts'
import type { TurnsAtMasters } from '../../src/handoffs/many.ts'
import { Waiter, longAgo } from '../../src/handoffs/waiter.ts'
import type { Asker, Room } from '../../src/handoffs/waiter.ts'
import { testApp } from '../helpers/app.ts'
import { grantOf } from '../helpers/stored-keys.ts'

/** How a wait for many handoffs waits for its turn, and for room. */

const service = await testApp(t)
const bob = callerOf('default', 'bob', ['catch', 'status'])
const askerOf = (authorise: () => Promise<typeof bob>): Asker => ({ grant: () => grantOf(authorise), isGone: () => false })
const manyIn = (turns: TurnsAtMasters) =>
  new ManyHandoffs(service.store.handoffs, new Waiter(service.store.subscriptions), (_, read) => read(), turns)

t.test('a wait whose key ended while it waited for room is refused', async t => {
  const many = manyIn({ masterOf: () => undefined, run: (_, tenant, read) => read() })
  const room: Room = {
    async read (bytes, turn, read) {
      await sleep(longAgo + 20)
      return (await read())[0]
    }
  }
  const wait = (authorise: () => Promise<typeof bob>) => many.wait(bob, [randomId()], 'all', true, { waiting: null, asker: { ...askerOf(authorise), room: () => room } })
  await t.rejects(wait(async () => { throw new Problem('unauthorized') }), { code: 'unauthorized' })
  t.match(String(await wait(async () => bob)), '"complete":true')
})

t.test('a wait for more than a few reads them when it is its turn at each of their masters', async t => {
  const turns: Array<string | undefined> = []
  const run = <T>(master: string | undefined, tenant: string, read: () => Promise<T>) => {
    turns.push(master)
    return read()
  }
  const ids = await Promise.all(Array.from({ length: 40 }, () => service.pass({})))
  const many = manyIn({ masterOf: tag => tag === tagOf(ids[0]!) ? 'one' : 'other', run })
  const wait = async (ids: string[]) => JSON.parse((await many.wait(bob, ids, 'all', true, { waiting: null, asker: askerOf(async () => bob) })).toString())
  t.equal((await wait(ids.slice(0, 8))).items.length, 8)
  t.strictSame(turns, [])
  const named = [...ids, 'unknown', ids[1]!]
  t.strictSame((await wait(named)).items.map((item: { handoff_id: string }) => item.handoff_id), named, 'each in its place')
  t.strictSame(turns.sort(), ['one', 'other', undefined])
})
