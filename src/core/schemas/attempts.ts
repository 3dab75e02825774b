import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import type { Limits } from '../members.ts'
import { askOnStatus, endedAt, handoffId, reissuedAs, replayedField, workExpiresAt } from './handoffs.ts'
import { isLocked, nullable, time } from './parts.ts'

/** The longest checkpoint, in bytes as sent. */
export const maxCheckpointBytes = 65_536

/** What heartbeat, fail and decline may hand on to the next attempt. */
const checkpoint = {
  checkpoint: Type.Optional(nullable<object>('object', {
    additionalProperties: true,
    description: `What the work has got to, for its next catcher: at most ${maxCheckpointBytes} bytes. It ` +
      'replaces the one before; without it that stays.',
    examples: [{ rows_read: 4200 }]
  })),
}

/** What a heartbeat reports. */
const progress = {
  message: nullable<string>('string', { minLength: 1, maxLength: 1000 }),
  percent: nullable<number>('number', { minimum: 0, maximum: 100 }),
}
export const progressMembers = Object.keys(progress)
interface Progress { message?: string | null, percent?: number | null }

export const heartbeatBody = ({ maxWorkTtl }: Limits) => Type.Object({
  extend_by: Type.Optional(nullable<number>('integer', {
    minimum: 1,
    maximum: maxWorkTtl,
    description: 'Moves the work’s deadline to this many seconds from now, if that is later.',
    examples: [900]
  })),
  progress: Type.Optional(nullable<Progress>('object', {
    properties: progress,
    additionalProperties: false,
    description: 'Progress of the work: a message, a percentage, or both. It replaces the previous report.',
    examples: [{ message: 'Half of the rows are read.', percent: 50 }],
  })),
  ...checkpoint,
}, { additionalProperties: false })

export const heartbeatAnswer = Type.Object({
  handoff_id: handoffId,
  status: Type.Literal('caught'),
  work_expires_at: workExpiresAt,
  heartbeat_expires_at: nullable<string>('string', {
    format: 'date-time',
    description: 'Deadline of the next heartbeat; null without heartbeat_within, and while a question is open.',
    examples: ['2026-11-20T09:02:00.000Z']
  }),
  cancel_requested: Type.Boolean({
    description: 'True if the passer wants the work stopped: fail or decline it, or go on and report it done.',
    examples: [false]
  }),
  cancel_reason: nullable<string>('string', { description: 'Why it is cancelled.', examples: [null] }),
  ask: Type.Optional(Type.Object({
    ask_id: askOnStatus.properties.ask_id,
    state: askOnStatus.properties.state
  }, { description: 'The latest question, once there was one.' })),
  locked: isLocked,
}, { description: 'The heartbeat is recorded.' })
export type HeartbeatAnswer = Static<typeof heartbeatAnswer>

export const reasonRules = { minLength: 1, maxLength: 4000 }

export const failBody = Type.Object({
  error: Type.Object({
    message: Type.String({ minLength: 1, maxLength: 4000 }),
    code: Type.Optional(nullable<string>('string', { pattern: '^[A-Za-z0-9._-]{1,64}$' })),
    data: Type.Optional(nullable<object>('object', { additionalProperties: true })),
  }, {
    additionalProperties: false,
    description: 'What went wrong; status shows it.',
    examples: [{ message: 'The archive is not readable.', code: 'bad_archive' }]
  }),
  retry: Type.Optional(nullable<boolean>(
    'boolean', { default: true, description: 'If false, no successor is made, even if attempts are left.' }
  )),
  ...checkpoint,
}, { additionalProperties: false })

export const declineBody = Type.Object({
  reason: Type.String({ ...reasonRules, description: 'Why; status shows it.', examples: ['Not my field.'] }),
  ...checkpoint,
}, { additionalProperties: false })

export const endAnswer = (status: 'failed' | 'declined') => Type.Object({
  handoff_id: handoffId, status: Type.Literal(status), ended_at: endedAt, reissued_as: Type.Optional(reissuedAs),
}, { description: 'The handoff has ended.', headers: replayedField })
export interface EndAnswer { handoff_id: string, status: 'failed' | 'declined', ended_at: string, reissued_as?: string }

export const cancelBody = Type.Object({
  reason: Type.Optional(nullable<string>(
    'string',
    { ...reasonRules, description: 'Why; heartbeats show it to the catcher.', examples: ['Not needed any more.'] }
  )),
  force: Type.Optional(
    nullable<boolean>('boolean', { default: false, description: 'If true, takes a caught handoff from its catcher.' })
  ),
}, { additionalProperties: false })

export const cancelledAnswer = Type.Object(
  { handoff_id: handoffId, status: Type.Literal('cancelled'), ended_at: endedAt }, { description: 'Cancelled.' }
)
export const cancelRequestedAnswer = Type.Object({
  handoff_id: handoffId,
  status: Type.Literal('caught'),
  cancel_requested_at: time(
    'When cancelling was first requested.', '2026-11-20T09:03:00.000Z'
  ),
}, { description: 'The catcher is asked to stop; it may go on.' })
export type CancelAnswer = Static<typeof cancelledAnswer> | Static<typeof cancelRequestedAnswer>

export const reissueBody = Type.Object({}, { additionalProperties: false })
