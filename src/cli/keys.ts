import { hostname, userInfo } from 'node:os'
import { iso } from '../core/iso.ts'
import { loadConfig } from '../config.ts'
import type { Scope } from '../core/model.ts'
import type { KeyRecord, KeyUpdate } from '../store/api-keys.ts'
import type { Store } from '../store/store.ts'
import { Failure, UsageError, notWritten, outputFault, print, table } from '../clients/typescript/command/output.ts'
import { printJson, when } from './output.ts'
import { redisClock, withStore } from './redis.ts'

interface CreateOptions {
  tenant: string
  name: string
  scopes: Scope[]
  expiresIn?: number
  inboxes?: string[]
  rateLimit?: number
  json?: boolean
}

/** Creates a key and shows its secret, once only. */
export async function createKey (
  { tenant, name, scopes, expiresIn, inboxes, rateLimit, json = false }: CreateOptions
): Promise<void> {
  const made = await withKeys(keys => keys.create({
    tenant, agent: name, scopes, expiresIn: expiresIn ?? null, ratePerMinute: rateLimit ?? null, inboxes, by: author()
  }))
  const { endsAt, createdAt } = made.record
  if (json) printJson({ id: made.id, key: made.key, ...members(made.record) })
  else {
    print(`key      ${made.key}\n` +
    `id       ${made.id}\n` +
    `for      ${name} of tenant ${tenant}: ${scopes.join(', ')}\n` +
    (inboxes === undefined ? '' : `inboxes  ${inboxes.join(', ')}\n`) +
    `ends     ${endsAt === null ? 'never' : when(endsAt, createdAt)}\n` +
    'The key is shown only once: store it where its agent finds it. Use the id to rotate or revoke it.')
  }
  const fault = await outputFault()
  if (fault === undefined) return
  const isRevoked = await withKeys(keys => keys.revoke(made.id, author())).then(() => true, () => false)
  throw new Failure(`the secret is lost, ${isRevoked
    ? `and ${made.id} was revoked`
    : `so revoke it (handoff keys revoke ${made.id})`}: ${notWritten(fault)}`)
}

export async function listKeys ({ json = false }: { json?: boolean }): Promise<void> {
  const {
    records, now
  } = await withRecords(async store => ({ records: await store.keyRecords.list(), now: await redisClock(store) }))
  if (json) {
    return printJson(records.map(record => ({ id: record.id, ...members(record), state: stateOf(record, now) })))
  }
  if (records.length === 0) return print('there are no keys in Redis')
  // Keys expire by Redis's clock, and so does their grace.
  const rows = records.map(record => [record.id, record.tenant, record.agent, record.scopes.join(),
    record.inboxes?.join() ?? 'any', String(record.ratePerMinute ?? '-'), iso(record.createdAt),
    record.endsAt === null ? 'never' : iso(record.endsAt), stateWords(record, now)])
  print(table([['id', 'tenant', 'name', 'scopes', 'inboxes', 'a minute', 'created', 'ends', 'state'], ...rows]))
}

/** `none` removes a member; members that are left out stay. */
interface UpdateOptions {
  scopes?: Scope[]
  inboxes?: string[] | 'none'
  rateLimit?: number | 'none'
  expiresIn?: number | 'none'
  json?: boolean
}

/** Changes a key's rights and its end; its secret stays. */
export async function updateKey (
  id: string, { scopes: given, inboxes: names, rateLimit, expiresIn, json = false }: UpdateOptions
): Promise<void> {
  const orNull = <T>(value: T | 'none') => value === 'none' ? null : value
  const update: KeyUpdate = {
    scopes: given, inboxes: orNull(names), ratePerMinute: orNull(rateLimit), expiresIn: orNull(expiresIn)
  }
  if (Object.values(update).every(value => value === undefined)) {
    throw new UsageError('say what to change: --scopes, --inboxes, --rate-limit or --expires-in')
  }
  const reply = await withKeys(keys => keys.update(id, update, author()))
  if (reply.outcome !== 'updated') throw refusedChange(reply.outcome)
  const { now, record } = reply
  const { tenant, agent, scopes, inboxes, ratePerMinute, endsAt } = record
  if (json) return printJson({ id, ...members(record) })
  print('updated: within 2 s this holds everywhere\n' +
    `id       ${id}\n` +
    `for      ${agent} of tenant ${tenant}: ${scopes.join(', ')}\n` +
    `inboxes  ${inboxes?.join(', ') ?? 'any'}\n` +
    `limit    ${ratePerMinute === null ? 'RATE_LIMIT_PER_MINUTE' : `${ratePerMinute} requests a minute`}\n` +
    `ends     ${endsAt === null ? 'never' : when(endsAt, now)}`)
}

/**
 * Gives a key a new secret and shows it, once only.
 * @param grace how long the old secret stays valid, in milliseconds
 */
export async function rotateKey (
  id: string, { grace = 0, json = false }: { grace?: number, json?: boolean }
): Promise<void> {
  const reply = await withKeys(keys => keys.rotate(id, grace, author()))
  if (reply.outcome !== 'rotated') throw refusedChange(reply.outcome)
  const { rotatedAt, previousEndsAt } = reply.record
  if (json) printJson({ id, key: reply.key, ...members(reply.record) })
  else {
    print(`key      ${reply.key}\n` +
    `id       ${id}\n` +
    `old key  ${grace === 0 ? 'no longer valid' : `valid until ${when(previousEndsAt!, rotatedAt!)}`}\n` +
    'The key is shown only once: store it where its agent finds it.')
  }
  const fault = await outputFault()
  if (fault !== undefined) {
    throw new Failure(`the new secret is lost, so rotate again (handoff keys rotate ${id}): ${notWritten(fault)}`)
  }
}

/** Revokes a key for good. Revoking it again is no error. */
export async function revokeKey (id: string, { json = false }: { json?: boolean }): Promise<void> {
  const reply = await withKeys(keys => keys.revoke(id, author()))
  if (reply.outcome === 'not_found') throw unknownKey()
  const revokedAt = iso(reply.at)
  if (json) return printJson({ id, revoked_at: revokedAt, already_revoked: reply.outcome === 'already_revoked' })
  print(reply.outcome === 'revoked'
    ? `revoked: within 2 s ${id} stops working everywhere`
    : `${id} was revoked at ${revokedAt} already; nothing changed`)
}

export function withRecords<T> (use: (store: Store) => Promise<T>): Promise<T> {
  const config = loadConfig()
  return withStore(config, config.replicas, use)
}

/** Uses the keys in Redis, and the limits beside them. */
export function withKeys<T> (use: (keys: Store['keyRecords']) => Promise<T>): Promise<T> {
  return withRecords(store => use(store.keyRecords))
}

function refusedChange (outcome: 'not_found' | 'revoked' | 'ended'): Failure {
  if (outcome === 'not_found') return unknownKey()
  return new Failure(`this key ${outcome === 'revoked' ? 'was revoked' : 'has expired'}: create a new one`)
}

/** The message doesn't repeat the input: it may be a secret, typed instead of an id. */
function unknownKey (): Failure {
  return new Failure('no key has this id: see handoff keys list')
}

/** The command's user, for the log of keys. */
export function author (): string {
  return `${userName()}@${hostname()}`
}

/** In a container the user may have a number but no name. */
function userName (): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? 'unknown')
  }
}

type KeyState = 'live' | 'in grace' | 'ended' | 'revoked'

/** `in grace`: the old secret and the new one are both valid. */
function stateOf ({ revokedAt, endsAt, previousEndsAt }: KeyRecord, now: number): KeyState {
  if (revokedAt !== null) return 'revoked'
  if (endsAt !== null && now >= endsAt) return 'ended'
  return previousEndsAt !== null && now < previousEndsAt ? 'in grace' : 'live'
}

function stateWords (record: KeyRecord, now: number): string {
  const state = stateOf(record, now)
  if (state === 'in grace') return `in grace until ${iso(record.previousEndsAt!)}`
  return state === 'revoked' ? `revoked ${iso(record.revokedAt!)}` : state
}

function members (
  { tenant, agent, scopes, createdAt, endsAt, rotatedAt, previousEndsAt, revokedAt, ratePerMinute, inboxes }: KeyRecord
): object {
  const time = (at: number | null) => at === null ? null : iso(at)
  return {
    tenant,
    name: agent,
    scopes,
    created_at: iso(createdAt),
    expires_at: time(endsAt),
    rotated_at: time(rotatedAt),
    previous_expires_at: time(previousEndsAt),
    revoked_at: time(revokedAt),
    rate_per_minute: ratePerMinute,
    inboxes,
  }
}
