import { readFileSync } from 'node:fs'
import { SettingError } from './errors.ts'
import { IssuersFault, parseIssuers } from './issuers.ts'
import type { Issuer } from './issuers.ts'
import { parsePayloadKeys } from './payload-keys.ts'
import type { PayloadKey } from './payload-keys.ts'
import { parsePublicKeys, parseSigningKey, signingKeys } from './signing.ts'
import type { SigningKeys } from './signing.ts'

/** Settings that may be in files: their text, or @ and the file's path. */

/** @throws {SettingError} with a JSON Pointer to what is wrong */
export function issuersOf (value: string | undefined): Issuer[] {
  if (value === undefined) return []
  try {
    return parseIssuers(textOf('ISSUERS', value), readText)
  } catch (error) {
    if (error instanceof IssuersFault) throw new SettingError(`ISSUERS: ${error.message}`)
    throw error
  }
}

/** @throws {SettingError} */
export function payloadKeysOf (value: string | undefined): PayloadKey[] {
  return value === undefined ? [] : parsePayloadKeys(textOf('PAYLOAD_KEYS', value))
}

/** @returns the name of the setting if one is wrong @throws {SettingError} */
export function signingOf (
  key: string | undefined, old: string | undefined
): SigningKeys | 'SIGNING_KEY' | 'SIGNING_KEYS_OLD' {
  const current = key === undefined ? undefined : parseSigningKey(textOf('SIGNING_KEY', key))
  if (current === null) return 'SIGNING_KEY'
  const before = old === undefined ? [] : parsePublicKeys(textOf('SIGNING_KEYS_OLD', old))
  return before === null ? 'SIGNING_KEYS_OLD' : signingKeys(current, before)
}

/** @throws {SettingError} */
function textOf (name: string, value: string): string {
  if (!value.startsWith('@')) return value
  try {
    return readText(value.slice(1))
  } catch (error) {
    throw new SettingError(`${name}: the file ${value.slice(1)} can’t be read: ${(error as NodeJS.ErrnoException).code}`)
  }
}

function readText (path: string): string {
  return readFileSync(path, 'utf8')
}
