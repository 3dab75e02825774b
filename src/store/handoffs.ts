import { TooLarge } from '../core/errors.ts'
import type { PayloadBroken } from '../core/errors.ts'
import { homeTag } from '../core/ids.ts'
import type { Decision, HandoffRecord } from '../core/model.ts'
import { memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import { FormerReplicas } from './leases.ts'
import type { Lanes } from '../redis/lanes.ts'
import {
  parseDecision, parseExtra, parseProgress, readCallback, readRefusal, readSeen, sealedRecord, tagged, taskBeginning,
  textOf
} from './replies.ts'
import type { AgentTexts, CallbackStands, Refused, RefusedReply, Seen } from './replies.ts'
import { PayloadKeys } from '../core/payload-keys.ts'
import { Seal } from '../core/seal.ts'
import { readSweep } from './swept.ts'
import type { Swept } from './swept.ts'
import { onlyAsks, sealedPass } from './sealing.ts'
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
  { outcome: 'unchecked', satisfied: string, schema: Buffer } | RefusedReply<HolderRefusal>

/** The inboxes that the key may catch from, null for any; the most bytes of payload and schema; the worker's name. */
interface CatchLimits {
  inboxes?: ReadonlySet<string> | null
  maxBytes?: number | undefined
  worker?: string | undefined
}
type ReadRefusal = Refused<'read', 'caught' | 'replayed' | 'larger'>
type ReadReply = CaughtReply | RefusedReply<ReadRefusal>
interface StatusFound extends Seen {
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
  /** The name of a key that this replica doesn't have, of a text that is null then; null if all are open. */
  lockedBy: string | null
  /** A text that its key doesn't open, and is shown as locked; null for none. */
  broken: PayloadBroken | null
}
export type StatusReply = StatusFound | { outcome: 'not_found' }

/** `mark`: the payload's, if it is a root; where the payload is sealed, it is there instead. */
export type LineageReply =
  { outcome: 'found', record: HandoffRecord, mark: string | null, payload: Buffer | null } | { outcome: 'not_found' }

/** The handoffs in Redis: one method per script. Only this file knows the form of these scripts' replies. */
export class Handoffs {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #retention: string
  readonly #isOneRedis: boolean
  readonly #formerReplicas: FormerReplicas
  readonly #payloadKeys: PayloadKeys

  /**
   * @param retention milliseconds; the scripts were loaded with the same
   * @param isOneRedis whether one call may use keys of two partitions
   */
  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames, { retention }: Pick<Lifetimes, 'retention'>,
    isOneRedis: boolean, payloadKeys = new PayloadKeys()
  ) {
    this.#payloadKeys = payloadKeys
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#retention = String(retention)
    this.#isOneRedis = isOneRedis
    this.#formerReplicas = new FormerReplicas(lanes, scripts, keyNames)
  }

  pass (handoff: NewHandoff): Promise<PassReply> {
    const isSealed = this.#payloadKeys.writes !== undefined
    return this.#pass(isSealed ? sealedPass(handoff, new Seal(this.#payloadKeys, handoff)) : handoff)
  }

  #pass (handoff: NewHandoff): Promise<PassReply> {
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
      texts.push(home === tag ? handoff.options : `${handoff.options} H${home}`)
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
    const reply = await this.pass({ ...handoff, options: onlyAsks, payload: nothing })
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
    const seal = new Seal(this.#payloadKeys, place)
    const decode = (reply: unknown) => readCatch<CatchRefusal>(reply, seal)
    return this.#lanes.call({ script: this.#scripts.catch, tag: place.tag, keys, texts, decode })
  }

  /**
   * @param result JSON text; empty for none
   * @param satisfied the digest of the schema that the result was checked against; empty if it wasn't
   */
  done (
    place: HandoffPlace, token: string, agent: string, result: Buffer, satisfied: string, worker?: string
  ): Promise<DoneReply> {
    const seal = new Seal(this.#payloadKeys, place)
    const member = memberOf(place.tenant, place.id)
    const texts = [agent, seal.token('done', token)]
    if (satisfied !== '' || worker !== undefined) texts.push(satisfied)
    if (worker !== undefined) texts.push(worker)
    return this.#lanes.call({
      script: this.#scripts.done,
      tag: place.tag,
      keys: this.#liveKeys(place.tag, place.tenant, member),
      texts,
      bytes: seal.bytes('result', result),
      decode: reply => readDone(reply, seal)
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
    const seal = new Seal(this.#payloadKeys, place)
    const decode = (reply: unknown) => readCatch<ReadRefusal>(reply, seal)
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
    const decode = (reply: unknown) => readStatus(reply, new Seal(this.#payloadKeys, place, undefined, true))
    return this.#lanes.share({ script: this.#scripts.status, tag: place.tag, keys: [key], texts, decode })
  }

  /** The beginning of the task, a JSON string, enough for 200 characters; null where there is none any more. */
  beginning (place: HandoffPlace): Promise<Buffer | null> {
    const key = this.#keyNames.handoff(place.tag, memberOf(place.tenant, place.id))
    return this.#lanes.call({
      script: this.#scripts.excerpt,
      tag: place.tag,
      keys: [key],
      texts: [],
      decode: reply => readBeginning(reply, new Seal(this.#payloadKeys, place))
    })
  }

  /** Reads a child's parent. Redis reads a root's whole payload. @throws {TooLarge} the payload has more bytes */
  lineage (place: HandoffPlace, maxBytes?: number): Promise<LineageReply> {
    const key = this.#keyNames.handoff(place.tag, memberOf(place.tenant, place.id))
    const texts = maxBytes === undefined ? [] : [String(maxBytes)]
    const decode = (reply: unknown) => readLineage(reply, new Seal(this.#payloadKeys, place))
    return this.#lanes.share({ script: this.#scripts.lineage, tag: place.tag, keys: [key], texts, decode })
  }

  /** What stands for a digest in the marks of a line of work (`PayloadKeys.marks`). @param root its first handoff */
  marksIn (tenant: string, root: string): (digest: string) => [string, ...string[]] {
    const seal = new Seal(this.#payloadKeys, { tenant, id: root })
    return digest => seal.marks('loop', digest)
  }

  /** The channel for this handoff's changes. */
  channelOf (place: HandoffPlace): string {
    return this.#keyNames.handoff(place.tag, memberOf(place.tenant, place.id))
  }

  /**
   * Expires due handoffs of one partition: `limit` of them, or a few more, of up to as many tenants.
   * @param naming whether the reply names those that expire @param counting whether it counts many tenants' handoffs
   * @param hasMoved whether the partition may have another master than when it was last swept
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

const nothing = Buffer.alloc(0)

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

function readCatch<Refusal extends string> (reply: unknown, seal: Seal): CaughtReply | RefusedReply<Refusal> {
  const parts = tagged(reply)
  const [outcome] = parts
  if (outcome === 'larger') throw new TooLarge()
  if (outcome !== 'caught' && outcome !== 'replayed') return readRefusal(parts, seal)
  return { outcome, ...readCaught(parts, seal) }
}

/** A caught handoff: lua/catch.lua's reply, or an item of lua/take.lua's. What comes first isn't read. */
export function readCaught (parts: unknown[], seal: Seal): Caught {
  const [, createdAt, payload, decision, traceparent, record, extra, schema, checkpoint] = parts
  const parsed = extra == null ? null : sealedRecord(record, extra, seal)
  const caught: Caught = {
    createdAt: Number(createdAt),
    payload: seal.open('payload', payload as Buffer),
    decision: parseDecision(decision, seal),
    traceparent: traceparent == null ? undefined : String(traceparent),
    record: parsed,
    schema: schema == null ? null : seal.open('schema', schema as Buffer),
    checkpoint: checkpoint == null ? null : seal.open('checkpoint', checkpoint as Buffer),
  }
  // The script has looked. But the decision may be another by now.
  seal.refuseIfLocked()
  return caught
}

function readDone (reply: unknown, seal: Seal): DoneReply {
  if (typeof reply === 'number') return { outcome: 'done', completedAt: reply }
  const parts = tagged(reply)
  const [outcome, first, second, extra] = parts
  if (outcome === 'unchecked') {
    if (extra != null) seal.first = parseExtra(String(extra)).first ?? seal.first
    return { outcome, satisfied: String(first), schema: seal.open('schema', second as Buffer) }
  }
  const refused = readRefusal<HolderRefusal | 'replayed'>(parts, seal)
  return refused.outcome === 'replayed'
    ? { outcome: 'replayed', completedAt: refused.seen!.record.completedAt! }
    : refused as RefusedReply<HolderRefusal>
}

function readStatus (reply: unknown, seal: Seal): StatusReply {
  const [outcome, now, record, result, decision, extra, fault, cancelReason, progress, after, ...called] = tagged(reply)
  if (outcome === 'not_found') return { outcome }
  const seen = readSeen(now, record, extra, decision, seal)
  const status: StatusFound = {
    outcome: 'found',
    ...seen,
    result: typeof result === 'number' ? null : seal.tryOpen('result', (result ?? null) as Buffer | null),
    longer: typeof result === 'number' ? result : null,
    isFaultLonger: typeof fault === 'number',
    texts: extra === undefined
      ? null
      : {
          fault: typeof fault === 'number' ? null : seal.tryText('fault', (fault ?? null) as Buffer | null),
          cancelReason: seal.tryText('cancel', (cancelReason ?? null) as Buffer | null),
          progress: parseProgress(textOf(progress), seal)
        },
    after: textOf(after),
    callback: readCallback(called),
    lockedBy: null,
    broken: null
  }
  status.lockedBy = seal.lockedBy
  status.broken = seal.broken
  return status
}

/** Null too where it is locked. */
function readBeginning (reply: unknown, seal: Seal): Buffer | null {
  const [, task, extra] = tagged(reply)
  if (extra != null) seal.first = parseExtra(String(extra)).first ?? seal.first
  return taskBeginning(task as Buffer | null, seal)
}

function readLineage (reply: unknown, seal: Seal): LineageReply {
  const [outcome, , record, extra, mark, payload] = tagged(reply)
  if (outcome === 'larger') throw new TooLarge()
  if (outcome === 'not_found') return { outcome }
  const found = { record: sealedRecord(record, extra, seal), mark: textOf(mark) }
  return { outcome: 'found', ...found, payload: payload == null ? null : seal.open('payload', payload as Buffer) }
}
