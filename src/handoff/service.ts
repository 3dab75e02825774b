import { Problem } from '../errors.ts'
import type { ErrorCode } from '../errors.ts'
import type { Handoffs } from '../store/handoffs.ts'
import type { DoneAnswer, PassAnswer, PassBody, StatusAnswer } from '../schemas/handoff.ts'
import { statusAt } from './handoff.ts'
import type { Caller, HandoffRecord } from './handoff.ts'
import { derivedId, digestToken, isId, randomHomeId, randomId, randomToken, tagOf } from './id.ts'
import { spliceAnswer } from './payload.ts'

/** What the service must know of its place in the world. Times in milliseconds. */
export interface ServiceOptions {
  /** The address that links are built on; asked at each use, since a port may be known only after listening. */
  baseUrl: () => string
  defaultExpiresIn: number
}

/** An answer, and whether the operation was recognised as one made before. */
export interface Answered<T> { answer: T, replayed: boolean }

const noResult = Buffer.alloc(0)
/** The token of a pass without Idempotency-Key: its id is random, so whoever passes it again is itself. */
const noToken = '-'

/** Turns what the scripts say into what an agent is told: an answer, or a Problem. */
export class HandoffService {
  readonly #handoffs: Handoffs
  readonly #options: ServiceOptions

  constructor (handoffs: Handoffs, options: ServiceOptions) {
    this.#handoffs = handoffs
    this.#options = options
  }

  /** @param raw the request's bytes, which with the key say whether it is the same request */
  async pass (caller: Caller, body: PassBody, payload: Buffer, raw: Buffer, key: string | undefined): Promise<Answered<PassAnswer>> {
    const { tenant, agent } = caller
    const requireHuman = body.require_human === true
    const id = key !== undefined
      ? derivedId(tenant, agent, requireHuman, key)
      : requireHuman ? randomHomeId(tenant) : randomId()
    const token = key === undefined ? noToken : digestToken('pass', key, raw)
    const expiresIn = body.expires_in == null ? this.#options.defaultExpiresIn : body.expires_in * 1000
    const reply = await this.#handoffs.pass({ tenant, id, tag: tagOf(id), token, passedBy: agent, requireHuman, expiresIn, payload })
    if (reply.outcome === 'reused') throw new Problem('idempotency_key_reused')
    const answer: PassAnswer = {
      handoff_id: id,
      pickup_url: `${this.#options.baseUrl()}/api/catch/${id}`,
      status: 'pending',
      created_at: iso(reply.createdAt),
      expires_at: iso(reply.expiresAt),
    }
    if (requireHuman) answer.approval_url = `${this.#options.baseUrl()}/approvals/${id}`
    return { answer, replayed: key !== undefined && reply.outcome === 'replayed' }
  }

  /** @returns the answer's JSON, with the payload's bytes as they were passed */
  async catch (caller: Caller, id: string, key: string | undefined): Promise<Answered<Buffer>> {
    const place = placeOf(caller, id)
    const token = key === undefined ? randomToken() : digestToken('catch', key, undefined)
    const reply = await this.#handoffs.catch(place, token, caller.agent)
    if (!('payload' in reply)) throw refusal(reply.outcome)
    const answer = spliceAnswer(`{"handoff_id":"${id}","status":"caught",`, reply.payload, `,"created_at":"${iso(reply.createdAt)}"}`)
    return { answer, replayed: key !== undefined && reply.outcome === 'replayed' }
  }

  /**
   * @param result the output's JSON text, where there is one
   * @param raw the request's bytes
   */
  async done (caller: Caller, id: string, result: Buffer | undefined, raw: Buffer, key: string | undefined): Promise<Answered<DoneAnswer>> {
    const place = placeOf(caller, id)
    const token = key === undefined ? randomToken() : digestToken('done', key, raw)
    const reply = await this.#handoffs.done(place, token, caller.agent, result ?? noResult)
    if (!('completedAt' in reply)) throw refusal(reply.outcome)
    const completedAt = iso(reply.completedAt)
    if (reply.outcome === 'already_done') {
      throw new Problem('already_done', { members: { handoff_status: 'done', completed_at: completedAt } })
    }
    return { answer: { handoff_id: id, status: 'done', completed_at: completedAt }, replayed: key !== undefined && reply.outcome === 'replayed' }
  }

  /** @returns the answer's JSON, with the result's bytes as they were given to done */
  async status (caller: Caller, id: string): Promise<Buffer> {
    const reply = await this.#handoffs.status(placeOf(caller, id))
    if (reply.outcome === 'not_found') throw new Problem('not_found')
    const known = JSON.stringify(statusAnswer(id, reply.record, reply.now))
    return spliceAnswer(known.slice(0, -1) + ',"result":', reply.result ?? Buffer.from('null'), '}')
  }
}

function statusAnswer (id: string, record: HandoffRecord, now: number): Omit<StatusAnswer, 'result'> {
  return {
    handoff_id: id,
    status: statusAt(record, now),
    require_human: record.approval !== 'none',
    created_at: iso(record.createdAt),
    expires_at: iso(record.expiresAt),
    caught_at: record.caught && iso(record.caught.at),
    caught_by: record.caught && record.caught.by,
    completed_at: record.completedAt === null ? null : iso(record.completedAt),
    approval: record.approval === 'none' ? null : { state: record.approval, decided_at: null, decided_by: null, note: null },
  }
}

/** Where a handoff of the caller's tenant lies. What can't be an id is answered like one that never was, without asking Redis. */
function placeOf (caller: Caller, id: string) {
  if (!isId(id)) throw new Problem('not_found')
  return { tenant: caller.tenant, id, tag: tagOf(id) }
}

/** The status that each refusal tells of; those without one are no conflict of states. */
const standing: Partial<Record<ErrorCode, string>> = {
  already_caught: 'caught',
  already_done: 'done',
  rejected: 'rejected',
  expired: 'expired',
  approval_required: 'pending',
  not_caught: 'pending',
}

/** A script's refusal carries its error's code. */
function refusal (code: ErrorCode): Problem {
  const status = standing[code]
  return new Problem(code, status === undefined ? {} : { members: { handoff_status: status } })
}

/** Timestamps: ISO 8601 UTC with milliseconds. */
function iso (milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}
