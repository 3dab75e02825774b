/** What a handoff is: its states, what moves it, and what is kept of it. A leaf: anyone may import it. */

export const statuses = ['pending', 'caught', 'done', 'failed', 'declined', 'cancelled', 'expired', 'rejected'] as const
export type Status = typeof statuses[number]

export function isStatus (text: unknown): text is Status {
  return statuses.includes(text as Status)
}

/** Where a person's approval stands: never asked for, or asked for and undecided, given, refused. */
export const approvals = ['none', 'waiting', 'approved', 'rejected'] as const
export type Approval = typeof approvals[number]

/**
 * Where a handoff stands for whoever asks: its status, with what can't be caught yet told apart from what can (it waits for a person, or its
 * delay isn't over), what expired after its catch from what nobody caught, and what isn't there.
 */
export const standings = ['absent', 'waiting', 'delayed', 'pending', 'caught', 'done', 'failed', 'declined', 'cancelled', 'expired', 'lapsed', 'rejected'] as const
export type Standing = typeof standings[number]

/** Who may ask for an operation beside what their key allows: anyone, its catcher, its passer, anyone but its passer. */
type Asker = 'anyone' | 'catcher' | 'passer' | 'another'

/** An operation that moves a handoff: from where to where, and what it is answered elsewhere, by the error's code. */
interface Operation { by: Asker, from: readonly Standing[], to: Status, refusals: Partial<Record<Standing, string>> }

/** Of decisions, what the approval decides: any standing has it that isn't `absent`. */
const undecidable: Partial<Record<Approval, string>> = { none: 'no_approval_required', approved: 'already_decided', rejected: 'already_decided' }

const ended = {
  done: 'already_done', failed: 'already_failed', declined: 'already_declined', cancelled: 'cancelled', expired: 'expired', lapsed: 'expired', rejected: 'rejected',
} as const
const decided = { absent: 'not_found', cancelled: 'cancelled', expired: 'expired', lapsed: 'expired' } as const
const unheld = { absent: 'not_found', waiting: 'not_caught', delayed: 'not_caught', pending: 'not_caught', ...ended } as const

/**
 * The state machine, once. The scripts in lua/ enforce it, and their tests, the model of the property tests, the fault checker and the docs
 * are held to it or made of it. An operation that was carried out is recognised when it comes again, whatever stands here; and by whom it
 * may be asked matters besides. What moves a handoff without anybody's asking is `byItself`.
 */
export const operations = {
  pass: { by: 'anyone', from: ['absent'], to: 'pending', refusals: {} },
  catch: {
    by: 'anyone', from: ['pending'], to: 'caught', refusals: { absent: 'not_found', waiting: 'approval_required', delayed: 'not_yet', caught: 'already_caught', ...ended },
  },
  approve: { by: 'another', from: ['waiting'], to: 'pending', refusals: decided },
  reject: { by: 'another', from: ['waiting'], to: 'rejected', refusals: decided },
  heartbeat: { by: 'catcher', from: ['caught'], to: 'caught', refusals: unheld },
  done: { by: 'catcher', from: ['caught'], to: 'done', refusals: unheld },
  fail: { by: 'catcher', from: ['caught'], to: 'failed', refusals: unheld },
  decline: { by: 'catcher', from: ['caught'], to: 'declined', refusals: unheld },
  cancel: {
    by: 'passer',
    from: ['waiting', 'delayed', 'pending', 'caught'],
    to: 'cancelled',
    // What is cancelled is told so once more: that is no refusal.
    refusals: {
      absent: 'not_found', expired: 'expired', lapsed: 'expired', rejected: 'rejected', done: 'already_done', failed: 'already_failed', declined: 'already_declined',
    },
  },
  // Of what has ended the status stays; only what is caught changes it.
  reissue: {
    by: 'passer',
    from: ['caught', 'failed', 'declined', 'lapsed'],
    to: 'cancelled',
    refusals: {
      absent: 'not_found', waiting: 'not_caught', delayed: 'not_caught', pending: 'not_caught', expired: 'expired', done: 'already_done', rejected: 'rejected', cancelled: 'cancelled',
    },
  },
} as const satisfies Record<string, Operation>
export type OperationName = keyof typeof operations

/** What happens when a deadline passes: nobody asks for it. */
export const byItself = { from: ['waiting', 'delayed', 'pending', 'caught'], to: 'expired' } as const satisfies { from: readonly Standing[], to: Status }

/** @param isDelayed can it not be caught yet for its delay? @param wasCaught for what has expired */
export function standingOf (status: Status, approval: Approval, isDelayed: boolean, wasCaught: boolean): Standing {
  if (status === 'pending') return approval === 'waiting' ? 'waiting' : isDelayed ? 'delayed' : 'pending'
  return status === 'expired' && wasCaught ? 'lapsed' : status
}

/** The code with which an operation is refused where a handoff stands; null where it is carried out. */
export function refusalOf (name: OperationName, standing: Standing, approval: Approval): string | null {
  const { by, from, refusals }: Operation = operations[name]
  if (by === 'another' && standing !== 'absent' && approval !== 'waiting') return undecidable[approval]!
  return from.includes(standing) ? null : refusals[standing] ?? null
}

/** The name of a tenant, an agent or an inbox. */
export const namePattern = '^[A-Za-z0-9._-]{1,64}$'

const nameShape = new RegExp(namePattern)

export function isName (text: string): boolean {
  return nameShape.test(text)
}

/** Who asks: the identity behind an API key. A handoff belongs to the tenant that passed it. */
export interface Caller {
  tenant: string
  agent: string
  scopes: ReadonlySet<Scope>
  /** The key's own id, for logs; null for keys from the environment, which have none. */
  keyId: string | null
  /** The key's own limit of requests; null where the service's stands. */
  ratePerMinute: number | null
  /** The inboxes that the key may catch from; null where it may from any of its tenant. */
  inboxes: ReadonlySet<string> | null
}

/** A caller by a key from the environment. */
export function callerOf (tenant: string, agent: string, scopes: Iterable<Scope>): Caller {
  return { tenant, agent, scopes: new Set(scopes), keyId: null, ratePerMinute: null, inboxes: null }
}

/** A caller's key as it was configured. */
export interface ApiKey { caller: Caller, secret: string }

/** What events tell (lua/lib/events.lua), each behind `handoff.` in its type. */
export const happenings = ['passed', 'approved', 'rejected', 'caught', 'done', 'failed', 'declined', 'cancelled', 'cancel_requested', 'expired', 'reissued'] as const
/** The types of the events in a feed. */
export const eventTypes: readonly string[] = [...happenings.map(name => `handoff.${name}`), 'webhook.disabled']
/** Those that webhooks deliver. */
export const webhookTypes: readonly string[] = happenings.map(name => `handoff.${name}`)

export const scopes = ['pass', 'catch', 'status', 'approve', 'webhooks'] as const
export type Scope = typeof scopes[number]

/** A handoff as Redis keeps it, without payload and result. Times are milliseconds since the epoch by Redis's clock. */
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

/** What a plain handoff doesn't have (lua/lib/record.lua, field x). Durations in milliseconds. */
export interface Extra {
  /** The inbox that it was passed to. */
  to?: string
  /** As passed; 0 where it wasn't. */
  priority?: number
  workWithin?: number
  heartbeatWithin?: number
  availableAt?: number
  maxAttempts?: number
  parent?: string
  root?: string
  hops?: number
  /** Marks of the payloads from the root to this one, 12 characters each. */
  marks?: string
  /** The second and up; a first one's isn't said. */
  attempt?: number
  reissueOf?: string
  reissuedAs?: string
  heartbeatDeadline?: number
  /** A heartbeat moved the work's deadline. */
  extended?: true
  cancelRequestedAt?: number
  endedAt?: number
  endedBy?: string
}

/** What a person decided. The note is JSON text: it is what an agent or a browser gets, and nothing here reads it. */
export interface Decision { at: number, by: string, note: string, digest?: string }

/** The status that is true at `now`: a deadline counts from its millisecond on, whether or not the sweep has got there. */
export function statusAt (record: HandoffRecord, now: number): Status {
  return now >= deadlineOf(record) ? 'expired' : record.status
}

/** When it expires if nothing happens: the end of its pickup or of its work, or when it is to be heard of; never for what has ended. */
export function deadlineOf (record: HandoffRecord): number {
  if (record.status === 'pending') return record.expiresAt
  return record.status === 'caught' ? workEnd(record) : Infinity
}

function workEnd ({ caught, extra }: HandoffRecord): number {
  return extra.heartbeatDeadline ?? caught!.deadline
}

/** Of what has expired at `now`: when, and what was missed. */
export function expiryOf (record: HandoffRecord): { at: number, because: 'not_caught' | 'not_done' | 'stalled' } {
  if (record.caught === null) return { at: record.expiresAt, because: 'not_caught' }
  const at = workEnd(record)
  return { at, because: at < record.caught.deadline ? 'stalled' : 'not_done' }
}

/** Will an attempt that has expired be tried again, when the sweep gets there? */
export function isTriedAgain (record: HandoffRecord): boolean {
  return record.caught !== null && record.extra.reissuedAs === undefined && hasNext(record)
}

/** Has it attempts left, that nobody asked to do without? */
export function hasNext ({ extra: { attempt = 1, maxAttempts = 1, cancelRequestedAt } }: HandoffRecord): boolean {
  return attempt < maxAttempts && cancelRequestedAt === undefined
}
