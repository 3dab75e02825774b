import { iso } from '../../src/core/iso.ts'
import fc from 'fast-check'
import t from 'tap'
import { statusAt } from '../../src/core/model.ts'
import type { HandoffRecord } from '../../src/core/model.ts'

t.test('timestamps equal Date’s', t => {
  fc.assert(fc.property(fc.integer({ min: 0, max: Date.UTC(9999, 11, 31, 23, 59, 59, 999) }), time => iso(time) === new Date(time).toISOString()))
  const start = Date.UTC(2026, 11, 31, 23, 58)
  // More seconds than the cache keeps, each repeatedly, with milliseconds of all lengths.
  for (const time of [0, 1, 9, 10, 99, 100, 999]) {
    for (let second = 0; second < 250; second++) {
      const at = start + second * 1000 + time
      if (iso(at) !== new Date(at).toISOString()) t.equal(iso(at), new Date(at).toISOString())
    }
  }
  t.end()
})

t.test('a deadline counts from its millisecond on', async t => {
  const pending = { status: 'pending', expiresAt: 1000, caught: null, extra: {} } as HandoffRecord
  const caught = { ...pending, status: 'caught', caught: { at: 500, deadline: 2000, by: 'bob' } } as HandoffRecord
  const beating = { ...caught, extra: { heartbeatDeadline: 1500 } }
  for (const [record, deadline] of [[pending, 1000], [caught, 2000], [beating, 1500]] as const) {
    t.strictSame([deadline - 1, deadline].map(now => statusAt(record, now)), [record.status, 'expired'])
  }
})
