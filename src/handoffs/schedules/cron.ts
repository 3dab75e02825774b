/** A cron expression that isn't one, in words for its author. */
export class CronError extends Error {}

/** A parsed expression: at which minutes of a day it ticks, and on which days. */
export interface Cron {
  /** Counted from midnight, sorted. */
  minutes: readonly number[]
  /** Does it tick on this day? @param day days since 1970-01-01 of the zone's calendar */
  isOn (day: number): boolean
  /** Are its hours numbers, lists or ranges without a step? Then summer time neither skips nor repeats it. */
  isFixed: boolean
}

interface CronField { name: string, min: number, max: number, names?: readonly string[] }
/** What one field allows. `isAny`: it is `*`. `isOpen`: it has a `*` or a step. */
interface AllowedTimes { values: Set<number>, isAny: boolean, isOpen: boolean, hasLast: boolean }

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
const fields = [
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of the month', min: 1, max: 31 },
  { name: 'month', min: 1, max: 12, names: months },
  { name: 'day of the week', min: 0, max: 7, names: weekdays },
] as const satisfies readonly CronField[]
const longestMonth = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

const macros: Record<string, string> = {
  '@hourly': '0 * * * *',
  '@daily': '0 0 * * *',
  '@weekly': '0 0 * * 0',
  '@monthly': '0 0 1 * *',
  '@yearly': '0 0 1 1 *',
}
const maxCronLength = 256

/** @throws {CronError} */
export function parseCron (text: string): Cron {
  if (text.length > maxCronLength) throw new CronError(`must have at most ${maxCronLength} characters`)
  if (text.startsWith('@') && macros[text] === undefined) {
    throw new CronError(`must be one of ${Object.keys(macros).join(', ')}, or five fields`)
  }
  const words = (macros[text] ?? text).split(/[ \t]+/).filter(word => word !== '')
  if (words.length !== 5) {
    throw new CronError('must have five fields: minute, hour, day of the month, month, day of the week')
  }
  const [minute, hour, day, month, weekday] = fields.map((field, at) => parseField(field, words[at]!)) as [
    AllowedTimes, AllowedTimes, AllowedTimes, AllowedTimes, AllowedTimes
  ]
  if (weekday.values.has(7)) weekday.values.add(0)
  if (weekday.isAny && !canMatch(day, month)) throw new CronError('has a date that no year has')
  const minutes = sorted(hour.values).flatMap(hour => sorted(minute.values).map(minute => hour * 60 + minute))
  // Where both say something, either suffices.
  const isEither = !day.isAny && !weekday.isAny
  return {
    minutes,
    isFixed: !hour.isOpen,
    isOn (number) {
      const date = new Date(number * 86_400_000)
      if (!month.values.has(date.getUTCMonth() + 1)) return false
      const ofMonth = day.values.has(date.getUTCDate()) ||
        (day.hasLast && new Date((number + 1) * 86_400_000).getUTCDate() === 1)
      const ofWeek = weekday.values.has(date.getUTCDay())
      return isEither ? ofMonth || ofWeek : ofMonth && ofWeek
    },
  }
}

function sorted (values: ReadonlySet<number>): number[] {
  return [...values].sort((one, other) => one - other)
}

function canMatch (day: AllowedTimes, month: AllowedTimes): boolean {
  return day.hasLast || [...month.values].some(number =>
    [...day.values].some(date => date <= longestMonth[number - 1]!))
}

function parseField (field: CronField, text: string): AllowedTimes {
  const allowed: AllowedTimes = { values: new Set(), isAny: text === '*', isOpen: false, hasLast: false }
  for (const part of text.split(',')) {
    if (field.max === 31 && /^l$/i.test(part)) allowed.hasLast = true
    else parsePart(field, part, allowed)
  }
  return allowed
}

function parsePart (field: CronField, part: string, allowed: AllowedTimes): void {
  const [, range = '', , step] = /^([^/]*)(\/(\d{1,4}))?$/.exec(part) ?? []
  const dash = range.indexOf('-')
  const by = step === undefined ? 1 : Number(step)
  const isWhole = range === '*'
  const from = isWhole ? field.min : cronValue(field, dash === -1 ? range : range.slice(0, dash), part, false)
  const isWeekday = field.max === 7
  const to = isWhole
    ? isWeekday ? 6 : field.max
    : dash === -1 ? from : cronValue(field, range.slice(dash + 1), part, isWeekday && from > 0)
  if (from > to) throw new CronError(`${field.name}: ${part} goes backwards`)
  if (step !== undefined && (by === 0 || by > field.max || (!isWhole && dash === -1))) {
    throw new CronError(`${field.name}: ${part} has a step that can't be one; steps are of * or a range`)
  }
  if (isWhole || step !== undefined) allowed.isOpen = true
  for (let value = from; value <= to; value += by) allowed.values.add(value)
}

/** @param isEnd of a range of weekdays that begins after Sunday, so that Sunday is its last */
function cronValue ({ name, min, max, names }: CronField, text: string, part: string, isEnd: boolean): number {
  const at = names?.indexOf(text.toLowerCase()) ?? -1
  const number = at !== -1 ? (isEnd && at === 0 ? 7 : at + (max === 12 ? 1 : 0)) : /^\d{1,2}$/.test(text) ? Number(text) : NaN
  if (number >= min && number <= max) return number
  const words = names === undefined ? '' : ` or ${names[0]} to ${names.at(-1)}`
  throw new CronError(`${name}: ${part === '' ? 'nothing' : part} is none of ${min} to ${max}${words}`)
}
