import { Type } from '@sinclair/typebox'
import type { TSchema } from '@sinclair/typebox'
import { shownOn } from '../members.ts'
import { statuses } from '../model.ts'
import { checkpointBy, handoffId, statusAnswer } from './handoffs.ts'
import { nullable } from './parts.ts'

/** The schema of all of a handoff. */

/** Like `task_omitted`. */
const omitted = (name: string) => ({
  [`${name}_omitted`]: Type.Optional(
    Type.Literal(true, { description: `${name} is left out: all texts together would be larger than 4 MiB.` })
  )
})
const { result, result_files: resultFiles, error, ...ofStatus } = statusAnswer.properties
const { task, output, context, constraints, files: filesOfIt } = shownOn('approval')
const textsOfIt: Record<string, TSchema> = {
  task,
  output,
  context,
  constraints,
  files: filesOfIt,
  result: nullable<object>('object', {
    additionalProperties: true, description: 'As given to done; null if there is none.', examples: [{ total: 3 }]
  }),
  result_files: resultFiles,
  error: nullable<object>('object', {
    additionalProperties: true,
    description: 'As sent with fail; null if there is none.',
    examples: [{ message: 'The archive is not readable.' }]
  }),
  question: nullable<string>('string', {
    description: 'What its catcher asked last; null if it asked nothing.', examples: ['Which year?']
  }),
  answer: Type.Unsafe<unknown>({ description: 'The answer to that question, any JSON; null if there is none.' }),
  checkpoint: nullable<object>('object', {
    additionalProperties: true,
    description: 'The latest checkpoint; null if there is none.',
    examples: [{ rows_read: 4200 }]
  }),
}

const attemptOfIt = Type.Object({
  handoff_id: handoffId,
  attempt: Type.Integer({ examples: [1] }),
  status: Type.Union(statuses.map(status => Type.Literal(status)), { examples: ['failed'] }),
  worker: nullable<string>('string', {
    description: 'What its worker called itself (Handoff-Worker); null if it said nothing.', examples: ['host-7:4211']
  }),
  ended_at: nullable<string>('string', {
    format: 'date-time', description: 'Null while it hasn’t ended.', examples: ['2026-11-20T09:04:00.000Z']
  }),
})

export const everythingAnswer = Type.Object({
  ...ofStatus,
  passed_by: Type.String({ description: 'The agent that passed it.', examples: ['planner'] }),
  ...Object.fromEntries(Object.entries(textsOfIt).flatMap(([name, schema]) => [
    [name, Type.Optional(schema)], ...Object.entries(omitted(name))
  ])),
  checkpoint_by: Type.Optional(checkpointBy),
  attempts: Type.Array(attemptOfIt, { description: 'The last 50 attempts of this work, in their order.' }),
}, { description: 'All of the handoff. What is gone is null.' })
