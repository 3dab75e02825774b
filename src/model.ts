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
 * What moves a handoff, from where to where. The scripts in lua/ enforce it (each checks its own from-state); the model
 * that the property tests compare them with reads it here.
 */
export const transitions = {
  pass: { from: null, to: 'pending' },
  catch: { from: 'pending', to: 'caught' },
  approve: { from: 'pending', to: 'pending' },
  reject: { from: 'pending', to: 'rejected' },
  done: { from: 'caught', to: 'done' },
} as const satisfies Record<string, { from: Status | null, to: Status }>

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
