import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { callerOf } from '../../src/core/model.ts'
import { PeopleService } from '../../src/handoffs/people/people.ts'
import { testApp } from '../helpers/app.ts'
import { asked, signedIn } from '../helpers/forms.ts'
import { grantOf } from '../helpers/stored-keys.ts'
import { ofOneReplica } from '../helpers/through.ts'

t.test('however many pages are open and handoffs passed, the tenant’s list is read once a second, and every page sees the result', { skip: ofOneReplica }, async t => {
  const service = await testApp(t)
  const cookie = await signedIn(service)
  const { lists } = service.store
  const waiting = lists.waiting.bind(lists)
  let reads = 0
  t.intercept(lists, 'waiting', {
    value: async (...asked: Parameters<typeof waiting>) => {
      reads++
      return await waiting(...asked)
    }
  })
  const first = performance.now()
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
  t.ok(asks > 20, `${asks} answers`)
  t.ok(reads > 0 && reads <= seconds + 1, `${reads} reads in ${seconds.toFixed(1)} s`)
})

t.test('a page gets what its key may read once the list is read, whatever it might before', async t => {
  const [mine, other] = ['mine', 'other'].map(to => ({ id: to, task: '"t"', record: { createdAt: 1, expiresAt: 2, approval: 'waiting', extra: { to } } }))
  const approvals = { list: async () => ({ items: [mine, other], next: null, now: 1 }), listChannelOf: () => 'approvals' }
  const asks = { list: async () => ({ items: [], next: null, now: 1 }), listChannelOf: () => null }
  const waiter = { waitOnSome: async (...[, , look]: Array<() => Promise<unknown>>) => await look!() }
  const people = new PeopleService(approvals as never, asks as never, { latest: async () => [] } as never, waiter as never)
  const carol = callerOf('default', 'carol', ['approve'])
  const grant = grantOf(async () => ({ ...carol, inboxes: new Set(['mine']) }))
  const requester = { grant: () => grant, isGone: () => false, onGone: () => () => {} }
  const { items } = await people.watch(carol, 10, {}, { milliseconds: 1000, requester }, () => true)
  t.strictSame(items.map(({ id }) => id), ['mine'])
})
