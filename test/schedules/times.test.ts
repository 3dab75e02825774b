import t from 'tap'
import { parseCron } from '../../src/handoffs/schedules/cron.ts'
import { isZone } from '../../src/handoffs/schedules/zones.ts'
import { shortestInterval, tickAfter, ticksAfter } from '../../src/handoffs/schedules/times.ts'
import type { Timing } from '../../src/handoffs/schedules/times.ts'
import { isWhole } from '../helpers/extent.ts'

/** When schedules tick: what is taken, the golden table of summer time, and all minutes of years against another computation. */

/** All of them in full runs, else so many. */
const few = <T>(all: readonly T[], count: number): T[] => isWhole ? [...all] : [...all].sort(() => Math.random() - 0.5).slice(0, count)
const utc = (text: string) => Date.parse(`${text}Z`)
const cronIn = (cron: string, timezone: string, more: Partial<Timing> = {}): Timing => ({ cron, timezone, every: null, anchor: 0, startsAt: null, endsAt: null, ...more })

const formats = new Map<string, Intl.DateTimeFormat>()
/** How far a zone's clock is ahead, computed otherwise than in the service. */
function offsetAt (timeZone: string, time: number): number {
  const format = formats.get(timeZone) ?? new Intl.DateTimeFormat('en-GB', { timeZone, hourCycle: 'h23', dateStyle: 'short', timeStyle: 'medium' })
  formats.set(timeZone, format)
  const [day, month, year, hour, minute, second] = format.format(time).split(/\D+/).map(Number) as [number, number, number, number, number, number]
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(time / 1000) * 1000
}

function between (timing: Timing, from: number, to: number): number[] {
  const found: number[] = []
  for (const tick of ticksAfter(timing, from - 1)) {
    if (tick >= to) break
    found.push(tick)
  }
  return found
}

const texts = (ticks: number[]) => ticks.map(tick => new Date(tick).toISOString().slice(0, 16))

t.test('ticks that are years apart', async t => {
  for (const zone of ['UTC', 'Etc/UTC', 'Europe/Berlin']) {
    t.equal(between(cronIn('0 12 1 1 *', zone), utc('2005-01-01T00:00'), utc('2026-01-01T00:00')).length, 21, `${zone}: each year`)
    t.equal(between(cronIn('0 12 29 2 *', zone), utc('2026-01-01T00:00'), utc('2045-01-01T00:00')).length, 5, `${zone}: each leap year`)
  }
})

t.test('a zone is the same one in any case, and kept once', async t => {
  const { DateTimeFormat } = Intl
  let made = 0
  t.intercept(Intl, 'DateTimeFormat', {
    value: class extends DateTimeFormat {
      constructor (...[locale, options]: ConstructorParameters<typeof DateTimeFormat>) {
        super(locale, options)
        made++
      }
    }
  })
  for (const name of ['Asia/Kathmandu', 'ASIA/KATHMANDU', 'asia/kathmandu', 'aSIA/kATHMANDU']) t.ok(isZone(name), name)
  t.equal(made, 1)
  t.strictSame(texts(between(cronIn('0 0 * * *', 'ASIA/kathmandu'), utc('2026-11-28T00:00'), utc('2026-11-29T00:00'))), ['2026-11-28T18:15'])
  t.equal(made, 1)
})

t.test('the five fields', async t => {
  const on = (cron: string, from = '2026-11-28T00:00', to = '2026-12-05T00:00') => texts(between(cronIn(cron, 'UTC'), utc(from), utc(to)))
  t.strictSame(on('30 9 28,30 11 *'), ['2026-11-28T09:30', '2026-11-30T09:30'])
  t.strictSame(on('0 0 * * MON-tue'), ['2026-11-30T00:00', '2026-12-01T00:00'])
  t.strictSame(on('0 0 * * 7'), ['2026-11-29T00:00'], '7 is Sunday')
  t.strictSame(on('0 0 * * 0'), ['2026-11-29T00:00'])
  t.strictSame(on('0 0 * * 5-7'), ['2026-11-28T00:00', '2026-11-29T00:00', '2026-12-04T00:00'])
  t.strictSame(on('0 0 * * fri-sun'), ['2026-11-28T00:00', '2026-11-29T00:00', '2026-12-04T00:00'])
  t.strictSame(on('0 0 * * sun-sun'), ['2026-11-29T00:00'], 'a range of one')
  t.strictSame(on('0 0 * * Sun-mon'), ['2026-11-29T00:00', '2026-11-30T00:00'])
  t.strictSame(on('0 0 L * *'), ['2026-11-30T00:00'], 'the last day')
  t.strictSame(on('0 0 1,L * *'), ['2026-11-30T00:00', '2026-12-01T00:00'])
  t.strictSame(on('0 0 l Feb *', '2028-01-01T00:00', '2028-12-01T00:00'), ['2028-02-29T00:00'])
  t.strictSame(on('0 0 30 * SAT'), ['2026-11-28T00:00', '2026-11-30T00:00'], 'day and weekday: either')
  t.strictSame(on('0 0 */30 * sat'), ['2026-11-28T00:00', '2026-12-01T00:00'], '*/n is other than *')
  t.strictSame(on('*/20 0-23/12 28 * *'), ['00:00', '00:20', '00:40', '12:00', '12:20', '12:40'].map(time => `2026-11-28T${time}`))
  t.strictSame(on('0 0 1 DEC,jan *'), ['2026-12-01T00:00'])
  for (const [macro, cron] of [['@hourly', '0 * * * *'], ['@daily', '0 0 * * *'], ['@weekly', '0 0 * * 0'], ['@monthly', '0 0 1 * *'], ['@yearly', '0 0 1 1 *']] as const) {
    t.strictSame(on(macro, '2026-01-01T00:00', '2027-02-01T00:00'), on(cron, '2026-01-01T00:00', '2027-02-01T00:00'), macro)
  }
  t.equal(tickAfter(cronIn('0 0 29 2 *', 'UTC'), utc('2096-03-01T00:00')), utc('2104-02-29T00:00'), 'the longest way to a 29th')
  const wrong = ['', '* * * *', '* * * * * *', '60 * * * *', '* 24 * * *', '* * 0 * *', '* * 32 * *', '* * * 13 *', '* * * 0 *', '* * * * 8', '5-1 * * * *', '*/0 * * * *', '1/5 * * * *', 'x * * * *',
    '0 0 31 2 *', '0 0 30 feb *', '0 0 31 4,6 *', '@minutely', '@reboot', '* * ? * *', '0 0 1W * *', '0 0 * * MON#1', '0 0 * * L', '1,,2 * * * *', '-1 * * * *', '1- * * * *', '* * * foo *', '0 0 1-L * *', '*/99 * * * *', '1.5 * * * *']
  for (const cron of wrong) t.throws(() => parseCron(cron), { message: /./ }, cron)
  t.doesNotThrow(() => parseCron('0 0 31 2 MON'), 'a Monday in February')
  t.doesNotThrow(() => parseCron('0 0 31 1,2 *'))
})

t.test('intervals', async t => {
  const anchor = utc('2026-11-28T09:00')
  const every = { cron: null, timezone: 'UTC', every: 90_000, anchor, startsAt: null, endsAt: null }
  t.strictSame(between(every, anchor - 1_000_000, anchor + 200_000), [0, 90_000, 180_000].map(at => anchor + at), 'none before the first')
  t.equal(tickAfter(every, anchor + 90_000), anchor + 180_000)
  t.strictSame(between({ ...every, startsAt: anchor, endsAt: anchor + 180_000 }, 0, Infinity), [anchor, anchor + 90_000], 'from, and before')
  const hourly = cronIn('0 * * * *', 'UTC', { startsAt: utc('2026-11-28T09:00'), endsAt: utc('2026-11-28T11:00') })
  t.strictSame(texts(between(hourly, 0, Infinity)), ['2026-11-28T09:00', '2026-11-28T10:00'])
  for (const [cron, shortest] of [['*/5 * * * *', 5], ['0 0,23 * * *', 60], ['0 23 1 * *', Infinity], ['0,50 * * * *', 10], ['0 0,23 31 * *', 1380], ['0 0,23 31,1 * *', 60], ['0 0,23 * * 1,3', 1380], ['59 23 * * *', 1440]] as const) {
    const found = shortestInterval({ cron, every: null }, 86_400_001)
    t.equal(found, shortest * 60_000, cron)
  }
})

/** zone, cron, from, to, what runs. */
const golden: Array<[string, string, string, string, string[]]> = [
  // Berlin: 2026-03-29 02:00 → 03:00 at 01:00Z, 2026-10-25 03:00 → 02:00 at 01:00Z.
  ['Europe/Berlin', '30 2 * * *', '2026-03-28T00:00', '2026-03-31T00:00', ['2026-03-28T01:30', '2026-03-29T01:00', '2026-03-30T00:30']],
  ['Europe/Berlin', '*/15 2 * * *', '2026-03-29T00:00', '2026-03-30T00:00', ['2026-03-29T01:00']],
  ['Europe/Berlin', '0,30 2,3 * * *', '2026-03-29T00:00', '2026-03-30T00:00', ['2026-03-29T01:00', '2026-03-29T01:30']],
  ['Europe/Berlin', '30 2,3 * * *', '2026-03-29T00:00', '2026-03-30T00:00', ['2026-03-29T01:00', '2026-03-29T01:30']],
  ['Europe/Berlin', '30 2 * * MON', '2026-03-28T00:00', '2026-03-29T12:00', []],
  ['Europe/Berlin', '30 2 29 3 *', '2026-03-28T00:00', '2026-03-31T00:00', ['2026-03-29T01:00']],
  ['Europe/Berlin', '30 * * * *', '2026-03-29T00:00', '2026-03-29T03:00', ['2026-03-29T00:30', '2026-03-29T01:30', '2026-03-29T02:30']],
  ['Europe/Berlin', '30 */2 * * *', '2026-03-28T22:00', '2026-03-29T04:00', ['2026-03-28T23:30', '2026-03-29T02:30']],
  ['Europe/Berlin', '30 2 * * *', '2026-10-25T00:00', '2026-10-26T00:00', ['2026-10-25T00:30']],
  ['Europe/Berlin', '30 1-3 * * *', '2026-10-24T22:00', '2026-10-25T04:00', ['2026-10-24T23:30', '2026-10-25T00:30', '2026-10-25T02:30']],
  ['Europe/Berlin', '30 */2 * * *', '2026-10-24T22:00', '2026-10-25T04:00', ['2026-10-24T22:30', '2026-10-25T00:30', '2026-10-25T01:30', '2026-10-25T03:30']],
  ['Europe/Berlin', '0 * * * *', '2026-10-24T23:00', '2026-10-25T03:00', ['2026-10-24T23:00', '2026-10-25T00:00', '2026-10-25T01:00', '2026-10-25T02:00']],
  // New York: 2026-03-08 02:00 → 03:00 at 07:00Z, 2026-11-01 02:00 → 01:00 at 06:00Z.
  ['America/New_York', '0 2 * * *', '2026-03-07T12:00', '2026-03-09T12:00', ['2026-03-08T07:00', '2026-03-09T06:00']],
  ['America/New_York', '0 2,3 * * *', '2026-03-08T00:00', '2026-03-08T12:00', ['2026-03-08T07:00']],
  ['America/New_York', '30 1 * * *', '2026-11-01T00:00', '2026-11-02T00:00', ['2026-11-01T05:30']],
  ['America/New_York', '30 * 1 11 *', '2026-11-01T04:00', '2026-11-01T08:00', ['2026-11-01T04:30', '2026-11-01T05:30', '2026-11-01T06:30', '2026-11-01T07:30']],
  // London: 2026-03-29 01:00 → 02:00 at 01:00Z, 2026-10-25 02:00 → 01:00 at 01:00Z.
  ['Europe/London', '15 1 * * *', '2026-03-29T00:00', '2026-03-30T12:00', ['2026-03-29T01:00', '2026-03-30T00:15']],
  ['Europe/London', '15 1 * * *', '2026-10-25T00:00', '2026-10-26T12:00', ['2026-10-25T00:15', '2026-10-26T01:15']],
  // Lord Howe: half an hour. 2026-10-04 02:00 → 02:30 at 15:30Z the day before, 2026-04-05 02:00 → 01:30 at 15:00Z the day before.
  ['Australia/Lord_Howe', '15 2 * * *', '2026-10-03T12:00', '2026-10-05T00:00', ['2026-10-03T15:30', '2026-10-04T15:15']],
  ['Australia/Lord_Howe', '*/15 2 * * *', '2026-10-03T12:00', '2026-10-04T00:00', ['2026-10-03T15:30', '2026-10-03T15:45']],
  ['Australia/Lord_Howe', '45 1 * * *', '2026-04-04T12:00', '2026-04-05T12:00', ['2026-04-04T14:45']],
  ['Australia/Lord_Howe', '45 * * * *', '2026-04-04T14:00', '2026-04-04T16:20', ['2026-04-04T14:45', '2026-04-04T15:15', '2026-04-04T16:15']],
  // Santiago: at midnight. 2026-09-06 00:00 → 01:00 at 04:00Z, 2026-04-05 00:00 → 23:00 of the 4th at 03:00Z.
  ['America/Santiago', '0 0 * * *', '2026-09-05T00:00', '2026-09-07T12:00', ['2026-09-05T04:00', '2026-09-06T04:00', '2026-09-07T03:00']],
  ['America/Santiago', '30 0 6 9 *', '2026-09-05T00:00', '2026-09-07T12:00', ['2026-09-06T04:00']],
  ['America/Santiago', '30 0 * * *', '2026-09-06T00:00', '2026-09-06T12:00', ['2026-09-06T04:00']],
  ['America/Santiago', '0 0,1 * * *', '2026-09-06T00:00', '2026-09-06T12:00', ['2026-09-06T04:00']],
  ['America/Santiago', '30 23 * * *', '2026-04-04T12:00', '2026-04-05T12:00', ['2026-04-05T02:30']],
  ['America/Santiago', '30 23 L,4 * *', '2026-04-04T12:00', '2026-04-05T12:00', ['2026-04-05T02:30']],
  ['America/Santiago', '30 * * * *', '2026-04-05T02:00', '2026-04-05T05:00', ['2026-04-05T02:30', '2026-04-05T03:30', '2026-04-05T04:30']],
  // Kiritimati: no summer time, 14 hours ahead.
  ['Pacific/Kiritimati', '0 9 * * *', '2026-06-01T00:00', '2026-06-03T00:00', ['2026-06-01T19:00', '2026-06-02T19:00']],
]

t.test('the golden table of summer time', async t => {
  for (const [zone, cron, from, to, expected] of golden) {
    t.strictSame(texts(between(cronIn(cron, zone), utc(from), utc(to))), expected, `${zone} ${cron} ${from}`)
  }
  // A whole day that a zone leaves out: Apia had no 2011-12-30, by its own clock at 10:00Z.
  t.strictSame(texts(between(cronIn('0 9 * * *', 'Pacific/Apia'), utc('2011-12-29T12:00'), utc('2011-12-31T12:00'))), ['2011-12-29T19:00', '2011-12-30T10:00', '2011-12-30T19:00'])
  t.strictSame(texts(between(cronIn('0 9 30 12 *', 'Pacific/Apia'), utc('2011-12-01T12:00'), utc('2012-01-31T12:00'))), ['2011-12-30T10:00'], 'the day is the skipped one’s')
  t.strictSame(texts(between(cronIn('0 * 30 12 *', 'Pacific/Apia'), utc('2011-12-01T12:00'), utc('2012-01-31T12:00'))), [], 'the clock’s hours as they come')
})

/** The same by looking at each minute of UTC, from the contract's words. */
function byMinutes (cron: string, zone: string, from: number, to: number): number[] {
  const { isOn, isFixed, minutes } = parseCron(cron)
  const matches = (local: number) => local % 60_000 === 0 && minutes.includes(Math.floor(local % 86_400_000 / 60_000)) && isOn(Math.floor(local / 86_400_000))
  const found = new Set<number>()
  let shown = from + offsetAt(zone, from) - 60_000
  for (let minute = from; minute < to; minute += 60_000) {
    const local = minute + offsetAt(zone, minute)
    if (isFixed && local > shown + 60_000) {
      for (let skipped = shown + 60_000; skipped < local; skipped += 60_000) if (matches(skipped)) found.add(minute)
    }
    if (matches(local) && (!isFixed || local > shown)) found.add(minute)
    shown = Math.max(shown, local)
  }
  return [...found].sort((one, other) => one - other)
}

t.test('each minute around changes of the clock, in many zones: never twice, none missing, in order', async t => {
  const zones = ['Europe/Berlin', 'America/New_York', 'Europe/London', 'Australia/Lord_Howe', 'America/Santiago', 'Pacific/Kiritimati', 'Africa/Casablanca', 'Asia/Gaza', 'America/St_Johns', 'Pacific/Chatham', 'Asia/Tehran', 'Africa/Cairo', 'Antarctica/Troll', 'America/Havana', 'Asia/Beirut', 'Pacific/Apia']
  const crons = ['30 2 * * *', '*/7 1-3 * * *', '0 0 * * *', '*/20 * * * *', '15 */3 * * *', '30 23 L * *', '45 1 * * sun', '0,59 0,2 1-7 * sun', '30 0,1,2 31,29,25 3,10 *']
  for (const zone of few(zones, 6)) {
    const year = 2000 + Math.floor(Math.random() * 35)
    const changes = [...Array(365).keys()].map(at => Date.UTC(year, 0, 1 + at)).filter(at => offsetAt(zone, at) !== offsetAt(zone, at + 86_400_000))
    for (const change of [...changes, Date.UTC(year, 5, 15)]) {
      const [from, to] = [change - 2 * 86_400_000, change + 3 * 86_400_000]
      for (const cron of few(crons, 4)) {
        const found = between(cronIn(cron, zone), from, to)
        t.strictSame(found, byMinutes(cron, zone, from, to), `${zone} ${new Date(change).toISOString()} ${cron}`)
        // From anywhere the next one is the same.
        for (let at = 0; at < 5; at++) {
          const moment = from + Math.floor(Math.random() * (to - from))
          const next = found.find(tick => tick > moment)
          if (next !== undefined) t.equal(tickAfter(cronIn(cron, zone), moment), next, `${zone} ${cron} after ${new Date(moment).toISOString()}`)
        }
      }
    }
  }
})

t.test('2,000 years of zones: as many as there are days, each in its order', async t => {
  const zones = Intl.supportedValuesOf('timeZone')
  for (let count = 0, wanted = few([...Array(2000).keys()], 150).length; count < wanted; count++) {
    const zone = zones[Math.floor(Math.random() * zones.length)]!
    const year = 1975 + Math.floor(Math.random() * 70)
    const [hour, minute] = [Math.floor(Math.random() * 24), Math.floor(Math.random() * 60)]
    const timing = cronIn(`${minute} ${hour} * * *`, zone)
    // A fixed hour runs once for each date of the zone's calendar.
    const from = Date.UTC(year, 0, 5)
    const to = Date.UTC(year, 11, 25)
    const found = between(timing, from, to)
    const dateAt = (time: number) => Math.floor((time + offsetAt(zone, time) - (hour * 60 + minute) * 60_000) / 86_400_000)
    const days = dateAt(to - 1) - dateAt(from - 1)
    const isOff = Math.abs(found.length - days) > (found.some((tick, at) => at > 0 && tick - found[at - 1]! < 12 * 3_600_000) ? 1 : 0)
    if (isOff || found.some((tick, at) => at > 0 && tick <= found[at - 1]!)) t.fail(`${zone} ${year} ${minute} ${hour}: ${found.length} runs in ${days} days`)
  }
  t.pass()
})

t.test('names of zones', async t => {
  for (const zone of ['UTC', 'Europe/Berlin', 'Etc/GMT+5', 'america/new_york']) t.ok(isZone(zone), zone)
  for (const zone of ['', 'Europe/Atlantis', '+01:00', 'Berlin', 'Europe/Berlin ', 'UTC+1']) t.notOk(isZone(zone), zone)
})
