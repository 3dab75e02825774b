import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { Problem, Unavailable } from '../core/errors.ts'
import type { Issuer } from '../core/issuers.ts'
import type { Caller, NeededScope } from '../core/model.ts'
import { Shared } from '../core/shared.ts'
import { subjectName } from '../store/token-blocks.ts'
import type { Grant, GrantListener } from './grant.ts'
import type { LogOutput } from './key-log.ts'
import type { KeyRing } from './key-ring.ts'
import { requireScope } from './scopes.ts'
import { TokenChecker, tokenFaultOf } from './token-check.ts'
import type { TokenPlace, SignedToken, TokenFault } from './token-check.ts'
import { callerOfSubject } from './token-rules.ts'

/** How many checked tokens are remembered, the latest used. */
const maxKnown = 10_000

const faultTexts: Readonly<Record<TokenFault, string>> = {
  malformed: 'it is no token that this service can read',
  issuer: 'this service takes no tokens of its issuer',
  signature: 'its signature is not that of a key of its issuer',
  expiry: 'it has expired, or is not valid yet',
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

/** A token that was checked. */
interface KnownToken {
  token: SignedToken
  digest: string
  /** Its subject, as it may be blocked. */
  name: string
  /** Null if no rule lets its subject in. */
  caller: Caller | null
}

/** An open request, to be told when its token ends. */
interface OpenUse { place: TokenPlace, listener: GrantListener, refusal: (() => Error) | undefined }

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
  /** Accepted from memory, and refused for whatever reason, for the metrics. */
  readonly counts = { hits: 0, refused: 0 }
  readonly checker: TokenChecker
  readonly #ring: TokenRingOptions['ring']
  readonly #known = new LRUCache<string, KnownToken>({ max: maxKnown })
  readonly #checks = new Shared<KnownToken>()
  readonly #open = new Map<KnownToken, Set<OpenUse>>()

  constructor ({ issuers, baseUrl, ring, output }: TokenRingOptions) {
    this.#ring = ring
    this.checker = new TokenChecker(issuers, baseUrl, output, () => this.caughtUp())
  }

  start (): void {
    this.#ring.log.follow(this)
    this.checker.start()
  }

  /** The grant of a token, if that is known without a check, which is enough for most requests. */
  recall (token: string, place: TokenPlace): Grant | undefined {
    const known = this.#known.get(tokenDigest(token))
    if (known === undefined || !this.isCurrent() || this.endOf(known, place) !== undefined) return undefined
    this.counts.hits++
    return new TokenGrant(this, known, place)
  }

  /** Did its issuer sign it, as was found before? */
  isKnown (token: string): boolean {
    return this.#known.has(tokenDigest(token))
  }

  /**
   * The grant of a token that `recall` has just not found.
   * @throws {BadToken} it isn't its issuer's
   * @throws {Problem} unauthorized: its issuer signed it, and it doesn't count here
   * @throws {Unavailable} its issuer or Redis doesn't answer, or too many are checked
   */
  async find (token: string, place: TokenPlace): Promise<Grant> {
    const digest = tokenDigest(token)
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

  /** The answer to a token that doesn't count now; undefined if it does. */
  endOf (known: KnownToken, place: TokenPlace): Error | undefined {
    const { keys } = known.token
    if (!keys.areKnown) return keys.away()
    const why = this.#whyEnded(known, place)
    return why && refusedToken(why)
  }

  #whyEnded ({ token, name, caller }: KnownToken, place: TokenPlace): TokenFault | undefined {
    const fault = tokenFaultOf(token, place)
    if (fault !== undefined) return fault
    if (this.#ring.blocks.isBlocked(name, this.#ring.log.timeAt(performance.now()))) return 'blocked'
    return caller === null ? 'rules' : undefined
  }

  /** Notifies a listener when the token no longer counts. @returns a function that stops it */
  onEnd (known: KnownToken, request: OpenUse): () => void {
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
        const end = this.endOf(known, request.place)
        if (end === undefined) continue
        open.delete(request)
        request.listener.ended(request.refusal?.() ?? end)
      }
      if (open.size === 0) this.#open.delete(known)
    }
  }

  async #check (secret: string, digest: string): Promise<KnownToken> {
    const token = await this.checker.check(secret)
    const caller = callerOfSubject(token.ruling, token)
    const known = { token, digest, name: subjectName(token.issuer, token.subject), caller }
    this.#known.set(digest, known)
    return known
  }
}

function tokenDigest (token: string): string {
  return createHash('sha256').update(token).digest('base64')
}

/** The grant of a token. */
class TokenGrant implements Grant {
  readonly #ring: TokenRing
  readonly #known: KnownToken
  readonly #place: TokenPlace
  readonly #scope: NeededScope | undefined

  constructor (ring: TokenRing, known: KnownToken, place: TokenPlace, scope?: NeededScope) {
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
    return this.#known.token.expiresAt
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
    const end = this.#ring.endOf(this.#known, this.#place)
    if (end !== undefined) throw end
    requireScope(this.caller, this.#scope)
    return this.caller
  }
}
