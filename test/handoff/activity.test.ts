import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Activities } from '../../src/handoffs/lists/activity.ts'
import type { EventService } from '../../src/handoffs/feed/events.ts'
import { isAfter, pageSize } from '../../src/handoffs/feed/feed.ts'
import type { Event, FeedPlace } from '../../src/handoffs/feed/feed.ts'
import { isWhole } from '../helpers/extent.ts'
import { inVirtualTime } from '../helpers/virtual-time.ts'

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
async function look (activities: Activities) {
  await sleep(2000)
  const { minutes, missing, newest } = (await activities.look('x'))!
  const counted = minutes.reduce((sum, { counts }) => sum + [...counts.values()].reduce((one, other) => one + other, 0), 0)
  return { counted, missing: missing.size, newest: newest[0]?.id, minutes }
}

t.test('what is new comes at once, and what was before is counted bit by bit', async t => {
  const each = isWhole ? 1000 : 200
  const feed = new Feed()
  for (let n = 50; n > 0; n--) feed.add(start - n * minute, each)
  feed.add(start - 10, 3, 'handoff.done')
  const activities = new Activities(feed as unknown as EventService)
  const { first, last, pages } = await inVirtualTime(async () => {
    const first = await look(activities)
    const pages = [feed.pages]
    let last = first
    for (let n = 0; n < 30 && last.missing > 0; n++) {
      const before = feed.pages
      last = await look(activities)
      pages.push(feed.pages - before)
    }
    return { first, last, pages }
  })
  t.equal(first.newest, feed.events.at(-1)!.id, 'the newest is there')
  t.ok(first.counted < 50 * each + 3 && first.missing > 0)
  t.ok(pages[0]! <= 13, `${pages[0]} pages`)
  t.ok(pages.slice(1).every(count => count <= 12), 'a look reads so much and no more')
  t.strictSame([last.counted, last.missing], [50 * each + 3, 0], 'each once')
  t.equal(last.minutes.at(-2)!.counts.get('handoff.passed') ?? last.minutes.at(-1)!.counts.get('handoff.passed'), each)
})

t.test('it goes on from where it was, also after a fault, and forgets what is over', async t => {
  const feed = new Feed()
  feed.add(start - minute, 700)
  const activities = new Activities(feed as unknown as EventService)
  const counted = await inVirtualTime(async () => {
    const counted: unknown[] = [(await look(activities)).counted]
    feed.add(start, 10)
    feed.fails = true
    counted.push(await look(activities).catch(({ message }) => message))
    feed.fails = false
    feed.clock = start + 1
    counted.push((await look(activities)).counted)
    const pages = feed.pages
    counted.push((await look(activities)).counted, feed.pages - pages)
    feed.clock = start + 59.5 * minute
    return [...counted, (await look(activities)).counted]
  })
  t.strictSame(counted, [700, 'away', 710, 710, 0, 10], 'where nothing is new, nothing is read')
})

t.test('those who look at one time share a look', async t => {
  const feed = new Feed()
  feed.add(start - minute, 10)
  const activities = new Activities(feed as unknown as EventService)
  const all = await Promise.all([1, 2, 3].map(() => activities.look('x')))
  t.equal(new Set(all).size, 1)
  t.equal(feed.pages, 1)
})

t.test('where events are off there is nothing', async t => {
  t.equal(await new Activities({ isOn: false } as EventService).look('x'), null)
})

t.test('it forgets who wasn’t looked at for minutes, though nobody looks at any', async t => {
  const feed = new Feed()
  feed.add(start - minute, 10)
  const activities = new Activities(feed as unknown as EventService)
  const pages = await inVirtualTime(async () => {
    const pages: number[] = []
    for (const rest of [0, 5 * minute, 15 * minute]) {
      await sleep(rest)
      await look(activities)
      pages.push(feed.pages)
    }
    return pages
  })
  t.strictSame(pages, [1, 1, 2], 'read anew once it was forgotten')
})
