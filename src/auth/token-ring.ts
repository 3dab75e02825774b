import { createHash } from 'node:crypto'
import { compactVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import { Problem, Unavailable } from '../core/errors.ts'
import type { Issuer } from '../core/issuers.ts'
import type { Caller, NeededScope } from '../core/model.ts'
import { Shared } from '../core/shared.ts'
import { subjectName } from '../store/token-blocks.ts'
import type { Grant, GrantListener } from './grant.ts'
import { IssuerKeys, algorithmOf } from './issuer-keys.ts'
import type { LogOutput } from './key-log.ts'
import type { KeyRing } from './key-ring.ts'
import { requireScope } from './scopes.ts'
import { ruleOn } from './token-rules.ts'
import type { Claims } from './token-rules.ts'

/** How many bytes a token may have. */
const maxLength = 8192
/** How many checked tokens are remembered, the latest used. */
const maxKnown = 10_000
/** Signatures that are checked in a second, at most. */
const signaturesPerSecond = 500
/** How far the clocks of an issuer and this replica may differ, in milliseconds. */
const leeway = 30_000
/** The latest end that is told apart: that of the year 9999. */
const farthest = 253_402_300_799_999

/** Why a token is refused, in the order in which that is found. */
export type TokenFault = 'malformed' | 'issuer' | 'signature' | 'expiry' | 'audience' | 'blocked' | 'rules'

const faultTexts: Readonly<Record<TokenFault, string>> = {
  malformed: 'it is no token that this service can read',
  issuer: 'this service takes no tokens of its issuer',
  signature: 'its signature is not that of a key of its issuer',
  expiry: 'it has ended, or has not begun',
  audience: 'it is for another service',
  blocked: 'an operator of this service blocked its subject',
  rules: 'no rule of this service lets its subject in',
}

/** The answer to a token. It says nothing of the claims. */
export function refusedToken (why: TokenFault): Problem {
  return new Problem('unauthorized', {
    detail: `The token is refused: ${faultTexts[why]}.`,
    headers: { 'www-authenticate': `Bearer error="invalid_token", error_description="${why}"` },
  })
}

/** What is wrong with a token up to its signature. So it may be anybody's guess. */
export class BadToken extends Error {
  readonly why: TokenFault

  constructor (why: TokenFault) {
    super(why)
    this.why = why
  }
}

/** A token's shape: three base64url parts. */
export function isToken (secret: string): boolean {
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
export type Place = 'mcp' | 'api'

/** A token that its issuer signed. `caller`: null if no rule lets its subject in. */
interface KnownToken extends ReadToken {
  digest: string
  keys: IssuerKeys
  /** Of the key that signed it. */
  keyId: string
  /** Where it may be used. */
  places: readonly Place[]
  /** Its subject, as it may be blocked. */
  name: string
  caller: Caller | null
}

/** An open request, to be told when its token ends. */
interface OpenRequest { place: Place, listener: GrantListener, refusal: (() => Error) | undefined }

/** Results of token checks, as plain numbers for the metrics. */
interface TokenCounts {
  /** Accepted from memory. */
  hits: number
  /** Their signature was checked. */
  verified: number
  /** Refused, for whatever reason. */
  refused: number
  /** Not checked (503): too many at once. */
  shed: number
}

interface TokenRingOptions {
  issuers: readonly Issuer[]
  /** BASE_URL. */
  baseUrl: () => string
  /** Whose tokens are blocked, and how far that is known. */
  ring: Pick<KeyRing, 'blocks' | 'log'>
  output: LogOutput
}

/**
 * The tokens of others that the service takes. A token whose signature was checked is remembered, so that it costs as
 * little as a key. Its end, its key and whether its subject is blocked are looked at again in each step.
 */
export class TokenRing {
  readonly counts: TokenCounts = { hits: 0, verified: 0, refused: 0, shed: 0 }
  readonly #issuers = new Map<string, IssuerKeys>()
  readonly #baseUrl: () => string
  readonly #ring: TokenRingOptions['ring']
  readonly #known = new LRUCache<string, KnownToken>({ max: maxKnown })
  readonly #checks = new Shared<KnownToken>()
  readonly #open = new Map<KnownToken, Set<OpenRequest>>()
  /** Signatures checked in the current second. */
  #signatures = 0
  #secondBegan = -Infinity

  constructor ({ issuers, baseUrl, ring, output }: TokenRingOptions) {
    this.#baseUrl = baseUrl
    this.#ring = ring
    for (const issuer of issuers) {
      this.#issuers.set(issuer.issuer, new IssuerKeys(issuer, output, () => this.caughtUp()))
    }
  }

  start (): void {
    this.#ring.log.follow(this)
    for (const keys of this.#issuers.values()) keys.start()
  }

  async stop (): Promise<void> {
    await Promise.all([...this.#issuers.values()].map(keys => keys.stop()))
  }

  /** The grant of a token, if that is known without a check, which is enough for most requests. */
  recall (token: string, place: Place): Grant | undefined {
    const known = this.#known.get(digestOf(token))
    if (known === undefined || !this.isCurrent() || this.whyEnded(known, place) !== undefined) return undefined
    this.counts.hits++
    return new TokenGrant(this, known, place)
  }

  /** Did its issuer sign it, as was found before? */
  isKnown (token: string): boolean {
    return this.#known.has(digestOf(token))
  }

  /**
   * The grant of a token that `recall` has just not found.
   * @throws {BadToken} it isn't its issuer's
   * @throws {Problem} unauthorized: its issuer signed it, and it doesn't count here
   * @throws {Unavailable} its issuer or Redis doesn't answer, or too many are checked
   */
  async find (token: string, place: Place): Promise<Grant> {
    const digest = digestOf(token)
    try {
      const known = this.#known.get(digest) ?? await this.#checks.get(digest, () => this.#check(token, digest))
      const grant = new TokenGrant(this, known, place)
      await grant.authorise()
      return grant
    } catch (error) {
      if (!(error instanceof Unavailable)) this.counts.refused++
      throw error
    }
  }

  /** Is it known whose tokens are blocked? If not, await `whenCurrent`. */
  isCurrent (): boolean {
    const { blocks, log } = this.#ring
    return blocks.isKnown && log.isRecent(blocks.readAt, performance.now())
  }

  /** @throws {Unavailable} */
  async whenCurrent (): Promise<void> {
    if (!this.isCurrent()) await this.#ring.blocks.readOnce()
  }

  /** Why the token doesn't count now; undefined if it does. */
  whyEnded (known: KnownToken, place: Place): TokenFault | undefined {
    const now = Date.now()
    if (!known.keys.has(known.keyId)) return 'signature'
    if (now >= known.expiresAt + leeway || now < known.begins) return 'expiry'
    if (!known.places.includes(place)) return 'audience'
    if (this.#ring.blocks.isBlocked(known.name, this.#ring.log.timeAt(performance.now()))) return 'blocked'
    return known.caller === null ? 'rules' : undefined
  }

  /** Notifies a listener when the token no longer counts. @returns a function that stops it */
  onEnd (known: KnownToken, request: OpenRequest): () => void {
    const open = this.#open.get(known) ?? new Set()
    this.#open.set(known, open.add(request))
    return () => {
      open.delete(request)
      if (open.size === 0 && this.#open.get(known) === open) this.#open.delete(known)
    }
  }

  /** The log of keys says nothing of single tokens. */
  forget (): void {}

  /** What is known was brought up to date, twice a second: ends the open requests whose token no longer counts. */
  caughtUp (): void {
    for (const [known, open] of this.#open) {
      for (const request of open) {
        const why = this.whyEnded(known, request.place)
        if (why === undefined) continue
        open.delete(request)
        request.listener.ended(request.refusal?.() ?? refusedToken(why))
      }
      if (open.size === 0) this.#open.delete(known)
    }
  }

  async #check (token: string, digest: string): Promise<KnownToken> {
    const read = readToken(token)
    const keys = this.#issuers.get(read.issuer)
    if (keys === undefined) throw new BadToken('issuer')
    const keyId = await this.#verify(token, read, keys)
    const known: KnownToken = {
      ...read,
      digest,
      keys,
      keyId,
      places: this.#placesOf(read.audiences, keys.issuer),
      name: subjectName(read.issuer, read.subject),
      caller: callerOfToken(read, keys.issuer),
    }
    this.#known.set(digest, known)
    return known
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
  #placesOf (audiences: readonly string[], { audiences: given }: Issuer): Place[] {
    const ofMcp = `${this.#baseUrl()}/mcp`
    const ours = given ?? [this.#baseUrl(), ofMcp]
    const matching = audiences.filter(audience => ours.includes(audience))
    if (matching.length === 0) return []
    return matching.every(audience => audience === ofMcp) ? ['mcp'] : ['mcp', 'api']
  }
}

function digestOf (token: string): string {
  return createHash('sha256').update(token).digest('base64')
}

/** @throws {BadToken} malformed */
function readToken (token: string): ReadToken {
  const [header, claims] = token.length > maxLength ? [] : token.split('.').slice(0, 2).map(readPart)
  if (header === undefined || claims === undefined) throw new BadToken('malformed')
  const { alg, kid, typ } = header
  const { iss, sub, aud, exp, nbf } = claims
  const audiences = Array.isArray(aud) ? aud : [aud]
  const isWhole = isText(iss) && isText(sub) && isTime(exp) && (nbf === undefined || isTime(nbf)) &&
    audiences.every(isText) && (kid === undefined || typeof kid === 'string') && isTokenType(typ)
  if (!isWhole || Object.hasOwn(header, 'crit')) throw new BadToken('malformed')
  return {
    alg: String(alg),
    kid: kid as string | undefined,
    issuer: iss,
    subject: sub,
    audiences,
    begins: nbf === undefined ? -Infinity : nbf * 1000 - leeway,
    expiresAt: Math.min(exp * 1000, farthest),
    claims,
  }
}

function readPart (part: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString())
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value as Record<string, unknown> : undefined
  } catch {
    return undefined
  }
}

/** Well-formed, since names and digests are made of it in UTF-8. */
function isText (value: unknown): value is string {
  return typeof value === 'string' && value !== '' && !/\p{Surrogate}/u.test(value)
}

function isTime (value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

/** RFC 7515, 4.1.9: `application/` may be left out. RFC 9068, 2.1: an access token. */
function isTokenType (typ: unknown): boolean {
  return typ === undefined || (typeof typ === 'string' && /^(application\/)?(at\+)?jwt$/i.test(typ))
}

function callerOfToken ({ issuer, subject, claims }: ReadToken, { rules }: Issuer): Caller | null {
  const ruling = ruleOn(rules, issuer, claims)
  if (!('identity' in ruling)) return null
  const { tenant, agent, scopes, inboxes } = ruling.identity
  return {
    tenant,
    agent,
    scopes: new Set(scopes),
    keyId: null,
    ratePerMinute: null,
    inboxes: inboxes && new Set(inboxes),
    subject: { issuer, subject },
  }
}

/** The grant of a token. */
class TokenGrant implements Grant {
  readonly #ring: TokenRing
  readonly #known: KnownToken
  readonly #place: Place
  readonly #scope: NeededScope | undefined

  constructor (ring: TokenRing, known: KnownToken, place: Place, scope?: NeededScope) {
    this.#ring = ring
    this.#known = known
    this.#place = place
    this.#scope = scope
  }

  get caller (): Caller {
    return this.#known.caller!
  }

  get mark (): string {
    return this.#known.digest
  }

  get ends (): number {
    return this.#known.expiresAt
  }

  for (scope: NeededScope | undefined): Grant {
    return new TokenGrant(this.#ring, this.#known, this.#place, scope)
  }

  authorise (): Caller | Promise<Caller> {
    return this.#ring.isCurrent() ? this.#admit() : this.#ring.whenCurrent().then(() => this.#admit())
  }

  async onEnd (listener: GrantListener, refusal?: () => Error): Promise<() => void> {
    return this.#ring.onEnd(this.#known, { place: this.#place, listener, refusal })
  }

  #admit (): Caller {
    const why = this.#ring.whyEnded(this.#known, this.#place)
    if (why !== undefined) throw refusedToken(why)
    requireScope(this.caller, this.#scope)
    return this.caller
  }
}
