// The keywords that constrain a value itself. Each turns the keyword's value into a check of outputs, or refuses it.
import { equal, isObject, lengthOf } from './json.mjs'
import { cut } from './report.mjs'

/** @typedef {import('./report.mjs').Report} Report */
/** @typedef {import('./schema.mjs').Reader} Reader */
/**
 * Whether a value is valid. A report gets every fault; without one it stops at the first.
 * @typedef {(value: unknown, report?: Report) => boolean} Check
 */
/**
 * Takes the keyword's value, the reader, and the schema around it. Returns undefined if it doesn't constrain outputs.
 * @typedef {(given: any, reader: Reader, schema: Record<string, unknown>) => Check | undefined} Keyword
 */

const longestShown = 200

/** @type {Record<string, (value: unknown) => boolean>} */
const types = {
  array: Array.isArray,
  boolean: value => typeof value === 'boolean',
  // 1e400 is an integer, though as a double it is Infinity.
  integer: value => typeof value === 'number' && (Number.isInteger(value) || Math.abs(value) === Infinity),
  null: value => value === null,
  number: value => typeof value === 'number',
  object: isObject,
  string: value => typeof value === 'string',
}

/** @type {Keyword} */
function type (given, reader) {
  const names = /** @type {unknown[]} */ (Array.isArray(given) ? given : [given])
  if (names.length === 0 || new Set(names).size < names.length ||
    !names.every(name => typeof name === 'string' && Object.hasOwn(types, name))) {
    return reader.refuse(`must be one of ${Object.keys(types).join(', ')}, or an array of several`)
  }
  const checks = names.map(name => /** @type {NonNullable<typeof types[string]>} */ (types[String(name)]))
  const message = `must be ${names.join(' or ')}`
  return (value, report) => checks.some(is => is(value)) || (report?.add(message) ?? false)
}

/** @type {Keyword} */
function enumeration (given, reader) {
  if (!Array.isArray(given)) return reader.refuse('must be an array')
  const plain = new Set(given.filter(one => typeof one !== 'object' || one === null))
  const others = given.filter(one => !plain.has(one))
  const message = `must be one of ${shown(given)}`
  return (value, report) => plain.has(value) || others.some(one => equal(one, value)) || (report?.add(message) ?? false)
}

/** @type {Keyword} */
function constant (given) {
  const message = `must be ${shown(given)}`
  return (value, report) => equal(given, value) || (report?.add(message) ?? false)
}

/** @param {unknown} value */
function shown (value) {
  return cut(JSON.stringify(value), longestShown)
}

/**
 * A bound of numbers.
 * @param {(value: number, bound: number) => boolean} holds
 * @param {string} words
 * @returns {Keyword}
 */
function bound (holds, words) {
  return (given, reader) => {
    if (typeof given !== 'number') return reader.refuse('must be a number')
    const message = `must be ${words} ${given}`
    return (value, report) => typeof value !== 'number' || holds(value, given) || (report?.add(message) ?? false)
  }
}

/** @type {Keyword} */
function multipleOf (given, reader, schema) {
  if (!Number.isFinite(given) || given <= 0) return reader.refuse('must be a number greater than 0')
  return bound(isMultiple, 'a multiple of')(given, reader, schema)
}

/**
 * Uses the decimals that the doubles stand for: 4.02 is 402 times 0.01, but dividing the doubles doesn't give 402.
 * @param {number} value
 * @param {number} of
 */
function isMultiple (value, of) {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(of)) return value % of === 0
  if (!Number.isFinite(value)) return false
  const [a, b] = [decimal(value), decimal(of)]
  const least = Math.min(a.exponent, b.exponent)
  const [dividend, divisor] = [a, b].map(({ digits, exponent }) => digits * 10n ** BigInt(exponent - least))
  return /** @type {bigint} */ (dividend) % /** @type {bigint} */ (divisor) === 0n
}

/** @param {number} value */
function decimal (value) {
  const [digits = '', exponent] = value.toExponential().split('e')
  const [whole = '', fraction = ''] = digits.split('.')
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length }
}

/**
 * A bound of a length or count.
 * @param {(value: any) => number | undefined} count undefined for a value of another type
 * @param {-1 | 1} sign -1 for a minimum, 1 for a maximum
 * @param {string} what
 * @returns {Keyword}
 */
function size (count, sign, what) {
  return (given, reader) => {
    if (!isCount(given)) return reader.refuse('must be a whole number from 0 on')
    const message = `must have at ${sign < 0 ? 'least' : 'most'} ${given} ${what}`
    return (value, report) => {
      const number = count(value)
      return number === undefined || (number - given) * sign <= 0 || (report?.add(message) ?? false)
    }
  }
}

/** @param {unknown} given */
const isCount = given => Number.isInteger(given) && Number(given) >= 0
/** @param {unknown} value */
const characters = value => typeof value === 'string' ? lengthOf(value) : undefined
/** @param {unknown} value */
const items = value => Array.isArray(value) ? value.length : undefined
/** @param {unknown} value */
const members = value => isObject(value) ? Object.keys(value).length : undefined

/** @type {Keyword} */
function pattern (given, reader) {
  const expression = reader.pattern(given)
  if (expression === undefined) return undefined
  const message = `must match the pattern ${cut(given, longestShown)}`
  return (value, report) => typeof value !== 'string' || expression.test(value) || (report?.add(message) ?? false)
}

/** Every pair is compared, so the number of items must be small. */
const mostUnique = 100

/** @type {Keyword} */
function uniqueItems (given, reader, { maxItems }) {
  if (typeof given !== 'boolean') return reader.refuse('must be true or false')
  if (!given) return undefined
  if (!isCount(maxItems) || Number(maxItems) > mostUnique) {
    return reader.refuse(`is taken only together with maxItems of at most ${mostUnique}`)
  }
  return (value, report) => {
    // maxItems reports longer arrays.
    if (!Array.isArray(value) || value.length > Number(maxItems)) return true
    return value.every((item, index) => !value.slice(0, index).some(former => equal(former, item))) ||
      (report?.add('must have no two items that are equal') ?? false)
  }
}

/** @type {Keyword} */
function required (given, reader) {
  if (!Array.isArray(given) || !given.every(name => typeof name === 'string') || new Set(given).size < given.length) {
    return reader.refuse('must be an array of strings, none of them twice')
  }
  return (value, report) => {
    if (!isObject(value)) return true
    const missing = given.filter(name => !Object.hasOwn(value, name))
    for (const name of missing) report?.add('required', name)
    return missing.length === 0
  }
}

/** @type {Record<string, Keyword>} */
export const assertions = {
  type,
  enum: enumeration,
  const: constant,
  minimum: bound((value, least) => value >= least, 'at least'),
  maximum: bound((value, most) => value <= most, 'at most'),
  exclusiveMinimum: bound((value, least) => value > least, 'greater than'),
  exclusiveMaximum: bound((value, most) => value < most, 'less than'),
  multipleOf,
  minLength: size(characters, -1, 'characters'),
  maxLength: size(characters, 1, 'characters'),
  pattern,
  minItems: size(items, -1, 'items'),
  maxItems: size(items, 1, 'items'),
  uniqueItems,
  minProperties: size(members, -1, 'members'),
  maxProperties: size(members, 1, 'members'),
  required,
}
