/** What a handoff is: its states, what moves it, and what is kept of it. A leaf: anyone may import it. */

export const statuses = ['pending', 'caught', 'done', 'expired', 'rejected'] as const
export type Status = typeof statuses[number]

export function isStatus (text: unknown): text is Status {
  return statuses.includes(text as Status)
}

/** Where a person's approval stands: never asked for, or asked for and undecided, given, refused. */
export const approvals = ['none', 'waiting', 'approved', 'rejected'] as const
export type Approval = typeof approvals[number]

/**
 * Where a handoff stands for whoever asks: its status, with what waits for a person's approval told apart from what can be caught, and what
 * isn't there.
 */
export type Standing = 'absent' | 'waiting' | Status

/** An operation that moves a handoff: from where to where, and what it is answered elsewhere, by the error's code. */
interface Operation { from: Standing, to: Status, refusals: Partial<Record<Standing, string>> }

/** Of decisions, what the approval decides: any standing has it that isn't `absent`. */
const undecidable: Partial<Record<Approval, string>> = { none: 'no_approval_required', approved: 'already_decided', rejected: 'already_decided' }
const decided = { absent: 'not_found', expired: 'expired' } as const

/**
 * The state machine, once. The scripts in lua/ enforce it, and their tests, the model of the property tests, the fault checker and
 * docs/api.md are held to it or made of it. An operation that was carried out is recognised when it comes again, whatever stands here; and
 * who asks matters besides: `done` is its catcher's alone, and nobody decides on what they passed.
 */
export const operations = {
  pass: { from: 'absent', to: 'pending', refusals: {} },
  catch: {
    from: 'pending',
    to: 'caught',
    refusals: { absent: 'not_found', waiting: 'approval_required', caught: 'already_caught', done: 'already_done', expired: 'expired', rejected: 'rejected' },
  },
  approve: { from: 'waiting', to: 'pending', refusals: decided },
  reject: { from: 'waiting', to: 'rejected', refusals: decided },
  done: {
    from: 'caught',
    to: 'done',
    refusals: { absent: 'not_found', waiting: 'not_caught', pending: 'not_caught', done: 'already_done', expired: 'expired', rejected: 'rejected' },
  },
} as const satisfies Record<string, Operation>
export type OperationName = keyof typeof operations

export function standingOf (status: Status, approval: Approval): Standing {
  return status === 'pending' && approval === 'waiting' ? 'waiting' : status
}

/** The code with which an operation is refused where a handoff stands; null where it is carried out. */
export function refusalOf (name: OperationName, standing: Standing, approval: Approval): string | null {
  const { from, refusals }: Operation = operations[name]
  if (from === 'waiting' && standing !== 'absent' && approval !== 'waiting') return undecidable[approval]!
  return standing === from ? null : refusals[standing] ?? null
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
}

/** A caller by a key from the environment. */
export function callerOf (tenant: string, agent: string, scopes: Iterable<Scope>): Caller {
  return { tenant, agent, scopes: new Set(scopes), keyId: null, ratePerMinute: null }
}

/** A caller's key as it was configured. */
export interface ApiKey { caller: Caller, secret: string }

export const scopes = ['pass', 'catch', 'status', 'approve'] as const
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
}

/** What a person decided. The note is JSON text: it is what an agent or a browser gets, and nothing here reads it. */
export interface Decision { at: number, by: string, note: string }

/** The status that is true at `now`: a deadline counts from its millisecond on, whether or not the sweep has got there. */
export function statusAt (record: HandoffRecord, now: number): Status {
  return now >= deadlineOf(record) ? 'expired' : record.status
}

/** When it expires if nothing happens: the end of its pickup or of its work; never for what has ended. */
export function deadlineOf (record: HandoffRecord): number {
  if (record.status === 'pending') return record.expiresAt
  return record.status === 'caught' && record.caught !== null ? record.caught.deadline : Infinity
}
