import { createHash } from 'node:crypto'
import { isLoopback } from './mail.ts'
import { isInbox, isName, scopes as knownScopes } from './model.ts'
import type { Scope } from './model.ts'

/** Who issues tokens that the service takes, and who their subjects are here: the setting ISSUERS. */

/** Where a claim is: the names of members, from the token's own down. */
export type ClaimPath = readonly string[]
export type ClaimValue = string | number | boolean

/** It holds if the claim, or one of its elements, is one of the values or begins with one of the prefixes. */
export interface ClaimCondition { claim: ClaimPath, values: ReadonlySet<ClaimValue>, prefixes: readonly string[] }

/** From a claim. @property prefix put before an agent's name; what a scope's name begins with */
export interface FromClaim { claim: ClaimPath, prefix: string }

/**
 * Who a subject is whose claims meet all conditions.
 * @property id a digest of what the operator wrote
 * @property decides whether it may give the scopes of people
 */
export interface TokenRule {
  id: string
  when: readonly ClaimCondition[]
  tenant: string | FromClaim
  agent: string | FromClaim
  scopes: readonly Scope[] | FromClaim
  inboxes: readonly string[] | null
  decides: boolean
}

/** How people sign in by an issuer. @property asksFor scopes, with spaces between them */
export interface SignInSettings {
  clientId: string
  clientSecret: string | undefined
  label: string
  asksFor: string
  rules: readonly TokenRule[]
}

/** A public key, as its issuer publishes it (RFC 7517). Its members may be anything. */
export type Jwk = Readonly<Record<string, unknown>>

export interface Issuer {
  issuer: string
  /** Null: what BASE_URL says. */
  audiences: readonly string[] | null
  /** Its keys, or where they are; null: where its metadata says. */
  jwks: { keys: readonly Jwk[] } | { uri: string } | null
  /** `alg` of the tokens that count. */
  algorithms: ReadonlySet<string>
  /** Whether its URLs may be http anywhere. */
  isInsecure: boolean
  rules: readonly TokenRule[]
  signIn: SignInSettings | null
  /** Whether MCP's hosts are sent to it. */
  isForMcp: boolean
}

/** The scopes that only a rule with `decides` gives: those of people. */
export const ofPeople: readonly Scope[] = ['approve', 'operate', 'read']

const knownAlgorithms = [
  'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'
]
const standardAlgorithms = ['RS256', 'PS256', 'ES256', 'EdDSA']

/** What is wrong with the setting, and where, as a JSON Pointer. */
export class IssuersFault extends Error {
  constructor (at: string, must: string) {
    super(`${at === '' ? '/' : at} ${must}`)
  }
}

type GivenMembers = Record<string, unknown>
/** Reads a value. @param at where it is, a JSON Pointer @throws {IssuersFault} */
type Read<Value> = (value: unknown, at: string) => Value

/**
 * @param text JSON
 * @param readFile for what is given as @path
 * @throws {IssuersFault}
 */
export function parseIssuers (text: string, readFile: (path: string) => string): Issuer[] {
  let given: unknown
  try {
    given = JSON.parse(text)
  } catch {
    throw new IssuersFault('', 'must be JSON: a list of issuers')
  }
  const issuers = readListOf((value, at) => issuerOf(value, at, readFile))(given, '')
  for (const [at, { issuer }] of issuers.entries()) {
    if (issuers.findIndex(other => other.issuer === issuer) < at) {
      throw new IssuersFault(`/${at}/issuer`, `must be another one than before: ${issuer}`)
    }
  }
  return issuers
}

function issuerOf (value: unknown, at: string, readFile: (path: string) => string): Issuer {
  const given = readObject(value, at, [
    'issuer', 'audience', 'jwks_uri', 'jwks', 'algorithms', 'rules', 'sign_in', 'mcp', 'insecure'
  ])
  const isInsecure = readOptional(given, at, 'insecure', readFlag) ?? false
  const readAddress: Read<string> = (value, at) => {
    const url = readString(value, at)
    if (isAddress(url, isInsecure)) return url
    throw new IssuersFault(at, 'must be an https URL without user, query and fragment; http is for loopback ' +
      'addresses, or with "insecure": true')
  }
  if (given.jwks_uri !== undefined && given.jwks !== undefined) {
    throw new IssuersFault(`${at}/jwks`, 'must not stand beside jwks_uri')
  }
  const uri = readOptional(given, at, 'jwks_uri', readLocation(readAddress))
  const signIn = readOptional(given, at, 'sign_in', (value, at) => signInOf(value, at, readFile)) ?? null
  if (given.rules === undefined && signIn === null) throw new IssuersFault(`${at}/rules`, 'must be there')
  return {
    issuer: readRequired(given, at, 'issuer', readAddress),
    audiences: readOptional(given, at, 'audience', oneOrListOf(readString)) ?? null,
    jwks: uri === undefined ? readOptional(given, at, 'jwks', readKeySet) ?? null : { uri },
    algorithms: new Set(readOptional(given, at, 'algorithms', readAlgorithms) ?? standardAlgorithms),
    isInsecure,
    rules: readOptional(given, at, 'rules', readListOf((value, at) => ruleOf(value, at, false))) ?? [],
    signIn,
    isForMcp: readOptional(given, at, 'mcp', readFlag) ?? false,
  }
}

function signInOf (value: unknown, at: string, readFile: (path: string) => string): SignInSettings {
  const given = readObject(value, at, ['client_id', 'client_secret', 'label', 'scopes', 'rules'])
  const secret = readOptional(given, at, 'client_secret', readString)
  return {
    clientId: readRequired(given, at, 'client_id', readString),
    clientSecret: secret?.startsWith('@') === true ? fromFile(secret, `${at}/client_secret`, readFile) : secret,
    label: readRequired(given, at, 'label', readString),
    asksFor: readOptional(given, at, 'scopes', readScopesAskedFor) ?? 'openid profile email',
    rules: readRequired(given, at, 'rules', readListOf((value, at) => ruleOf(value, at, true))),
  }
}

/** Without openid no issuer gives the ID token by which people sign in (OpenID Connect Core 1.0, 3.1.2.1). */
function readScopesAskedFor (value: unknown, at: string): string {
  const text = readString(value, at)
  if (text.split(' ').includes('openid')) return text
  throw new IssuersFault(at, 'must have openid among its words, as in "openid profile email"')
}

function fromFile (text: string, at: string, readFile: (path: string) => string): string {
  try {
    return readString(readFile(text.slice(1)).trim(), at)
  } catch {
    throw new IssuersFault(at, 'must be a file that can be read, behind @')
  }
}

/** @param isForPeople a rule by which people sign in: it may give all scopes */
function ruleOf (value: unknown, at: string, isForPeople: boolean): TokenRule {
  const given = readObject(value, at, ['when', 'tenant', 'agent', 'scopes', 'inboxes', 'decides', 'anyone'])
  const when = Object.entries(readOptional(given, at, 'when', readObject) ?? {}).map(([claim, value]) =>
    conditionOf(claim, value, `${at}/when/${escapedPart(claim)}`))
  const isForAll = readOptional(given, at, 'anyone', readFlag) ?? false
  if (when.length === 0 && !isForAll) {
    throw new IssuersFault(`${at}/when`, 'must have a condition; a rule for all subjects has "anyone": true')
  }
  const decides = readOptional(given, at, 'decides', readFlag) ?? isForPeople
  const scopes = readRequired(given, at, 'scopes', readScopes)
  const place = Array.isArray(scopes) && !decides ? scopes.findIndex(scope => ofPeople.includes(scope)) : -1
  if (place >= 0) throw new IssuersFault(`${at}/scopes/${place}`, 'is given only by a rule with "decides": true')
  return {
    id: createHash('sha256').update(JSON.stringify(given)).digest('base64url').slice(0, 22),
    when,
    tenant: readRequired(given, at, 'tenant', readNameFrom([])),
    agent: readRequired(given, at, 'agent', readNameFrom(['prefix'])),
    scopes,
    inboxes: readOptional(given, at, 'inboxes', readListOf(readInbox)) ?? null,
    decides,
  }
}

function conditionOf (claim: string, value: unknown, at: string): ClaimCondition {
  const values = oneOrListOf(readConditionValue)(value, at)
  const isPrefix = (value: ClaimValue): value is string => typeof value === 'string' && value.endsWith('*')
  return {
    claim: claimPathOf(claim, at),
    values: new Set(values.filter(value => !isPrefix(value))),
    prefixes: values.filter(isPrefix).map(prefix => prefix.slice(0, -1)),
  }
}

const readConditionValue: Read<ClaimValue> = (value, at) => {
  if (value === '*') throw new IssuersFault(at, 'must have text before the *')
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string') return value
  throw new IssuersFault(at, 'must be text, a number, true or false, or a list of these')
}

/** A JSON Pointer, or names with dots between them. */
function claimPathOf (claim: string, at: string): ClaimPath {
  const path = claim.startsWith('/')
    ? claim.slice(1).split('/').map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    : claim.split('.')
  if (path.includes('')) throw new IssuersFault(at, 'must name a claim')
  return path
}

const readClaimPath: Read<ClaimPath> = (value, at) => claimPathOf(readString(value, at), at)

const readName: Read<string> = (value, at) => {
  if (typeof value === 'string' && isName(value)) return value
  throw new IssuersFault(at, 'must be a name, 1 to 64 of A-Z a-z 0-9 . _ -, or {"claim": …}')
}

const readInbox: Read<string> = (value, at) => {
  if (typeof value === 'string' && isInbox(value)) return value
  throw new IssuersFault(at, 'must be the name of an inbox')
}

/** @param more members besides `claim` */
const readNameFrom = (more: readonly string[]): Read<string | FromClaim> => (value, at) => {
  if (!isJsonObject(value)) return readName(value, at)
  const given = readObject(value, at, ['claim', ...more])
  return fromClaim(given, at, readName)
}

const readScopes: Read<Scope[] | FromClaim> = (value, at) => {
  if (!isJsonObject(value)) return readListOf(readOneOf(knownScopes))(value, at) as Scope[]
  const given = readObject(value, at, ['claim', 'prefix'])
  return fromClaim(given, at, readScopePrefix)
}

function fromClaim (given: GivenMembers, at: string, readPrefix: Read<string>): FromClaim {
  const claim = readRequired(given, at, 'claim', readClaimPath)
  return { claim, prefix: readOptional(given, at, 'prefix', readPrefix) ?? '' }
}

/** It stands in a challenge (RFC 6749, 3.3). */
const readScopePrefix: Read<string> = (value, at) => {
  if (typeof value === 'string' && /^[!#-[\]-~]{1,64}$/.test(value)) return value
  throw new IssuersFault(at, 'must be 1 to 64 visible ASCII characters other than " and \\')
}

const readKeySet: Read<{ keys: readonly Jwk[] }> = (value, at) => {
  const keys = isJsonObject(value) ? value.keys : undefined
  return { keys: readListOf((key, at) => readObject(key, at))(keys, `${at}/keys`) }
}

/** An address that may have a query. */
const readLocation = (readAddress: Read<string>): Read<string> => (value, at) => {
  const url = readString(value, at)
  readAddress(url.replace(/\?.*$/, ''), at)
  return url
}

/** May the service ask it? @param isInsecure whether http will do anywhere */
export function isAddress (text: string, isInsecure: boolean): boolean {
  if (!/^https?:\/\/[!-~]+$/.test(text) || /[?#\\]/.test(text) || !URL.canParse(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  if (username !== '' || password !== '') return false
  return protocol === 'https:' || isInsecure || isLoopback(hostname.replace(/^\[|\]$/g, ''))
}

export function isJsonObject (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** @param names those that it may have; without them any */
function readObject (value: unknown, at: string, names?: readonly string[]): GivenMembers {
  if (!isJsonObject(value)) throw new IssuersFault(at, 'must be an object')
  const unknown = names === undefined ? undefined : Object.keys(value).find(name => !names.includes(name))
  if (unknown !== undefined) throw new IssuersFault(`${at}/${escapedPart(unknown)}`, 'is unknown')
  return value
}

function escapedPart (name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}

const readString: Read<string> = (value, at) => {
  if (typeof value === 'string' && value !== '') return value
  throw new IssuersFault(at, 'must be text')
}

const readFlag: Read<boolean> = (value, at) => {
  if (typeof value === 'boolean') return value
  throw new IssuersFault(at, 'must be true or false')
}

const readOneOf = (known: readonly string[]): Read<string> => (value, at) => {
  if (typeof value === 'string' && known.includes(value)) return value
  throw new IssuersFault(at, `must be one of ${known.join(', ')}`)
}

/** Of one element or more. */
const readListOf = <Element>(element: Read<Element>): Read<Element[]> => (value, at) => {
  if (!Array.isArray(value) || value.length === 0) throw new IssuersFault(at, 'must be a list that is not empty')
  return value.map((one, number) => element(one, `${at}/${number}`))
}

const readAlgorithms = readListOf(readOneOf(knownAlgorithms))

const oneOrListOf = <Element>(element: Read<Element>): Read<Element[]> => (value, at) =>
  Array.isArray(value) ? readListOf(element)(value, at) : [element(value, at)]

function readRequired<Value> (given: GivenMembers, at: string, member: string, read: Read<Value>): Value {
  if (given[member] === undefined) throw new IssuersFault(`${at}/${member}`, 'must be there')
  return read(given[member], `${at}/${member}`)
}

function readOptional<Value> (given: GivenMembers, at: string, member: string, read: Read<Value>): Value | undefined {
  return given[member] === undefined ? undefined : read(given[member], `${at}/${member}`)
}
