import { TooLarge } from '../core/errors.ts'
import { homeTag } from '../core/ids.ts'
import type { Decision, HandoffRecord } from '../core/model.ts'
import { readChangedRun } from './runs.ts'
import type { ChangedRun } from './runs.ts'
import { handoffOfMember, memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import { FormerReplicas } from './leases.ts'
import type { Lanes } from '../redis/lanes.ts'
import { parseDecision, parseRecord, readCallback, readRefusal, readSeen, tagged } from './replies.ts'
import type { CallbackStands, Refused, RefusedReply, Seen } from './replies.ts'
import { readAlone } from '../redis/scripts.ts'
import type { Lifetimes, Scripts } from '../redis/scripts.ts'

/** A handoff's place: its tenant, its id, and the hash tag of its partition. */
export interface HandoffPlace { tenant: string, id: string, tag: string }

export interface NewHandoff extends HandoffPlace {
  token: string
  /** The trace that it belongs to (W3C Trace Context), for its catcher. */
  traceparent?: string | undefined
  passedBy: string
  requireHuman: boolean
  /** The inbox that it is passed to. */
  to?: string | undefined
  /** Milliseconds from now. */
  expiresIn: number
  /** The options, in the form that lua/pass.lua takes (handoffs/lifecycle/service.ts); empty for a plain handoff. */
  options: string
  /** Begins with `"task":` and the task. The result schema follows it, if there is one. */
  payload: Buffer
}

/** `blockedBy`: how many others it waited for; null for none. */
export type PassReply = {
  outcome: 'passed' | 'replayed'
  createdAt: number
  expiresAt: number
  availableAt: number | null
  blockedBy: number | null
} | { outcome: Refused<'pass', 'passed' | 'replayed'> }

type CatchRefusal = Refused<'catch', 'caught' | 'replayed' | 'larger'>
/** A caught handoff, as its catcher gets it. */
export interface Caught {
  createdAt: number
  payload: Buffer
  decision: Decision | null
  traceparent: string | undefined
  /** Null for a plain handoff. */
  record: HandoffRecord | null
  /** JSON text; null if none was passed. */
  schema: Buffer | null
  /** JSON text; null if there is none. */
  checkpoint: Buffer | null
  /** The handoffs that it comes after, JSON text (handoffs/lifecycle/after.ts); left out if there are none. */
  after?: string
}
interface CaughtReply extends Caught { outcome: 'caught' | 'replayed' }
export type CatchReply = CaughtReply | RefusedReply<CatchRefusal>

/** Why an agent can't report about the work, in the order of the checks (docs/api.md, "Order"). */
export type HolderRefusal = Refused<'done', 'replayed' | 'unchecked'>
type DoneReply = { outcome: 'done', completedAt: number } | { outcome: 'replayed', completedAt: number } |
  /** It was passed with this schema, which the result must satisfy first. */
  { outcome: 'unchecked', digest: string, schema: Buffer } | RefusedReply<HolderRefusal>

/** Agents' texts: the error given to fail or the reason given to decline, the reason given to cancel, the progress. */
export interface AgentTexts {
  fault: string | null
  cancelReason: string | null
  progress: { at: number, text: string } | null
}
/** The inboxes that the key may catch from, null for any; the most bytes of payload and schema; the worker's name. */
interface CatchLimits {
  inboxes?: ReadonlySet<string> | null
  maxBytes?: number | undefined
  worker?: string | undefined
}
type ReadRefusal = Refused<'read', 'caught' | 'replayed' | 'larger'>
type ReadReply = CaughtReply | RefusedReply<ReadRefusal>
export type StatusReply = {
  outcome: 'found'
  result: Buffer | null
  /** How many bytes the result has, if it is longer than was asked for, and left out. */
  longer: number | null
  /** Whether what its catcher said at its end is longer than was asked for, and left out. */
  isFaultLonger: boolean
  texts: AgentTexts | null
  /** The handoffs that it comes after (lua/lib/after.lua, field b); null for none. */
  after: string | null
  callback: CallbackStands | null
} & Seen | { outcome: 'not_found' }

export type LineageReply = { outcome: 'found', record: HandoffRecord, mark: string | null } | { outcome: 'not_found' }

/** A handoff that waits for others, or has ended and left notes there. `isFresh`: it was passed, or ended, just now. */
export interface Blocked { tenant: string, id: string, isFresh: boolean }

/**
 * A sweep call's reply. `live`: how many handoffs are live afterwards; null if it didn't count them. `untilDue`:
 * milliseconds until the sweep is to look again, 0 or below if more is due now; null if nothing is live. `stalled`: how
 * many of the expired missed a heartbeat. `reissued`: how many of them, and of those that weren't done in time, have a
 * successor. `named`: the expired handoffs, if the call names them. `ended`: ended handoffs that have dependents.
 * `runs`: the runs whose counts changed.
 */
export interface Swept {
  lookedAt: number
  expired: number
  live: number | null
  untilDue: number | null
  stalled: number
  reissued: { stalled: number, not_done: number }
  named: Array<{ tenant: string, id: string }>
  ended: Array<{ tenant: string, id: string }>
  blocked: Blocked[]
  runs: ChangedRun[]
}

/** The handoffs in Redis: one method per script. Only this file knows the form of these scripts' replies. */
export class Handoffs {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #retention: string
  readonly #isOneRedis: boolean
  readonly #formerReplicas: FormerReplicas

  /**
   * @param retention milliseconds; the scripts were loaded with the same
   * @param isOneRedis whether one call may use keys of two partitions
   */
  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames, { retention }: Pick<Lifetimes, 'retention'>, isOneRedis: boolean
  ) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#retention = String(retention)
    this.#isOneRedis = isOneRedis
    this.#formerReplicas = new FormerReplicas(lanes, scripts, keyNames)
  }

  pass (handoff: NewHandoff): Promise<PassReply> {
    const { tag, tenant } = handoff
    const member = memberOf(tenant, handoff.id)
    const keys = this.#liveKeys(tag, tenant, member)
    // On one Redis the waiting list is in the home partition.
    const home = handoff.requireHuman && this.#isOneRedis ? homeTag(tenant) : tag
    if (handoff.requireHuman) keys.push(this.#keyNames.waiting(home, tenant))
    if (handoff.to !== undefined) keys.push(this.#keyNames.inbox(tag, tenant, handoff.to))
    const token = handoff.traceparent === undefined ? handoff.token : `${handoff.token}/${handoff.traceparent}`
    const texts = [`${handoff.passedBy} ${token}`, String(handoff.expiresIn)]
    if (handoff.options !== '') {
      texts.push(home === tag || handoff.options === onlyAsks ? handoff.options : `${handoff.options} H${home}`)
    }
    return this.#lanes.call({
      script: this.#scripts.pass,
      tag,
      keys,
      texts,
      bytes: handoff.payload,
      decode: reply => readPass(reply, handoff.expiresIn)
    })
  }

  /** Whether replicas of version 0.2.0 run beside. */
  hasFormerReplicas (): Promise<boolean> { return this.#formerReplicas.areThere() }

  /** Looks up whether this pass was made before, without making it. @returns its reply; null if it wasn't made */
  async passed (handoff: NewHandoff): Promise<PassReply | null> {
    const reply = await this.pass({ ...handoff, options: onlyAsks })
    return reply.outcome === 'fresh' ? null : reply
  }

  /** @throws {TooLarge} it can be caught, but wasn't */
  catch (
    place: HandoffPlace, token: string, agent: string, { inboxes = null, maxBytes, worker }: CatchLimits = {}
  ): Promise<CatchReply> {
    const member = memberOf(place.tenant, place.id)
    const texts = [`${agent} ${token}`]
    const max = maxBytes === readAlone && worker === undefined ? undefined : maxBytes ?? Number.MAX_SAFE_INTEGER
    if (inboxes !== null || max !== undefined) texts.push(...limits(inboxes, max))
    if (worker !== undefined) texts.push(worker)
    const keys = this.#liveKeys(place.tag, place.tenant, member)
    return this.#lanes.call({
      script: this.#scripts.catch, tag: place.tag, keys, texts, decode: readCatch<CatchRefusal>
    })
  }

  /**
   * @param result JSON text; empty for none
   * @param satisfied the digest of the schema that the result was checked against; empty if it wasn't
   */
  done (
    place: HandoffPlace, token: string, agent: string, result: Buffer, satisfied: string, worker?: string
  ): Promise<DoneReply> {
    const member = memberOf(place.tenant, place.id)
    const texts = satisfied === '' && worker === undefined ? [agent, token] : [agent, token, satisfied]
    if (worker !== undefined) texts.push(worker)
    return this.#lanes.call({
      script: this.#scripts.done,
      tag: place.tag,
      keys: this.#liveKeys(place.tag, place.tenant, member),
      texts,
      bytes: result,
      decode: readDone
    })
  }

  /**
   * Reads again what its catcher was given; changes nothing.
   * @throws {TooLarge} its payload has more bytes than `maxBytes`
   */
  read (
    place: HandoffPlace, agent: string, inboxes: ReadonlySet<string> | null, maxBytes?: number
  ): Promise<ReadReply> {
    const key = this.#keyNames.handoff(place.tag, memberOf(place.tenant, place.id))
    const texts = [agent, ...limits(inboxes, maxBytes)]
    const decode = readCatch<ReadRefusal>
    return this.#lanes.call({ script: this.#scripts.read, tag: place.tag, keys: [key], texts, decode })
  }

  /**
   * Hundreds may wait for a result, and wake together: they share a reply, which none of them may change.
   * @param maxBytes how many bytes of the result; left out for any
   * @param maxFault how many bytes of its catcher's error or reason; left out for any
   */
  status (place: HandoffPlace, maxBytes?: number, maxFault?: number): Promise<StatusReply> {
    const key = this.#keyNames.handoff(place.tag, memberOf(place.tenant, place.id))
    const texts = [maxBytes, maxFault].filter(max => max !== undefined).map(String)
    return this.#lanes.share({ script: this.#scripts.status, tag: place.tag, keys: [key], texts, decode: readStatus })
  }

  /** The beginning of the task, a JSON string, enough for 200 characters; null where there is none any more. */
  beginning (place: HandoffPlace): Promise<Buffer | null> {
    const key = this.#keyNames.handoff(place.tag, memberOf(place.tenant, place.id))
    return this.#lanes.call({
      script: this.#scripts.excerpt,
      tag: place.tag,
      keys: [key],
      texts: [],
      decode: reply => (tagged(reply)[1] ?? null) as Buffer | null
    })
  }

  /** Reads a child's parent. Redis reads a root's whole payload. @throws {TooLarge} the payload has more bytes */
  lineage (place: HandoffPlace, maxBytes?: number): Promise<LineageReply> {
    const key = this.#keyNames.handoff(place.tag, memberOf(place.tenant, place.id))
    const texts = maxBytes === undefined ? [] : [String(maxBytes)]
    return this.#lanes.share({ script: this.#scripts.lineage, tag: place.tag, keys: [key], texts, decode: readLineage })
  }

  /** The channel for this handoff's changes. */
  channelOf (place: HandoffPlace): string {
    return this.#keyNames.handoff(place.tag, memberOf(place.tenant, place.id))
  }

  /**
   * Expires due handoffs of one partition: `limit` of them, or a few more, of up to as many tenants.
   * @param naming whether the reply names those that expire @param counting whether it counts many tenants' handoffs
   * @param hasMoved whether the partition has another master than when it was last swept
   */
  sweep (tag: string, limit: number, naming = false, counting = true, hasMoved = false): Promise<Swept> {
    const keys = [this.#keyNames.tenants(tag)]
    const [names, count, moved] = [naming ? '1' : '0', counting ? 'all' : 'few', hasMoved ? '1' : '0']
    const texts = [this.#keyNames.partition(tag), `${limit}`, names, this.#retention, count, moved]
    return this.#lanes.call({ script: this.#scripts.sweep, tag, keys, texts, decode: readSweep })
  }

  #liveKeys (tag: string, tenant: string, member: string): string[] {
    return [this.#keyNames.handoff(tag, member), this.#keyNames.due(tag, tenant)]
  }
}

/** The options of a pass that only asks whether it was made before. */
const onlyAsks = ' ?'

/** The inboxes that a key may catch from, as the scripts search in them: each between spaces. Then how many bytes. */
function limits (inboxes: ReadonlySet<string> | null, maxBytes?: number): string[] {
  const names = inboxes === null ? '' : ` ${[...inboxes].join(' ')} `
  if (maxBytes !== undefined) return [names, String(maxBytes)]
  return inboxes === null ? [] : [names]
}

function readPass (reply: unknown, expiresIn: number): PassReply {
  if (typeof reply === 'number') {
    return { outcome: 'passed', createdAt: reply, expiresAt: reply + expiresIn, availableAt: null, blockedBy: null }
  }
  const [outcome, createdAt, expiresAt, availableAt, blockedBy] = tagged(reply)
  if (createdAt === undefined) return { outcome: outcome as 'reused' }
  return {
    outcome: outcome as 'passed',
    createdAt: createdAt as number,
    expiresAt: expiresAt as number,
    availableAt: (availableAt ?? null) as number | null,
    blockedBy: (blockedBy ?? null) as number | null
  }
}

function readCatch<Refusal extends string> (reply: unknown): CaughtReply | RefusedReply<Refusal> {
  const parts = tagged(reply)
  const [outcome] = parts
  if (outcome === 'larger') throw new TooLarge()
  if (outcome !== 'caught' && outcome !== 'replayed') return readRefusal(parts)
  return { outcome, ...readCaught(parts) }
}

/** A caught handoff: lua/catch.lua's reply, or an item of lua/take.lua's. What comes first isn't read. */
export function readCaught (parts: unknown[]): Caught {
  const [, createdAt, payload, decision, traceparent, record, extra, schema, checkpoint] = parts
  return {
    createdAt: Number(createdAt),
    payload: payload as Buffer,
    decision: parseDecision(decision),
    traceparent: traceparent == null ? undefined : String(traceparent),
    record: extra == null ? null : parseRecord(record, extra),
    schema: (schema ?? null) as Buffer | null,
    checkpoint: (checkpoint ?? null) as Buffer | null,
  }
}

function readDone (reply: unknown): DoneReply {
  if (typeof reply === 'number') return { outcome: 'done', completedAt: reply }
  const parts = tagged(reply)
  const [outcome, first, second] = parts
  if (outcome === 'unchecked') return { outcome, digest: String(first), schema: second as Buffer }
  const refused = readRefusal<HolderRefusal | 'replayed'>(parts)
  return refused.outcome === 'replayed'
    ? { outcome: 'replayed', completedAt: refused.seen!.record.completedAt! }
    : refused as RefusedReply<HolderRefusal>
}

function readStatus (reply: unknown): StatusReply {
  const [outcome, now, record, result, decision, extra, fault, cancelReason, progress, after, ...called] = tagged(reply)
  if (outcome === 'not_found') return { outcome }
  return {
    outcome: 'found',
    ...readSeen(now, record, extra, decision),
    result: typeof result === 'number' ? null : (result ?? null) as Buffer | null,
    longer: typeof result === 'number' ? result : null,
    isFaultLonger: typeof fault === 'number',
    texts: extra === undefined
      ? null
      : {
          fault: typeof fault === 'number' ? null : textOf(fault),
          cancelReason: textOf(cancelReason),
          progress: parseProgress(textOf(progress))
        },
    after: textOf(after),
    callback: readCallback(called),
  }
}

function readLineage (reply: unknown): LineageReply {
  const [outcome, , record, extra, mark] = tagged(reply)
  if (outcome === 'larger') throw new TooLarge()
  return outcome === 'not_found'
    ? { outcome }
    : { outcome: 'found', record: parseRecord(record, extra), mark: textOf(mark) }
}

export function textOf (bytes: unknown): string | null {
  return bytes == null ? null : String(bytes)
}

const none: never[] = []

/** Field `g`. */
export function parseProgress (text: string | null): AgentTexts['progress'] {
  if (text === null) return null
  const space = text.indexOf(' ')
  return { at: Number(text.slice(0, space)), text: text.slice(space + 1) }
}

function readSweep (reply: unknown): Swept {
  const parts = tagged(reply)
  const counts = {
    lookedAt: parts[1] as number,
    expired: parts[2] as number,
    live: parts[3] as number | null,
    untilDue: parts[4] as number | null,
    stalled: parts[5] as number,
    reissued: { stalled: parts[6] as number, not_done: parts[7] as number },
  }
  // Most of the hundreds of calls a second find nothing due.
  if (parts.length === 8) return { ...counts, named: none, ended: none, blocked: none, runs: none }
  const members: unknown[] = parts.slice(8)
  const last = (Array.isArray(members.at(-1)) ? members.pop() : none) as unknown[][]
  const [ended = none, fresh = none, blocked = none, runs = none] = last
  const waiting = (isFresh: boolean) => (member: unknown) => ({ ...handoffOfMember(member), isFresh })
  return {
    ...counts,
    named: members.map(handoffOfMember),
    ended: ended.map(handoffOfMember),
    blocked: [...fresh.map(waiting(true)), ...blocked.map(waiting(false))],
    runs: (runs as unknown[][]).map(readChangedRun),
  }
}
