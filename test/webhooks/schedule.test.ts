import t from 'tap'
import { pauseAfter, readRetryAfter } from '../../src/webhooks/sender.ts'

t.test('a delivery is tried ten times, after longer and longer pauses', async t => {
  const pauses = [5, 30, 120, 600, 1800, 3600, 7200, 14_400, 28_800]
  t.strictSame(Array.from({ length: 10 }, (_, at) => pauseAfter(at + 1, null, () => 0.5)), [...pauses.map(seconds => seconds * 1000), null])
  t.strictSame([pauseAfter(1, null, () => 0), pauseAfter(1, null, () => 1)], [4000, 6000], 'a fifth more or less')
})

t.test('Retry-After makes a pause longer, an hour at most', async t => {
  t.equal(pauseAfter(1, 60_000, () => 0.5), 60_000)
  t.equal(pauseAfter(1, 1000, () => 0.5), 5000)
  t.equal(pauseAfter(1, 86_400_000, () => 0.5), 3_600_000)
  t.equal(pauseAfter(9, 86_400_000, () => 0.5), 28_800_000)
  t.equal(pauseAfter(10, 1000), null, 'and adds no attempt')
  t.equal(readRetryAfter({ 'retry-after': '120' }), 120_000)
  t.equal(readRetryAfter({ 'retry-after': 'Fri, 20 Nov 2026 09:00:10 GMT', date: 'Fri, 20 Nov 2026 09:00:00 GMT' }), 10_000)
  t.equal(readRetryAfter({ 'retry-after': 'Fri, 20 Nov 2026 09:00:10 GMT', date: 'Sat, 21 Nov 2026 09:00:00 GMT' }), 0)
  for (const value of [undefined, '', '-1', 'soon', '1e3x']) t.equal(readRetryAfter({ 'retry-after': value }), null, String(value))
})
