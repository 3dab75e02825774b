import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto'
import type { KeyObject } from 'node:crypto'

/** The key that the service signs with (Ed25519), and those that others check its signatures with. */

/** A public key as it is published (RFC 8037). */
interface PublicKey { kty: 'OKP', crv: 'Ed25519', x: string, kid: string, alg: 'EdDSA', use: 'sig' }

/** Undefined and empty: nothing is signed, and nothing was. */
export interface SigningKeys { current: SigningKey | undefined, published: readonly PublicKey[] }

/** A compactJws JWS in its three parts (RFC 7515). */
interface Jws { protected: string, payload: string, signature: string }

export class SigningKey {
  readonly published: PublicKey
  readonly #key: KeyObject

  constructor (key: KeyObject) {
    this.#key = key
    this.published = publicKeyOf(createPublicKey(key))
  }

  /** @param header what it has besides `alg` and `kid` */
  sign (header: { typ: string, jku?: string }, payload: string): Jws {
    const { alg, kid } = this.published
    const { typ, ...more } = header
    const [protectedPart, payloadPart] = [JSON.stringify({ alg, typ, kid, ...more }), payload]
      .map(part => Buffer.from(part).toString('base64url')) as [string, string]
    const signature = sign(null, Buffer.from(`${protectedPart}.${payloadPart}`), this.#key).toString('base64url')
    return { protected: protectedPart, payload: payloadPart, signature }
  }
}

export function compactJws ({ protected: header, payload, signature }: Jws): string {
  return `${header}.${payload}.${signature}`
}

const onePrivate = /^\s*-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----\s*$/
const onePublic = /-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----/g

/** @param text PKCS #8 in PEM @returns null if it is no such key */
export function parseSigningKey (text: string): SigningKey | null {
  const pem = withLines(text)
  if (!onePrivate.test(pem)) return null
  const key = ed25519In(createPrivateKey, pem)
  return key && new SigningKey(key)
}

/** @param text any number in PEM, one behind the other @returns null if it has anything else */
export function parsePublicKeys (text: string): PublicKey[] | null {
  const pem = withLines(text)
  if (pem.replace(onePublic, '').trim() !== '') return null
  const keys = (pem.match(onePublic) ?? []).map(one => ed25519In(createPublicKey, one))
  return keys.length === 0 || keys.includes(null) ? null : keys.map(key => publicKeyOf(key!))
}

/** All that are published: the one that signs first, each once. */
export function signingKeys (current: SigningKey | undefined, old: readonly PublicKey[]): SigningKeys {
  const all = current === undefined ? old : [current.published, ...old]
  return { current, published: [...new Map(all.map(key => [key.kid, key])).values()] }
}

/** Many set a variable to one line, with \n for line breaks. */
function withLines (text: string): string {
  return text.replaceAll('\\n', '\n')
}

/** @returns null if it is no Ed25519 key; OpenSSL's own words may have parts of it */
function ed25519In (create: (pem: string) => KeyObject, pem: string): KeyObject | null {
  try {
    const key = create(pem)
    return key.asymmetricKeyType === 'ed25519' ? key : null
  } catch {
    return null
  }
}

function publicKeyOf (key: KeyObject): PublicKey {
  const { x } = key.export({ format: 'jwk' }) as { x: string }
  const [kty, crv] = ['OKP', 'Ed25519'] as const
  // RFC 7638: its members in the order of their names.
  const kid = createHash('sha256').update(JSON.stringify({ crv, kty, x })).digest('base64url')
  return { kty, crv, x, kid, alg: 'EdDSA', use: 'sig' }
}
