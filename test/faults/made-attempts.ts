import type { CheckOptions, Invariant } from './checker.ts'
import type { Track } from './history.ts'
import { Tale, caught, ended, finished, start } from './made-history.ts'
import type { Told } from './made-history.ts'

/** Histories of attempts and their successors, for the checker's own tests. */

const unavailable = { status: 503, code: 'unavailable' }
const twice = { maxAttempts: 2 }
const refused = (code: string, successor?: string): [number, string, Told] => [409, code, successor === undefined ? {} : { answer: { reissuedAs: successor } }]
const first = (asked: Told['asked'] = twice, more: Told = {}) => new Tale().pass(0, 5, { asked: { ...asked }, ...more })
const held = (asked?: Told['asked']) => first(asked).catch(10, 15)
/** Heartbeats within five seconds, and a minute for the work. */
const heard = () => held({ heartbeatWithin: 5000, workWithin: 60_000 })
const failed = (successor?: string) => ({ ...caught(12), ...ended(22, 'bob', '#2'), ...successor !== undefined && { reissuedAs: successor } })

/** An attempt that failed and got a successor, and the operations on that. */
function failedOnce (behind: (tale: Tale) => Tale): Track[] {
  const before = held().fail('fail', 20, 25, 22, 'id2').status(100, 105, 'failed', failed('id2')).audited()
  return [before, behind(new Tale(before, 22)).track()]
}

/** The first reply is lost; the service asks Redis again when the second for the work is over, and the answer comes at this time. */
function caughtAndExpired (answered: number): Track {
  return first({ workWithin: 1000 }).refused('catch', 10, answered, 410, 'expired')
    .status(1300, 1305, 'expired', { ...caught(12), ...ended(1012, null), expiredBecause: 'not_done' }).audited()
}

/** Histories of a sound service. */
export const lawful: Array<[what: string, tracks: Track[], options?: Partial<CheckOptions>]> = [
  ['a failure', [held({}).fail('fail', 20, 25, 22).status(30, 35, 'failed', failed()).audited()]],
  ['a failure that is not to be tried again', [held().fail('fail', 20, 25, 22, undefined, { firm: true }).status(30, 35, 'failed', failed()).audited()]],
  ['a failure whose answer was lost', [held({}).lost('fail', 20, 25, { token: 'f' }).fail('fail', 30, 35, 22, undefined, { token: 'f', replayed: true })
    .status(40, 45, 'failed', { ...caught(12), ...ended(22, 'bob', 'f') }).audited()]],
  ['a refusal to do it', [held({}).fail('decline', 20, 25, 22).refused('done', 30, 35, ...refused('already_declined')).status(40, 45, 'declined', failed()).audited()]],
  ['a failure that is tried again', failedOnce(tale => tale.catch(30, 35, 'carol').done(40, 45, 42, 'carol').status(50, 55, 'done', { ...caught(32, 'carol'), ...finished(42, '#1'), attempt: 2, reissueOf: 'id' }))],
  ['a delay', [first({ delay: 1000 }, { answer: { status: 'pending', createdAt: start + 1, expiresAt: start + 60_001, availableAt: start + 1001 } })
    .refused('catch', 500, 510, ...refused('not_yet')).catch(1010, 1020).status(1030, 1040, 'caught', { ...caught(1015), availableAt: start + 1001 }).audited()]],
  ['heartbeats', [heard().beat(4000, 4010, 60_012, 9005).beat(8000, 8010, 60_012, 13_005).status(8020, 8030, 'caught', caught(12)).audited()]],
  ['a heartbeat that the service sent again, as it lost the first answer', [heard().beat(5000, 5110, 60_012, 10_105).status(5120, 5130, 'caught', caught(12)).track()]],
  ['a heartbeat whose answer was lost, and one long after it', [heard().lost('heartbeat', 4000, 4010).beat(8000, 8010, 60_012, 13_005).track()]],
  ['a stall', [heard().beat(4000, 4010, 60_012, 9005).refused('done', 9010, 9020, 410, 'expired').status(9100, 9110, 'expired', { ...caught(12), ...ended(9005, null), expiredBecause: 'stalled' }).audited()]],
  ['a catch that was asked again after its work had expired', [caughtAndExpired(1200)]],
  ['a stall whose successor is still to come', [held({ maxAttempts: 2, workWithin: 1000 }).status(1100, 1110, 'expired', { ...caught(12), ...ended(1012, null), reissuedAs: null })
    .status(2000, 2010, 'expired', { ...caught(12), ...ended(1012, null), reissuedAs: 'id2' }).audited()]],
  ['a cancel that nobody had caught', [first().cancel(10, 15, 12).refused('catch', 20, 25, ...refused('cancelled')).cancel(30, 35, 12).status(40, 45, 'cancelled', ended(12, 'alice')).audited()]],
  ['a cancel that asks the catcher to stop', [held().cancel(20, 25, 22, { status: 202 }).beat(30, 35, 86_400_012, null, { answer: { cancelRequested: true } }).fail('fail', 40, 45, 42)
    .status(50, 55, 'failed', { ...caught(12), ...ended(42, 'bob', '#4'), cancelRequestedAt: start + 22 }).audited()]],
  ['a cancel that was refused when it had asked', [held().refused('cancel', 20, 60, 409, 'already_failed', { agent: 'north/alice' }).fail('fail', 30, 35, 32)
    .status(70, 75, 'failed', { ...caught(12), ...ended(32, 'bob', '#3'), cancelRequestedAt: start + 25 }).audited()]],
  ['a cancel that was sent again when it had asked, after a reissue', [held().cancel(20, 60, 32, { replayed: true }).reissue(30, 35, 32, 'id2')
    .status(70, 75, 'cancelled', { ...caught(12), ...ended(32, 'alice'), cancelRequestedAt: start + 25, reissuedAs: 'id2' }).audited()]],
  ['a cancel by force', [held().cancel(20, 25, 22, { firm: true }).refused('done', 30, 35, ...refused('cancelled'))
    .status(40, 45, 'cancelled', { ...caught(12), ...ended(22, 'alice'), cancelRequestedAt: start + 22 }).audited()]],
  ['a cancel by force that comes too late', [held().done(20, 25, 22).refused('cancel', 30, 35, 409, 'already_done', { agent: 'north/alice', firm: true })
    .status(40, 45, 'done', { ...caught(12), ...finished(22, '#2') }).audited()]],
  ['somebody else’s cancel', [held().refused('cancel', 20, 25, 403, 'not_the_passer').status(30, 35, 'caught', caught(12)).audited()]],
  ['a reissue that takes it', [held().reissue(20, 25, 22, 'id2').refused('done', 30, 35, ...refused('cancelled', 'id2')).reissue(40, 45, 22, 'id2', { replayed: true })
    .status(50, 55, 'cancelled', { ...caught(12), ...ended(22, 'alice'), reissuedAs: 'id2' }).audited()]],
  ['a reissue whose answer was lost', [held().lost('reissue', 20, 25, { agent: 'north/alice' }).reissue(40, 45, 22, 'id2', { replayed: true }).track()]],
  ['a reissue of what failed for good', [held().fail('fail', 20, 25, 22, undefined, { firm: true, token: 'f' }).reissue(30, 35, 32, 'id2')
    .fail('fail', 40, 45, 22, undefined, { firm: true, token: 'f', replayed: true }).track()]],
  ['what a person approved, tried again', (() => {
    const before = new Tale().pass(0, 5, { human: true, asked: twice }).decide('approve', 6, 8).catch(10, 15).fail('decline', 20, 25, 22, 'id2').track()
    return [before, new Tale(before, 22).catch(30, 35, 'carol').status(40, 45, 'caught', { ...caught(32, 'carol'), approval: 'approved' }).track()]
  })()],
]

/** Each breaks one invariant in one way. */
export const broken: Array<[Invariant, what: string, tracks: Track[], options?: Partial<CheckOptions>]> = [
  ['I1', 'a failure that is undone', [held({}).fail('fail', 20, 25, 22).status(30, 35, 'caught', caught(12)).audited()]],
  ['I1', 'a cancellation that is undone', [first().cancel(10, 15, 12).status(30, 35, 'pending').audited()]],
  ['I1', 'a request that is forgotten', [held().cancel(20, 25, 22, { status: 202 }).status(30, 35, 'caught', caught(12)).audited()]],
  ['I1', 'a successor that is gone', failedOnce(tale => tale.refused('catch', 30, 35, 404, 'not_found'))],
  ['I4', 'who failed is told that another did', [held({}).fail('fail', 20, 25, 22, undefined, { token: 'f' }).refused('fail', 30, 35, ...refused('already_failed'))
    .add('fail', 40, 45, { agent: 'north/bob', token: 'f', status: 409, code: 'already_failed' }).track()]],
  ['I4', 'nobody cancelled it', [held().refused('done', 20, 25, ...refused('cancelled')).track()]],
  ['I4', 'the winner’s heartbeat is nobody’s', [held().refused('heartbeat', 20, 25, 403, 'not_the_catcher').track()]],
  ['I5', 'a catch that is answered as if its work had expired', [caughtAndExpired(600)]],
  ['I5', 'a heartbeat of another', [held().beat(20, 25, 86_400_012, null, { agent: 'north/carol' }).track()]],
  ['I5', 'a heartbeat after the end', [held({}).fail('fail', 20, 25, 22).beat(30, 35, 86_400_012).track()]],
  ['I5', 'a catcher that isn’t told to stop', [held().cancel(20, 25, 22, { status: 202 }).beat(30, 35, 86_400_012).track()]],
  ['I5', 'a failure that is tried again although it was cancelled', [held().cancel(20, 25, 22, { status: 202 }).fail('fail', 30, 35, 32, 'id2').track()]],
  ['I5', 'one that is tried again too often', [held({}).fail('fail', 20, 25, 22, 'id2').track()]],
  ['I5', 'one that isn’t tried again', [held().fail('fail', 20, 25, 22).track()]],
  ['I5', 'a successor that nobody is told of', [held().fail('fail', 20, 25, 22, 'id2').status(30, 35, 'failed', failed()).track()]],
  ['I5', 'a refusal without the successor', [held().fail('fail', 20, 25, 22, 'id2').refused('done', 30, 35, 409, 'already_failed', { answer: {} }).track()]],
  ['I5', 'two that reissued it', [held().reissue(20, 25, 22, 'id2').reissue(30, 35, 22, 'id2').track()]],
  ['I5', 'a catch before its time', [first({ delay: 1000 }, { answer: { status: 'pending', createdAt: start + 1, expiresAt: start + 60_001, availableAt: start + 1001 } }).catch(500, 510).track()]],
  ['I5', 'one that must wait after its time', [first({ delay: 1000 }, { answer: { status: 'pending', createdAt: start + 1, expiresAt: start + 60_001, availableAt: start + 1001 } })
    .refused('catch', 1100, 1110, ...refused('not_yet')).track()]],
  ['I5', 'a done after it stalled', [heard().done(5100, 5110, 5105).status(5120, 5130, 'done', { ...caught(12), ...finished(5105, '#2') }).track()]],
  ['I5', 'a cancel after its 503', [held().lost('cancel', 20, 2020, { ...unavailable, agent: 'north/alice', firm: true }).status(3000, 3010, 'cancelled', { ...caught(12), ...ended(2900, 'alice'), cancelRequestedAt: start + 2900 }).track()]],
  ['I5', 'a successor that was never approved', (() => {
    const before = new Tale().pass(0, 5, { human: true, asked: twice }).decide('approve', 6, 8).catch(10, 15).fail('decline', 20, 25, 22, 'id2').track()
    return [before, new Tale(before, 22).refused('catch', 30, 35, ...refused('approval_required')).track()]
  })()],
  ['I8', 'a cancel by force that only asks', [held().cancel(20, 25, 22, { status: 202, firm: true }).track()]],
  ['I8', 'an end without its time', [held({}).fail('fail', 20, 25, 22).status(30, 35, 'failed', { ...failed(), endedAt: null }).track()]],
  ['I9', 'two successors', [held().fail('fail', 20, 25, 22, 'id2').reissue(30, 35, 32, 'other', { replayed: true }).track()]],
  ['I9', 'a successor of another', failedOnce(tale => tale.status(30, 35, 'pending', { attempt: 2, reissueOf: 'other' }))],
  ['I9', 'an attempt that is counted wrongly', failedOnce(tale => tale.status(30, 35, 'pending', { attempt: 3, reissueOf: 'id' }))],
  ['I9', 'a successor before the end', (() => {
    const [before] = failedOnce(tale => tale)
    return [before!, new Tale(before, 21).status(30, 35, 'pending').track()]
  })()],
  ['I10', 'a payload that two have', (() => {
    const [before, behind] = failedOnce(tale => tale.catch(30, 35, 'carol'))
    return [{ ...before!, operations: [...before!.operations, ...held().catch(40, 45, 'bob', { token: 'k', replayed: true }).operations.slice(-1)] }, behind!]
  })()],
  ['I11', 'a done beside a failure', [held({}).fail('fail', 20, 35, 22).done(21, 34, 23).track()]],
  ['I11', 'a failure beside a cancellation', [held({}).fail('fail', 20, 35, 22).cancel(21, 34, 23, { firm: true }).track()]],
  ['I11', 'two times of the end', [held({}).fail('fail', 20, 25, 22).status(30, 35, 'failed', { ...failed(), endedAt: start + 23 }).track()]],
  ['I12', 'a done after a cancel by force', [held().cancel(20, 25, 22, { firm: true }).done(30, 35, 32).track()]],
  ['I12', 'one that goes on after a cancel by force', [held().cancel(20, 25, 22, { firm: true }).status(30, 35, 'caught', caught(12)).track()]],
  ['I13', 'a heartbeat after its deadline', [heard().beat(5100, 5110, 60_012, 10_105).status(5120, 5130, 'caught', caught(12)).track()]],
  ['I13', 'a heartbeat after the deadline that the one before was told', [heard().beat(4000, 4010, 60_012, 9005).beat(9020, 9030, 60_012, 14_025).status(9040, 9050, 'caught', caught(12)).track()]],
  ['I13', 'a heartbeat that was heard too late, by its own word', [heard().beat(5005, 5025, 60_012, 10_020).status(5120, 5130, 'caught', caught(12)).track()]],
  ['I13', 'a stall before the deadline that was told', [heard().beat(4000, 4010, 60_012, 9005).status(5100, 5110, 'expired', { ...caught(12), ...ended(5012, null), expiredBecause: 'stalled' }).track()]],
]
