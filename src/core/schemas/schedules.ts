import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import type { Limits } from '../members.ts'
import { passBody } from './handoffs.ts'
import { exampleId, nullable, object, oneOf, pageOf, pageQuery, time } from './parts.ts'

/** The schemas of schedules. */

const overlaps = ['skip', 'allow', 'cancel'] as const
export type ScheduleOverlap = typeof overlaps[number]
const runOutcomes = ['passed', 'skipped_overlap', 'skipped_late', 'refused'] as const
export type RunOutcome = typeof runOutcomes[number]

export const scheduleParams = Type.Object({
  name: Type.String({ description: 'The schedule’s name: 1 to 64 of A-Z a-z 0-9 . _ -.', examples: ['nightly-report'] })
})

/** What a handoff of a schedule is: a pass's body, without what belongs to one moment. */
export function scheduledHandoff (limits: Limits) {
  return Type.Omit(passBody(limits), ['parent', 'after', 'after_need', 'delay'], { additionalProperties: false })
}

const optional = <T>(type: string, more: object) => Type.Optional(nullable<T>(type, more))
const describe = {
  cron: 'Five fields: minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, ' +
    '@yearly.',
  every: 'An interval in seconds.',
  timezone: 'The zone whose clock cron goes by, of the IANA database.',
  overlap: 'What happens if the work of the tick before has not ended: the tick is skipped; both go on; or that work ' +
    'is cancelled.',
  catchUp: 'For how many seconds after it was due a tick is still run.',
  jitter: 'Up to how many seconds later a run comes.',
  startsAt: 'Ticks from then on.',
  endsAt: 'Ticks before then.',
  paused: 'Whether it doesn’t run.'
}

export const scheduleBody = Type.Object({
  cron: optional<string>('string', { description: describe.cron, examples: ['30 2 * * *'] }),
  every: optional<number>('integer', { minimum: 10, maximum: 31_536_000, description: describe.every }),
  timezone: optional<string>('string', { default: 'UTC', description: describe.timezone, examples: ['Europe/Berlin'] }),
  handoff: object(
    'What is passed: a body of pass, without parent, after and delay. {{scheduled_for}} in task, constraints and the ' +
      'values of labels becomes the time.',
    { task: 'Write the report for {{scheduled_for}}.', to: 'reporter' }
  ),
  overlap: Type.Optional(Type.Unsafe<ScheduleOverlap | null>({
    type: ['string', 'null'], enum: [...overlaps, null], default: 'skip', description: describe.overlap
  })),
  catch_up: optional<number>('integer', {
    minimum: 5, maximum: 2_592_000, default: 300, description: describe.catchUp
  }),
  jitter: optional<number>('integer', { minimum: 0, maximum: 3600, default: 0, description: describe.jitter }),
  starts_at: optional<string>('string', { maxLength: 64, description: describe.startsAt }),
  ends_at: optional<string>('string', { maxLength: 64, description: describe.endsAt }),
  paused: optional<boolean>('boolean', { default: false, description: describe.paused }),
}, {
  additionalProperties: false,
  examples: [{
    cron: '30 2 * * *',
    timezone: 'Europe/Berlin',
    handoff: { task: 'Write the report for {{scheduled_for}}.', to: 'reporter' }
  }]
})
export type ScheduleGiven = Static<typeof scheduleBody>

const at = '2026-11-28T01:30:00.000Z'
const run = Type.Object({
  scheduled_for: time('The time that it ran for.', at),
  at: time('When that happened.', '2026-11-28T01:30:00.120Z'),
  by: oneOf(['tick', 'run', 'backfill'], { description: 'What made it run.', examples: ['tick'] }),
  outcome: oneOf(runOutcomes, { examples: ['passed'] }),
  handoff_id: Type.Optional(Type.String({ description: 'The handoff that was passed.', examples: [exampleId] })),
  code: Type.Optional(Type.String({ description: 'Why the pass was refused.', examples: ['inbox_full'] })),
  count: Type.Optional(Type.Integer({ description: 'How many ticks in a row came too late.', examples: [3] })),
  until: Type.Optional(time('The last of those.', at)),
})

const listed = {
  name: Type.String({ examples: ['nightly-report'] }),
  cron: nullable<string>('string', { description: describe.cron, examples: ['30 2 * * *'] }),
  every: nullable<number>('integer', { description: describe.every, examples: [null] }),
  timezone: nullable<string>('string', { description: describe.timezone, examples: ['Europe/Berlin'] }),
}
const behindHandoff = {
  overlap: oneOf(overlaps, { description: describe.overlap, examples: ['skip'] }),
  catch_up: Type.Integer({ description: describe.catchUp, examples: [300] }),
  jitter: Type.Integer({ description: describe.jitter, examples: [0] }),
  starts_at: nullable<string>('string', { description: describe.startsAt, examples: [null] }),
  ends_at: nullable<string>('string', { description: describe.endsAt, examples: [null] }),
  paused: Type.Boolean({ description: describe.paused, examples: [false] }),
  passed_by: Type.String({ description: 'The agent that made it, and passes what it says.', examples: ['planner'] }),
  created_at: time('When it was made.', '2026-11-20T09:00:00.000Z'),
  updated_at: time('When it was changed last.', '2026-11-20T09:00:00.000Z'),
  next: Type.Array(Type.String({ format: 'date-time', examples: [at] }), {
    description: 'Its next times, up to five, without jitter; none while it is paused.'
  }),
  last: Type.Union([run, Type.Null()], { description: 'The newest tick’s run.' }),
}

export const scheduleAnswer = Type.Object({
  ...listed,
  handoff: object('As given, without the token of a callback.', { task: 'Write the report.', to: 'reporter' }),
  ...behindHandoff
})

export const turnedAnswer = Type.Object({
  ...scheduleAnswer.properties,
  handoff: Type.Union([scheduleAnswer.properties.handoff, Type.Null()]),
  locked: Type.Optional(Type.Boolean({
    description: 'There if the replica can’t decrypt the handoff, which is null then.', examples: [true]
  }))
})

export const schedulesQuery = Type.Object(pageQuery, { additionalProperties: false })
export type SchedulesQuery = Static<typeof schedulesQuery>
export const schedulesAnswer = pageOf(Type.Object({ ...listed, ...behindHandoff }), 'A tenant’s schedules by name.')

export const runsOfQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 100, description: 'How many at most.' }))
}, { additionalProperties: false })
export type RunsOfQuery = Static<typeof runsOfQuery>
export const runsOfAnswer = Type.Object({ items: Type.Array(run) }, {
  description: 'The newest runs, the newest first.'
})

const bound = (description: string, example: string) =>
  Type.String({ maxLength: 64, description, examples: [example] })
export const backfillBody = Type.Object({
  since: bound('Ticks from then on.', '2026-11-20T00:00:00.000Z'),
  until: bound('Ticks before then; not in the future.', '2026-11-21T00:00:00.000Z')
}, {
  additionalProperties: false,
  examples: [{ since: '2026-11-20T00:00:00.000Z', until: '2026-11-21T00:00:00.000Z' }]
})
export type BackfillBody = Static<typeof backfillBody>

const count = (description: string, example: number) => Type.Integer({ minimum: 0, description, examples: [example] })
export const backfillAnswer = Type.Object({
  passed: count('How many ticks were passed.', 3),
  skipped: count('How many had run before, or are still to come by themselves.', 1),
  refused: count('How many passes were refused.', 0),
  more: Type.Boolean({ description: 'Whether there are other ticks in that span.', examples: [false] }),
  next: nullable<string>('string', { description: 'The since to go on with.', examples: [null] }),
})
