import type { Caller } from '../model.ts'
import type { CancelAnswer, EndAnswer, HeartbeatAnswer, PassAnswer } from '../schemas/handoff.ts'
import type { Attempts, EndReply } from '../store/attempts.ts'
import { iso, placeOf, refusal } from './answers.ts'
import type { Answered } from './answers.ts'
import { digestToken, randomToken } from './id.ts'
import { passAnswer } from './service.ts'

export interface AttemptOptions {
  /** The address that links start with. A function, since the port may be known only after listening. */
  baseUrl: () => string
  /** The longest time, in milliseconds from the catch, to which heartbeats can extend the work. */
  maxWorkTtl: number
}

/** What identifies a catcher's request when it is sent again: its bytes, and its Idempotency-Key if it has one. */
export interface Said { raw: Buffer, key: string | undefined }

const nothing = Buffer.alloc(0)

/** All that can happen to a caught handoff except done: what its catcher reports about the work, and what its passer wants. */
export class AttemptService {
  readonly #attempts: Attempts
  readonly #options: AttemptOptions

  constructor (attempts: Attempts, options: AttemptOptions) {
    this.#attempts = attempts
    this.#options = options
  }

  /** @param extendBy seconds @param progress an object's JSON text @returns the answer's JSON */
  async heartbeat (caller: Caller, id: string, extendBy: number | null, progress: Buffer | undefined): Promise<string> {
    const milliseconds = extendBy === null ? null : extendBy * 1000
    const reply = await this.#attempts.heartbeat(placeOf(caller, id), caller.agent, milliseconds, this.#options.maxWorkTtl, progress ?? nothing)
    if (reply.outcome !== 'caught') throw refusal(reply)
    const { deadline, heartbeatDeadline, isCancelRequested, cancelReason } = reply
    const answer: Omit<HeartbeatAnswer, 'cancel_reason'> = {
      handoff_id: id,
      status: 'caught',
      work_expires_at: iso(deadline),
      heartbeat_expires_at: heartbeatDeadline === null ? null : iso(heartbeatDeadline),
      cancel_requested: isCancelRequested,
    }
    return `${JSON.stringify(answer).slice(0, -1)},"cancel_reason":${cancelReason ?? 'null'}}`
  }

  /** @param fault JSON text */
  async fail (caller: Caller, id: string, fault: Buffer, mayRetry: boolean, { raw, key }: Said): Promise<Answered<EndAnswer>> {
    const token = key === undefined ? randomToken() : digestToken('fail', key, raw)
    return endAnswer(id, 'failed', await this.#attempts.fail(placeOf(caller, id), token, caller.agent, mayRetry, fault), key)
  }

  /** @param reason JSON text */
  async decline (caller: Caller, id: string, reason: Buffer, { raw, key }: Said): Promise<Answered<EndAnswer>> {
    const token = key === undefined ? randomToken() : digestToken('decline', key, raw)
    return endAnswer(id, 'declined', await this.#attempts.decline(placeOf(caller, id), token, caller.agent, reason), key)
  }

  /** @param reason JSON text @returns `replayed` if it was already cancelled, or if its catcher goes on for now */
  async cancel (caller: Caller, id: string, byForce: boolean, reason: Buffer | undefined): Promise<Answered<CancelAnswer>> {
    const reply = await this.#attempts.cancel(placeOf(caller, id), caller.agent, byForce, reason ?? nothing)
    if (!('record' in reply)) throw refusal(reply)
    const { endedAt, cancelRequestedAt } = reply.record.extra
    if (reply.outcome === 'requested') return { answer: { handoff_id: id, status: 'caught', cancel_requested_at: iso(cancelRequestedAt!) }, replayed: true }
    return { answer: { handoff_id: id, status: 'cancelled', ended_at: iso(endedAt!) }, replayed: reply.outcome === 'replayed' }
  }

  /** @returns pass's answer for the successor. `isTaken`: the handoff was taken away from its catcher */
  async reissue (caller: Caller, id: string): Promise<Answered<PassAnswer> & { isTaken: boolean }> {
    const reply = await this.#attempts.reissue(placeOf(caller, id), caller.agent)
    if (!('successor' in reply)) throw refusal(reply)
    const { createdAt, expiresAt, approval, extra } = reply.record
    const answer = passAnswer(this.#options.baseUrl(), reply.successor, approval !== 'none', { createdAt, expiresAt, availableAt: extra.availableAt ?? null })
    return { answer, replayed: reply.outcome === 'replayed', isTaken: reply.isTaken }
  }
}

function endAnswer (id: string, status: 'failed' | 'declined', reply: EndReply, key: string | undefined): Answered<EndAnswer> {
  if (!('endedAt' in reply)) throw refusal(reply)
  const answer: EndAnswer = { handoff_id: id, status, ended_at: iso(reply.endedAt) }
  if (reply.successor !== null) answer.reissued_as = reply.successor
  return { answer, replayed: key !== undefined && reply.outcome === 'replayed' }
}
