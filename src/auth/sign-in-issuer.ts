import * as oidc from 'openid-client'
import { Unavailable } from '../core/errors.ts'
import { isJsonObject } from '../core/issuers.ts'
import type { Issuer, SignInSettings, TokenRule } from '../core/issuers.ts'
import { Shared } from '../core/shared.ts'
import {
  fetchTime, fetchWithin, isPlace, metadataOf, requirePlaces, signInPlaces, whyNotFetched
} from './issuer-keys.ts'
import { BadToken } from './token-check.ts'
import type { TokenChecker } from './token-check.ts'
import { claimIn, claimsRead, ruleOn } from './token-rules.ts'
import type { Claims, Ruling } from './token-rules.ts'

/** What a person's way to the issuer and back is secured with. It stays in the browser. */
export interface Way { state: string, nonce: string, verifier: string }

/** Whom an issuer signed in, and what the rules say. @property name what the issuer calls that person */
export interface SignedIn { issuer: string, subject: string, name: string, ruling: Ruling }

/** The issuer said no. Its words may be anything. */
export class SignInRefused extends Error {}

/** The sign-in failed: what came back isn't what the issuer was asked for. The message is for the log. */
export class SignInFailed extends Error {}

/** For how long what an issuer says of itself is kept, in milliseconds. */
const metadataKeptFor = 3600_000
/** The largest subject (OpenID Connect Core 1.0, 2), and how much of a name is kept, in characters. */
const maxSubject = 255
const maxName = 200

/**
 * An issuer by which people sign in: the authorization code flow with PKCE, a state and a nonce (OpenID Connect Core
 * 1.0, 3.1; RFC 9700, 2.1). openid-client does it; the ID token's signature is checked as that of a token.
 */
export class SignInIssuer {
  readonly issuer: Issuer
  readonly #settings: SignInSettings
  readonly #checker: TokenChecker
  readonly #fetches = new Shared<oidc.Configuration>()
  #known: { config: oidc.Configuration, at: number } | undefined

  constructor (issuer: Issuer, settings: SignInSettings, checker: TokenChecker) {
    this.issuer = issuer
    this.#settings = settings
    this.#checker = checker
  }

  get label (): string {
    return this.#settings.label
  }

  /** What people know it by. */
  get host (): string {
    return new URL(this.issuer.issuer).host
  }

  get rules (): readonly TokenRule[] {
    return this.#settings.rules
  }

  /**
   * Where a person signs in.
   * @param back where the issuer sends the person back
   * @param asAnother whether the issuer must ask who it is
   * @throws {Unavailable} the issuer doesn't answer
   */
  async begin (back: string, asAnother: boolean): Promise<{ url: string, way: Way }> {
    const config = await this.#config()
    const way = { state: oidc.randomState(), nonce: oidc.randomNonce(), verifier: oidc.randomPKCECodeVerifier() }
    const { href } = oidc.buildAuthorizationUrl(config, {
      redirect_uri: back,
      scope: this.#settings.asksFor,
      state: way.state,
      nonce: way.nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(way.verifier),
      code_challenge_method: 'S256',
      ...asAnother && { prompt: 'login' },
    })
    return { url: href, way }
  }

  /**
   * Who came back.
   * @param url the whole address
   * @throws {SignInRefused} the issuer says why
   * @throws {SignInFailed}
   * @throws {Unavailable} the issuer doesn't answer
   */
  async finish (url: URL, { state, nonce, verifier }: Way): Promise<SignedIn> {
    const config = await this.#config()
    const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true }
    const { issuer } = this.issuer
    try {
      const { id_token: token = '', access_token: access } = await oidc.authorizationCodeGrant(config, url, checks)
      const { subject, claims } = await this.#checker.checkIdToken(token, this.issuer, this.#settings.clientId)
      if (subject.length > maxSubject) throw new SignInFailed('its subject has more than 255 characters')
      const all = await this.#completed(config, claims, access, subject)
      return { issuer, subject, name: displayName(all, subject), ruling: ruleOn(this.rules, issuer, all) }
    } catch (error) {
      throw signInFault(error, issuer)
    }
  }

  /**
   * Where a person signs out, too.
   * @param back where the issuer sends the person back
   * @returns undefined where the issuer has no such place, or doesn't answer
   */
  async endUrl (back: string): Promise<string | undefined> {
    const config = await this.#config().catch(() => undefined)
    if (config?.serverMetadata().end_session_endpoint === undefined) return undefined
    return oidc.buildEndSessionUrl(config, { post_logout_redirect_uri: back }).href
  }

  /** What the ID token lacks of what is looked at, the issuer may say of its subject (userinfo). */
  async #completed (config: oidc.Configuration, claims: Claims, access: string, subject: string): Promise<Claims> {
    const { userinfo_endpoint: place } = config.serverMetadata()
    const wanted = [['name'], ...claimsRead(this.rules)]
    if (place === undefined || wanted.every(path => claimIn(claims, path) !== undefined)) return claims
    return withMore(claims, await oidc.fetchUserInfo(config, access, subject))
  }

  /** @throws {Unavailable} */
  async #config (): Promise<oidc.Configuration> {
    const known = this.#known
    if (known !== undefined && performance.now() - known.at < metadataKeptFor) return known.config
    try {
      return await this.#fetches.get('', async () => {
        const config = this.#configOf(await metadataOf(this.issuer))
        this.#known = { config, at: performance.now() }
        return config
      })
    } catch (error) {
      if (known !== undefined) return known.config
      throw new Unavailable(`the issuer ${this.issuer.issuer} is away: ${whyNotFetched(error)}`)
    }
  }

  /** @throws {Error} what it says can't be used */
  #configOf (metadata: Record<string, unknown>): oidc.Configuration {
    const { clientId, clientSecret } = this.#settings
    requirePlaces(metadata, signInPlaces, this.issuer)
    const signedBy = [...this.issuer.algorithms].flatMap(one => one === 'EdDSA' ? [one, 'Ed25519'] : [one])
    const usable: Record<string, unknown> = { ...metadata, id_token_signing_alg_values_supported: signedBy }
    for (const name of ['userinfo_endpoint', 'end_session_endpoint']) {
      if (!isPlace(usable[name], this.issuer)) delete usable[name]
    }
    const config = new oidc.Configuration(
      usable as unknown as oidc.ServerMetadata, clientId, { [oidc.clockTolerance]: 30 },
      clientSecret === undefined ? oidc.None() : authenticationOf(usable)(clientSecret)
    )
    config.timeout = fetchTime / 1000
    config[oidc.customFetch] = fetchWithin
    // Which of its addresses may be http was decided above.
    oidc.allowInsecureRequests(config)
    return config
  }
}

/** How the service says to the issuer who it is: as a password, unless the issuer takes it in the body only. */
function authenticationOf ({ token_endpoint_auth_methods_supported: methods }: Record<string, unknown>) {
  const isBodyOnly = Array.isArray(methods) && !methods.includes('client_secret_basic') &&
    methods.includes('client_secret_post')
  return isBodyOnly ? oidc.ClientSecretPost : oidc.ClientSecretBasic
}

/** The claims, and those members, also of objects in them, that they lack. */
function withMore (claims: Claims, more: Claims): Claims {
  const lacking = Object.entries(more).map(([name, value]) => {
    const given = Object.hasOwn(claims, name) ? claims[name] : undefined
    return [name, isJsonObject(given) && isJsonObject(value) ? withMore(given, value) : given ?? value]
  })
  return { ...claims, ...Object.fromEntries(lacking) }
}

/** What pages call the person. */
function displayName (claims: Claims, subject: string): string {
  const { name, preferred_username: username, email } = claims
  const found = [name, username, email].find(text => typeof text === 'string' && text.trim() !== '') ?? subject
  return [...(found as string).replace(/[\p{Cc}\p{Cf}\p{Surrogate}]/gu, ' ').trim()].slice(0, maxName).join('')
}

function signInFault (error: unknown, issuer: string): Error {
  if (error instanceof SignInFailed || error instanceof Unavailable) return error
  if (error instanceof BadToken) return new SignInFailed(`the ID token is refused: ${error.why}`)
  if (error instanceof oidc.AuthorizationResponseError) {
    const { error: code, error_description: text } = error
    return new SignInRefused(text === undefined ? code : `${text} (${code})`)
  }
  const { message, cause, name, code } = error as Error & { code?: string }
  const isAway = code === 'OAUTH_TIMEOUT' || name === 'TimeoutError' || message === 'fetch failed' ||
    (cause instanceof Response && cause.status >= 500)
  if (isAway) return new Unavailable(`the issuer ${issuer} does not answer: ${whyNotFetched(error)}`)
  const more = cause instanceof Error ? cause.message : isJsonObject(cause) ? cause.error : undefined
  return new SignInFailed(typeof more === 'string' ? `${message}: ${more}` : message)
}
