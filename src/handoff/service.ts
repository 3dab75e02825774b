import { Problem } from '../errors.ts'
import type { CatchReply, Handoffs, StatusReply } from '../store/handoffs.ts'
import type { DoneAnswer, PassAnswer, PassBody, StatusAnswer } from '../schemas/handoff.ts'
import { approvalText, iso, placeOf, refusal } from './answers.ts'
import type { Answered } from './answers.ts'
import { keptLength } from './excerpt.ts'
import { deadlineOf, statusAt } from '../model.ts'
import type { Caller, HandoffRecord } from '../model.ts'
import { derivedId, digestToken, randomHomeId, randomId, randomToken, tagOf } from './id.ts'
import type { Members } from './json.ts'
import { joinPayload, spliceAnswer } from './payload.ts'
import type { WaitOptions, Waiter } from './waiter.ts'

/** What the service must know of its place in the world. Times in milliseconds. */
export interface ServiceOptions {
  /** The address that links are built on; asked at each use, since a port may be known only after listening. */
  baseUrl: () => string
  defaultExpiresIn: number
}

/**
 * A pass as it came: its members, cut out of its bytes, which with its key say whether it is the same. And the trace that it came in, which
 * is handed to whoever catches it.
 */
export interface Passed { members: Members, raw: Buffer, traceparent: string | undefined }

/** What a catch answers, and the trace that it was passed in. */
export interface Caught extends Answered<Buffer> { traceparent: string | undefined }

/** What a status request may wait for: that it is caught at least, or that it has ended. */
export type Until = 'caught' | 'done'

const noResult = Buffer.alloc(0)
const noValue = Buffer.from('null')
/** The token of a pass without Idempotency-Key: its id is random, so whoever passes it again is itself. */
const noToken = '-'

/** Turns what the scripts say into what an agent is told: an answer, or a Problem. */
export class HandoffService {
  readonly #handoffs: Handoffs
  readonly #waiter: Waiter
  readonly #options: ServiceOptions

  constructor (handoffs: Handoffs, waiter: Waiter, options: ServiceOptions) {
    this.#handoffs = handoffs
    this.#waiter = waiter
    this.#options = options
  }

  async pass (caller: Caller, body: PassBody, { members, raw, traceparent }: Passed, key: string | undefined): Promise<Answered<PassAnswer>> {
    const { tenant, agent } = caller
    const requireHuman = body.require_human === true
    const id = key !== undefined
      ? derivedId(tenant, agent, requireHuman, key)
      : requireHuman ? randomHomeId(tenant) : randomId()
    const token = key === undefined ? noToken : digestToken('pass', key, raw)
    const expiresIn = body.expires_in == null ? this.#options.defaultExpiresIn : body.expires_in * 1000
    const tag = tagOf(id)
    const listedLength = requireHuman ? keptLength(members.raw('task')!) : 0
    const payload = joinPayload(members)
    const reply = await this.#handoffs.pass({ tenant, id, tag, token, traceparent, passedBy: agent, requireHuman, expiresIn, payload, listedLength })
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
  async catch (caller: Caller, id: string, key: string | undefined, waiting: WaitOptions | null): Promise<Caught> {
    const place = placeOf(caller, id)
    const token = key === undefined ? randomToken() : digestToken('catch', key, undefined)
    const look = () => this.#handoffs.catch(place, token, caller.agent)
    const reply = await (waiting === null ? look() : this.#waiter.wait(this.#handoffs.channelOf(place), waiting, look, untilDecision))
    if (!('payload' in reply)) throw refusal(reply.outcome)
    const approval = reply.decision === null ? '' : `,"approval":${approvalText('approved', reply.decision)}`
    const answer = spliceAnswer(`{"handoff_id":"${id}","status":"caught",`, reply.payload, `,"created_at":"${iso(reply.createdAt)}"${approval}}`)
    return { answer, replayed: key !== undefined && reply.outcome === 'replayed', traceparent: reply.traceparent }
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
  async status (caller: Caller, id: string, until: Until, waiting: WaitOptions | null): Promise<Buffer> {
    const place = placeOf(caller, id)
    const look = () => this.#handoffs.status(place)
    const reply = await (waiting === null
      ? look()
      : this.#waiter.wait(this.#handoffs.channelOf(place), waiting, look, seen => untilReached(seen, until)))
    if (reply.outcome === 'not_found') throw new Problem('not_found')
    const { record, now, decision, result } = reply
    const known = JSON.stringify(statusAnswer(id, record, now)).slice(0, -1)
    return spliceAnswer(`${known},"approval":${approvalText(record.approval, decision)},"result":`, result ?? noValue, '}')
  }
}

/** A catch waits while a person may still decide. */
function untilDecision (reply: CatchReply): number | null {
  return reply.outcome === 'approval_required' ? reply.left : null
}

/** A status waits until what it waits for, or what can only come after it. @returns milliseconds until it expires by itself */
function untilReached (reply: StatusReply, until: Until): number | null {
  if (reply.outcome === 'not_found') return null
  const status = statusAt(reply.record, reply.now)
  if (status !== 'pending' && (status !== 'caught' || until === 'caught')) return null
  return deadlineOf(reply.record) - reply.now
}

function statusAnswer (id: string, record: HandoffRecord, now: number): Omit<StatusAnswer, 'approval' | 'result'> {
  return {
    handoff_id: id,
    status: statusAt(record, now),
    require_human: record.approval !== 'none',
    created_at: iso(record.createdAt),
    expires_at: iso(record.expiresAt),
    caught_at: record.caught && iso(record.caught.at),
    caught_by: record.caught && record.caught.by,
    completed_at: record.completedAt === null ? null : iso(record.completedAt),
  }
}
