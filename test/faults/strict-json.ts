/**
 * An independent definition, without the service's code, of the bodies that it must accept and what it must answer: JSON.parse on the
 * strictly decoded text, plus the contract's further rules.
 */

const tokens = /"(?:[^"\\]+|\\[^])*"|[{}[\],:]|[^\s"{}[\],:]+/g
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const maxDepth = 100
const maxExpiresIn = 30 * 86400

export interface Strict {
  values: Record<string, unknown>
  /** Each member's JSON text, without insignificant white space. */
  texts: Map<string, string>
}

/** JSON text without insignificant white space. @param text valid JSON */
export function packed (text: string): string {
  return (text.match(tokens) ?? []).join('')
}

/** @returns a body's members, or why it is invalid */
export function readStrictly (body: Buffer): Strict | string {
  let values: unknown
  let text: string
  try {
    text = decoder.decode(body)
    values = JSON.parse(text)
  } catch (error) {
    return (error as Error).message
  }
  if (typeof values !== 'object' || values === null || Array.isArray(values)) return 'not an object'
  const texts = new Map<string, string>()
  let [depth, name, start] = [0, null as string | null, false]
  for (const [token] of text.matchAll(tokens)) {
    if (token === '}' || token === ']') depth--
    if (depth === 1 && token === ',') [name, start] = [null, true]
    else if (depth === 1 && start) {
      name = JSON.parse(token) as string
      if (texts.has(name)) return `${name} twice`
      texts.set(name, '')
      start = false
    } else if (depth >= 1 && name !== null && (texts.get(name) !== '' || token !== ':')) texts.set(name, texts.get(name) + token)
    if (token === '{' || token === '[') {
      if (++depth > maxDepth) return 'too deep'
      if (depth === 1) start = true
    }
  }
  return { values: values as Record<string, unknown>, texts }
}

type Rule = (value: unknown) => boolean
const isObject: Rule = value => typeof value === 'object' && !Array.isArray(value)

const passRules: Record<string, Rule> = {
  task: value => typeof value === 'string' && value !== '',
  output: isObject,
  context: isObject,
  constraints: value => value === null || typeof value === 'string',
  require_human: value => value === null || typeof value === 'boolean',
  expires_in: value => value === null || (Number.isInteger(value) && value as number >= 1 && value as number <= maxExpiresIn),
}
const doneRules: Record<string, Rule> = { output: isObject }

/** @returns the members of a body of POST /api/pass, or why it must be refused */
export function readPass (body: Buffer): Strict | string {
  const read = held(readStrictly(body), passRules)
  return typeof read === 'string' || read.texts.has('task') ? read : 'no task'
}

/** @returns the members of a body of POST /api/done, or why it must be refused; an empty body has none */
export function readDone (body: Buffer): Strict | string {
  return body.length === 0 ? { values: {}, texts: new Map() } : held(readStrictly(body), doneRules)
}

function held (read: Strict | string, rules: Record<string, Rule>): Strict | string {
  if (typeof read === 'string') return read
  for (const name of read.texts.keys()) {
    // Own members only: toString must not count as a rule.
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined
    if (rule === undefined) return `${name} unknown`
    if (!rule(read.values[name])) return `${name} wrong`
  }
  return read
}
