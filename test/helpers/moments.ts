/** A state of a handoff as Redis stores it. */
export interface State {
  /** When a script looks at it. */
  now: number
  hash?: Hash
  /** The hash's PEXPIRETIME. */
  expires?: number
  /** Its score in the index of live handoffs. */
  due?: number
  /** Its score in the index of handoffs that wait for a person. */
  waiting?: number
  /** Its score in the list of what failed. */
  failed?: number
  /** The successor, which its field x names. */
  next?: { hash: Hash, expires: number, due: number }
}

/** The hash under a handoff's key. `p` is the payload, or the result once it is done, or empty once freed; lua/lib/record.lua explains the others. */
export interface Hash { s: string, p?: string, t?: string, d?: string, h?: string, x?: string, r?: string, e?: string, c?: string, g?: string }

/** Far in the future, so that Redis's own key expiry, which goes by the real clock, doesn't interfere. */
export const T = Date.UTC(2100, 0, 1)

/** When each event happened or is due; they follow from `lifetimes` in test/helpers/scripts.ts. */
export const at = {
  passed: T,
  decided: T + 50,
  /** The end of the delay. */
  available: T + 80,
  caught: T + 100,
  /** When it was cancelled, or cancelling was requested. */
  cancelled: T + 200,
  /** When a heartbeat came; also when it failed, was declined or was reissued. */
  done: T + 300,
  /** The first heartbeat's deadline, with heartbeat_within. */
  heard: T + 400,
  expires: T + 1000,
  workDeadline: T + 2100,
} as const

/** The one handoff that the tables are about, and its successor: SHA-1 of the id and T, as lua/lib/successor.lua says. */
export const id = 'T_gAAAAAAAAAAAAAAAAAAAAAA'
export const nextId = 'T_g08iZx3_L4d6WXJdeL1WfxA'

export const payload = '"task":"t"'
/** The task within the payload. */
export const task = '"t"'

/** The payload's digest. */
export const digest = 'itsdigest'
