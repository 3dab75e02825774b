/** @typedef {import('./assertions.mjs').Check} Check */
/** @typedef {import('./report.mjs').Report} Report */

/** A schema without its definitions, or one of them. */
export class Unit {
  /** @type {Check} */
  check = () => false
  /** The number of subschemas in it, itself included. */
  written = 0
  /**
   * The definitions that it refers to, and the path of each reference. @type {Array<{ name: string, path: Array<string
   * | number> }>}
   */
  references = []
}

/**
 * Counts each unit's subschemas with references expanded. Unreferenced definitions are included: no cycle is allowed
 * anywhere.
 * @param {Unit[]} units
 * @param {Map<string, Unit>} definitions
 * @param {Report} report gets references that are broken or form a cycle
 */
export function writtenOut (units, definitions, report) {
  /** @type {Map<Unit, number | 'open'>} */
  const sizes = new Map()
  /**
   * @param {Unit} unit
   * @returns {number}
   */
  const sizeOf = unit => {
    const known = sizes.get(unit)
    if (typeof known === 'number') return known
    sizes.set(unit, 'open')
    let size = unit.written
    for (const { name, path } of unit.references) {
      const named = definitions.get(name)
      if (named === undefined) report.addAt(path, 'names nothing that is in $defs')
      else if (sizes.get(named) === 'open') report.addAt(path, 'leads to itself')
      else size += sizeOf(named)
    }
    sizes.set(unit, size)
    return size
  }
  return units.map(sizeOf)
}

/**
 * The name of the definition that a reference points to: a JSON Pointer (RFC 6901) in a URI fragment (RFC 3986).
 * @param {unknown} reference
 */
export function definitionName (reference) {
  if (typeof reference !== 'string' || !reference.startsWith('#')) return undefined
  const [, token] = /^\/\$defs\/((?:[^~/]|~[01])*)$/s.exec(decoded(reference.slice(1))) ?? []
  return token?.replaceAll('~1', '/').replaceAll('~0', '~')
}

/** @param {string} fragment */
function decoded (fragment) {
  try {
    return decodeURIComponent(fragment)
  } catch {
    return ''
  }
}
