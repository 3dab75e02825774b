import { isName, scopes as known } from '../model.ts'
import type { Scope } from '../model.ts'
import { UsageError } from './failure.ts'
import { readDuration } from '../durations.ts'
import { harmless } from './output.ts'

/** Parsers of option values. Each error names the wrong value and says what the option takes. */

/** Milliseconds: ten years. */
const longest = 3650 * 86_400_000

/** `60s`, `15m`, `48h`, `90d`. @returns milliseconds */
export function parseDuration (option: string, text: string): number {
  const duration = readDuration(text)
  if (duration === undefined || duration === 0 || duration % 1000 > 0 || duration > longest) {
    throw wrong(option, text, 'takes a whole number with its unit, as in 60s, 15m, 48h or 90d, from 1s to 3650d')
  }
  return duration
}

/** `pass,catch,status`, each once. */
export function parseScopes (option: string, text: string): Scope[] {
  const given = text.split(',')
  const unknown = given.find(scope => !(known as readonly string[]).includes(scope))
  if (unknown !== undefined) throw wrong(option, unknown, `takes one or more of ${known.join(', ')}, separated by commas without spaces`)
  return [...new Set(given as Scope[])]
}

/** A tenant's or an agent's name. */
export function parseName (option: string, text: string): string {
  if (!isName(text)) throw wrong(option, text, 'takes 1 to 64 of A-Z a-z 0-9 . _ -')
  return text
}

/** `a,b`, each once: names as an agent's. */
export function parseNames (option: string, text: string): string[] {
  return [...new Set(text.split(',').map(name => parseName(option, name)))]
}

/** Requests a minute. */
export function parseRate (option: string, text: string): number {
  if (!/^[1-9][0-9]{0,6}$/.test(text)) throw wrong(option, text, 'takes a number of requests per minute: a whole number, 1 to 9999999')
  return Number(text)
}

/** How much of the input a message shows, in characters. */
const shown = 40

/** @param text the wrong value @param takes what the option takes */
export function wrong (option: string, text: string, takes: string): UsageError {
  return new UsageError(`${option}: ${told(text)} is not valid; it ${takes}`)
}

/** The input, quoted for one line. If it begins like an API key it isn't shown: a key in the wrong place stays secret. */
function told (text: string): string {
  if (text.startsWith('handoff_')) return 'a value that looks like an API key'
  const characters = [...text]
  return harmless(JSON.stringify(characters.length > shown ? `${characters.slice(0, shown).join('')}…` : text))
}
