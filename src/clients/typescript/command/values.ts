import { readFileSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import { rawJson } from '../json.ts'
import type { RawJson } from '../json.ts'
import { isGroup, isInbox, isLabel, isName, partsOf } from './common/names.ts'
import type { Labels } from './common/names.ts'
import { readDuration, readTime } from './common/time.ts'
import { UsageError, harmless, oneLine, utf8 } from './output.ts'

/**
 * Parsers of option values. Each error names the wrong value and says what the option takes; the service checks what
 * depends on its settings. Every command loads this file, so it imports only part of the client.
 */

/** A time, or how long ago that was, in milliseconds. */
export type Moment = string | number

/** A tenant's or an agent's name. */
export function parseName (option: string, text: string): string {
  if (!isName(text)) throw wrong(option, text, 'takes 1 to 64 of A-Z a-z 0-9 . _ -')
  return text
}

export function parseInbox (option: string, text: string): string {
  if (!isInbox(text)) throw wrong(option, text, 'takes 1 to 64 of A-Z a-z 0-9 . _ - and neither . nor ..')
  return text
}

export function parseGroup (option: string, text: string): string {
  if (!isGroup(text)) throw wrong(option, text, 'takes 1 to 64 of A-Z a-z 0-9 . _ : @ -')
  return text
}

/** How much of the input a message shows, in characters. */
const shown = 40

/** @param text the wrong value @param takes what the option takes */
export function wrong (option: string, text: string, takes: string): UsageError {
  return new UsageError(`${option}: ${quoted(text)} is not valid; it ${takes}`)
}

/**
 * The input, quoted for one line. If it begins like an API key it isn't shown: a key in the wrong place stays secret.
 */
function quoted (text: string): string {
  if (text.startsWith('handoff_')) return 'a value that looks like an API key'
  const characters = [...text]
  return harmless(JSON.stringify(characters.length > shown ? `${characters.slice(0, shown).join('')}…` : text))
}

/** One more of those that an option gives, as it is. */
export function oneMore (_: string, text: string, before: string[] = []): string[] {
  return [...before, text]
}

export function several (_: string, text: string, before: string[] = []): string[] {
  return [...before, ...text.split(',')]
}

export function parseAsked (option: string, text: string): string {
  if (text !== 'person' && text !== 'passer') throw new UsageError(`${option} takes person or passer`)
  return text
}

export function parseUntil (option: string, text: string): string {
  if (text !== 'caught' && text !== 'done') throw new UsageError(`${option} takes caught or done`)
  return text
}

/** `0s`, `60s`, `15m`, and `60`: the API's durations are plain seconds, and agents know those. @returns seconds */
export function parseSeconds (option: string, text: string): number {
  const duration = readDuration(/^[0-9]+$/.test(text) ? `${text}s` : text)
  if (duration === undefined || duration % 1000 > 0) {
    throw wrong(option, text, 'takes whole seconds, or a whole number with its unit, as in 30s, 15m, 48h or 90d')
  }
  return duration / 1000
}

/** A whole number. */
export function parseCount (option: string, text: string): number {
  if (!/^(0|[1-9][0-9]{0,5})$/.test(text)) throw wrong(option, text, 'takes a whole number')
  return Number(text)
}

/** For which role tools are listed. */
export function parseRole (option: string, text: string): string {
  if (!['worker', 'passer', 'all'].includes(text)) throw wrong(option, text, 'takes worker, passer or all')
  return text
}

/** How many at most. */
export function parseLimit (option: string, text: string): number {
  const limit = parseCount(option, text)
  if (limit === 0) throw wrong(option, text, 'takes a whole number from 1 on')
  return limit
}

/** A limit, or that there is none. */
export function parseMax (option: string, text: string): number | 'none' {
  if (text === 'none') return 'none'
  if (!/^[1-9][0-9]{0,7}$/.test(text)) throw wrong(option, text, 'takes a whole number from 1 on, or none')
  return Number(text)
}

const longest = 3650 * 86_400_000

/** `2026-11-20T09:00:00Z`, or a duration: `1h` is an hour ago. */
export function parseMoment (option: string, text: string): Moment {
  if (readTime(text) !== undefined) return text
  const ago = readDuration(text)
  if (ago === undefined || ago > longest) {
    throw wrong(option, text, 'takes a time, as in 2026-11-20T09:00:00Z, or how long ago, as in 15m, 1h or 7d')
  }
  return ago
}

const ends = ['failed', 'declined', 'expired', 'done', 'cancelled', 'rejected']

/** `failed,expired`, each once. */
export function parseEnds (option: string, text: string): string[] {
  const given = text.split(',')
  const unknown = given.find(end => !ends.includes(end))
  if (unknown !== undefined) throw wrong(option, unknown, `takes one or more of ${ends.join(', ')}, separated by commas`)
  return [...new Set(given)]
}

export function parseDecided (option: string, text: string): string {
  if (!['approved', 'rejected', 'answered'].includes(text)) {
    throw wrong(option, text, 'takes approved, rejected or answered')
  }
  return text
}

/** What a purge does with what is caught. */
export function parseCaught (option: string, text: string): string {
  if (text !== 'ask' && text !== 'force') throw new UsageError(`${option} takes ask or force`)
  return text
}

/** One of the labels, `name:value`. @param before those before it @returns all */
export function parseLabel (option: string, text: string, before: Labels = []): Labels {
  if (!isLabel(text)) {
    throw wrong(option, text, 'takes a name, a colon and a value, as in run:42: 1 to 32 of A-Z a-z 0-9 . _ - and 1 ' +
      'to 64 of these and : / @')
  }
  const [name] = partsOf(text)
  if (before.some(one => partsOf(one)[0] === name)) throw new UsageError(`${option}: ${name} is there twice`)
  return [...before, text]
}

export function parsePercent (option: string, text: string): number {
  if (!/^[0-9]{1,3}(\.[0-9]{1,6})?$/.test(text) || Number(text) > 100) {
    throw wrong(option, text, 'takes a number from 0 to 100')
  }
  return Number(text)
}

/** Stands for what standard input has, until that is read. */
class FromInput {
  readonly option: string

  constructor (option: string) {
    this.option = option
  }
}

/**
 * JSON text, or `@file`, or `-` for standard input (`readInput`). It is sent as it is, so that no number changes.
 * @throws {UsageError} if it is no JSON object, or can't be read
 */
export function parseObject (option: string, text: string): RawJson | FromInput {
  if (text === '-') return new FromInput(option)
  if (!text.startsWith('@')) return objectOf(option, text)
  return objectOf(option, decoded(option, readable(option, () => readFileSync(text.slice(1)))))
}

/**
 * Reads standard input for the option that takes it. Not at once, as a file is: a pipe that doesn't block, as some
 * hosts give one, has nothing to read for a while (EAGAIN).
 */
export async function readInput (options: Record<string, unknown>): Promise<void> {
  const wanted = Object.entries(options).flatMap(([name, value]) => value instanceof FromInput ? [{ name, value }] : [])
  const [first, second] = wanted
  if (first === undefined) return
  const { option } = first.value
  if (second !== undefined) {
    throw new UsageError(`${option} and ${second.value.option} both take standard input (-), which can be read once: ` +
      'give one of them as @file')
  }
  const bytes = await buffer(process.stdin).catch((error: Error) => readable(option, () => { throw error }))
  options[first.name] = objectOf(option, decoded(option, bytes))
}

function objectOf (option: string, text: string): RawJson {
  const json = text.trim()
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch (error) {
    throw new UsageError(`${option}: not valid JSON: ${oneLine((error as Error).message)}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new UsageError(`${option} takes a JSON object, as in '{"total": 3}', or @file, or - for standard input`)
  }
  return rawJson(json)
}

/** An Idempotency-Key. */
export function parseKey (option: string, text: string): string {
  if (!/^[!-~]{1,128}$/.test(text)) throw wrong(option, text, 'takes 1 to 128 visible ASCII characters')
  return text
}

/** An option, with whatever else is known of it. */
type Flagged = readonly [flags: string, ...more: unknown[]]

/** `max-attempts` of `--max-attempts <n>`. */
export function longOf ([flags]: Flagged): string {
  return flags.slice(2).split(' ', 1)[0]!
}

/** `maxAttempts`, and `retry` of `--no-retry`. */
export function keyOf (option: Flagged): string {
  return longOf(option).replace(/^no-/, '').replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function readable<T> (option: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new UsageError(`${option}: ${oneLine((error as Error).message)}`)
  }
}

function decoded (option: string, bytes: Uint8Array): string {
  const text = utf8(bytes)
  if (text === undefined) throw new UsageError(`${option}: what it reads is not UTF-8`)
  return text
}
