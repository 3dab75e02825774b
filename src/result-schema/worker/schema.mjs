import { annotations } from './annotations.mjs'
import { applicators, conditional, everyOne } from './applicators.mjs'
import { assertions } from './assertions.mjs'
import { isObject, repeatedMember } from './json.mjs'
import { compilePattern } from './patterns.mjs'
import { Unit, definitionName, writtenOut } from './references.mjs'
import { Report, reported } from './report.mjs'

/** @typedef {import('./assertions.mjs').Check} Check */
/** @typedef {import('./assertions.mjs').Keyword} Keyword */
/** @typedef {import('./patterns.mjs').Pattern} Pattern */
/** @typedef {import('./report.mjs').Fault} Fault */

const mostDepth = 20
const mostSubschemas = 1_000

/** All supported keywords. @type {Map<string, Keyword>} */
const keywords = new Map(Object.entries({
  $defs: (given, reader) => reader.definitions(given),
  $ref: (given, reader) => reader.reference(given),
  ...annotations,
  ...assertions,
  ...applicators,
}))

/**
 * Reads a schema of the subset that docs/api.md lists.
 * @param {string} text its JSON
 * @returns {{ check: Check, faults: Fault[] }} `check` is unusable if there are faults
 */
export function readSchema (text) {
  const reader = new Reader()
  const faults = reported(reader.report, () => reader.read(text))
  return { check: reader.root.check, faults }
}

/** Reads one schema, once. */
export class Reader {
  report = new Report('result_schema')
  root = new Unit()
  /** @type {Map<string, Unit>} */
  #definitions = new Map()
  /** Compiled patterns, each once, because compiling is slow. @type {Map<string, Pattern | string>} */
  #expressions = new Map()
  /** The unit being read, and the depth. */
  #unit = this.root
  #depth = 0

  /** @param {string} text */
  read (text) {
    const schema = /** @type {unknown} */ (JSON.parse(text))
    if (!isObject(schema)) return this.refuse('must be a JSON object')
    const repeated = repeatedMember(text)
    if (repeated !== undefined) return this.refuse('repeated', ...repeated)
    this.root.check = this.subschema(schema)
    const [size] = writtenOut([this.root, ...this.#definitions.values()], this.#definitions, this.report)
    if (Number(size) > mostSubschemas) {
      this.report.add(`has more than ${mostSubschemas} subschemas, references written out`)
    }
  }

  /**
   * Reports that the value at the current place isn't supported.
   * @param {string} message
   * @param {Array<string | number>} way the path below it
   * @returns {undefined}
   */
  refuse (message, ...way) {
    this.report.add(message, ...way)
  }

  /**
   * @param {unknown} schema
   * @returns {Check}
   */
  subschema (schema) {
    // A schema that is only a reference doesn't count itself: expanded, the definition would be in its place.
    if (!isObject(schema) || Object.keys(schema).join() !== '$ref') this.#unit.written++
    if (this.#depth === mostDepth) this.refuse(`nested deeper than ${mostDepth} subschemas`)
    else if (isObject(schema)) return this.#together(schema)
    else if (schema === true) return () => true
    else if (schema !== false) this.refuse('must be an object, or true or false')
    return (_, report) => report?.add('not allowed') ?? false
  }

  /** @param {Record<string, unknown>} schema */
  #together (schema) {
    /** @type {Map<string, Check>} */
    const checks = new Map()
    this.#depth++
    for (const [name, given] of Object.entries(schema)) {
      const check = this.#within(name, () => this.#keyword(name, given, schema))
      if (check !== undefined) checks.set(name, check)
    }
    this.#depth--
    const test = checks.get('if')
    if (test !== undefined) checks.set('if', conditional(test, checks.get('then'), checks.get('else')))
    checks.delete('then')
    checks.delete('else')
    const [first, ...others] = checks.values()
    if (first !== undefined && others.length === 0) return first
    /** @type {Check} */
    const all = (value, report) => everyOne(checks.values(), report, check => check(value, report))
    return all
  }

  /**
   * @param {string} name
   * @param {unknown} given
   * @param {Record<string, unknown>} schema
   */
  #keyword (name, given, schema) {
    const keyword = keywords.get(name)
    return keyword === undefined ? this.refuse('is not taken in a result_schema') : keyword(given, this, schema)
  }

  /**
   * @template T
   * @param {string | number} name
   * @param {() => T} read
   */
  #within (name, read) {
    this.report.enter(name)
    const result = read()
    this.report.leave()
    return result
  }

  /**
   * @param {unknown} given
   * @returns {Check[]}
   */
  list (given) {
    if (Array.isArray(given) && given.length > 0) {
      return given.map((schema, index) => this.#within(index, () => this.subschema(schema)))
    }
    this.refuse('must be an array of one schema or more')
    return []
  }

  /**
   * Schemas by their names.
   * @param {unknown} given
   * @param {(name: string, schema: unknown) => Check} [read]
   * @returns {Array<[name: string, check: Check]>}
   */
  named (given, read = (_, schema) => this.subschema(schema)) {
    if (isObject(given)) {
      return Object.entries(given).map(([name, schema]) => [name, this.#within(name, () => read(name, schema))])
    }
    this.refuse('must be an object of schemas')
    return []
  }

  /** @param {unknown} given a pattern, by the schema */
  pattern (given) {
    const expression = typeof given === 'string' ? this.expression(given) : 'must be a string'
    return typeof expression === 'string' ? this.refuse(expression) : expression
  }

  /**
   * @param {string} pattern
   * @returns {Pattern | string} or why it is none
   */
  expression (pattern) {
    const known = this.#expressions.get(pattern)
    if (known !== undefined) return known
    const expression = compilePattern(pattern)
    this.#expressions.set(pattern, expression)
    return expression
  }

  /** @param {unknown} given */
  definitions (given) {
    if (this.#depth > 1) return this.refuse('is taken only at the top of the schema')
    this.named(given, (name, schema) => {
      this.#unit = new Unit()
      this.#definitions.set(name, this.#unit)
      return (this.#unit.check = this.subschema(schema))
    })
    this.#unit = this.root
  }

  /**
   * @param {unknown} given
   * @returns {Check | undefined}
   */
  reference (given) {
    const name = definitionName(given)
    if (name === undefined) return this.refuse('must be #/$defs/ and the name of a definition')
    this.#unit.references.push({ name, path: this.report.path })
    return (value, report) => /** @type {Unit} */ (this.#definitions.get(name)).check(value, report)
  }
}
