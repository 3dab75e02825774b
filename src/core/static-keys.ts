import { SettingError } from './errors.ts'
import { callerOf } from './model.ts'
import type { ApiKey, Scope } from './model.ts'

/** The keys of the settings API_KEYS, APPROVER_KEYS, OPERATOR_KEYS and READER_KEYS. */

interface KeySettings { API_KEYS: string, APPROVER_KEYS: string, OPERATOR_KEYS: string, READER_KEYS: string }

export const agentScopes: readonly Scope[] = ['pass', 'catch', 'status']
const approverScopes: readonly Scope[] = ['approve', 'status']
const operatorScopes: readonly Scope[] = ['operate', 'approve', 'status']
const readerScopes: readonly Scope[] = ['read', 'status']
/** Of the key for people that `npm start` makes. */
export const localPersonScopes: readonly Scope[] = [...operatorScopes, 'read']

/**
 * `name:secret` or `tenant/name:secret`: names have 1 to 64 characters; a secret has at least 16 visible ASCII
 * characters except , and :
 */
const keyShape = /^(?:([A-Za-z0-9._-]{1,64})\/)?([A-Za-z0-9._-]{1,64}):([!-+\--9;-~]{16,})$/

/** The keys of all variables. One in READER_KEYS may be another variable's too, and then has the scopes of both. */
export function keysOf (given: KeySettings): ApiKey[] {
  const keys = [
    ...parseKeys('API_KEYS', given.API_KEYS, agentScopes),
    ...parseKeys('APPROVER_KEYS', given.APPROVER_KEYS, approverScopes),
    ...parseKeys('OPERATOR_KEYS', given.OPERATOR_KEYS, operatorScopes),
  ]
  const readers = parseKeys('READER_KEYS', given.READER_KEYS, readerScopes)
  refuseSharedSecrets(keys)
  refuseSharedSecrets(readers)
  const bySecret = new Map(keys.map(key => [key.secret, key]))
  for (const reader of readers) {
    const same = bySecret.get(reader.secret)
    const { tenant, agent } = reader.caller
    if (same?.caller.tenant !== tenant || same.caller.agent !== agent) keys.push(reader)
    else same.caller = callerOf(tenant, agent, [...same.caller.scopes, ...readerScopes])
  }
  refuseSharedSecrets(keys)
  return keys
}

function parseKeys (variable: string, text: string, scopes: readonly Scope[]): ApiKey[] {
  return listed(text).map((entry, index) => {
    const [, tenant = 'default', agent, secret] = keyShape.exec(entry) ?? []
    if (agent === undefined || secret === undefined) {
      // Says which entry is wrong, and not its text: a mistyped secret is still a secret.
      throw new SettingError(`${variable}: entry ${index +
        1} is not name:secret or tenant/name:secret, names of 1 to 64 of ` +
        'A-Z a-z 0-9 . _ -, a secret of at least 16 visible ASCII characters other than , and :')
    }
    return { caller: callerOf(tenant, agent, scopes), secret }
  })
}

/** Each secret must belong to one caller. Otherwise the order of the lists would decide who a request is from. */
function refuseSharedSecrets (keys: readonly ApiKey[]): void {
  const owners = new Map<string, ApiKey['caller']>()
  for (const { secret, caller } of keys) {
    const owner = owners.get(secret)
    if (owner !== undefined) {
      throw new SettingError(`API_KEYS, APPROVER_KEYS, OPERATOR_KEYS, READER_KEYS: ${owner.tenant}/${owner.agent} and ` +
        `${caller.tenant}/${caller.agent} have the same secret`)
    }
    owners.set(secret, caller)
  }
}

/** The entries of a comma-separated list. */
export function listed (text: string): string[] {
  return text.split(',').map(entry => entry.trim()).filter(entry => entry !== '')
}
