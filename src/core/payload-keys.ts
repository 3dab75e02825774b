import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto'
import { PayloadBroken, PayloadLocked, SettingError } from './errors.ts'
import { RandomPool } from './random-pool.ts'

/**
 * The keys that seal what agents and people write (setting PAYLOAD_KEYS), and what is sealed with them.
 *
 * A sealed text has two forms: bytes, for what is long, and a word of ASCII, for what stands among other words. Both
 * have the key's name (8 characters), the hour (4 bytes, hours since the epoch), and a nonce, the text in AES-256-GCM
 * and its tag. Before them bytes have a 1, and a word ~; what follows the name is in base64url there. Bytes of a text
 * of more than `beginningBytes` have two nonces, ciphers and tags behind a 2: its beginning is sealed by itself, so
 * that a script can give a list the beginning alone. JSON begins with none of these.
 *
 * Each tenant has a key for each hour (HKDF-SHA256), so that no key seals so many texts that two random nonces may be
 * the same. The additional data are the format, the key's name, the tenant, the origin (the id of the work's first
 * attempt), the member, and which part of how many it is: a text that was copied elsewhere doesn't open.
 */

export interface PayloadKey {
  kid: string
  /** Six bytes in base64url, derived from the key and its kid: what Redis knows of it. */
  name: string
  secret: Buffer
}

/** What a text is bound to: `origin` is the id of the work's first attempt, or of the attempt alone (`Seal`). */
export interface Bound { tenant: string, origin: string }

const payloadKeyShape = /^([A-Za-z0-9._-]{1,32}):([A-Za-z0-9+/]{43}=)$/
const [oneByte, twoByte, wordByte] = [1, 2, 0x7e]
/** The key's name, the hour, and the nonce. */
const [nameLength, hourBytes, nonceBytes, tagBytes] = [8, 4, 12, 16]
const headBytes = 1 + nameLength + hourBytes
/** Of a longer text so much is sealed by itself (lua/lib/record.lua, taskOf). */
const beginningBytes = 4096
const mostSubkeys = 4096
const hourLength = 3_600_000

/**
 * `kid:<base64 of 32 bytes>,…`
 * @throws {SettingError} with the place of what is wrong, never with a key
 */
export function parsePayloadKeys (text: string): PayloadKey[] {
  const keys = text.split(/[,\n]/).map(entry => entry.trim()).filter(entry => entry !== '').map((entry, at) => {
    const [, kid, secret] = payloadKeyShape.exec(entry) ?? []
    if (kid === undefined) throw new SettingError(`PAYLOAD_KEYS: entry ${at + 1} is not kid:<base64 of 32 bytes>`)
    const bytes = Buffer.from(secret!, 'base64')
    return { kid, secret: bytes, name: derived(bytes, `name ${kid}`, 6).toString('base64url') }
  })
  if (keys.length === 0) throw new SettingError('PAYLOAD_KEYS: there is no key in it')
  for (const [at, { kid, secret }] of keys.entries()) {
    const same = keys.slice(0, at).find(other => other.kid === kid || other.secret.equals(secret))
    if (same?.kid === kid) throw new SettingError(`PAYLOAD_KEYS: the kid ${kid} is there twice`)
    if (same !== undefined) throw new SettingError(`PAYLOAD_KEYS: ${same.kid} and ${kid} are the same key`)
  }
  return keys
}

function derived (secret: Buffer, info: string, length: number): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `agent-handoff ${info}`, length))
}

const nonces = new RandomPool(nonceBytes, 512)

const gcm = 'aes-256-gcm'
const ofTag = { authTagLength: tagBytes }

export class PayloadKeys {
  /** The name of the key that seals; undefined if nothing is sealed. */
  readonly writes: string | undefined
  /** The names of all keys, each between spaces. */
  readonly names: string
  readonly #keys: readonly PayloadKey[]
  readonly #byName: ReadonlyMap<string, PayloadKey>
  /** By key, tenant and hour. */
  readonly #subkeys = new Map<string, Buffer>()
  /** It hears of texts that don't open, by the name of the key that isn't here, or by the kid of the one that is. */
  readonly #trouble: Array<Record<'locked' | 'broken', (key: string) => void>> = []

  /** @param keys the first seals, all open */
  constructor (keys: readonly PayloadKey[] = []) {
    this.#keys = keys
    this.writes = keys[0]?.name
    this.names = keys.map(({ name }) => ` ${name}`).join('') + ' '
    this.#byName = new Map(keys.map(key => [key.name, key]))
  }

  /** The keys as others may know them; the first one seals. */
  get known (): Array<Pick<PayloadKey, 'name' | 'kid'>> {
    return this.#keys.map(({ name, kid }) => ({ name, kid }))
  }

  has (name: string): boolean {
    return this.#byName.has(name)
  }

  /** From now on it hears of each text that can't be opened. */
  notify (trouble: Record<'locked' | 'broken', (key: string) => void>): void {
    this.#trouble.push(trouble)
  }

  /** The error for a text whose key isn't here. */
  lacks (name: string): PayloadLocked {
    for (const trouble of this.#trouble) trouble.locked(name)
    return new PayloadLocked(name)
  }

  /** The sealed bytes; without a key, and for an empty text, the text itself. @param member what the text is */
  seal (text: Buffer, place: Bound, member: string): Buffer {
    return this.#seal(text, place, member, text.length <= beginningBytes)
  }

  #seal (text: Buffer, place: Bound, member: string, isOnePart: boolean): Buffer {
    const [key] = this.#keys
    if (key === undefined || text.length === 0) return text
    const parts = isOnePart
      ? [text]
      : [text.subarray(0, beginningBytes), text.subarray(beginningBytes)]
    const now = Math.floor(Date.now() / hourLength)
    const subkey = this.#subkey(key, place.tenant, now)
    const sealed = Buffer.allocUnsafe(headBytes + text.length + parts.length * (nonceBytes + tagBytes))
    sealed[0] = parts.length === 1 ? oneByte : twoByte
    sealed.write(key.name, 1, 'latin1')
    sealed.writeUInt32BE(now, 1 + nameLength)
    let at = headBytes
    for (const [number, part] of parts.entries()) {
      const nonceAt = nonces.take()
      const nonce = nonces.bytes.subarray(nonceAt, nonceAt + nonceBytes)
      const cipher = createCipheriv(gcm, subkey, nonce, ofTag)
      cipher.setAAD(boundTo(key.name, place, member, number, parts.length))
      at += nonce.copy(sealed, at)
      at += cipher.update(part).copy(sealed, at)
      cipher.final()
      at += cipher.getAuthTag().copy(sealed, at)
    }
    return sealed
  }

  /** The same as a word. `null` says that there is none, as an empty text does, so it isn't sealed. */
  sealWord (text: string, place: Bound, member: string): string {
    if (this.writes === undefined || text === '' || text === 'null') return text
    const sealed = this.#seal(Buffer.from(text), place, member, true)
    return `~${sealed.toString('latin1', 1, 1 + nameLength)}${sealed.toString('base64url', 1 + nameLength)}`
  }

  /**
   * The text. One that isn't sealed is as it is.
   * @throws {PayloadLocked} this replica doesn't have its key
   * @throws {PayloadBroken} its key doesn't open it
   */
  open (sealed: Buffer, place: Bound, member: string): Buffer {
    return isSealed(sealed) ? this.#open(unpacked(sealed), place, member, false) : sealed
  }

  /** The beginning of a text of which maybe no more is there; see `open`. */
  openBeginning (sealed: Buffer, place: Bound, member: string): Buffer {
    return isSealed(sealed) ? this.#open(unpacked(sealed), place, member, true) : sealed
  }

  openText (sealed: Buffer | string, place: Bound, member: string): string {
    const bytes = typeof sealed === 'string' ? Buffer.from(sealed) : sealed
    return this.open(bytes, place, member).toString()
  }

  #open (sealed: Buffer, place: Bound, member: string, isBeginning: boolean): Buffer {
    const name = sealed.toString('latin1', 1, 1 + nameLength)
    const key = this.#byName.get(name)
    if (key === undefined) throw this.lacks(name)
    try {
      const subkey = this.#subkey(key, place.tenant, sealed.readUInt32BE(1 + nameLength))
      if (sealed[0] === oneByte) return openPart(subkey, sealed.subarray(headBytes), name, place, member, 0, 1)
      const secondAt = headBytes + nonceBytes + beginningBytes + tagBytes
      const first = openPart(subkey, sealed.subarray(headBytes, secondAt), name, place, member, 0, 2)
      if (isBeginning) return first
      return Buffer.concat([first, openPart(subkey, sealed.subarray(secondAt), name, place, member, 1, 2)])
    } catch (error) {
      throw this.broken(place, member, key, error)
    }
  }

  /** The error for a text that isn't what was sealed. */
  broken ({ origin }: Bound, member: string, { kid } = this.#keys[0]!, cause?: unknown): PayloadBroken {
    for (const trouble of this.#trouble) trouble.broken(kid)
    return new PayloadBroken(`the payload key ${kid} does not open a ${member} of ${origin}`, { cause })
  }

  /**
   * What stands in Redis for a value that is only compared there: under the key that seals, then under each other key,
   * and last the value itself. A value that was written before is found under one of them.
   * @param id of the handoff: equal values of two handoffs have different marks @param kind what the value is
   */
  marks (value: string, { tenant, origin: id }: Bound, kind: string): [string, ...string[]] {
    const marks = this.#keys.map(key => this.#mark(key, value, tenant, id, kind))
    const [first = value, ...others] = marks
    return first === value ? [value] : [first, ...others, value]
  }

  #mark (key: PayloadKey, value: string, tenant: string, id: string, kind: string): string {
    const subkey = this.#subkey(key, tenant, 'marks')
    return `~${key.name}${createHmac('sha256', subkey).update(`${kind} ${id} ${value}`).digest('base64url').slice(0, 22)}`
  }

  #subkey (key: PayloadKey, tenant: string, of: number | 'marks'): Buffer {
    const which = `${key.name} ${tenant} ${of}`
    let subkey = this.#subkeys.get(which)
    if (subkey === undefined) {
      // Those of an hour that is over are the first to go.
      if (this.#subkeys.size >= mostSubkeys) this.#subkeys.delete(this.#subkeys.keys().next().value!)
      this.#subkeys.set(which, subkey = derived(key.secret, `${of === 'marks' ? 'marks' : 'payload'} ${tenant} ${of}`, 32))
    }
    return subkey
  }
}

function openPart (
  subkey: Buffer, part: Buffer, name: string, place: Bound, member: string, number: number, of: number
): Buffer {
  const textEnds = part.length - tagBytes
  const decipher = createDecipheriv(gcm, subkey, part.subarray(0, nonceBytes), ofTag)
  decipher.setAAD(boundTo(name, place, member, number, of))
  decipher.setAuthTag(part.subarray(textEnds))
  const text = decipher.update(part.subarray(nonceBytes, textEnds))
  decipher.final()
  return text
}

/** No part of it has a space. */
function boundTo (name: string, { tenant, origin }: Bound, member: string, number: number, of: number): Buffer {
  return Buffer.from(`1 ${name} ${tenant} ${origin} ${member} ${number}/${of}`, 'latin1')
}

/** How long a text is that was sealed as bytes. */
export function textLength (sealed: number): number {
  const withOne = sealed - headBytes - nonceBytes - tagBytes
  return withOne <= beginningBytes ? withOne : withOne - nonceBytes - tagBytes
}

/** Is it sealed? */
export function isSealed (text: Buffer): boolean {
  const first = text[0]
  return first === oneByte || first === twoByte || first === wordByte
}

/** A sealed text's bytes, whatever its form is. */
function unpacked (sealed: Buffer): Buffer {
  if (sealed[0] !== wordByte) return sealed
  const [name, rest] = [sealed.subarray(1, 1 + nameLength), sealed.toString('latin1', 1 + nameLength)]
  return Buffer.concat([Buffer.from([oneByte]), name, Buffer.from(rest, 'base64url')])
}
