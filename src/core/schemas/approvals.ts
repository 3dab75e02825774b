import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { shownOn } from '../members.ts'
import { inboxPattern, statuses } from '../model.ts'
import { fileUrls } from './files.ts'
import { approval, attempt, createdAt, expiresAt, handoffId, wantedLabels } from './handoffs.ts'
import { nullable, pageOf, pageQuery, scheduled } from './parts.ts'

/** The schemas of what people see and decide. */

/** In characters. People don't read a longer note; a document belongs elsewhere. */
export const maxNoteLength = 4000
// Tabs and line breaks are text. Other control characters could mislead the reader.
const noteRules = {
  maxLength: maxNoteLength,
  pattern: '^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]*$',
  examples: ['Go ahead, but read only.']
}

export const listQuery = Type.Object({
  ...pageQuery,
  inbox: Type.Optional(Type.String({
    pattern: inboxPattern, description: 'Only handoffs for this inbox.', examples: ['reviewer']
  })),
  labels: wantedLabels,
}, { additionalProperties: false })
export type ListQuery = Static<typeof listQuery>

const exampleDigest = 'sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:'
const passedBy = Type.String({ description: 'Name of the agent that passed the handoff.', examples: ['planner'] })

const { task: beginning, available_at: availableOnList, ...onList } = shownOn('approvals')

export const listAnswer = pageOf(
  Type.Object({
    handoff_id: handoffId,
    task: beginning,
    task_truncated: Type.Optional(
      Type.Literal(true, { description: 'Only on a truncated task; /api/approvals/{id} has the full text.' })
    ),
    created_at: createdAt,
    expires_at: expiresAt,
    passed_by: passedBy,
    available_at: availableOnList,
    ...onList,
    ...scheduled,
  }),
  'Handoffs that wait for approval, oldest first.'
)

// By their places in the document. The others follow.
const {
  task, output, context, constraints, files: passedFiles, to, priority, parent, work_within: workWithin,
  heartbeat_within: heartbeatWithin, max_attempts: maxAttempts, available_at: availableAt, labels, ...onInspection
} = shownOn('approval')

export const inspectAnswer = Type.Object({
  handoff_id: handoffId,
  status: Type.Union(statuses.map(status => Type.Literal(status)), { examples: ['pending'] }),
  task,
  output,
  context,
  constraints,
  files: passedFiles,
  created_at: createdAt,
  expires_at: expiresAt,
  passed_by: passedBy,
  approval,
  to,
  priority,
  parent,
  work_within: workWithin,
  heartbeat_within: heartbeatWithin,
  max_attempts: maxAttempts,
  available_at: availableAt,
  labels,
  digest: Type.Optional(Type.String({
    description: 'Digest of what was passed. Send it with approve or reject: the ' +
    'decision is refused if the content is different by then.',
    examples: [exampleDigest]
  })),
  ...onInspection,
  file_urls: fileUrls('files'),
  ...attempt,
  ...scheduled,
}, { description: 'The complete handoff.' })

const reasonExample = 'Not this quarter’s: ask again in May.'
const digest = Type.Optional(nullable<string>('string', {
  pattern: '^sha-256=:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=:$',
  description: 'The digest that /api/approvals/{id} answered; the decision is refused if it doesn’t match.',
  examples: [
    exampleDigest
  ],
}))

export const approveBody = Type.Object({
  note: Type.Optional(
    nullable<string>('string', { description: 'For the agent that catches the handoff.', ...noteRules })
  ),
  digest,
}, { additionalProperties: false, examples: [{ note: noteRules.examples[0] }] })

export const rejectBody = Type.Object({
  note: Type.String({ minLength: 1, description: 'The reason.', ...noteRules, examples: [reasonExample] }),
  digest,
}, { additionalProperties: false, examples: [{ note: reasonExample }] })

export const decisionAnswer = Type.Object({
  handoff_id: handoffId,
  status: Type.Union([Type.Literal('pending'), Type.Literal('rejected')], { examples: ['pending'] }),
  approval,
}, { description: 'The decision is recorded.' })
