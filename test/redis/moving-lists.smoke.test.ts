import t from 'tap'
import { homeTag, randomToken, tags } from '../../src/core/ids.ts'
import type { HandoffPlace } from '../../src/store/handoffs.ts'
import { KeyNames, memberOf } from '../../src/store/key-names.ts'
import type { RedisServer } from '../faults/fleet/redis.ts'
import { movingCluster } from '../helpers/moving-cluster.ts'
import { migrate } from '../helpers/moving-slot.ts'
import { until } from '../helpers/until.ts'

/**
 * Lists that scripts build the names of, while their slot moves: a script that goes on with a list that is on the other node breaks off half done, or
 * takes it for empty, or makes it a second time.
 */

t.setTimeout(300_000)

t.test('on a Cluster', async t => {
  const { cluster, store, freshTag, passed, admin, begin, whileMoving } = await movingCluster(t)
  const { handoffs, attempts, inboxes, asks, webhooks } = store
  const names = new KeyNames('handoff')

  // Redis looks for a key that a script has emptied on the other node, as if it had moved on.
  await t.test('lists that a script empties', async t => {
    const caught = async () => {
      const place = await passed(freshTag())
      await handoffs.catch(place, randomToken(), 'bob')
      return place
    }
    for (const of of ['person', 'passer'] as const) {
      const place = await caught()
      const list = names.asks(place.tag, 'default', of)
      const ask = (openFor: number) => asks.ask(place, 'bob', 60_000, {
        token: randomToken(), id: randomToken(), of, openFor, question: '"May I?"', details: Buffer.alloc(0), schema: Buffer.alloc(0), digest: ''
      })
      const { expiresAt } = await ask(1) as { expiresAt: number }
      await until(() => Date.now() > expiresAt)
      t.match(await whileMoving(place.tag, [], () => ask(60_000)), { outcome: 'asked' }, `a ${of} is asked again`)
      t.strictSame(await (await admin(place.tag)).zrange(list, '0', '-1'), [memberOf('default', place.id)], 'the second question is listed')
    }

    const failing = await caught()
    const failed = `handoff:{${failing.tag}}:f:default`
    await (await admin(failing.tag)).zadd(failed, '1', 'default:gone')
    t.match(await whileMoving(failing.tag, [], () => attempts.fail(failing, randomToken(), 'bob', false, Buffer.from('{}'))), { outcome: 'ended' })
    t.ok((await (await admin(failing.tag)).zrange(failed, '0', '-1')).includes(memberOf('default', failing.id)), 'what failed is listed')

    const home = homeTag('hooked')
    const feed = `handoff:{${home}}:e:hooked`
    await (await admin(home)).xadd(feed, '*', 'e', 'done done AVHdDBR3Ox_T_H9gltuUjYVhg alice bob')
    await webhooks!.create('hooked', 'wh_1', { url: 'https://example.com/', types: null, inbox: null })
    const tried = async (id: string, outcome: 'delivered' | 'failed' | 'gone') => {
      await webhooks!.plan('hooked', 'wh_1', null, '', [{ id, text: 'x' }])
      const { deliveries } = (await webhooks!.claim('hooked', { id: 'wh_1', format: 'standard' }, 1, 60_000, randomToken()))!
      const note = () => webhooks!.tried('hooked', 'wh_1', deliveries[0]!, { outcome, status: 200, error: null }, 60_000)
      return outcome === 'gone' ? await whileMoving(home, [], note) : await note()
    }
    await tried('1-1', 'delivered')
    await tried('1-2', 'failed')
    t.equal(await tried('1-3', 'gone'), 'gone', 'the last delivery disables its webhook')
    t.match((await (await admin(home)).xrevrange(feed, '+', '-', 'COUNT', 1))[0]![1][1], 'webhook.disabled wh_1 gone', 'and the feed says so')
    const tenants = names.webhookTenants(home)
    await (await admin(home)).del(feed)
    for (const part of ['due', 'pending']) await (await admin(home)).set(`handoff:{${home}}:hook:hooked:wh_1:${part}`, 'something')
    await whileMoving(home, [], () => webhooks!.delete('hooked', 'wh_1'))
    t.equal(await (await admin(home)).zscore(tenants, 'hooked'), null, 'with its last webhook a tenant leaves the list')
  })

  await t.test('what an agent passed before it had a limit counts, where its index has gone ahead', async t => {
    const place = await passed(tags[0]!)
    const { indexer } = store
    indexer.limited = () => new Map([['default', { agents: new Map([['alice', 1]]) }]])
    await whileMoving(place.tag, [names.due(place.tag, 'default')], () => indexer.walk('default'))
    indexer.limited = () => new Map()
    t.strictSame(await (await admin(place.tag)).zrange(names.run(place.tag, 'run', 'default', '*:alice'), '0', '-1'), [memberOf('default', place.id)])
  })

  await t.test('what an inbox has, where only its list has gone ahead, or is empty', async t => {
    const tag = homeTag('default')
    for (const inbox of ['counted', 'emptied']) {
      const at = { tenant: 'default', inbox, tag }
      const list = names.inbox(tag, 'default', inbox)
      const redis = await admin(tag)
      await redis.sadd(`${list}:caught`, 'default:some')
      await redis.set(`${list}:settings`, '0 3 0 1')
      if (inbox === 'counted') await redis.zadd(list, '1', 'default:some')
      t.match(await whileMoving(tag, inbox === 'counted' ? [list, `${list}:settings`] : [`${list}:settings`], () => inboxes.count(at)),
        { caught: 1, maxCaught: 3 })
    }
  })

  await t.test('what is cancelled while it waits for a person, for an inbox', async t => {
    const tag = homeTag('default')
    const scoreOn = async ({ admin }: RedisServer, list: string, { id }: HandoffPlace) => {
      const [, score] = (await admin.pipeline([['asking'], ['zscore', list, memberOf('default', id)]]).exec())!
      return String(score![1])
    }
    const lists = [names.waiting(tag, 'default'), `handoff:{${tag}}:i:default:halted:waiting`]
    for (const ahead of lists) {
      const place = await passed(tag, ' thalted l2 hdigest', { to: 'halted', requireHuman: true })
      const { slot, from, to } = await begin(tag)
      await migrate(from, to, ahead)
      await t.rejects(attempts.cancel(place, 'alice', 'own', false, Buffer.alloc(0)), { name: 'Unavailable' })
      for (const list of lists) t.match(await scoreOn(list === ahead ? to : from, list, place), /^\d+$/, 'it is in both lists')
      await cluster.moveSlot(slot, to)
      t.match(await attempts.cancel(place, 'alice', 'own', false, Buffer.alloc(0)), { outcome: 'cancelled' })
    }
  })

  await t.test('groups, of which some lists have gone ahead', async t => {
    const tag = homeTag('grouped')
    const tenant = 'default'
    for (const beside of ['', ':groups', ':grouped', ':turns', ':held', ':caught', ':caught-groups']) {
      const inbox = `of${beside.replace(':', '-')}`
      const list = names.inbox(tag, tenant, inbox)
      const at = { tenant, inbox, tag }
      const pass = (group: string) => passed(tag, ` t${inbox}${group === '' ? '' : ` G${group}`}`, { to: inbox })
      const take = async (max: number) => {
        const reply = await inboxes.take(at, { token: randomToken(), agent: 'bob', max, lifetime: null, request: '-' })
        return 'items' in reply ? reply.items.map(({ id }) => id) : []
      }
      await inboxes.set(at, { maxCaught: 100, maxCaughtPerGroup: 1 })
      const places = [await pass('a'), await pass('a'), await pass('b'), await pass('')]
      const [first, second, other, without] = places.map(({ id }) => id)
      t.strictSame(await take(1), [first])
      await pass('a')
      t.strictSame(await whileMoving(tag, [`${list}${beside}`], () => take(9)), [other, without], `a take, where ${list}${beside} is ahead`)
      t.match(await inboxes.count(at), { pending: 2, caught: 3, groups: 1 })
      await whileMoving(tag, [`${list}${beside}`], () => handoffs.done(places[0]!, randomToken(), 'bob', Buffer.alloc(0), ''))
      t.strictSame(await take(9), [second], 'what has ended made room')
      const { id: last, ...rest } = await whileMoving(tag, [`${list}${beside}`], () => pass('c'))
      t.match(rest, { tag })
      t.strictSame(await take(9), [last])
      t.match(await inboxes.count(at), { pending: 1, caught: 4, groups: 1 })
    }
  })

  await t.test('the names of inboxes', async t => {
    const tag = homeTag('named')
    const at = { tenant: 'named', inbox: 'second', tag }
    const list = names.inbox(tag, 'named', 'second')
    const settings = { paused: true, maxCaught: undefined, maxPending: undefined }
    await inboxes.set({ ...at, inbox: 'first' }, settings)
    const redis = await admin(tag)
    await redis.set(`${list}:settings`, '0 0 0 1')
    await redis.zadd(list, '1', 'named:some')
    t.match(await whileMoving(tag, [list, `${list}:settings`], () => inboxes.set(at, settings)), { isChanged: true })
    t.strictSame(await (await admin(tag)).zrange(`handoff:{${tag}}:inboxes`, '0', '-1'), ['named:first', 'named:second'], 'those before it and its own')
  })
})
