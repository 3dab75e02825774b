/*
 * Patterns are ECMA-262 with the flag u. RE2 searches for them, and backtracking.mjs for those that RE2 doesn't have:
 * looking around, references back, many repetitions, some properties. JavaScript's own RegExp isn't safe even in a
 * thread of its own: V8 compiles a pattern without a look at whether the thread is to end. `(?:.|[^a]|\D|\W|\S)` eight
 * times took 105 s of CPU for the text `я` (Node 20.20), and terminate(), the next worker and all other jobs wait for
 * that. Both of ours are JavaScript, which can be ended at any moment, and RE2's time is linear.
 */
import { RegExpParser } from '@eslint-community/regexpp'
import { LRUCache } from 'lru-cache'
import { RE2JS, RE2JSException } from 're2js'
import { backtracking } from './backtracking.mjs'

/** @typedef {import('@eslint-community/regexpp').AST.Node} Node */
/** @typedef {{ test: (text: string) => boolean }} Pattern */

const parser = new RegExpParser()
/** ECMA-262's white space (RE2's is less), all else, and what `.` is not, as members of a class. */
const space = '\\t-\\r \\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}'
const noSpace = '\\x00-\\x08\\x0e-\\x1f!-\\x9f\\xa1-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}' +
  '\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}'
const lineEnds = '\\n\\r\\x{2028}\\x{2029}'

/** RE2 has the general categories' short names only; each is followed by its long ones. */
const categories = new Map(`L Letter,LC Cased_Letter,Lu Uppercase_Letter,Ll Lowercase_Letter,Lt Titlecase_Letter,
Lm Modifier_Letter,Lo Other_Letter,M Mark Combining_Mark,Mn Nonspacing_Mark,Mc Spacing_Mark,Me Enclosing_Mark,N Number,
Nd Decimal_Number digit,Nl Letter_Number,No Other_Number,P Punctuation punct,Pc Connector_Punctuation,
Pd Dash_Punctuation,Ps Open_Punctuation,Pe Close_Punctuation,Pi Initial_Punctuation,Pf Final_Punctuation,
Po Other_Punctuation,S Symbol,Sm Math_Symbol,Sc Currency_Symbol,Sk Modifier_Symbol,So Other_Symbol,Z Separator,
Zs Space_Separator,Zl Line_Separator,Zp Paragraph_Separator,C Other,Cc Control cntrl,Cf Format,Cs Surrogate,
Co Private_Use,Cn Unassigned`.split(/,\s*/).flatMap(names => {
    const [short = '', ...long] = names.split(' ')
    return long.map(name => [name, short])
  }))

/** @param {{ elements: Node[] }} of */
const together = ({ elements }) => elements.map(translated).join('')
/** @param {{ alternatives: Node[] }} of */
const either = ({ alternatives }) => alternatives.map(translated).join('|')
/** @param {number} point */
const character = point => `\\x{${point.toString(16)}}`

/**
 * @param {Node} node
 * @returns {string} the same in RE2's syntax
 */
function translated (node) {
  switch (node.type) {
    case 'Pattern': return either(node)
    case 'Alternative': return together(node)
    case 'CapturingGroup': return `(?:${either(node)})`
    case 'Group':
      if (node.modifiers !== null) break
      return `(?:${either(node)})`
    case 'Quantifier': return translated(node.element) + node.raw.slice(node.element.raw.length)
    case 'Character': return character(node.value)
    case 'CharacterClassRange': return `${character(node.min.value)}-${character(node.max.value)}`
    case 'CharacterClass':
      // RE2 has no class without members.
      if (node.elements.length === 0) return node.negate ? '[\\x00-\\x{10ffff}]' : '[^\\x00-\\x{10ffff}]'
      return `[${node.negate ? '^' : ''}${together(node)}]`
    case 'CharacterSet': return set(node)
    case 'Assertion':
      if (node.kind === 'word') return node.negate ? '\\B' : '\\b'
      if (node.kind === 'start' || node.kind === 'end') return node.raw
  }
  throw new Beyond(node.raw)
}

/** RE2 doesn't have this. */
class Beyond extends Error {}

/** @param {import('@eslint-community/regexpp').AST.CharacterSet} node */
function set (node) {
  const isInClass = node.parent?.type === 'CharacterClass'
  if (node.kind === 'any') return `[^${lineEnds}]`
  if (node.kind === 'space') {
    const members = node.negate ? noSpace : space
    return isInClass ? members : `[${members}]`
  }
  if (node.kind !== 'property') return node.raw
  if (/^(Script_Extensions|scx)$/.test(node.key)) throw new Beyond(node.raw)
  const name = node.value ?? node.key
  return `\\${node.negate ? 'P' : 'p'}{${categories.get(name) ?? name}}`
}

/** Compiling is slow. @type {LRUCache<string, Pattern>} */
export const compiled = new LRUCache({ max: 5_000 })

/**
 * @param {string} source
 * @returns {Pattern}
 * @throws {SyntaxError} saying what is wrong with it
 */
export function compile (source) {
  let pattern = compiled.get(source)
  if (pattern !== undefined) return pattern
  try {
    const read = parser.parsePattern(source, 0, source.length, { unicode: true })
    pattern = byRE2(read) ?? backtracking(read)
  } catch (error) {
    if (error instanceof RangeError) throw new SyntaxError('nested too deeply')
    throw error
  }
  compiled.set(source, pattern)
  return pattern
}

/**
 * @param {import('@eslint-community/regexpp').AST.Pattern} read
 * @returns {Pattern | undefined} undefined for what RE2 doesn't have
 */
function byRE2 (read) {
  try {
    return RE2JS.compile(translated(read))
  } catch (error) {
    if (error instanceof Beyond || error instanceof RE2JSException) return undefined
    throw error
  }
}
