import t from 'tap'
import { tagOf } from '../../src/core/ids.ts'
import { testApp } from '../helpers/app.ts'
import { arrangements } from '../helpers/extent.ts'

/** Replicas of version 0.2.0 beside these: they don't know the tenants' due indexes. */

for (const isSpread of arrangements) {
  t.test(isSpread ? 'as in a Cluster' : 'on one Redis', async t => {
    const { call, pass, caught, store, redis, prefix, dump } = await testApp(t, {}, { isSpread, workTtl: 600_000, retention: 600_000 })
    const pending = await pass()
    const live = [pending, await pass({ to: 'work', delay: 60 }), await caught({ to: 'work' }), await pass({ require_human: true }), await pass({ after: [pending] })]
    const foreign = await pass({}, 'foreignAlice')
    const done = await caught()
    await call('bob', 'POST', `/api/done/${done}`, {})
    const cancelled = await pass()
    await call('alice', 'POST', `/api/cancel/${cancelled}`, {})
    const others = async () => Object.fromEntries(Object.entries(await dump()).filter(([key]) => !key.includes(':due:')))
    const indexed = async () => Object.entries(await dump()).flatMap(([key, value]) =>
      key.includes(':due:') ? (value as { content: string[] }).content.filter((_, at) => at % 2 === 0) : []).sort()
    const wanted = [...live.map(id => `default:${id}`), `other:${foreign}`].sort()
    const [before, rest] = [await dump(), await others()]
    t.strictSame(await indexed(), wanted)

    await store.indexer.round()
    t.strictSame(await dump(), before, 'what is right stays so')

    // Of others that share the Redis: names like a handoff's, in no partition or another one, and of another type.
    const foreigners = ['{x}:h:default:x', `{x}:h:default:${done}`, `{${tagOf(done)}}:h:other:${done}`].map(name => `${prefix}:${name}`)
    for (const name of foreigners.slice(0, 2)) await redis.hset(name, 's', 'x')
    await redis.set(foreigners[2]!, '')
    // What 0.2.0 passed meanwhile isn't there, and what ended there still is.
    for (const key of Object.keys(before)) if (key.includes(':due:')) await redis.del(`${prefix}:${key}`)
    for (const id of [done, cancelled]) await redis.zadd(`${prefix}:{${tagOf(id)}}:due:default`, Date.now() + 60_000, `default:${id}`, 'inf', '-')
    await store.indexer.round()
    await redis.del(...foreigners)
    t.strictSame(await indexed(), wanted)
    for (const id of [...live, foreign]) await store.handoffs.sweep(tagOf(id), 100)
    t.strictSame(await indexed(), wanted, 'they live on')
    t.strictSame(Object.keys(await others()), Object.keys(rest))
  })
}
