/*
 * Searches for the patterns that RE2 can't (patterns.mjs): those that look around, refer back or repeat more than
 * 1,000 times. It backtracks as ECMA-262 says (22.2.2), so its time may be exponential. All of it is plain JavaScript,
 * and V8 compiles no pattern for it: the main thread can end it at any moment, and does so after the job's time. What
 * is left to try is on a stack of its own, so a long text doesn't exhaust JavaScript's.
 */

import { Program, isWord, ops } from './steps.mjs'

/** @typedef {import('./steps.mjs').Step} Step */

const { character, run, jump, split, save, loop, body, bodyEnd, clear, isStart, isEnd, isEdge, look, back, found } = ops
/** What is on the stack: a step to go on with, a register's old value, a run that may be shorter or longer. */
const [choice, old, shorter, longer] = [0, 1, 2, 3]
/** The longest stack: 64 MB, and half as much again while it grows. */
const mostNumbers = 2 ** 23

/** One search in one text. */
class Search {
  #steps
  #text
  /** Where groups begin and end, -1 for nowhere, and counters. */
  #registers
  /** Entries of four numbers: what it is, and three of its own. @type {number[]} */
  #stack = []

  /** @param {Program} program @param {string} text */
  constructor ({ steps, registers }, text) {
    this.#steps = steps
    this.#text = text
    this.#registers = new Array(registers).fill(-1)
  }

  #pop () {
    return /** @type {number} */ (this.#stack.pop())
  }

  /** Takes back what was set since. @param {number} bottom */
  #undo (bottom) {
    while (this.#stack.length > bottom) {
      const [, value, register, kind] = [this.#pop(), this.#pop(), this.#pop(), this.#pop()]
      if (kind === old) this.#registers[register] = value
    }
  }

  /** The code point at, or before, `at`; -1 for none. @param {number} at @param {boolean} isBack */
  #point (at, isBack) {
    const text = this.#text
    if (!isBack) return at < text.length ? /** @type {number} */ (text.codePointAt(at)) : -1
    if (at === 0) return -1
    const whole = at > 1 ? /** @type {number} */ (text.codePointAt(at - 2)) : 0
    return whole > 0xffff ? whole : text.charCodeAt(at - 1)
  }

  /** @param {number} at */
  #isWithinPair (at) {
    return at > 0 && /** @type {number} */ (this.#text.codePointAt(at - 1)) > 0xffff
  }

  /**
   * Where `at` is one character further.
   * @param {number} at
   * @param {number} point that character
   * @param {boolean} isBack
   */
  #after (at, point, isBack) {
    const length = point > 0xffff ? 2 : 1
    return isBack ? at - length : at + length
  }

  /** @param {number} register @param {number} value */
  #set (register, value) {
    this.#stack.push(old, register, /** @type {number} */ (this.#registers[register]), 0)
    this.#registers[register] = value
  }

  /**
   * Goes on with these steps from here until one is `found`.
   * @param {number} step
   * @param {number} at
   * @returns {boolean} false: all that was on the stack since is undone
   */
  matches (step, at) {
    const bottom = this.#stack.length
    /** The next step, or -1 where this way ends. */
    let next = step
    for (;;) {
      if (next === -1) {
        if (this.#stack.length === bottom) return false
        const [three, two, one, kind] = [this.#pop(), this.#pop(), this.#pop(), this.#pop()]
        if (kind === old) this.#registers[one] = two
        else [next, at] = kind === choice ? [one, two] : this.#another(kind, one, two, three)
        continue
      }
      if (this.#stack.length > mostNumbers) throw new RangeError('there is too much left to try')
      const now = /** @type {Step} */ (this.#steps[next])
      if (now.op === found) return true
      if (now.op === character) {
        const point = this.#point(at, now.isBack)
        if (point !== -1 && now.has(point)) {
          at = this.#after(at, point, now.isBack)
          next++
        } else next = -1
      } else if (now.op === run || now.op === back) {
        at = now.op === run ? this.#run(now, next, at) : this.#back(now, at)
        next = at === -1 ? -1 : next + 1
      } else next = this.#step(now, next, at)
    }
  }

  /**
   * A step that reads nothing.
   * @param {Step} now
   * @param {number} index of this step
   * @param {number} at
   * @returns {number} the next, or -1
   */
  #step (now, index, at) {
    const { op, register } = now
    switch (op) {
      case jump: return now.to
      case split: this.#stack.push(choice, now.to, at, 0); break
      case save: this.#set(register, at); break
      case clear:
        for (let each = register; each <= now.last; each++) this.#set(each, now.isNegated ? -1 : 0)
        break
      case loop: return this.#loop(now, index, at)
      case body:
        this.#set(register, /** @type {number} */ (this.#registers[register]) + 1)
        this.#set(register + 1, at)
        break
      case bodyEnd:
        // A repetition of nothing beyond the least number would go on for ever.
        return this.#registers[register + 1] === at && /** @type {number} */ (this.#registers[register]) > now.min
          ? -1
          : now.to
      case isStart: return at === 0 ? index + 1 : -1
      case isEnd: return at === this.#text.length ? index + 1 : -1
      case isEdge: {
        const isAtEdge = isWord(this.#point(at, true)) !== isWord(this.#point(at, false))
        return isAtEdge !== now.isNegated ? index + 1 : -1
      }
      case look: return this.#look(now, index, at)
    }
    return index + 1
  }

  /** @param {Step} now @param {number} index @param {number} at */
  #loop ({ register, min, max, isLazy, to }, index, at) {
    const count = /** @type {number} */ (this.#registers[register])
    if (count < min) return index + 1
    if (count >= max) return to
    this.#stack.push(choice, isLazy ? index + 1 : to, at, 0)
    return isLazy ? to : index + 1
  }

  /**
   * What it looks for may set groups, and isn't tried another way.
   * @param {Step} now
   * @param {number} index
   * @param {number} at
   */
  #look ({ isNegated, to }, index, at) {
    const bottom = this.#stack.length
    if (!this.matches(index + 1, at)) return isNegated ? to : -1
    if (isNegated) {
      this.#undo(bottom)
      return -1
    }
    const stack = this.#stack
    let kept = bottom
    for (let entry = bottom; entry < stack.length; entry += 4) {
      if (stack[entry] !== old) continue
      stack.copyWithin(kept, entry, entry + 4)
      kept += 4
    }
    stack.length = kept
    return to
  }

  /**
   * Repeats one character.
   * @param {Step} now
   * @param {number} index
   * @param {number} at
   * @returns {number} where it goes on, or -1
   */
  #run ({ has, min, max, isLazy, isBack }, index, at) {
    let count = 0
    let least = at
    for (const most = isLazy ? min : max; count < most; count++) {
      if (count === min) least = at
      const point = this.#point(at, isBack)
      if (point === -1 || !has(point)) break
      at = this.#after(at, point, isBack)
    }
    if (count < min) return -1
    if (isLazy && max > min) this.#stack.push(longer, index, at, min)
    else if (!isLazy && count > min) this.#stack.push(shorter, index, at, least)
    return at
  }

  /**
   * A run with one character less, or one more.
   * @param {number} kind
   * @param {number} index the step
   * @param {number} at where the run ended
   * @param {number} more where the shortest one ends, or how many characters it has
   * @returns {[next: number, at: number]}
   */
  #another (kind, index, at, more) {
    const { has, max, isBack } = /** @type {Step} */ (this.#steps[index])
    const point = this.#point(at, kind === shorter ? !isBack : isBack)
    if (kind === longer && (point === -1 || !has(point))) return [-1, at]
    const end = this.#after(at, point, kind === shorter ? !isBack : isBack)
    const nextMore = kind === shorter ? more : more + 1
    if (kind === shorter ? end !== more : nextMore < max) this.#stack.push(kind, index, end, nextMore)
    return [index + 1, end]
  }

  /** @param {Step} now @param {number} at @returns {number} where it goes on, or -1 */
  #back ({ groups, isBack }, at) {
    for (const group of groups) {
      const [from, to] = /** @type {[number, number]} */ ([this.#registers[group], this.#registers[group + 1]])
      if (from === -1 || to === -1) continue
      const length = to - from
      const start = isBack ? at - length : at
      if (start < 0 || start + length > this.#text.length) return -1
      for (let offset = 0; offset < length; offset++) {
        if (this.#text.charCodeAt(start + offset) !== this.#text.charCodeAt(from + offset)) return -1
      }
      const end = isBack ? start : start + length
      // Half of a pair isn't the half that stands alone.
      return this.#isWithinPair(end) ? -1 : end
    }
    return at
  }
}

/**
 * @param {import('@eslint-community/regexpp').AST.Pattern} pattern
 * @returns {{ test: (text: string) => boolean }}
 * @throws {SyntaxError} for what can't be searched for here either
 */
export function backtracking (pattern) {
  const program = new Program(pattern)
  const isAnchored = pattern.alternatives.every(({ elements: [first] }) =>
    first?.type === 'Assertion' && first.kind === 'start')
  return {
    test (text) {
      const search = new Search(program, text)
      // Each attempt that fails undoes what it did.
      for (let at = 0; at <= text.length; at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1) {
        if (search.matches(0, at)) return true
        if (isAnchored) return false
      }
      return false
    }
  }
}
