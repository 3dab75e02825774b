import { Random } from './random.ts'

/** Bodies for pass and done, by a grammar of awkward JSON and by damage to its bytes. The same seed and number give the same body. */

export type Operation = 'pass' | 'done'
export interface FuzzBody { operation: Operation, bytes: Buffer }

const numbers = ['0', '-0', '1.0', '1e400', '-1E-400', '9007199254740993', '123456789012345678901234567890', '0.1e+1', '1e0', '2E3', '5e-1',
  '1' + '0'.repeat(400), '-9223372036854775809', '3.0000000000000000000001']
const notNumbers = ['01', '+1', '.5', '1.', '1e', '-', '0x10', 'NaN', 'Infinity', '1_000', '--1', '1e+']
const words = ['true', 'false', 'null']
const notWords = ['True', 'nul', 'undefined', 'truee', 'nan', '/**/null']
const strings = ['""', '"a"', '"\\u0000"', '"\\ud800"', '"\\udfff\\ud800"', '"\\ud83d\\ude00"', '"😀 漢字 é"', '"\u2028\u2029\u202e\ufeff"', '"\\/\\b\\f\\n\\r\\t\\"\\\\"',
  '"\\u005c\\u0022"', '"\x7f"', '"{[:,]}"', '"\\\\\\\\"', '"\\u00E9"', '"e\u0301"', '"</script>"']
const notStrings = ['"', '"\\"', "'a'", '"\\x41"', '"\\u12g4"', '"\\u12"', '"\n"', '"\t"', '"\u0000"', '"\\', '"\\U0041"', '"\u001f"']
const names = ['"a"', '"__proto__"', '"constructor"', '"toString"', '""', '"10"', '"9"', '"a"', '"\\u0061"', '"\\ud800"', '"task"', '"é"', '"a/b~c"', '"hasOwnProperty"']
const unknownMembers = ['"Task"', '"requireHuman"', '"__proto__"', '"constructor"', '""', '"task "', '"valueOf"', '"id"', '"\\u0000"', '"tenant"']
const spaces = ['', '', '', '', '', ' ', '\n', '\t', '\r\n', '  \t ']
const notSpaces = ['\u00a0', '\u000b', '\u000c', '\ufeff', '\u2028', '//x\n', '\u0000', '\u3000']

export function fuzzBody (seed: number, number: number): FuzzBody {
  const random = new Random(Math.imul(seed, 0x9E3779B1) ^ Math.imul(number + 1, 0x85EBCA6B))
  const operation = random.chance(0.75) ? 'pass' : 'done'
  // Half of the bodies to damage are valid: an invalid one would be refused whatever the damage does.
  const grammar = new Grammar(random, random.chance(0.5) ? 0 : 0.02)
  const text = operation === 'pass' ? grammar.pass() : grammar.done()
  const bytes = Buffer.from(text)
  return { operation, bytes: random.chance(0.4) ? damaged(random, bytes) : bytes }
}

class Grammar {
  readonly #random: Random
  /** The probability of a fault in each part. */
  readonly #fault: number

  constructor (random: Random, fault: number) {
    this.#random = random
    this.#fault = fault
  }

  pass (): string {
    const random = this.#random
    const members = [this.#member('"task"', random.chance(0.8) ? () => this.#string() : () => '"t"')]
    for (const name of ['"output"', '"context"']) {
      if (random.chance(0.6)) members.push(this.#member(name, () => random.chance(0.05) ? 'null' : this.#object(2)))
    }
    if (random.chance(0.3)) members.push(this.#member('"constraints"', () => random.chance(0.1) ? 'null' : this.#string()))
    if (random.chance(0.1)) members.push(this.#member('"require_human"', () => random.pick(words)))
    if (random.chance(0.1)) members.push(this.#member('"expires_in"', () => random.pick(['60', '3600', '1e3', '600.0', '2592000', 'null', this.#wrong ? '0' : '90'])))
    return this.#body(members)
  }

  done (): string {
    return this.#body(this.#random.chance(0.9) ? [this.#member('"output"', () => this.#object(2))] : [])
  }

  #body (members: string[]): string {
    const random = this.#random
    if (this.#wrong) members.push(`${random.pick(unknownMembers)}:${this.#value(3)}`)
    if (this.#wrong && members.length > 0) members.push(random.pick(members))
    for (let index = members.length; index > 1;) {
      const other = random.between(0, --index);
      [members[index], members[other]] = [members[other]!, members[index]!]
    }
    return `${this.#space()}{${members.join(',')}${this.#wrong ? ',' : ''}${this.#space()}}${this.#space()}${this.#wrong ? random.pick(['x', '}', '{}', ',', '\u0000']) : ''}`
  }

  #member (name: string, value: () => string): string {
    // A name may be written with escapes and is the same name.
    const written = this.#random.chance(0.03) ? name.replace(/[a-z]/, letter => `\\u00${letter.charCodeAt(0).toString(16)}`) : name
    return `${this.#space()}${written}${this.#space()}:${this.#space()}${this.#wrong ? this.#value(3) : value()}${this.#space()}`
  }

  #value (depth: number): string {
    const random = this.#random
    if (this.#wrong) return random.pick([...notNumbers, ...notWords, ...notStrings])
    const kind = random.between(0, depth > 8 ? 2 : 4)
    if (kind === 0) return random.pick(numbers)
    if (kind === 1) return random.pick(words)
    if (kind === 2) return this.#string()
    return kind === 3 ? this.#object(depth + 1) : `[${this.#list(() => this.#value(depth + 1))}${this.#wrong ? '}' : ']'}`
  }

  #object (depth: number): string {
    if (this.#random.chance(0.01)) return this.#deep()
    return `{${this.#list(() => `${this.#random.pick(names)}${this.#space()}:${this.#space()}${this.#value(depth)}`)}${this.#wrong ? ']' : '}'}`
  }

  /** At the limit of depth, one level to either side of it, or far beyond. */
  #deep (): string {
    const levels = this.#random.chance(0.1) ? 5000 : this.#random.between(97, 101)
    return `{"a":${'['.repeat(levels - 1)}${this.#space()}${']'.repeat(levels - 1)}}`
  }

  #list (item: () => string): string {
    const count = this.#random.pick([0, 1, 1, 2, 3, this.#random.chance(0.01) ? 60 : 2])
    return this.#space() + Array.from({ length: count }, () => item() + this.#space()).join(this.#wrong ? '' : ',')
  }

  #string (): string {
    if (this.#wrong) return this.#random.pick(notStrings)
    return this.#random.chance(0.005) ? `"${'x\\"é'.repeat(this.#random.between(1, 8000))}"` : this.#random.pick(strings)
  }

  #space (): string {
    return this.#wrong && this.#random.chance(0.3) ? this.#random.pick(notSpaces) : this.#random.pick(spaces)
  }

  get #wrong (): boolean {
    return this.#random.chance(this.#fault)
  }
}

const pieces = ['\ufeff', '\u0000', '"', '\\', '{', '}', '[', ']', ',', ':', '"task":"t"', '"output":{}', '/**/', '\\u', '1e999'].map(text => Buffer.from(text))
/** Invalid UTF-8: a lone byte, a cut sequence, an overlong form, a surrogate, beyond the last character. */
const notUtf8 = [[0xff], [0x80], [0xc3], [0xe2, 0x82], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xf8, 0x88, 0x80, 0x80, 0x80]].map(bytes => Buffer.from(bytes))

/** One to four mutations of the bytes of a body. */
function damaged (random: Random, bytes: Buffer): Buffer {
  let body = Buffer.from(bytes)
  for (let blows = random.pick([1, 1, 1, 2, 4]); blows > 0; blows--) {
    const at = random.between(0, Math.max(0, body.length - 1))
    const put = (piece: Uint8Array, skip = 0) => Buffer.concat([body.subarray(0, at), piece, body.subarray(at + skip)])
    switch (random.between(0, 8)) {
      case 0: if (body.length > 0) body[at] = body[at]! ^ (1 << random.between(0, 7)); break
      case 1: if (body.length > 0) body[at] = random.between(0, 255); break
      case 2: body = put(Buffer.from([random.between(0, 255)])); break
      case 3: body = put(Buffer.alloc(0), random.between(1, 4)); break
      case 4: body = body.subarray(0, at); break
      case 5: body = put(random.pick(pieces)); break
      case 6: body = put(random.pick(notUtf8)); break
      case 7: body = put(body.subarray(random.between(0, at), at)); break
      case 8: body = Buffer.concat([random.pick([...notUtf8, ...pieces]), body]); break
    }
  }
  return body
}
