import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { randomId, randomToken, tagOf } from '../../src/handoff/id.ts'
import { testStore } from '../helpers/redis.ts'
import type { TestStore } from '../helpers/redis.ts'

/** API.md: "The sweep gets to what is due within 3 s." */
const promised = 3000

async function passSoonDue (store: TestStore, expiresIn: number) {
  const id = randomId()
  const place = { tenant: 'default', id, tag: tagOf(id) }
  await store.store.handoffs.pass({ ...place, token: '-', passedBy: 'alice', requireHuman: false, taskLength: 3, expiresIn, payload: Buffer.from('"task":"t"') })
  return place
}

/** Polls the hash, since nobody is told of a sweep. @returns how many ms after `since` its payload was gone */
async function untilSwept (store: TestStore, id: string, since: number, t: Test): Promise<number> {
  const key = `${store.prefix}:{${tagOf(id)}}:h:default:${id}`
  for (;;) {
    const [state, payload] = await store.redis.hmget(key, 's', 'p')
    if (state?.startsWith('expired') && payload === null) return Date.now() - since
    if (Date.now() - since > 3 * promised) {
      t.fail(`never swept: ${state}`)
      return Infinity
    }
    await sleep(10)
  }
}

t.test('what is due is expired and its payload freed within 3 s, whether pending or caught', async t => {
  const one = await testStore(t, { workTtl: 300 })
  one.store.sweeper.start()
  const places = await Promise.all(Array.from({ length: 30 }, () => passSoonDue(one, 300)))
  for (const place of places.slice(0, 10)) await one.store.handoffs.catch(place, randomToken(), 'bob')
  const late = await passSoonDue(one, 60_000)
  const start = Date.now()
  const waits = await Promise.all(places.map(({ id }) => untilSwept(one, id, start + 300, t)))
  t.ok(Math.max(...waits) < promised, `the last after ${Math.max(...waits)} ms`)
  t.match(await one.store.handoffs.status(late), { record: { status: 'pending' } }, 'and no other')
  t.strictSame(Object.keys(await one.dump()).filter(key => key.endsWith(':due')), [`{${late.tag}}:due`], 'the index holds what lives')
})

t.test('one sweeps, and when it dies another does', async t => {
  const first = await testStore(t)
  const second = await testStore(t, { prefix: first.prefix })
  first.store.sweeper.start()
  const warm = await passSoonDue(first, 1)
  await untilSwept(first, warm.id, Date.now(), t)
  const holder = async () => first.redis.get(Object.keys(await first.dump()).filter(key => key.endsWith(':sweeper')).map(key => `${first.prefix}:${key}`)[0]!)
  const before = await holder()
  second.store.sweeper.start()
  await sleep(700) // longer than it takes the second to ask for the lease
  t.equal(await holder(), before, 'the second leaves it to the first')
  await first.store.close() // without giving the lease back, as a death would leave it
  const place = await passSoonDue(second, 1)
  const wait = await untilSwept(second, place.id, Date.now(), t)
  t.not(await holder(), before)
  t.ok(wait < 2 * promised, `taken over and swept after ${wait} ms`)
})
