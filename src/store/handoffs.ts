import type { Decision, HandoffRecord } from '../model.ts'
import { handoffOf, memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import type { Lanes } from '../redis/lanes.ts'
import { parseDecision, parseRecord, tagged } from './replies.ts'
import type { Scripts } from '../redis/scripts.ts'

/** Milliseconds. */
export interface Lifetimes { workTtl: number, retention: number }

/** A handoff's place: whose it is, its id, and the hash tag of the id's partition. */
export interface Place { tenant: string, id: string, tag: string }

export interface NewHandoff extends Place {
  token: string
  /** The trace that it belongs to, for whoever catches it (W3C Trace Context). */
  traceparent?: string | undefined
  passedBy: string
  requireHuman: boolean
  /** Milliseconds from now. */
  expiresIn: number
  /** Begins with `"task":` and the task. */
  payload: Buffer
  /** Bytes of the task in it that the list of what waits keeps, its closing quote not counted; of no use where nobody is to approve. */
  listedLength: number
}

export type PassReply = { outcome: 'passed' | 'replayed', createdAt: number, expiresAt: number } | { outcome: 'reused' }

export type CatchRefusal = 'not_found' | 'expired' | 'already_caught' | 'already_done' | 'rejected'
export type CatchReply = { outcome: 'caught' | 'replayed', createdAt: number, payload: Buffer, decision: Decision | null, traceparent: string | undefined } |
  /** A person may still decide for `left` milliseconds. */
  { outcome: 'approval_required', left: number } | { outcome: CatchRefusal }

export type DoneRefusal = 'not_found' | 'expired' | 'rejected' | 'not_caught' | 'not_the_catcher'
export type DoneReply = { outcome: 'done' | 'replayed' | 'already_done', completedAt: number } | { outcome: DoneRefusal }

export type StatusReply = { outcome: 'found', now: number, record: HandoffRecord, result: Buffer | null, decision: Decision | null } | { outcome: 'not_found' }

/**
 * `live` are in the partition's index afterwards; the first is due in `untilDue` milliseconds, null where none is. Of those that
 * expired, whose they were and which, where they were to be named.
 */
export interface Swept { lookedAt: number, expired: number, live: number, untilDue: number | null, named: Array<{ tenant: string, id: string }> }

/** The handoffs in Redis: one method a script, and the only place that knows what the scripts' replies look like. */
export class Handoffs {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #workTtl: string
  readonly #retention: string

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, lifetimes: Lifetimes) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#workTtl = String(lifetimes.workTtl)
    this.#retention = String(lifetimes.retention)
  }

  pass (handoff: NewHandoff): Promise<PassReply> {
    const { tag, tenant } = handoff
    const member = memberOf(tenant, handoff.id)
    const keys = this.#liveKeys(tag, member)
    if (handoff.requireHuman) keys.push(this.#keyNames.waiting(tag, tenant))
    const token = handoff.traceparent === undefined ? handoff.token : `${handoff.token}/${handoff.traceparent}`
    const texts = [token, handoff.passedBy, String(handoff.expiresIn), this.#retention, member, String(handoff.listedLength)]
    return this.#lanes.call({ script: this.#scripts.pass, tag, keys, texts, bytes: handoff.payload, decode: readPass })
  }

  catch (place: Place, token: string, agent: string): Promise<CatchReply> {
    const member = memberOf(place.tenant, place.id)
    const texts = [token, agent, this.#workTtl, this.#retention, member]
    return this.#lanes.call({ script: this.#scripts.catch, tag: place.tag, keys: this.#liveKeys(place.tag, member), texts, decode: readCatch })
  }

  /** @param result JSON text; empty for none */
  done (place: Place, token: string, agent: string, result: Buffer): Promise<DoneReply> {
    const member = memberOf(place.tenant, place.id)
    const texts = [token, agent, this.#retention, member]
    return this.#lanes.call({ script: this.#scripts.done, tag: place.tag, keys: this.#liveKeys(place.tag, member), texts, bytes: result, decode: readDone })
  }

  status (place: Place): Promise<StatusReply> {
    const key = this.#keyNames.handoff(place.tag, memberOf(place.tenant, place.id))
    return this.#lanes.call({ script: this.#scripts.status, tag: place.tag, keys: [key], texts: [], decode: readStatus })
  }

  /** Where it is told that a handoff changed. */
  channelOf (place: Place): string {
    return this.#keyNames.handoff(place.tag, memberOf(place.tenant, place.id))
  }

  /** Expires what is due in one partition, at most `limit` handoffs. @param naming are those that expire to be named? */
  sweep (tag: string, limit: number, naming = false): Promise<Swept> {
    const texts = [this.#keyNames.partition(tag), String(limit), naming ? '1' : '0', this.#retention]
    return this.#lanes.call({ script: this.#scripts.sweep, tag, keys: [this.#keyNames.due(tag)], texts, decode: readSweep })
  }

  #liveKeys (tag: string, member: string): string[] {
    return [this.#keyNames.handoff(tag, member), this.#keyNames.due(tag)]
  }
}

function readPass (reply: unknown): PassReply {
  const [outcome, createdAt, expiresAt] = tagged(reply)
  if (outcome === 'reused') return { outcome }
  return { outcome: outcome as 'passed', createdAt: createdAt as number, expiresAt: expiresAt as number }
}

function readCatch (reply: unknown): CatchReply {
  const [outcome, first, payload, decision, traceparent] = tagged(reply)
  if (outcome === 'approval_required') return { outcome, left: first as number }
  if (outcome !== 'caught' && outcome !== 'replayed') return { outcome: outcome as CatchRefusal }
  return {
    outcome,
    createdAt: first as number,
    payload: payload as Buffer,
    decision: parseDecision(decision),
    traceparent: traceparent === undefined ? undefined : String(traceparent),
  }
}

function readDone (reply: unknown): DoneReply {
  const [outcome, completedAt] = tagged(reply)
  if (completedAt === undefined) return { outcome: outcome as DoneRefusal }
  return { outcome: outcome as 'done', completedAt: completedAt as number }
}

function readStatus (reply: unknown): StatusReply {
  const [outcome, now, record, result, decision] = tagged(reply)
  if (outcome === 'not_found') return { outcome }
  return {
    outcome: 'found',
    now: now as number,
    record: parseRecord(record),
    result: (result ?? null) as Buffer | null,
    decision: parseDecision(decision),
  }
}

function readSweep (reply: unknown): Swept {
  const [, lookedAt, expired, live, untilDue, ...members] = tagged(reply)
  return {
    lookedAt: lookedAt as number,
    expired: expired as number,
    live: live as number,
    untilDue: untilDue as number | null,
    named: members.map(handoffOf),
  }
}
