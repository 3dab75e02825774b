import type { Redis } from 'ioredis'
import { refusalOf, standingOf } from '../../src/model.ts'
import { furtherStates } from './further-states.ts'
import { at, caught, decision, digest, done, nextId, passed, payload, result, T, task } from './moments.ts'
import type { State } from './moments.ts'
import type { Approval, OperationName, Standing, Status } from '../../src/model.ts'

export * from './moments.ts'

const pending = (approval: string): State => ({
  now: T + 500,
  hash: {
    s: `pending ${approval} ${passed}`,
    p: payload,
    ...(approval === 'waiting' ? { t: task } : {}),
    ...(approval === 'none' ? {} : { h: digest }),
    ...(approval === 'approved' ? { d: decision } : {}),
  },
  expires: at.expires + 5000,
  due: at.expires,
  ...(approval === 'waiting' ? { waiting: at.passed } : {}),
})

// Its pickup deadline is over by then, which no longer matters; but the sweep still looks at it then, and finds that out.
const taken: State = {
  now: T + 1500, hash: { s: `caught none ${caught}`, p: payload }, expires: at.workDeadline + 5000, due: at.expires,
}

const ended = (s: string, expires: number, more: Omit<NonNullable<State['hash']>, 's'> = {}): State => ({ now: T + 3000, hash: { s, ...more }, expires })

/**
 * Every state of a handoff, written by hand, so that one script's mistake can't hide in data that another script made.
 * lifecycle.test.ts shows that the scripts themselves lead through exactly these states.
 */
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
  'caught after approval': { ...taken, hash: { s: `caught approved ${caught}`, p: payload, d: decision, h: digest } },
  'caught, overdue': { ...taken, now: at.workDeadline },
  done: ended(`done none ${done}`, at.done + 5000, { p: result }),
  'done without a result': ended(`done none ${done}`, at.done + 5000, { p: '' }),
  'done after approval': ended(`done approved ${done}`, at.done + 5000, { p: result, d: decision, h: digest }),
  expired: ended(`expired none ${passed}`, at.expires + 5000, { p: '' }),
  'expired while waiting': ended(`expired waiting ${passed}`, at.expires + 5000, { p: '', h: digest }),
  'expired after approval': ended(`expired approved ${passed}`, at.expires + 5000, { p: '', d: decision, h: digest }),
  'expired from caught': ended(`expired none ${caught}`, at.workDeadline + 5000, { p: payload }),
  'expired from caught, after approval': ended(`expired approved ${caught}`, at.workDeadline + 5000, { p: payload, d: decision, h: digest }),
  rejected: ended(`rejected rejected ${passed}`, at.decided + 5000, { p: payload, d: decision, h: digest }),
  ...furtherStates,
} as const satisfies Record<string, State>

export type StateName = keyof typeof states
export const stateNames = Object.keys(states) as StateName[]

/** The code with which the table of states refuses an operation in this state; null if an agent that may do so succeeds. */
export function refusalIn (operation: OperationName, name: StateName): string | null {
  const { now, hash, due }: State = states[name]
  const [mark = 'absent', approval = 'none', , expires, , , caught, workDeadline] = hash?.s.split(' ') ?? []
  const word = (letter: string) => new RegExp(` ${letter}(\\S+)`).exec(hash?.x ?? '')?.[1]
  const status = mark.replace('2:', '') as Status
  const deadline = Number(status === 'caught' ? word('h') ?? workDeadline : expires)
  const isOver = due !== undefined && now >= deadline
  const standing: Standing = hash === undefined
    ? 'absent'
    : standingOf(isOver ? 'expired' : status, approval as Approval, now < Number(word('a') ?? 0), caught !== undefined)
  return refusalOf(operation, standing, approval as Approval)
}

/** Whether refusals depend on who reports on the work: there is a catcher, and the handoff has neither expired nor been cancelled. */
export function heldBy (name: StateName): boolean {
  return [null, 'already_done', 'already_failed', 'already_declined'].includes(refusalIn('done', name))
}

/** The successor's id. */
export function nextOf ({ hash }: State): string {
  return / i(\S+)/.exec(hash!.x!)![1]!
}

/** Writes a state under the given keys, which must be unused. */
export async function restore (redis: Redis, state: State, keys: { handoff: string, due: string, waiting: string, member: string }): Promise<void> {
  const all = redis.multi()
  if (state.hash) all.hset(keys.handoff, state.hash).pexpireat(keys.handoff, state.expires!)
  if (state.due !== undefined) all.zadd(keys.due, state.due, keys.member)
  if (state.waiting !== undefined) all.zadd(keys.waiting, state.waiting, keys.member)
  if (state.next) {
    const behind = (name: string) => name.slice(0, -nextId.length) + nextOf(state)
    all.hset(behind(keys.handoff), state.next.hash).pexpireat(behind(keys.handoff), state.next.expires).zadd(keys.due, state.next.due, behind(keys.member))
  }
  await all.exec()
}
