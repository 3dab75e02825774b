import { createHash } from 'node:crypto'
import type { Kept } from './members.ts'

/** A handoff's states, their changes, and the stored record. Any file may import this one. */

export const statuses = ['pending', 'caught', 'done', 'failed', 'declined', 'cancelled', 'expired', 'rejected'] as const
export type Status = typeof statuses[number]

export function isStatus (text: unknown): text is Status {
  return statuses.includes(text as Status)
}

/** The state of a person's approval: not required, required and undecided, given, refused. */
export type Approval = 'none' | 'waiting' | 'approved' | 'rejected'

/** What a person decided, or that it was a question that was answered. */
export const decisionStates = ['approved', 'rejected', 'answered'] as const
export type DecisionState = typeof decisionStates[number]

/**
 * A handoff's state as operations see it. It is finer than the status: a pending handoff may be waiting for a person,
 * `blocked` by others that it comes after, or `delayed`; an expired one that had been caught, or was for an inbox, is
 * `lapsed`; and a handoff that doesn't exist is `absent`.
 */
export const standings = [
  'absent', 'waiting', 'blocked', 'delayed', 'pending', 'caught', 'done', 'failed', 'declined', 'cancelled', 'expired',
  'lapsed', 'rejected'
] as const
export type Standing = typeof standings[number]

/**
 * Who may call an operation, besides what their key allows: anyone, its catcher, its passer (or an operator in its
 * stead), or anyone but its passer.
 */
type Actor = 'anyone' | 'catcher' | 'passer' | 'another'

/**
 * An operation that moves a handoff: from which standings, to which status, and the error code in every other standing.
 */
interface Operation { by: Actor, from: readonly Standing[], to: Status, refusals: Partial<Record<Standing, string>> }

/** For decisions, the refusals that depend on the approval. They apply in every standing except `absent`. */
const undecidable: Partial<Record<Approval, string>> = {
  none: 'no_approval_required', approved: 'already_decided', rejected: 'already_decided'
}

const ended = {
  done: 'already_done',
  failed: 'already_failed',
  declined: 'already_declined',
  cancelled: 'cancelled',
  expired: 'expired',
  lapsed: 'expired',
  rejected: 'rejected',
} as const
const decided = { absent: 'not_found', cancelled: 'cancelled', expired: 'expired', lapsed: 'expired' } as const
const unheld = {
  absent: 'not_found',
  waiting: 'not_caught',
  blocked: 'not_caught',
  delayed: 'not_caught',
  pending: 'not_caught',
  ...ended
} as const

/**
 * The state machine. The scripts in lua/ enforce it; their tests, the model of the property tests, the fault checker
 * and the docs are made from it or checked against it. It doesn't say everything: a repeated operation is recognised in
 * any standing, and `by` limits who may call. `byItself` has the changes that no operation makes.
 */
export const operations = {
  pass: { by: 'anyone', from: ['absent'], to: 'pending', refusals: {} },
  catch: {
    by: 'anyone',
    from: ['pending'],
    to: 'caught',
    refusals: {
      absent: 'not_found',
      waiting: 'approval_required',
      blocked: 'blocked',
      delayed: 'not_yet',
      caught: 'already_caught',
      ...ended
    },
  },
  approve: { by: 'another', from: ['waiting'], to: 'pending', refusals: decided },
  reject: { by: 'another', from: ['waiting'], to: 'rejected', refusals: decided },
  heartbeat: { by: 'catcher', from: ['caught'], to: 'caught', refusals: unheld },
  done: { by: 'catcher', from: ['caught'], to: 'done', refusals: unheld },
  fail: { by: 'catcher', from: ['caught'], to: 'failed', refusals: unheld },
  decline: { by: 'catcher', from: ['caught'], to: 'declined', refusals: unheld },
  cancel: {
    by: 'passer',
    from: ['waiting', 'blocked', 'delayed', 'pending', 'caught'],
    to: 'cancelled',
    // Cancelling again gets the same answer, so it is no refusal.
    refusals: {
      absent: 'not_found',
      expired: 'expired',
      lapsed: 'expired',
      rejected: 'rejected',
      done: 'already_done',
      failed: 'already_failed',
      declined: 'already_declined',
    },
  },
  // A handoff that has ended keeps its status; only a caught one changes it.
  reissue: {
    by: 'passer',
    from: ['caught', 'failed', 'declined', 'lapsed'],
    to: 'cancelled',
    refusals: {
      absent: 'not_found',
      waiting: 'not_caught',
      blocked: 'not_caught',
      delayed: 'not_caught',
      pending: 'not_caught',
      expired: 'expired',
      done: 'already_done',
      rejected: 'rejected',
      cancelled: 'cancelled',
    },
  },
} as const satisfies Record<string, Operation>
export type OperationName = keyof typeof operations

/** The changes when a deadline passes, without any request. */
export const byItself = {
  from: ['waiting', 'blocked', 'delayed', 'pending', 'caught'], to: 'expired'
} as const satisfies { from: readonly Standing[], to: Status }

/**
 * @param isDelayed can't it be caught yet because of its delay?
 * @param isKept of an expired handoff: was it caught, or for an inbox?
 * @param isBlocked is something open that it comes after?
 */
export function standingOf (
  status: Status, approval: Approval, isDelayed: boolean, isKept: boolean, isBlocked = false
): Standing {
  if (status === 'pending') {
    return approval === 'waiting' ? 'waiting' : isBlocked ? 'blocked' : isDelayed ? 'delayed' : 'pending'
  }
  return status === 'expired' && isKept ? 'lapsed' : status
}

/** May this key see the payload? It may be held to inboxes; a handoff for no inbox is for all keys. */
export function isAddressed ({ inboxes }: Caller, { extra: { to } }: Pick<HandoffRecord, 'extra'>): boolean {
  return inboxes === null || to === undefined || inboxes.has(to)
}

/** May this key read others' texts? The passer and the catcher may, with any key. */
export function mayReadTexts (caller: Caller, record: HandoffRecord): boolean {
  return isAddressed(caller, record) || record.passedBy === caller.agent || record.caught?.by === caller.agent
}

/** The error code with which an operation is refused in this standing; null if it is carried out. */
export function refusalOf (name: OperationName, standing: Standing, approval: Approval): string | null {
  const { by, from, refusals }: Operation = operations[name]
  if (by === 'another' && standing !== 'absent' && approval !== 'waiting') return undecidable[approval]!
  return from.includes(standing) ? null : refusals[standing] ?? null
}

/** Of tenants and agents, and of inboxes. */
export {
  groupPattern, inboxPattern, isGroup, isInbox, isName, isWorker, namePattern, workerPattern
} from '../clients/typescript/command/common/names.ts'

/** The forms of messages for people. */
const messageFormats = ['slack', 'teams', 'discord', 'ntfy'] as const
export type MessageFormat = typeof messageFormats[number]
/** Where a webhook's messages go in which form. Mail is that of mailto: URLs, and isn't named. */
export const webhookFormats = ['standard', ...messageFormats] as const
export type WebhookFormat = typeof webhookFormats[number] | 'mail'
/** The part of the payload that a message for a person may contain. */
export const includable = ['task'] as const

/** How a delivery to a webhook stands. Summarised: people got it in a summary alone. */
export const deliveryStatuses = ['pending', 'delivered', 'failed', 'summarised'] as const
export type DeliveryStatus = typeof deliveryStatuses[number]

/** The caller: the identity of an API key. A handoff belongs to its passer's tenant. */
export interface Caller {
  tenant: string
  agent: string
  scopes: ReadonlySet<Scope>
  /** The key's id, for logs; null for keys from the environment, which have none. */
  keyId: string | null
  /** The key's own rate limit; null if the service's applies. */
  ratePerMinute: number | null
  /** The inboxes that the key may catch from; null for all of its tenant. */
  inboxes: ReadonlySet<string> | null
  /** Who that is for the issuer of its token; left out for a key. */
  subject?: Subject
}

/** Whom an issuer knows. @property name of a person who signed in by it; left out for a token */
export interface Subject { issuer: string, subject: string, name?: string }

/** What a decision keeps of the person who signed in: members of JSON in base64url; empty for others. */
export function personWord ({ subject: of }: Pick<Caller, 'subject'>): string {
  if (of?.name === undefined) return ''
  const members = JSON.stringify({ decided_by_subject: of.subject, decided_by_name: of.name })
  return Buffer.from(`,${members.slice(1, -1)}`).toString('base64url')
}

/** The members of JSON behind `decided_by`, a comma before each. @param word as personWord made it */
export function personMembers (word: string | undefined): string {
  return Buffer.from(word ?? '', 'base64url').toString()
}

/** A digest in place of a subject, 22 characters; empty for a key. */
export function subjectMark ({ subject: of }: Pick<Caller, 'subject'>): string {
  if (of === undefined) return ''
  return createHash('sha256').update(`${of.issuer}\n${of.subject}`).digest('base64url').slice(0, 22)
}

/** Who has a limit that is a key's: the key, or the subject of a token. */
export function holderOf (caller: Caller): unknown {
  const { keyId, subject } = caller
  return keyId ?? (subject === undefined ? caller : `${subject.issuer} ${subject.subject}`)
}

/** The caller with a key from the environment. */
export function callerOf (tenant: string, agent: string, scopes: Iterable<Scope>): Caller {
  return { tenant, agent, scopes: new Set(scopes), keyId: null, ratePerMinute: null, inboxes: null }
}

/** A configured key and its caller. */
export interface ApiKey { caller: Caller, secret: string }

/** The events (lua/lib/events.lua), each after `handoff.` in its type. */
export const happenings = [
  'passed', 'approval_requested', 'approved', 'rejected', 'caught', 'asked', 'answered', 'ask_ended', 'done', 'failed',
  'declined', 'cancelled', 'cancel_requested', 'expired', 'reissued'
] as const
/** The types of the events in a feed. */
export const eventTypes: readonly string[] = [...happenings.map(name => `handoff.${name}`), 'webhook.disabled']
/** The events that webhooks deliver. */
export const webhookTypes: readonly string[] = happenings.map(name => `handoff.${name}`)
/** The events of which people get messages, unless a webhook names others. The last two only without a next attempt. */
export const typesForPeople: readonly string[] =
  ['handoff.approval_requested', 'handoff.asked', 'handoff.failed', 'handoff.expired']

export const scopes = ['pass', 'catch', 'status', 'approve', 'webhooks', 'operate', 'read'] as const
export type Scope = typeof scopes[number]
/** The scope that a key needs for something; of several, one is enough. */
export type NeededScope = Scope | readonly Scope[]

/**
 * A handoff as Redis keeps it, without payload and result. Times are milliseconds since the epoch, by Redis's clock.
 */
export interface HandoffRecord {
  status: Status
  approval: Approval
  createdAt: number
  expiresAt: number
  passedBy: string
  caught: { at: number, deadline: number, by: string } | null
  completedAt: number | null
  extra: Extra
}

/** A plain handoff's. */
export const noExtra: Extra = Object.freeze({})

/** The part of the record that a plain handoff lacks (lua/lib/record.lua, field x). Durations in milliseconds. */
export interface Extra extends Kept {
  /** The schedule that it is a run of, and for which time that ran. */
  schedule?: string
  scheduledFor?: number
  root?: string
  hops?: number
  /** Marks of the payloads from the root to this one, 12 characters each. */
  marks?: string
  /** The name of the key that sealed its payload (core/payload-keys.ts). */
  sealedBy?: string
  /** Which attempt it is, from the second on; left out for the first. */
  attempt?: number
  /** The first attempt's id. Version 0.2.0 doesn't note it. */
  first?: string
  reissueOf?: string
  reissuedAs?: string
  heartbeatDeadline?: number
  /** When its catcher last sent a heartbeat. */
  heartbeatAt?: number
  /** Which checkpoint is kept for the next attempt. */
  checkpoint?: { at: number, by: string }
  /** What its worker calls itself. */
  worker?: string
  /** Which parts its A2A message had, in letters. */
  messageParts?: string
  /** A heartbeat, or a question, moved the work's deadline. */
  extended?: true
  cancelRequestedAt?: number
  endedAt?: number
  endedBy?: string
  /** Its catcher's latest question. */
  ask?: Ask
  /** Others come after it, or did. */
  hasDependents?: true
}

/** Is it still blocked by handoffs that it comes after? */
export function isBlocked ({ status, extra }: HandoffRecord): boolean {
  return status === 'pending' && extra.after !== undefined && extra.after.open > 0
}

/** Whom a question asks. */
export const asked = ['person', 'passer'] as const
export type Asked = typeof asked[number]
export const askStates = ['open', 'answered', 'expired', 'withdrawn'] as const
export type AskState = typeof askStates[number]

/**
 * A question as Redis keeps it. `endedAt` and `answeredBy` are null where they don't apply. It may be over although its
 * state is `open` (askAt).
 */
export interface Ask {
  id: string
  of: Asked
  askedAt: number
  expiresAt: number
  state: AskState
  endedAt: number | null
  answeredBy: string | null
}

/** How a question stands at `now`, whether the sweep has been there or not. */
export function askAt (ask: Ask, record: HandoffRecord, now: number): AskState {
  if (ask.state !== 'open') return ask.state
  // An older version of the service ended the work, and left the question.
  const end = record.status === 'caught' ? deadlineOf(record) : record.completedAt ?? record.extra.endedAt ?? 0
  if (Math.min(now, end) >= ask.expiresAt) return 'expired'
  return now >= end ? 'withdrawn' : 'open'
}

/** Is its question open? Then its deadlines are only those for the case of no answer. */
export function isResting (record: HandoffRecord, now: number): boolean {
  const { ask } = record.extra
  return ask !== undefined && askAt(ask, record, now) === 'open'
}

/**
 * A person's decision. The note is JSON text: agents and browsers get it, and nothing here parses it.
 * @property person members of JSON, of who signed in by an issuer
 * @property digest there if they sent it, or it was signed
 */
export interface Decision { at: number, by: string, person: string, note: string, digest?: string, signature?: string }

/** The status at `now`. A deadline counts from its millisecond on, whether the sweep has reached the handoff or not. */
export function statusAt (record: HandoffRecord, now: number): Status {
  return now >= deadlineOf(record) ? 'expired' : record.status
}

/**
 * When it expires if nothing happens: at the end of its pickup, of its work, or of the time without a heartbeat. Never,
 * if it has ended.
 */
export function deadlineOf (record: HandoffRecord): number {
  if (record.status === 'pending') return record.expiresAt
  return record.status === 'caught' ? workEnd(record) : Infinity
}

function workEnd ({ caught, extra }: HandoffRecord): number {
  return extra.heartbeatDeadline ?? caught!.deadline
}

/** Why a handoff expired: it wasn't caught, decided on or done in time, or its catcher sent no heartbeat. */
export const expiryReasons = ['not_caught', 'not_decided', 'not_done', 'stalled'] as const

/** When an expired handoff expired, and which deadline it missed. */
export function expiryOf (record: HandoffRecord): { at: number, because: typeof expiryReasons[number] } {
  if (record.caught === null) {
    return { at: record.expiresAt, because: record.approval === 'waiting' ? 'not_decided' : 'not_caught' }
  }
  const at = workEnd(record)
  return { at, because: at < record.caught.deadline ? 'stalled' : 'not_done' }
}

/** Will the sweep make a successor of this expired attempt? */
export function isTriedAgain (record: HandoffRecord): boolean {
  return record.caught !== null && record.extra.reissuedAs === undefined && hasNext(record)
}

/** Are attempts left, and wasn't its cancelling requested? */
export function hasNext ({ extra: { attempt = 1, maxAttempts = 1, cancelRequestedAt } }: HandoffRecord): boolean {
  return attempt < maxAttempts && cancelRequestedAt === undefined
}
