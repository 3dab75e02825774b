/**
 * What each script may reply, in the order of its header in lua/, which describes the replies. A number alone is left
 * out. This file is made of the headers: `OUTCOMES=write npm test -- test/lua/outcomes.test.ts`.
 */
export const outcomes = {
  after: ['stand', 'newer', 'late'],
  answer: [
    'answered', 'replayed', 'unchecked', 'not_found', 'not_asked', 'content_changed', 'already_answered', 'expired',
    'withdrawn', 'no_scope', 'self_approval', 'not_the_passer', 'newer', 'full', 'late'
  ],
  around: ['around'],
  ask: [
    'asked', 'replayed', 'not_found', 'expired', 'rejected', 'cancelled', 'not_caught', 'not_the_catcher',
    'already_done', 'already_failed', 'already_declined', 'already_asked', 'newer', 'full', 'late'
  ],
  asked: ['found', 'not_found'],
  attempts: ['found', 'not_found'],
  'callback-claim': ['claimed', 'late'],
  'callback-rotate': ['rotated', 'late'],
  'callback-tried': ['noted', 'unknown', 'late'],
  cancel: [
    'cancelled', 'replayed', 'requested', 'not_found', 'not_the_passer', 'expired', 'rejected', 'already_done',
    'already_failed', 'already_declined', 'newer', 'full', 'late'
  ],
  'card-set': ['set', 'late'],
  catch: [
    'caught', 'replayed', 'not_found', 'not_addressee', 'expired', 'cancelled', 'rejected', 'already_caught',
    'already_done', 'already_failed', 'already_declined', 'approval_required', 'blocked', 'not_yet', 'locked', 'larger',
    'newer', 'late'
  ],
  claim: ['claimed', 'known', 'left', 'reused', 'late'],
  count: ['counted'],
  decide: [
    'approved', 'rejected', 'replayed', 'not_found', 'no_approval_required', 'already_decided', 'cancelled', 'expired',
    'self_approval', 'content_changed', 'locked', 'origin', 'outdated', 'newer', 'full', 'late'
  ],
  'decision-forget': ['forgotten', 'not_found', 'late'],
  'decisions-trim': ['counted', 'late'],
  delete: ['deleted', 'late'],
  dependents: ['dependents', 'open', 'newer', 'late'],
  described: ['described'],
  done: [
    'replayed', 'unchecked', 'not_found', 'expired', 'rejected', 'cancelled', 'not_caught', 'not_the_catcher',
    'already_done', 'already_failed', 'already_declined', 'newer', 'full', 'late'
  ],
  everything: ['found', 'not_found', 'larger'],
  excerpt: ['found'],
  'feed-note': ['noted', 'kept', 'late'],
  feed: ['feed'],
  'file-claim': ['claimed', 'waiting', 'not_found', 'late'],
  'file-drop': ['dropped', 'in_use', 'not_found', 'late'],
  'file-due': ['due', 'late'],
  'file-get': ['found', 'not_found'],
  'file-have': ['noted', 'late'],
  'file-holders': ['holders', 'late'],
  'file-keeping': ['keeping'],
  'file-kept': ['noted', 'changed', 'not_found', 'late'],
  'file-make': ['made', 'replayed', 'reused', 'files_full', 'late'],
  'file-mark': ['store', 'none'],
  'file-store': ['store', 'late'],
  'file-whole': ['whole', 'not_found', 'late'],
  forget: ['forgotten', 'newer', 'late'],
  get: ['found', 'not_found'],
  'give-up': [
    'failed', 'declined', 'replayed', 'not_found', 'expired', 'rejected', 'cancelled', 'not_caught', 'not_the_catcher',
    'already_done', 'already_failed', 'already_declined', 'origin', 'newer', 'full', 'late'
  ],
  'go-back': ['moved', 'late'],
  groups: ['listed'],
  heartbeat: [
    'caught', 'not_found', 'replayed', 'expired', 'rejected', 'cancelled', 'not_caught', 'not_the_catcher',
    'already_done', 'already_failed', 'already_declined', 'origin', 'newer', 'full', 'late'
  ],
  'inbox-room': ['kept', 'closed', 'limited', 'left', 'known', 'reused', 'late'],
  'inbox-set': ['set', 'late'],
  'inbox-tidy': ['tidied', 'late'],
  inbox: ['counted'],
  inboxes: ['named'],
  index: ['indexed', 'late'],
  inspect: ['found', 'not_found', 'larger'],
  'key-change': ['updated', 'rotated', 'revoked', 'not_found', 'ended', 'already_revoked', 'late'],
  'key-changes': ['changed', 'lost'],
  'key-create': ['created', 'taken', 'late'],
  'key-find': ['found', 'not_found'],
  'key-list': ['listed'],
  lease: ['held', 'taken', 'late'],
  'limit-list': ['listed'],
  'limit-set': ['set', 'too_many', 'late'],
  lineage: ['found', 'larger', 'not_found', 'newer'],
  list: ['listed'],
  listen: ['noted', 'late'],
  listeners: ['listened'],
  'live-tidy': ['tidied', 'late'],
  outbox: ['outbox'],
  pass: ['passed', 'replayed', 'inbox_full', 'reused', 'fresh', 'ticked', 'newer', 'late'],
  'payload-count': ['counted'],
  'payload-keys': ['noted'],
  'payload-note': ['noted', 'left', 'late'],
  position: ['ahead'],
  probe: ['written', 'no_room', 'late'],
  'push-note': ['noted', 'unknown', 'late'],
  'push-set': ['kept', 'many', 'not_found', 'late'],
  pushes: ['found', 'not_found'],
  rate: ['taken', 'late'],
  read: [
    'caught', 'not_found', 'replayed', 'not_addressee', 'expired', 'rejected', 'cancelled', 'not_caught',
    'not_the_catcher', 'already_done', 'already_failed', 'already_declined', 'locked', 'larger', 'newer'
  ],
  reissue: [
    'reissued', 'replayed', 'not_found', 'not_the_passer', 'not_caught', 'expired', 'already_done', 'rejected',
    'cancelled', 'newer', 'late'
  ],
  relay: ['relayed', 'late'],
  release: ['released', 'blocked', 'cancelled', 'unchanged', 'late'],
  rights: ['may'],
  'run-merge': ['merged', 'late'],
  'run-moved': ['moved', 'late'],
  run: ['found', 'not_found'],
  runs: ['listed'],
  scan: ['named'],
  'schedule-delete': ['deleted', 'begun', 'not_found', 'late'],
  'schedule-due': ['due', 'late'],
  'schedule-get': ['found', 'not_found'],
  'schedule-list': ['listed'],
  'schedule-note': ['noted', 'stale', 'changed', 'late'],
  'schedule-put': ['put', 'too_many', 'changed', 'late'],
  'schedule-run': ['begun', 'stale', 'late'],
  set: ['set', 'late'],
  stands: ['stands', 'newer'],
  status: ['found', 'not_found'],
  sweep: ['swept', 'late'],
  take: [
    'taken', 'replayed', 'closed', 'limited', 'left', 'elsewhere', 'unsettled', 'reused', 'locked', 'larger', 'late'
  ],
  'task-answer': ['known', 'noted', 'not_found', 'late'],
  'task-list': ['listed'],
  task: ['found', 'not_found', 'larger'],
  'tick-settle': ['ran', 'void', 'late'],
  'token-block': ['set', 'blocks_full', 'late'],
  'token-blocks': ['listed'],
  trim: ['trimmed', 'late'],
  uncounted: ['named'],
  'webhook-change': ['rotated', 'enabled', 'not_found', 'late'],
  'webhook-claim': ['claimed', 'gone', 'late'],
  'webhook-create': ['created', 'too_many', 'late'],
  'webhook-delete': ['deleted', 'late'],
  'webhook-deliveries': ['listed', 'found'],
  'webhook-list': ['listed'],
  'webhook-plan': ['planned', 'moved', 'deliveries_full', 'gone', 'late'],
  'webhook-replay': ['replaying', 'disabled', 'not_found', 'late'],
  'webhook-tried': ['noted', 'disabled', 'unknown', 'late'],
  workers: ['working'],
} as const

/** Those that lie in lua/. */
export type ScriptName = keyof typeof outcomes
export type Outcome<Name extends ScriptName> = typeof outcomes[Name][number]
