/** Lua's patterns as regular expressions, on texts of which each character is a byte. */

const classes: Record<string, string> = { a: 'A-Za-z', d: '0-9', l: 'a-z', s: ' \\t\\n\\v\\f\\r', u: 'A-Z', w: 'A-Za-z0-9', x: '0-9A-Fa-f' }
const known = new Map<string, RegExp>()

/** @throws if the pattern has what only Lua's patterns have */
export function patternOf (pattern: string): RegExp {
  let found = known.get(pattern)
  if (found === undefined) known.set(pattern, found = new RegExp(translate(pattern), 'g'))
  found.lastIndex = 0
  return found
}

function translate (pattern: string): string {
  let text = ''
  for (let at = 0; at < pattern.length; at++) {
    const one = pattern.charAt(at)
    const next = pattern.charAt(at + 1)
    if (one === '%') {
      at++
      text += classOf(next)
    } else if (one === '[') {
      const end = endOfSet(pattern, at)
      text += `[${setOf(pattern.slice(at + 1, end))}]`
      at = end
    } else if (one === '.') {
      text += '[^]'
    } else if (one === '-') {
      text += '*?'
    } else if (one === '^' && at > 0) {
      text += '\\^'
    } else if (one === '$' && at < pattern.length - 1) {
      text += '\\$'
    } else {
      text += '\\/{}|'.includes(one) ? `\\${one}` : one
    }
  }
  return text
}

function classOf (letter: string): string {
  const members = classes[letter.toLowerCase()]
  if (members === undefined) {
    if (/[a-z0-9]/i.test(letter)) throw new Error(`a pattern with %${letter}`)
    return `\\${letter}`
  }
  return letter in classes ? `[${members}]` : `[^${members}]`
}

function endOfSet (pattern: string, from: number): number {
  let at = from + (pattern.charAt(from + 1) === '^' ? 2 : 1)
  do at += pattern.charAt(at) === '%' ? 2 : 1; while (pattern.charAt(at) !== ']')
  return at
}

function setOf (set: string): string {
  return set.replace(/%(.)|[\\[\]]/g, (found, letter: string | undefined) => letter === undefined ? `\\${found}` : classes[letter] ?? `\\${letter}`)
}
