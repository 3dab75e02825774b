import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { Problem } from '../core/errors.ts'
import type { Unavailable } from '../core/errors.ts'
import type { Issuer } from '../core/issuers.ts'
import type { Caller, NeededScope } from '../core/model.ts'
import { Shared } from '../core/shared.ts'
import { subjectName } from '../store/token-blocks.ts'
import type { Grant, GrantListener } from './grant.ts'
import type { LogOutput } from './key-log.ts'
import type { KeyRing } from './key-ring.ts'
import { requireScope } from './scopes.ts'
import { BadToken, TokenChecker, looksLikeToken, tokenFaultOf } from './token-check.ts'
import type { TokenPlace, TokenFault } from './token-check.ts'
import { callerOfSubject } from './token-rules.ts'

/** How many checked tokens are remembered, the latest used; and how many with their text, which is found faster. */
const maxKnown = 10_000
const maxWithText = 1000
/** So many characters at a token's end are no other's: they are of its signature. */
const tailLength = 32

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
export class RefusedToken extends Problem {
  readonly why: TokenFault

  constructor (why: TokenFault) {
    super('unauthorized', {
      detail: `The token is refused: ${faultTexts[why]}.`,
      headers: { 'www-authenticate': `Bearer error="invalid_token", error_description="${why}"` },
    })
    this.why = why
  }
}

/** A subject that an issuer vouched for once: with a token, or when a person signed in. */
interface KnownSubject {
  /** A text in place of the token or the session. */
  mark: string
  /** As the subject may be blocked. */
  name: string
  /** Null if no rule lets it in. */
  caller: Caller | null
  /** When the token expires (ms since the epoch); Infinity where something else ends it. */
  ends: number
  /** Why it doesn't count, but for a block; undefined if it does. @param now by this process's monotonic clock */
  faultNow (place: TokenPlace, now: number): TokenFault | Unavailable | undefined
}

/** An open request, to be notified when its token ends. */
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
  /** Accepted from memory, looked at anew, and refused, for the metrics. */
  readonly counts = {
    hits: 0,
    misses: 0,
    refused: Object.fromEntries(Object.keys(faultTexts).map(why => [why, 0])) as Record<TokenFault, number>
  }

  readonly checker: TokenChecker
  readonly #ring: TokenRingOptions['ring']
  readonly #known = new LRUCache<string, KnownSubject>({ max: maxKnown })
  /** Some of them, by their end: a digest, and the hash of a long text, take longer than all else here. */
  readonly #seen = new LRUCache<string, { text: string, known: KnownSubject }>({ max: maxWithText })
  readonly #checks = new Shared<KnownSubject>()
  readonly #open = new Map<KnownSubject, Set<OpenUse>>()

  constructor ({ issuers, baseUrl, ring, output }: TokenRingOptions) {
    this.#ring = ring
    this.checker = new TokenChecker(issuers, baseUrl, output, () => this.caughtUp())
  }

  start (): void {
    this.#ring.log.follow(this)
    this.checker.start()
  }

  /**
   * The grant of a token, if that is known without a check, which is enough for most requests.
   * @param token or a key
   */
  recall (token: string, place: TokenPlace): Grant | undefined {
    const seen = this.#seen.get(token.slice(-tailLength))
    const known = seen?.text === token ? seen.known : this.#remember(token)
    // Reading a clock costs more than what is compared with it.
    const now = performance.now()
    if (known === undefined || !this.isCurrent(now) || this.endOf(known, place, now) !== undefined) return undefined
    this.counts.hits++
    return new SubjectGrant(this, known, place)
  }

  #remember (token: string): KnownSubject | undefined {
    const known = looksLikeToken(token) ? this.#known.get(tokenDigest(token)) : undefined
    if (known !== undefined) this.#seen.set(token.slice(-tailLength), { text: token, known })
    return known
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
    this.counts.misses++
    try {
      const known = this.#known.get(digest)
      // One whose key has gone is as one that is new here: its issuer may have the key again.
      const isToCheck = known === undefined || known.faultNow(place, performance.now()) === 'signature'
      const found = isToCheck ? await this.#checks.get(digest, () => this.#check(token, digest)) : known
      return await this.grantOf(found, place)
    } catch (error) {
      if (error instanceof BadToken || error instanceof RefusedToken) this.counts.refused[error.why]++
      throw error
    }
  }

  /**
   * The grant of a subject, as long as it counts.
   * @throws {Problem} unauthorized: it doesn't
   * @throws {Unavailable} it isn't known whose tokens are blocked
   */
  async grantOf (known: KnownSubject, place: TokenPlace): Promise<Grant> {
    const grant = new SubjectGrant(this, known, place)
    await grant.authorise()
    return grant
  }

  /** Is it known whose tokens are blocked? If not, await `whenCurrent`. */
  isCurrent (now = performance.now()): boolean {
    const { blocks, log } = this.#ring
    return blocks.isKnown && log.isRecent(blocks.readAt, now)
  }

  /** @throws {Unavailable} */
  async whenCurrent (): Promise<void> {
    if (!this.isCurrent()) await this.#ring.blocks.readOnce()
  }

  /** The answer to a subject that isn't let in now; undefined if it is. */
  endOf (known: KnownSubject, place: TokenPlace, now = performance.now()): Error | undefined {
    const why = known.faultNow(place, now) ?? this.#whyRefused(known, now)
    return typeof why === 'string' ? new RefusedToken(why) : why
  }

  #whyRefused ({ name, caller }: KnownSubject, now: number): TokenFault | undefined {
    if (this.#ring.blocks.isBlocked(name, this.#ring.log.timeAt(now))) return 'blocked'
    return caller === null ? 'rules' : undefined
  }

  /** Notifies a listener when the subject isn't let in any more. @returns a function that stops it */
  onEnd (known: KnownSubject, request: OpenUse): () => void {
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

  async #check (secret: string, digest: string): Promise<KnownSubject> {
    // The claims may be large, also the audiences: what is made of them is all that is kept.
    const { issuer, subject, ruling, keys, keyId, begins, expiresAt, places } = await this.checker.check(secret)
    const token = { keys, keyId, begins, expiresAt, places }
    const caller = 'identity' in ruling ? callerOfSubject(ruling.identity, { issuer, subject }) : null
    const known: KnownSubject = {
      mark: digest,
      name: subjectName(issuer, subject),
      caller,
      ends: expiresAt,
      faultNow: (place, now) => keys.areKnown(now) ? tokenFaultOf(token, place) : keys.away(),
    }
    this.#known.set(digest, known)
    return known
  }
}

function tokenDigest (token: string): string {
  return createHash('sha256').update(token).digest('base64')
}

/** The grant of a token, or of a person who signed in by an issuer. */
class SubjectGrant implements Grant {
  readonly #ring: TokenRing
  readonly #known: KnownSubject
  readonly #place: TokenPlace
  readonly #scope: NeededScope | undefined

  constructor (ring: TokenRing, known: KnownSubject, place: TokenPlace, scope?: NeededScope) {
    this.#ring = ring
    this.#known = known
    this.#place = place
    this.#scope = scope
  }

  get caller (): Caller {
    return this.#known.caller!
  }

  get mark (): string {
    return this.#known.mark
  }

  get ends (): number {
    return this.#known.ends
  }

  for (scope: NeededScope | undefined): Grant {
    return new SubjectGrant(this.#ring, this.#known, this.#place, scope)
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
