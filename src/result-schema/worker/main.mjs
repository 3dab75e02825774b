// Runs in the worker thread: parses strangers' schemas and outputs, one job at a time (../thread.ts).
import { validate } from '@cfworker/json-schema'
import { LRUCache } from 'lru-cache'
import { readlinkSync } from 'node:fs'
import { getHeapStatistics } from 'node:v8'
import { parentPort, workerData } from 'node:worker_threads'
import { compile, compiled } from './patterns.mjs'
import { cut, nothing, pointerTo, readSchema } from './schema.mjs'
import { Written } from './written.mjs'

/** @typedef {import('./schema.mjs').Fault} Fault */
/** @typedef {import('./schema.mjs').Ready & { text: string }} Ready with its JSON text */
/** @typedef {import('@cfworker/json-schema').OutputUnit} OutputUnit an error, as the validator tells it */
/**
 * @typedef {{ digest: string, schema: Uint8Array, output?: Uint8Array }} Job without an output the schema alone is read
 */
/** @typedef {{ schema: Fault[], output: Fault[] }} Verdict what is wrong with either */

const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort)
/** When the current job began, by process.hrtime; 0 while idle. Shared with the main thread. */
const begun = /** @type {BigInt64Array} */ (workerData.begun)
/** The cache's size in bytes: it must leave memory for the next job. */
const roomToRemember = workerData.memory / 4
/** The maximum number of errors in an answer. */
const mostFaults = 100
/** Up to this length of an output all that is wrong is listed: the validator keeps errors without a limit. */
const longestListed = 128 * 1024

/** The valid schemas, by digest. @type {LRUCache<string, Ready>} */
const known = new LRUCache({ max: 1_000 })

Object.assign(globalThis, {
  /**
   * The validator searches for patterns by `new RegExp(source, 'u').test`.
   * @param {string} source
   */
  RegExp: function (source) {
    return compile(source)
  },
  /**
   * By this the validator makes its locations. The real one throws at half of a surrogate pair. `namesIn` undoes it.
   * @param {string} text
   */
  encodeURI: text => text.replaceAll('%', '%25'),
})

/**
 * This thread's folder in /proc, by which the main thread reads how much it has run (../thread.ts); undefined
 * where there is none.
 */
function ownTask () {
  try {
    return readlinkSync('/proc/thread-self')
  } catch {
    return undefined
  }
}

/** @param {Uint8Array} json */
const textOf = json => Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString()

/**
 * @param {Job} job
 * @returns {Verdict}
 */
function judge ({ digest, schema, output }) {
  let ready = known.get(digest)
  if (ready === undefined) {
    const text = textOf(schema)
    const { faults, ...read } = readSchema(text)
    if (faults.length > 0) return { schema: faults.slice(0, mostFaults), output: [] }
    ready = { ...read, text }
    known.set(digest, ready)
  }
  return { schema: [], output: output === undefined ? [] : faultsOf(textOf(output), ready) }
}

/**
 * @param {string} output
 * @param {Ready} ready
 */
function faultsOf (output, ready) {
  const { schema, definitions } = ready
  const value = JSON.parse(output)
  /** @param {boolean} isShort whether to stop at an object's or array's first fault */
  const errorsOf = isShort => validate(value, schema, '2020-12', definitions, isShort).errors
  let errors = errorsOf(true)
  if (errors.length > 0 && output.length <= longestListed) {
    try {
      errors = errorsOf(false)
    } catch (error) {
      // More errors than fit on the stack, across which the validator hands them on.
      if (!(error instanceof RangeError)) throw error
    }
  }
  return described(errors, ready)
}

/** What the validator says of a place because of what it says of others. */
const consequences = [
  '$ref', 'allOf', 'if', 'properties', 'patternProperties', 'additionalProperties', 'items', 'prefixItems'
]
/** For these, what is wrong with the subschemas isn't said. */
const choices = ['anyOf', 'oneOf', 'not', 'contains', 'propertyNames']

/** For these the schema's own text is shown, which may have numbers that are no doubles. */
const asWritten = ['enum', 'const', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']
/** @type {Record<string, (given: any) => string>} */
const words = {
  type: given => `must be ${[given].flat().join(' or ')}`,
  enum: given => `must be one of ${cut(given)}`,
  const: given => `must be ${cut(given)}`,
  minimum: given => `must be at least ${cut(given)}`,
  maximum: given => `must be at most ${cut(given)}`,
  exclusiveMinimum: given => `must be greater than ${cut(given)}`,
  exclusiveMaximum: given => `must be less than ${cut(given)}`,
  multipleOf: given => `must be a multiple of ${cut(given)}`,
  minLength: given => `must have at least ${given} characters`,
  maxLength: given => `must have at most ${given} characters`,
  pattern: given => `must match the pattern ${cut(given)}`,
  minItems: given => `must have at least ${given} items`,
  maxItems: given => `must have at most ${given} items`,
  uniqueItems: () => 'must have no two items that are equal',
  contains: () => 'must have an item that contains describes',
  minProperties: given => `must have at least ${given} members`,
  maxProperties: given => `must have at most ${given} members`,
  required: () => 'required',
  propertyNames: () => 'has a name that propertyNames does not take',
  anyOf: given => `must satisfy one of the ${given.length} schemas of anyOf`,
  oneOf: given => `must satisfy one of the ${given.length} schemas of oneOf, and no other`,
  not: () => 'must not satisfy the schema of not',
}

/**
 * The faults that are behind the validator's errors: those of a subschema follow the one that it caused.
 * @param {OutputUnit[]} errors
 * @param {Ready} ready
 */
function described (errors, { schema, definitions, text }) {
  /** @type {Written | undefined} */
  let written
  /** @type {Fault[]} */
  const faults = []
  let untold = ''
  for (const [index, { keyword, keywordLocation, instanceLocation, error }] of errors.entries()) {
    if (untold !== '' && keywordLocation.startsWith(untold)) continue
    untold = choices.includes(keyword) ? `${keywordLocation}/` : ''
    if (consequences.includes(keyword)) continue
    let [given, around] = /** @type {any[]} */ ([schema, undefined])
    /** @type {string[]} */
    let path = []
    for (const name of namesIn(keywordLocation)) {
      around = given
      const isReference = name === '$ref' && typeof given.$ref === 'string'
      path = isReference ? ['$defs', given.$ref] : [...path, name]
      given = isReference ? definitions[given.$ref] : given[name]
    }
    if (asWritten.includes(keyword)) given = (written ??= new Written(text)).at(path) ?? JSON.stringify(given)
    // The name that is wrong or missing is only in the validator's text, or in the error that follows.
    const place = keyword === 'propertyNames' ? errors[index + 1]?.instanceLocation ?? '' : instanceLocation
    const missing = keyword === 'required' ? [/"(.*)"/s.exec(error)?.[1] ?? ''] : []
    faults.push({
      pointer: pointerTo(['output', ...namesIn(place), ...missing]),
      message: around === nothing ? 'not allowed' : words[keyword]?.(given) ?? error,
    })
    if (faults.length === mostFaults) break
  }
  return faults
}

/** @param {string} location a JSON Pointer (RFC 6901) behind '#', as the validator writes it */
function namesIn (location) {
  return location.split('/').slice(1).map(name =>
    name.replaceAll('%23', '#').replaceAll('%25', '%').replaceAll('~1', '/').replaceAll('~0', '~'))
}

// Warm up: the first run takes several times as long, and no job should be charged for that.
judge({
  digest: '',
  schema: Buffer.from('{"properties": {"a": {"pattern": "a+$"}}, "required": ["b"]}'),
  output: Buffer.from('{"a": ""}')
})

port.on('message', job => {
  Atomics.store(begun, 0, process.hrtime.bigint())
  port.postMessage(judge(job))
  Atomics.store(begun, 0, 0n)
  if (getHeapStatistics().used_heap_size > roomToRemember) {
    known.clear()
    compiled.clear()
  }
})
port.postMessage({ readyAs: ownTask() })
