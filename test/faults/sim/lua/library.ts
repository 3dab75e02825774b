import { createHash } from 'node:crypto'
import { ReplyError } from '../keyspace.ts'
import { patternOf } from './patterns.ts'
import { Table } from './table.ts'

/**
 * Lua's values in JavaScript: nil is undefined, a string is a string of which each character is a byte, a table is a Table. A function that
 * gives several values, or none, returns an array.
 */

export const one = (given: unknown): unknown => Array.isArray(given) ? given[0] : given
export const many = (given: unknown): unknown[] => Array.isArray(given) ? given : [given]
export const isTrue = (value: unknown): boolean => value !== undefined && value !== false

export function num (value: unknown): number {
  if (typeof value === 'number') return value
  const number = typeof value === 'string' ? tonumber(value) : undefined
  if (number === undefined) throw new Error(`attempt to calculate with ${String(value)}`)
  return number
}

export function str (value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'number') throw new Error(`attempt to concatenate ${String(value)}`)
  return textOf(value)
}

/** As C writes it by %.14g. */
function textOf (number: number): string {
  if (Number.isInteger(number) && Math.abs(number) < 1e14) return String(number)
  return String(Number(number.toPrecision(14))).replace(/e\+?(-?)(\d)$/, 'e$10$2')
}

export function less (one: unknown, other: unknown): boolean {
  if (typeof one !== typeof other) throw new Error(`attempt to compare ${String(one)} with ${String(other)}`)
  return (one as number) < (other as number)
}

export function atMost (one: unknown, other: unknown): boolean {
  return !less(other, one)
}

export const mod = (one: number, other: number): number => one - Math.floor(one / other) * other

export function length (value: unknown): number {
  return value instanceof Table ? value.length : (value as string).length
}

export function index (table: unknown, key: unknown): unknown {
  if (!(table instanceof Table)) throw new Error(`attempt to index ${String(table)} by ${String(key)}`)
  return table.get(key)
}

export function tonumber (value: unknown, base = 10): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value !== 'string') return undefined
  if (base === 16) return /^[0-9a-f]+$/i.test(value) ? parseInt(value, 16) : undefined
  return /^\s*-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(value) ? Number(value) : undefined
}

/** What a match captured; the whole match if it captures nothing. */
function captured (found: RegExpExecArray): unknown {
  return found.length === 1 ? found[0] : found.length === 2 ? found[1] : found.slice(1)
}

const from = (text: string, at: number) => at > 0 ? at - 1 : at < 0 ? Math.max(0, text.length + at) : 0

/** The functions by their names; `redis` has them of its own. */
export const functions: Record<string, (...args: any[]) => unknown> = {
  tonumber,
  type: (value: unknown) => value === undefined ? 'nil' : value instanceof Table ? 'table' : typeof value,
  unpack: (table: Table, first = 1, last = table.length) => Array.from({ length: last - first + 1 }, (_, at) => table.get(first + at)),
  select: (first: number, ...values: unknown[]) => values.slice(first - 1),
  pcall (run: (...args: unknown[]) => unknown, ...args: unknown[]) {
    try {
      return [true, ...many(run(...args))]
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error
      const refusal = new Table()
      refusal.set('err', error.message)
      return [false, refusal]
    }
  },
  'string.match' (text: unknown, pattern: string, first = 1) {
    const searched = patternOf(pattern)
    searched.lastIndex = from(str(text), first)
    const found = searched.exec(str(text))
    return found === null ? undefined : captured(found)
  },
  'string.gmatch' (text: string, pattern: string) {
    const all = text.matchAll(patternOf(pattern))
    return () => {
      const { value, done } = all.next()
      return done === true ? undefined : captured(value as RegExpExecArray)
    }
  },
  'string.gsub' (text: string, pattern: string, by: string, most = Infinity) {
    let count = 0
    const put = (found: string, ...captures: unknown[]) => ++count > most ? found : by.replace(/%(\d)/g, (_, digit) => digit === '0' ? found : String(captures[Number(digit) - 1]))
    return [text.replace(patternOf(pattern), put), count]
  },
  'string.find' (text: string, pattern: string, first = 1, isPlain: unknown = false) {
    const begin = from(text, first)
    if (isTrue(isPlain)) {
      const at = text.indexOf(pattern, begin)
      return at === -1 ? undefined : [at + 1, at + pattern.length]
    }
    const searched = patternOf(pattern)
    searched.lastIndex = begin
    const found = searched.exec(text)
    return found === null ? undefined : [found.index + 1, found.index + found[0].length, ...found.slice(1)]
  },
  'string.sub': (text: unknown, first: number, last = -1) => str(text).slice(from(str(text), first), last < 0 ? str(text).length + last + 1 : last),
  'string.byte' (text: string, first = 1, last = first) {
    return first === last ? text.charCodeAt(first - 1) : Array.from(text.slice(first - 1, last), letter => letter.charCodeAt(0))
  },
  'string.rep': (text: unknown, times: number) => str(text).repeat(Math.max(0, times)),
  'string.char': (...codes: number[]) => String.fromCharCode(...codes),
  'string.format' (form: string, number: unknown) {
    const width = /^%(?:0(\d+))?d$/.exec(form)
    if (width === null) throw new Error(`format ${form}`)
    return String(Math.trunc(num(number))).padStart(Number(width[1] ?? 0), '0')
  },
  'math.floor': (number: unknown) => Math.floor(num(number)),
  'math.min': (...numbers: unknown[]) => Math.min(...numbers.map(num)),
  'math.max': (...numbers: unknown[]) => Math.max(...numbers.map(num)),
  'redis.sha1hex': (text: string) => createHash('sha1').update(text, 'latin1').digest('hex'),
}
