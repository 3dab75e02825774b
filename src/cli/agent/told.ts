import { cutMembers } from '../../handoff/json.ts'
import { harmless, unbroken } from '../output.ts'

/** Answers for people: one line per member, with the API's names. Escapes keep any text from controlling the terminal. */

/** @param text an answer's JSON. It is cut, not parsed, so that numbers stay as they are */
export function lines (text: string): string {
  return linesOf(Buffer.from(text)).join('\n')
}

/** The items of a list, separated by empty lines. @param none what to print if there are none */
export function items (all: ReadonlyArray<{ readonly text: string }>, none: string): string {
  return all.length === 0 ? none : all.map(({ text }) => lines(text)).join('\n\n')
}

function linesOf (json: Buffer): string[] {
  const { values, raw } = cutMembers(json)
  const names = Object.keys(values).filter(name => values[name] !== null)
  const widest = Math.max(...names.map(name => name.length))
  return names.map(name => `${name.padEnd(widest)}  ${shown(values[name], raw(name)!.toString())}`)
}

/** Plain strings are shown without quotes; all other values as JSON on one line. */
function shown (value: unknown, json: string): string {
  const isPlain = typeof value === 'string' && /^[\p{L}\p{N}\p{P}\p{S} ]*$/u.test(value)
  return harmless(isPlain ? value : unbroken(json))
}
