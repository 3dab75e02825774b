import { createHash } from 'node:crypto'
import slotOf from 'cluster-key-slot'
import { RandomPool } from './random-pool.ts'

/**
 * The hash tag of a key (in a Redis Cluster the text in braces decides the slot). It is the tag of the key's partition.
 * No prefix has braces. Of a feed outside a Cluster, which is in no partition, it is any text, and so of no partition
 * either.
 */
export function tagIn (key: string): string {
  return key.slice(key.indexOf('{') + 1, key.indexOf('}'))
}

/**
 * An id is its partition's tag (3 characters) and 128 bits (22 characters), URL-safe: a person can read the Redis key
 * off it. There are 1,024 partitions. Partition i's tag hashes to one of the slots 16i to 16i+15 of Redis Cluster's
 * 16,384. So however the slots are split among masters, each master gets an even share of the partitions.
 */
const partitionCount = 1024

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/**
 * The tags by partition. Each is the first three characters, in the alphabet's order, whose slot is in the partition's
 * range.
 */
export const tags: readonly string[] = chooseTags()

function chooseTags (): string[] {
  const found: string[] = new Array(partitionCount)
  let missing = partitionCount
  for (const a of alphabet) {
    for (const b of alphabet) {
      for (const c of alphabet) {
        const partition = slotOf(a + b + c) >> 4
        if (found[partition] !== undefined) continue
        found[partition] = a + b + c
        if (--missing === 0) return found
      }
    }
  }
  throw new Error('three characters do not reach every partition')
}

const knownTags = new Set(tags)
// 128 bits fill 21 characters and the first two bits of a 22nd, so the last character has only four values.
const idShape = /^[A-Za-z0-9_-]{24}[AQgw]$/

/** Can this be an id? If not, Redis is never asked. */
export function isId (text: string): boolean {
  return idShape.test(text) && knownTags.has(text.slice(0, 3))
}

/** The hash tag of an id's partition. */
export function tagOf (id: string): string {
  return id.slice(0, 3)
}

const bytesPerId = 18
const unused = new RandomPool(bytesPerId, 256)
const pool = unused.bytes

/** A new id in a random partition. */
export function randomId (): string {
  const at = unused.take()
  return tags[pool.readUInt16LE(at) % partitionCount] + pool.toString('base64url', at + 2, at + bytesPerId)
}

/** A new id in the tenant's home partition, for what a person decides on and is for no inbox. */
export function randomHomeId (tenant: string): string {
  return homeTag(tenant) + randomToken()
}

/** 128 random bits, 22 characters. */
export function randomToken (): string {
  const at = unused.take()
  return pool.toString('base64url', at + 2, at + bytesPerId)
}

/** Can this be such a token? */
export function isToken (text: string): boolean {
  return /^[A-Za-z0-9_-]{22}$/.test(text)
}

/** A new id in an inbox's own partition. */
export function randomInboxId (tenant: string, inbox: string): string {
  return inboxTag(tenant, inbox) + randomToken()
}

/**
 * The id that an Idempotency-Key in its scope stands for. So the handoff itself is the record of the key.
 * @param to the inbox, if the handoff is for one
 */
export function derivedId (
  tenant: string, agent: string, requireHuman: boolean, idempotencyKey: string, to?: string
): string {
  // Neither names nor keys contain a space, so two different scopes can't give the same text.
  const scope = to === undefined ? '' : `${to} `
  const digest =
    createHash('sha256').update(`pass ${tenant} ${agent} ${requireHuman} ${scope}${idempotencyKey}`).digest()
  const tag = to !== undefined
    ? inboxTag(tenant, to)
    : requireHuman ? homeTag(tenant) : tags[digest.readUInt16LE(30) % partitionCount]
  return tag + digest.toString('base64url', 0, 16)
}

/**
 * The id that version 0.2.0 gave a handoff with an Idempotency-Key, for an inbox and a person. The version after this
 * one may leave it out.
 */
export function formerId (tenant: string, id: string): string {
  return homeTag(tenant) + id.slice(3)
}

/** The tag of the partition of a schedule's handoffs: an inbox's own, else its tenant's home. */
export function runsTag (tenant: string, to: string | undefined): string {
  return to === undefined ? homeTag(tenant) : inboxTag(tenant, to)
}

/**
 * The id of the handoff of a schedule's tick, the same at each replica.
 * @param text what distinguishes the tick from all others
 */
export function tickId (tag: string, text: string): string {
  return tag + createHash('sha256').update(`tick ${text}`).digest().toString('base64url', 0, 16)
}

/** 48 bits that stand for an id, as a number. */
export function numberOf (id: string): number {
  return createHash('sha256').update(id).digest().readUIntLE(0, 6)
}

/** Of how many tenants the home partition's tag is remembered. */
const maxHomes = 10_000
const homes = new Map<string, string>()

/** The tag of the partition that has what belongs to a tenant as a whole. */
export function homeTag (tenant: string): string {
  let tag = homes.get(tenant)
  if (tag === undefined) {
    if (homes.size >= maxHomes) homes.clear()
    homes.set(tenant, tag = tagOfDigest(`home ${tenant}`))
  }
  return tag
}

/** The tag of the partition that holds an inbox's handoffs. */
export function inboxTag (tenant: string, inbox: string): string {
  return tagOfDigest(`inbox ${tenant} ${inbox}`)
}

/**
 * The tag that this text always gives. Used for the notes of an agent's Idempotency-Key: any partition will do, as long
 * as it is always the same.
 */
export function tagOfDigest (text: string): string {
  return tags[createHash('sha256').update(text).digest().readUInt16LE(0) % partitionCount] as string
}

/**
 * The token of an operation, by which Redis knows it again: a digest if it has an Idempotency-Key, else 120 random
 * bits. These are 20 characters, so that the two can be distinguished.
 */
export function operationToken (
  operation: string, idempotencyKey: string | undefined, body: Buffer | undefined
): string {
  return idempotencyKey === undefined ? randomToken().slice(2) : digestToken(operation, idempotencyKey, body)
}

/** Is it the digest of an operation's Idempotency-Key and body? */
export function isDigestToken (token: string): boolean {
  return token.length === 22
}

/** 128 bits, 22 characters, that stand for an operation: its name, its Idempotency-Key, and its body if it has one. */
export function digestToken (operation: string, idempotencyKey: string, body: Buffer | undefined): string {
  const hash = createHash('sha256').update(`${operation} ${idempotencyKey} `)
  if (body !== undefined) hash.update(body)
  return hash.digest().toString('base64url', 0, 16)
}
