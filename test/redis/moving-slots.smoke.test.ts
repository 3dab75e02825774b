import { setTimeout as sleep } from 'node:timers/promises'
import slotOf from 'cluster-key-slot'
import t from 'tap'
import { homeTag, inboxTag, randomToken, tags } from '../../src/core/ids.ts'
import { FeedReader, placeAfter } from '../../src/handoffs/feed/feed.ts'
import type { HandoffPlace } from '../../src/store/handoffs.ts'
import { askHolds } from '../../src/redis/lanes.ts'
import { KeyNames, memberOf } from '../../src/store/key-names.ts'
import { payload, placeIn } from '../helpers/handoffs.ts'
import { movingCluster } from '../helpers/moving-cluster.ts'
import { migrate } from '../helpers/moving-slot.ts'
import { until } from '../helpers/until.ts'

/** What one script does to several keys, while their slot moves and some of them have gone ahead. */

t.setTimeout(300_000)

t.test('on a Cluster', async t => {
  const { cluster, store, freshTag, keyOf, passed, admin, begin, whileMoving } = await movingCluster(t)
  const { handoffs, attempts, inboxes, approvals, dependents } = store

  const parts: Array<[string, (place: HandoffPlace) => string[]]> = [
    ['nothing', () => []], ['the handoff', place => [keyOf(place)]], ['the index of what is due', ({ tag }) => [`handoff:{${tag}}:due:default`]],
    ['both', place => [keyOf(place), `handoff:{${place.tag}}:due:default`]],
  ]
  for (const [name, ahead] of parts) {
    const again = ' m3 d1000 t' + `work${name.length}`
    await t.test(`a successor, with ${name} gone ahead`, async t => {
      for (const end of ['fail', 'decline', 'reissue'] as const) {
        const place = await passed(freshTag(), ' m3 d1000')
        await handoffs.catch(place, randomToken(), 'bob')
        const reply = await whileMoving<{ outcome: string, successor?: string | null }>(place.tag, ahead(place), () => end === 'reissue'
          ? attempts.reissue(place, 'alice', 'own')
          : end === 'fail' ? attempts.fail(place, randomToken(), 'bob', true, Buffer.from('{}')) : attempts.decline(place, randomToken(), 'bob', Buffer.from('""')))
        t.match(reply, { outcome: end === 'reissue' ? 'reissued' : 'ended', successor: String }, end)
        const next = { ...place, id: reply.successor! }
        t.match(await handoffs.status(next), { outcome: 'found', record: { status: 'pending' } }, end)
        t.match(await handoffs.status(place), { outcome: 'found', record: { extra: { reissuedAs: next.id } } }, end)
      }
    })

    await t.test(`what has a successor, with ${name} gone ahead`, async t => {
      const first = await passed(freshTag(), ' m3 d0')
      await handoffs.catch(first, randomToken(), 'bob')
      const again = () => attempts.reissue(first, 'alice', 'own')
      const made = await again() as { successor: string }
      t.match(await whileMoving(first.tag, ahead(first), again), { outcome: 'replayed', successor: made.successor }, 'reissue')
      const last = { ...first, id: made.successor }
      const { mark } = await handoffs.lineage(first) as { mark: string }
      t.type(mark, 'string')
      for (const keys of [ahead(first), [keyOf(last)]]) t.match(await whileMoving(first.tag, keys, () => handoffs.lineage(first)), { mark }, 'lineage')
    })

    await t.test(`an inbox, with ${name} gone ahead`, async t => {
      const inbox = `work${name.length}`
      const tag = inboxTag('default', inbox)
      const at = { tenant: 'default', inbox, tag }
      const list = `handoff:{${tag}}:i:default:${inbox}`
      const wanted = (token = randomToken()) => ({ token, agent: 'bob', max: 1, size: 0, lifetime: null, request: '-', requester: '-', positions: [] })
      const one = () => passed(tag, ` t${inbox}`, { to: inbox })
      for (const keys of [ahead(await one()), [...ahead(await one()), list]]) {
        t.match(await whileMoving(tag, keys, () => inboxes.take(at, wanted())), { outcome: 'taken', items: [{}] }, 'take')
      }
      const byId = await one()
      t.match(await whileMoving(tag, [...ahead(byId), list], () => handoffs.catch(byId, randomToken(), 'bob')), { outcome: 'caught' }, 'catch')
      const cancelled = await one()
      t.match(await whileMoving(tag, [list], () => attempts.cancel(cancelled, 'alice', 'own', false, Buffer.alloc(0))), { outcome: 'cancelled' }, 'cancel')
      const caught = `${list}:caught`
      for (const end of ['done', 'fail', 'cancel'] as const) {
        const { caught: before } = await inboxes.count(at)
        const working = await passed(tag, ` t${inbox}`, { to: inbox })
        await handoffs.catch(working, randomToken(), 'bob')
        t.equal((await inboxes.count(at)).caught, before + 1)
        await whileMoving(tag, [...ahead(working), ...end === 'done' ? [caught] : []], (): Promise<unknown> => end === 'done'
          ? handoffs.done(working, randomToken(), 'bob', Buffer.alloc(0), '')
          : end === 'fail' ? attempts.fail(working, randomToken(), 'bob', false, Buffer.from('{}')) : attempts.cancel(working, 'alice', 'own', true, Buffer.alloc(0)))
        t.equal((await inboxes.count(at)).caught, before, `${end} is caught no longer`)
      }
      t.match(await whileMoving(tag, [caught], () => inboxes.set(at, { paused: true, maxCaught: undefined, maxPending: 5 })), { isChanged: true })
      t.match(await whileMoving(tag, [`${list}:settings`], () => inboxes.take(at, wanted())), { outcome: 'closed' }, 'it is paused')
      t.match(await whileMoving(tag, [caught], () => inboxes.count(at)), { paused: true, maxPending: 5 })
      t.match(await whileMoving(tag, [`${list}:settings`], () => inboxes.set(at, { paused: false, maxCaught: null, maxPending: null })), { settings: { paused: false, maxPending: null } })
      const failing = await passed(tag, again, { to: inbox })
      await handoffs.catch(failing, randomToken(), 'bob')
      t.match(await whileMoving(tag, [list], () => attempts.reissue(failing, 'alice', 'own')), { outcome: 'reissued' }, 'reissue')
      const delayed = await passed(tag, ` t${inbox} a100`, { to: inbox })
      await sleep(150)
      await whileMoving(tag, ahead(delayed), () => handoffs.sweep(tag, 100, false))
      await until(async () => {
        await handoffs.sweep(tag, 100, false)
        return (await inboxes.count(at)).pending === 2
      })
      const taken = [await inboxes.take(at, { ...wanted(), max: 100 })].flatMap(reply => 'items' in reply ? reply.items.map(({ id }) => id) : [])
      t.equal(taken.length, 2)
      t.ok(taken.includes(delayed.id))
      t.match(await inboxes.count(at), { pending: 0 })
    })
  }

  await t.test('a handoff that the sweep only moves on, alone in the index', async t => {
    const place = await passed(freshTag(), '', { expiresIn: 100 })
    await handoffs.catch(place, randomToken(), 'bob')
    await sleep(150)
    const { live } = await whileMoving(place.tag, [], () => handoffs.sweep(place.tag, 100, false))
    t.equal(live, 1)
    t.match(await handoffs.sweep(place.tag, 100, false), { lookedAt: 0, live: 1 }, 'is still looked at when its work is due')
  })

  await t.test('what expires last, or beside another tenant whose index has gone ahead', async t => {
    for (const isAlone of [true, false]) {
      const place = await passed(freshTag(), '', { expiresIn: 50 })
      const other = { ...placeIn(place.tag), tenant: 'other' }
      const options = { token: '-', passedBy: 'alice', requireHuman: false, options: '', expiresIn: 60_000, payload }
      if (!isAlone) await handoffs.pass({ ...other, ...options })
      await sleep(100)
      const ahead = isAlone ? [] : [`handoff:{${place.tag}}:due:other`]
      t.match(await whileMoving(place.tag, ahead, () => handoffs.sweep(place.tag, 100, true)), { expired: 1, named: [{ id: place.id }] })
    }
  })

  await t.test('several that are tried again at once', async t => {
    for (const count of [0, 1, 3]) {
      const tag = freshTag()
      const places = [await passed(tag, ' b1 m3 d1000'), await passed(tag, ' b1 m3 d0'), await passed(tag, ' b1 m3 d1000')]
      for (const place of places) await handoffs.catch(place, randomToken(), 'bob')
      await sleep(10)
      await whileMoving(tag, places.slice(0, count).map(keyOf), () => handoffs.sweep(tag, 100, false))
      await until(async () => (await handoffs.sweep(tag, 100, false)).lookedAt === 0)
      for (const place of places) {
        const { record } = await handoffs.status(place) as { record: { status: string, extra: { reissuedAs: string } } }
        t.equal(record.status, 'expired')
        t.match(await handoffs.status({ ...place, id: record.extra.reissuedAs }), { record: { status: 'pending' } }, `${count} gone ahead`)
      }
      t.match(await handoffs.sweep(tag, 100, false), { live: 3 }, 'each of the next ones is looked at when it is due')
    }
  })

  await t.test('what is back again by the time that its redirected call is served', async t => {
    // With several keys Redis itself refuses (TRYAGAIN). One of these writes, and one only reads.
    const asks: Array<[string, (place: HandoffPlace) => Promise<{ outcome: string }>]> = [
      ['caught', place => attempts.heartbeat(place, 'bob', null, 60_000, Buffer.alloc(0))],
      ['found', place => handoffs.status(place)],
    ]
    for (const [outcome, ask] of asks) {
      const place = await passed(freshTag())
      await handoffs.catch(place, randomToken(), 'bob')
      const key = keyOf(place)
      const { slot, from, to } = await begin(place.tag)
      const redirected = async () => Number(/errorstat_ASK:count=(\d+)/.exec(await from.admin.info('errorstats'))?.[1] ?? 0)
      const before = await redirected()
      const dump = await from.admin.dumpBuffer(key)
      const left = await from.admin.pttl(key)
      await from.admin.del(key)
      // Longer than a redirect holds.
      await to.admin.call('CLIENT', 'PAUSE', askHolds + 300, 'ALL')
      const answer = ask(place)
      await until(async () => await redirected() > before)
      await from.admin.call('CLUSTER', 'SETSLOT', slot, 'STABLE')
      await from.admin.restore(key, left, dump)
      t.equal((await answer).outcome, outcome)
      await to.admin.call('CLUSTER', 'SETSLOT', slot, 'STABLE')
    }
  })

  await t.test('a deadline that comes sooner while the tenants have gone ahead is swept in time', async t => {
    const place = await passed(freshTag(), ' w300 m1')
    store.sweeper.start()
    t.teardown(() => store.sweeper.stop())
    await until(() => store.sweeper.counts?.whole)
    const caught = whileMoving(place.tag, [`handoff:{${place.tag}}:tenants`], () => handoffs.catch(place, randomToken(), 'bob'))
    t.match(await caught, { outcome: 'caught' })
    const record = () => admin(place.tag).then(redis => redis.hget(keyOf(place), 's'))
    await until(async () => /expired /.test(await record() ?? ''))
  })

  await t.test('the tenants with webhooks, while another partition moves', async t => {
    await store.webhooks!.create('default', 'wh_x', { url: 'https://example.com/', types: null, inbox: null })
    const elsewhere = tags.find(tag => slotOf(tag) !== slotOf(homeTag('default')))!
    t.strictSame(await whileMoving(elsewhere, [], () => store.webhooks!.tenants(tags)), ['default'])
  })

  await t.test('a feed without a note beside it', async t => {
    const events = store.events!
    const reader = new FeedReader(events, () => '')
    const home = homeTag('told')
    const tell = (from: string, ...lines: string[]) => events.relay('told', [{ tag: home, from, events: lines }])
    const told = (number: number) => `${number} done done AVHdDBR3Ox_T_H9gltuUjYVhg alice bob`
    await tell('0', told(1), told(2))
    const [first, second] = (await events.read('told', '0-0', 10)).entries.map(({ id }) => id)
    const { slot, from, to } = await begin(home)
    for (const ahead of [[], [`handoff:{${home}}:e:told`]]) {
      await migrate(from, to, ...ahead)
      t.match(await events.read('told', '0-0', 10), { entries: [{ id: first }, { id: second }], since: undefined }, `read with ${ahead.length} gone ahead`)
      t.match(await reader.next('told', placeAfter('0-0')), { events: [{ id: first }, { id: second }], isReset: false })
      t.match(await reader.next('told', placeAfter(first!)), { events: [{ id: second }], isReset: false })
      t.match(await reader.now('told'), { next: second })
      await t.rejects(reader.next('told', placeAfter('1-0')), { name: 'Unavailable' }, 'but nobody is told that events are missing who may have all')
    }
    await cluster.moveSlot(slot, to)
    t.match(await reader.next('told', placeAfter('1-0')), { events: [{ id: first }, { id: second }], isReset: true })
  })

  await t.test('lists that have gone ahead of what is in them', async t => {
    const home = homeTag('listed')
    const at = { tenant: 'listed', inbox: 'work', tag: inboxTag('listed', 'work') }
    const inOther = async (place: HandoffPlace, more: object) => {
      await handoffs.pass({ ...place, tenant: 'listed', token: '-', passedBy: 'alice', requireHuman: false, options: ' twork', expiresIn: 60_000, payload, ...more })
    }
    for (let i = 0; i < 2; i++) {
      await inOther(placeIn(home), { requireHuman: true, options: ' l2 hdigest' })
      await inOther(placeIn(at.tag), { to: 'work' })
      await store.webhooks!.create('listed', `wh_${i}`, { url: 'https://example.com/', types: null, inbox: null })
    }
    const made = await store.keyRecords.create({ tenant: 'listed', agent: 'alice', scopes: ['pass'], by: 'test' } as never)
    const names = new KeyNames('handoff')
    t.match(await whileMoving(home, [names.waiting(home, 'listed')], () => store.lists.waiting({ tenant: 'listed' }, null, 10)), { items: { length: 2 } })
    t.match(await whileMoving(at.tag, [names.inbox(at.tag, 'listed', 'work')], () => inboxes.count(at)), { pending: 2 })
    t.match(await whileMoving(home, [names.webhooks(home, 'listed')], () => store.webhooks!.list('listed')), [{ url: 'https://example.com/' }, { url: 'https://example.com/' }])
    t.match(await whileMoving(tags[0]!, [names.apiKeys(tags[0]!)], () => store.keyRecords.list()), [{ id: made.id }])
  })

  await t.test('what is cancelled while it waits for a person', async t => {
    const tag = homeTag('default')
    const waiting = new KeyNames('handoff').waiting(tag, 'default')
    for (const isListAhead of [false, true]) {
      const place = await passed(tag, ' l2 hdigest', { requireHuman: true })
      const ahead = isListAhead ? [waiting] : [keyOf(place), `handoff:{${tag}}:due:default`]
      t.match(await whileMoving(tag, ahead, () => attempts.cancel(place, 'alice', 'own', false, Buffer.alloc(0))), { outcome: 'cancelled' })
      t.equal(await (await cluster.ownerOf(slotOf(tag))).admin.zscore(waiting, memberOf('default', place.id)), null, 'is in no list')
    }
  })

  await t.test('what is approved while its tenant’s home moves', async t => {
    const tag = homeTag('default')
    const at = { tenant: 'default', inbox: 'asked', tag }
    const lists = [`handoff:{${tag}}:w:default`, `handoff:{${tag}}:i:default:asked:waiting`, `handoff:{${tag}}:i:default:asked`]
    for (const ahead of [[], ...lists.map(list => [list]), lists]) {
      const place = await passed(tag, ' tasked l2 hdigest', { to: 'asked', requireHuman: true })
      t.match(await whileMoving(tag, ahead, () => approvals.decide('approved', place, randomToken(), { agent: 'carol' }, {}, Buffer.from('null'))), { outcome: 'decided' }, `approve ${ahead.length}`)
      t.match(await inboxes.count(at), { pending: 1, waiting: 0 })
      t.match(await inboxes.take(at, { token: randomToken(), agent: 'bob', max: 5, lifetime: null, request: '-' }), { items: [{ id: place.id }] })
    }
  })

  await t.test('callbacks whose list has gone ahead of them', async t => {
    const names = new KeyNames('handoff')
    const target = Buffer.from('https://example.com/')
    const place = await passed(freshTag(), ` Cd/${target.length}`, { payload: Buffer.concat([payload, target]) })
    await handoffs.catch(place, randomToken(), 'bob')
    await handoffs.done(place, randomToken(), 'bob', Buffer.alloc(0), '')
    const ahead = [names.callbackTenants(place.tag), names.callbacks(place.tag, 'default')]
    const claim = () => store.callbacks.claim(place.tag, 'default', 10, 1000)
    t.match(await whileMoving(place.tag, ahead, claim), { callbacks: [{ target: String(target) }] })
  })

  await t.test('what comes after others, with some of it gone ahead', async t => {
    const names = new KeyNames('handoff')
    const setOf = ({ tag, tenant, id }: HandoffPlace) => names.dependents(tag, memberOf(tenant, id))
    const dueOf = ({ tag, tenant }: HandoffPlace) => names.due(tag, tenant)
    const noted = async (place: HandoffPlace) => (await cluster.ownerOf(slotOf(place.tag))).admin.smembers(setOf(place))
    const blocked = async (after: HandoffPlace, need: 'd' | 'e', to = '') => {
      const tag = to === '' ? freshTag() : inboxTag('default', to)
      const options = `${to === '' ? '' : ` t${to}`} A${need}/1/1/${after.id.length}`
      return await passed(tag, options, { payload: Buffer.concat([payload, Buffer.from(after.id)]), ...to !== '' && { to } })
    }
    const ways: Array<[string, (place: HandoffPlace) => string[]]> = [
      ['nothing', () => []], ['the handoff', place => [keyOf(place)]], ['who comes after it', place => [setOf(place)]],
      ['the index', place => [dueOf(place)]], ['all', place => [keyOf(place), setOf(place), dueOf(place)]]
    ]
    for (const [name, ahead] of ways) {
      const one = await passed(freshTag(), ' m2 d0')
      await handoffs.catch(one, randomToken(), 'bob')
      const [first, second] = [await blocked(one, 'd'), await blocked(one, 'e', `after${name.length}`)]
      t.match(await dependents.note('default', first.id, [one.id]), [{ standing: 'open' }])
      t.match(await whileMoving(one.tag, ahead(one), () => dependents.note('default', second.id, [one.id])), [{ standing: 'open', last: one.id }])
      t.equal((await noted(one)).length, 2, `noted, with ${name} gone ahead`)
      const { successor } = await whileMoving(one.tag, ahead(one), () => attempts.fail(one, randomToken(), 'bob', true, Buffer.from('{}'))) as { successor: string }
      const next = { ...one, id: successor }
      t.equal((await noted(next)).length, 2, `they wait for the next attempt, with ${name} gone ahead`)
      await handoffs.catch(next, randomToken(), 'bob')
      await whileMoving(one.tag, ahead(next), () => attempts.fail(next, randomToken(), 'bob', true, Buffer.from('{}')))
      const { ended } = await handoffs.sweep(one.tag, 100)
      t.match(ended, [{ id: next.id }], `the sweep finds it, with ${name} gone ahead`)
      const at = { tenant: 'default', inbox: `after${name.length}`, tag: second.tag }
      const lists = ['', ':blocked'].map(part => names.inbox(at.tag, 'default', at.inbox) + part)
      const release = () => dependents.release('default', second.id, { named: one.id, last: next.id, standing: 'failed' })
      t.match(await whileMoving(second.tag, name === 'nothing' ? lists : ahead(second), release), { outcome: 'released' })
      t.match(await inboxes.count(at), { blocked: 0, pending: 1 })
      await whileMoving(one.tag, ahead(next), async () => {
        dependents.swept(ended, [])
        await dependents.settled()
      })
      await until(async () => {
        dependents.swept(ended, [])
        await dependents.settled()
        return (await noted(next)).length === 0
      })
      t.match(await handoffs.status(first), { record: { status: 'cancelled' } }, `cancelled, with ${name} gone ahead`)
    }
  })
})
