import { createHash } from 'node:crypto'
import type { PassBody } from '../schemas/handoff.ts'
import { keptLength } from './excerpt.ts'
import type { Line } from './lineage.ts'
import type { Members } from './json.ts'

/** What a plain handoff doesn't have, in the form that lua/pass.lua takes: words of a letter and a value (lua/lib/record.lua, field x). */

/** The options that are durations. A body has them in seconds. */
const durations = [['w', 'work_within'], ['b', 'heartbeat_within'], ['a', 'delay'], ['d', 'retry_delay']] as const

/** @param schema its digest and its text @param line the handoff's place under its parent; null without a parent */
export function optionWords (body: PassBody, members: Members, payload: Buffer, schema: { digest: string, text: Buffer } | null, line: Line | null): string {
  let words = ''
  for (const [letter, name] of durations) if (body[name] != null) words += ` ${letter}${body[name] * 1000}`
  if (body.to != null) words += ` t${body.to}`
  if (body.priority != null) words += ` u${body.priority}`
  if (body.max_attempts != null) words += ` m${body.max_attempts}`
  if (schema !== null) words += ` s${schema.digest} z${schema.text.length}`
  if (line !== null) words += ` p${line.parent} r${line.root} g${line.hops} c${line.marks}`
  if (body.require_human === true) words += ` l${keptLength(members.raw('task')!)} h${digestOf(payload)}`
  return words
}

/** The digest of a payload that a person decides on: SHA-256 in base64, of an object with exactly these members. */
export function digestOf (payload: Buffer): string {
  return createHash('sha256').update('{').update(payload).update('}').digest('base64')
}
