import { compactVerify } from 'jose'
import { Unavailable } from '../core/errors.ts'
import { isJsonObject } from '../core/issuers.ts'
import type { Issuer } from '../core/issuers.ts'
import { IssuerKeys, algorithmOf } from './issuer-keys.ts'
import type { LogOutput } from './key-log.ts'
import { ruleOn } from './token-rules.ts'
import type { Claims, Ruling } from './token-rules.ts'

/** How many bytes a token may have that a request brings. */
const maxLength = 8192
/** Signatures that are checked in a second, at most. */
const signaturesPerSecond = 500
/** How far the clocks of an issuer and this replica may differ, in milliseconds. */
const leeway = 30_000
/** The latest end that is distinguished: that of the year 9999. */
const farthest = 253_402_300_799_999

/** Why a token is refused, in the order in which that is found. */
export type TokenFault = 'malformed' | 'issuer' | 'signature' | 'expiry' | 'audience' | 'blocked' | 'rules'

/** What is wrong with a token up to its signature. So it may be anybody's guess. */
export class BadToken extends Error {
  readonly why: TokenFault

  constructor (why: TokenFault) {
    super(why)
    this.why = why
  }
}

/** A token's shape: three base64url parts. */
export function looksLikeToken (secret: string): boolean {
  return /^[\w-]*\.[\w-]*\.[\w-]*$/.test(secret)
}

/** A token's parts, not yet believed. Times in milliseconds since the epoch. */
interface ReadToken {
  alg: string
  kid: string | undefined
  issuer: string
  subject: string
  audiences: readonly string[]
  begins: number
  /** As the token says it. It counts for a little longer. */
  expiresAt: number
  claims: Claims
}

/** Where a token is used: at /mcp, or elsewhere. */
export type TokenPlace = 'mcp' | 'api'

/** A token that its issuer signed. */
interface SignedToken extends ReadToken {
  keys: IssuerKeys
  /** Of the key that signed it. */
  keyId: string
  /** Where it may be used. */
  places: readonly TokenPlace[]
  ruling: Ruling
}

/**
 * Why such a token doesn't count now; undefined if it does, as long as its subject isn't blocked and a rule matches.
 * Ask only while its issuer's keys are known.
 */
export function tokenFaultOf (
  { keys, keyId, begins, expiresAt, places }: Pick<SignedToken, 'keys' | 'keyId' | 'begins' | 'expiresAt' | 'places'>,
  place: TokenPlace
): 'signature' | 'expiry' | 'audience' | undefined {
  if (!keys.has(keyId)) return 'signature'
  if (isOutOfTime({ begins, expiresAt })) return 'expiry'
  return places.includes(place) ? undefined : 'audience'
}

/** Has it ended, or not begun yet? */
function isOutOfTime ({ begins, expiresAt }: Pick<ReadToken, 'begins' | 'expiresAt'>): boolean {
  const now = Date.now()
  return now >= expiresAt + leeway || now < begins
}

/** Checks whose tokens are, and what the rules say of them. */
export class TokenChecker {
  /** Signatures that were checked, and tokens that weren't (503): too many at once. */
  readonly counts = { verified: 0, shed: 0 }
  readonly #issuers = new Map<string, IssuerKeys>()
  readonly #baseUrl: () => string
  /** Signatures checked in the current second. */
  #signatures = 0
  #secondBegan = -Infinity

  /** @param onChange called when an issuer's keys may have gone */
  constructor (issuers: readonly Issuer[], baseUrl: () => string, output: LogOutput, onChange: () => void) {
    this.#baseUrl = baseUrl
    for (const issuer of issuers) this.#issuers.set(issuer.issuer, new IssuerKeys(issuer, output, onChange))
  }

  get issuers (): Iterable<IssuerKeys> {
    return this.#issuers.values()
  }

  start (): void {
    for (const keys of this.#issuers.values()) keys.start()
  }

  async stop (): Promise<void> {
    await Promise.all([...this.#issuers.values()].map(keys => keys.stop()))
  }

  /**
   * @throws {BadToken} it isn't its issuer's
   * @throws {Unavailable} its issuer doesn't answer, or too many are checked
   */
  async check (token: string): Promise<SignedToken> {
    const read = readToken(token, maxLength)
    const keys = this.#issuers.get(read.issuer)
    if (keys === undefined) throw new BadToken('issuer')
    const keyId = await this.#verify(token, read, keys)
    const places = this.#placesOf(read.audiences, keys.issuer)
    return { ...read, keys, keyId, places, ruling: ruleOn(keys.issuer.rules, read.issuer, read.claims) }
  }

  /**
   * What the ID token of a person says who signed in by this issuer (OpenID Connect Core 1.0, 3.1.3.7). It may be as
   * long as an answer of the issuer: it has all groups of the person.
   * @throws {BadToken} it isn't this issuer's, or not for this client
   * @throws {Unavailable} as in `check`
   */
  async checkIdToken (token: string, { issuer }: Issuer, clientId: string): Promise<ReadToken> {
    const read = readToken(token, Infinity)
    const keys = this.#issuers.get(issuer)!
    if (read.issuer !== issuer) throw new BadToken('issuer')
    await this.#verify(token, read, keys)
    if (isOutOfTime(read)) throw new BadToken('expiry')
    if (!read.audiences.includes(clientId)) throw new BadToken('audience')
    return read
  }

  /** @returns the id of the key that signed it */
  async #verify (token: string, { alg, kid }: ReadToken, keys: IssuerKeys): Promise<string> {
    const algorithm = algorithmOf(alg)
    if (!keys.issuer.algorithms.has(algorithm)) throw new BadToken('signature')
    for (let isRenewed = false; ; isRenewed = true) {
      for (const { id, key } of await keys.find(algorithm, kid)) {
        this.#countSignature()
        if (await compactVerify(token, key, { algorithms: [alg] }).then(() => true, () => false)) return id
      }
      if (isRenewed || kid === undefined || !await keys.renew(kid)) throw new BadToken('signature')
    }
  }

  #countSignature (): void {
    const now = performance.now()
    if (now - this.#secondBegan >= 1000) {
      this.#secondBegan = now
      this.#signatures = 0
    }
    if (this.#signatures++ >= signaturesPerSecond) {
      this.counts.shed++
      throw new Unavailable('too many tokens are checked')
    }
    this.counts.verified++
  }

  /** A token that is for MCP's address alone may be used there alone. */
  #placesOf (audiences: readonly string[], { audiences: given }: Issuer): TokenPlace[] {
    const ofMcp = `${this.#baseUrl()}/mcp`
    const ours = given ?? [this.#baseUrl(), ofMcp]
    const matching = audiences.filter(audience => ours.includes(audience))
    if (matching.length === 0) return []
    return matching.every(audience => audience === ofMcp) ? ['mcp'] : ['mcp', 'api']
  }
}

/** @param longest how many bytes it may have @throws {BadToken} malformed */
function readToken (token: string, longest: number): ReadToken {
  const [header, claims] = token.length > longest ? [] : token.split('.').slice(0, 2).map(readPart)
  if (header === undefined || claims === undefined) throw new BadToken('malformed')
  const { alg, kid, typ } = header
  const { iss, sub, aud, exp, nbf } = claims
  const audiences = Array.isArray(aud) ? aud : [aud]
  const isWhole = isClaimText(iss) && isClaimText(sub) && isClaimTime(exp) && (nbf === undefined || isClaimTime(nbf)) &&
    audiences.every(isClaimText) && (kid === undefined || typeof kid === 'string') && isTokenType(typ)
  if (!isWhole || Object.hasOwn(header, 'crit')) throw new BadToken('malformed')
  return {
    // What is no text may be anything, also what can't be made one.
    alg: typeof alg === 'string' ? alg : '',
    kid: kid as string | undefined,
    issuer: iss,
    subject: sub,
    audiences,
    begins: nbf === undefined ? -Infinity : nbf * 1000 - leeway,
    expiresAt: Math.min(exp * 1000, farthest),
    claims,
  }
}

/** What is no UTF-8 would make the same name of several subjects. */
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function readPart (part: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(decoder.decode(Buffer.from(part, 'base64url')))
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Well-formed, since names and digests are made of it in UTF-8. */
function isClaimText (value: unknown): value is string {
  return typeof value === 'string' && value !== '' && !/\p{Surrogate}/u.test(value)
}

function isClaimTime (value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

/** RFC 7515, 4.1.9: `application/` may be left out. RFC 9068, 2.1: an access token. */
function isTokenType (typ: unknown): boolean {
  return typ === undefined || (typeof typ === 'string' && /^(application\/)?(at\+)?jwt$/i.test(typ))
}
