/** From `start` on, up to `end`, a zone's clock is `offset` ahead of UTC. All in milliseconds. */
interface Span { start: number, end: number, offset: number }

const day = 86_400_000
/** No zone of today's has two changes within so many days. */
const step = 7 * day
/** Of how many years of zones the changes are remembered: five leap years ahead in each zone there is. */
const maxYears = 12_500

/** By the zone's name in lower case: Intl takes any case, and names that clients write must not be kept without end. */
const zoneFormats = new Map<string, Intl.DateTimeFormat>()
const years = new Map<string, ReadonlyArray<{ at: number, offset: number }>>()

/** Is it a zone's name in the IANA database, as far as this Node knows it? */
export function isZone (name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name)) return false
  try {
    formatOf(name)
    return true
  } catch {
    return false
  }
}

function formatOf (zone: string): Intl.DateTimeFormat {
  const name = zone.toLowerCase()
  const known = zoneFormats.get(name)
  if (known !== undefined) return known
  const made = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric'
  })
  zoneFormats.set(name, made)
  return made
}

/** How far a zone's clock is ahead of UTC at this moment, in milliseconds. */
function offsetAt (zone: string, time: number): number {
  if (zone === 'UTC') return 0
  const whole = Math.floor(time / 1000) * 1000
  const [month, date, year, hour, minute, second] = formatOf(zone).format(whole).match(/\d+/g)!.map(Number) as [
    number, number, number, number, number, number
  ]
  return Date.UTC(year, month - 1, date, hour, minute, second) - whole
}

/** The changes of a zone's offset within a year of UTC, each with the offset from then on. */
function changesIn (zone: string, year: number): ReadonlyArray<{ at: number, offset: number }> {
  const name = `${zone.toLowerCase()} ${year}`
  const known = years.get(name)
  if (known !== undefined) return known
  const found: Array<{ at: number, offset: number }> = []
  const [begin, end] = [Date.UTC(year, 0), Date.UTC(year + 1, 0)]
  for (let from = begin; from < end; from += step) {
    addChanges(zone, from, Math.min(end, from + step), found)
  }
  if (years.size >= maxYears) years.clear()
  years.set(name, found)
  return found
}

/** Looks for one change after `from`, up to `to`. */
function addChanges (zone: string, from: number, to: number, found: Array<{ at: number, offset: number }>): void {
  const before = offsetAt(zone, from)
  const after = offsetAt(zone, to)
  if (before === after) return
  let [low, high] = [from, to]
  while (high - low > 1000) {
    const middle = Math.floor((low + high) / 2000) * 1000
    if (offsetAt(zone, middle) === before) low = middle
    else high = middle
  }
  found.push({ at: high, offset: offsetAt(zone, high) })
  // Two within one step: the second is behind the first.
  addChanges(zone, high, to, found)
}

/** The spans of a zone, from the one that has this moment on. The first begins at that moment. */
export function * spansFrom (zone: string, from: number): Generator<Span> {
  let [start, offset] = [from, offsetAt(zone, from)]
  for (let year = new Date(from).getUTCFullYear(); year < lastYear; year++) {
    for (const change of changesIn(zone, year)) {
      if (change.at <= start) continue
      yield { start, end: change.at, offset }
      start = change.at
      offset = change.offset
    }
    // So that a search for a time that is soon needn't know of later years.
    const end = Date.UTC(year + 1, 0)
    if (end > start) {
      yield { start, end, offset }
      start = end
    }
  }
}

/** Dates beyond it are none of JavaScript's. */
const lastYear = 270_000
