// The keywords that apply subschemas to a value or its contents; made like those in assertions.mjs.
import { isObject } from './json.mjs'

/** @typedef {import('./report.mjs').Report} Report */
/** @typedef {import('./assertions.mjs').Check} Check */
/** @typedef {import('./assertions.mjs').Keyword} Keyword */
/** @typedef {import('./patterns.mjs').Pattern} Pattern */

/**
 * Applies a check to a member or item.
 * @param {string | number} name
 * @param {unknown} value
 * @param {Check} check
 * @param {Report} [report]
 */
function under (name, value, check, report) {
  if (report === undefined) return check(value)
  report.enter(name)
  const holds = check(value, report)
  report.leave()
  return holds
}

/**
 * Whether all hold. Without a report it stops at the first failure.
 * @template T
 * @param {Iterable<T>} all
 * @param {Report | undefined} report
 * @param {(one: T) => boolean} holds
 */
export function everyOne (all, report, holds) {
  let faultless = true
  for (const one of all) {
    if (holds(one)) continue
    if (report === undefined) return false
    faultless = false
  }
  return faultless
}

/** @type {Keyword} */
function properties (given, reader) {
  const checks = reader.named(given)
  return (value, report) => !isObject(value) ||
    everyOne(checks, report, ([name, check]) => !Object.hasOwn(value, name) || under(name, value[name], check, report))
}

/** @type {Keyword} */
function patternProperties (given, reader) {
  /** @type {Array<{ expression: Pattern, check: Check }>} */
  const checks = []
  reader.named(given, (name, schema) => {
    const [expression, check] = [reader.pattern(name), reader.subschema(schema)]
    if (expression !== undefined) checks.push({ expression, check })
    return check
  })
  return (value, report) => !isObject(value) || everyOne(Object.keys(value), report, name =>
    everyOne(
      checks, report, ({ expression, check }) => !expression.test(name) || under(name, value[name], check, report)
    ))
}

/** @type {Keyword} */
function additionalProperties (given, reader, { properties, patternProperties }) {
  const check = reader.subschema(given)
  const names = new Set(isObject(properties) ? Object.keys(properties) : [])
  // An invalid pattern is reported at its own place.
  const patterns = isObject(patternProperties) ? Object.keys(patternProperties) : []
  const expressions = patterns.map(name => reader.expression(name)).filter(one => typeof one !== 'string')
  return (value, report) => !isObject(value) || everyOne(Object.keys(value), report, name =>
    names.has(name) || expressions.some(one => one.test(name)) || under(name, value[name], check, report))
}

/** @type {Keyword} */
function propertyNames (given, reader) {
  const check = reader.subschema(given)
  return (value, report) => !isObject(value) ||
    everyOne(
      Object.keys(value), report,
      name => check(name) || (report?.add('has a name that propertyNames does not take', name) ?? false)
    )
}

/** @type {Keyword} */
function prefixItems (given, reader) {
  const checks = reader.list(given)
  return (value, report) => !Array.isArray(value) ||
    everyOne(
      checks.entries(), report, ([index, check]) => index >= value.length || under(index, value[index], check, report)
    )
}

/** @type {Keyword} */
function items (given, reader, { prefixItems }) {
  const check = reader.subschema(given)
  const first = Array.isArray(prefixItems) ? prefixItems.length : 0
  return (value, report) => !Array.isArray(value) ||
    everyOne(value.entries(), report, ([index, item]) => index < first || under(index, item, check, report))
}

/** @type {Keyword} */
function contains (given, reader) {
  const check = reader.subschema(given)
  return (value, report) => !Array.isArray(value) || value.some(item => check(item)) ||
    (report?.add('must have an item that contains describes') ?? false)
}

/** @type {Keyword} */
function allOf (given, reader) {
  const checks = reader.list(given)
  return (value, report) => everyOne(checks, report, check => check(value, report))
}

/** @type {Keyword} */
function anyOf (given, reader) {
  const checks = reader.list(given)
  const message = `must satisfy one of the ${checks.length} schemas of anyOf`
  return (value, report) => checks.some(check => check(value)) || (report?.add(message) ?? false)
}

/** @type {Keyword} */
function oneOf (given, reader) {
  const checks = reader.list(given)
  const message = `must satisfy one of the ${checks.length} schemas of oneOf, and no other`
  return (value, report) => {
    let satisfied = 0
    for (const check of checks) {
      if (check(value) && ++satisfied > 1) break
    }
    return satisfied === 1 || (report?.add(message) ?? false)
  }
}

/** @type {Keyword} */
function not (given, reader) {
  const check = reader.subschema(given)
  return (value, report) => !check(value) || (report?.add('must not satisfy the schema of not') ?? false)
}

/**
 * The combined check of one schema's `if`, `then` and `else`.
 * @param {Check} test
 * @param {Check} [then]
 * @param {Check} [otherwise]
 * @returns {Check}
 */
export function conditional (test, then, otherwise) {
  return (value, report) => {
    const branch = test(value) ? then : otherwise
    return branch === undefined || branch(value, report)
  }
}

/** @type {Record<string, Keyword>} */
export const applicators = {
  properties,
  patternProperties,
  additionalProperties,
  propertyNames,
  prefixItems,
  items,
  contains,
  allOf,
  anyOf,
  oneOf,
  not,
  if: (given, reader) => reader.subschema(given),
  then: (given, reader) => reader.subschema(given),
  else: (given, reader) => reader.subschema(given),
}
