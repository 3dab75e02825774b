/** Durations as people write them, in settings and in options of the command. */

const units = { ms: 1, s: 1000, m: 60_000, h: 3600_000, d: 86_400_000 } as const
const shape = /^(0|[1-9][0-9]{0,8})(ms|s|m|h|d)$/

/** `1500ms`, `60s`, `15m`, `48h`, `90d`. @returns milliseconds; undefined for anything else */
export function readDuration (text: string): number | undefined {
  const [, count, unit] = shape.exec(text) ?? []
  return unit === undefined ? undefined : Number(count) * units[unit as keyof typeof units]
}

const timeShape = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

/** A time like 2026-11-20T09:00:00.000Z (RFC 3339). @returns milliseconds; undefined for anything else */
export function readTime (text: string): number | undefined {
  const [, date] = timeShape.exec(text) ?? []
  // Date.parse() takes February 30 for March 2.
  const time = date !== undefined && isDay(date) ? Date.parse(text) : NaN
  return Number.isNaN(time) ? undefined : time
}

function isDay (date: string): boolean {
  return !Number.isNaN(Date.parse(date)) && new Date(date).toISOString().startsWith(date)
}
