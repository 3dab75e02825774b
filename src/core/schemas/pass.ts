import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { members } from '../members.ts'
import type { Limits, Schemas } from '../members.ts'
import { createdAt, expiresAt, handoffId, idempotencyHeaders, replayedField, traceExample } from './handoffs.ts'
import { availableAt, blockedBy, exampleId } from './parts.ts'

const locationField = {
  Location: { type: 'string', description: 'The path of the handoff’s status.', examples: [`/api/status/${exampleId}`] }
}

export const passHeaders = Type.Object({
  ...idempotencyHeaders.properties,
  // No pattern: W3C Trace Context demands that a malformed one is ignored.
  traceparent: Type.Optional(Type.String({
    description: 'The trace that this request belongs to (W3C Trace Context). The service stores it and answers it ' +
      'to the catch, so that both agents’ work is one trace. A malformed one is ignored.',
    examples: [traceExample],
  })),
})

function bodyMembers (limits: Limits): Schemas {
  return Object.fromEntries(Object.entries(members).map(([name, { schema }]) => [name, schema(limits)])) as Schemas
}

export const passBody = (limits: Limits) => Type.Object(bodyMembers(limits), {
  additionalProperties: false,
  examples: [{
    task: 'Summarise the attached figures in five lines.',
    output: { rows: 128, total: 1.0 },
    context: { ticket: 'OPS-7' },
    to: 'reviewer',
    expires_in: 3600
  }]
})
export type PassBody = Static<ReturnType<typeof passBody>>

export const passAnswer = Type.Object({
  handoff_id: handoffId,
  pickup_url: Type.String({
    description: 'The URL to catch it at.', examples: [`http://127.0.0.1:8080/api/catch/${exampleId}`]
  }),
  status: Type.Literal('pending'),
  created_at: createdAt,
  expires_at: expiresAt,
  available_at: Type.Optional(availableAt),
  blocked_by: Type.Optional(blockedBy),
  approval_url: Type.Optional(Type.String({
    description: 'The page on which a person decides; only with require_human.',
    examples: [`http://127.0.0.1:8080/approvals/${exampleId}`]
  })),
}, { description: 'The handoff is passed.', headers: { ...locationField, ...replayedField } })
export type PassAnswer = Static<typeof passAnswer>
