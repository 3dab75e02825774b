import { createPublicKey } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { Unavailable } from '../core/errors.ts'
import { isAddress, isJsonObject } from '../core/issuers.ts'
import type { Issuer, Jwk } from '../core/issuers.ts'
import { Round } from '../core/round.ts'
import type { LogOutput } from './key-log.ts'

/** How long one request to an issuer may take, in milliseconds, and how many bytes its answer may have. */
export const fetchTime = 5000
const maxIssuerAnswer = 1024 * 1024
/** Milliseconds until keys are fetched again: at the latest, at the earliest, and after a failure. */
const renewedAfter = 3600_000
const renewedNotBefore = 30_000
const afterFailure = 5000
/** How long keys count after they were fetched, in milliseconds, if they can't be fetched again. */
const countsFor = 86400_000

/** A key that may verify a token. @property id the same for the same key, whatever else its issuer says of it */
interface IssuerKey { id: string, kid: string | undefined, fits (algorithm: string): boolean, key: KeyObject }

/** The algorithms that each type of key, and its curve, is for. */
const algorithmsOf: Readonly<Record<string, readonly string[]>> = {
  RSA: ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  'EC P-256': ['ES256'],
  'EC P-384': ['ES384'],
  'EC P-521': ['ES512'],
  'OKP Ed25519': ['EdDSA'],
}

/** Ed25519 is the newer name of what EdDSA was used for (RFC 9864). */
export function algorithmOf (alg: unknown): string {
  return alg === 'Ed25519' ? 'EdDSA' : String(alg)
}

/** @throws {Error} why it can't verify a token: it hinders no other */
function usableKey (jwk: Jwk): IssuerKey {
  const { kty, crv, use, key_ops: operations, alg, kid } = jwk
  const kind = kty === 'RSA' ? 'RSA' : `${String(kty)} ${String(crv)}`
  const algorithms = algorithmsOf[kind]
  if (algorithms === undefined) {
    throw new Error(`keys of its kind (${JSON.stringify(crv === undefined ? kty : kind)}) are not taken`)
  }
  if (use !== undefined && use !== 'sig') throw new Error(`its use is ${JSON.stringify(use)}`)
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) {
    throw new Error('its key_ops have no verify')
  }
  const given = alg === undefined ? algorithms : algorithms.filter(one => one === algorithmOf(alg))
  const { n, e, x, y } = jwk
  const key = createPublicKey({ key: { kty, crv, n, e, x, y } as Record<string, string>, format: 'jwk' })
  const bits = key.asymmetricKeyDetails?.modulusLength ?? Infinity
  if (bits < 2048) throw new Error(`it has ${bits} bits, and 2048 are the least`)
  return {
    id: JSON.stringify(key.export({ format: 'jwk' })),
    kid: typeof kid === 'string' ? kid : undefined,
    fits: algorithm => given.includes(algorithm),
    key,
  }
}

/** What is known of an issuer's keys. Times in milliseconds; null where its keys are given, or aren't known. */
export interface IssuerKeysReport {
  /** Their kids, as far as they have some. */
  usable: Array<string | undefined>
  unusable: Array<{ kid: unknown, why: string }>
  age: number | null
  renewedIn: number | null
  /** Why it doesn't answer; null if it does. Undefined before it was asked. */
  fault: string | null | undefined
}

/**
 * The keys of an issuer: given, or fetched from it, and fetched again after an hour or as soon as their answer says.
 * An issuer that doesn't answer holds up only its own tokens: what is known of its keys counts on for a day.
 */
export class IssuerKeys {
  readonly issuer: Issuer
  readonly #output: LogOutput
  readonly #onChange: () => void
  readonly #round: Round
  #keys: readonly IssuerKey[] = []
  #ids: ReadonlySet<string> = new Set()
  /** Until when what is known counts, by this process's monotonic clock. */
  #countsUntil = -Infinity
  #unusable: IssuerKeysReport['unusable'] = []
  #fetchedAt = -Infinity
  /** Why the last fetch failed; null if it didn't. */
  #fault: string | null | undefined
  #underWay: Promise<void> | undefined
  /** When it is to be asked again, and when it was last asked for an unknown kid, by the same clock. */
  #dueAt = -Infinity
  #askedForKidAt = -Infinity

  /** @param onChange called when keys may have gone */
  constructor (issuer: Issuer, output: LogOutput, onChange: () => void) {
    this.issuer = issuer
    this.#output = output
    this.#onChange = onChange
    this.#round = new Round({
      interval: Infinity,
      run: () => this.#fetchIfDue(),
      onFault: error => output.error({ err: error }, 'fetching an issuer’s keys failed'),
    })
    if (issuer.jwks !== null && 'keys' in issuer.jwks) {
      this.#know(issuer.jwks.keys)
      this.#countsUntil = Infinity
    }
  }

  get isGiven (): boolean {
    return this.#countsUntil === Infinity
  }

  get #isFailing (): boolean {
    return typeof this.#fault === 'string'
  }

  start (): void {
    if (!this.isGiven) this.#round.wake()
  }

  async stop (): Promise<void> {
    await this.#round.stop()
  }

  /** Asks the issuer, unless its keys are given. @returns what is known then */
  async look (): Promise<IssuerKeysReport> {
    if (!this.isGiven) await this.#fetch().catch(() => {})
    return this.report()
  }

  report (): IssuerKeysReport {
    const now = performance.now()
    const age = now - this.#fetchedAt
    const isKnown = age < Infinity
    const algorithms = [...this.issuer.algorithms]
    const fits = (key: IssuerKey) => algorithms.some(algorithm => key.fits(algorithm))
    const others = this.#keys.filter(key => !fits(key))
    return {
      usable: this.#keys.filter(fits).map(({ kid }) => kid),
      unusable: [...this.#unusable, ...others.map(({ kid }) => ({ kid, why: 'none of the algorithms is for it' }))],
      age: isKnown ? age : null,
      renewedIn: isKnown ? Math.max(0, this.#dueAt - now) : null,
      fault: this.#fault
    }
  }

  /** Does what was fetched still count? @param now by this process's monotonic clock */
  areKnown (now: number): boolean {
    return now < this.#countsUntil
  }

  /** Is the key with this id among those that were fetched last? */
  has (id: string): boolean {
    return this.#ids.has(id)
  }

  /**
   * The keys for a token: those with its kid, and where none has it, those without.
   * @throws {Unavailable} none is known
   */
  async find (algorithm: string, kid: string | undefined): Promise<IssuerKey[]> {
    if (!this.areKnown(performance.now())) await this.#first()
    const fitting = this.#keys.filter(key => key.fits(algorithm))
    if (kid === undefined) return fitting
    const named = fitting.filter(key => key.kid === kid)
    return named.length > 0 ? named : fitting.filter(key => key.kid === undefined)
  }

  /**
   * For a token whose kid no key has: its issuer may have new ones.
   * @returns whether they were fetched anew
   * @throws {Unavailable} the issuer doesn't answer
   */
  async renew (kid: string): Promise<boolean> {
    if (this.isGiven || this.#keys.some(key => key.kid === kid)) return false
    if (this.#isFailing) throw this.away()
    if (this.#underWay === undefined) {
      const now = performance.now()
      if (now - this.#askedForKidAt < renewedNotBefore) return false
      this.#askedForKidAt = now
    }
    await this.#fetch().catch(() => { throw this.away() })
    return true
  }

  /** While its issuer fails, each request gets its answer at once: the round asks again. */
  async #first (): Promise<void> {
    if (this.#isFailing && this.#underWay === undefined) throw this.away()
    await this.#fetch().catch(() => { throw this.away() })
  }

  /** @returns in how many milliseconds the issuer is to be asked next: a token's kid may have had it asked meanwhile */
  async #fetchIfDue (): Promise<number> {
    if (performance.now() >= this.#dueAt) await this.#fetch().catch(() => {})
    return this.#dueAt - performance.now()
  }

  /** The answer to a token while the keys of its issuer aren't known. */
  away (): Unavailable {
    return new Unavailable(`the keys of the issuer ${this.issuer.issuer} are not to be had`)
  }

  /** One at a time. */
  #fetch (): Promise<void> {
    this.#underWay ??= this.#ask().then(() => {
      if (this.#isFailing) this.#output.info({ issuer: this.issuer.issuer }, 'an issuer’s keys are known again')
      this.#fault = null
    }, error => {
      const why = whyNotFetched(error)
      if (!this.#isFailing && !this.#round.signal.aborted) {
        this.#output.error({ issuer: this.issuer.issuer, why }, 'an issuer’s keys could not be fetched')
      }
      this.#fault = why
      this.#dueAt = performance.now() + afterFailure
      throw error
    }).finally(() => {
      this.#underWay = undefined
      this.#round.wake(this.#dueAt - performance.now())
    })
    return this.#underWay
  }

  async #ask (): Promise<void> {
    const { answer, maxAge } = await getJson(await this.#location(), this.#round.signal)
    const { keys } = answer as { keys?: unknown }
    if (!Array.isArray(keys)) throw new Error('its key set has no keys')
    this.#know(keys)
    const now = performance.now()
    this.#dueAt = now + Math.max(renewedNotBefore, Math.min(renewedAfter, maxAge))
    this.#fetchedAt = now
    this.#countsUntil = now + countsFor
    this.#onChange()
  }

  #know (keys: readonly unknown[]): void {
    const usable: IssuerKey[] = []
    this.#unusable = []
    for (const jwk of keys) {
      try {
        if (!isJsonObject(jwk)) throw new Error('it is no JSON object')
        usable.push(usableKey(jwk))
      } catch (error) {
        this.#unusable.push({ kid: isJsonObject(jwk) ? jwk.kid : undefined, why: (error as Error).message })
      }
    }
    this.#keys = usable
    this.#ids = new Set(usable.map(({ id }) => id))
  }

  async #location (): Promise<string> {
    const { jwks } = this.issuer
    if (jwks !== null && 'uri' in jwks) return jwks.uri
    const metadata = await metadataOf(this.issuer, this.#round.signal)
    requirePlaces(metadata, ['jwks_uri'], this.issuer)
    return metadata.jwks_uri as string
  }
}

/** An address of an issuer's metadata: may the service ask it, and send people there? */
export function isPlace (place: unknown, { isInsecure }: Pick<Issuer, 'isInsecure'>): boolean {
  return typeof place === 'string' && isAddress(place.replace(/\?.*$/, ''), isInsecure)
}

/** What people can't sign in by an issuer without. */
export const signInPlaces = ['authorization_endpoint', 'token_endpoint'] as const

/** @param metadata what an issuer says of itself @throws {Error} one of these addresses is none */
export function requirePlaces (
  metadata: Record<string, unknown>, names: readonly string[], issuer: Pick<Issuer, 'isInsecure'>
): void {
  const missing = names.find(name => !isPlace(metadata[name], issuer))
  if (missing !== undefined) throw new Error(`its metadata has no ${missing} that may be asked`)
}

/**
 * What an issuer says of itself (OpenID Connect Discovery 1.0, 4; RFC 8414, 3).
 * @throws {Error} it doesn't answer, or says that it is another
 */
export async function metadataOf (
  { issuer }: Pick<Issuer, 'issuer'>, signal?: AbortSignal
): Promise<Record<string, unknown>> {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  const { answer } = await getJson(`${origin}${path}/.well-known/openid-configuration`, signal).catch(error => {
    if ((error as Error).cause !== 404) throw error
    return getJson(`${origin}/.well-known/oauth-authorization-server${path}`, signal)
  })
  if (answer.issuer !== issuer) throw new Error('its metadata is of another issuer')
  return answer
}

/** @returns `maxAge`: for how long it may be kept (ms); Infinity if the answer doesn't say */
async function getJson (
  url: string, signal?: AbortSignal
): Promise<{ answer: Record<string, unknown>, maxAge: number }> {
  const timeout = AbortSignal.timeout(fetchTime)
  const response = await fetch(url, {
    redirect: 'error',
    headers: { accept: 'application/json' },
    signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
  })
  if (!response.ok) {
    await response.body?.cancel()
    throw new Error(`it answered ${response.status}`, { cause: response.status })
  }
  const answer: unknown = JSON.parse(await answerText(response))
  if (!isJsonObject(answer)) throw new Error('its answer is no JSON object')
  return { answer, maxAge: maxAgeOf(response.headers.get('cache-control') ?? '') }
}

/** What Cache-Control says (RFC 9111, 5.2.2). */
function maxAgeOf (control: string): number {
  if (/(?:^|[\s,])no-(?:cache|store)(?:$|[\s,])/i.test(control)) return 0
  const [, seconds] = /(?:^|[\s,])max-age="?(\d{1,9})/i.exec(control) ?? []
  return seconds === undefined ? Infinity : Number(seconds) * 1000
}

async function answerText (response: Response): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of response.body ?? []) {
    bytes += part.byteLength
    if (bytes > maxIssuerAnswer) throw new Error(`its answer has more than ${maxIssuerAnswer} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

/** As fetch, with an answer that has no more bytes than an issuer's may have. */
export async function fetchWithin (url: string, options: object): Promise<Response> {
  const response = await fetch(url, options)
  const { status, headers } = response
  return new Response(await answerText(response) || null, { status, headers })
}

/** fetch says why in the cause. */
export function whyNotFetched (error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}
