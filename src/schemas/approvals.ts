import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { statuses } from '../model.ts'
import { approval, availableAt, createdAt, expiresAt, handoffId, nullable, object, priority, to } from './handoff.ts'

/** The schemas of what people see and decide. */

/** Longer than anybody reads; a document belongs elsewhere. In characters. */
export const longestNote = 4000
// Tabs and line breaks are text; what else is a control character isn't, and could mislead whoever reads it.
const noteRules = { maxLength: longestNote, pattern: '^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]*$', examples: ['Go ahead, but read only.'] }

export const listQuery = Type.Object({
  cursor: Type.Optional(Type.String({ maxLength: 128, description: 'next_cursor of the part before.' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'How many at the most.' })),
}, { additionalProperties: false })
export type ListQuery = Static<typeof listQuery>

const exampleDigest = 'sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:'
const passedBy = Type.String({ description: 'Name of the agent that passed it.', examples: ['planner'] })
const task = { description: 'As passed.', examples: ['Delete the old invoices.'] }

export const listAnswer = Type.Object({
  items: Type.Array(Type.Object({
    handoff_id: handoffId,
    task: Type.String({ description: 'As passed, cut after 1,000 characters.', examples: task.examples }),
    task_truncated: Type.Optional(Type.Literal(true, { description: 'There where the task was cut; the whole of it is at /api/approvals/{id}.' })),
    created_at: createdAt,
    expires_at: expiresAt,
    passed_by: passedBy,
    available_at: Type.Optional(availableAt),
  }), { description: 'Fewer than `limit`, or none, may come although there is a next_cursor.' }),
  next_cursor: nullable<string>('string', { description: 'Where the list goes on; null at its end.', examples: [null] }),
}, { description: 'What waits for a person, oldest first.' })

export const inspectAnswer = Type.Object({
  handoff_id: handoffId,
  status: Type.Union(statuses.map(status => Type.Literal(status)), { examples: ['pending'] }),
  task: nullable<string>('string', task),
  output: nullable<object>('object', { additionalProperties: true, description: 'As passed; null once freed.', examples: [{ rows: 128 }] }),
  context: nullable<object>('object', { additionalProperties: true, description: 'As passed; null once freed.', examples: [{}] }),
  constraints: nullable<string>('string', { description: 'As passed.', examples: [null] }),
  created_at: createdAt,
  expires_at: expiresAt,
  passed_by: passedBy,
  approval,
  to: Type.Optional(to),
  priority: Type.Optional(priority),
  parent: Type.Optional(Type.String({ description: 'As passed.' })),
  work_within: Type.Optional(Type.Integer({ description: 'As passed: seconds.' })),
  heartbeat_within: Type.Optional(Type.Integer({ description: 'As passed: seconds.' })),
  max_attempts: Type.Optional(Type.Integer({ description: 'As passed.' })),
  available_at: Type.Optional(availableAt),
  digest: Type.Optional(Type.String({ description: 'Stands for what was passed: give it to approve or reject, and another content is not decided on.', examples: [exampleDigest] })),
  result_schema: Type.Optional(object('As passed.', { type: 'object' })),
}, { description: 'The whole of it.' })

const digest = Type.Optional(nullable<string>('string', {
  pattern: '^sha-256=:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=:$', description: 'What was seen, as /api/approvals/{id} has it; another content is refused.', examples: [exampleDigest],
}))

export const approveBody = Type.Object({
  note: Type.Optional(nullable<string>('string', { description: 'For whoever catches it.', ...noteRules })),
  digest,
}, { additionalProperties: false })

export const rejectBody = Type.Object({
  note: Type.String({ minLength: 1, description: 'Why.', ...noteRules, examples: ['Not this quarter’s: ask again in May.'] }),
  digest,
}, { additionalProperties: false })

export const decisionAnswer = Type.Object({
  handoff_id: handoffId,
  status: Type.Union([Type.Literal('pending'), Type.Literal('rejected')], { examples: ['pending'] }),
  approval,
}, { description: 'Decided.' })
