import { Type } from '@sinclair/typebox'
import type { TSchema } from '@sinclair/typebox'
import type { passOptions } from '../clients/typescript/command/common/pass-options.ts'
import { groupPattern, inboxPattern } from '../clients/typescript/command/common/names.ts'
import {
  afterOnCatch, availableAt, exampleId, givenAfter, labels, labelsToPass, nullable, object, ofGroup, priority,
  shownFiles, to
} from './schemas/parts.ts'
import { givenFiles } from './schemas/files.ts'
import { callbackOnApproval, callbackOnStatus, callbackWord, givenCallback } from './callback.ts'
import { afterNeeds, afterWord, fromNow, labelWords, number, seconds, text } from './words.ts'
import type { AfterNeed, Reader, Unit } from './words.ts'

/**
 * The members of pass, a row each, in the API's order. The code that takes, keeps, shows or documents a member is made
 * from its row; `handoff pass` has its option beside it (common/pass-options.ts).
 */

/** The configured maxima of pass, heartbeat and delay, in seconds. */
export interface Limits { maxExpiresIn: number, maxWorkTtl: number }

/**
 * The answers, and the events, that can show a member. `approvals`: the list of those that wait; `approval`: one of it.
 */
export const answers = ['catch', 'status', 'list', 'approvals', 'approval', 'event'] as const
export type Answer = typeof answers[number]

type Row = {
  /** In the body. */
  schema: (limits: Limits) => TSchema
  /** Its row in docs/api.md: its values, and its meaning. */
  docs: readonly [values: string, meaning: string]
  /** Under which name it is shown, if that is another, and where: by the schema that it has there. */
  as?: string
  on: Partial<Record<Answer, TSchema>>
} & (
  /** Its JSON text, as it was passed. `absent`: what stands there if it wasn't; null if nothing does. */
  { kept: 'payload', absent: string | null } |
  /** In the record's own words. Like the payload, every handoff has it. */
  { kept: 'record' } |
  /** In words of field x with this letter. `key`: its name in `Extra` (model.ts). */
  { kept: 'word', letter: string, unit: Unit<any, any>, key?: string, isOfOneAttempt?: true } |
  /** The same, but they need more than its value: handoffs/lifecycle/service.ts has them made. */
  { kept: 'made', letter: string, unit?: Reader<any>, key?: string } |
  /** In another member's word. */
  { kept: 'along' }
)

const onAll = <Schema extends TSchema>(schema: Schema) =>
  ({ catch: schema, status: schema, list: schema, approvals: schema, approval: schema, event: schema })

const asPassed = { description: 'As passed.' }
const secondsAsPassed = { description: 'As passed: seconds.' }
const optionalTo = Type.Optional(to)
const optionalLabels = Type.Optional(labels)
const optionalPriority = Type.Optional(priority)
const optionalGroup = Type.Optional(ofGroup)
const optionalAvailableAt = Type.Optional(availableAt)
const needsHuman = Type.Boolean()
const optionalParent = Type.Optional(
  Type.String({ description: 'Id of the handoff that this one is a part of.', examples: [exampleId] })
)
const deleted = (example: object) => nullable<object>(
  'object', { additionalProperties: true, description: 'As passed; null once deleted.', examples: [example] }
)

const rows = {
  task: {
    schema: () => Type.String({
      minLength: 1,
      description: 'What the next agent should do.',
      examples: ['Summarise the attached figures in five lines.']
    }),
    docs: ['string, not empty, required', 'what the next agent should do'],
    // First in the payload: lua/pass.lua cuts it out.
    kept: 'payload',
    absent: 'null',
    on: {
      catch: Type.String({ ...asPassed, examples: ['Summarise the attached figures in five lines.'] }),
      approvals: Type.String({
        description: 'As passed, truncated to 1,000 characters.', examples: ['Delete the old invoices.']
      }),
      approval: nullable<string>('string', { ...asPassed, examples: ['Delete the old invoices.'] })
    }
  },
  output: {
    schema: () => Type.Optional(nullable<object>('object', {
      additionalProperties: true,
      description: 'Result of the passing agent’s own work.',
      examples: [{ rows: 128, total: 1.0 }]
    })),
    docs: ['object', "the passing agent's result"],
    kept: 'payload',
    absent: '{}',
    on: {
      catch: object('As passed; {} when none was given.', { rows: 128, total: 1.0 }), approval: deleted({ rows: 128 })
    }
  },
  context: {
    schema: () => Type.Optional(nullable<object>(
      'object', { additionalProperties: true, description: 'Metadata or history.', examples: [{ ticket: 'OPS-7' }] }
    )),
    docs: ['object', 'metadata or history'],
    kept: 'payload',
    absent: '{}',
    on: { catch: object('As passed; {} when none was given.', { ticket: 'OPS-7' }), approval: deleted({}) }
  },
  constraints: {
    schema: () => Type.Optional(
      nullable<string>('string', { description: 'Rules or boundaries for the next agent.', examples: ['Read only.'] })
    ),
    docs: ['string', 'rules for the next agent'],
    kept: 'payload',
    absent: 'null',
    on: {
      catch: nullable<string>(
        'string', { description: 'As passed; null when none was given.', examples: ['Read only.'] }
      ),
      approval: nullable<string>('string', { ...asPassed, examples: [null] })
    }
  },
  files: {
    schema: () => givenFiles,
    docs: ['array of 1 to 50 objects', '[files](#files): where each lies, and what it must be'],
    // In a form of its own (core/files.ts).
    kept: 'payload',
    absent: null,
    on: {
      catch: shownFiles('As passed, each in one form; left out if there are none.'),
      approval: shownFiles('As passed, each in one form; left out if there are none, or once deleted.')
    }
  },
  to: {
    schema: () => Type.Optional(nullable<string>('string', {
      pattern: inboxPattern,
      description: 'The inbox that the handoff is for. Any agent of the tenant can catch it there.',
      examples: ['reviewer']
    })),
    docs: ['a name', '[the inbox](inboxes.md) to pass it to'],
    kept: 'word',
    letter: 't',
    unit: text,
    key: 'to',
    on: {
      catch: optionalTo,
      status: optionalTo,
      list: optionalTo,
      approval: optionalTo,
      event: Type.Optional(Type.String({ description: 'The handoff’s inbox.', examples: ['reviewer'] }))
    }
  },
  priority: {
    schema: () => Type.Optional(nullable<number>('integer', {
      minimum: 0,
      maximum: 9,
      default: 0,
      description: 'Priority in that inbox: each step outweighs a minute of waiting. Needs `to`.',
      examples: [5]
    })),
    docs: ['0 to 9, with `to`', '[its priority](inboxes.md#passing-to-one) in that inbox; default 0'],
    kept: 'word',
    letter: 'u',
    unit: number,
    key: 'priority',
    on: { status: optionalPriority, list: optionalPriority, approval: optionalPriority }
  },
  group: {
    schema: () => Type.Optional(nullable<string>('string', {
      pattern: groupPattern,
      description: 'Whose work it is, say a customer: the groups of an inbox take turns. Needs `to`.',
      examples: ['customer-7']
    })),
    docs: ['1 to 64 of `A-Za-z0-9._:@-`, with `to`', '[whose work it is](inboxes.md#groups): groups take turns'],
    kept: 'word',
    letter: 'G',
    unit: text,
    key: 'group',
    on: onAll(optionalGroup)
  },
  labels: {
    schema: () => labelsToPass('Names and values by which lists and events can be filtered: 1 to 8. A name ' +
      'is 1 to 32 of A-Z a-z 0-9 . _ -, a value 1 to 64 of these and : / @.'),
    docs: ['object: 1 to 8 names, each with a string', '[labels](#labels), by which you find it again'],
    kept: 'word',
    letter: 'j',
    unit: labelWords,
    key: 'labels',
    on: onAll(optionalLabels)
  },
  require_human: {
    schema: () => Type.Optional(nullable<boolean>(
      'boolean', { default: false, description: 'If true, a person must approve before anyone can catch the handoff.' }
    )),
    docs: ['boolean', '[a person must approve](approvals.md) before anyone can catch it'],
    kept: 'made',
    letter: 'l',
    on: { status: needsHuman, list: needsHuman }
  },
  expires_in: {
    schema: ({ maxExpiresIn }) => Type.Optional(nullable<number>('integer', {
      minimum: 1,
      maximum: maxExpiresIn,
      description: 'For how many seconds the handoff can be caught.',
      examples: [3600]
    })),
    docs: [
      'whole seconds, 1 to `MAX_EXPIRES_IN` (30 days)',
      'how long it can be caught; default `DEFAULT_EXPIRES_IN` (a day)'
    ],
    kept: 'record',
    on: {}
  },
  work_within: {
    schema: ({ maxWorkTtl }) => Type.Optional(nullable<number>('integer', {
      minimum: 1,
      maximum: maxWorkTtl,
      description: 'Seconds, from the catch on, within which the work must be done.',
      examples: [900]
    })),
    docs: [
      'whole seconds, 1 to `MAX_WORK_TTL` (7 days)',
      '[how long the work may take](attempts.md#windows) after the catch; default `WORK_TTL` (a day)'
    ],
    kept: 'word',
    letter: 'w',
    unit: seconds,
    key: 'workWithin',
    on: { approval: Type.Optional(Type.Integer(secondsAsPassed)) }
  },
  heartbeat_within: {
    schema: () => Type.Optional(nullable<number>('integer', {
      minimum: 5,
      maximum: 86400,
      description: 'Longest time between two heartbeats of the catcher, from the catch on, in seconds.',
      examples: [60]
    })),
    docs: [
      'whole seconds, 5 to 86400',
      '[how long its catcher may be silent](attempts.md#windows); by default there is no such limit'
    ],
    kept: 'word',
    letter: 'b',
    unit: seconds,
    key: 'heartbeatWithin',
    on: {
      catch: Type.Optional(Type.Integer({ ...secondsAsPassed, examples: [60] })),
      approval: Type.Optional(Type.Integer(secondsAsPassed))
    }
  },
  delay: {
    schema: ({ maxExpiresIn }) => Type.Optional(nullable<number>('integer', {
      minimum: 1,
      maximum: maxExpiresIn - 1,
      description: 'Seconds until the handoff can be caught; less than expires_in.',
      examples: [30]
    })),
    docs: [
      'whole seconds, 1 to less than `expires_in`',
      '[not before](attempts.md#not-before): until then a catch is 409 `not_yet`'
    ],
    kept: 'word',
    letter: 'a',
    unit: fromNow,
    key: 'availableAt',
    // A successor has a delay of its own.
    isOfOneAttempt: true,
    as: 'available_at',
    on: {
      status: optionalAvailableAt,
      list: optionalAvailableAt,
      approvals: optionalAvailableAt,
      approval: optionalAvailableAt
    }
  },
  max_attempts: {
    schema: () => Type.Optional(nullable<number>('integer', {
      minimum: 1,
      maximum: 10,
      default: 1,
      description: 'Attempts in total. An attempt that fails, is declined or runs out of time gets a successor while ' +
        'any are left.',
      examples: [3]
    })),
    docs: ['1 to 10', '[how many attempts](attempts.md#trying-again) there may be in all; default 1'],
    kept: 'word',
    letter: 'm',
    unit: number,
    key: 'maxAttempts',
    on: {
      list: Type.Optional(Type.Integer({ ...asPassed, examples: [3] })), approval: Type.Optional(Type.Integer(asPassed))
    }
  },
  retry_delay: {
    schema: () => Type.Optional(nullable<number>('integer', {
      minimum: 0,
      maximum: 3600,
      default: 1,
      description: 'Seconds until the second attempt can be caught; doubles with each further attempt, up to an hour.',
      examples: [5]
    })),
    docs: ['whole seconds, 0 to 3600', 'how long the second attempt is delayed; default 1'],
    kept: 'word',
    letter: 'd',
    unit: seconds,
    on: {}
  },
  result_schema: {
    schema: () => Type.Optional(nullable<object>('object', {
      additionalProperties: true,
      description: 'A JSON Schema (2020-12) that done’s output must satisfy: at most 16,384 bytes, and only the ' +
        'keywords that the documentation lists.',
      examples: [{ type: 'object', required: ['summary'] }]
    })),
    docs: ['object', '[a JSON Schema](attempts.md#what-done-must-look-like) for the result'],
    kept: 'made',
    letter: 's',
    on: {
      catch: Type.Optional(
        object('As passed: what the output given to done must satisfy.', { type: 'object', required: ['summary'] })
      ),
      approval: Type.Optional(object('As passed.', { type: 'object' }))
    }
  },
  parent: {
    schema: () => Type.Optional(nullable<string>('string', {
      description: 'Id of the handoff that this one is a part of. This agent must have caught it.',
      examples: [exampleId]
    })),
    docs: ['string', '[the handoff that this is a part of](attempts.md#lineage); this agent must have caught it'],
    kept: 'made',
    letter: 'p',
    unit: text,
    key: 'parent',
    on: {
      catch: optionalParent,
      status: optionalParent,
      list: optionalParent,
      approval: Type.Optional(Type.String(asPassed)),
      event: optionalParent
    }
  },
  after: {
    schema: () => givenAfter,
    docs: ['array of 1 to 100 ids', '[what must end first](#in-order)'],
    kept: 'made',
    letter: 'A',
    unit: afterWord,
    key: 'after',
    on: { catch: Type.Optional(afterOnCatch) }
  },
  after_need: {
    schema: () => Type.Optional(Type.Unsafe<AfterNeed | null>({
      type: ['string', 'null'],
      enum: [...afterNeeds, null],
      default: 'done',
      description: 'What is needed of those: that all are `done` (one that ends otherwise cancels this handoff), or ' +
        'only that they have `ended`. Needs `after`.',
      examples: ['ended']
    })),
    docs: ['`done` or `ended`, with `after`', 'what is needed of those; default `done`'],
    kept: 'along',
    on: {}
  },
  callback: {
    schema: () => givenCallback,
    docs: ['object', '[the address that is notified](callbacks.md) of what becomes of it'],
    kept: 'made',
    letter: 'C',
    unit: callbackWord,
    key: 'callback',
    on: { status: callbackOnStatus, approval: callbackOnApproval }
  },
} as const satisfies Record<keyof typeof passOptions | 'files', Row>

type Rows = typeof rows
export type Member = keyof Rows
export const members: Readonly<Record<Member, Row>> = rows
/** By their schemas. */
export type Schemas = { [Name in Member]: ReturnType<Rows[Name]['schema']> }
export type MadeMember = { [Name in Member]: Rows[Name]['kept'] extends 'made' ? Name : never }[Member]

/** The members that a record has. */
export type Kept = {
  [Name in Member as Rows[Name] extends { key: infer Key extends string } ? Key : never]?:
  Rows[Name] extends { unit: { read (...given: never[]): infer Value } } ? Value : never
}

type On<In extends Answer> = {
  [Name in Member as Rows[Name]['on'] extends Record<In, TSchema>
    ? Rows[Name] extends { as: infer As extends string } ? As : Name
    : never]: Rows[Name]['on'] extends Record<In, infer Schema extends TSchema> ? Schema : never
}

/** The schemas of the members that an answer shows, by the names that they have there. */
export function shownOn<In extends Answer> (answer: In): On<In> {
  const shown = Object.entries(members).filter(([, { on }]) => on[answer] !== undefined)
  return Object.fromEntries(shown.map(([name, { as = name, on }]) => [as, on[answer]])) as On<In>
}
