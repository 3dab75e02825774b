/** Strings and structural characters. In valid JSON, nothing else contains these characters. */
const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],]/g

/**
 * The path of the first repeated member in this text: JSON.parse keeps the last one, other parsers the first.
 * @param {string} text valid JSON
 * @returns {Array<string | number> | undefined}
 */
export function repeatedMember (text) {
  /** @type {Array<{ at: string | number, names?: Set<string>, isNameNext: boolean }>} */
  const open = []
  for (const [token] of text.matchAll(tokens)) {
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

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
export function isObject (value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Whether two values of JSON.parse are the same JSON. Only an object's own members count, and a member named
 * `constructor` or
 * `valueOf` is a member like any other.
 * @param {unknown} a
 * @param {unknown} b
 * @returns {boolean}
 */
export function equal (a, b) {
  if (a === b) return true
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => equal(item, b[index]))
  }
  if (!isObject(a) || !isObject(b)) return false
  const names = Object.keys(a)
  return names.length === Object.keys(b).length &&
    names.every(name => Object.hasOwn(b, name) && equal(a[name], b[name]))
}

/**
 * Counts Unicode code points; a lone surrogate is one.
 * @param {string} text
 */
export function lengthOf (text) {
  let length = text.length
  for (let i = 1; i < text.length; i++) {
    if (isSurrogate(text, i, 0xdc00) && isSurrogate(text, i - 1, 0xd800)) length--
  }
  return length
}

/**
 * @param {string} text
 * @param {number} at
 * @param {number} from where that half of the surrogates begins
 */
function isSurrogate (text, at, from) {
  return (text.charCodeAt(at) & 0xfc00) === from
}
