import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { maxLabels } from '../labels.ts'
import { members, shownOn } from '../members.ts'
import { askStates, asked, expiryReasons, statuses, workerPattern } from '../model.ts'
import { fileUrls, givenFiles } from './files.ts'
import {
  availableAt, blockedBy, decidedByPerson, decisionSignature, exampleId, isLocked, nullable, object, oneOf, scheduled,
  shownFiles, time
} from './parts.ts'
import type { Limits, Schemas } from '../members.ts'

/** The schemas that validate, serialise and document agents' operations. They are the only source of the types. */

/** An Idempotency-Key: 1 to 128 visible ASCII characters. */
export const keyPattern = '^[!-~]{1,128}$'

/** Of a query. Its form is checked where it is read (core/labels.ts). */
export const wantedLabels = Type.Optional(Type.String({
  description: `Only of handoffs with all of these labels: name, colon, value, separated by commas; ${maxLabels} ` +
    'at most.',
  examples: ['run:42,team:red']
}))

export const createdAt = time('When the handoff was passed, by Redis’s clock.', '2026-11-20T09:00:00.000Z')
export const expiresAt = time('The handoff can be caught until then.', '2026-11-21T09:00:00.000Z')
const completedAt = time('When the work was reported done.', '2026-11-20T09:05:00.000Z')
export const handoffId = Type.String({
  description: 'The handoff’s id: 25 URL-safe characters.', examples: [exampleId]
})

export const handoffParams = Type.Object({
  id: Type.String({ description: 'The handoff’s id.', examples: [exampleId] })
})

/** Every operation refuses unknown query parameters: a mistyped one must not be ignored silently. */
export const noQuery = Type.Object({}, { additionalProperties: false })

/** Header fields of an answer, for the document. */
export const replayedField = {
  'Idempotency-Replayed': {
    type: 'string',
    enum: ['true'],
    description: 'Only on a replayed answer: the operation had been carried out already.'
  }
}
const traceExample = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const traceField = {
  traceparent: {
    type: 'string',
    description: 'The trace in which the handoff was passed (W3C Trace Context), if pass sent one. Continue it.',
    examples: [traceExample]
  }
}

const wait = Type.Optional(
  Type.Integer({ minimum: 0, maximum: 60, description: 'How long to wait at most, in seconds.', examples: [30] })
)

export const waitQuery = Type.Object({ wait }, { additionalProperties: false })

export const statusQuery = Type.Object({
  wait,
  until: Type.Optional(
    oneOf(['caught', 'done'], { default: 'done', description: 'The status to wait for.', examples: ['done'] })
  ),
  explain: Type.Optional(oneOf(['true'], {
    description: 'Whether the answer says what a pending handoff waits for.', examples: ['true']
  })),
}, { additionalProperties: false })
export type StatusQuery = Static<typeof statusQuery>

const idempotencyHeaders = Type.Object({
  'idempotency-key': Type.Optional(Type.String({
    pattern: keyPattern,
    description: 'Identifies this operation, so that a retry gets the same answer and changes nothing: 1 to 128 ' +
      'visible ASCII characters.',
    examples: ['report-42-pass'],
  }))
})

/** Operations that are idempotent by themselves accept a key and ignore it. */
export const ignoredKeyHeaders = Type.Object({
  'idempotency-key': Type.Optional(Type.String({
    pattern: keyPattern, description: 'Ignored: this request can be retried without one.', examples: ['report-42']
  })),
})

/** On an answer. */
const worker = Type.String({
  description: 'What its worker calls itself (Handoff-Worker).', examples: ['host-7:4211']
})

/** Of a catcher's calls. */
export const workerHeaders = Type.Object({
  'handoff-worker': Type.Optional(Type.String({
    pattern: workerPattern,
    description: 'What the worker that calls is named, for people who look after the work: 1 to 100 of ' +
      'A-Z a-z 0-9 . _ : @ / -. The latest is shown. It decides nothing.',
    examples: ['host-7:4211']
  }))
})
export const catcherHeaders = Type.Object({ ...idempotencyHeaders.properties, ...workerHeaders.properties })

/** The state of a person's approval. */
export const approval = Type.Object({
  state: Type.Union([Type.Literal('waiting'), Type.Literal('approved'), Type.Literal('rejected')]),
  decided_at: nullable<string>('string', { format: 'date-time', description: 'When a person decided.' }),
  decided_by: nullable<string>('string', { description: 'Name of the person’s key.' }),
  ...decidedByPerson,
  note: nullable<string>('string', { description: 'The person’s note.' }),
  digest: Type.Optional(Type.String({
    description: 'Digest of the content that the person saw, if the decision sent it, or that was decided on, if it ' +
      'was signed.'
  })),
  signature: decisionSignature,
})

/** On catch and status, from the second attempt on. */
export const attempt = {
  attempt: Type.Optional(Type.Integer({ minimum: 2, description: 'Number of this attempt.', examples: [2] })),
  reissue_of: Type.Optional(Type.String({ description: 'Id of the previous attempt.', examples: [exampleId] })),
}

/** The same of a handoff with a parent. */
const lineage = {
  root: Type.Optional(Type.String({ description: 'Id of the first handoff of the line.', examples: [exampleId] })),
  hops: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Number of hops from the root to this handoff.', examples: [1] })
  ),
}

export const workExpiresAt = nullable<string>('string', {
  format: 'date-time',
  description: 'Deadline of the work; null while a question is open.',
  examples: ['2026-11-20T09:16:00.000Z']
})
const heartbeatExpiresAt = nullable<string>('string', {
  format: 'date-time',
  description: 'Deadline of the next heartbeat; null while a question is open.',
  examples: ['2026-11-20T09:02:00.000Z']
})
const checkpointAt = time('When the latest checkpoint was given.', '2026-11-20T09:01:30.000Z')
export const checkpointBy = Type.String({ description: 'The agent that gave the checkpoint.', examples: ['writer'] })
const heartbeatAt = time('When the catcher’s last heartbeat came.', '2026-11-20T09:01:30.000Z')
export const reissuedAs = Type.String({ description: 'Id of the next attempt, the successor.', examples: [exampleId] })
export const endedAt = time('When the handoff ended.', '2026-11-20T09:05:00.000Z')

export const exampleAskId = 'b7RkqyHBCe0X1nT9wT3xQA'

/** What status says of a question. */
export const askOnStatus = Type.Object({
  ask_id: Type.String({ description: 'The question’s id.', examples: [exampleAskId] }),
  state: oneOf(askStates, { description: 'How it stands.', examples: ['answered'] }),
  of: oneOf(asked, { description: 'Who is asked: a person, or the agent that passed the handoff.' }),
  asked_at: time('When it was asked.', '2026-11-20T09:05:00.000Z'),
  answered_at: nullable<string>('string', { format: 'date-time', examples: ['2026-11-20T09:12:00.000Z'] }),
  answered_by: nullable<string>('string', { description: 'Who answered.', examples: ['olga'] }),
}, { description: 'Its catcher’s latest question.' })

// By their places in the document. The others follow.
const {
  task, output, context, constraints, files: filesOnCatch, to, labels, heartbeat_within: heartbeatWithin, parent,
  ...onCatch
} = shownOn('catch')

export const catchAnswer = Type.Object({
  handoff_id: handoffId,
  status: Type.Literal('caught'),
  task,
  output,
  context,
  constraints,
  files: filesOnCatch,
  created_at: createdAt,
  approval: Type.Optional(approval),
  to,
  labels,
  work_expires_at: Type.Optional(workExpiresAt),
  heartbeat_within: heartbeatWithin,
  heartbeat_expires_at: Type.Optional(heartbeatExpiresAt),
  ...attempt,
  parent,
  ...lineage,
  checkpoint: Type.Optional(object('The latest checkpoint that a catcher of this work gave.', { rows_read: 4200 })),
  checkpoint_at: Type.Optional(checkpointAt),
  checkpoint_by: Type.Optional(checkpointBy),
  ...scheduled,
  ...onCatch,
  file_urls: fileUrls('files'),
}, { description: 'Caught: the work is yours.', headers: { ...replayedField, ...traceField } })

export const doneBody = Type.Object({
  output: Type.Optional(nullable<object>('object', {
    additionalProperties: true,
    description: 'Result of the work; status shows it as `result`.',
    examples: [{ summary: 'All five rows agree.' }]
  })),
  files: givenFiles,
}, { additionalProperties: false })

export const doneAnswer = Type.Object({
  handoff_id: handoffId, status: Type.Literal('done'), completed_at: completedAt
},
{ description: 'Done.', headers: replayedField })
export type DoneAnswer = Static<typeof doneAnswer>

const { require_human: requireHuman, parent: parentOnStatus, ...onStatus } = shownOn('status')

const waitsFor = Type.Array(Type.Object({
  reason: oneOf([
    'approval', 'delay', 'after', 'locked', 'paused', 'max_caught', 'max_caught_per_group', 'ahead', 'no_listener'
  ], {
    description: 'A person has yet to decide; its delay isn’t over; it comes after others; this replica lacks the ' +
      'key that it was encrypted with; its inbox is paused, or has as many caught as may be, or as may be of its ' +
      'group; others are caught before it; nobody works on its inbox.',
    examples: ['ahead']
  }),
  until: Type.Optional(time('Of a delay: its end. Of an approval: by when.', '2026-11-20T09:00:30.000Z')),
  blocked_by: Type.Optional(Type.Integer({ description: 'How many it comes after that have not ended.' })),
  kid: Type.Optional(Type.String({
    description: 'The key that it was encrypted with: its kid, or its name in Redis where no replica has it.',
    examples: ['2026-11']
  })),
  caught: Type.Optional(Type.Integer({ description: 'How many of the inbox, or of its group, are caught.' })),
  max: Type.Optional(Type.Integer({ description: 'How many may be.' })),
  ahead: Type.Optional(Type.Integer({
    description: 'How many the inbox gives before it, of its group.', examples: [3]
  })),
  at_least: Type.Optional(Type.Literal(true, { description: 'There are more ahead than that.' })),
}), { description: 'Only with explain=true, and while it is pending: all that it waits for.' })

export const statusAnswer = Type.Object({
  handoff_id: handoffId,
  status: Type.Union(
    statuses.map(status => Type.Literal(status)),
    { description: 'Clients must tolerate statuses that they don’t know.', examples: ['caught'] }
  ),
  require_human: requireHuman,
  created_at: createdAt,
  expires_at: expiresAt,
  caught_at: nullable<string>('string', { format: 'date-time', examples: ['2026-11-20T09:01:00.000Z'] }),
  caught_by: nullable<string>('string', { description: 'Name of the agent that caught it.', examples: ['writer'] }),
  completed_at: nullable<string>('string', { format: 'date-time', examples: [null] }),
  approval: Type.Union([approval, Type.Null()], { examples: [null] }),
  result: nullable<object>(
    'object', { additionalProperties: true, description: 'The output as sent with done.', examples: [null] }
  ),
  result_files: shownFiles('The files as sent with done, each in one form; left out if there are none.'),
  ...onStatus,
  blocked_by: Type.Optional(blockedBy),
  work_expires_at: Type.Optional(workExpiresAt),
  heartbeat_expires_at: Type.Optional(heartbeatExpiresAt),
  heartbeat_at: Type.Optional(heartbeatAt),
  worker: Type.Optional(worker),
  checkpoint_at: Type.Optional(checkpointAt),
  progress: Type.Optional(Type.Object({
    message: Type.Optional(
      Type.String()
    ),
    percent: Type.Optional(Type.Number()),
    at: Type.String({ format: 'date-time' }),
  }, { description: 'The catcher’s latest progress report.' })),
  cancel_requested_at: Type.Optional(time('When the passer asked the catcher to stop.', '2026-11-20T09:03:00.000Z')),
  cancel_reason: Type.Optional(
    Type.String({ description: 'Why it is cancelled.', examples: ['Not needed any more.'] })
  ),
  ended_at: Type.Optional(endedAt),
  ended_by: Type.Optional(nullable<string>(
    'string', { description: 'The agent that ended the handoff; null if none did.', examples: ['writer'] }
  )),
  error: Type.Optional(object('As sent with fail.', { message: 'The archive is not readable.' })),
  reason: Type.Optional(Type.String({ description: 'As sent with decline.', examples: ['Not my field.'] })),
  expired_because: Type.Optional(Type.Union(
    expiryReasons.map(reason => Type.Literal(reason)),
    { description: 'What was missed: not_decided if a person still had to decide.', examples: ['stalled'] }
  )),
  ask: Type.Optional(askOnStatus),
  ...attempt,
  reissued_as: Type.Optional(nullable<string>(
    'string', { description: 'Id of the next attempt, the successor; null until it is made.', examples: [exampleId] }
  )),
  parent: parentOnStatus,
  ...lineage,
  ...scheduled,
  locked: isLocked,
}, {
  description: 'The handoff’s status. What hasn’t happened is null. Members that only some handoffs have are ' +
  'left out of the others.'
})

/** Of the status alone, which others are made of. */
export const explainedStatusAnswer = Type.Object({
  ...statusAnswer.properties,
  result_file_urls: fileUrls('result_files'),
  waits_for: Type.Optional(waitsFor)
}, { description: statusAnswer.description! })

/** One thing that a handoff waits for, and what there is to say of it. */
export interface WaitsFor {
  reason: 'approval' | 'delay' | 'after' | 'locked' | 'paused' | 'max_caught' | 'max_caught_per_group' | 'ahead' |
    'no_listener'
  until?: string
  blocked_by?: number
  kid?: string
  caught?: number
  max?: number
  ahead?: number
  at_least?: true
}

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

function bodyMembers (limits: Limits): Schemas {
  return Object.fromEntries(Object.entries(members).map(([name, { schema }]) => [name, schema(limits)])) as Schemas
}

export const passBody = (limits: Limits) => Type.Object(bodyMembers(limits), {
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
