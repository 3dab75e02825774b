import { iso } from '../handoff/answers.ts'

// Who reads it may have seen enough: `handoff keys list | head -1`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => { if (error.code !== 'EPIPE') throw error })

export function print (text: string | Buffer): void {
  process.stdout.write(text)
  process.stdout.write('\n')
}

/** One line and nothing else, for programs. */
export function printJson (value: unknown): void {
  print(JSON.stringify(value))
}

/** Columns as wide as what is in them. */
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

/** A deadline, and how far off it is while it counts. */
export function due (time: number, counts: boolean, now: number): string {
  return counts ? when(time, now) : iso(time)
}

/** What somebody else wrote, for a terminal: without what would steer it. JSON text stays the same JSON. */
export function harmless (text: string): string {
  return text.replace(/[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** JSON text in one line: no line break is part of a string there, and other white space may change. */
export function unbroken (json: string): string {
  return json.replace(/[\t\r\n]+/g, ' ')
}
