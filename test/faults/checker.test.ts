import t from 'tap'
import { check, checkHistory, describe, usual } from './checker.ts'
import type { CheckOptions, Invariant } from './checker.ts'
import { History } from './history.ts'
import type { Track } from './history.ts'
import { broken, lawful } from './made-attempts.ts'
import { Tale, caught, finished, operation, start } from './made-history.ts'
import type { RedisState } from './redis-state.ts'

const tale = () => new Tale()
const unavailable = { status: 503, code: 'unavailable' }

/** Histories of a sound service. */
const good: Array<[what: string, track: Track, options?: Partial<CheckOptions>]> = [
  ['one after the other', tale().pass(0, 5).catch(10, 15).done(20, 25, 22).status(30, 35, 'done', { ...caught(12), ...finished(22, '#2') }).audited()],
  ['rivals', tale().pass(0, 5).catch(10, 30, 'bob').refused('catch', 11, 20, 409, 'already_caught', { agent: 'north/carol' }).track()],
  ['a catch whose answer was lost, asked for again', tale().pass(0, 5).lost('catch', 10, 20, { token: 'k' })
    .catch(50, 60, 'bob', { token: 'k', replayed: true }).status(70, 75, 'caught', caught(15)).audited()],
  ['a catch whose answer was lost, which never happened', tale().pass(0, 5).lost('catch', 10, 20, { token: 'k' })
    .catch(50, 60, 'bob', { token: 'k' }).status(70, 75, 'caught', caught(55)).audited()],
  ['a 503 that happened before it was told', tale().pass(0, 5).lost('catch', 10, 2010, unavailable).status(2020, 2030, 'caught', caught(2009)).audited()],
  ['a request that the service went on with when its client was gone', tale().pass(0, 5).lost('catch', 10, 20)
    .status(30, 40, 'pending').status(500, 510, 'caught', caught(400)).audited()],
  ['a first answer that is marked as a repeat', tale().pass(0, 5).catch(10, 20, 'bob', { token: 'k', replayed: true }).track()],
  ['a pass whose answer was lost', tale().lost('pass', 0, 5, { agent: 'north/alice', token: 'p' }).pass(10, 20, { replayed: false }).track()],
  ['an expiry', tale().pass(0, 5, { expiresIn: 1000 }).refused('catch', 1000, 1010, 410, 'expired').status(1020, 1030, 'expired').audited()],
  ['a catch in the last moment', tale().pass(0, 5, { expiresIn: 1000 }).catch(995, 1030).status(1040, 1050, 'caught', caught(1000)).audited()],
  ['work that came due while its final status was on its way', tale().pass(0, 5).catch(10, 20).status(500, 630, 'expired', { ...caught(15), endedAt: start + 515 }).audited(), { workTtl: 500 }],
  ['work that took too long', tale().pass(0, 5).catch(10, 20).refused('done', 600, 610, 410, 'expired').status(620, 630, 'expired', { ...caught(15), endedAt: start + 515 }).audited(), { workTtl: 500 }],
  ['a person who approves', tale().pass(0, 5, { human: true }).refused('catch', 10, 20, 409, 'approval_required').decide('approve', 15, 40)
    .catch(30, 50).status(60, 70, 'caught', { ...caught(45), approval: 'approved' }).audited()],
  ['people who disagree', tale().pass(0, 5, { human: true }).decide('reject', 10, 30)
    .refused('approve', 10, 30, 409, 'already_decided', { agent: 'north/other', answer: { approval: 'rejected' } })
    .refused('catch', 40, 50, 409, 'rejected').status(60, 70, 'rejected', { approval: 'rejected' }).audited()],
  ['a proxy without a service', tale().pass(0, 5).lost('catch', 10, 20, { status: 502 }).catch(30, 40).track(), { gateway: true }],
  ['a request under way, which happened', tale().pass(0, 5).lost('catch', 10, null).status(9000, 9005, 'caught', caught(8000)).audited()],
  ['requests under way', tale().pass(0, 5).lost('catch', 10, null).lost('catch', 12, null).status(20, 25, 'pending').track()],
]

/** Each breaks one invariant in one way. */
const bad: Array<[Invariant, what: string, track: Track, options?: Partial<CheckOptions>]> = [
  ['I1', 'a pass that is gone', tale().pass(0, 5).refused('status', 100, 105, 404, 'not_found').audited()],
  ['I1', 'a pass that a catch did not find', tale().pass(0, 5).refused('catch', 100, 105, 404, 'not_found').track()],
  ['I1', 'a pass that was made twice', tale().pass(0, 5).pass(10, 15).track()],
  ['I1', 'a pass with two ids', tale().pass(0, 5).catch(10, 15, 'bob', { answer: { id: 'other', createdAt: start + 1, status: 'caught' } }).track()],
  ['I1', 'a catch that is undone', tale().pass(0, 5).catch(10, 15).status(100, 105, 'pending').audited()],
  ['I1', 'a catch that is another agent’s', tale().pass(0, 5).catch(10, 15).status(100, 105, 'caught', caught(12, 'carol')).audited()],
  ['I1', 'a catch that expired before its time', tale().pass(0, 5).catch(10, 15).status(100, 105, 'expired', { ...caught(12), endedAt: start + 90 }).audited(), { workTtl: 5000 }],
  ['I1', 'a done that is undone', tale().pass(0, 5).catch(10, 15).done(20, 25, 22).status(100, 105, 'caught', caught(12)).audited()],
  ['I1', 'a done at two times', tale().pass(0, 5).catch(10, 15).done(20, 25, 22).status(100, 105, 'done', { ...caught(12), ...finished(23, '#2') }).audited()],
  ['I1', 'an approval that is undone', tale().pass(0, 5, { human: true }).decide('approve', 10, 15).status(100, 105, 'pending', { approval: 'waiting' }).audited()],
  ['I1', 'a rejection that is undone', tale().pass(0, 5, { human: true }).decide('reject', 10, 15).status(100, 105, 'pending', { approval: 'waiting' }).audited()],
  ['I1', 'an end that nobody knows', tale().pass(0, 5).lost('status', 10, 20, unavailable).audited()],
  ['I2', 'two agents that caught it', tale().pass(0, 5).catch(10, 30, 'bob').catch(10, 30, 'carol').track()],
  ['I2', 'two keys of an agent', tale().pass(0, 5).catch(10, 30, 'bob', { token: 'k' }).catch(10, 30, 'bob', { token: 'l' }).track()],
  ['I2', 'one agent, twice and without a key', tale().pass(0, 5).catch(10, 30).catch(10, 30).track()],
  ['I2', 'two times of the catch', tale().pass(0, 5).status(10, 50, 'caught', caught(12)).status(10, 50, 'caught', caught(13)).track()],
  ['I3', 'another payload', tale().pass(0, 5).catch(10, 15, 'bob', { same: false }).track()],
  ['I4', 'the winner is told that somebody was faster', tale().pass(0, 5).catch(10, 15, 'bob', { token: 'k' })
    .refused('catch', 20, 25, 409, 'already_caught', { token: 'k' }).track()],
  ['I4', 'the only one who asked is', tale().pass(0, 5).lost('catch', 10, 15, { token: 'k' }).refused('catch', 20, 25, 409, 'already_caught', { token: 'k' }).track()],
  ['I4', 'nobody has done it', tale().pass(0, 5).catch(10, 15, 'bob', { token: 'k' }).refused('catch', 20, 25, 409, 'already_done', { token: 'k' }).track()],
  ['I4', 'the winner has not caught it', tale().pass(0, 5).catch(10, 15).refused('done', 20, 25, 409, 'not_caught').track()],
  ['I4', 'the winner is not the catcher', tale().pass(0, 5).catch(10, 15).refused('done', 20, 25, 403, 'not_the_catcher').track()],
  ['I4', 'who did it is told that another did', tale().pass(0, 5).catch(10, 15).done(20, 25, 22, 'bob', { token: 'd' })
    .refused('done', 30, 35, 409, 'already_done', { token: 'd' }).track()],
  ['I4', 'who did it is told that another did, who asked too', tale().pass(0, 5).catch(10, 15).done(20, 25, 22, 'bob', { token: 'd' })
    .lost('done', 26, 28, { token: 'e' }).refused('done', 30, 35, 409, 'already_done', { token: 'd' }).track()],
  ['I4', 'the only one who did is', tale().pass(0, 5).catch(10, 15).lost('done', 20, 25, { token: 'd' }).refused('done', 30, 35, 409, 'already_done', { token: 'd' }).track()],
  ['I4', 'a pass is taken for another', tale().pass(0, 5).refused('pass', 10, 15, 422, 'idempotency_key_reused', { agent: 'north/alice', token: 'p' }).track()],
  ['I4', 'a repeat that was not recognised', tale().pass(0, 5).catch(10, 15, 'bob', { token: 'k' }).catch(20, 25, 'bob', { token: 'k' }).track()],
  ['I5', 'a refusal before its reason', tale().pass(0, 5).refused('catch', 10, 15, 409, 'already_caught').catch(20, 25, 'carol').track()],
  ['I5', 'a repeat of what has no key', tale().pass(0, 5).catch(10, 15, 'bob', { replayed: true }).track()],
  ['I5', 'two at once with one key, neither a repeat', tale().pass(0, 5).catch(10, 20, 'bob', { token: 'k' }).catch(12, 22, 'bob', { token: 'k' }).track()],
  ['I5', 'an approval that nobody asked for', tale().pass(0, 5).refused('catch', 10, 15, 409, 'approval_required').track()],
  ['I5', 'a decision that is told otherwise', tale().pass(0, 5, { human: true }).decide('approve', 10, 15)
    .refused('reject', 20, 25, 409, 'already_decided', { agent: 'north/other', answer: { approval: 'rejected' } }).track()],
  ['I5', 'an approval that is not seen', tale().pass(0, 5, { human: true }).decide('approve', 10, 15).status(20, 25, 'pending', { approval: 'waiting' }).track()],
  ['I5', 'a catch without its time', tale().pass(0, 5).catch(10, 15).status(20, 25, 'caught', { caughtBy: 'bob' }).track()],
  ['I5', 'a done without its time', tale().pass(0, 5).catch(10, 15).done(20, 25, 22).status(30, 35, 'done', { ...caught(12), result: '#2' }).track()],
  ['I5', 'a status that goes back', tale().pass(0, 5).catch(10, 15).status(20, 25, 'pending').track()],
  ['I5', 'a status that comes too early', tale().pass(0, 5).status(10, 15, 'caught', caught(30)).catch(20, 40).track()],
  ['I5', 'a status of before, after what is known to have been', tale().pass(0, 5).catch(10, 200).status(60, 70, 'pending').status(210, 220, 'caught', caught(30)).track()],
  ['I5', 'a catch after its 503', tale().pass(0, 5).lost('catch', 10, 2010, unavailable).status(2100, 2110, 'pending').status(3000, 3010, 'caught', caught(2900)).track()],
  ['I5', 'a catch after its 503, by its time alone', tale().pass(0, 5).lost('catch', 10, 2010, unavailable).status(3000, 3010, 'caught', caught(2900)).track()],
  ['I5', 'a catch long after its client was gone', tale().pass(0, 5).lost('catch', 10, 20).status(9000, 9010, 'caught', caught(2500)).track()],
  ['I5', 'an answer with a time before it was asked for', tale().pass(100, 105, { answer: { status: 'pending', createdAt: start + 50, expiresAt: start + 60_050 } }).track()],
  ['I5', 'a done before its catch', tale().pass(0, 5).done(10, 15, 12).catch(20, 25).track()],
  ['I5', 'an expiry before its time', tale().pass(0, 5).refused('catch', 500, 510, 410, 'expired').track()],
  ['I5', 'a live one after its time', tale().pass(0, 5, { expiresIn: 1000 }).status(1100, 1110, 'pending').track()],
  ['I5', 'a catch without approval', tale().pass(0, 5, { human: true }).catch(10, 15).track()],
  ['I5', 'two decisions', tale().pass(0, 5, { human: true }).decide('approve', 10, 15).decide('reject', 20, 25).track()],
  ['I5', 'another result than was given', tale().pass(0, 5).catch(10, 15).done(20, 25, 22).status(30, 35, 'done', { ...caught(12), ...finished(22, 'other') }).track()],
  ['I6', 'a catch after its expiry', tale().pass(0, 5, { expiresIn: 1000 }).catch(990, 1010).status(1020, 1030, 'caught', caught(1001)).track()],
  ['I6', 'a catch that was asked for after its expiry', tale().pass(0, 5, { expiresIn: 1000 }).catch(1020, 1030).track()],
  ['I8', 'a 500', tale().pass(0, 5).refused('catch', 10, 15, 500, 'internal_error').track()],
  ['I8', 'a 500 without a word', tale().pass(0, 5).lost('catch', 10, 15, { status: 500 }).track()],
  ['I8', 'a proxy’s answer where there is none', tale().pass(0, 5).lost('catch', 10, 20, { status: 502 }).track()],
  ['I8', 'a code of another operation', tale().pass(0, 5).refused('catch', 10, 15, 409, 'not_caught').track()],
  ['I8', 'a code with another status', tale().pass(0, 5).refused('done', 10, 15, 404, 'not_caught').track()],
  ['I8', 'an answer that lacks something', tale().pass(0, 5).catch(10, 15).done(20, 25, 22, 'bob', { answer: { status: 'done' } }).track()],
  ['I8', 'another lifetime than was asked for', tale().pass(0, 5, { answer: { status: 'pending', createdAt: start + 1, expiresAt: start + 2 } }).track()],
]

t.test('the checker accepts the history of a sound service', async t => {
  for (const [what, track, options] of good) t.strictSame(check([track], { ...usual, ...options }).map(describe), [], what)
})

t.test('each violation of an invariant is found, by its number', async t => {
  for (const [invariant, what, track, options] of bad) {
    const found = check([track], { ...usual, ...options })
    t.ok(found.some(violation => violation.invariant === invariant), `${invariant}: ${what}`, { found: found.map(describe) })
  }
})

t.test('a fault says how late an event would explain it', async t => {
  const [late] = check([tale().pass(0, 5).lost('catch', 10, 2010, unavailable).status(3000, 3010, 'caught', caught(2900)).track()])
  t.match(late?.sentence, /0, 1 it is caught|they would if one that was given up had happened later/)
})

t.test('the checker accepts attempts and successors of a sound service', async t => {
  for (const [what, tracks, options] of lawful) t.strictSame(check(tracks, { ...usual, ...options }).map(describe), [], what)
})

t.test('each violation by attempts and successors is found, by its number', async t => {
  for (const [invariant, what, tracks, options] of broken) {
    const found = check(tracks, { ...usual, ...options })
    t.ok(found.some(violation => violation.invariant === invariant), `${invariant}: ${what}`, { found: found.map(describe) })
  }
})

// --- I7

const pending = `pending none ${start} ${start + 60_000} alice -`
const held = `caught none ${start} ${start + 60_000} alice - ${start + 10} ${start + 90_000} bob tok`
const short = `caught none ${start} ${start + 60_000} alice - ${start + 10} ${start + 30_000} bob tok`
const ended = `done none ${start} ${start + 60_000} alice - ${start + 10} ${start + 90_000} bob tok ${start + 20} tok`

/** One handoff's state in Redis, read so many milliseconds after `start`. */
function lying (record: string | null, scores: number[], at = 1000): RedisState {
  return {
    from: start + at,
    to: start + at + 5,
    due: scores.map(score => ({ tag: 'AAA', member: 'north:id', score: start + score })),
    hashes: record === null ? [] : [{ tag: 'AAA', member: 'north:id', record, extra: '', payload: 9 }],
    listed: [],
  }
}

t.test('I7', async t => {
  const faults = (state: RedisState) => check([], usual, state).map(({ invariant, sentence }) => `${invariant} ${sentence}`)
  t.strictSame(faults(lying(pending, [60_000])), [])
  t.strictSame(faults(lying(held, [90_000])), [])
  t.strictSame(faults(lying(ended, [])), [])
  t.strictSame(faults(lying(pending, [60_000], 62_000)), [], 'the sweep may still be on its way')
  t.strictSame(faults(lying(pending, [], 62_000)), [], 'or have been here between two looks')

  t.match(faults(lying(pending, []))[0], /^I7 it is live until \d+, but not due/)
  t.strictSame(faults(lying(held, [60_000])), [], 'left by catch where it was')
  t.match(faults(lying(held, [60_000], 64_000))[0], /^I7 its deadline was \d+, and 4000 ms later/, 'but not for longer than until the sweep comes')
  for (const score of [59_999, 60_001, 90_001]) t.match(faults(lying(held, [score]))[0], /^I7 it is live until \d+, but due at/)
  t.match(faults(lying(short, [60_000]))[0], /^I7 it is live until \d+, but due at/, 'catch leaves none at a later one')
  t.match(faults(lying(null, [60_000]))[0], /^I7 it is due at \d+, but has no hash/)
  t.match(faults(lying(ended, [90_000]))[0], /^I7 it is done, but due at/)
  t.match(faults(lying(pending, [60_000], 64_000))[0], /^I7 its deadline was \d+, and 4000 ms later it was still live/)
  t.match(faults(lying(null, [60_000], 64_000))[0], /^I7 it is not live, but due/)
  t.match(faults(lying(pending, [60_000, 60_000]))[0], /^I7 it is due 2 times/)
  const twice = lying(pending, [60_000])
  t.match(faults({ ...twice, hashes: [...twice.hashes, ...twice.hashes] })[0], /^I7 its hash is there 2 times/)
  t.match(faults({ ...twice, due: [{ tag: 'BBB', member: 'north:id', score: start + 60_000 }] })[0], /^I7 its hash is in \{AAA\}, but it is due in \{BBB\}/)
})

/** A chain in Redis: each handoff with its record, its field x and the size of its payload. */
function chain (...hashes: Array<[id: string, status: string, extra: string, payload: number]>): RedisState {
  return {
    ...lying(null, []),
    hashes: hashes.map(([id, status, extra, payload]) => ({ tag: 'AAA', member: `north:${id}`, record: held.replace('caught', `2:${status}`), extra, payload })),
  }
}

t.test('I7 with a heartbeat deadline', async t => {
  const faults = (extra: string, scores: number[], at?: number) => {
    const state = lying(held.replace('caught', '2:caught'), scores, at)
    return check([], usual, { ...state, hashes: state.hashes.map(hash => ({ ...hash, extra })) }).map(({ invariant, sentence }) => `${invariant} ${sentence}`)
  }
  t.strictSame(faults(` b5000 h${start + 5010}`, [5010]), [])
  t.strictSame(faults(` b5000 h${start + 9010}`, [5010]), [], 'left by the heartbeat where it was')
  t.match(faults(` b5000 h${start + 5010}`, [90_000])[0], /^I7 it is live until \d+, but due at/)
  t.match(faults(` b5000 h${start + 5010}`, [5010], 9000)[0], /^I7 its deadline was \d+, and/)
})

t.test('I10: exactly one handoff of a chain has the payload', async t => {
  const faults = (...hashes: Parameters<typeof chain>) => check([], usual, chain(...hashes)).filter(({ invariant }) => invariant === 'I10').map(({ sentence }) => sentence)
  t.strictSame(faults(['one', 'failed', ' m2 itwo', 0], ['two', 'failed', ' m2 n2 oone', 9]), [])
  t.strictSame(faults(['one', 'cancelled', ' itwo', 0], ['two', 'done', ' n2 oone', 0]), [], 'done without a result')
  t.strictSame(faults(['one', 'cancelled', '', 0]), [], 'freed')
  t.match(faults(['one', 'failed', ' m2 itwo', 9], ['two', 'caught', ' m2 n2 oone', 9]), ['its successor has what was passed, and so has it'])
  t.match(faults(['one', 'failed', ' m2 itwo', 0], ['two', 'caught', ' m2 n2 oone', 0]), ['it is caught, and what was passed is gone'])
  t.match(faults(['one', 'failed', ' m2 itwo', 0]), ["its successor two isn't there"])
  t.match(faults(['one', 'failed', ' m2 itwo', 0], ['two', 'failed', ' m2 n2 oother', 9]), ["its successor two isn't one of it"])
  t.match(faults(['one', 'cancelled', '', 9]), ['it is cancelled, and what was passed is still there'])
  t.match(faults(['one', 'expired', '', 0]), ['it is expired, and what was passed is gone'], 'after its catch')
})

t.test('I1: the payload is in Redis', async t => {
  const track = tale().pass(0, 5).track()
  t.strictSame(check([track], usual, lying(pending, [60_000])), [])
  t.match(check([track], usual, lying(null, [])), [{ invariant: 'I1', handoff: 'h', sentence: /Redis has no hash of it/ }])
})

// --- I14

/** A handoff for an inbox in Redis, and the lists where it is; read 10 s after `start`. */
function addressed (record: string, extra: string, lists: string[], tag = 'AAA'): RedisState {
  return {
    ...lying(null, [], 10_000),
    hashes: [{ tag: 'AAA', member: 'north:id', record: `2:${record}`, extra: ` twork${extra}`, payload: 9 }],
    listed: lists.map(list => ({ tag, list, member: 'north:id' })),
  }
}

t.test('I14: an inbox lists exactly what can be caught from it', async t => {
  const faults = (state: RedisState) => check([], usual, state).filter(({ invariant }) => invariant === 'I14').map(({ sentence }) => sentence)
  const waiting = pending.replace('none', 'waiting')
  const available = (after: number) => ` a${start + after}`
  t.strictSame(faults(addressed(pending, '', ['north:work'])), [])
  t.strictSame(faults(addressed(waiting, '', ['north:work:waiting'])), [])
  t.strictSame(faults(addressed(held, '', [])), [])
  t.strictSame(faults(addressed(pending, available(20_000), [])), [], 'not yet available')
  t.strictSame(faults(addressed(pending, available(9000), [])), [], 'the sweep may still be on its way')
  t.strictSame(faults(addressed(pending, available(9000), ['north:work'])), [], 'and may have been here')

  t.match(faults(addressed(pending, '', [])), ['it is pending and listed in no inbox'])
  t.match(faults(addressed(pending, available(5000), [])), ['it is pending and listed in no inbox'], 'the sweep never came')
  t.match(faults(addressed(pending, available(20_000), ['north:work'])), ['not in none'], 'before its time')
  t.match(faults(addressed(waiting, '', ['north:work'])), ['it is pending and listed in {AAA} north:work'])
  t.match(faults(addressed(pending, '', ['north:work', 'north:work:waiting'])), ['it is pending and listed in'])
  t.match(faults(addressed(pending, '', ['north:mail'])), ['it is pending and listed in'], 'another inbox')
  t.match(faults(addressed(pending, '', ['north:work'], 'BBB')), ['it is pending and listed in'], 'another partition')
  t.match(faults(addressed(held, '', ['north:work'])), ['it is caught and listed in'])
  t.match(faults({ ...addressed(pending, '', ['north:work']), hashes: [] }), ['it is gone and listed in'])
})

const toWork = () => tale().pass(0, 5, { asked: { to: 'work' } })

t.test('I14: an inbox gives what is for it', async t => {
  const given = (inbox: string) => {
    const track = toWork().catch(10, 15).track()
    return { ...track, operations: track.operations.map(one => one.kind === 'catch' ? { ...one, inbox } : one) }
  }
  t.strictSame(check([given('north/work')]), [])
  for (const inbox of ['north/mail', 'east/work']) t.match(check([given(inbox)]), [{ invariant: 'I14' }])
})

t.test('a catch from an inbox that nobody answered may have caught what its agent has', async t => {
  const caughtAt = (at: number, by = 'bob') => {
    const track = toWork().status(100, 105, 'caught', { ...caught(at), caughtBy: by }).audited()
    const history = new History()
    history.tracks.set(track.name, track)
    history.untold.push({ ...operation(0, 'catch', 10, 30, { agent: 'north/bob', status: 503, code: 'unavailable' }), handoff: '', inbox: 'north/work' })
    return checkHistory(history, usual).map(({ invariant }) => invariant)
  }
  t.strictSame(caughtAt(20), [])
  t.strictSame(caughtAt(20, 'carol'), ['I5'], 'not what another has')
  t.strictSame(caughtAt(60), ['I5'], 'not after its 503')
})

t.test('a catch from an inbox may have caught what its agent had ended before the answer', async t => {
  const answered = (at: number, by = 'bob') => {
    const done = { ...caught(20), caughtBy: 'bob', completedAt: start + 42, result: 'd' }
    const track = toWork().done(40, 45, 42, 'bob', { token: 'd' }).status(100, 105, 'done', done).audited()
    const history = new History()
    history.tracks.set(track.name, track)
    history.told.push({ ...operation(0, 'catch', 10, at, { agent: `north/${by}`, status: 0 }), handoff: '', inbox: 'north/work' })
    return checkHistory(history, usual).map(({ invariant }) => invariant)
  }
  t.strictSame(answered(60), [])
  t.strictSame(answered(60, 'carol'), ['I5'], 'not another agent')
  t.strictSame(answered(30), ['I5'], 'not before its end: that answer would have had it')
})

t.test('a catch from an inbox is never refused for the state of a handoff', async t => {
  const history = new History()
  history.untold.push({ ...operation(0, 'catch', 10, 30, { agent: 'north/bob', status: 409, code: 'already_caught' }), handoff: '', inbox: 'north/work' })
  t.match(checkHistory(history, usual), [{ invariant: 'I8' }])
})
