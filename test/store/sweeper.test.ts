import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { randomId, randomToken, tagOf, tags } from '../../src/core/ids.ts'
import type { Handoffs } from '../../src/store/handoffs.ts'
import type { Leases } from '../../src/store/leases.ts'
import { Sweeper } from '../../src/store/sweeper.ts'
import { timeRun } from '../helpers/clock.ts'
import { testStore } from '../helpers/redis.ts'
import type { TestStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

/** docs/reliability.md: due handoffs are swept within 3 s. */
const promised = 3000
/** The most handoffs of a partition in the first call. */
const glance = 5
/** First calls under way at once at a master. */
const glances = 84
/** The most handoffs that Redis is asked for at once: those of first calls, and of two further ones. */
const mostAtOnce = glances * glance + 2 * 40

async function passSoonDue (store: TestStore, expiresIn: number, id = randomId()) {
  const place = { tenant: 'default', id, tag: tagOf(id) }
  await store.store.handoffs.pass({ ...place, token: '-', passedBy: 'alice', requireHuman: false, options: '', expiresIn, payload: Buffer.from('"task":"t"') })
  return place
}

/** So many handoffs in each of so many partitions, all due at once. */
async function passMany (store: TestStore, perPartition: number, partitions: number): Promise<string[]> {
  const chosen = tags.slice(0, partitions)
  const left = new Map(chosen.map(tag => [tag, perPartition]))
  const passed: Array<Promise<unknown>> = []
  while (passed.length < perPartition * partitions) {
    const id = randomId()
    const more = left.get(tagOf(id)) ?? 0
    if (more === 0) continue
    left.set(tagOf(id), more - 1)
    passed.push(passSoonDue(store, 1, id))
    // Few at once: a busy machine answers each in time.
    if (passed.length % 100 === 0) await Promise.all(passed)
  }
  await Promise.all(passed)
  return chosen
}

/**
 * Observes the sweep's calls.
 * @param hold delays a reply
 */
function watchCalls ({ store }: TestStore, hold: (tag: string, limit: number) => Promise<unknown> | void = () => {}) {
  const seen = { calls: 0, handoffs: 0, mostHandoffs: 0 }
  const sweep = store.handoffs.sweep.bind(store.handoffs)
  store.handoffs.sweep = async (tag, limit) => {
    seen.calls++
    seen.handoffs += limit
    seen.mostHandoffs = Math.max(seen.mostHandoffs, seen.handoffs)
    try {
      const swept = await sweep(tag, limit)
      await hold(tag, limit)
      return swept
    } finally {
      seen.calls--
      seen.handoffs -= limit
    }
  }
  return seen
}

/** Polls until these partitions' indexes are empty. @returns after how many ms; Infinity if it takes hopelessly long */
async function untilEmpty ({ redis, prefix }: TestStore, partitions: readonly string[]): Promise<number> {
  const begin = timeRun()
  const keys = partitions.map(tag => `${prefix}:{${tag}}:due`)
  while (await redis.exists(keys) > 0) {
    if (timeRun() - begin > 3 * promised) return Infinity
    await sleep(10)
  }
  return timeRun() - begin
}

/** Polls the hash, because a sweep publishes nothing. @returns how many ms after `since` it was expired, and freed if nobody had caught it */
async function untilSwept (store: TestStore, id: string, since: number, t: Test): Promise<number> {
  const key = `${store.prefix}:{${tagOf(id)}}:h:default:${id}`
  for (;;) {
    const [state, payload] = await store.redis.hmget(key, 's', 'p')
    if (state?.startsWith('expired') && (payload === '') === (state.split(' ').length === 6)) return Date.now() - since
    if (Date.now() - since > 3 * promised) {
      t.fail(`never swept: ${state}`)
      return Infinity
    }
    await sleep(10)
  }
}

t.test('an overdue handoff is expired within 3 s, pending or caught, and freed if nobody caught it', async t => {
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

t.test('one replica sweeps, and when it dies another does', async t => {
  const first = await testStore(t)
  const second = await testStore(t, { prefix: first.prefix })
  first.store.sweeper.start()
  const warm = await passSoonDue(first, 1)
  await untilSwept(first, warm.id, Date.now(), t)
  const holder = async () => (await first.redis.get(Object.keys(await first.dump()).filter(key => key.endsWith(':sweeper')).map(key => `${first.prefix}:${key}`)[0]!))!.split(' ')[0]
  const before = await holder()
  second.store.sweeper.start()
  await sleep(700) // longer than the second one's interval of asking for the lease
  t.equal(await holder(), before, 'the second leaves it to the first')
  await first.store.close() // without releasing the lease, as after a crash
  const place = await passSoonDue(second, 1)
  const wait = await untilSwept(second, place.id, Date.now(), t)
  t.not(await holder(), before)
  t.ok(wait < 2 * promised, `taken over and swept after ${wait} ms`)
})

t.test('however much is due, Redis gets little at a time, and everything is swept', async t => {
  const one = await testStore(t)
  const partitions = await passMany(one, 40, 21)
  const seen = watchCalls(one)
  one.store.sweeper.start()
  const wait = await untilEmpty(one, partitions)
  t.ok(wait < promised, `gone after ${Math.round(wait)} ms`)
  t.ok(seen.mostHandoffs <= mostAtOnce, `of 840 at the most ${seen.mostHandoffs} at once, what else is asked waits behind them`)
})

t.test('late answers don’t hold other calls up, and their partitions aren’t asked again meanwhile', async t => {
  const one = await testStore(t)
  const partitions = await passMany(one, 50, 12)
  let answer = () => {}
  const answered = new Promise<void>(resolve => { answer = resolve })
  const stuck = new Set(partitions.slice(0, 4))
  const held: string[] = []
  let wait = NaN
  await new Promise<void>(resolve => {
    let glances = 0
    watchCalls(one, (tag, limit) => {
      // When the last partition's turn comes again, all have had theirs.
      if (tag === partitions.at(-1) && limit === glance && ++glances === 2) resolve()
      if (!stuck.has(tag) || (limit === glance && !held.includes(tag))) return
      held.push(tag)
      return answered
    })
    one.store.sweeper.start()
    untilEmpty(one, partitions.filter(tag => !stuck.has(tag))).then(milliseconds => {
      wait = milliseconds
      if (wait === Infinity) resolve()
    })
  })
  t.ok(wait < promised, `the others’ are gone after ${Math.round(wait)} ms`)
  t.strictSame(held.sort(), [...stuck].sort())
  answer()
  t.ok(await untilEmpty(one, partitions) < 2 * promised, 'and theirs once they are answered')
})

t.test('no call is under way when the sweeper has stopped, however much is due', async t => {
  const one = await testStore(t)
  const partitions = await passMany(one, 100, 8)
  let answer = () => {}
  const answered = new Promise<void>(resolve => { answer = resolve })
  const seen = await new Promise<{ calls: number }>(resolve => {
    const seen = watchCalls(one, (_, limit) => {
      // Further calls for the same partition.
      if (limit <= glance) return
      resolve(seen)
      return answered
    })
    one.store.sweeper.start()
  })
  let stopped = false
  const stopping = one.store.sweeper.stop().then(() => { stopped = true })
  await nextTurn()
  t.notOk(stopped, 'it waits for what is under way')
  answer()
  await stopping
  t.equal(seen.calls, 0)
  t.ok(await one.redis.exists(partitions.map(tag => `${one.prefix}:{${tag}}:due`)) > 0, 'and begins no more')
})

t.test('a round takes no longer while calls are slow, a master answers none, and the lease isn’t renewed yet', async t => {
  const masterOf = (tag: string) => ['fast', 'slow', 'silent'][tags.indexOf(tag) % 3]!
  const unasked = new Map(['fast', 'slow', 'silent'].map(name => [name, new Set(tags.filter(tag => masterOf(tag) === name))]))
  const { size } = unasked.get('silent')!
  let end = () => {}
  const ended = new Promise<void>(resolve => { end = resolve })
  const handoffs = {
    async sweep (tag: string) {
      const master = masterOf(tag)
      unasked.get(master)!.delete(tag)
      if (master === 'slow') await sleep(150)
      if (master === 'silent') await ended
      return { lookedAt: 0, expired: 0, live: 0, untilDue: null, stalled: 0, reissued: { stalled: 0, not_done: 0 }, named: [] }
    },
  }
  let asked = 0
  const leases = { takeReached: async () => { if (asked++ > 0) await ended; return true } }
  const sweeper = new Sweeper(handoffs as unknown as Handoffs, leases as unknown as Leases, { tags, leaseKey: tag => tag, masterOf, reaches: () => true, onFault: error => t.error(error) })
  const begin = timeRun()
  sweeper.start()
  await until(() => unasked.get('fast')!.size + unasked.get('slow')!.size === 0)
  const took = Math.round(timeRun() - begin)
  t.ok(took < 1.5 * promised, `${took} ms`)
  t.equal(size - unasked.get('silent')!.size, glances)
  t.equal(asked, 2)
  const stopped = sweeper.stop()
  end()
  await stopped
  t.equal(sweeper.counts, undefined)
})
