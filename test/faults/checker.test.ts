import t from 'tap'
import { check, checkHistory, describe, usual } from './checker.ts'
import type { CheckOptions, Invariant } from './checker.ts'
import { History } from './history.ts'
import type { Answer, Asked, Kind, Operation, Track } from './history.ts'
import type { RedisState } from './redis-state.ts'

// Histories made by hand. The simulator's many sound runs show that the checker accepts what is right; here is what it must find.

/** The origin of the times in these histories. */
const start = 1_800_000_000_000

/** What is left out has its usual value. */
interface Told extends Partial<Pick<Operation, 'agent' | 'token' | 'status' | 'code' | 'answer' | 'same' | 'replayed' | 'firm'>> { asked?: Partial<Asked> }

/** @param sent milliseconds since `start`, as all times @param ended null: still under way */
function operation (n: number, kind: Kind, sent: number, ended: number | null, { asked, answer, ...told }: Told): Operation {
  const status = told.status ?? (kind === 'pass' || kind === 'reissue' ? 201 : 200)
  const end = ended === null ? null : start + ended
  return {
    n,
    kind,
    handoff: 'h',
    agent: 'north/alice',
    token: null,
    asked: kind === 'pass' ? { human: false, expiresIn: 60_000, ...asked } : null,
    firm: false,
    sent: start + sent,
    answered: status === 0 ? null : end,
    ended: end,
    code: null,
    answer: status >= 300 || status === 0 ? answer ?? null : { id: 'id', ...answer },
    same: kind === 'catch' && status === 200 ? true : null,
    replayed: false,
    ...told,
    status,
  }
}

/** A day: the lifetime of a successor whose creation no answer tells. */
const day = 86_400_000

/** Builds a history in the order of its calls. */
class Tale {
  readonly operations: Operation[] = []
  readonly #before: Track | null
  #created: number
  #expires: number

  /** @param before a successor's previous attempt @param created when the successor was made */
  constructor (before: Track | null = null, created = 0) {
    this.#before = before
    this.#created = created
    this.#expires = created + day
  }

  add (kind: Kind, sent: number, ended: number | null, told: Told = {}): this {
    this.operations.push(operation(this.operations.length, kind, sent, ended, told))
    return this
  }

  pass (asked: Partial<Asked> = {}, told: Told = {}): this {
    this.#created = 1
    this.#expires = 1 + (asked.expiresIn ?? 60_000)
    return this.add('pass', 0, 5, { token: 'p', asked, answer: { status: 'pending', ...this.#times() }, ...told })
  }

  catch (sent: number, ended: number | null, agent = 'bob', told: Told = {}): this {
    return this.add('catch', sent, ended, { agent: `north/${agent}`, answer: { status: 'caught', createdAt: start + this.#created }, ...told })
  }

  done (sent: number, ended: number | null, completed: number, agent = 'bob', told: Told = {}): this {
    return this.add('done', sent, ended, { agent: `north/${agent}`, answer: { status: 'done', completedAt: start + completed }, ...told })
  }

  status (sent: number, ended: number | null, status: string, seen: Answer = {}): this {
    const missed = status !== 'expired' ? {} : { endedAt: start + this.#expires, endedBy: null, expiredBecause: seen.caughtAt == null ? 'not_caught' : 'not_done' }
    const usually = { caughtAt: null, caughtBy: null, completedAt: null, approval: null, result: null }
    return this.add('status', sent, ended, { answer: { status, ...this.#times(), ...usually, ...missed, ...seen } })
  }

  decide (kind: 'approve' | 'reject', sent: number, ended: number | null): this {
    const answer = kind === 'approve' ? { status: 'pending', approval: 'approved' } : { status: 'rejected', approval: 'rejected' }
    return this.add(kind, sent, ended, { agent: 'north/person', answer })
  }

  beat (sent: number, ended: number | null, work: number, heard: number | null = null, told: Told = {}): this {
    const heartbeatExpiresAt = heard === null ? null : start + heard
    const answer = { status: 'caught', workExpiresAt: start + work, heartbeatExpiresAt, cancelRequested: false, ...told.answer }
    return this.add('heartbeat', sent, ended, { agent: 'north/bob', ...told, answer })
  }

  /** @param successor the successor's id, if there is one */
  fail (sent: number, ended: number | null, at: number, successor?: string, told: Told = {}): this {
    const answer = { status: 'failed', endedAt: start + at, ...successor !== undefined && { reissuedAs: successor } }
    return this.add('fail', sent, ended, { agent: 'north/bob', ...told, answer })
  }

  /** @param at when it was cancelled, or its catcher first asked to stop @param told status 202 for the latter */
  cancel (sent: number, ended: number | null, at: number, told: Told = {}): this {
    const answer = told.status === 202 ? { status: 'caught', cancelRequestedAt: start + at } : { status: 'cancelled', endedAt: start + at }
    return this.add('cancel', sent, ended, { ...told, answer: { id: 'id', ...answer } })
  }

  reissue (sent: number, ended: number | null, at: number, successor: string, told: Told = {}): this {
    return this.add('reissue', sent, ended, { answer: { status: 'pending', reissuedAs: successor, reissuedAt: start + at }, ...told })
  }

  refused (kind: Kind, sent: number, ended: number, status: number, code: string, told: Told = {}): this {
    return this.add(kind, sent, ended, { agent: 'north/bob', status, code, ...told })
  }

  /** An operation whose outcome nobody knows. */
  lost (kind: Kind, sent: number, ended: number | null, told: Told = {}): this {
    return this.add(kind, sent, ended, { agent: 'north/bob', status: 0, ...told })
  }

  get track (): Track {
    const all = { operations: this.operations, final: null }
    if (this.#before === null) return { ...all, name: 'h', id: 'id', descent: null }
    const { name, operations } = this.#before
    return { ...all, name: 'h/2', id: 'id2', descent: { from: name, attempt: 2, pass: operations[0]! } }
  }

  #times () {
    return { createdAt: start + this.#created, expiresAt: start + this.#expires }
  }
}

/** As in a status: when and by whom it was caught, and how it ended. */
const caught = (at: number, by = 'bob'): Answer => ({ caughtAt: start + at, caughtBy: by })
const finished = (at: number, result: string | null): Answer => ({ completedAt: start + at, result })
const ended = (at: number, by: string | null, told?: string): Answer => ({ endedAt: start + at, endedBy: by, ...told !== undefined && { told } })

const unavailable = { status: 503, code: 'unavailable' }
const k = { token: 'k' }
const pass = (asked: Partial<Asked> = {}, told: Told = {}) => new Tale().pass(asked, told)
const human = () => pass({ human: true })
const held = (asked: Partial<Asked> = {}) => pass(asked).catch(10, 15)
const twice = { maxAttempts: 2 }
const failed = (successor?: string) => ({ ...caught(12), ...ended(22, 'bob', '#2'), ...successor !== undefined && { reissuedAs: successor } })
/** Heartbeats within five seconds, and a minute for the work. */
const heard = () => held({ heartbeatWithin: 5000, workWithin: 60_000 })
const delayed = () => pass({ delay: 1000 }, { answer: { status: 'pending', createdAt: start + 1, expiresAt: start + 60_001, availableAt: start + 1001 } })
/** An attempt that failed and got a successor, and the operations on that. */
function failedOnce (behind: (tale: Tale) => Tale, created = 22): Track[] {
  const before = held(twice).fail(20, 25, 22, 'id2').status(100, 105, 'failed', failed('id2')).track
  return [before, behind(new Tale(before, created)).track]
}
/** The service asks Redis again when the second for the work is over, as the first reply was lost; the answer comes at this time. */
const caughtAndExpired = (answered: number) => pass({ workWithin: 1000 }).refused('catch', 10, answered, 410, 'expired')
  .status(1300, 1305, 'expired', { ...caught(12), ...ended(1012, null), expiredBecause: 'not_done' })

type Tracks = Tale | Track[]
const tracksOf = (told: Tracks) => told instanceof Tale ? [told.track] : told

/** Histories of a sound service that look wrong. */
const good: Array<[what: string, told: Tracks, options?: Partial<CheckOptions>]> = [
  ['a catch whose answer was lost, asked for again', pass().lost('catch', 10, 20, k).catch(50, 60, 'bob', { ...k, replayed: true }).status(70, 75, 'caught', caught(15))],
  ['a 503 that happened before it was told', pass().lost('catch', 10, 2010, unavailable).status(2020, 2030, 'caught', caught(2009))],
  ['a request that the service went on with when its client was gone', pass().lost('catch', 10, 20).status(30, 40, 'pending').status(500, 510, 'caught', caught(400))],
  ['a first answer that is marked as a repeat', pass().catch(10, 20, 'bob', { ...k, replayed: true })],
  ['a catch in the last moment', pass({ expiresIn: 1000 }).catch(995, 1030).status(1040, 1050, 'caught', caught(1000))],
  ['a request under way, which happened', pass().lost('catch', 10, null).status(9000, 9005, 'caught', caught(8000))],
  ['a heartbeat that the service sent again', heard().beat(5000, 5110, 60_012, 10_105).status(5120, 5130, 'caught', caught(12))],
  ['a heartbeat whose answer was lost, and one long after it', heard().lost('heartbeat', 4000, 4010).beat(8000, 8010, 60_012, 13_005)],
  ['a catch that was asked again after its work had expired', caughtAndExpired(1200)],
  ['a cancel that was refused when it had asked', held().refused('cancel', 20, 60, 409, 'already_failed', { agent: 'north/alice' }).fail(30, 35, 32)
    .status(70, 75, 'failed', { ...caught(12), ...ended(32, 'bob', '#3'), cancelRequestedAt: start + 25 })],
  ['a cancel that was sent again when it had asked, after a reissue', held().cancel(20, 60, 32, { replayed: true }).reissue(30, 35, 32, 'id2')
    .status(70, 75, 'cancelled', { ...caught(12), ...ended(32, 'alice'), cancelRequestedAt: start + 25, reissuedAs: 'id2' })],
]

/** Each breaks one invariant in one way. */
const bad: Array<[Invariant, what: string, told: Tracks, options?: Partial<CheckOptions>]> = [
  ['I1', 'a pass that is gone', pass().refused('status', 100, 105, 404, 'not_found')],
  ['I1', 'a pass with two ids', pass().catch(10, 15, 'bob', { answer: { id: 'other', createdAt: start + 1, status: 'caught' } })],
  ['I1', 'a successor that is gone', failedOnce(tale => tale.refused('catch', 30, 35, 404, 'not_found'))],
  ['I2', 'two times of the catch', pass().status(10, 50, 'caught', caught(12)).status(10, 50, 'caught', caught(13))],
  ['I3', 'another payload', pass().catch(10, 15, 'bob', { same: false })],
  ['I5', 'a pass that was made twice', pass().add('pass', 10, 15, { token: 'p' })],
  ['I5', 'a catch that is undone', held().status(100, 105, 'pending')],
  ['I5', 'a done that is undone', held().done(20, 25, 22).status(100, 105, 'caught', caught(12))],
  ['I5', 'an approval that is undone', human().decide('approve', 10, 15).status(100, 105, 'pending', { approval: 'waiting' })],
  ['I13', 'a catch that expired before its time', held().status(100, 105, 'expired', { ...caught(12), endedAt: start + 90 }), { workTtl: 5000 }],
  ['I5', 'two agents that caught it', pass().catch(10, 30, 'bob').catch(10, 30, 'carol')],
  ['I5', 'one agent, twice and without a key', pass().catch(10, 30).catch(10, 30)],
  ['I5', 'the winner is told that somebody was faster', pass().catch(10, 15, 'bob', k).refused('catch', 20, 25, 409, 'already_caught', k)],
  ['I5', 'the only one who asked is', pass().lost('catch', 10, 15, k).refused('catch', 20, 25, 409, 'already_caught', k)],
  ['I5', 'the winner is not the catcher', held().refused('done', 20, 25, 403, 'not_the_catcher')],
  ['I5', 'who did it is told that another did, who asked too', held().done(20, 25, 22, 'bob', k).lost('done', 26, 28, { token: 'e' }).refused('done', 30, 35, 409, 'already_done', k)],
  ['I5', 'a repeat that was not recognised', pass().catch(10, 15, 'bob', k).catch(20, 25, 'bob', k)],
  ['I5', 'a refusal before its reason', pass().refused('catch', 10, 15, 409, 'already_caught').catch(20, 25, 'carol')],
  ['I5', 'a repeat of what has no key', pass().catch(10, 15, 'bob', { replayed: true })],
  ['I5', 'an approval that nobody asked for', pass().refused('catch', 10, 15, 409, 'approval_required')],
  ['I5', 'a decision that is told otherwise', human().decide('approve', 10, 15)
    .refused('reject', 20, 25, 409, 'already_decided', { agent: 'north/other', answer: { approval: 'rejected' } })],
  ['I5', 'a status that comes too early', pass().status(10, 15, 'caught', caught(30)).catch(20, 40)],
  ['I5', 'a status of before, after what is known to have been', pass().catch(10, 200).status(60, 70, 'pending').status(210, 220, 'caught', caught(30))],
  ['I5', 'a catch after its 503', pass().lost('catch', 10, 2010, unavailable).status(2100, 2110, 'pending').status(3000, 3010, 'caught', caught(2900))],
  ['I5', 'a catch after its 503, by its time alone', pass().lost('catch', 10, 2010, unavailable).status(3000, 3010, 'caught', caught(2900))],
  ['I5', 'a catch long after its client was gone', pass().lost('catch', 10, 20).status(9000, 9010, 'caught', caught(2500))],
  ['I5', 'an answer with a time before it was asked for', pass({}, { answer: { status: 'pending', createdAt: start - 50, expiresAt: start + 60_000 } })],
  ['I5', 'an expiry before its time', pass().refused('catch', 500, 510, 410, 'expired')],
  ['I5', 'a live one after its time', pass({ expiresIn: 1000 }).status(1100, 1110, 'pending')],
  ['I5', 'a catch without approval', human().catch(10, 15)],
  ['I5', 'another result than was given', held().done(20, 25, 22).status(30, 35, 'done', { ...caught(12), ...finished(22, 'other') })],
  ['I5', 'a failure that is undone', held().fail(20, 25, 22).status(30, 35, 'caught', caught(12))],
  ['I5', 'a request that is forgotten', held().cancel(20, 25, 22, { status: 202 }).status(30, 35, 'caught', caught(12))],
  ['I5', 'a catch that is answered as if its work had expired', caughtAndExpired(600)],
  ['I5', 'a heartbeat of another', held().beat(20, 25, 86_400_012, null, { agent: 'north/carol' })],
  ['I5', 'a heartbeat after the end', held().fail(20, 25, 22).beat(30, 35, 86_400_012)],
  ['I5', 'a catcher that isn’t told to stop', held().cancel(20, 25, 22, { status: 202 }).beat(30, 35, 86_400_012)],
  ['I5', 'a failure that is tried again although it was cancelled', held(twice).cancel(20, 25, 22, { status: 202 }).fail(30, 35, 32, 'id2')],
  ['I5', 'one that is tried again too often', held().fail(20, 25, 22, 'id2')],
  ['I5', 'one that isn’t tried again', held(twice).fail(20, 25, 22)],
  ['I5', 'a successor that nobody is told of', held(twice).fail(20, 25, 22, 'id2').status(30, 35, 'failed', failed())],
  ['I5', 'a refusal without the successor', held(twice).fail(20, 25, 22, 'id2').refused('done', 30, 35, 409, 'already_failed', { answer: {} })],
  ['I5', 'two that reissued it', held().reissue(20, 25, 22, 'id2').reissue(30, 35, 22, 'id2')],
  ['I5', 'a catch before its time', delayed().catch(500, 510)],
  ['I5', 'one that must wait after its time', delayed().refused('catch', 1100, 1110, 409, 'not_yet')],
  ['I5', 'a done after it stalled', heard().done(5100, 5110, 5105).status(5120, 5130, 'done', { ...caught(12), ...finished(5105, '#2') })],
  ['I5', 'a done beside a failure', held().fail(20, 35, 22).done(21, 34, 23)],
  ['I5', 'a done after a cancel by force', held().cancel(20, 25, 22, { firm: true }).done(30, 35, 32)],
  ['I6', 'a catch after its expiry', pass({ expiresIn: 1000 }).catch(990, 1010).status(1020, 1030, 'caught', caught(1001))],
  ['I8', 'a 500', pass().refused('catch', 10, 15, 500, 'internal_error')],
  ['I8', 'a 502 without a word', pass().lost('catch', 10, 15, { status: 502 })],
  ['I8', 'a code with another status', pass().refused('done', 10, 15, 404, 'not_caught')],
  ['I8', 'a cancel by force that only asks', held().cancel(20, 25, 22, { status: 202, firm: true })],
  ['I9', 'a successor of another', failedOnce(tale => tale.status(30, 35, 'pending', { attempt: 2, reissueOf: 'other' }))],
  ['I9', 'an attempt that is counted wrongly', failedOnce(tale => tale.status(30, 35, 'pending', { attempt: 3, reissueOf: 'id' }))],
  ['I9', 'a successor before the end', failedOnce(tale => tale.status(30, 35, 'pending'), 21)],
  ['I11', 'two times of the end', held().fail(20, 25, 22).status(30, 35, 'failed', { ...failed(), endedAt: start + 23 })],
  ['I13', 'a heartbeat after its deadline', heard().beat(5100, 5110, 60_012, 10_105).status(5120, 5130, 'caught', caught(12))],
  ['I13', 'a heartbeat after the deadline that the one before was told', heard().beat(4000, 4010, 60_012, 9005).beat(9020, 9030, 60_012, 14_025)
    .status(9040, 9050, 'caught', caught(12))],
  ['I13', 'a heartbeat that was heard too late, by its own word', heard().beat(5005, 5025, 60_012, 10_020).status(5120, 5130, 'caught', caught(12))],
  ['I13', 'a stall before the deadline that was told', heard().beat(4000, 4010, 60_012, 9005)
    .status(5100, 5110, 'expired', { ...caught(12), ...ended(5012, null), expiredBecause: 'stalled' })],
]

t.test('the checker accepts what only looks wrong', async t => {
  for (const [what, told, options] of good) t.strictSame(check(tracksOf(told), { ...usual, ...options }).map(describe), [], what)
})

t.test('each violation of an invariant is found, by its number', async t => {
  for (const [invariant, what, told, options] of bad) {
    const found = check(tracksOf(told), { ...usual, ...options })
    t.ok(found.some(violation => violation.invariant === invariant), `${invariant}: ${what}`, { found: found.map(describe) })
  }
})

// --- What lies in Redis.

const pending = `pending none ${start} ${start + 60_000} alice -`
const live = `caught none ${start} ${start + 60_000} alice - ${start + 10} ${start + 90_000} bob tok`
const over = `done none ${start} ${start + 60_000} alice - ${start + 10} ${start + 90_000} bob tok ${start + 20} tok`

/** One handoff's state in Redis, read so many milliseconds after `start`. */
function lying (record: string | null, scores: number[], { at = 1000, extra = '', lists = [] as string[], payload = 9 } = {}): RedisState {
  return {
    from: start + at,
    to: start + at + 5,
    due: scores.map(score => ({ tag: 'AAA', member: 'north:id', score: start + score })),
    hashes: record === null ? [] : [{ tag: 'AAA', member: 'north:id', record, extra, payload }],
    listed: lists.map(list => ({ tag: 'AAA', list, member: 'north:id' })),
  }
}
const faults = (state: RedisState) => check([], usual, state).map(({ invariant, sentence }) => `${invariant} ${sentence}`)

t.test('due indexes, payloads and lists fit the hashes', async t => {
  const waiting = pending.replace('none', 'waiting')
  const sound: RedisState[] = [
    lying(pending, [60_000]), lying(live, [90_000]), lying(live, [60_000]), lying(over, []), lying(pending, [60_000], { at: 62_000 }),
    lying(`2:${live}`, [5010], { extra: ` b5000 h${start + 9010}` }),
    lying(`2:${pending}`, [60_000], { extra: ' twork', lists: ['north:work'] }),
    lying(`2:${waiting}`, [60_000], { extra: ' twork', lists: ['north:work:waiting'] }),
    lying(`2:${pending}`, [20_000], { extra: ` twork a${start + 20_000}` }),
  ]
  for (const state of sound) t.strictSame(faults(state), [])
  const unsound: Array<[RegExp, RedisState]> = [
    [/^I7 it is live until \d+, but not due/, lying(pending, [])],
    [/^I7 it is live until \d+, but due at/, lying(live, [59_999])],
    [/^I7 its deadline was \d+, and 4000 ms later/, lying(live, [60_000], { at: 64_000 })],
    [/^I7 it is due at \d+, but has no hash/, lying(null, [60_000])],
    [/^I7 it is done, but due at/, lying(over, [90_000])],
    [/^I7 it is due 2 times/, lying(pending, [60_000, 60_000])],
    [/^I10 its successor two isn't there/, lying(`2:${live}`, [90_000], { extra: ' m2 itwo', payload: 0 })],
    [/^I10 its successor has what was passed, and so has it/, lying(`2:${live}`, [90_000], { extra: ' m2 itwo' })],
    [/^I10 it is cancelled, and what was passed is still there/, lying(`2:${live.replace('caught', 'cancelled')}`, [])],
    [/^I14 it is pending and listed in no inbox/, lying(`2:${pending}`, [60_000], { extra: ' twork' })],
    [/^I14 it is pending and listed in {AAA} north:work, not in none/, lying(`2:${pending}`, [20_000], { extra: ` twork a${start + 20_000}`, lists: ['north:work'] })],
    [/^I14 it is pending and listed in {AAA} north:mail/, lying(`2:${pending}`, [60_000], { extra: ' twork', lists: ['north:mail'] })],
    [/^I14 it is caught and listed in/, lying(`2:${live}`, [90_000], { extra: ' twork', lists: ['north:work'] })],
  ]
  for (const [sentence, state] of unsound) t.match(faults(state).find(one => sentence.test(one)), sentence, `${sentence}: ${faults(state).join('; ')}`)
  t.match(check([pass().track], usual, lying(null, [])), [{ invariant: 'I1', sentence: /Redis has no hash of it/ }])
})

// --- Catches from an inbox.

t.test('an inbox gives what is for it', async t => {
  for (const [inbox, found] of [['north/work', []], ['north/mail', ['I14']], ['east/work', ['I14']]] as const) {
    const { track } = held({ to: 'work' })
    track.operations[1]!.inbox = inbox
    t.strictSame(check([track]).map(({ invariant }) => invariant), found)
  }
})

t.test('a catch from an inbox that nobody answered may have caught what its agent has', async t => {
  const found = (at: number, by: string, told: Told, isAnswered = false) => {
    const tale = pass({ to: 'work' }).status(100, 105, 'caught', { ...caught(at), caughtBy: by })
    const history = new History()
    history.tracks.set('h', tale.track)
    history[isAnswered ? 'told' : 'untold'].push({ ...operation(0, 'catch', 10, 30, { agent: 'north/bob', ...told }), handoff: '', inbox: 'north/work' })
    return checkHistory(history, usual).map(({ invariant }) => invariant)
  }
  t.strictSame(found(20, 'bob', unavailable), [])
  t.strictSame(found(20, 'carol', unavailable), ['I5'], 'not what another has')
  t.strictSame(found(60, 'bob', unavailable), ['I5'], 'not after its 503')
  t.strictSame(found(20, 'bob', { status: 0 }, true), ['I5'], 'not if its answer would have had it')
  t.strictSame(found(20, 'bob', { status: 409, code: 'already_caught' }).filter(one => one === 'I8'), ['I8'], 'it is never refused for the state of a handoff')
})
