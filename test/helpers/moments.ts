/** A state that a handoff is found in, as it lies in Redis. */
export interface State {
  /** When it is looked at. */
  now: number
  hash?: Hash
  /** The hash's PEXPIRETIME. */
  expires?: number
  /** Its score among the live. */
  due?: number
  /** Its score among those that wait for a person. */
  waiting?: number
  /** The next attempt, which its field x names. */
  next?: { hash: Hash, expires: number, due: number }
}

/** What lies under a handoff's key. `p` is the result once it is done, and empty once it was freed; the others lua/lib/record.lua explains. */
export interface Hash { s: string, p?: string, t?: string, d?: string, h?: string, x?: string, r?: string, e?: string, c?: string, g?: string }

/** Far ahead: Redis's own key expiry, which goes by the true clock, must not come between. */
export const T = Date.UTC(2100, 0, 1)

/** When each thing happened or is due; test/helpers/scripts.ts, `lifetimes`, has what they follow from. */
export const at = {
  passed: T,
  decided: T + 50,
  /** Where it was passed with a delay. */
  available: T + 80,
  caught: T + 100,
  /** Cancelled, or asked to be. */
  cancelled: T + 200,
  /** A heartbeat; failed, declined and reissued as well. */
  done: T + 300,
  /** By when to be heard of first, where it was passed with that. */
  heard: T + 400,
  expires: T + 1000,
  workDeadline: T + 2100,
} as const

/** The one handoff that the tables are about, and the attempt behind it: SHA-1 of the id and T, as lua/lib/successor.lua says. */
export const id = 'T_gAAAAAAAAAAAAAAAAAAAAAA'
export const nextId = 'T_g08iZx3_L4d6WXJdeL1WfxA'

export const payload = '"task":"t"'
/** As the payload has it. */
export const task = '"t"'
export const result = '{"a":1}'

/** Stands for the payload. */
export const digest = 'itsdigest'

/** What the approver said by dectok, in JSON. */
export const note = '"as it was said"'
export const decision = `${at.decided} approver dectok ${note}`

export const passed = `${at.passed} ${at.expires} passer ptok`
export const caught = `${passed} ${at.caught} ${at.workDeadline} A ctok`
export const done = `${caught} ${at.done} dtok`
