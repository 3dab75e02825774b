import { scopes as known } from '../model.ts'
import type { Scope } from '../model.ts'
import { UsageError } from './failure.ts'
import { readDuration } from '../durations.ts'
import { harmless } from './output.ts'

/** What options take. A refusal names what was wrong and says what the option takes. */

/** Milliseconds: ten years. */
const longest = 3650 * 86_400_000

/** `60s`, `15m`, `48h`, `90d`. @returns milliseconds */
export function parseDuration (option: string, text: string): number {
  const duration = readDuration(text)
  if (duration === undefined || duration === 0 || duration % 1000 > 0 || duration > longest) {
    throw wrong(option, text, 'takes a whole number, 1 at least, and its unit, as in 60s, 15m, 48h or 90d, and 3650d at the most')
  }
  return duration
}

/** `pass,catch,status`, each once. */
export function parseScopes (option: string, text: string): Scope[] {
  const given = text.split(',')
  const unknown = given.find(scope => !(known as readonly string[]).includes(scope))
  if (unknown !== undefined) throw wrong(option, unknown, `takes one or more of ${known.join(', ')}, with commas and no spaces between`)
  return [...new Set(given as Scope[])]
}

/** A tenant's or an agent's. */
export function parseName (option: string, text: string): string {
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(text)) throw wrong(option, text, 'takes 1 to 64 of A-Z a-z 0-9 . _ -')
  return text
}

/** `a,b`, each once: names as an agent's. */
export function parseNames (option: string, text: string): string[] {
  return [...new Set(text.split(',').map(name => parseName(option, name)))]
}

/** Requests a minute. */
export function parseRate (option: string, text: string): number {
  if (!/^[1-9][0-9]{0,6}$/.test(text)) throw wrong(option, text, 'takes how many requests a minute: a whole number, 1 to 9999999')
  return Number(text)
}

/** How much of what was typed is shown, in characters. */
const shown = 40

/** @param text what was wrong @param takes what the option takes */
function wrong (option: string, text: string, takes: string): UsageError {
  return new UsageError(`${option}: ${told(text)} is not valid; it ${takes}`)
}

/** What was typed, as it can stand in a line; not where it begins like an API key: a key in the wrong place stays a secret. */
function told (text: string): string {
  if (text.startsWith('handoff_')) return 'a value that looks like an API key'
  const characters = [...text]
  return harmless(JSON.stringify(characters.length > shown ? `${characters.slice(0, shown).join('')}…` : text))
}
