import { createHash } from 'node:crypto'
import { isJsonObject } from '../core/issuers.ts'
import type { ClaimPath, ClaimValue, ClaimCondition, FromClaim, Issuer, TokenRule } from '../core/issuers.ts'
import { isName, scopes as knownScopes } from '../core/model.ts'
import type { Caller, Scope, Subject } from '../core/model.ts'
import { givesScope } from './scopes.ts'

/** What a token says of its subject. Its members may be anything. */
export type Claims = Readonly<Record<string, unknown>>

/** Who the subject of a token is here. */
export interface Identity { tenant: string, agent: string, scopes: Scope[], inboxes: readonly string[] | null }

/** What the rules say of claims. @property rule the number of the first that matches, from 0 on; null: none does */
export type Ruling = { rule: number, identity: Identity } | { rule: number, lacks: 'tenant' | 'agent' } | { rule: null }

/** The first rule that matches counts: what it lacks, no later one gives. */
export function ruleOn (rules: readonly TokenRule[], issuer: string, claims: Claims): Ruling {
  const rule = rules.findIndex(({ when }) => when.every(condition => isMet(condition, claims)))
  if (rule === -1) return { rule: null }
  const { tenant: tenantFrom, agent: agentFrom, ...says } = rules[rule]!
  const tenant = typeof tenantFrom === 'string' ? tenantFrom : claimIn(claims, tenantFrom.claim)
  if (typeof tenant !== 'string' || !isName(tenant)) return { rule, lacks: 'tenant' }
  const agent = typeof agentFrom === 'string' ? agentFrom : agentOf(agentFrom, issuer, claims)
  if (agent === undefined) return { rule, lacks: 'agent' }
  return { rule, identity: { tenant, agent, scopes: scopesGiven(says, claims), inboxes: says.inboxes } }
}

function isMet ({ claim, values, prefixes }: ClaimCondition, claims: Claims): boolean {
  return valuesAt(claims, claim).some(value => values.has(value as ClaimValue) ||
    (typeof value === 'string' && prefixes.some(prefix => value.startsWith(prefix))))
}

/** Own members of objects alone: a claim's name must not find what all objects inherit, nor an element of a list. */
export function claimIn (claims: Claims, path: ClaimPath): unknown {
  let found: unknown = claims
  for (const name of path) {
    if (!isJsonObject(found) || !Object.hasOwn(found, name)) return undefined
    found = found[name]
  }
  return found
}

/**
 * A claim's values: the elements of a list, and the words of the two claims that are lists in a text (RFC 8693, 4.2).
 */
function valuesAt (claims: Claims, path: ClaimPath): readonly unknown[] {
  const found = claimIn(claims, path)
  const isWords = path.length === 1 && (path[0] === 'scope' || path[0] === 'scp')
  if (isWords && typeof found === 'string') return found.split(' ').filter(word => word !== '')
  return Array.isArray(found) ? found : [found]
}

/** How many code points of a claim stand in the name that is made from it. */
const keptOfClaim = 40

/**
 * A claim that is a name stays one. Any other becomes one that no claim is by itself, so that no subject can take
 * another's.
 */
function agentOf ({ claim, prefix }: FromClaim, issuer: string, claims: Claims): string | undefined {
  const text = claimIn(claims, claim)
  // Halves of a surrogate pair are alike in UTF-8, so they would make the same name.
  if (typeof text !== 'string' || text === '' || /\p{Surrogate}/u.test(text)) return undefined
  const agent = prefix + (isName(text) && !/\.[0-9a-f]{12}$/.test(text) ? text : madeName(issuer, text))
  return isName(agent) ? agent : undefined
}

function madeName (issuer: string, text: string): string {
  const begin = [...text].slice(0, keptOfClaim).map(character => isName(character) ? character : '-').join('')
  const digest = createHash('sha256').update(`${issuer}\n${text}`).digest('hex')
  return `${begin}.${digest.slice(0, 12)}`
}

function scopesGiven ({ scopes, decides }: Pick<TokenRule, 'scopes' | 'decides'>, claims: Claims): Scope[] {
  if (Array.isArray(scopes)) return scopes
  const { claim, prefix } = scopes as FromClaim
  const named = valuesAt(claims, claim)
    .filter(value => typeof value === 'string' && value.startsWith(prefix))
    .map(value => (value as string).slice(prefix.length))
  return knownScopes.filter(scope => named.includes(scope) && givesScope(decides, scope))
}

export function callerOfSubject ({ tenant, agent, scopes, inboxes }: Identity, subject: Subject): Caller {
  return {
    tenant,
    agent,
    scopes: new Set(scopes),
    keyId: null,
    ratePerMinute: null,
    inboxes: inboxes && new Set(inboxes),
    subject,
  }
}

/** The claims that rules look at. */
export function claimsRead (rules: readonly TokenRule[]): ClaimPath[] {
  return rules.flatMap(({ when, tenant, agent, scopes }) => [
    ...when.map(({ claim }) => claim),
    ...[tenant, agent, scopes].flatMap(from => typeof from === 'object' && 'claim' in from ? [from.claim] : []),
  ])
}

/** The scopes that rules can read from a token's own list of scopes. */
export function scopesRead (issuers: readonly Issuer[]): string[] {
  const names = issuers.flatMap(({ rules }) => rules).flatMap(({ scopes: from, decides }) => {
    if (!('claim' in from) || from.claim.length !== 1 || !['scope', 'scp'].includes(from.claim[0]!)) return []
    return knownScopes.filter(scope => givesScope(decides, scope)).map(scope => `${from.prefix}${scope}`)
  })
  return [...new Set(names)]
}
