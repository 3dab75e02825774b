/** @typedef {{ pointer: string, message: string }} Fault as in core/errors.ts */

/** The maximum number of errors in an answer. */
const mostFaults = 100
/** Errors must not echo a whole body: names are cut, and so is a long pointer. UTF-16 units. */
const longestName = 64
const longestPointer = 1_000

/** Thrown at the maximum number of faults: the verdict is known by then. */
const enough = new Error('enough faults')

/** Collects a value's faults with their places: the walk calls enter and leave. */
export class Report {
  /** @type {Fault[]} */
  faults = []
  /** @type {Array<string | number>} */
  #path

  /** @param {string} root the member of the request that it is about */
  constructor (root) {
    this.#path = [root]
  }

  /** @param {string | number} name of a member, or an item's index */
  enter (name) {
    this.#path.push(name)
  }

  leave () {
    this.#path.pop()
  }

  get path () {
    return this.#path.slice()
  }

  /**
   * Records a fault at the current place, or at a path below it.
   * @param {string} message
   * @param {Array<string | number>} more the rest of the way there
   * @returns {false} since whatever has a fault doesn't hold
   */
  add (message, ...more) {
    return this.addAt([...this.#path, ...more], message)
  }

  /**
   * @param {Array<string | number>} path
   * @param {string} message
   * @returns {false}
   */
  addAt (path, message) {
    this.faults.push({ pointer: pointerTo(path), message })
    if (this.faults.length === mostFaults) throw enough
    return false
  }
}

/**
 * The faults that `walk` finds, up to the maximum.
 * @param {Report} report
 * @param {() => unknown} walk
 */
export function reported (report, walk) {
  try {
    walk()
  } catch (error) {
    if (error !== enough) throw error
  }
  return report.faults
}

/** @param {Array<string | number>} path */
function pointerTo (path) {
  return cut(
    path.map(name => '/' + cut(String(name), longestName).replaceAll('~', '~0').replaceAll('/', '~1')).join(''),
    longestPointer
  )
}

/**
 * @param {string} text
 * @param {number} length the maximum length of the result
 */
export function cut (text, length) {
  return text.length > length ? text.slice(0, length - 1) + '…' : text
}
