import { RE2JS, RE2JSException } from 're2js'
import { cut } from './report.mjs'

/** @typedef {RE2JS} Pattern searched for in linear time, whatever it is */

const longestReason = 200

/**
 * @param {string} pattern
 * @returns {Pattern | string} or what RE2 says against it
 */
export function compilePattern (pattern) {
  try {
    return RE2JS.compile(pattern)
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    return cut(
      `must be a pattern in the syntax of RE2: ${error.message.replace('error parsing regexp: ', '')}`, longestReason
    )
  }
}
