import { Type } from '@sinclair/typebox'
import { invalid } from '../core/errors.ts'
import { labelsExpected, wantedLabels } from '../core/labels.ts'
import type { Labels } from '../core/labels.ts'
import { keyPattern } from '../core/schemas/handoffs.ts'
import { nullable } from '../core/schemas/parts.ts'

/** The labels that a query wants; undefined for any. @throws {Problem} if it is malformed */
export function labelsOf ({ labels }: { labels?: string }): Labels | undefined {
  const wanted = wantedLabels(labels)
  if (wanted === null) throw invalid({ pointer: '/labels', message: `querystring: ${labelsExpected}` })
  return wanted
}

/** The arguments that tools have besides their operation's body. */

/** The longest wait of a tool's call, in seconds. Clients commonly give up after 60 s. */
const maxWait = 50

export const id = Type.String({ description: 'The handoff’s id (handoff_id).' })

export const key = {
  idempotency_key: Type.Optional(nullable<string>('string', {
    pattern: keyPattern,
    description: 'A new one for each piece of work, and the same one when you repeat this call: then nothing happens ' +
    'twice. 1 to 128 visible ASCII characters.'
  }))
}

export const seconds = (what: string) => ({
  wait: Type.Optional(nullable<number>(
    'integer', { minimum: 0, maximum: maxWait, description: `How many seconds to wait at most ${what}.` }
  ))
})

const part = { minimum: 0, description: 'Where the part begins: next_offset of the part before; 0 for the beginning.' }
export const offset = Type.Integer(part)
export const optionalOffset = Type.Optional(nullable<number>('integer', part))
