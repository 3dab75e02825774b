import { canonicalJson } from '../core/canonical.ts'
import type { SigningKey } from '../core/signing.ts'

/** A signature of a card: a JWS without its payload, which is the card. */
interface CardSignature { protected: string, signature: string }

/** The members that aren't required and aren't marked optional: without a value they aren't signed. */
const withDefaults = new Set(['required', 'list', 'examples', 'inputModes', 'outputModes'])

/**
 * Signs a card as A2A 1.0 has it (8.4). It leaves out what has its default value, but nothing that is in an object
 * otherwise; the authors' own libraries leave out each empty object and list as well. Where that differs, there is a
 * signature of each: one that is right is enough.
 * @param jku where the keys are
 * @returns none if a text has half a surrogate pair: it has no form that could be signed
 */
export function cardSignatures (card: object, key: SigningKey, jku: string): CardSignature[] {
  const asSpecified: unknown = JSON.parse(JSON.stringify(card, (name, value: unknown) =>
    withDefaults.has(name) && (value === false || isHollow(value)) ? undefined : value))
  return formsOf([asSpecified, withoutEmpty(asSpecified)]).map(form => {
    const { protected: header, signature } = key.sign({ typ: 'JOSE', jku }, form)
    return { protected: header, signature }
  })
}

/** @returns each once; none if there is none */
function formsOf (values: readonly unknown[]): string[] {
  try {
    return [...new Set(values.map(canonicalJson))]
  } catch {
    return []
  }
}

/** @returns undefined if nothing is left of it */
function withoutEmpty (value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value === '' || value === null ? undefined : value
  const kept = Array.isArray(value)
    ? value.map(withoutEmpty).filter(one => one !== undefined)
    : Object.fromEntries(Object.entries(value).map(([name, its]) => [name, withoutEmpty(its)])
      .filter(([, its]) => its !== undefined))
  return isHollow(kept) ? undefined : kept
}

function isHollow (value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}
