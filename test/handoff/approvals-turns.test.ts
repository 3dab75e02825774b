import t from 'tap'
import { ApprovalService } from '../../src/handoffs/approvals.ts'
import { MasterTurns } from '../../src/http/overload.ts'
import type { Approvals } from '../../src/store/approvals.ts'

/** A service whose calls to Redis end when they are told to, without having found anything yet. */
function service () {
  const calls: Array<{ tenant: string, end (): void }> = []
  const approvals = {
    list: (tenant: string) => new Promise(resolve => {
      const end = () => resolve({ items: [], next: { createdAt: 1, id: 'x' }, count: 1, now: 1 })
      calls.push({ tenant, end })
    })
  } as unknown as Approvals
  const turns = new MasterTurns(2)
  return { calls, service: new ApprovalService(approvals, null as never, ({ tenant }, read) => turns.run(undefined, tenant, read), null as never) }
}

const turn = () => new Promise(resolve => setImmediate(resolve))

t.test('lists of which only some are wanted take turns, call by call and tenant by tenant', async t => {
  for (const wanted of [{ labels: ['run:42'] }, { inbox: 'reviewer' }]) {
    const { calls, service: approvals } = service()
    const lists = Array.from({ length: 10 }, () => approvals.list('many', undefined, 1, wanted))
    const other = approvals.list('other', undefined, 1, wanted)
    await turn()
    t.strictSame(calls.map(({ tenant }) => tenant), ['many', 'many'], 'the others wait')
    let ended = 0
    let others = 0
    while (ended < calls.length) {
      const { tenant, end } = calls[ended++]!
      if (tenant === 'other') others++
      end()
      await turn()
      t.ok(calls.length - ended <= 2, 'two at once')
      if (ended === 8) t.ok(others > 0, 'another tenant’s are among the next')
    }
    await Promise.all([...lists, other])
    t.equal(ended, 11 * 32, 'each list ends after so many calls')
  }
})

t.test('a list of all that wait takes no turn', async t => {
  const { calls, service: approvals } = service()
  const lists = Array.from({ length: 5 }, () => approvals.list('many', undefined, 1))
  await turn()
  t.equal(calls.length, 5)
  for (let ended = 0; ended < calls.length; await turn()) calls[ended++]!.end()
  await Promise.all(lists)
})
