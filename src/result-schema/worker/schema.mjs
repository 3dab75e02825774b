// What a result_schema may consist of (docs/attempts.md), and its limits. What passes is made ready for the validator.
import { compile } from './patterns.mjs'

/** @typedef {{ pointer: string, message: string }} Fault as in core/errors.ts */
/** @typedef {Record<string, any>} Schema */
/** @typedef {Array<string | number>} Path */
/** @typedef {{ schema: Schema | boolean, definitions: Record<string, Schema | boolean> }} Ready
 * the schema, and what each `$ref` leads to, by its text
 */
/** @typedef {{ written: number, references: Array<{ name: string, path: Path }> }} Unit a schema, or a definition */

const dialect = 'https://json-schema.org/draft/2020-12/schema'
const mostDepth = 20
const mostSubschemas = 1_000
/** Every pair of items is compared. */
const mostUnique = 100
/** Errors must not echo a whole body: names are cut, and so are long pointers and values. UTF-16 units. */
const [longestName, longestPointer, longestShown] = [64, 1_000, 200]

const types = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']

const unset = /** @type {any} */ (undefined)
/** A schema for the validator. All have the same shape: it reads all keywords of each, which took twice as long. */
class Made {
  $ref = unset; type = unset; const = unset; enum = unset; required = unset; not = unset; anyOf = unset; allOf = unset
  oneOf = unset; if = unset; then = unset; else = unset; properties = unset; patternProperties = unset
  additionalProperties = unset; minProperties = unset; maxProperties = unset; propertyNames = unset
  prefixItems = unset; items = unset; contains = unset; minItems = unset; maxItems = unset; uniqueItems = unset
  minimum = unset; maximum = unset; exclusiveMinimum = unset; exclusiveMaximum = unset; multipleOf = unset
  minLength = unset; maxLength = unset; pattern = unset
}

/** Whatever is false: the validator doesn't say where a schema that is just `false` was. */
export const nothing = Object.assign(new Made(), { not: true })

/** @param {unknown} value @returns {value is Schema} */
const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value)
/** @param {unknown} value */
const isText = value => typeof value === 'string'
/** @param {unknown} value */
const isCount = value => Number.isInteger(value) && Number(value) >= 0
/** @param {unknown} value */
const isSet = value => Array.isArray(value) && value.every(isText) && new Set(value).size === value.length

/** @typedef {(value: any, schema: Schema) => string | undefined} Check says what is wrong with a keyword's value */

/**
 * @param {(value: any) => boolean} holds
 * @param {string} words
 * @returns {Check}
 */
const must = (holds, words) => value => holds(value) ? undefined : `must be ${words}`
const count = must(isCount, 'a whole number from 0 on')
const number = must(value => typeof value === 'number', 'a number')
const text = must(isText, 'a string')

/** Keywords that only describe. The validator would assert `format`. @type {Record<string, Check>} */
const descriptions = {
  $schema: must(value => value === dialect, dialect),
  title: text,
  description: text,
  format: text,
  default: () => undefined,
  examples: must(Array.isArray, 'an array'),
}
/** Keywords that constrain a value itself. @type {Record<string, Check>} */
const assertions = {
  type: must(value => {
    const names = [value].flat()
    return isSet(names) && names.length > 0 && names.every(name => types.includes(name))
  }, `one of ${types.join(', ')}, or an array of several`),
  enum: must(Array.isArray, 'an array'),
  const: () => undefined,
  minimum: number,
  maximum: number,
  exclusiveMinimum: number,
  exclusiveMaximum: number,
  multipleOf: must(value => Number.isFinite(value) && value > 0, 'a number greater than 0'),
  minLength: count,
  maxLength: count,
  pattern: value => text(value, {}) ?? patternFault(value),
  minItems: count,
  maxItems: count,
  uniqueItems: (value, { maxItems }) => typeof value !== 'boolean'
    ? 'must be true or false'
    : value && !(isCount(maxItems) && maxItems <= mostUnique)
      ? `is taken only together with maxItems of at most ${mostUnique}`
      : undefined,
  minProperties: count,
  maxProperties: count,
  required: must(isSet, 'an array of strings, none of them twice'),
}
const single = new Set(['additionalProperties', 'propertyNames', 'items', 'contains', 'not', 'if', 'then', 'else'])
const lists = new Set(['prefixItems', 'allOf', 'anyOf', 'oneOf'])
const maps = new Set(['properties', 'patternProperties', '$defs'])

/**
 * @param {string} pattern
 * @returns {string | undefined} what is wrong with it
 */
function patternFault (pattern) {
  try {
    compile(pattern)
    return undefined
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return cut(`must be a pattern of ECMA-262 with the flag u: ${cut(error.message.split('/u: ').at(-1) ?? '', 140)}`)
  }
}

/** Reads one schema, once. */
class Reader {
  /** @type {Fault[]} */
  faults = []
  /** The definitions made ready. @type {Map<string, Schema | boolean>} */
  #definitions = new Map()
  /** The schema itself, and each definition, whose own subschemas and references are counted. */
  #root = newUnit()
  /** @type {Map<string, Unit>} */
  #units = new Map()
  #unit = this.#root

  /**
   * @param {string} json
   * @returns {Ready}
   */
  read (json) {
    const given = JSON.parse(json)
    const path = ['result_schema']
    const repeated = isObject(given) ? repeatedMember(json) : undefined
    if (!isObject(given)) this.#refuse(path, 'must be a JSON object')
    else if (repeated !== undefined) this.#refuse([...path, ...repeated], 'repeated')
    if (this.faults.length > 0) return { schema: false, definitions: {} }
    const schema = this.#schema(given, path, 1)
    if (this.#writtenOut() > mostSubschemas) {
      this.#refuse(path, `has more than ${mostSubschemas} subschemas, references written out`)
    }
    const referred = [this.#root, ...this.#units.values()].flatMap(({ references }) => references)
    const definitions = referred.map(({ name }) => [name, this.#definitions.get(name) ?? false])
    return { schema, definitions: Object.assign(Object.create(null), Object.fromEntries(definitions)) }
  }

  /**
   * @param {Path} path
   * @param {string} message
   */
  #refuse (path, message) {
    this.faults.push({ pointer: pointerTo(path), message })
    return nothing
  }

  /**
   * @param {unknown} given
   * @param {Path} path
   * @param {number} depth the schema itself being 1
   * @returns {Schema | boolean}
   */
  #schema (given, path, depth) {
    // A schema that is only a reference doesn't count itself: written out, the definition would be in its place.
    if (!isObject(given) || Object.keys(given).join() !== '$ref') this.#unit.written++
    if (depth > mostDepth) return this.#refuse(path, `nested deeper than ${mostDepth} subschemas`)
    if (typeof given === 'boolean') return given || nothing
    if (!isObject(given)) return this.#refuse(path, 'must be an object, or true or false')
    const ready = /** @type {Schema} */ (new Made())
    for (const [keyword, value] of Object.entries(given)) {
      const made = this.#keyword(keyword, value, [...path, keyword], depth, given)
      if (made !== undefined) ready[keyword] = made
    }
    if (ready.uniqueItems === true) {
      // The validator compares the items of an array that is too long as well.
      const unlessTooLong = { if: { maxItems: ready.maxItems }, then: { uniqueItems: true } }
      Object.assign(ready, { uniqueItems: undefined, allOf: [...ready.allOf ?? [], unlessTooLong] })
    }
    return ready
  }

  /**
   * @param {string} keyword
   * @param {any} value
   * @param {Path} path
   * @param {number} depth
   * @param {Schema} schema
   * @returns {unknown} what the validator gets for it
   */
  #keyword (keyword, value, path, depth, schema) {
    if (single.has(keyword)) return this.#schema(value, path, depth + 1)
    if (lists.has(keyword)) {
      if (!Array.isArray(value) || value.length === 0) this.#refuse(path, 'must be an array of one schema or more')
      else return value.map((one, index) => this.#schema(one, [...path, index], depth + 1))
    } else if (maps.has(keyword)) {
      if (keyword === '$defs' && depth > 1) this.#refuse(path, 'is taken only at the top of the schema')
      else if (!isObject(value)) this.#refuse(path, 'must be an object of schemas')
      else return this.#named(keyword, value, path, depth + 1)
    } else if (keyword === '$ref') {
      return this.#reference(value, path)
    } else {
      const check = [assertions, descriptions].find(checks => Object.hasOwn(checks, keyword))?.[keyword]
      const fault = check === undefined ? 'is not taken in a result_schema' : check(value, schema)
      if (fault !== undefined) this.#refuse(path, fault)
      else if (Object.hasOwn(assertions, keyword)) return value
    }
    return undefined
  }

  /**
   * @param {string} keyword
   * @param {Schema} schemas
   * @param {Path} path
   * @param {number} depth
   */
  #named (keyword, schemas, path, depth) {
    const ready = Object.entries(schemas).map(([name, schema]) => {
      const place = [...path, name]
      if (keyword === '$defs') this.#units.set(name, this.#unit = newUnit())
      const fault = keyword === 'patternProperties' ? patternFault(name) : undefined
      if (fault !== undefined) this.#refuse(place, fault)
      return /** @type {const} */ ([name, this.#schema(schema, place, depth)])
    })
    if (keyword !== '$defs') return Object.fromEntries(ready)
    this.#unit = this.#root
    this.#definitions = new Map(ready)
    return undefined
  }

  /**
   * @param {unknown} given
   * @param {Path} path
   */
  #reference (given, path) {
    const name = definitionName(given)
    if (name === undefined) this.#refuse(path, 'must be #/$defs/ and the name of a definition')
    else this.#unit.references.push({ name, path })
    return name
  }

  /**
   * Counts the subschemas with references written out. Definitions that nothing refers to are looked at too: no cycle
   * is allowed anywhere.
   */
  #writtenOut () {
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
        const named = this.#units.get(name)
        if (named === undefined) this.#refuse(path, 'names nothing that is in $defs')
        else if (sizes.get(named) === 'open') this.#refuse(path, 'leads to itself')
        else size += sizeOf(named)
      }
      sizes.set(unit, size)
      return size
    }
    const size = sizeOf(this.#root)
    this.#units.forEach(sizeOf)
    return size
  }
}

/** @returns {Unit} */
const newUnit = () => ({ written: 0, references: [] })

/**
 * @param {string} json
 * @returns {Ready & { faults: Fault[] }} `schema` and `definitions` are of no use if there are faults
 */
export function readSchema (json) {
  const reader = new Reader()
  return { ...reader.read(json), faults: reader.faults }
}

/**
 * The name of the definition that a reference points to: a JSON Pointer (RFC 6901) in a URI fragment (RFC 3986).
 * @param {unknown} reference
 */
function definitionName (reference) {
  if (typeof reference !== 'string' || !reference.startsWith('#')) return undefined
  let pointer
  try {
    pointer = decodeURIComponent(reference.slice(1))
  } catch {
    return undefined
  }
  return /^\/\$defs\/((?:[^~/]|~[01])*)$/s.exec(pointer)?.[1]?.replaceAll('~1', '/').replaceAll('~0', '~')
}

/** Strings and structural characters. In valid JSON, nothing else contains these characters. */
const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],]/g

/**
 * The path of the first repeated member in this text: JSON.parse keeps the last one, other parsers the first.
 * @param {string} json
 * @returns {Path | undefined}
 */
function repeatedMember (json) {
  /** @type {Array<{ at: string | number, names?: Set<string>, isNameNext: boolean }>} */
  const open = []
  for (const [token] of json.matchAll(tokens)) {
    const inner = open.at(-1)
    if (token === '{') open.push({ at: '', names: new Set(), isNameNext: true })
    else if (token === '[') open.push({ at: 0, isNameNext: false })
    else if (token === '}' || token === ']') open.pop()
    else if (inner === undefined) continue
    else if (token === ',') {
      if (inner.names === undefined) inner.at = Number(inner.at) + 1
      else inner.isNameNext = true
    } else if (inner.names !== undefined && inner.isNameNext) {
      inner.at = /** @type {string} */ (JSON.parse(token))
      inner.isNameNext = false
      if (inner.names.has(inner.at)) return open.map(({ at }) => at)
      inner.names.add(inner.at)
    }
  }
  return undefined
}

/** @param {Path} path */
export function pointerTo (path) {
  const names = path.map(name => '/' + cut(String(name), longestName).replaceAll('~', '~0').replaceAll('/', '~1'))
  return cut(names.join(''), longestPointer)
}

/**
 * @param {string} text
 * @param {number} length the maximum length of the result
 */
export function cut (text, length = longestShown) {
  return text.length > length ? text.slice(0, length - 1) + '…' : text
}
