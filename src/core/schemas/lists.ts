import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { shownOn } from '../members.ts'
import { groupPattern, inboxPattern, namePattern } from '../model.ts'
import { reasonRules } from './attempts.ts'
import { askOnStatus, statusAnswer } from './handoffs.ts'
import { exampleId, labelsToPass, nullable, oneOf, pageOf, pageQuery, scheduleNamePattern, scheduled } from './parts.ts'

/** The schemas of lists of handoffs. */

const name = (description: string, example: string, pattern = namePattern) =>
  Type.Optional(Type.String({ pattern, description, examples: [example] }))
const time = (description: string) =>
  Type.Optional(Type.String({ maxLength: 64, description, examples: ['2026-11-20T09:00:00.000Z'] }))

export const handoffsQuery = Type.Object({
  state: Type.Optional(oneOf(['live', 'failed', 'ended'], {
    default: 'live',
    description: 'live: pending or caught. failed: ended without being done, and without a successor. ended: ended ' +
      'in any way, of what was passed with to or labels.'
  })),
  inbox: name('The inbox that it was passed to.', 'reviewer', inboxPattern),
  group: name('The group that it was passed with.', 'customer-7', groupPattern),
  schedule: name('The schedule that it is a run of.', 'nightly-report', scheduleNamePattern),
  passed_by: name('The agent that passed it.', 'planner'),
  caught_by: name('The agent that caught it.', 'writer'),
  labels: Type.Optional(Type.String({
    description: 'Labels that it must have, all of them.', examples: ['run:42,team:red']
  })),
  since: time('With state=failed or ended: it ended then or later.'),
  until: time('With state=failed or ended: it ended before that.'),
  status: Type.Optional(Type.String({
    description: 'With state=failed or ended: how it ended, one or several.', examples: ['failed,expired']
  })),
  error_code: Type.Optional(Type.String({
    pattern: '^[A-Za-z0-9._-]{1,64}$',
    description: 'With state=failed or ended: the code given to fail.',
    examples: ['timeout']
  })),
  attempts: Type.Optional(oneOf(['all'], {
    description: 'With state=ended: also attempts that have a successor. Without it each work is listed once.'
  })),
  ...pageQuery,
}, { additionalProperties: false })
export type HandoffsQuery = Static<typeof handoffsQuery>

const shown = statusAnswer.properties
const {
  require_human: requireHuman, to, priority, labels, parent, max_attempts: maxAttempts, available_at: availableAt,
  ...onList
} = shownOn('list')

export const handoffsAnswer = pageOf(
  Type.Object({
    handoff_id: shown.handoff_id,
    status: shown.status,
    require_human: requireHuman,
    passed_by: Type.String({ description: 'The agent that passed it.', examples: ['planner'] }),
    created_at: shown.created_at,
    expires_at: shown.expires_at,
    to,
    priority,
    labels,
    parent,
    attempt: shown.attempt,
    max_attempts: maxAttempts,
    available_at: availableAt,
    blocked_by: shown.blocked_by,
    ...scheduled,
    approval: Type.Optional(shown.approval),
    caught_by: Type.Optional(Type.String({ description: 'The agent that caught it.', examples: ['writer'] })),
    caught_at: Type.Optional(Type.String({ format: 'date-time', examples: ['2026-11-20T09:01:00.000Z'] })),
    work_expires_at: shown.work_expires_at,
    heartbeat_expires_at: shown.heartbeat_expires_at,
    heartbeat_at: shown.heartbeat_at,
    worker: shown.worker,
    checkpoint_at: shown.checkpoint_at,
    progress: shown.progress,
    cancel_requested_at: shown.cancel_requested_at,
    ask: Type.Optional(Type.Object(
      { ask_id: askOnStatus.properties.ask_id, asked_at: askOnStatus.properties.asked_at },
      { description: 'Its open question.' }
    )),
    completed_at: Type.Optional(Type.String({ format: 'date-time', examples: ['2026-11-20T09:05:00.000Z'] })),
    ended_at: shown.ended_at,
    ended_by: shown.ended_by,
    reissued_as: Type.Optional(Type.String({ description: 'Id of its successor.', examples: [exampleId] })),
    error: Type.Optional(Type.Object({
      message: Type.String({ description: 'Truncated to 1,000 characters.' }), code: Type.Optional(Type.String())
    }, { description: 'As sent with fail, without its data.' })),
    reason: Type.Optional(Type.String({ description: 'As sent with decline, truncated to 1,000 characters.' })),
    expired_because: shown.expired_because,
    title: Type.Optional(Type.String({
      description: 'The first line of the task, up to 100 characters; only for keys with the scope operate or read.',
      examples: ['Summarise the attached figures']
    })),
    task: Type.Optional(Type.String({
      description: 'Truncated to 200 characters; only for keys with the scope operate.', examples: ['Summarise the']
    })),
    task_truncated: Type.Optional(Type.Literal(true, { description: 'Only on a truncated task.' })),
    ...onList,
    locked: shown.locked,
  }),
  `A tenant’s handoffs, like ${exampleId}. Members that only some handoffs have are left out of the others.`
)

const optionalName = (description: string, example: string, pattern = namePattern) =>
  Type.Optional(nullable<string>('string', { pattern, description, examples: [example] }))
const optionalTime = (description: string) => Type.Optional(nullable<string>(
  'string', { maxLength: 64, description, examples: ['2026-11-20T09:00:00.000Z'] }
))
const number = Type.Optional(nullable<number>('integer', {
  minimum: 1, maximum: 1000, default: 100, description: 'How many at most.', examples: [100]
}))

const onlyCounts = Type.Optional(nullable<boolean>('boolean', {
  default: false, description: 'Whether to change nothing, and only to count what would change.'
}))

export const redriveBody = Type.Object({
  inbox: optionalName('The inbox that they were passed to.', 'reviewer', inboxPattern),
  status: Type.Optional(nullable<Array<'failed' | 'declined' | 'expired'>>('array', {
    items: { type: 'string', enum: ['failed', 'declined', 'expired'] },
    minItems: 1,
    maxItems: 3,
    description: 'How they ended.',
    examples: [['failed', 'expired']]
  })),
  error_code: Type.Optional(nullable<string>('string', {
    pattern: '^[A-Za-z0-9._-]{1,64}$', description: 'The code given to fail.', examples: ['timeout']
  })),
  labels: labelsToPass('Labels that they must have, all of them.'),
  passed_by: optionalName('The agent that passed them.', 'planner'),
  since: optionalTime('They ended then or later.'),
  until: optionalTime('They ended before that.'),
  limit: number,
  dry_run: onlyCounts,
}, {
  additionalProperties: false, examples: [{ inbox: 'reviewer', status: ['failed'], error_code: 'timeout' }]
})
export type RedriveBody = Static<typeof redriveBody>

const count = (description: string, example: number) => Type.Integer({ minimum: 0, description, examples: [example] })
const more = Type.Boolean({ description: 'Whether there are others: then send it again.', examples: [false] })

export const redriveAnswer = Type.Object({
  reissued: count('How many have a successor now.', 3),
  skipped: count('How many could not be: they are gone, or another call reissued them.', 0),
  more
}, { description: 'What was reissued.' })

export const purgeBody = Type.Object({
  inbox: optionalName('The inbox. Left out, `labels` must name a run.', 'reviewer', inboxPattern),
  reason: Type.Optional(nullable<string>('string', {
    ...reasonRules, description: 'Why; status shows it as `cancel_reason`.', examples: ['Passed by mistake.']
  })),
  labels: labelsToPass('Labels that they must have, all of them.'),
  caught: Type.Optional(Type.Unsafe<'ask' | 'force' | null>({
    type: ['string', 'null'],
    enum: ['ask', 'force', null],
    description: 'What becomes of those that are caught: their catchers are asked to stop, or they are taken from ' +
      'them. Left out, they go on.',
    examples: ['ask']
  })),
  limit: number,
  dry_run: onlyCounts,
}, { additionalProperties: false, examples: [{ inbox: 'reviewer', reason: 'Passed by mistake.' }] })
export type PurgeBody = Static<typeof purgeBody>

export const purgeAnswer = Type.Object({
  cancelled: count('How many are cancelled now.', 3),
  requested: Type.Optional(count('With caught=ask: how many catchers are asked to stop.', 1)),
  more
}, { description: 'What was cancelled.' })

export const dryAnswer = Type.Object({ would_change: count('How many would change.', 3), more }, {
  description: 'With dry_run: what would change.'
})
