import t from 'tap'
import { inboxTag, tagOf } from '../../src/core/ids.ts'
import { testApp } from '../helpers/app.ts'

/** Replicas of versions before 0.2 beside these: they don't know the lists of what failed, is caught or is delayed, and name no inboxes. */

const isIndex = (key: string) => /\}:(inboxes|f:.*)$|:(caught|delayed|failed)$/.test(key)

for (const isSpread of [false, true]) {
  t.test(isSpread ? 'as in a Cluster' : 'on one Redis', async t => {
    const { call, pass, caught, setClock, store, redis, prefix, dump } = await testApp(t, {}, { isSpread, workTtl: 600_000, retention: 600_000 })
    const start = Date.now()
    const post = (who: 'alice' | 'bob' | 'approver', path: string, body: object = {}) => call(who, 'POST', path, body).then(answer => answer.json())
    const key = (id: string) => `${prefix}:{${tagOf(id)}}:h:default:${id}`
    await setClock(start)
    const error = { error: { message: 'm' } }
    const [failed, again, plain] = [await caught({ to: 'work' }), await caught({ to: 'work' }), await caught()]
    for (const id of [failed, again, plain]) await post('bob', `/api/fail/${id}`, error)
    await post('alice', `/api/reissue/${again}`)
    await post('bob', `/api/decline/${await caught()}`, { reason: 'r' })
    const done = await caught({ to: 'work' })
    await post('bob', `/api/done/${done}`)
    await caught({ to: 'work' })
    await caught({ heartbeat_within: 5 })
    await caught({ to: 'work', work_within: 5 })
    const unread = await pass({ to: 'unread', expires_in: 5 })
    await pass({ to: 'only', delay: 60 })
    const cancelled = await pass({ to: 'work', delay: 60 })
    await post('alice', `/api/cancel/${cancelled}`)
    await pass({ to: 'people', require_human: true, delay: 30 })
    await pass({ require_human: true }, 'foreignAlice')
    await post('approver', `/api/approve/${await pass({ to: 'people', require_human: true, delay: 60 })}`)
    await pass({ to: 'work', delay: 60, after: [await pass()] })
    await setClock(start + 10_000)
    const all = [...Object.keys(await dump()).flatMap(name => /^\{(...)\}:due:/.exec(name)?.[1] ?? [])]
    for (const tag of all) await store.handoffs.sweep(tag, 100)
    /** What the lists have, without when they end. */
    const lists = async () => Object.fromEntries(Object.entries(await dump()).flatMap(([key, value]) =>
      isIndex(key) ? [[key, (value as { content: string[] }).content]] : []))
    const before = await lists()
    t.equal(Object.values(before).flat().filter(one => one === `default:${unread}`).length, 2, 'in its tenant’s list, and its inbox’s')

    await store.indexer.round()
    t.strictSame(await lists(), before, 'what is right stays so')

    // Of others that share the Redis: names like a handoff's, in no partition or another one, and of another type.
    for (const name of ['{x}:h:default:x', `{x}:h:default:${failed}`]) await redis.hset(`${prefix}:${name}`, 's', 'x')
    await redis.set(`${prefix}:{${tagOf(failed)}}:h:other:${failed}`, '')
    for (const name of Object.keys(before)) await redis.del(`${prefix}:${name}`)
    const own = `${prefix}:{${inboxTag('default', 'work')}}:i:default:work`
    await redis.sadd(`${own}:caught`, `default:${done}`)
    await redis.zadd(`${own}:delayed`, start + 60_000, `default:${cancelled}`)
    await redis.zadd(`${own}:failed`, start, `default:${again}`)
    await redis.zadd(`${prefix}:{${tagOf(again)}}:f:default`, start, `default:${again}`)
    await store.indexer.round()
    t.strictSame(await lists(), before, 'all that lies in Redis is where it belongs')

    await redis.hset(key(unread), 'p', '')
    for (const name of Object.keys(before)) await redis.del(`${prefix}:${name}`)
    await store.indexer.round()
    t.notOk(Object.values(await lists()).flat().includes(`default:${unread}`), 'an older version’s sweep freed it: nobody can reissue it')
    t.strictSame((await call('operator', 'POST', '/api/redrive', {})).json(), { reissued: 5, skipped: 0, more: false })
  })
}
