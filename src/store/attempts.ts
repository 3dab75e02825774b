import { askAt, hasNext } from '../core/model.ts'
import type { AskState, HandoffRecord } from '../core/model.ts'
import type { HolderRefusal, HandoffPlace } from './handoffs.ts'
import { memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import { PayloadKeys } from '../core/payload-keys.ts'
import { Seal } from '../core/seal.ts'
import { whileOriginMoves } from './sealing.ts'
import type { OtherOrigin } from './sealing.ts'
import type { Lanes } from '../redis/lanes.ts'
import { parseRecord, readRefusal, readSeen, tagged } from './replies.ts'
import type { Refused, RefusedReply, Seen } from './replies.ts'
import type { Lifetimes, Scripts } from '../redis/scripts.ts'

/** Times in milliseconds. `heartbeatDeadline` is null if no heartbeats are required; `cancelReason` is JSON text. */
type HeartbeatReply = {
  outcome: 'caught'
  deadline: number
  heartbeatDeadline: number | null
  isCancelRequested: boolean
  cancelReason: Buffer | null
  /** This replica doesn't have the key of the reason, which is null then. */
  isLocked: boolean
  /** Its catcher's question, and how it stands; null if there was none. */
  ask: { id: string, state: AskState } | null
} | RefusedReply<HolderRefusal>

/** What a catcher's report has besides: what its worker calls itself, and the checkpoint, JSON text. */
export interface WorkReport { worker?: string | undefined, checkpoint?: Buffer | undefined }

/** `successor` is null if there is none. */
export type EndReply = {
  outcome: 'ended' | 'replayed'
  endedAt: number
  successor: string | null
} | RefusedReply<HolderRefusal>

type Cancelled = 'cancelled' | 'replayed' | 'requested'
type CancelReply = { outcome: Cancelled } & Seen | RefusedReply<Refused<'cancel', Cancelled>>

/** `isTaken`: it was taken away from its catcher. */
type ReissueReply = {
  outcome: 'reissued' | 'replayed'
  successor: string
  record: HandoffRecord
  isTaken: boolean
} | RefusedReply<Refused<'reissue', 'reissued' | 'replayed'>>

/** Whose handoffs an agent may cancel and reissue: its own, or as an operator anybody's. */
export type Power = 'own' | 'any'

const powers = { own: '0', any: '1', overlap: '1', pending: '2', ended: '2' } as const

/** All that can happen to a caught handoff except done, and its next attempt, in Redis. */
export class Attempts {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #retention: string
  readonly #payloadKeys: PayloadKeys
  /** The agents of a tenant whose live handoffs are limited. */
  limited: (tenant: string) => Iterable<string> = () => []

  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames, { retention }: Lifetimes, payloadKeys = new PayloadKeys()
  ) {
    this.#payloadKeys = payloadKeys
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#retention = String(retention)
  }

  /**
   * @param extendBy milliseconds from now; null to keep the work's deadline
   * @param maxWorkTtl milliseconds
   * @param progress JSON text; empty for none
   */
  heartbeat (
    place: HandoffPlace, agent: string, extendBy: number | null, maxWorkTtl: number, progress: Buffer,
    { worker = '', checkpoint }: WorkReport = {}
  ): Promise<HeartbeatReply> {
    const key = this.#keyNames.handoff(place.tag, memberOf(place.tenant, place.id))
    const seal = new Seal(this.#payloadKeys, place)
    const said = seal.word('progress', progress.toString())
    return whileOriginMoves(seal, () => {
      const texts = [agent, this.#retention, extendBy === null ? '' : String(extendBy), String(maxWorkTtl), worker]
      const bytes = withCheckpoint(texts, said, checkpoint, seal)
      return this.#lanes.call({
        script: this.#scripts.heartbeat,
        tag: place.tag,
        keys: [key],
        texts,
        bytes,
        decode: reply => readHeartbeat(reply, seal)
      })
    })
  }

  /** @param mayRetry may a successor be made? @param fault JSON text @param code the fault's, by which it is found */
  fail (
    place: HandoffPlace, token: string, agent: string, mayRetry: boolean, fault: Buffer, code = '',
    report: WorkReport = {}
  ): Promise<EndReply> {
    return this.#giveUp('failed', place, token, agent, mayRetry, fault, code, report)
  }

  /** @param reason JSON text */
  decline (
    place: HandoffPlace, token: string, agent: string, reason: Buffer, report: WorkReport = {}
  ): Promise<EndReply> {
    return this.#giveUp('declined', place, token, agent, true, reason, '', report)
  }

  #giveUp (
    became: 'failed' | 'declined', place: HandoffPlace, token: string, agent: string, mayRetry: boolean, text: Buffer,
    code: string, { worker = '', checkpoint }: WorkReport
  ): Promise<EndReply> {
    const member = memberOf(place.tenant, place.id)
    const seal = new Seal(this.#payloadKeys, place)
    const said = seal.word('fault', text.toString())
    return whileOriginMoves(seal, () => {
      const made = seal.token(became, token)
      const texts = [became, made, agent, this.#retention, member, mayRetry ? '1' : '0', code, worker]
      const bytes = withCheckpoint(texts, said, checkpoint, seal)
      return this.#lanes.call({
        script: this.#scripts['give-up'],
        tag: place.tag,
        keys: this.#keys(place),
        texts,
        bytes,
        decode: reply => readEnd(reply, mayRetry, seal)
      })
    })
  }

  /**
   * @param may whose handoffs the agent may cancel; `pending`: an operator cancels it only if it is pending;
   * `overlap`: the service itself cancels, without an agent
   * @param reason JSON text; empty for none
   */
  cancel (
    place: HandoffPlace, agent: string, may: Power | 'pending' | 'overlap', byForce: boolean, reason: Buffer
  ): Promise<CancelReply> {
    const seal = new Seal(this.#payloadKeys, place)
    const texts = [agent, this.#retention, memberOf(place.tenant, place.id), powers[may], byForce ? '1' : '0']
    const bytes = Buffer.from(seal.word('cancel', reason.toString()))
    const decode = (reply: unknown) => readCancel(reply, seal)
    return this.#lanes.call({
      script: this.#scripts.cancel, tag: place.tag, keys: this.#keys(place), texts, bytes, decode
    })
  }

  /** @param may whose handoffs the agent may reissue; `ended`: an operator reissues it only if it has ended */
  reissue (place: HandoffPlace, agent: string, may: Power | 'ended'): Promise<ReissueReply> {
    const texts = [agent, this.#retention, memberOf(place.tenant, place.id), powers[may]]
    const limited = [...this.limited(place.tenant)]
    if (limited.length > 0) texts.push(` ${limited.join(' ')} `)
    const decode = (reply: unknown) => readReissue(reply, new Seal(this.#payloadKeys, place))
    return this.#lanes.call({
      script: this.#scripts.reissue, tag: place.tag, keys: this.#keys(place), texts, decode
    })
  }

  #keys ({ tag, tenant, id }: HandoffPlace): string[] {
    return [this.#keyNames.handoff(tag, memberOf(tenant, id)), this.#keyNames.due(tag, tenant)]
  }
}

/**
 * The last argument: a text, and behind it the checkpoint if there is one. Then the text's length comes before, and
 * what the checkpoint is bound to.
 */
function withCheckpoint (texts: string[], said: string, checkpoint: Buffer | undefined, seal: Seal): Buffer {
  const text = Buffer.from(said)
  if (checkpoint === undefined) return text
  texts.push(`${text.length} ${seal.origin}`)
  return Buffer.concat([text, seal.bytes('checkpoint', checkpoint)])
}

function readHeartbeat (reply: unknown, seal: Seal): HeartbeatReply | OtherOrigin {
  const parts = tagged(reply)
  const [outcome, deadline, beat, isCancelRequested, cancelReason, text, extra, now] = parts
  if (outcome === 'origin') return { outcome, first: String(deadline) }
  if (outcome !== 'caught') return readRefusal(parts, seal)
  const record = extra == null ? null : parseRecord(text, extra)
  const ask = record?.extra.ask
  const reason = seal.tryOpen('cancel', (cancelReason ?? null) as Buffer | null)
  return {
    outcome,
    deadline: deadline as number,
    heartbeatDeadline: (beat ?? null) as number | null,
    isCancelRequested: isCancelRequested === 1,
    cancelReason: reason,
    isLocked: seal.isLocked,
    ask: ask === undefined ? null : { id: ask.id, state: askAt(ask, record!, now as number) },
  }
}

/**
 * A repeated operation reports only the successor that it made itself, not one that the passer made later.
 */
function readEnd (reply: unknown, mayRetry: boolean, seal: Seal): EndReply | OtherOrigin {
  const parts = tagged(reply)
  const [outcome, endedAt, successor] = parts
  if (outcome === 'origin') return { outcome, first: String(endedAt) }
  if (outcome === 'failed' || outcome === 'declined') {
    return { outcome: 'ended', endedAt: endedAt as number, successor: successor == null ? null : String(successor) }
  }
  const refused = readRefusal<HolderRefusal | 'replayed'>(parts, seal)
  if (refused.outcome !== 'replayed') return refused as RefusedReply<HolderRefusal>
  const { record } = refused.seen!
  return {
    outcome: 'replayed',
    endedAt: record.extra.endedAt!,
    successor: mayRetry && hasNext(record) ? record.extra.reissuedAs! : null
  }
}

function readCancel (reply: unknown, seal: Seal): CancelReply {
  const parts = tagged(reply)
  const [outcome, now, record, extra] = parts
  if (outcome !== 'cancelled' && outcome !== 'replayed' && outcome !== 'requested') return readRefusal(parts, seal)
  return { outcome, ...readSeen(now, record, extra, null, seal) }
}

function readReissue (reply: unknown, seal: Seal): ReissueReply {
  const parts = tagged(reply)
  const [outcome, successor, record, extra, isTaken] = parts
  if (outcome !== 'reissued' && outcome !== 'replayed') return readRefusal(parts, seal)
  return { outcome, successor: String(successor), record: parseRecord(record, extra), isTaken: isTaken === 1 }
}
