import { iso } from './iso.ts'
import { labelsIn } from './labels.ts'
import type { Labels } from './labels.ts'

/** How values stand in words of field x (lua/lib/record.lua), after the word's letter. */

/** `Given` has the form of a body, `Value` that of `Extra` (model.ts). */
export interface Unit<Given, Value> extends Reader<Value> {
  /** What pass is given, a word each. @param raw the member's JSON text */
  write (given: Given, raw: () => Buffer): string | number | readonly string[]
}

/** Of a word that is written elsewhere. */
export interface Reader<Value> {
  /** @param before what the words before gave, if there may be several */
  read (text: string, before: Value | undefined): Value
  /** As answers have it. Left out where it is spliced in as JSON text, or needs more than this value. */
  show? (value: Value): unknown
}

const asIs = (value: unknown) => value

export const text: Unit<string, string> = { write: value => value, read: value => value, show: asIs }
export const number: Unit<number, number> = { write: value => value, read: Number, show: asIs }
/** Kept in milliseconds. */
export const seconds: Unit<number, number> = {
  write: value => value * 1000, read: Number, show: value => value / 1000
}
/** Given in seconds from the pass on; lua/pass.lua makes a time of it (ms). */
export const fromNow: Unit<number, number> = { ...seconds, show: iso }
export const labelWords: Unit<object, Labels> = {
  write: (_, raw) => labelsIn(raw()), read: (label, before = []) => [...before, label]
}

/** Whether the handoffs that another one comes after must be done, or only have ended. */
export const afterNeeds = ['done', 'ended'] as const
export type AfterNeed = typeof afterNeeds[number]

/** How many of these handoffs are still open. */
interface After { need: AfterNeed, open: number }

/** The handoffs that it comes after (lua/lib/after.lua, word A). */
export const afterWord: Reader<After> = {
  read (word) {
    const [need, open] = word.split('/')
    return { need: need === 'd' ? 'done' : 'ended', open: Number(open) }
  }
}
