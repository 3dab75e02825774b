import { T, at, caught, decision, digest, id, nextId, passed, payload, result, task } from './moments.ts'
import type { Hash, State } from './moments.ts'

/** The states of handoffs that aren't plain, written by hand as in states.ts. Each has a field x, and its record begins with `2:`. */

/** What the catcher reported. */
export const fault = '{"message":"as it was said"}'
export const reason = '"as it was said"'
export const progress = '{"percent":5}'

/** Field x as pass wrote it: windows; attempts; a schema's digest; a lineage. */
export const windows = ' w1500 b300'
export const attempts = ' m3 d200'
export const schema = '{"type":"object"}'
export const held = ' sitsschema'
export const line = ' pT_gBBBBBBBBBBBBBBBBBBBBBQ rT_gCCCCCCCCCCCCCCCCCCCCCA g2 caaaabbbbccccddddeeeeffff'

const decided = { d: decision, h: digest }

/** Passed, with this field x. */
const pending = (now: number, x: string, more: Partial<Hash> = {}, approval = 'none'): State =>
  ({ now, hash: { s: `2:pending ${approval} ${passed}`, p: payload, x, ...more }, expires: at.expires + 5000, due: at.expires })

/** The same, waiting for a person. */
const waiting = (now: number, x: string): State => ({ ...pending(now, x, { t: task, h: digest }, 'waiting'), waiting: at.passed })

/** How much longer Redis keeps a caught handoff from which the sweep may make a successor: a week. */
export function unsweptOf (x: string): number {
  return Number(/ n(\d+)/.exec(x)?.[1] ?? 1) < Number(/ m(\d+)/.exec(x)?.[1] ?? 1) ? 7 * 86_400_000 : 0
}

/** Caught at T + 100, with this work deadline. */
const taken = (deadline: number, approval = 'none') => `2:caught ${approval} ${passed} ${at.caught} ${deadline} A ctok`
const working = (now: number, x: string, { deadline = at.workDeadline as number, due = at.expires as number, approval = 'none', ...more }: Partial<Hash> & { deadline?: number, due?: number, approval?: string } = {}): State =>
  ({ now, hash: { s: taken(deadline, approval), p: payload, x, ...more }, expires: deadline + 5000 + unsweptOf(x), due })

/** Ended. Nothing is due except the successor, if one was just made. */
const over = (s: string, expires: number, hash: Omit<Hash, 's'>, next?: State['next']): State => ({ now: next === undefined ? T + 3000 : Number(next.hash.s.split(' ')[2]), hash: { s: `2:${s}`, ...hash }, expires, ...next && { next } })

const byA = ` e${at.done} yA kftok`
const byPasser = (at: number) => ` e${at} ypasser k-`
const i = ` i${nextId}`

/** The second attempt, with the payload: when it was made, and from when on it can be caught. */
const second = (made: number, available: number | null, x: string, more: Partial<Hash> = {}, approval = 'none'): NonNullable<State['next']> => {
  const expires = (available ?? made) + 1000
  return {
    hash: { s: `2:pending ${approval} ${made} ${expires} passer -`, p: payload, x: ` n2 o${id}${available === null ? '' : ` a${available}`}${x}`, ...more },
    expires: expires + 5000,
    due: expires,
  }
}
const retried = second(at.done, at.done + 200, attempts)
const secondCaught = (at: number) => `2:caught none ${T + 300} ${T + 1500} passer - ${at} ${at + 2000} A ctok`

const beating = { deadline: T + 1600, due: at.heard }
const heard = `${windows} h${at.heard}`
const heardAgain = { ...beating, g: `${at.done} ${progress}` }
const asked = ` q${at.cancelled}`
const retriedLate = second(at.workDeadline, at.workDeadline + 200, attempts)
const retriedStalled = second(at.heard, at.heard + 1000, `${windows} m2`)

export const furtherStates = {
  delayed: pending(T + 70, ` a${at.available}`),
  'delayed, its last millisecond': pending(at.available - 1, ` a${at.available}`),
  'delayed no more': pending(at.available, ` a${at.available}`),
  'delayed, waiting': waiting(T + 70, ` a${at.available}`),
  'delayed no more, waiting': waiting(T + 500, ` a${at.available}`),
  'delayed, approved': pending(T + 70, ` a${at.available}`, decided, 'approved'),
  'delayed, overdue': pending(at.expires, ` a${at.available}`),
  'delayed, waiting, overdue': waiting(at.expires, ` a${at.available}`),
  'delayed, expired': over(`expired none ${passed}`, at.expires + 5000, { p: '', x: ` a${at.available}` }),
  'delayed, expired while waiting': over(`expired waiting ${passed}`, at.expires + 5000, { p: '', h: digest, x: ` a${at.available}` }),
  'delayed, rejected': over(`rejected rejected ${passed}`, at.decided + 5000, { p: payload, x: ` a${at.available}`, ...decided }),

  'pending with windows': pending(T + 500, windows),
  'pending with attempts': pending(T + 500, attempts),
  'pending with schema': pending(T + 500, held, { r: schema }),
  'pending in a line': pending(T + 500, line),
  'pending with attempts, waiting': waiting(T + 70, attempts),

  'caught with windows': working(at.done, heard, beating),
  'caught with windows, its last millisecond': working(at.heard - 1, heard, beating),
  'caught with windows, stalled': working(at.heard, heard, beating),
  'caught with windows, heard of': working(T + 500, `${windows} h${T + 600}`, heardAgain),
  'caught with windows, heard of, stalled': working(T + 600, `${windows} h${T + 600}`, heardAgain),
  'caught with windows, extended': working(T + 500, `${windows} f1 h${T + 600}`, { ...beating, deadline: T + 5300 }),
  'caught, to be heard of': working(at.done, ` b300 h${at.heard}`, { due: at.heard }),
  'caught with little time': working(T + 799, ' w700', { deadline: T + 800, due: T + 800 }),
  'caught with little time, overdue': working(T + 800, ' w700', { deadline: T + 800, due: T + 800 }),
  'caught, both deadlines together, overdue': working(at.heard, ` w300 b300 h${at.heard}`, { deadline: at.heard, due: at.heard }),
  'caught, extended': working(T + 1500, ' f1', { deadline: T + 5300 }),
  'caught, extended, overdue': working(T + 5300, ' f1', { deadline: T + 5300 }),
  'caught with progress': working(T + 1500, '', { g: `${at.done} ${progress}` }),
  'caught, cancel requested': working(at.done, asked),
  'caught, cancel requested with a reason': working(at.done, asked, { c: reason }),
  'caught, cancel requested, overdue': working(at.workDeadline, attempts + asked),
  'caught with schema': working(at.done, held, { r: schema }),
  'caught with attempts': working(at.done, attempts),
  'caught with attempts, overdue': working(at.workDeadline, attempts),
  'caught with attempts after approval, overdue': working(at.workDeadline, attempts, { approval: 'approved', ...decided }),
  'caught with attempts, stalled': working(at.heard, `${windows} m2 h${at.heard}`, beating),
  'caught for the last time, overdue': working(at.workDeadline, ` n3 o${id} m3 d200`),

  'done with schema': over(`done none ${caught} ${at.done} dtok`, at.done + 5000, { p: result, x: held, r: schema }),
  'done although cancel was requested': over(`done none ${caught} ${at.done} dtok`, at.done + 5000, { p: result, x: asked, c: reason }),
  failed: over(`failed none ${caught}`, at.done + 5000, { p: payload, x: byA, e: fault }),
  'failed after approval': over(`failed approved ${caught}`, at.done + 5000, { p: payload, x: byA, e: fault, ...decided }),
  'failed, not to be tried again': over(`failed none ${caught}`, at.done + 5000, { p: payload, x: attempts + byA, e: fault }),
  'failed, tried again': over(`failed none ${caught}`, at.done + 5000, { x: attempts + byA + i, e: fault }, retried),
  'failed after approval, tried again': over(`failed approved ${caught}`, at.done + 5000, { x: attempts + byA + i, e: fault, ...decided },
    second(at.done, at.done + 200, attempts, decided, 'approved')),
  declined: over(`declined none ${caught}`, at.done + 5000, { p: payload, x: byA, e: reason }),
  'declined, tried again': over(`declined none ${caught}`, at.done + 5000, { x: attempts + byA + i, e: reason }, retried),
  'declined, cancel requested': over(`declined none ${caught}`, at.done + 5000, { p: payload, x: attempts + asked + byA, c: reason, e: reason }),

  cancelled: over(`cancelled none ${passed}`, at.cancelled + 5000, { p: '', x: byPasser(at.cancelled) }),
  'cancelled with a reason': over(`cancelled none ${passed}`, at.cancelled + 5000, { p: '', x: byPasser(at.cancelled), c: reason }),
  'cancelled while waiting': over(`cancelled waiting ${passed}`, at.cancelled + 5000, { p: '', h: digest, x: byPasser(at.cancelled) }),
  'cancelled after approval': over(`cancelled approved ${passed}`, at.cancelled + 5000, { p: '', x: byPasser(at.cancelled), ...decided }),
  'cancelled from caught': over(`cancelled none ${caught}`, at.cancelled + 5000, { p: '', x: asked + byPasser(at.cancelled), c: reason }),
  'cancelled, tried again': over(`cancelled none ${caught}`, at.done + 5000, { x: byPasser(at.done) + i }, second(at.done, null, '')),

  'expired with windows, stalled': over(`expired none ${passed} ${at.caught} ${T + 1600} A ctok`, at.heard + 5000, { p: payload, x: heard }),
  'expired, cancel requested': over(`expired none ${caught}`, at.workDeadline + 5000, { p: payload, x: attempts + asked }),
  'expired, tried again': over(`expired none ${caught}`, at.workDeadline + 5000, { x: attempts + i }, retriedLate),
  'expired after approval, tried again': over(`expired approved ${caught}`, at.workDeadline + 5000, { x: attempts + i, ...decided },
    second(at.workDeadline, at.workDeadline + 200, attempts, decided, 'approved')),
  'expired, stalled, tried again': over(`expired none ${passed} ${at.caught} ${T + 1600} A ctok`, at.heard + 5000,
    { x: `${windows} m2 h${at.heard}${i}` }, retriedStalled),

  // A second attempt under its own id.
  'second, delayed': { now: T + 499, ...retried },
  'second, pending': { now: T + 500, ...retried },
  'second, approved': { now: T + 500, ...second(at.done, at.done + 200, attempts, decided, 'approved') },
  'second, overdue': { now: T + 1500, ...retried },
  'second, caught': { now: T + 1500, hash: { ...retried.hash, s: secondCaught(T + 600) }, expires: T + 2600 + 5000 + unsweptOf(retried.hash.x!), due: T + 1500 },
  'second, by reissue': { now: T + 500, ...second(at.done, null, '') },
} as const satisfies Record<string, State>
