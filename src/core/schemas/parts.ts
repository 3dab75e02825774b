import { Type } from '@sinclair/typebox'
import type { TSchema, TUnsafe } from '@sinclair/typebox'
import { labelNamePattern, labelValuePattern, maxLabels } from '../labels.ts'

/** What several schemas are made of. */

/** An optional member: `null` means absent (docs/api.md, "Conventions"). */
export function nullable<T> (type: string, more: object): TUnsafe<T | null> {
  return Type.Unsafe<T | null>({ type: [type, 'null'], ...more })
}

/**
 * One of these strings. An enum, because Ajv reports a wrong value once for an enum, but once for each member of a
 * union.
 */
export function oneOf<const T extends string> (values: readonly T[], more: object = {}): TUnsafe<T> {
  return Type.Unsafe<T>({ type: 'string', enum: values, ...more })
}

export const to = Type.String({ description: 'The inbox that it was passed to.', examples: ['reviewer'] })

const labelsExample = { run: '42', team: 'red' }
export const labels = Type.Unsafe<Record<string, string>>({
  type: 'object',
  additionalProperties: { type: 'string' },
  description: 'The labels that it was passed with.',
  examples: [labelsExample]
})
/** Of a body. */
export const labelsToPass = (description: string) => Type.Optional(nullable<Record<string, string>>('object', {
  minProperties: 1,
  maxProperties: maxLabels,
  patternProperties: { [labelNamePattern]: { type: 'string', pattern: labelValuePattern } },
  additionalProperties: false,
  description,
  examples: [labelsExample]
}))

export const exampleId = 'AVHdDBR3Ox_T_H9gltuUjYVhg'
export const time = (
  description: string, example: string
) => Type.String({ format: 'date-time', description, examples: [example] })

export const availableAt = time(
  'The handoff can be caught from then on; only if it was delayed.', '2026-11-20T09:00:30.000Z'
)

export const object = (
  description: string, example: object
) => Type.Unsafe<object>({ type: 'object', additionalProperties: true, description, examples: [example] })

export const blockedBy = Type.Integer({
  minimum: 1, description: 'How many handoffs that it comes after have not ended yet.', examples: [2]
})

export const isLocked = Type.Optional(Type.Literal(true, {
  description: 'There where the replica can’t decrypt some of the texts, which are null or left out then.'
}))

export const exampleFile = {
  name: 'figures.csv',
  media_type: 'text/csv',
  bytes: 48213,
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  uri: 'https://files.example.com/figures.csv'
}

/** The files in an answer. */
export const shownFiles = (description: string) => Type.Optional(Type.Array(Type.Object({
  name: Type.String({ description: 'Its name.', examples: [exampleFile.name] }),
  media_type: Type.Optional(Type.String({ description: 'Its media type.', examples: [exampleFile.media_type] })),
  bytes: Type.Optional(Type.Integer({ description: 'How many bytes it has.', examples: [exampleFile.bytes] })),
  sha256: Type.Optional(Type.String({ description: 'Its SHA-256.', examples: [exampleFile.sha256] })),
  uri: Type.String({ description: 'Where it is.', examples: [exampleFile.uri] }),
}, { description: 'A file.' }), { description }))

/** How many handoffs one may come after. */
const maxAfter = 100

/** In a body: the handoffs that one comes after. */
export const givenAfter = Type.Optional(nullable<string[]>('array', {
  items: { type: 'string' },
  minItems: 1,
  maxItems: maxAfter,
  description: `Ids of 1 to ${maxAfter} handoffs that must end first: until then no agent can catch this one. Its ` +
    'catcher gets their results.',
  examples: [[exampleId]]
}))

/** The handoffs that one comes after, for its catcher. */
export const afterOnCatch = Type.Array(Type.Object({
  handoff_id: Type.String({ description: 'As passed.', examples: [exampleId] }),
  last: Type.Optional(Type.String({ description: 'Its last attempt, if that is another.', examples: [exampleId] })),
  status: Type.String({ description: 'How it ended.', examples: ['done'] }),
  result: Type.Optional(nullable<object>('object', {
    additionalProperties: true, description: 'The output given to done.', examples: [{ rows: 128 }]
  })),
  result_files: shownFiles('The files given with it.'),
  result_omitted: Type.Optional(Type.Literal(true, {
    description: 'The result is left out: together they would be over 4 MiB, or it is gone.'
  })),
}), { description: 'What it comes after, in the order passed.' })

export const priority = Type.Integer({ description: 'Its priority in that inbox.', examples: [0] })

export const ofGroup = Type.String({ description: 'The group that it was passed with.', examples: ['customer-7'] })

export const scheduleNamePattern = '^[A-Za-z0-9._-]{1,64}$'
/** Of a schedule's run. */
export const scheduled = {
  schedule: Type.Optional(
    Type.String({ description: 'The schedule that it is a run of.', examples: ['nightly-report'] })
  ),
  scheduled_for: Type.Optional(time('For which time that ran.', '2026-11-28T01:30:00.000Z')),
}

/** What all lists that come in pages have. */

/** The query's members. */
export const pageQuery = {
  cursor: Type.Optional(Type.String({ maxLength: 128, description: 'next_cursor of the previous page.' })),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Largest number of items per page.' })
  ),
}

/** A page. @param order what its items are sorted by, as a sentence with a space behind it */
export function pageOf<T extends TSchema> (item: T, description: string, order = '') {
  return Type.Object({
    items: Type.Array(item, {
      description: `${order}May be fewer than \`limit\`, or none, even if there is a next_cursor.`
    }),
    next_cursor: nullable<string>(
      'string', { description: 'The cursor of the next page; null on the last one.', examples: [null] }
    ),
  }, { description })
}

/** Of a decision, where the service signs them. */
export const decisionSignature = Type.Optional(Type.String({
  description: 'Compact JWS over the decision, where SIGNING_KEY is set; /.well-known/jwks.json has the key.',
  examples: ['eyJhbGciOiJFZERTQSJ9.eyJzdGF0ZSI6ImFwcHJvdmVkIn0.rWn5vX8FsJkJ2lE']
}))

/** Of a decision, if its person signed in by an issuer. */
export const decidedByPerson = {
  decided_by_subject: Type.Optional(Type.String({
    description: 'Whom the issuer signed in; left out for a key.', examples: ['5f1c2a']
  })),
  decided_by_name: Type.Optional(Type.String({
    description: 'What the issuer calls that person; left out for a key.', examples: ['Carol Reyes']
  })),
}
