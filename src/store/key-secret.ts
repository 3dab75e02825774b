import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

/**
 * A key's secret is `handoff_<id>_<rest>`: the id of 12, then 32 random characters (190 bits) and 6 of a checksum over all that
 * stands before them. By the prefix secret scanners find one that lies about; by the checksum one that was mistyped or cut off is
 * seen to be none before anything is asked. The checksum keeps nobody out: anyone can reckon it.
 */
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const prefix = 'handoff_'
const idLength = 12
const restLength = 32
/** 62^6 is the first power of 62 beyond 2^32. */
const checksumLength = 6

const idShape = /^[0-9A-Za-z]{12}$/
const secretShape = /^handoff_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}$/

/** A new key's id: 71 random bits, so that none is made twice; key-create sees it if one were. */
export function newKeyId (): string {
  return random(idLength)
}

/** Can this be a key's id? One that can't never reaches Redis. */
export function isKeyId (text: string): boolean {
  return idShape.test(text)
}

/** A new secret of the key with this id. */
export function newSecret (id: string): string {
  const text = `${prefix}${id}_${random(restLength)}`
  return text + checksum(text)
}

/** @returns the id that a secret has in it; null where its shape or its checksum is wrong */
export function idOfSecret (text: string): string | null {
  if (!secretShape.test(text)) return null
  const end = text.length - checksumLength
  return checksum(text.slice(0, end)) === text.slice(end) ? placeOfId(text) : null
}

/** Where a secret has its id, whether it is one or not. */
export function placeOfId (text: string): string {
  return text.slice(prefix.length, prefix.length + idLength)
}

/** What stands for a secret where the secret itself has no place. */
export function digest (secret: string): string {
  return hash('sha256', secret, 'base64url')
}

/** What stands for the key with this id, as long as what has this digest opens it. */
export function markOf (id: string, digested: string): string {
  return `${id}.${digested}`
}

/** @returns null for what is no such mark */
export function readMark (mark: string): { id: string, digested: string } | null {
  const [id = '', digested] = mark.split('.')
  return digested === undefined || !isKeyId(id) ? null : { id, digested }
}

function random (length: number): string {
  // randomInt takes each character with the same likelihood, which a byte's remainder by 62 wouldn't.
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
