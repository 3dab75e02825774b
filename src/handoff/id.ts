import { createHash, randomFillSync } from 'node:crypto'
import slotOf from 'cluster-key-slot'

/**
 * An id is its partition's tag (3 characters) and 128 bits (22 characters), URL-safe: the Redis key can be read off it by eye.
 * There are 1,024 partitions; partition i's tag hashes into the slots 16i to 16i+15 of Redis Cluster's 16,384, so that any
 * split of the slots among masters gives each its even share.
 */
export const partitionCount = 1024

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** The tags by partition: for each the first three characters, in the alphabet's order, whose slot lies in its range. */
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
// 128 bits fill 21 characters and the first two bits of a 22nd, which leaves that one four values.
const idShape = /^[A-Za-z0-9_-]{24}[AQgw]$/

/** Can this be an id? One that can't never reaches Redis. */
export function isId (text: string): boolean {
  return idShape.test(text) && knownTags.has(text.slice(0, 3))
}

/** The hash tag of an id's partition. */
export function tagOf (id: string): string {
  return id.slice(0, 3)
}

const bytesPerId = 18
const pool = Buffer.alloc(bytesPerId * 256)
let used = pool.length

/** The next 18 fresh random bytes' offset in the pool: asking the system once for 256 ids costs what asking for one does. */
function takeRandom (): number {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += bytesPerId
  return used - bytesPerId
}

/** A new id on a random partition. */
export function randomId (): string {
  const at = takeRandom()
  return tags[pool.readUInt16LE(at) % partitionCount] + pool.toString('base64url', at + 2, at + bytesPerId)
}

/** A new id on the tenant's home partition, where its waiting list is: one list, one slot, one script. */
export function randomHomeId (tenant: string): string {
  return homeTag(tenant) + randomToken()
}

/** 128 fresh random bits, 22 characters: the token of an operation that brought no Idempotency-Key. */
export function randomToken (): string {
  const at = takeRandom()
  return pool.toString('base64url', at + 2, at + bytesPerId)
}

/** A new id on an inbox's own partition. */
export function randomInboxId (tenant: string, inbox: string): string {
  return inboxTag(tenant, inbox) + randomToken()
}

/** The id that an Idempotency-Key's scope stands for, so that the id is itself the record of the key. @param to the inbox, where it is for one */
export function derivedId (tenant: string, agent: string, requireHuman: boolean, idempotencyKey: string, to?: string): string {
  // Names have no space, nor has the key, so the parts cannot run into each other.
  const scope = to === undefined ? '' : `${to} `
  const digest = createHash('sha256').update(`pass ${tenant} ${agent} ${requireHuman} ${scope}${idempotencyKey}`).digest()
  const tag = requireHuman ? homeTag(tenant) : to === undefined ? tags[digest.readUInt16LE(30) % partitionCount] : inboxTag(tenant, to)
  return tag + digest.toString('base64url', 0, 16)
}

/** The tag of the partition that holds a tenant's waiting list. */
export function homeTag (tenant: string): string {
  return tagOfDigest(`home ${tenant}`)
}

/** The tag of the partition that holds what is for an inbox, but for what a person has to approve. */
export function inboxTag (tenant: string, inbox: string): string {
  return tagOfDigest(`inbox ${tenant} ${inbox}`)
}

/** The tag of the partition that holds what an agent's Idempotency-Key did: any will do, as long as it is always the same. */
export function tagOfDigest (text: string): string {
  return tags[createHash('sha256').update(text).digest().readUInt16LE(0) % partitionCount] as string
}

/** 128 bits, 22 characters, that stand for an operation: what it is, its Idempotency-Key, and its body where it has one. */
export function digestToken (operation: string, idempotencyKey: string, body: Buffer | undefined): string {
  const hash = createHash('sha256').update(`${operation} ${idempotencyKey} `)
  if (body !== undefined) hash.update(body)
  return hash.digest().toString('base64url', 0, 16)
}
