import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { pageOf, pageQuery } from './parts.ts'

export const runsQuery = Type.Object({
  label: Type.Optional(Type.String({
    pattern: '^[A-Za-z0-9._-]{1,32}$',
    description: 'One of the names in RUN_LABELS; needed where there are several.',
    examples: ['run']
  })),
  ...pageQuery,
}, { additionalProperties: false })
export type RunsQuery = Static<typeof runsQuery>

const works = (description: string, example: number) => Type.Integer({ minimum: 0, description, examples: [example] })
const time = (description: string, example: string) =>
  Type.String({ format: 'date-time', description, examples: [example] })

export const runsAnswer = pageOf(
  Type.Object({
    value: Type.String({ description: 'The label’s value.', examples: ['42'] }),
    live: works('How many works are pending, caught, or between two attempts.', 3),
    done: works('How many are done.', 17),
    failed: works('How many failed, as state=failed lists them.', 1),
    other: works('How many were cancelled or rejected, or expired without an inbox and without a catch.', 0),
    first_at: time('When the first was passed.', '2026-11-20T09:00:00.000Z'),
    last_at: time('When the last was passed.', '2026-11-20T09:12:00.000Z'),
  }),
  'A label’s values, each with what became of the works that were passed with it. The value that was passed last first.'
)
