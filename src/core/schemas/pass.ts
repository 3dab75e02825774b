import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { afterNeeds, inboxPattern } from '../model.ts'
import type { AfterNeed } from '../model.ts'
import {
  availableAt, blockedBy, createdAt, exampleId, expiresAt, handoffId, idempotencyHeaders, labelsToPass, nullable,
  replayedField, traceExample
} from './handoffs.ts'

/** How many handoffs one may come after. */
const maxAfter = 100

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

/** The configured maxima of pass, heartbeat and delay, in seconds. */
export interface Limits { maxExpiresIn: number, maxWorkTtl: number }

export const passBody = ({ maxExpiresIn, maxWorkTtl }: Limits) => Type.Object({
  task: Type.String({
    minLength: 1,
    description: 'What the next agent should do.',
    examples: ['Summarise the attached figures in five lines.']
  }),
  output: Type.Optional(nullable<object>('object', {
    additionalProperties: true,
    description: 'Result of the passing agent’s own work.',
    examples: [{ rows: 128, total: 1.0 }]
  })),
  context: Type.Optional(nullable<object>(
    'object', { additionalProperties: true, description: 'Metadata or history.', examples: [{ ticket: 'OPS-7' }] }
  )),
  constraints: Type.Optional(
    nullable<string>('string', { description: 'Rules or boundaries for the next agent.', examples: ['Read only.'] })
  ),
  to: Type.Optional(nullable<string>('string', {
    pattern: inboxPattern,
    description: 'The inbox that the handoff is for. Any agent of the tenant can catch it there.',
    examples: ['reviewer']
  })),
  priority: Type.Optional(nullable<number>('integer', {
    minimum: 0,
    maximum: 9,
    default: 0,
    description: 'Priority in that inbox: each step outweighs a minute of waiting. Needs `to`.',
    examples: [5]
  })),
  labels: labelsToPass('Names and values by which lists and events can be filtered: 1 to 8. A name ' +
    'is 1 to 32 of A-Z a-z 0-9 . _ -, a value 1 to 64 of these and : / @.'),
  require_human: Type.Optional(nullable<boolean>(
    'boolean', { default: false, description: 'If true, a person must approve before anyone can catch the handoff.' }
  )),
  expires_in: Type.Optional(nullable<number>('integer', {
    minimum: 1, maximum: maxExpiresIn, description: 'For how many seconds the handoff can be caught.', examples: [3600]
  })),
  work_within: Type.Optional(nullable<number>('integer', {
    minimum: 1,
    maximum: maxWorkTtl,
    description: 'Seconds, from the catch on, within which the work must be done.',
    examples: [900]
  })),
  heartbeat_within: Type.Optional(nullable<number>('integer', {
    minimum: 5,
    maximum: 86400,
    description: 'Longest time between two heartbeats of the catcher, from the catch on, in seconds.',
    examples: [60]
  })),
  delay: Type.Optional(nullable<number>('integer', {
    minimum: 1,
    maximum: maxExpiresIn - 1,
    description: 'Seconds until the handoff can be caught; less than expires_in.',
    examples: [30]
  })),
  max_attempts: Type.Optional(nullable<number>('integer', {
    minimum: 1,
    maximum: 10,
    default: 1,
    description: 'Attempts in total. An attempt that fails, is declined or runs out of time gets a successor while ' +
      'any are left.',
    examples: [3]
  })),
  retry_delay: Type.Optional(nullable<number>('integer', {
    minimum: 0,
    maximum: 3600,
    default: 1,
    description: 'Seconds until the second attempt can be caught; doubles with each further attempt, up to an hour.',
    examples: [5]
  })),
  result_schema: Type.Optional(nullable<object>('object', {
    additionalProperties: true,
    description: 'A JSON Schema (2020-12) that done’s output must satisfy: at most 16,384 bytes, and only the ' +
      'keywords that the documentation lists.',
    examples: [{ type: 'object', required: ['summary'] }]
  })),
  parent: Type.Optional(nullable<string>('string', {
    description: 'Id of the handoff that this one is a part of. This agent must have caught it.', examples: [exampleId]
  })),
  after: Type.Optional(Type.Unsafe<string[] | null>({
    type: ['array', 'null'],
    items: { type: 'string' },
    minItems: 1,
    maxItems: maxAfter,
    description: `Ids of 1 to ${maxAfter} handoffs that must end first: until then nobody can catch this one. Its ` +
      'catcher gets their results.',
    examples: [[exampleId]]
  })),
  after_need: Type.Optional(Type.Unsafe<AfterNeed | null>({
    type: ['string', 'null'],
    enum: [...afterNeeds, null],
    default: 'done',
    description: 'What is needed of those: that all are `done` (one that ends otherwise cancels this handoff), or ' +
      'only that they have `ended`. Needs `after`.',
    examples: ['ended']
  })),
}, {
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
