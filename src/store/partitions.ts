import { createHash } from 'node:crypto'

/** The partition that has what belongs to a tenant as a whole. */
export function homeTagOf (tenant: string, tags: readonly string[]): string {
  return tagByDigest(createHash('sha256').update(`home ${tenant}`).digest('base64url'), tags)
}

/** A partition for something without an id, chosen by a SHA-256 digest in base64url, and so evenly spread. */
export function tagByDigest (digest: string, tags: readonly string[]): string {
  return tags[Buffer.from(digest, 'base64url').readUInt16LE(0) % tags.length] as string
}
