import { iso } from '../handoff/answers.ts'

const lineFeed = Buffer.from('\n')

export function print (text: string | Buffer): void {
  // In one piece: a reader that has all of the text may close the pipe, and nothing is lost then.
  process.stdout.write(typeof text === 'string' ? `${text}\n` : Buffer.concat([text, lineFeed]))
}

/** Prints one line of JSON, for programs. */
export function printJson (value: unknown): void {
  print(JSON.stringify(value))
}

/** Pads columns to the widest cell. */
export function table (rows: ReadonlyArray<readonly string[]>): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]!.length)))
  return rows.map(row => row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ').trimEnd()).join('\n')
}

const units = [['d', 86_400_000], ['h', 3600_000], ['min', 60_000], ['s', 1000]] as const

/** `2 d 3 h`, `45 s`: the two largest units of so many milliseconds. */
export function span (milliseconds: number): string {
  let left = Math.abs(milliseconds)
  const parts: string[] = []
  for (const [unit, length] of units) {
    const count = Math.floor(left / length)
    left -= count * length
    if (count > 0) parts.push(`${count} ${unit}`)
    else if (parts.length > 0) break
  }
  return parts.slice(0, 2).join(' ') || `${Math.round(left)} ms`
}

/** `2026-11-20T09:00:00.000Z (in 2 h 5 min)` */
export function when (time: number, now: number): string {
  return `${iso(time)} (${time > now ? `in ${span(time - now)}` : `${span(now - time)} ago`})`
}

/** A deadline; while it `counts`, also how far away it is. */
export function due (time: number, counts: boolean, now: number): string {
  return counts ? when(time, now) : iso(time)
}

/** Escapes control characters in someone else's JSON text, so that it can't steer the terminal. It stays the same JSON. */
export function harmless (text: string): string {
  return text.replace(/[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** JSON text on one line. Safe: JSON strings contain no raw line breaks, and other white space doesn't matter. */
export function unbroken (json: string): string {
  return json.replace(/[\t\r\n]+/g, ' ')
}
