/** The formats of texts that a form has fields for. The API doesn't check them; the form does. */

/** A date, a moment, a time of day, a mail address, a web address. */
export type FormatKind = 'date' | 'moment' | 'time' | 'email' | 'url'

/** JSON Schema's names of them. */
export const formatKinds: Readonly<Record<string, FormatKind>> =
  { date: 'date', 'date-time': 'moment', time: 'time', email: 'email', uri: 'url' }

/** `input`: the type of its field; `isZoned`: whether a time zone is sent beside it. */
interface Format {
  input: string
  isZoned: boolean
  /** The value that was typed, with its zone; null if it isn't one. */
  valueOf: (text: string) => string | null
  fault: string
}

const dayShape = /^(\d{4}-\d\d-\d\d)$/
const momentShape = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d(?:\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/
const timeShape = /^(\d\d:\d\d)(:\d\d(?:\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

export const formats: Readonly<Record<FormatKind, Format>> = {
  date: {
    input: 'date',
    isZoned: false,
    valueOf: text => isCalendarDay(dayShape.exec(text)?.[1]) ? text : null,
    fault: 'This is not a date, as in 2026-11-30.'
  },
  moment: {
    input: 'datetime-local',
    isZoned: true,
    valueOf (text) {
      const [, date, minute, second = ':00', zone] = momentShape.exec(text) ?? []
      return isCalendarDay(date) && isTime(minute!, second, zone!) ? `${date}T${minute}${second}${zone}` : null
    },
    fault: 'This is not a date and time, as in 2026-11-30T14:30.'
  },
  time: {
    input: 'time',
    isZoned: true,
    valueOf (text) {
      const [, minute, second = ':00', zone] = timeShape.exec(text) ?? []
      return minute !== undefined && isTime(minute, second, zone!) ? `${minute}${second}${zone}` : null
    },
    fault: 'This is not a time, as in 14:30.'
  },
  email: {
    input: 'email',
    isZoned: false,
    valueOf: text => /^[^\s@]{1,64}@[^\s@]{1,255}$/.test(text) ? text : null,
    fault: 'This is not a mail address, as in kim@example.com.'
  },
  url: {
    input: 'url',
    isZoned: false,
    valueOf: text => !/\s/.test(text) && URL.canParse(text) ? text : null,
    fault: 'This is not an address, as in https://example.com/.'
  },
}

function isCalendarDay (date: string | undefined): boolean {
  return date !== undefined && !isNaN(Date.parse(date)) && new Date(date).toISOString().startsWith(date)
}

function isTime (minute: string, second: string, zone: string): boolean {
  return !isNaN(Date.parse(`2026-01-01T${minute}${second}${zone}`)) && !minute.startsWith('24')
}

/** The name of the field with a value's time zone. */
export function zoneKey (key: string): string {
  return `${key}.zone`
}

/** The moment that a form's field has, in UTC: undefined if none was typed, null if it isn't one of years 0 to 9999. */
export function momentIn (form: Record<string, unknown>, key: string): string | null | undefined {
  const [text, zone] = [form[key], form[zoneKey(key)]].map(typed => typeof typed === 'string' ? typed.trim() : '')
  if (text === '') return undefined
  const moment = formats.moment.valueOf(text!) ?? formats.moment.valueOf(`${text}${zone === '' ? 'Z' : zone}`)
  const utc = moment === null ? '' : new Date(moment).toISOString()
  return /^\d/.test(utc) ? utc : null
}

/** A value's time without its zone, and its zone. */
export function zoned (value: string): [time: string, zone: string] {
  const [zone = 'Z'] = /(?:Z|[+-]\d\d:\d\d)$/.exec(value) ?? []
  return [value.endsWith(zone) ? value.slice(0, -zone.length) : value, zone]
}
