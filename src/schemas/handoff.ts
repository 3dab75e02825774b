import { Type } from '@sinclair/typebox'
import type { Static, TUnsafe } from '@sinclair/typebox'
import { statuses } from '../model.ts'

/** The schemas that validate, serialise and document the four operations; the types come from nowhere else. */

/** An optional member: `null` means absent (docs/api.md, "Conventions"). */
export function nullable<T> (type: string, more: object): TUnsafe<T | null> {
  return Type.Unsafe<T | null>({ type: [type, 'null'], ...more })
}

const exampleId = 'AVHdDBR3Ox_T_H9gltuUjYVhg'
export const time = (description: string, example: string) => Type.String({ format: 'date-time', description, examples: [example] })
export const createdAt = time('When it was passed, by Redis’s clock.', '2026-11-20T09:00:00.000Z')
export const expiresAt = time('Until when it can be caught.', '2026-11-21T09:00:00.000Z')
const completedAt = time('When it was reported done.', '2026-11-20T09:05:00.000Z')
export const handoffId = Type.String({ description: 'The handoff: 25 URL-safe characters.', examples: [exampleId] })
export const object = (description: string, example: object) => Type.Unsafe<object>({ type: 'object', additionalProperties: true, description, examples: [example] })

export const handoffParams = Type.Object({ id: Type.String({ description: 'The handoff’s id.', examples: [exampleId] }) })

/** No operation takes an unknown query parameter: a mistyped one must not be ignored in silence. */
export const noQuery = Type.Object({}, { additionalProperties: false })

/** Header fields of an answer, for the document. */
const replayedField = { 'Idempotency-Replayed': { type: 'string', enum: ['true'], description: 'There when the Idempotency-Key was recognised.' } }
const locationField = { Location: { type: 'string', description: 'Where its status is.', examples: [`/api/status/${exampleId}`] } }

const traceExample = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const traceField = { traceparent: { type: 'string', description: 'The trace that the handoff was passed in (W3C Trace Context); there when pass had one. Go on in it.', examples: [traceExample] } }

const wait = Type.Optional(Type.Integer({ minimum: 0, maximum: 60, description: 'How many seconds to wait at the most.', examples: [30] }))

export const waitQuery = Type.Object({ wait }, { additionalProperties: false })
export type WaitQuery = Static<typeof waitQuery>

export const statusQuery = Type.Object({
  wait,
  until: Type.Optional(Type.Union([Type.Literal('caught'), Type.Literal('done')], { default: 'done', description: 'What to wait for.', examples: ['done'] })),
}, { additionalProperties: false })
export type StatusQuery = Static<typeof statusQuery>

export const idempotencyHeaders = Type.Object({
  'idempotency-key': Type.Optional(Type.String({
    pattern: '^[!-~]{1,128}$',
    description: 'Names this operation, so that asking again gets the same answer and changes nothing: 1 to 128 visible ASCII characters.',
    examples: ['report-42-pass'],
  }))
})

export const passHeaders = Type.Object({
  ...idempotencyHeaders.properties,
  // Of any shape: a malformed one is passed over, as the specification has it.
  traceparent: Type.Optional(Type.String({
    description: 'The trace that this belongs to (W3C Trace Context). It is kept with the handoff and comes back with its catch, so that two agents’ work is one trace. A malformed one is ignored.',
    examples: [traceExample],
  })),
})

/** @param maxExpiresIn the most seconds that expires_in may ask for */
export const passBody = (maxExpiresIn: number) => Type.Object({
  task: Type.String({ minLength: 1, description: 'What the next agent should do.', examples: ['Summarise the attached figures in five lines.'] }),
  output: Type.Optional(nullable<object>('object', { additionalProperties: true, description: 'Result of the agent that passes.', examples: [{ rows: 128, total: 1.0 }] })),
  context: Type.Optional(nullable<object>('object', { additionalProperties: true, description: 'Metadata or history.', examples: [{ ticket: 'OPS-7' }] })),
  constraints: Type.Optional(nullable<string>('string', { description: 'Rules or boundaries for the next agent.', examples: ['Read only.'] })),
  require_human: Type.Optional(nullable<boolean>('boolean', { default: false, description: 'A person must approve before anyone can catch it.' })),
  expires_in: Type.Optional(nullable<number>('integer', { minimum: 1, maximum: maxExpiresIn, description: 'Seconds until it can’t be caught any more.', examples: [3600] })),
}, { additionalProperties: false })
export type PassBody = Static<ReturnType<typeof passBody>>

export const passAnswer = Type.Object({
  handoff_id: handoffId,
  pickup_url: Type.String({ description: 'Where it is caught.', examples: [`http://127.0.0.1:8080/api/catch/${exampleId}`] }),
  status: Type.Literal('pending'),
  created_at: createdAt,
  expires_at: expiresAt,
  approval_url: Type.Optional(Type.String({ description: 'The page where a person decides; only with require_human.', examples: [`http://127.0.0.1:8080/approvals/${exampleId}`] })),
}, { description: 'Passed: it waits for its catch.', headers: { ...locationField, ...replayedField } })
export type PassAnswer = Static<typeof passAnswer>

/** Where a person's approval stands. */
export const approval = Type.Object({
  state: Type.Union([Type.Literal('waiting'), Type.Literal('approved'), Type.Literal('rejected')]),
  decided_at: nullable<string>('string', { format: 'date-time', description: 'When a person decided.' }),
  decided_by: nullable<string>('string', { description: 'Who decided.' }),
  note: nullable<string>('string', { description: 'What they said.' }),
})

export const catchAnswer = Type.Object({
  handoff_id: handoffId,
  status: Type.Literal('caught'),
  task: Type.String({ description: 'As passed.', examples: ['Summarise the attached figures in five lines.'] }),
  output: object('As passed; {} when none was given.', { rows: 128, total: 1.0 }),
  context: object('As passed; {} when none was given.', { ticket: 'OPS-7' }),
  constraints: nullable<string>('string', { description: 'As passed; null when none was given.', examples: ['Read only.'] }),
  created_at: createdAt,
  approval: Type.Optional(approval),
}, { description: 'Caught: it is the asker’s.', headers: { ...replayedField, ...traceField } })

export const doneBody = Type.Object({
  output: Type.Optional(nullable<object>('object', { additionalProperties: true, description: 'Result of the work; read back as `result` on status.', examples: [{ summary: 'All five rows agree.' }] })),
}, { additionalProperties: false })

export const doneAnswer = Type.Object({ handoff_id: handoffId, status: Type.Literal('done'), completed_at: completedAt },
  { description: 'Done.', headers: replayedField })
export type DoneAnswer = Static<typeof doneAnswer>

export const statusAnswer = Type.Object({
  handoff_id: handoffId,
  status: Type.Union(statuses.map(status => Type.Literal(status)), { description: 'Clients must tolerate statuses that they don’t know.', examples: ['caught'] }),
  require_human: Type.Boolean(),
  created_at: createdAt,
  expires_at: expiresAt,
  caught_at: nullable<string>('string', { format: 'date-time', examples: ['2026-11-20T09:01:00.000Z'] }),
  caught_by: nullable<string>('string', { description: 'Name of the agent that caught it.', examples: ['writer'] }),
  completed_at: nullable<string>('string', { format: 'date-time', examples: [null] }),
  approval: Type.Union([approval, Type.Null()], { examples: [null] }),
  result: nullable<object>('object', { additionalProperties: true, description: 'The output as given to done.', examples: [null] }),
}, { description: 'Where it stands. What hasn’t happened is null.' })
export type StatusAnswer = Static<typeof statusAnswer>
