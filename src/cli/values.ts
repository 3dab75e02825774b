import { scopes as known } from '../handoff/handoff.ts'
import type { Scope } from '../handoff/handoff.ts'
import { Misuse } from './failure.ts'

/** What options take. A refusal says what that is, and never repeats what was typed: it may be long, or a secret in the wrong place. */

const units = { s: 1000, m: 60_000, h: 3600_000, d: 86_400_000 } as const
const durationShape = /^([1-9][0-9]{0,8})([smhd])$/
const longest = 3650 * units.d

/** `60s`, `15m`, `48h`, `90d`. @returns milliseconds */
export function parseDuration (option: string, text: string): number {
  const [, count, unit] = durationShape.exec(text) ?? []
  const duration = Number(count) * units[unit as keyof typeof units]
  if (unit === undefined || duration > longest) {
    throw new Misuse(`${option} takes a whole number, 1 at least, and its unit, as in 60s, 15m, 48h or 90d, and 3650d at the most`)
  }
  return duration
}

/** `pass,catch,status`, each once. */
export function parseScopes (option: string, text: string): Scope[] {
  const given = text.split(',')
  if (!given.every((scope): scope is Scope => (known as readonly string[]).includes(scope))) {
    throw new Misuse(`${option} takes one or more of ${known.join(', ')}, with commas and no spaces between`)
  }
  return [...new Set(given)]
}

/** A tenant's or an agent's. */
export function parseName (option: string, text: string): string {
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(text)) throw new Misuse(`${option} takes 1 to 64 of A-Z a-z 0-9 . _ -`)
  return text
}

/** Requests a minute. */
export function parseRate (option: string, text: string): number {
  if (!/^[1-9][0-9]{0,6}$/.test(text)) throw new Misuse(`${option} takes how many requests a minute: a whole number, 1 to 9999999`)
  return Number(text)
}
