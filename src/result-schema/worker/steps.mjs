// A pattern of ECMA-262 as steps, which backtracking.mjs takes.

/** @typedef {import('@eslint-community/regexpp').AST.Node} Node */
/** @typedef {import('@eslint-community/regexpp').AST.Pattern} PatternNode */
/** @typedef {(point: number) => boolean} Has whether a code point is in a set */
/**
 * @typedef {object} Step what to do, and its operands: each kind uses some
 * @property {number} op
 * @property {number} to another step
 * @property {number} register
 * @property {number} last the last of several registers
 * @property {number} min
 * @property {number} max
 * @property {boolean} isLazy
 * @property {boolean} isBack whether it reads towards the beginning, as within a lookbehind
 * @property {boolean} isNegated
 * @property {Has} has
 * @property {readonly number[]} groups
 */

/** What a step does. */
export const ops = Object.freeze({
  character: 0,
  run: 1,
  jump: 2,
  split: 3,
  save: 4,
  loop: 5,
  body: 6,
  bodyEnd: 7,
  clear: 8,
  isStart: 9,
  isEnd: 10,
  isEdge: 11,
  look: 12,
  back: 13,
  found: 14
})
const { character, run, jump, split, save, loop, body, bodyEnd, clear, isStart, isEnd, isEdge, look, back, found } = ops

/** The real one: in the worker thread the global RegExp is `compile` (main.mjs). */
const Native = RegExp

/** @type {Has} */
export const isWord = point =>
  (point >= 48 && point <= 57) || (point >= 65 && point <= 90) || point === 95 || (point >= 97 && point <= 122)
/** @type {Has} */
const isDigit = point => point >= 48 && point <= 57
/** @type {Has} */
const isLineEnd = point => point === 10 || point === 13 || point === 0x2028 || point === 0x2029
/** Each is one set of Unicode, which V8 compiles at once, and of which there are few. @type {Map<string, Has>} */
const native = new Map()

/**
 * @param {string} source one escape, such as `\p{L}` or `\s`
 * @returns {Has}
 * @throws {SyntaxError} if this version of Unicode doesn't have it
 */
function nativeSet (source) {
  let has = native.get(source)
  if (has === undefined) {
    const pattern = new Native(`^${source}$`, 'u')
    native.set(source, has = point => pattern.test(String.fromCodePoint(point)))
  }
  return has
}

/**
 * @param {Node} node
 * @returns {Has | undefined} undefined if it isn't a set of single characters
 */
function setOf (node) {
  if (node.type === 'Character') return point => point === node.value
  if (node.type === 'CharacterClassRange') return point => point >= node.min.value && point <= node.max.value
  if (node.type === 'CharacterSet') {
    if (node.kind === 'any') return point => !isLineEnd(point)
    if (node.kind === 'property' || node.kind === 'space') return remembering(nativeSet(node.raw))
    const has = node.kind === 'digit' ? isDigit : isWord
    return node.negate ? point => !has(point) : has
  }
  if (node.type !== 'CharacterClass') return undefined
  const members = node.elements.map(element => /** @type {Has} */ (setOf(element)))
  return remembering(point => members.some(has => has(point)) !== node.negate)
}

/**
 * Remembers what is said of ASCII.
 * @param {Has} has
 * @returns {Has}
 */
function remembering (has) {
  const known = new Uint8Array(128)
  return point => {
    if (point > 127) return has(point)
    if (known[point] === 0) known[point] = has(point) ? 1 : 2
    return known[point] === 1
  }
}

/** A pattern as steps. */
export class Program {
  /** @type {Step[]} */
  steps = []
  /** Where each group begins and ends, and then the counters. */
  registers

  /**
   * @param {PatternNode} pattern
   * @throws {SyntaxError} for what can't be searched for
   */
  constructor (pattern) {
    let groups = 1
    eachGroup(pattern, group => numbers.set(group, groups++))
    this.registers = 2 * groups
    this.#either(pattern.alternatives, false)
    this.#add({ op: found })
  }

  /** @param {Partial<Step>} step */
  #add (step) {
    this.steps.push({
      op: found,
      to: 0,
      register: 0,
      last: 0,
      min: 0,
      max: 0,
      isLazy: false,
      isBack: false,
      isNegated: false,
      has: isDigit,
      groups: [],
      ...step
    })
    return /** @type {Step} */ (this.steps.at(-1))
  }

  /** @param {readonly import('@eslint-community/regexpp').AST.Alternative[]} alternatives @param {boolean} isBack */
  #either (alternatives, isBack) {
    /** @type {Step[]} */
    const ends = []
    for (const [index, { elements }] of alternatives.entries()) {
      const other = index < alternatives.length - 1 ? this.#add({ op: split }) : undefined
      for (const element of isBack ? elements.toReversed() : elements) this.#element(element, isBack)
      if (other === undefined) continue
      ends.push(this.#add({ op: jump }))
      other.to = this.steps.length
    }
    for (const end of ends) end.to = this.steps.length
  }

  /** @param {Node} node @param {boolean} isBack */
  #element (node, isBack) {
    const has = setOf(node)
    if (has !== undefined) this.#add({ op: character, has, isBack })
    else if (node.type === 'Group' && node.modifiers === null) this.#either(node.alternatives, isBack)
    else if (node.type === 'CapturingGroup') this.#group(node, isBack)
    else if (node.type === 'Quantifier') this.#quantifier(node, isBack)
    else if (node.type === 'Assertion') this.#assertion(node)
    else if (node.type === 'Backreference') {
      const groups = [node.resolved].flat().map(group => 2 * numberOf(group))
      this.#add({ op: back, groups, isBack })
    } else throw new SyntaxError(`${node.raw} is not taken`)
  }

  /** @param {import('@eslint-community/regexpp').AST.CapturingGroup} group @param {boolean} isBack */
  #group (group, isBack) {
    const first = 2 * numberOf(group)
    this.#add({ op: save, register: isBack ? first + 1 : first })
    this.#either(group.alternatives, isBack)
    this.#add({ op: save, register: isBack ? first : first + 1 })
  }

  /** @param {import('@eslint-community/regexpp').AST.Quantifier} quantifier @param {boolean} isBack */
  #quantifier ({ element, min, max, greedy }, isBack) {
    const has = setOf(element)
    if (has !== undefined) return this.#add({ op: run, has, min, max, isLazy: !greedy, isBack })
    // The counter, and where the present repetition began.
    const register = this.registers
    this.registers += 2
    this.#add({ op: clear, register, last: register })
    const start = this.steps.length
    const loops = this.#add({ op: loop, register, min, max, isLazy: !greedy })
    const [first, last] = groupsIn(element)
    this.#add({ op: body, register })
    if (last >= first) this.#add({ op: clear, register: 2 * first, last: 2 * last + 1, isNegated: true })
    this.#element(element, isBack)
    this.#add({ op: bodyEnd, register, min, to: start })
    loops.to = this.steps.length
  }

  /** @param {import('@eslint-community/regexpp').AST.Assertion} assertion */
  #assertion (assertion) {
    if (assertion.kind === 'start' || assertion.kind === 'end') {
      this.#add({ op: assertion.kind === 'start' ? isStart : isEnd })
    } else if (assertion.kind === 'word') {
      this.#add({ op: isEdge, isNegated: assertion.negate })
    } else if (assertion.kind === 'lookahead' || assertion.kind === 'lookbehind') {
      const looks = this.#add({ op: look, isNegated: assertion.negate })
      this.#either(assertion.alternatives, assertion.kind === 'lookbehind')
      this.#add({ op: found })
      looks.to = this.steps.length
    }
  }
}

/** The groups' numbers, set by the constructor. @type {WeakMap<Node, number>} */
const numbers = new WeakMap()
/** @param {Node} group */
const numberOf = group => /** @type {number} */ (numbers.get(group))

/**
 * The numbers of the first and last group in it.
 * @param {Node} node
 * @returns {[first: number, last: number]}
 */
function groupsIn (node) {
  let [first, last] = [Infinity, -1]
  eachGroup(node, group => {
    first = Math.min(first, numberOf(group))
    last = Math.max(last, numberOf(group))
  })
  return [first, last]
}

/** Visits each capturing group, in their order. @param {Node} node @param {(group: Node) => void} visit */
function eachGroup (node, visit) {
  if (node.type === 'CapturingGroup') visit(node)
  if ('alternatives' in node) for (const inner of node.alternatives) eachGroup(inner, visit)
  if (node.type === 'Alternative') for (const inner of node.elements) eachGroup(inner, visit)
  if (node.type === 'Quantifier') eachGroup(node.element, visit)
}
