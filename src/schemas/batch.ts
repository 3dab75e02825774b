import { Type } from '@sinclair/typebox'
import { keyPattern, nullable } from './handoff.ts'
import { rateFields } from './problem.ts'

/** The schemas of a batch, for the OpenAPI document. http/batch-body.ts validates the body. */

/** @param operations the names of the operations that a batch may contain */
export const batchBody = (operations: readonly string[]) => Type.Object({
  operations: Type.Array(Type.Object({
    op: Type.Union(operations.map(name => Type.Literal(name)), { description: 'The operation. It does what the request of that name does.', examples: ['done'] }),
    id: Type.Optional(nullable<string>('string', { description: 'The handoff’s id: required, except for pass, which takes none.', examples: ['AVHdDBR3Ox_T_H9gltuUjYVhg'] })),
    body: Type.Optional(nullable<object>('object', { additionalProperties: true, description: 'The body that the single request takes. catch and status take none.', examples: [{ output: { total: 3 } }] })),
    idempotency_key: Type.Optional(nullable<string>('string', { pattern: keyPattern, description: 'The operation’s Idempotency-Key.', examples: ['report-42-done'] })),
  }, { additionalProperties: false }), { minItems: 1, maxItems: 100, description: 'They run concurrently, in no particular order.', examples: [[{ op: 'pass', body: { task: 'Summarise the figures.' } }]] }),
}, { additionalProperties: false })

export const batchAnswer = Type.Object({
  results: Type.Array(Type.Object({
    status: Type.Integer({ description: 'The status that the single request would have had.', examples: [201] }),
    body: Type.Unsafe<object>({ type: 'object', additionalProperties: true, description: 'The body of its response: the answer, or a problem document.', examples: [{ status: 'pending' }] }),
    replayed: Type.Optional(Type.Literal(true, { description: 'Only on a replayed answer: the operation had been carried out already.' })),
  }), { description: 'One for each operation, in the order of the request.' }),
}, { description: 'The answers of the operations. One that fails does not affect the others. If one was rate limited, the header fields say when to retry.', headers: rateFields })
