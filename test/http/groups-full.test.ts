import t from 'tap'
import { inboxTag } from '../../src/core/ids.ts'
import { testApp } from '../helpers/app.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'

/** What has a group in a Redis that is full: each transition that goes on keeps turns, limits and counts right. */

const filler = 'filler'
const redis = await ownRedis(t, ['--maxmemory', '24mb'])
const { call, store } = await testApp(t, {}, { url: redis.url, limitedUrl: redis.url, prefix: 'handoff' })
const name = 'full'
const tag = inboxTag('default', name)
/** One short command that takes far more than there is: Redis looks at its limit before a command, not while it runs. */
const fill = () => redis.admin.setrange(filler, 64 * 1024 * 1024, 'x')
const free = () => redis.admin.del(filler)
const pass = async (group: string | null, more: object = {}) => (await call('alice', 'POST', '/api/pass', { task: 't', to: name, group, ...more })).json().handoff_id as string
const take = async (max = 1) => ((await call('bob', 'POST', '/api/catch', { inbox: name, max })).json().items as Array<{ handoff_id: string, group?: string }>)
const groupsOf = async (max = 1) => (await take(max)).map(({ group = null }) => group)
const keys = async () => (await redis.admin.keys(`handoff:{${tag}}:i:default:${name}*`)).map(key => key.split(`:${name}`)[1]).sort()
const listed = async () => (await call('alice', 'GET', `/api/inboxes/${name}/groups`)).json().items as Array<{ group: string | null, pending: number, caught: number }>
const end = async (id: string, what = 'done', body: object = {}) => (await call('bob', 'POST', `/api/${what}/${id}`, body)).statusCode

t.test('turns and the limit', async t => {
  for (const group of ['a', 'a', 'a', 'b', null, null, 'c']) await pass(group)
  await fill()
  isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', to: name, group: 'd' }), 503, 'unavailable')
  t.strictSame(await groupsOf(4), ['a', 'b', null, 'c'])
  t.equal((await call('operator', 'PUT', `/api/inboxes/${name}`, { max_caught_per_group: 1 })).statusCode, 200)
  t.strictSame(await groupsOf(10), [null])
  t.match(await listed(), [{ group: null, pending: 0, caught: 2 }, { group: 'a', pending: 2, caught: 1 }, { group: 'b', pending: 0, caught: 1 }, { group: 'c', pending: 0, caught: 1 }])
  t.equal((await call('operator', 'PUT', `/api/inboxes/${name}`, { max_caught_per_group: null })).statusCode, 200)
  t.strictSame(await groupsOf(10), ['a', 'a'])
  await free()
  for (const id of await redis.admin.smembers(`handoff:{${tag}}:i:default:${name}:caught`)) t.equal(await end(id.split(':')[1]!), 200)
  t.strictSame(await keys(), [':per-group'], 'when the limit was set is known for a day')
})

const ends: Array<[what: string, more: object, go: (id: string) => Promise<unknown>, left: string[]]> = [
  ['a catch by its id', {}, async id => (await call('bob', 'GET', `/api/catch/${id}`)).statusCode, [':caught', ':caught-groups']],
  ['done', {}, async id => [(await take()).length, await end(id)], []],
  ['fail for good', {}, async id => [(await take()).length, await end(id, 'fail', { error: { message: 'm' }, retry: false })], [':failed']],
  ['fail with an attempt that is left', { max_attempts: 2, retry_delay: 0 }, async id => [(await take()).length, await end(id, 'fail', { error: { message: 'm' } })], [':grouped', ':groups', ':turns']],
  ['decline', {}, async id => [(await take()).length, await end(id, 'decline', { reason: 'r' })], [':failed']],
  ['a cancel while it is pending', {}, async id => (await call('alice', 'POST', `/api/cancel/${id}`)).statusCode, []],
  ['a cancel by force while it is caught', {}, async id => [(await take()).length, (await call('alice', 'POST', `/api/cancel/${id}`, { force: true })).statusCode], []],
  ['a purge', {}, async () => (await call('operator', 'POST', '/api/purge', { inbox: name })).json().cancelled, []],
  ['an expiry while it is pending', { expires_in: 1 }, expiry, [':failed']],
  ['an expiry of the work', { work_within: 1, max_attempts: 2, retry_delay: 0 }, async id => [(await take()).length, await expiry(id)], [':grouped', ':groups', ':turns']],
  ['the end of a delay', { delay: 1 }, async () => {
    await until(async () => {
      await store.handoffs.sweep(tag, 100)
      return (await keys()).includes(':grouped')
    })
  }, [':grouped', ':groups', ':turns']],
]

async function expiry (id: string): Promise<void> {
  await until(async () => (await call('alice', 'GET', `/api/status/${id}`)).json().status === 'expired')
  await store.handoffs.sweep(tag, 100)
}

for (const [what, more, go, left] of ends) {
  t.test(what, async t => {
    await redis.admin.flushall()
    const id = await pass('a', more)
    await fill()
    const said = [await go(id)].flat()
    t.ok(said.every(one => one === undefined || one === 1 || one === 200), `${said}`)
    await free()
    t.strictSame(await keys(), left)
    await pass('b')
    t.strictSame(await groupsOf(10), left.includes(':grouped') ? ['a', 'b'] : ['b'], 'and others go on')
  })
}
