import { Problem } from '../core/errors.ts'
import { ofPeople } from '../core/issuers.ts'
import type { Caller, NeededScope, Scope } from '../core/model.ts'

// A caller's rights. No other file looks at a caller's scopes: operations and pages declare what they need, and ask
// here for anything else.

/** Does its key have the scope, or one of several? Undefined: any key will do. */
export function hasScope ({ scopes }: Caller, needed: NeededScope | undefined): boolean {
  if (needed === undefined) return true
  return typeof needed === 'string' ? scopes.has(needed) : needed.some(scope => scopes.has(scope))
}

/** May a rule for tokens give the scope? Those of people only a rule that says so gives. */
export function givesScope (decides: boolean, scope: Scope): boolean {
  return decides || !ofPeople.includes(scope)
}

/** For who looks at keys. */
export function scopesOf ({ scopes }: { scopes: Iterable<Scope> }): Scope[] {
  return [...scopes]
}

/** @throws {Problem} insufficient_scope */
export function requireScope (caller: Caller, needed: NeededScope | undefined): void {
  if (!hasScope(caller, needed)) throw refusedScope(needed as NeededScope)
}

/**
 * RFC 6750, 3.1: the refusal names the required scope. The header field can only list scopes that are all required, so
 * of several it has the first, which agents have.
 */
export function refusedScope (needed: NeededScope): Problem {
  const scopes = [needed].flat()
  return new Problem('insufficient_scope', {
    detail: `This operation needs a key with the scope ${scopes.join(' or ')}.`,
    headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scopes[0]}"` },
  })
}
