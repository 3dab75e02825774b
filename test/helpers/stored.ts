import type { Modelled } from './modelled.ts'
import { digest, payload, task } from './moments.ts'
import type { Hash, State } from './moments.ts'

/** How the model's handoffs lie in Redis: a second definition of what the scripts write, by lua/lib/record.lua. */

const retention = 5000
const week = 7 * 86_400_000

/** Each as a state, in the order in which they were made. */
export function stored (handoff: Modelled, now: number): State {
  const { first, passed, caught, ended, decision, finished, approval } = handoff
  // What is over lies there as before until it is swept.
  const status = handoff.status === 'expired' && handoff.isLive ? caught ? 'caught' : 'pending' : handoff.status
  const isWaiting = status === 'pending' && approval === 'waiting'
  const x = extraOf(handoff, status)
  const isFirst = first.reissueOf === undefined
  const record = [
    `${x === undefined ? '' : '2:'}${status}`, approval, first.createdAt, first.expiresAt, handoff.passedBy, isFirst ? 'ptok' : '-',
    ...caught ? [caught.at, caught.deadline, caught.by, caught.key] : [],
    ...status === 'done' ? [ended!.at, finished!.key] : [],
  ]
  const isFailed = status === 'failed' || status === 'declined'
  const { at, ...progress } = (handoff.progress ?? {}) as { at?: string }
  const fields = {
    s: record.join(' '),
    x,
    p: handoff.hasPayload ? payload : status === 'done' ? ended!.told : handoff.reissuedAs ? undefined : '',
    t: isWaiting ? task : undefined,
    d: decision && `${Date.parse(decision.decided_at)} ${decision.decided_by} ${handoff.decidedWith}${decision.digest ? `/${digest}` : ''} ${decision.note}`,
    h: passed.require_human ? digest : undefined,
    r: passed.schema,
    e: isFailed ? ended!.told : undefined,
    c: handoff.cancelReason,
    g: at && `${Date.parse(at)} ${JSON.stringify(progress)}`,
  }
  const isTriedAgain = first.attempt < (passed.max_attempts ?? 1)
  const until = !handoff.isLive ? handoff.keptFrom : caught ? caught.deadline + (isTriedAgain ? week : 0) : first.expiresAt
  return {
    now,
    hash: Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as unknown as Hash,
    expires: until + retention,
    ...handoff.isLive && { due: handoff.dueAt },
    ...isWaiting && { waiting: first.createdAt },
    ...handoff.isFailed && { failed: ended!.at },
  }
}

/** Field x; undefined for a plain handoff. */
function extraOf (handoff: Modelled, status: string): string | undefined {
  const { first, passed, caught, ended, finished } = handoff
  const isEnded = ['failed', 'declined', 'cancelled'].includes(status)
  const ms = (seconds: number | undefined) => seconds === undefined ? undefined : Math.round(seconds * 1000)
  const words = {
    n: first.attempt > 1 ? first.attempt : undefined,
    o: first.reissueOf,
    a: first.availableAt,
    w: ms(passed.work_within),
    b: ms(passed.heartbeat_within),
    m: passed.max_attempts,
    d: ms(passed.retry_delay),
    f: caught?.isExtended ? 1 : undefined,
    h: caught?.heartbeat,
    v: caught?.heardAt,
    q: handoff.cancelRequestedAt,
    e: isEnded ? ended!.at : undefined,
    y: isEnded ? ended!.by : undefined,
    k: isEnded ? finished?.key ?? '-' : undefined,
    i: handoff.reissuedAs ?? undefined,
    F: first.firstId,
  }
  const text = (passed.words ?? '') + Object.entries(words).map(([letter, value]) => value === undefined ? '' : ` ${letter}${value}`).join('')
  return text === '' && handoff.progress === undefined ? undefined : text
}
