import { iso } from '../core/iso.ts'
import { print, span } from '../clients/typescript/command/output.ts'
import { parseInbox, wrong } from '../clients/typescript/command/values.ts'
import { readDuration } from '../clients/typescript/command/common/time.ts'
import { scopes as known } from '../core/model.ts'
import type { Scope } from '../core/model.ts'

/** The operator's commands' output, and parsers of their options, besides those of the agents' commands. */

/** Prints one line of JSON, for programs. */
export function printJson (value: unknown): void {
  print(JSON.stringify(value))
}

/** `2026-11-20T09:00:00.000Z (in 2 h 5 min)` */
export function when (time: number, now: number): string {
  return `${iso(time)} (${time > now ? `in ${span(time - now)}` : `${span(now - time)} ago`})`
}

/** A deadline; while it `counts`, also how far away it is. */
export function due (time: number, counts: boolean, now: number): string {
  return counts ? when(time, now) : iso(time)
}

/** Milliseconds: ten years. */
const maxDuration = 3650 * 86_400_000

/** `60s`, `15m`, `48h`, `90d`. @returns milliseconds */
export function parseDuration (option: string, text: string): number {
  const duration = readDuration(text)
  if (duration === undefined || duration === 0 || duration % 1000 > 0 || duration > maxDuration) {
    throw wrong(option, text, 'takes a whole number with its unit, as in 60s, 15m, 48h or 90d, from 1s to 3650d')
  }
  return duration
}

/** `pass,catch,status`, each once. */
export function parseScopes (option: string, text: string): Scope[] {
  const given = text.split(',')
  const unknown = given.find(scope => !(known as readonly string[]).includes(scope))
  if (unknown !== undefined) {
    throw wrong(option, unknown, `takes one or more of ${known.join(', ')}, separated by commas without spaces`)
  }
  return [...new Set(given as Scope[])]
}

/** `a,b`, each once: names as an agent's. */
export function parseInboxes (option: string, text: string): string[] {
  return [...new Set(text.split(',').map(name => parseInbox(option, name)))]
}

/** Requests a minute. */
export function parseRate (option: string, text: string): number {
  return parseQuantity(option, text, 'requests per minute')
}

/** How many handoffs may be live. @throws {UsageError} */
export function parseMaxLive (option: string, text: string): number {
  return parseQuantity(option, text, 'handoffs')
}

function parseQuantity (option: string, text: string, unit: string): number {
  if (!/^[1-9][0-9]{0,6}$/.test(text)) {
    throw wrong(option, text, `takes a number of ${unit}: a whole number, 1 to 9999999`)
  }
  return Number(text)
}
