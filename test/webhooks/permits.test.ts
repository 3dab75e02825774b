import t from 'tap'
import { Permits } from '../../src/webhooks/permits.ts'

t.test('permits go to tenants in turn, within each to who waits in turn, and each tenant has some', t => {
  const permits = new Permits({ total: 6, each: 0, shared: 4, always: 1 })
  const given: string[] = []
  const take = (tenant: string, webhook: string, wanted = 1) => {
    const wake = () => { if (permits.take(tenant, wanted, wake) > 0) given.push(`${tenant} ${webhook}`) }
    wake()
  }
  const holder = { one: () => {}, other: () => {}, third: () => {} }
  const giveBack = (tenant: keyof typeof holder, count: number) => permits.giveBack(tenant, count, holder[tenant])
  t.equal(permits.take('one', 10, holder.one), 4, 'a tenant’s share')
  t.equal(permits.take('other', 10, holder.other), 2, 'what is left')
  t.equal(permits.take('third', 10, holder.third), 1, 'always')
  for (const webhook of ['a', 'b', 'c']) take('one', webhook)
  take('other', 'd')
  take('other', 'e')
  t.strictSame(given, [])
  giveBack('one', 1)
  t.strictSame(given, [], 'with the third’s there are as many as may be')
  giveBack('third', 1)
  t.strictSame(given, ['one a'])
  giveBack('one', 2)
  t.strictSame(given, ['one a', 'other d', 'one b'])
  giveBack('other', 2)
  t.strictSame(given, ['one a', 'other d', 'one b', 'other e', 'one c'])
  t.end()
})

t.test('a webhook has some permits, however many the others of its tenant hold', t => {
  const permits = new Permits({ total: 100, each: 2, shared: 5, always: 2 })
  const [first, second, third] = [() => {}, () => {}, () => {}]
  t.equal(permits.take('one', 10, first), 7, 'its own, and all that are shared')
  t.equal(permits.take('one', 10, second), 2)
  t.equal(permits.take('one', 10, third), 2)
  t.equal(permits.take('one', 10, third), 0)
  let woken = 0
  const waits = () => { woken += permits.take('one', 10, waits) }
  t.equal(permits.take('one', 1, second), 0)
  permits.take('one', 0, second)
  waits()
  t.equal(woken, 2)
  permits.giveBack('one', 3, first)
  t.equal(permits.take('one', 10, second), 3, 'what was shared is free again')
  t.end()
})
