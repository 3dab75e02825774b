/** Names of files: what may be one, wherever it is saved. */

const maxNameBytes = 255

/** @returns what is wrong with it, or undefined */
export function nameFault (name: string): string | undefined {
  if (name === '' || Buffer.byteLength(name) > maxNameBytes) return `must have 1 to ${maxNameBytes} bytes of UTF-8`
  if (name === '.' || name === '..') return 'must not be . or ..'
  if (/[/\\\p{Cc}]/u.test(name)) return 'must not have /, \\ or control characters'
  // Half of a surrogate pair has no UTF-8.
  return /\p{Cs}/u.test(name) ? 'must be Unicode' : undefined
}
