import { hash, randomInt, randomUUID } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Scope } from '../core/model.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { ScriptName } from '../redis/outcomes.ts'
import type { Scripts } from '../redis/scripts.ts'
import type { KeyNames } from './key-names.ts'
import { LimitRecords, authorBytes } from './limits.ts'
import { tagged } from './replies.ts'
import { TokenBlocks } from './token-blocks.ts'

/** How long a key is still listed after it ended or was revoked, in milliseconds. */
export const keyRetention = 30 * 86400_000
/** How many keys one call lists. */
const page = 200
/** How many changes one call reports (lua/key-changes.lua). */
const changesAtOnce = 100

/** A key as Redis keeps it, without its secrets' digests. Times are milliseconds since the epoch, by Redis's clock. */
export interface KeyRecord {
  id: string
  tenant: string
  agent: string
  scopes: Scope[]
  createdAt: number
  /** When the key ends. */
  endsAt: number | null
  rotatedAt: number | null
  /** When the secret before the last rotation ends. */
  previousEndsAt: number | null
  revokedAt: number | null
  /** The key's own rate limit; null if the service's applies. */
  ratePerMinute: number | null
  /** The inboxes that it may catch from; null for any of its tenant. */
  inboxes: string[] | null
}

export interface NewKey {
  /** Like the other names: 1 to 64 of A-Z a-z 0-9 . _ - */
  tenant: string
  agent: string
  scopes: readonly Scope[]
  /** Milliseconds from now; null for no end. */
  expiresIn: number | null
  ratePerMinute: number | null
  /** Names like the others; left out for any inbox. */
  inboxes?: readonly string[] | undefined
  /** The key's maker, for the log: user@host. */
  by: string
}

/** Changes of a key: null removes a member; members that are left out stay. */
export interface KeyUpdate {
  scopes?: readonly Scope[] | undefined
  /** Milliseconds from now; null for no end. */
  expiresIn?: number | null | undefined
  ratePerMinute?: number | null | undefined
  inboxes?: readonly string[] | null | undefined
}

/** `now`: Redis's clock at the change. */
type UpdateReply = { outcome: 'updated', now: number, record: KeyRecord } | {
  outcome: 'not_found' | 'revoked' | 'ended'
}
type RotateReply = { outcome: 'rotated', key: string, record: KeyRecord } | {
  outcome: 'not_found' | 'revoked' | 'ended'
}
type RevokeReply = { outcome: 'revoked' | 'already_revoked', at: number } | { outcome: 'not_found' }

/** A key with the digests of its secrets, which stay in the store. `now` is Redis's clock at the read. */
export interface Lookup { now: number, record: KeyRecord, digest: string, previous: string | null }

/**
 * A change of a key; or of a limit or a blocked subject, which have no id. The agent is empty for a tenant's limit. So
 * are both for a subject and a limit of live handoffs, which version 0.2.0 doesn't know.
 */
export interface KeyChange {
  id?: string
  tenant: string
  agent: string
  action: 'created' | 'updated' | 'rotated' | 'revoked' | 'limit set' | 'limit removed' | 'max_live set' |
    'max_live removed' | 'token blocked' | 'token unblocked'
  /** Requests a minute. */
  limit?: string
  /** Whose limit of live handoffs (store/limits.ts), and how many; empty for any number. */
  of?: string
  max_live?: string
  /** Whose tokens (store/token-blocks.ts), and until when; empty for no longer. */
  subject?: string
  until?: string
  by: string
}
/** @see KeyRecords.changes */
interface KeyChanges { now: number, lost: boolean, last: string, entries: KeyChange[], more: boolean }

/**
 * The API keys in Redis: one method per script. All are in one partition: they are few, replicas look them up in their
 * own memory, and so one call reports all changes. A secret leaves this class once, when it is made; Redis keeps only
 * SHA-256 digests.
 */
export class KeyRecords {
  /** Limits besides those of keys, in the same partition and with the same log. */
  readonly limits: LimitRecords
  /** Whose tokens are blocked: likewise. */
  readonly blocks: TokenBlocks
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #tag: string

  /** @param tag of the partition with the keys */
  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, tag: string) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#tag = tag
    this.limits = new LimitRecords(lanes, scripts, keyNames, tag)
    this.blocks = new TokenBlocks(lanes, scripts, keyNames, tag)
  }

  /** @returns the key with its secret, which can't be read again later @throws {Unavailable} */
  async create (
    { tenant, agent, scopes, expiresIn, ratePerMinute, inboxes, by }: NewKey
  ): Promise<{ id: string, key: string, record: KeyRecord }> {
    const id = newKeyId()
    const key = newSecret(id)
    const keys = [this.#keyOf(id), this.#keyNames.apiKeys(this.#tag), this.#keyNames.apiKeysOver(this.#tag), this.#log]
    const texts = [
      id, digest(key), tenant, agent, scopes.join(), String(expiresIn ?? ''), String(ratePerMinute ?? ''),
      inboxes?.join() ?? '', String(keyRetention)
    ]
    const [outcome, fields] = await this.#run('key-create', keys, texts, authorBytes(by))
    if (outcome !== 'created') throw new Error('a new random key id already exists: the random numbers are not random')
    return { id, key, record: parseFields(id, fields).record }
  }

  /** All keys, oldest first, including those that ended or were revoked in the last 30 days. @throws {Unavailable} */
  async list (): Promise<KeyRecord[]> {
    const records: KeyRecord[] = []
    for (let more = true; more;) {
      const part = await this.listed(records.at(-1))
      records.push(...part.records)
      more = part.more
    }
    return records
  }

  /** A part of that list. @param last the one before it; left out at the start @throws {Unavailable} */
  async listed (last?: Pick<KeyRecord, 'createdAt' | 'id'>): Promise<{ records: KeyRecord[], more: boolean }> {
    const texts = [String(last?.createdAt ?? 0), last?.id ?? '', String(page), this.#keyNames.partition(this.#tag)]
    const [, more, ...parts] = await this.#run('key-list', [this.#keyNames.apiKeys(this.#tag)], texts)
    const records: KeyRecord[] = []
    for (let at = 0; at < parts.length; at += 2) records.push(parseFields(String(parts[at]), parts[at + 1]).record)
    return { records, more: more === 1 }
  }

  /** @returns null if there is no such key, or no longer @throws {Unavailable} */
  async find (id: string): Promise<KeyRecord | null> {
    return (await this.lookUp(id))?.record ?? null
  }

  /** Like `find`, with the digests of the secrets. */
  async lookUp (id: string): Promise<Lookup | null> {
    if (!isKeyId(id)) return null
    const [outcome, now, fields] = await this.#run('key-find', [this.#keyOf(id)], [])
    return outcome === 'not_found' ? null : { now: now as number, ...parseFields(id, fields) }
  }

  /** Changes a key's rights and its end. @throws {Unavailable} */
  async update (
    id: string, { scopes, expiresIn, ratePerMinute, inboxes }: KeyUpdate, by: string
  ): Promise<UpdateReply> {
    if (!isKeyId(id)) return { outcome: 'not_found' }
    const given = (value: { toString (): string } | null | undefined) => value === null ? '*' : String(value ?? '')
    const change = [scopes?.join() ?? '', given(expiresIn), given(ratePerMinute), given(inboxes)]
    const [outcome, now, fields] = await this.#change(id, 'updated', randomUUID(), change, by)
    if (outcome !== 'updated') return refusal(outcome)
    return { outcome, now: now as number, record: parseFields(id, fields).record }
  }

  /**
   * Gives a key a new secret.
   * @param grace how long the present secret still works, in milliseconds; 0: not at all. The one before it stops at
   * once.
   * @throws {Unavailable}
   */
  async rotate (id: string, grace: number, by: string): Promise<RotateReply> {
    if (!isKeyId(id)) return { outcome: 'not_found' }
    const key = newSecret(id)
    const [outcome, , fields] = await this.#change(id, 'rotated', digest(key), [String(grace), '', '', ''], by)
    if (outcome !== 'rotated') return refusal(outcome)
    return { outcome, key, record: parseFields(id, fields).record }
  }

  /** Revokes a key. @throws {Unavailable} */
  async revoke (id: string, by: string): Promise<RevokeReply> {
    if (!isKeyId(id)) return { outcome: 'not_found' }
    const [outcome, at] = await this.#change(id, 'revoked', randomUUID(), ['', '', '', ''], by)
    return at === undefined ? { outcome: 'not_found' } : { outcome: outcome as 'revoked', at: at as number }
  }

  /**
   * The changes of keys since the last call, at most 100 at once.
   * @param after the `last` of the previous answer; empty at first
   * @returns `lost`: the log has lost changes since, so forget all that you know about keys and go on from `last`.
   * `more`: there may be more.
   * @throws {Unavailable}
   */
  async changes (after: string): Promise<KeyChanges> {
    const [outcome, now, given] = await this.#run('key-changes', [this.#log], [after])
    if (outcome === 'lost') return { now: now as number, lost: true, last: String(given), entries: [], more: false }
    const entries = given as Array<[id: Buffer, fields: Buffer[]]>
    return {
      now: now as number,
      lost: false,
      last: String(entries.at(-1)?.[0] ?? after),
      entries: entries.map(([, fields]) => readFields(fields) as unknown as KeyChange),
      more: entries.length === changesAtOnce,
    }
  }

  /** The channel of their changes. */
  get channel (): string {
    return this.#log
  }

  get #log (): string {
    return this.#keyNames.apiKeysLog(this.#tag)
  }

  #change (id: string, action: 'updated' | 'rotated' | 'revoked', token: string, change: string[], by: string) {
    const keys = [this.#keyOf(id), this.#keyNames.apiKeysOver(this.#tag), this.#log]
    return this.#run('key-change', keys, [id, action, token, String(keyRetention), ...change], authorBytes(by))
  }

  #run (name: ScriptName, keys: string[], texts: string[], bytes?: Buffer) {
    return this.#lanes.call({ script: this.#scripts[name], tag: this.#tag, keys, texts, bytes, decode: tagged })
  }

  #keyOf (id: string): string {
    return this.#keyNames.apiKey(this.#tag, id)
  }
}

/** Why a key that ended or was revoked can't be changed. */
function refusal (outcome: string) {
  return { outcome: outcome === 'already_revoked' ? 'revoked' : outcome as 'not_found' | 'ended' } as const
}

/** Reads names and values, which alternate. */
function readFields (parts: readonly Buffer[]): Record<string, string> {
  const fields: Record<string, string> = {}
  for (let at = 0; at < parts.length; at += 2) fields[String(parts[at])] = String(parts[at + 1])
  return fields
}

/** Reads a key's fields; lua/key-create.lua lists them. */
function parseFields (id: string, parts: unknown): Omit<Lookup, 'now'> {
  const fields = readFields(parts as Buffer[])
  const time = (name: string) => fields[name] === undefined ? null : Number(fields[name])
  const record: KeyRecord = {
    id,
    tenant: fields.tenant as string,
    agent: fields.agent as string,
    scopes: (fields.scopes as string).split(',') as Scope[],
    createdAt: Number(fields.created),
    endsAt: time('ends'),
    rotatedAt: time('rotated'),
    previousEndsAt: time('previous_ends'),
    revokedAt: time('revoked'),
    ratePerMinute: time('rate'),
    inboxes: fields.inboxes?.split(',') ?? null,
  }
  return { record, digest: fields.digest as string, previous: fields.previous ?? null }
}

/**
 * A key's secret is `handoff_<id>_<rest>`: the id of 12 characters, then 32 random characters (190 bits) and 6 of a
 * checksum over all that comes before. The prefix lets secret scanners find leaked keys. The checksum shows at once,
 * without a call, that a key was mistyped or cut off. It is no protection: anyone can compute it.
 */
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const prefix = 'handoff_'
const idLength = 12
const restLength = 32
/** 62^6 is the first power of 62 above 2^32. */
const checksumLength = 6

const idShape = /^[0-9A-Za-z]{12}$/
const secretShape = /^handoff_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}$/

/** A new key's id: 71 random bits, so no two are the same; if they were, key-create would notice. */
export function newKeyId (): string {
  return random(idLength)
}

/** Can this be a key's id? If not, Redis is never asked. */
export function isKeyId (text: string): boolean {
  return idShape.test(text)
}

/** A new secret for the key with this id. */
export function newSecret (id: string): string {
  const text = `${prefix}${id}_${random(restLength)}`
  return text + checksum(text)
}

/** @returns the id in a secret; null if its form or its checksum is wrong */
export function idOfSecret (text: string): string | null {
  if (!secretShape.test(text)) return null
  const end = text.length - checksumLength
  return checksum(text.slice(0, end)) === text.slice(end) ? placeOfId(text) : null
}

/** The text where a secret has its id, whether or not it is a valid secret. */
export function placeOfId (text: string): string {
  return text.slice(prefix.length, prefix.length + idLength)
}

/** The digest that is used where the secret itself must not be. */
export function digest (secret: string): string {
  return hash('sha256', secret, 'base64url')
}

function random (length: number): string {
  // randomInt chooses each character with the same probability; a byte modulo 62 wouldn't.
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('')
}

function checksum (text: string): string {
  let left = crc32(text)
  let digits = ''
  for (let i = 0; i < checksumLength; i++) {
    digits = alphabet.charAt(left % alphabet.length) + digits
    left = Math.floor(left / alphabet.length)
  }
  return digits
}
