import { Type } from '@sinclair/typebox'
import type { Static, TUnsafe } from '@sinclair/typebox'
import { statuses } from '../model.ts'

/** The schemas that validate, serialise and document the four operations; the types come from nowhere else. */

/** An optional member: `null` means absent (docs/api.md, "Conventions"). */
export function nullable<T> (type: string, more: object): TUnsafe<T | null> {
  return Type.Unsafe<T | null>({ type: [type, 'null'], ...more })
}

/** What names an inbox, as an agent or a tenant: 1 to 64 characters. */
export const namePattern = '^[A-Za-z0-9._-]{1,64}$'
export const to = Type.String({ description: 'The inbox that it was passed to.', examples: ['reviewer'] })

const exampleId = 'AVHdDBR3Ox_T_H9gltuUjYVhg'
export const time = (description: string, example: string) => Type.String({ format: 'date-time', description, examples: [example] })
export const createdAt = time('When it was passed, by Redis’s clock.', '2026-11-20T09:00:00.000Z')
export const expiresAt = time('Until when it can be caught.', '2026-11-21T09:00:00.000Z')
export const availableAt = time('From when on it can be caught; there with a delay.', '2026-11-20T09:00:30.000Z')
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

/** What may be sent again as it is takes a key as well, and has no use for it. */
export const ignoredKeyHeaders = Type.Object({
  'idempotency-key': Type.Optional(Type.String({ pattern: '^[!-~]{1,128}$', description: 'Ignored: this may be sent again as it is.', examples: ['report-42'] })),
})

export const passHeaders = Type.Object({
  ...idempotencyHeaders.properties,
  // Of any shape: a malformed one is passed over, as the specification has it.
  traceparent: Type.Optional(Type.String({
    description: 'The trace that this belongs to (W3C Trace Context). It is kept with the handoff and comes back with its catch, so that two agents’ work is one trace. A malformed one is ignored.',
    examples: [traceExample],
  })),
})

/** Longest that pass, heartbeat and an attempt's delay take, in seconds. */
export interface Limits { maxExpiresIn: number, maxWorkTtl: number }

export const passBody = ({ maxExpiresIn, maxWorkTtl }: Limits) => Type.Object({
  task: Type.String({ minLength: 1, description: 'What the next agent should do.', examples: ['Summarise the attached figures in five lines.'] }),
  output: Type.Optional(nullable<object>('object', { additionalProperties: true, description: 'Result of the agent that passes.', examples: [{ rows: 128, total: 1.0 }] })),
  context: Type.Optional(nullable<object>('object', { additionalProperties: true, description: 'Metadata or history.', examples: [{ ticket: 'OPS-7' }] })),
  constraints: Type.Optional(nullable<string>('string', { description: 'Rules or boundaries for the next agent.', examples: ['Read only.'] })),
  to: Type.Optional(nullable<string>('string', { pattern: namePattern, description: 'The inbox that it is for, from which any agent of the tenant can catch it.', examples: ['reviewer'] })),
  priority: Type.Optional(nullable<number>('integer', { minimum: 0, maximum: 9, default: 0, description: 'Its priority in that inbox: a step outweighs a minute of waiting. Needs `to`.', examples: [5] })),
  require_human: Type.Optional(nullable<boolean>('boolean', { default: false, description: 'A person must approve before anyone can catch it.' })),
  expires_in: Type.Optional(nullable<number>('integer', { minimum: 1, maximum: maxExpiresIn, description: 'Seconds until it can’t be caught any more.', examples: [3600] })),
  work_within: Type.Optional(nullable<number>('integer', { minimum: 1, maximum: maxWorkTtl, description: 'Seconds from its catch in which it must be done.', examples: [900] })),
  heartbeat_within: Type.Optional(nullable<number>('integer', { minimum: 5, maximum: 86400, description: 'Seconds in which its catcher must send a heartbeat, again and again, from the catch on.', examples: [60] })),
  delay: Type.Optional(nullable<number>('integer', { minimum: 1, maximum: maxExpiresIn - 1, description: 'Seconds until it can be caught; less than its expires_in.', examples: [30] })),
  max_attempts: Type.Optional(nullable<number>('integer', { minimum: 1, maximum: 10, default: 1, description: 'How often it is tried in all: an attempt that fails, is declined or runs out of time has a successor.', examples: [3] })),
  retry_delay: Type.Optional(nullable<number>('integer', { minimum: 0, maximum: 3600, default: 1, description: 'Seconds until the second attempt can be caught; doubled with each further one, an hour at most.', examples: [5] })),
  result_schema: Type.Optional(nullable<object>('object', { additionalProperties: true, description: 'A JSON Schema (2020-12) that done’s output must satisfy: at most 16,384 bytes, of a subset that the documentation names.', examples: [{ type: 'object', required: ['summary'] }] })),
  parent: Type.Optional(nullable<string>('string', { description: 'The id of a handoff that this agent has caught, of which this is a part.', examples: [exampleId] })),
}, { additionalProperties: false })
export type PassBody = Static<ReturnType<typeof passBody>>

export const passAnswer = Type.Object({
  handoff_id: handoffId,
  pickup_url: Type.String({ description: 'Where it is caught.', examples: [`http://127.0.0.1:8080/api/catch/${exampleId}`] }),
  status: Type.Literal('pending'),
  created_at: createdAt,
  expires_at: expiresAt,
  available_at: Type.Optional(availableAt),
  approval_url: Type.Optional(Type.String({ description: 'The page where a person decides; only with require_human.', examples: [`http://127.0.0.1:8080/approvals/${exampleId}`] })),
}, { description: 'Passed: it waits for its catch.', headers: { ...locationField, ...replayedField } })
export type PassAnswer = Static<typeof passAnswer>

/** Where a person's approval stands. */
export const approval = Type.Object({
  state: Type.Union([Type.Literal('waiting'), Type.Literal('approved'), Type.Literal('rejected')]),
  decided_at: nullable<string>('string', { format: 'date-time', description: 'When a person decided.' }),
  decided_by: nullable<string>('string', { description: 'Who decided.' }),
  note: nullable<string>('string', { description: 'What they said.' }),
  digest: Type.Optional(Type.String({ description: 'What stands for what they saw; there where the decision said so.' })),
})

export const priority = Type.Integer({ description: 'Its priority in that inbox; there with `to`.', examples: [0] })

/** What an attempt says of itself, on catch and status; there on the second and those behind it. */
const attempt = {
  attempt: Type.Optional(Type.Integer({ minimum: 2, description: 'Which attempt this is.', examples: [2] })),
  reissue_of: Type.Optional(Type.String({ description: 'The attempt before.', examples: [exampleId] })),
}

/** Where it stands below its ancestors, on catch and status; there with a parent. */
const lineage = {
  parent: Type.Optional(Type.String({ description: 'The handoff of which this is a part.', examples: [exampleId] })),
  root: Type.Optional(Type.String({ description: 'The first of its line.', examples: [exampleId] })),
  hops: Type.Optional(Type.Integer({ minimum: 1, description: 'How far below the root it is.', examples: [1] })),
}

const workExpiresAt = time('By when it must be done.', '2026-11-20T09:16:00.000Z')
const heartbeatExpiresAt = time('By when its catcher must be heard of again.', '2026-11-20T09:02:00.000Z')
const reissuedAs = Type.String({ description: 'The next attempt, its successor.', examples: [exampleId] })
const endedAt = time('When it ended.', '2026-11-20T09:05:00.000Z')

export const catchAnswer = Type.Object({
  handoff_id: handoffId,
  status: Type.Literal('caught'),
  task: Type.String({ description: 'As passed.', examples: ['Summarise the attached figures in five lines.'] }),
  output: object('As passed; {} when none was given.', { rows: 128, total: 1.0 }),
  context: object('As passed; {} when none was given.', { ticket: 'OPS-7' }),
  constraints: nullable<string>('string', { description: 'As passed; null when none was given.', examples: ['Read only.'] }),
  created_at: createdAt,
  approval: Type.Optional(approval),
  to: Type.Optional(to),
  work_expires_at: Type.Optional(workExpiresAt),
  heartbeat_within: Type.Optional(Type.Integer({ description: 'As passed: seconds.', examples: [60] })),
  heartbeat_expires_at: Type.Optional(heartbeatExpiresAt),
  ...attempt,
  ...lineage,
  result_schema: Type.Optional(object('As passed: what the output given to done must satisfy.', { type: 'object', required: ['summary'] })),
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
  to: Type.Optional(to),
  priority: Type.Optional(priority),
  available_at: Type.Optional(availableAt),
  work_expires_at: Type.Optional(workExpiresAt),
  heartbeat_expires_at: Type.Optional(heartbeatExpiresAt),
  progress: Type.Optional(Type.Object({
    message: Type.Optional(Type.String()), percent: Type.Optional(Type.Number()), at: Type.String({ format: 'date-time' }),
  }, { description: 'What its catcher said last.' })),
  cancel_requested_at: Type.Optional(time('When its passer asked to stop it; there where it was caught then.', '2026-11-20T09:03:00.000Z')),
  cancel_reason: Type.Optional(Type.String({ description: 'Why its passer wants it stopped.', examples: ['Not needed any more.'] })),
  ended_at: Type.Optional(endedAt),
  ended_by: Type.Optional(nullable<string>('string', { description: 'The agent that ended it; null where its time ran out.', examples: ['writer'] })),
  error: Type.Optional(object('As given to fail.', { message: 'The archive is not readable.' })),
  reason: Type.Optional(Type.String({ description: 'As given to decline.', examples: ['Not my field.'] })),
  expired_because: Type.Optional(Type.Union([Type.Literal('not_caught'), Type.Literal('not_done'), Type.Literal('stalled')], { description: 'Which deadline was missed.', examples: ['stalled'] })),
  ...attempt,
  reissued_as: Type.Optional(nullable<string>('string', { description: 'The next attempt, its successor; null while one is still to be made.', examples: [exampleId] })),
  ...lineage,
}, { description: 'Where it stands. What hasn’t happened is null; what only some handoffs have is left out elsewhere.' })

interface Progress { message?: string | null, percent?: number | null }

export const heartbeatBody = ({ maxWorkTtl }: Limits) => Type.Object({
  extend_by: Type.Optional(nullable<number>('integer', { minimum: 1, maximum: maxWorkTtl, description: 'Seconds from now by which it must be done, where that is later than it was.', examples: [900] })),
  progress: Type.Optional(nullable<Progress>('object', {
    properties: {
      message: nullable<string>('string', { minLength: 1, maxLength: 1000 }),
      percent: nullable<number>('number', { minimum: 0, maximum: 100 }),
    },
    additionalProperties: false,
    description: 'How far the work is: a message, a percentage, or both. It replaces what was said before.',
    examples: [{ message: 'Half of the rows are read.', percent: 50 }],
  })),
}, { additionalProperties: false })

export const heartbeatAnswer = Type.Object({
  handoff_id: handoffId,
  status: Type.Literal('caught'),
  work_expires_at: workExpiresAt,
  heartbeat_expires_at: nullable<string>('string', { format: 'date-time', description: 'By when to be heard of again; null without heartbeat_within.', examples: ['2026-11-20T09:02:00.000Z'] }),
  cancel_requested: Type.Boolean({ description: 'Its passer wants it stopped: fail or decline it, or go on and report it done.', examples: [false] }),
  cancel_reason: nullable<string>('string', { description: 'Why.', examples: [null] }),
}, { description: 'Heard.' })
export type HeartbeatAnswer = Static<typeof heartbeatAnswer>

const reason = { minLength: 1, maxLength: 4000 }

export const failBody = Type.Object({
  error: Type.Object({
    message: Type.String({ minLength: 1, maxLength: 4000 }),
    code: Type.Optional(nullable<string>('string', { pattern: '^[A-Za-z0-9._-]{1,64}$' })),
    data: Type.Optional(nullable<object>('object', { additionalProperties: true })),
  }, { additionalProperties: false, description: 'What went wrong; read back on status.', examples: [{ message: 'The archive is not readable.', code: 'bad_archive' }] }),
  retry: Type.Optional(nullable<boolean>('boolean', { default: true, description: 'May it be tried again, where it has attempts left?' })),
}, { additionalProperties: false })

export const declineBody = Type.Object({
  reason: Type.String({ ...reason, description: 'Why; read back on status.', examples: ['Not my field.'] }),
}, { additionalProperties: false })

export const endAnswer = (status: 'failed' | 'declined') => Type.Object({
  handoff_id: handoffId, status: Type.Literal(status), ended_at: endedAt, reissued_as: Type.Optional(reissuedAs),
}, { description: 'Ended.', headers: replayedField })
export interface EndAnswer { handoff_id: string, status: 'failed' | 'declined', ended_at: string, reissued_as?: string }

export const cancelBody = Type.Object({
  reason: Type.Optional(nullable<string>('string', { ...reason, description: 'Why; its catcher is told.', examples: ['Not needed any more.'] })),
  force: Type.Optional(nullable<boolean>('boolean', { default: false, description: 'Take it from its catcher.' })),
}, { additionalProperties: false })

export const cancelledAnswer = Type.Object({ handoff_id: handoffId, status: Type.Literal('cancelled'), ended_at: endedAt }, { description: 'Cancelled.' })
export const cancelRequestedAnswer = Type.Object({
  handoff_id: handoffId, status: Type.Literal('caught'), cancel_requested_at: time('When that was first asked for.', '2026-11-20T09:03:00.000Z'),
}, { description: 'Its catcher is told; it may stop, or go on.' })
export type CancelAnswer = Static<typeof cancelledAnswer> | Static<typeof cancelRequestedAnswer>

export const reissueBody = Type.Object({}, { additionalProperties: false })
