import { Model } from './model.ts'
import type { Passed } from './modelled.ts'
import { T, at, id } from './moments.ts'
import type { State } from './moments.ts'
import {
  beating, cancelling, catching, deciding, declining, failing, finishing, passing, reissuing, sweeping,
} from './requests.ts'
import type { Request } from './requests.ts'
import { lifetimes } from './scripts.ts'
import { stored } from './stored.ts'

export * from './moments.ts'

/** What is passed, in seconds: windows; attempts; a schema; a lineage. */
const windows: Partial<Passed> = { work_within: 1.5, heartbeat_within: 0.3 }
const attempts: Partial<Passed> = { max_attempts: 3, retry_delay: 0.2 }
export const schema = '{"type":"object"}'
const held: Partial<Passed> = { words: ' sitsschema jrun:42 jteam:a:b/@', schema }
export const line = ' pT_gBBBBBBBBBBBBBBBBBBBBBQ rT_gCCCCCCCCCCCCCCCCCCCCCA g2 caaaabbbbccccddddeeeeffff'
const person: Partial<Passed> = { require_human: true }
const delay: Partial<Passed> = { delay: 0.08 }
const progress = '{"percent":5}'
const reason = '"as it was said"'

/** A request and when it is made. */
type Step = readonly [now: number, request: Request]

const passed = (options?: Partial<Passed>): Step => [at.passed, passing(options)]
const caught: Step = [at.caught, catching()]
const approved: Step = [at.decided, deciding('approve')]
const rejected: Step = [at.decided, deciding('reject')]
const beaten = (extendBy?: number | '', told?: string): Step => [at.done, beating('A', extendBy, told)]
const finished = (result?: string): Step => [at.done, finishing('A', 'dtok', result)]
const failed = (mayRetry = true): Step => [at.done, failing('A', 'ftok', mayRetry)]
const declined: Step = [at.done, declining()]
const cancelled = (force = false, why = ''): Step => [at.cancelled, cancelling('passer', force, why)]
const reissued: Step = [at.done, reissuing()]
const swept = (now: number): Step => [now, sweeping]

/** A life: when it is looked at, and what has happened until then. */
type Life = readonly [now: number, ...steps: Step[]]

/** A handoff in each state, by what led to it. */
export const lives = {
  absent: [T + 500],
  pending: [T + 500, passed()],
  'pending, its last millisecond': [at.expires - 1, passed()],
  'pending, waiting': [T + 500, passed(person)],
  'pending, waiting, its last millisecond': [at.expires - 1, passed(person)],
  'pending, approved': [T + 500, passed(person), approved],
  'pending, overdue': [at.expires, passed()],
  'pending, waiting, overdue': [at.expires, passed(person)],
  'pending, approved, overdue': [at.expires, passed(person), approved],
  caught: [T + 1500, passed(), caught],
  'caught, its last millisecond': [at.workDeadline - 1, passed(), caught],
  'caught after approval': [T + 1500, passed(person), approved, caught],
  'caught, overdue': [at.workDeadline, passed(), caught],
  done: [T + 3000, passed(), caught, finished()],
  'done without a result': [T + 3000, passed(), caught, finished('')],
  'done after approval': [T + 3000, passed(person), approved, caught, finished()],
  expired: [T + 3000, passed(), swept(at.expires)],
  'expired while waiting': [T + 3000, passed(person), swept(at.expires)],
  'expired after approval': [T + 3000, passed(person), approved, swept(at.expires)],
  'expired from caught': [T + 3000, passed(), caught, swept(at.workDeadline)],
  'expired from caught, after approval': [T + 3000, passed(person), approved, caught, swept(at.workDeadline)],
  rejected: [T + 3000, passed(person), rejected],

  delayed: [T + 70, passed(delay)],
  'delayed, its last millisecond': [at.available - 1, passed(delay)],
  'delayed no more': [at.available, passed(delay)],
  'delayed, waiting': [T + 70, passed({ ...delay, ...person })],
  'delayed no more, waiting': [T + 500, passed({ ...delay, ...person })],
  'delayed, approved': [T + 70, passed({ ...delay, ...person }), approved],
  'delayed, overdue': [at.expires, passed(delay)],
  'delayed, waiting, overdue': [at.expires, passed({ ...delay, ...person })],
  'delayed, expired': [T + 3000, passed(delay), swept(at.expires)],
  'delayed, expired while waiting': [T + 3000, passed({ ...delay, ...person }), swept(at.expires)],
  'delayed, rejected': [T + 3000, passed({ ...delay, ...person }), rejected],

  'pending with windows': [T + 500, passed(windows)],
  'pending, with less time than to be heard of': [T + 70, passed({ work_within: 0.2, heartbeat_within: 0.3 })],
  'pending with attempts': [T + 500, passed(attempts)],
  'pending with schema': [T + 500, passed(held)],
  'pending in a line': [T + 500, passed({ words: line })],
  'pending with attempts, waiting': [T + 70, passed({ ...attempts, ...person })],

  'caught with windows': [at.done, passed(windows), caught],
  'caught with windows, its last millisecond': [at.heard - 1, passed(windows), caught],
  'caught with windows, stalled': [at.heard, passed(windows), caught],
  'caught with windows, heard of': [T + 500, passed(windows), caught, beaten('', progress)],
  'caught with windows, heard of, stalled': [T + 600, passed(windows), caught, beaten('', progress)],
  'caught with windows, extended': [T + 500, passed(windows), caught, beaten(5000)],
  'caught, to be heard of': [at.done, passed({ heartbeat_within: 0.3 }), caught],
  'caught with little time': [T + 799, passed({ work_within: 0.7 }), caught],
  'caught with little time, overdue': [T + 800, passed({ work_within: 0.7 }), caught],
  'caught, both deadlines together, overdue': [at.heard, passed({ work_within: 0.3, heartbeat_within: 0.3 }), caught],
  'caught, with less time than to be heard of': [T + 250, passed({ work_within: 0.2, heartbeat_within: 0.3 }), caught],
  'caught, extended': [T + 1500, passed(), caught, beaten(5000)],
  'caught, extended, overdue': [T + 5300, passed(), caught, beaten(5000)],
  'caught with progress': [T + 1500, passed(), caught, beaten('', progress)],
  'caught, cancel requested': [at.done, passed(), caught, cancelled()],
  'caught, cancel requested with a reason': [at.done, passed(), caught, cancelled(false, reason)],
  'caught, cancel requested, overdue': [at.workDeadline, passed(attempts), caught, cancelled()],
  'caught with schema': [at.done, passed(held), caught],
  'caught with attempts': [at.done, passed(attempts), caught],
  'caught with attempts, overdue': [at.workDeadline, passed(attempts), caught],
  'caught with attempts after approval, overdue': [at.workDeadline, passed({ ...attempts, ...person }), approved, caught],
  'caught with all there is': [at.done, passed({ ...windows, ...attempts, words: held.words + line, schema }), caught, [at.cancelled, beating('A', 5000, progress)], cancelled(false, reason)],
  'caught with attempts, stalled': [at.heard, passed({ ...windows, max_attempts: 2 }), caught],

  'done with schema': [T + 3000, passed(held), caught, finished()],
  'done although cancel was requested': [T + 3000, passed(), caught, cancelled(false, reason), finished()],
  failed: [T + 3000, passed(), caught, failed()],
  'failed after approval': [T + 3000, passed(person), approved, caught, failed()],
  'failed, not to be tried again': [T + 3000, passed(attempts), caught, failed(false)],
  'failed, tried again': [at.done, passed(attempts), caught, failed()],
  'failed after approval, tried again': [T + 500, passed({ ...attempts, ...person }), approved, caught, failed()],
  declined: [T + 3000, passed(), caught, declined],
  'declined, tried again': [T + 3000, passed(attempts), caught, declined],
  'declined, cancel requested': [T + 3000, passed(attempts), caught, cancelled(false, reason), declined],

  cancelled: [T + 3000, passed(), cancelled()],
  'cancelled with a reason': [T + 3000, passed(), cancelled(false, reason)],
  'cancelled while waiting': [T + 3000, passed(person), cancelled()],
  'cancelled after approval': [T + 3000, passed(person), approved, cancelled()],
  'cancelled from caught': [T + 3000, passed(), caught, cancelled(true, reason)],
  'cancelled, tried again': [at.done, passed(), caught, reissued],

  'expired with windows, stalled': [T + 3000, passed(windows), caught, swept(at.heard)],
  'expired, cancel requested': [T + 3000, passed(attempts), caught, cancelled(), swept(at.workDeadline)],
  'expired, tried again': [at.workDeadline, passed(attempts), caught, swept(at.workDeadline)],
  'expired after approval, tried again': [at.workDeadline, passed({ ...attempts, ...person }), approved, caught, swept(at.workDeadline)],
  'expired, stalled, tried again': [at.heard, passed({ ...windows, max_attempts: 2 }), caught, swept(at.heard)],
} as const satisfies Record<string, Life>

export type StateName = keyof typeof lives
export const stateNames = Object.keys(lives) as StateName[]

/** A second attempt, and what has led to it. */
export const secondLives: Record<string, Life> = {
  'second, delayed': [T + 499, passed(attempts), caught, failed()],
  'second, pending': [T + 500, passed(attempts), caught, failed()],
  'second, overdue': [T + 1500, passed(attempts), caught, failed()],
  'second, caught': [T + 1500, passed(attempts), caught, failed(), [T + 600, catching()]],
  'second, by reissue': [T + 500, passed(), caught, reissued],
  'third, caught, overdue': [T + 5000, passed(attempts), caught, failed(), [T + 600, catching()], [T + 700, failing()]],
}

export function newModel (now: number): Model {
  return new Model(now, { usual: lifetimes.workTtl, most: lifetimes.maxWorkTtl })
}

/** The model after a life. @returns also the handoff that requests are then about: the latest attempt if the life is a second's */
export function lived ([now, ...steps]: Life): Model {
  const model = newModel(T)
  for (const [when, request] of steps) {
    model.now = when
    request.told(model, model.all().at(-1)?.first.id ?? id)
  }
  model.now = now
  return model
}

function stateAfter (life: Life): State {
  const [first, next] = lived(life).all()
  const { hash, expires, due } = next === undefined ? {} : stored(next, life[0])
  return first === undefined ? { now: life[0] } : { ...stored(first, life[0]), ...next && { next: { hash: hash!, expires: expires!, due: due! } } }
}

/** What lies in Redis in each state. */
export const states = Object.fromEntries(stateNames.map(name => [name, stateAfter(lives[name])])) as Record<StateName, State>
