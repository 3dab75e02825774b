import t from 'tap'
import { growth } from './weights.ts'
import type { Weights } from './weights.ts'

const flat: Weights = { heap: 60e6, rss: 300e6, timers: 6, handles: 30, accepted: 0, opened: 24, redis: 10e6, clients: 13, keys: 9000 }

/** A hundred minutes, with some noise; a tenth of them are those of a failover. */
function minutes (grow: (minute: number) => Partial<Weights> = () => ({})): Weights[] {
  return Array.from({ length: 100 }, (_, minute) => ({ ...flat, heap: flat.heap + (minute * 7 % 5) * 1e6, timers: flat.timers + minute % 2, clients: minute % 10 === 0 ? 40 : 13, ...grow(minute) }))
}

t.test('what varies and comes back is flat', async t => {
  t.strictSame(growth(minutes()), {
    grown: [],
    told: 'heap +0.0 %, rss +0.0 %, timers 6.5 → 6.5, handles 30 → 30, accepted 0 → 0, opened 24 → 24, redis +0.0 %, clients 13 → 13, keys 9000 → 9000',
  })
})

t.test('what grows is named', async t => {
  const grownBy = (grow: (minute: number) => Partial<Weights>) => growth(minutes(grow)).grown
  t.strictSame(grownBy(minute => ({ redis: flat.redis * (1 + minute * 0.001) })), ['redis'], 'a tenth in all')
  t.strictSame(grownBy(minute => ({ redis: flat.redis * (1 + minute * 0.0005) })), [])
  t.strictSame(grownBy(minute => ({ opened: 24 + Math.floor(minute / 10) })), ['opened'], 'one more with each failover')
  t.strictSame(grownBy(minute => ({ keys: 9000 + minute * 40 })), ['keys'])
})

t.test('too few minutes are compared too', async t => {
  t.strictSame(growth([flat]).grown, [])
  t.strictSame(growth([flat, { ...flat, rss: flat.rss * 1.06 }]).grown, ['rss'])
})
