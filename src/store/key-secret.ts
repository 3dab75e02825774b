import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

/**
 * A key's secret is `handoff_<id>_<rest>`: the id of 12 characters, then 32 random characters (190 bits) and 6 of a checksum over all that comes
 * before. The prefix lets secret scanners find leaked keys. The checksum shows at once, without a call, that a key was mistyped or cut off. It is
 * no protection: anyone can compute it.
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

/** A mark for the key with this id, valid as long as the secret with this digest works. */
export function markOf (id: string, digested: string): string {
  return `${id}.${digested}`
}

/** @returns null if it isn't such a mark */
export function readMark (mark: string): { id: string, digested: string } | null {
  const [id = '', digested] = mark.split('.')
  return digested === undefined || !isKeyId(id) ? null : { id, digested }
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
