import type { Redis } from 'ioredis'
import { refusalOf, standingOf } from '../../src/model.ts'
import type { Approval, OperationName, Standing, Status } from '../../src/model.ts'

/**
 * Every state that a handoff can be found in, as it lies in Redis: written out by hand, so that a script's mistake can't hide
 * in what another script made. lifecycle.test.ts shows that the scripts' own path leads through just these.
 */
export interface State {
  /** When it is looked at. */
  now: number
  /** `p` is the result once it is done, and empty once it has expired. */
  hash?: { s: string, p?: string, t?: string, d?: string }
  /** The hash's PEXPIRETIME. */
  expires?: number
  /** Its score among the live. */
  due?: number
  /** Its score among those that wait for a person. */
  waiting?: number
}

/** Far ahead: Redis's own key expiry, which goes by the true clock, must not come between. */
export const T = Date.UTC(2100, 0, 1)

/** When each thing happened or is due; test/helpers/scripts.ts, `lifetimes`, has what they follow from. */
export const at = {
  passed: T,
  decided: T + 50,
  caught: T + 100,
  done: T + 300,
  expires: T + 1000,
  workDeadline: T + 2100,
} as const

export const payload = '"task":"t"'
/** As the payload has it. */
export const task = '"t"'
export const result = '{"a":1}'

/** What the approver said by dectok, in JSON. */
export const note = '"as it was said"'
export const decision = `${at.decided} approver dectok ${note}`

const passed = `${at.passed} ${at.expires} passer ptok`
const caught = `${passed} ${at.caught} ${at.workDeadline} A ctok`
const done = `${caught} ${at.done} dtok`

const pending = (approval: string): State => ({
  now: T + 500,
  hash: {
    s: `pending ${approval} ${passed}`,
    p: payload,
    ...(approval === 'waiting' ? { t: task } : {}),
    ...(approval === 'approved' ? { d: decision } : {}),
  },
  expires: at.expires + 5000,
  due: at.expires,
  ...(approval === 'waiting' ? { waiting: at.passed } : {}),
})

// Its pick-up window is over by then, which counts no more; the sweep, who comes by then, is still to find out.
const taken: State = {
  now: T + 1500, hash: { s: `caught none ${caught}`, p: payload }, expires: at.workDeadline + 5000, due: at.expires,
}

const ended = (s: string, expires: number, more: { p?: string, d?: string } = {}): State => ({ now: T + 3000, hash: { s, ...more }, expires })

export const states = {
  absent: { now: T + 500 },
  pending: pending('none'),
  'pending, its last millisecond': { ...pending('none'), now: at.expires - 1 },
  'pending, waiting': pending('waiting'),
  'pending, waiting, its last millisecond': { ...pending('waiting'), now: at.expires - 1 },
  'pending, approved': pending('approved'),
  'pending, overdue': { ...pending('none'), now: at.expires },
  'pending, waiting, overdue': { ...pending('waiting'), now: at.expires },
  'pending, approved, overdue': { ...pending('approved'), now: at.expires },
  caught: taken,
  'caught, its last millisecond': { ...taken, now: at.workDeadline - 1 },
  'caught after approval': { ...taken, hash: { s: `caught approved ${caught}`, p: payload, d: decision } },
  'caught, overdue': { ...taken, now: at.workDeadline },
  done: ended(`done none ${done}`, at.done + 5000, { p: result }),
  'done without a result': ended(`done none ${done}`, at.done + 5000, { p: '' }),
  'done after approval': ended(`done approved ${done}`, at.done + 5000, { p: result, d: decision }),
  expired: ended(`expired none ${passed}`, at.expires + 5000, { p: '' }),
  'expired while waiting': ended(`expired waiting ${passed}`, at.expires + 5000, { p: '' }),
  'expired after approval': ended(`expired approved ${passed}`, at.expires + 5000, { p: '', d: decision }),
  'expired from caught': ended(`expired none ${caught}`, at.workDeadline + 5000, { p: '' }),
  'expired from caught, after approval': ended(`expired approved ${caught}`, at.workDeadline + 5000, { p: '', d: decision }),
  rejected: ended(`rejected rejected ${passed}`, at.decided + 5000, { p: payload, d: decision }),
} as const satisfies Record<string, State>

export type StateName = keyof typeof states
export const stateNames = Object.keys(states) as StateName[]

/** The code with which the table of states refuses an operation in this state; null where it is carried out, by who may. */
export function refusalIn (operation: OperationName, name: StateName): string | null {
  const { now, hash, due }: State = states[name]
  const [status, approval] = (hash?.s.split(' ') ?? ['absent', 'none']) as [Status, Approval]
  const deadline = status === 'caught' ? at.workDeadline : at.expires
  const standing: Standing = hash === undefined ? 'absent' : due !== undefined && now >= deadline ? 'expired' : standingOf(status, approval)
  return refusalOf(operation, standing, approval)
}

/** Writes a state under the given keys, where nothing is yet. */
export async function restore (redis: Redis, state: State, keys: { handoff: string, due: string, waiting: string, member: string }): Promise<void> {
  const all = redis.multi()
  if (state.hash) all.hset(keys.handoff, state.hash).pexpireat(keys.handoff, state.expires!)
  if (state.due !== undefined) all.zadd(keys.due, state.due, keys.member)
  if (state.waiting !== undefined) all.zadd(keys.waiting, state.waiting, keys.member)
  await all.exec()
}
