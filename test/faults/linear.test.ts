import fc from 'fast-check'
import t from 'tap'
import { isWhole, skipUnlessWhole } from '../helpers/extent.ts'
import { check, describe } from './checker.ts'
import type { Invariant } from './checker.ts'
import { factsOf } from './facts.ts'
import type { Operation, Track } from './history.ts'
import { findStuck } from './linear.ts'
import { trackOf } from './made-history.ts'
import { unborn } from './state.ts'
import type { State } from './state.ts'
import { stepsOf } from './steps.ts'
import type { Step } from './steps.ts'
import { acts, tell, tellOptions } from './told-histories.ts'

/** How much of the random histories there is. */
const share = isWhole ? 1 : 0.2

t.test('random histories of a sound service are held to be sound', async t => {
  let unknown = 0
  fc.assert(fc.property(acts, all => {
    const track = tell(all)
    const found = check([track], tellOptions)
    if (found.length > 0) throw new Error(found.map(describe).join('\n'))
    if (track.operations.some(({ code, status }) => code === 'unavailable' || status === 0)) unknown++
  }), { numRuns: 3000 * share })
  t.ok(unknown > 1000 * share, `${unknown} of them with outcomes that nobody knew`)
})

// --- Damages: each changes one thing in a history; null if the history has no place for it.

type Damage = (operations: Operation[]) => Operation[] | null

const isWon = ({ kind, status }: Operation) => kind === 'catch' && status === 200
/** If so, nothing else can have caught it. */
const isAskedOnce = (operations: Operation[]) => operations.filter(({ kind }) => kind === 'catch').length === 1 && operations.some(isWon)
const last = (operations: Operation[]) => operations.at(-1) as Operation

/** Replaces an operation with another. */
function replaced (operations: Operation[], which: Operation | undefined, by: (one: Operation) => Partial<Operation>): Operation[] | null {
  return which === undefined ? null : operations.map(one => one === which ? { ...one, ...by(one) } : one)
}

const damages: Array<[Invariant, what: string, damage: Damage]> = [
  ['I1', 'a lost pass', all => replaced(all, last(all), () => ({ status: 404, code: 'not_found', answer: null }))],
  ['I1', 'a lost catch', all => all.some(isWon) ? replaced(all, last(all), ({ answer }) => ({ answer: { ...answer, status: 'pending', caughtAt: null, caughtBy: null } })) : null],
  ['I1', 'a lost done', all => all.some(({ kind, status }) => kind === 'done' && status === 200)
    ? replaced(all, last(all), ({ answer }) => ({ answer: { ...answer, status: 'caught', completedAt: null } }))
    : null],
  ['I2', 'a second winner', all => {
    const winner = all.find(isWon)
    return winner === undefined ? null : [...all, { ...winner, n: all.length, token: 'another', replayed: false }]
  }],
  ['I3', 'another payload', all => replaced(all, all.find(isWon), () => ({ same: false }))],
  ['I4', 'a false conflict', all => {
    const winner = all.find(one => isWon(one) && one.token !== null)
    return winner === undefined ? null : [...all, { ...winner, n: all.length, status: 409, code: 'already_caught', answer: null, same: null }]
  }],
  ['I5', 'a time before its operation', all => {
    const caughtAt = last(all).answer?.caughtAt
    if (caughtAt == null || !isAskedOnce(all)) return null
    // In all answers alike, so that only the time is wrong.
    return all.map(one => one.answer?.caughtAt == null ? one : { ...one, answer: { ...one.answer, caughtAt: caughtAt - 100 } })
  }],
  ['I5', 'a late effect', all => {
    const caughtAt = last(all).answer?.caughtAt
    const winner = all.find(isWon)
    if (caughtAt == null || winner === undefined || !isAskedOnce(all)) return null
    const ended = caughtAt - 50
    return replaced(all, winner, one => ({ sent: Math.min(one.sent, ended - 20), answered: ended, ended, status: 503, code: 'unavailable', answer: null, same: null }))
  }],
  ['I5', 'a status that goes back', all => {
    const seen = all.find(one => one !== last(all) && one.kind === 'status' && one.answer?.status === 'pending')
    const end = last(all)
    return seen === undefined || end.answer?.status !== 'caught' ? null : [...all, { ...seen, n: all.length, sent: end.ended! + 1, answered: end.ended! + 2, ended: end.ended! + 2 }]
  }],
  ['I5', 'an expiry that comes early', all => {
    const { expiresAt, caughtAt } = last(all).answer!
    const early = Math.min(expiresAt!, caughtAt! + tellOptions.workTtl) - 500
    const refused = all.find(({ kind, code, sent }) => kind === 'catch' && code === 'already_caught' && sent < early)
    return replaced(all, refused, () => ({ status: 410, code: 'expired' }))
  }],
  ['I6', 'a catch after its expiry', all => {
    const end = last(all).answer
    return end?.caughtAt == null ? null : all.map(one => one.answer?.caughtAt == null ? one : { ...one, answer: { ...one.answer, caughtAt: end.expiresAt! } })
  }],
  ['I8', 'a 500', all => replaced(all, all.find(({ kind, code }) => kind === 'catch' && code === 'already_caught'), () => ({ status: 500, code: 'internal_error', answer: null, same: null }))],
]

t.test('damage to any of them is found', async t => {
  for (const [invariant, what, damage] of damages) {
    let damaged = 0
    fc.assert(fc.property(acts, all => {
      const sound = tell(all)
      const operations = damage(sound.operations)
      if (operations === null) return
      damaged++
      const final = operations.find(({ n }) => n === sound.final?.n) ?? null
      const found = check([trackOf(operations, final)], tellOptions)
      if (!found.some(violation => violation.invariant === invariant)) throw new Error(`found ${found.map(describe).join('\n') || 'nothing'}\n${JSON.stringify(operations)}`)
    }), { numRuns: 1500 * share })
    t.ok(damaged >= (isWhole ? 50 : 5), `${invariant}: ${what}, ${damaged} times`)
  }
})

// --- The real search prunes. This one tries everything.

function hasOrder (steps: Step[], slack: number, taken = new Set<Step>(), state: State = unborn, now = -Infinity): boolean {
  if (steps.every(step => taken.has(step) || !step.known)) return true
  return steps.some(step => {
    const next = taken.has(step) ? null : step.next(state)
    if (next === null) return false
    const bound = next !== state && step.at !== null ? step.at : null
    const time = Math.max(now, step.from, bound === null ? -Infinity : bound - slack)
    if (time > Math.min(step.to, bound === null ? Infinity : bound + slack)) return false
    return hasOrder(steps, slack, new Set([...taken, step]), next, time)
  })
}

const spoilt = fc.record({ acts, at: fc.nat(), how: fc.constantFrom('none', 'sooner', 'later', 'code', 'status') })

/** Makes a change that may or may not matter. */
function spoil (track: Track, at: number, how: string): Track {
  const which = track.operations[at % track.operations.length] as Operation
  const moved = (by: number) => ({ sent: which.sent + by, answered: which.answered === null ? null : which.answered + by, ended: which.ended! + by })
  const codes = ['already_caught', 'already_done', 'not_caught', 'expired', 'approval_required']
  const changes: Record<string, Partial<Operation>> = {
    none: {},
    sooner: moved(-50),
    later: moved(50),
    code: { status: 409, code: codes[at % codes.length] as string, answer: null },
    status: which.kind === 'status' ? { answer: { ...which.answer, status: 'pending' } } : {},
  }
  const operations = track.operations.map(one => one === which ? { ...one, ...changes[how] } : one)
  return trackOf(operations)
}

t.test('the search finds an order exactly if there is one', async t => {
  const seen = { order: 0, none: 0 }
  fc.assert(fc.property(spoilt, ({ acts: { steps, ...rest }, at, how }) => {
    const track = spoil(tell({ ...rest, steps: steps.slice(0, 6) }), at, how)
    const { facts } = factsOf(track)
    const found = findStuck(track, facts, tellOptions) === null
    const is = hasOrder(stepsOf(track, facts, tellOptions), tellOptions.slack)
    seen[is ? 'order' : 'none']++
    if (found !== is) throw new Error(`${found ? 'found one' : 'found none'}\n${JSON.stringify(track.operations)}`)
  }), { numRuns: 1500 * share })
  t.ok(seen.order > 300 * share && seen.none > 200 * share, JSON.stringify(seen))
})

t.test('200,000 operations are checked within seconds', skipUnlessWhole, async t => {
  const tracks = fc.sample(acts, { numRuns: 20_000, seed: 1 }).map(tell)
  const operations = tracks.reduce((total, track) => total + track.operations.length, 0)
  const began = performance.now()
  t.strictSame(check(tracks, tellOptions), [])
  const took = performance.now() - began
  t.ok(took < 20_000, `${operations} operations in ${took.toFixed(0)} ms`)
})
