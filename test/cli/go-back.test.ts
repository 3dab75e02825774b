import t from 'tap'
import { tagOf, tags } from '../../src/core/ids.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { newPlace, pass, placeIn } from '../helpers/handoffs.ts'
import { commandsUnder } from '../helpers/pages.ts'
import { testStore } from '../helpers/redis.ts'

const { url } = await startRedisServer(t)

t.test('what is live goes where version 0.2.0 looks for it, and comes back', async t => {
  const { store, prefix, redis } = await testStore(t, { url })
  const words = commandsUnder('docs/deploy.md', 'From 0.2.0').trim().replace('npx handoff ', '').split(' ')
  const run = (...args: string[]) => handoff([...words, ...args], { env: { REDIS_URL: url, REDIS_KEY_PREFIX: prefix } })
  const all = [...Array.from({ length: 30 }, () => newPlace()), ...Array.from({ length: 500 }, () => placeIn(tags[5]!))]
  for (const [n, place] of all.entries()) await pass(store.handoffs, { ...place, tenant: n % 4 === 0 ? 'acme' : 'other' }, 60_000 + n)
  t.match(await run(), { code: 0, stdout: '530 live handoffs are where version 0.2.0 looks for them. Start its replicas now.\n', stderr: '' })
  t.strictSame(await redis.keys(`${prefix}:*:due:*`), [], 'nothing stays where it was')
  t.strictSame(await redis.keys(`${prefix}:*:tenants`), [])
  for (const [n, { id }] of all.entries()) {
    const score = await redis.zscore(`${prefix}:{${tagOf(id)}}:due`, `${n % 4 === 0 ? 'acme' : 'other'}:${id}`)
    t.ok(Number(score) > Date.now(), `${n} has its time`)
  }
  t.equal(await redis.zscore(`${prefix}:{${tags[5]}}:due`, '-'), null)
  t.strictSame(parsed(await run('--json')), { moved: 0 }, 'it can be repeated')

  for (const tag of new Set(all.map(({ id }) => tagOf(id)))) for (let n = 0; n < 4; n++) await store.handoffs.sweep(tag, 10)
  t.strictSame(await redis.keys(`${prefix}:*:due`), [], 'and the next sweep of this version brings all back')
  t.equal(await redis.zcard(`${prefix}:{${tags[5]}}:due:other`) + await redis.zcard(`${prefix}:{${tags[5]}}:due:acme`), all.filter(({ id }) => tagOf(id) === tags[5]).length + 2)
})
