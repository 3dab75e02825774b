import { Problem } from '../errors.ts'
import type { Grant } from './grant.ts'
import type { Caller, Scope } from '../model.ts'
import type { ApiKeys } from './api-keys.ts'

/** The challenge for an invalid key (RFC 6750, 3). */
export const invalidToken = 'Bearer error="invalid_token"'

/**
 * The grant of this key. It was valid when the request arrived, so a later refusal doesn't count as a guess.
 * @param scope the scope that the key must have
 */
export function keyGrant (keys: ApiKeys, secret: string, scope: Scope | undefined): Grant {
  const mark = keys.markOf(secret)
  const admit = (caller: Caller | undefined) => {
    if (caller === undefined) throw refusedKey()
    if (!hasScope(caller, scope)) throw refusedScope(scope as Scope)
  }
  return {
    authorise () {
      const found = keys.findByMark(mark)
      return found instanceof Promise ? found.then(admit) : admit(found)
    },
    onEnd: async ended => keys.onEnd(mark, () => ended(refusedKey())),
  }
}

export function hasScope (caller: Caller, scope: Scope | undefined): boolean {
  return scope === undefined || caller.scopes.has(scope)
}

/** RFC 6750, 3.1: the refusal names the required scope. */
export function refusedScope (scope: Scope): Problem {
  return new Problem('insufficient_scope', {
    detail: `This operation needs a key with the scope ${scope}.`,
    headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scope}"` },
  })
}

function refusedKey (): Problem {
  return new Problem('unauthorized', { headers: { 'www-authenticate': invalidToken } })
}
