import { Type } from '@sinclair/typebox'
import { keyPattern, nullable } from './handoff.ts'
import { rateFields } from './problem.ts'

/** The schemas of a batch, for the document: its body is held to the rules by http/batch-body.ts. */

/** @param operations what it takes */
export const batchBody = (operations: readonly string[]) => Type.Object({
  operations: Type.Array(Type.Object({
    op: Type.Union(operations.map(name => Type.Literal(name)), { description: 'What to do; as the request of that name does it.', examples: ['done'] }),
    id: Type.Optional(nullable<string>('string', { description: 'The handoff’s id; required but for pass, which takes none.', examples: ['AVHdDBR3Ox_T_H9gltuUjYVhg'] })),
    body: Type.Optional(nullable<object>('object', { additionalProperties: true, description: 'The body that the single request takes; none for catch and status.', examples: [{ output: { total: 3 } }] })),
    idempotency_key: Type.Optional(nullable<string>('string', { pattern: keyPattern, description: 'Its Idempotency-Key.', examples: ['report-42-done'] })),
  }, { additionalProperties: false }), { minItems: 1, maxItems: 100, description: 'They run side by side, in no order.', examples: [[{ op: 'pass', body: { task: 'Summarise the figures.' } }]] }),
}, { additionalProperties: false })

export const batchAnswer = Type.Object({
  results: Type.Array(Type.Object({
    status: Type.Integer({ description: 'The status that the single request would have had.', examples: [201] }),
    body: Type.Unsafe<object>({ type: 'object', additionalProperties: true, description: 'Its answer, or its problem.', examples: [{ status: 'pending' }] }),
    replayed: Type.Optional(Type.Literal(true, { description: 'There when its idempotency_key was recognised.' })),
  }), { description: 'One for each operation, in the order in which they were asked.' }),
}, { description: 'Each operation’s own answer. One that fails touches no other. If one was refused for its rate, header fields say when to ask again.', headers: rateFields })
