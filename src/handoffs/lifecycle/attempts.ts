import { hasScope } from '../../auth/scopes.ts'
import { operationToken } from '../../core/ids.ts'
import { iso } from '../../core/iso.ts'
import { isBlocked } from '../../core/model.ts'
import type { Caller } from '../../core/model.ts'
import type { CancelAnswer, EndAnswer, HeartbeatAnswer } from '../../core/schemas/attempts.ts'
import type { PassAnswer } from '../../core/schemas/handoffs.ts'
import type { Attempts, EndReply, Power, WorkReport } from '../../store/attempts.ts'
import type { Requester } from '../../store/requester.ts'
import type { AfterService } from './after.ts'
import { placeOf, refusal } from './answers.ts'
import type { Answered } from './answers.ts'
import { passAnswer } from './passed.ts'
import type { CatcherRequest } from './service.ts'

const nothing = Buffer.alloc(0)

type GivingUp = CatcherRequest & WorkReport

interface AttemptOptions {
  /** The address that links start with. A function, since the port may be known only after listening. */
  baseUrl: () => string
  /** The longest time, in milliseconds from the catch, to which heartbeats can extend the work. */
  maxWorkTtl: number
}

/**
 * All that can happen to a caught handoff except done: what its catcher reports about the work, and what its passer
 * wants.
 */
export class AttemptService {
  readonly #attempts: Attempts
  readonly #after: Pick<AfterService, 'reissued'>
  readonly #options: AttemptOptions

  constructor (attempts: Attempts, after: Pick<AfterService, 'reissued'>, options: AttemptOptions) {
    this.#attempts = attempts
    this.#after = after
    this.#options = options
  }

  /** @param extendBy seconds @param progress an object's JSON text @returns the answer's JSON */
  async heartbeat (
    caller: Caller, id: string, extendBy: number | null, progress: Buffer | undefined, report: WorkReport = {}
  ): Promise<string> {
    const milliseconds = extendBy === null ? null : extendBy * 1000
    const reply = await this.#attempts.heartbeat(
      placeOf(caller, id), caller.agent, milliseconds, this.#options.maxWorkTtl, progress ?? nothing, report
    )
    if (reply.outcome !== 'caught') throw refusal(reply)
    const { deadline, heartbeatDeadline, isCancelRequested, cancelReason, isLocked, ask } = reply
    const isResting = ask?.state === 'open'
    const answer: Omit<HeartbeatAnswer, 'cancel_reason' | 'ask' | 'locked'> = {
      handoff_id: id,
      status: 'caught',
      work_expires_at: isResting ? null : iso(deadline),
      heartbeat_expires_at: isResting || heartbeatDeadline === null ? null : iso(heartbeatDeadline),
      cancel_requested: isCancelRequested,
    }
    const asked = ask === null ? '' : `,"ask":{"ask_id":"${ask.id}","state":"${ask.state}"}`
    const locked = isLocked ? ',"locked":true' : ''
    return `${JSON.stringify(answer).slice(0, -1)},"cancel_reason":${cancelReason ?? 'null'}${asked}${locked}}`
  }

  /** @param fault JSON text @param code its code */
  async fail (
    caller: Caller, id: string, fault: Buffer, mayRetry: boolean, { bytes, key, ...report }: GivingUp, code?: string
  ): Promise<Answered<EndAnswer>> {
    const token = operationToken('fail', key, bytes)
    const reply = await this.#attempts.fail(placeOf(caller, id), token, caller.agent, mayRetry, fault, code, report)
    return endAnswer(id, 'failed', reply, key)
  }

  /** @param reason JSON text */
  async decline (
    caller: Caller, id: string, reason: Buffer, { bytes, key, ...report }: GivingUp
  ): Promise<Answered<EndAnswer>> {
    const token = operationToken('decline', key, bytes)
    const reply = await this.#attempts.decline(placeOf(caller, id), token, caller.agent, reason, report)
    return endAnswer(id, 'declined', reply, key)
  }

  /** @param reason JSON text @returns `replayed` if it was already cancelled, or if its catcher goes on for now */
  async cancel (
    caller: Caller, id: string, byForce: boolean, reason: Buffer | undefined
  ): Promise<Answered<CancelAnswer> & OfAnother> {
    const reply = await this.#attempts.cancel(
      placeOf(caller, id), caller.agent, powerOf(caller), byForce, reason ?? nothing
    )
    if (!('record' in reply)) throw refusal(reply)
    const { passedBy, extra: { endedAt, cancelRequestedAt } } = reply.record
    const isAnothers = changesAnothers(caller, passedBy)
    if (reply.outcome === 'requested') {
      const isChanged = reason !== undefined || cancelRequestedAt === reply.now
      return {
        answer: { handoff_id: id, status: 'caught', cancel_requested_at: iso(cancelRequestedAt!) },
        replayed: true,
        ofAnother: isAnothers && isChanged
      }
    }
    const replayed = reply.outcome === 'replayed'
    return {
      answer: { handoff_id: id, status: 'cancelled', ended_at: iso(endedAt!) },
      replayed,
      ofAnother: isAnothers && !replayed
    }
  }

  /** @returns pass's answer for the successor. `isTaken`: the handoff was taken away from its catcher */
  async reissue (
    caller: Caller, id: string, requester: Requester | null
  ): Promise<Answered<PassAnswer> & OfAnother & { isTaken: boolean }> {
    const reply = await this.#attempts.reissue(placeOf(caller, id), caller.agent, powerOf(caller))
    if (!('successor' in reply)) throw refusal(reply)
    const { successor } = reply
    const record = await this.#after.reissued(placeOf(caller, successor), reply.record, requester)
    const { createdAt, expiresAt, approval, passedBy, extra } = record
    const answer = passAnswer(this.#options.baseUrl(), successor, approval !== 'none', {
      createdAt,
      expiresAt,
      availableAt: extra.availableAt ?? null,
      blockedBy: isBlocked(record) ? extra.after!.open : null
    })
    const replayed = reply.outcome === 'replayed'
    return { answer, replayed, ofAnother: !replayed && changesAnothers(caller, passedBy), isTaken: reply.isTaken }
  }
}

/** `ofAnother`: an operator changed what another agent had passed. */
interface OfAnother { ofAnother: boolean }

/** May the caller change any handoff as its passer may? */
function powerOf (caller: Caller): Power {
  return hasScope(caller, 'operate') ? 'any' : 'own'
}

/** Does this need the scope `operate`, for a handoff of this passer? Without `pass` it does for the agent's own too. */
function changesAnothers (caller: Caller, passedBy: string): boolean {
  return powerOf(caller) === 'any' && (caller.agent !== passedBy || !hasScope(caller, 'pass'))
}

function endAnswer (
  id: string, status: 'failed' | 'declined', reply: EndReply, key: string | undefined
): Answered<EndAnswer> {
  if (!('endedAt' in reply)) throw refusal(reply)
  const answer: EndAnswer = { handoff_id: id, status, ended_at: iso(reply.endedAt) }
  if (reply.successor !== null) answer.reissued_as = reply.successor
  return { answer, replayed: key !== undefined && reply.outcome === 'replayed' }
}
