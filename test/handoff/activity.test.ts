import t from 'tap'
import type { Test } from 'tap'
import { Activities } from '../../src/handoffs/activity.ts'
import type { EventService } from '../../src/handoffs/events.ts'
import { isAfter, pageSize } from '../../src/handoffs/feed.ts'
import type { Event, FeedPlace } from '../../src/handoffs/feed.ts'
import { skipInQuick } from '../helpers/extent.ts'

const minute = 60_000
const start = Date.parse('2026-11-20T09:00:00.000Z')

/** A feed in memory, read in pages as the real one is. */
class Feed {
  readonly isOn = true
  readonly feed = { retention: 24 * 60 * minute }
  readonly events: Event[] = []
  pages = 0
  fails = false

  add (at: number, count: number, type = 'handoff.passed'): void {
    for (let n = 0; n < count; n++) {
      this.events.push({ id: `${at}-${this.events.length}`, type, handoffId: 'x', inbox: null, labels: [], reissuedAs: null, text: '' })
    }
  }

  get reader () {
    return {
      now: async (): Promise<FeedPlace> => {
        const after = this.events.at(-1)?.id ?? '0-0'
        return { after, next: after, seen: this.clock }
      },
      next: async (tenant: string, { after }: FeedPlace) => {
        if (this.fails) throw new Error('away')
        this.pages++
        const events = this.events.filter(({ id }) => isAfter(id, after)).slice(0, pageSize)
        const place = events.at(-1)?.id ?? after
        return { events, isReset: false, isMore: events.length === pageSize, place: { after: place, next: place, seen: null } }
      },
    }
  }

  clock = start
}

/** Looks, past the second for which a look is shared. @returns how many are counted, and the minutes that are missing */
async function look (activities: Activities, t: Test) {
  t.context.now += 2000
  const { minutes, missing, newest } = (await activities.look('x'))!
  const counted = minutes.reduce((sum, { counts }) => sum + [...counts.values()].reduce((one, other) => one + other, 0), 0)
  return { counted, missing: missing.size, newest: newest[0]?.id, minutes }
}

/** The process's clock stands still during the test. */
function stopClock (t: Test): void {
  t.context.now = 0
  t.intercept(performance, 'now', { value: () => t.context.now, configurable: true })
}

t.test('what is new comes at once, and what was before is counted bit by bit', skipInQuick, async t => {
  stopClock(t)
  const feed = new Feed()
  for (let n = 50; n > 0; n--) feed.add(start - n * minute, 1000)
  feed.add(start - 10, 3, 'handoff.done')
  const activities = new Activities(feed as unknown as EventService)
  const first = await look(activities, t)
  t.equal(first.newest, feed.events.at(-1)!.id, 'the newest is there')
  t.ok(first.counted < 50_003 && first.missing > 0)
  t.ok(feed.pages <= 13, `${feed.pages} pages`)
  let last = first
  for (let n = 0; n < 30 && last.missing > 0; n++) {
    const pages = feed.pages
    last = await look(activities, t)
    t.ok(feed.pages - pages <= 12, 'a look reads so much and no more')
  }
  t.strictSame([last.counted, last.missing], [50_003, 0], 'each once')
  t.equal(last.minutes.at(-2)!.counts.get('handoff.passed') ?? last.minutes.at(-1)!.counts.get('handoff.passed'), 1000)
})

t.test('it goes on from where it was, also after a fault, and forgets what is over', async t => {
  stopClock(t)
  const feed = new Feed()
  feed.add(start - minute, 700)
  const activities = new Activities(feed as unknown as EventService)
  t.equal((await look(activities, t)).counted, 700)
  feed.add(start, 10)
  feed.fails = true
  await t.rejects(look(activities, t))
  feed.fails = false
  feed.clock = start + 1
  t.strictSame((await look(activities, t)).counted, 710)
  const pages = feed.pages
  t.strictSame((await look(activities, t)).counted, 710)
  t.equal(feed.pages, pages, 'nothing new: nothing is read')
  feed.clock = start + 59.5 * minute
  t.equal((await look(activities, t)).counted, 10)
})

t.test('those who look at one time share a look', async t => {
  stopClock(t)
  const feed = new Feed()
  feed.add(start - minute, 10)
  const activities = new Activities(feed as unknown as EventService)
  const all = await Promise.all([1, 2, 3].map(() => activities.look('x')))
  t.equal(new Set(all).size, 1)
  t.equal(feed.pages, 1)
})

t.test('where events are off there is nothing', async t => {
  stopClock(t)
  t.equal(await new Activities({ isOn: false } as EventService).look('x'), null)
})

t.test('it forgets who wasn’t looked at for minutes, though nobody looks at any', async t => {
  stopClock(t)
  const feed = new Feed()
  feed.add(start - minute, 10)
  const captured = t.capture(globalThis, 'setTimeout', (_: () => void, __: number) => ({ unref () { return this } }))
  // The runner has timers too.
  const timers = () => captured().filter(({ args: [, delay] }) => delay === 5 * minute)
  const activities = new Activities(feed as unknown as EventService)
  await look(activities, t)
  const runTimer = () => {
    const all = timers()
    t.equal(all.length, 1, 'one at a time')
    all[0]!.args[0]()
  }
  runTimer()
  await look(activities, t)
  t.equal(feed.pages, 1, 'it was looked at just now')
  t.context.now += 6 * minute
  runTimer()
  t.equal(timers().length, 0, 'none is left')
  await look(activities, t)
  t.equal(feed.pages, 2, 'read anew')
})
