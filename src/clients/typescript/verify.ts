import { call } from './call.ts'
import type { CallOptions } from './call.ts'
import { HandoffError } from './errors.ts'
import type { SignatureFault } from './errors.ts'
import { memberSpans } from './json.ts'
import type { Settings } from './settings.ts'

/** What a person decided, as the service signed it. */
export interface SignedDecision {
  /** The service's address. */
  iss: string
  /** The handoff that the person decided on. A further attempt has another id. */
  handoff_id: string
  tenant: string
  to: string | null
  passed_by: string
  created_at: string
  /** Of the content, as `approval` has it. */
  digest: string | null
  /** Whether who decided sent the digest of what they saw. */
  confirmed: boolean
  state: 'approved' | 'rejected'
  decided_at: string
  decided_by: string
  /** Whom an issuer signed in; null for a key. */
  decided_by_subject: string | null
  note: string | null
}

/** Public keys (RFC 7517). */
export interface Jwks { keys: readonly object[] }

export interface VerifyOptions extends CallOptions {
  /** The keys that count; by default those that the service has at /.well-known/jwks.json. */
  jwks?: Jwks | undefined
  /** The service's address, as its BASE_URL says it; by default the client's. */
  issuer?: string | undefined
}

/** The parts of an answer that are compared with the signature. */
interface ShownAnswer {
  /** Null once the content is gone: then nothing is left to be compared. */
  task?: unknown
  handoff_id?: unknown
  created_at?: unknown
  to?: unknown
  passed_by?: unknown
  attempt?: unknown
  reissue_of?: unknown
  approval?: Record<string, unknown> | null
}

type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>

/** How long the service's keys are kept, and from when on an unknown one makes them read again, in milliseconds. */
const [jwksKeptFor, jwksKeptAtLeast] = [300_000, 10_000]
const withoutKey = { read: async () => undefined }

/** Checks signatures of people's decisions. */
export class DecisionVerifier {
  readonly #settings: Settings
  #jwks: { at: number, found: Jwks } | undefined

  constructor (settings: Settings) {
    this.#settings = { ...settings, authorization: withoutKey }
  }

  /** @param text of an answer of catch or of GET /api/approvals/:id, as it came @throws {HandoffError} */
  async verify (
    text: string, { jwks, issuer = this.#settings.baseUrl, ...options }: VerifyOptions = {}
  ): Promise<SignedDecision> {
    const shown = JSON.parse(text) as ShownAnswer
    const approval = shown.approval ?? {}
    if (typeof approval.signature !== 'string') throw unreliable('unsigned', 'the answer has no signature')
    const [header, payload, signature, ...more] = approval.signature.split('.').map(fromBase64url)
    if (header == null || payload == null || signature == null || more.length > 0) {
      throw unreliable('signature', 'it is no compact JWS')
    }
    const { alg, typ, kid, crit } = claimsIn(header)
    const key = await this.#keyOf(kid, jwks, options)
    if (alg !== 'EdDSA' || typ !== 'handoff-approval+jws' || crit !== undefined) {
      throw unreliable('signature', 'it is of another kind')
    }
    const signed = new TextEncoder().encode(approval.signature.slice(0, approval.signature.lastIndexOf('.')))
    if (!await crypto.subtle.verify('Ed25519', key, signature, signed)) throw unreliable('signature', 'it is wrong')
    const claims = claimsIn(payload) as unknown as SignedDecision
    if (toldBeside.some(name => (approval[name] ?? null) !== claims[name])) {
      throw unreliable('signature', 'the answer says something else than what was signed')
    }
    if (claims.iss !== issuer) throw unreliable('issuer', `it was signed by ${claims.iss}`)
    if (!isDecisionOn(shown, claims)) throw unreliable('handoff', `it is for the handoff ${claims.handoff_id}`)
    const { digest } = claims
    if (digest == null || approval.digest !== digest || await contentDigest(text) !== digest) {
      throw unreliable('digest', shown.task === null ? 'the content is gone' : 'the content is another one')
    }
    if (claims.state !== 'approved') throw unreliable('rejected', 'a person has rejected it')
    return claims
  }

  /** @throws {HandoffError} unknown_key, and what a call throws */
  async #keyOf (kid: unknown, jwks: Jwks | undefined, options: CallOptions): Promise<Key> {
    const jwk = publishedKey(jwks ?? await this.#published(jwksKeptFor, options), kid) ??
      (jwks === undefined ? publishedKey(await this.#published(jwksKeptAtLeast, options), kid) : undefined)
    if (jwk === undefined) throw unreliable('unknown_key', `there is no key ${String(kid)}`)
    const { x } = jwk as { x: string }
    return await crypto.subtle.importKey('jwk', { kty: 'OKP', crv: 'Ed25519', x }, 'Ed25519', false, ['verify'])
      .catch(() => { throw unreliable('unknown_key', `the key ${String(kid)} can’t be used`) })
  }

  /** The service's keys, which are read again when they are older. */
  async #published (age: number, options: CallOptions): Promise<Jwks> {
    const known = this.#jwks
    if (known !== undefined && performance.now() - known.at < age) return known.found
    const at = performance.now()
    const found = await call<Jwks>(this.#settings, { method: 'GET', path: '/.well-known/jwks.json' }, options)
      .catch((error: unknown): Jwks => {
        if (error instanceof HandoffError && error.status === 404) return { keys: [] }
        throw error
      })
    this.#jwks = { at, found }
    return found
  }
}

/** The members that stand beside a signature, and in it. */
const toldBeside = ['state', 'decided_at', 'decided_by', 'decided_by_subject', 'note'] as const

function unreliable (code: SignatureFault, detail: string): HandoffError {
  return new HandoffError(code, { detail: `The decision can’t be relied on: ${detail}.` })
}

function publishedKey (jwks: Jwks, kid: unknown): object | undefined {
  const keys = jwks.keys as ReadonlyArray<Record<string, unknown>>
  return keys.find(key => key.kid === kid && key.kty === 'OKP' && key.crv === 'Ed25519' &&
    (key.use ?? 'sig') === 'sig' && (key.alg ?? 'EdDSA') === 'EdDSA')
}

/** The bytes that base64url says, without padding; null if it is something else. */
function fromBase64url (text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[A-Za-z0-9_-]+$/.test(text) || text.length % 4 === 1) return null
  return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), char => char.charCodeAt(0))
}

/** @throws {HandoffError} signature */
function claimsIn (bytes: Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {}
  throw unreliable('signature', 'it is no compact JWS')
}

/**
 * Is it a decision on this handoff, or on an earlier attempt? The second attempt names the first. A later one doesn't,
 * but all attempts' ids begin alike.
 */
function isDecisionOn (shown: ShownAnswer, signed: SignedDecision): boolean {
  const { handoff_id: id, passed_by: passedBy } = signed
  if ((shown.to ?? null) !== signed.to || (shown.passed_by ?? passedBy) !== passedBy) return false
  if (shown.handoff_id === id) return shown.created_at === signed.created_at
  const { attempt } = shown
  return typeof attempt === 'number' &&
    (shown.reissue_of === id || (attempt > 2 && String(shown.handoff_id).slice(0, 3) === id.slice(0, 3)))
}

/** The digest of what was passed, as the answer has it. Null where names are repeated: then readers may differ. */
async function contentDigest (text: string): Promise<string | null> {
  const spans = memberSpans(text)
  const names = spans.map(({ name }) => name)
  const [first, end] = [names.indexOf('task'), names.indexOf('created_at')]
  if (new Set(names).size !== names.length || first < 0 || end <= first) return null
  const content = `{${text.slice(spans[first]!.from, spans[end - 1]!.to)}}`
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(content)))
  return `sha-256=:${btoa(String.fromCharCode(...hash))}:`
}
