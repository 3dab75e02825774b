import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { tags } from '../../src/core/ids.ts'
import { testApp } from '../helpers/app.ts'
import { asked, signedIn } from '../helpers/forms.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { ofOneReplica } from '../helpers/through.ts'

t.test('however many pages are open and handoffs passed, the tenant’s list is read once a second, and every page sees the result', { skip: ofOneReplica }, async t => {
  const redis = await ownRedis(t)
  const service = await testApp(t, {}, { url: redis.url, limitedUrl: redis.url })
  const cookie = await signedIn(service)
  /** How often the list was read: the decisions below it are merged from all partitions, one of these each; the list itself has a few, and no other script has them. */
  const lists = async () => Number(/cmdstat_zcount:calls=(\d+)/.exec(await redis.admin.info('commandstats'))?.[1] ?? 0) / tags.length
  const first = performance.now()
  const before = await lists()
  let left = 20
  const last = { id: '' }
  let asks = 0
  /** An open page: it polls again after each answer, with the fingerprint that it got, until it shows the last handoff. */
  const page = async () => {
    for (let seen = 'x', body = ''; last.id === '' || !body.includes(last.id); asks++) {
      body = (await service.app.inject({ url: `/approvals/list?seen=${seen}`, headers: { cookie } })).body
      seen = /list\?seen=([\w-]+)/.exec(body)![1]!
      await sleep(250)
    }
    left--
  }
  const pages = Promise.all(Array.from({ length: 20 }, page))
  // Fewer than a page lists, so that the page shows the last one.
  for (let n = 0; n < 20; n++) {
    await asked(service, `task ${n}`)
    await sleep(50)
  }
  last.id = await asked(service, 'the last')
  await pages
  t.equal(left, 0, 'every page has seen the last')
  const seconds = (performance.now() - first) / 1000
  const made = await lists() - before
  t.ok(asks > 20, `${asks} answers`)
  t.ok(made <= seconds + 1, `${made.toFixed(1)} lists in ${seconds.toFixed(1)} s`)
})
