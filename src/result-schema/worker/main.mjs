// Runs in the worker thread: parses strangers' schemas and outputs, one job at a time (../thread.ts).
import { LRUCache } from 'lru-cache'
import { readlinkSync } from 'node:fs'
import { getHeapStatistics } from 'node:v8'
import { parentPort, workerData } from 'node:worker_threads'
import { Report, reported } from './report.mjs'
import { readSchema } from './schema.mjs'

/** @typedef {import('./assertions.mjs').Check} Check */
/** @typedef {import('./report.mjs').Fault} Fault */
/**
 * @typedef {{ digest: string, schema: Uint8Array, output?: Uint8Array }} Job without an output the schema alone is read
 */
/** @typedef {{ schema: Fault[], output: Fault[] }} Verdict what is wrong with either */

const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort)
/** When the current job began, by process.hrtime; 0 while idle. Shared with the main thread. */
const begun = /** @type {BigInt64Array} */ (workerData.begun)
/** The cache's size in bytes: it must leave memory for the next job. */
const roomToRemember = workerData.memory / 4

/**
 * This thread's folder in /proc, by which the main thread reads how much it has run (../thread-time.ts); undefined
 * where there is none.
 */
function ownTask () {
  try {
    return readlinkSync('/proc/thread-self')
  } catch {
    return undefined
  }
}

/** The valid schemas, by digest. @type {LRUCache<string, Check>} */
const known = new LRUCache({ max: 1_000 })

/** @param {Uint8Array} json */
const textOf = json => Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString()

/**
 * @param {Job} job
 * @returns {Verdict}
 */
function judge ({ digest, schema, output }) {
  let check = known.get(digest)
  if (check === undefined) {
    const read = readSchema(textOf(schema))
    if (read.faults.length > 0) return { schema: read.faults, output: [] }
    check = read.check
    known.set(digest, check)
  }
  return { schema: [], output: output === undefined ? [] : faultsOf(textOf(output), check) }
}

/**
 * @param {string} output
 * @param {Check} check
 */
function faultsOf (output, check) {
  const value = /** @type {unknown} */ (JSON.parse(output))
  const report = new Report('output')
  return reported(report, () => check(value, report))
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
  if (getHeapStatistics().used_heap_size > roomToRemember) known.clear()
})
port.postMessage({ readyAs: ownTask() })
