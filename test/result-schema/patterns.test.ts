/** Patterns mean what they do in ECMA-262, with the flag u. */
import fc from 'fast-check'
import t from 'tap'
import { compile } from '../../src/result-schema/worker/patterns.mjs'
import { isWhole } from '../helpers/extent.ts'

/** Not \B, which V8 finds within a surrogate pair; ECMA-262 doesn't look there. */
const part = fc.constantFrom('a', 'b', '.', '\\d', '\\D', '\\w', '\\W', '\\s', '\\S', '[ab]', '[^ab]', '[]', '[^]', '[\\s\\d]', '[^\\S]', '[\\S]', '[\\w-]', '\\u0041', '\\u{1F600}', '😀', '\\ud83d\\ude00',
  '\\/', '\\.', '\\p{L}', '\\P{L}', '\\p{Lu}', '[\\P{Lu}]', '[^\\p{Letter}]', '\\p{Script=Greek}', '\\p{Alphabetic}', '\\p{Nd}', '\\p{punct}', '\\b', '^', '$', '\\n', '\\v', '\\0', '\\cJ', '\\x41', '[\\b]', '\\t', '-', ',',
  '[a-f\\-]', '\\u2028', '[\\u0430-\\u044f]', '\\$')
const { pattern } = fc.letrec<{ pattern: string }>(tie => {
  const two = fc.tuple(tie('pattern'), tie('pattern'))
  return {
    pattern: fc.oneof({ maxDepth: 4 }, part, two.map(both => both.join('')), two.map(both => `(?:${both.join('|')})`),
      fc.tuple(tie('pattern'), fc.constantFrom('*', '+', '?', '{2}', '{0,2}', '{1,}', '*?', '{0}')).map(([one, times]) => `(${one})${times}`)),
  }
})
const text = fc.array(fc.constantFrom('a', 'b', 'A', ' ', '\n', '\r', '\u2028', '\u00a0', '\ufeff', '\u1680', '\u0085', '1', '٣', '_', '-', '😀', '\ud83d', '\ude00', 'é', 'Σ', 'я', '.', '/', '\0', '\v', '\b', '\t', ',', '$', 'ǅ', '漢'),
  { maxLength: 6 }).map(characters => characters.join(''))

t.test('random patterns find in random texts what JavaScript finds', async t => {
  let found = 0
  fc.assert(fc.property(pattern, fc.array(text, { minLength: 5, maxLength: 10 }), (source, texts) => {
    const own = compile(source)
    const reference = new RegExp(source, 'u')
    for (const one of texts) {
      if (reference.test(one)) found++
      if (own.test(one) !== reference.test(one)) throw new Error(`${source} in ${JSON.stringify(one)}`)
    }
  }), { numRuns: isWhole ? 5_000 : 1_000 })
  t.ok(found > 1_000, `${found} found`)
})

/** What RE2 doesn't have. A reference is within one of the two groups that are always there. */
const beyond = fc.letrec<{ one: string }>(tie => {
  const two = fc.tuple(tie('one'), tie('one'))
  return {
    one: fc.oneof({ maxDepth: 4 }, fc.oneof(part, fc.constantFrom('\\1', '\\2', '\\k<n>', '[\\p{L}\\d_-]', '\\p{scx=Grek}', '\\p{Emoji}')), two.map(both => both.join('')), two.map(both => `(?:${both.join('|')})`),
      fc.tuple(fc.constantFrom('(?=', '(?!', '(?<=', '(?<!', '(', '(?:'), tie('one')).map(([open, inner]) => `${open}${inner})`),
      fc.tuple(tie('one'), fc.constantFrom('*', '+', '?', '{2}', '{1,2}', '{0,2}', '{1,}', '*?', '+?', '??', '{1,3}?', '{0}')).map(([inner, times]) => `(${inner})${times}`),
      fc.tuple(part.filter(one => !['^', '$', '\\b'].includes(one)), fc.constantFrom('*', '+', '{2}', '*?', '{1,2}?', '{2,3}')).map(([inner, times]) => `${inner}${times}`)),
  }
}).one.chain(inner => fc.tuple(fc.constantFrom('^', ''), fc.constantFrom('(?<n>', '(?:(?<n>'), part, fc.constantFrom('(?=', '(?!', '(?<=', '(?<!'), fc.constant(inner))
  .map(([start, open, first, look, inner]) => `${start}${open}${first})${open.startsWith('(?:') ? '|)' : ''}(b?)${look}${inner})${inner}`))

/** Where V8 finds something within a surrogate pair, in which ECMA-262 doesn't look. */
const isWithinPair = (at: number, text: string) => /^[\ud800-\udbff][\udc00-\udfff]/.test(text.slice(Math.max(0, at - 1)))

t.test('looking around and references back find what JavaScript finds', async t => {
  let found = 0
  fc.assert(fc.property(beyond, fc.array(text, { minLength: 5, maxLength: 10 }), (source, texts) => {
    const own = compile(source)
    const reference = new RegExp(source, 'u')
    for (const one of texts) {
      const at = reference.exec(one)?.index
      if (at !== undefined && at > 0 && isWithinPair(at, one)) continue
      if (at !== undefined) found++
      if (own.test(one) !== (at !== undefined)) throw new Error(`${source} in ${JSON.stringify(one)}`)
    }
  }), { numRuns: isWhole ? 5_000 : 1_000 })
  t.ok(found > 1_000, `${found} found`)
})

t.test('patterns as libraries write them', async t => {
  const decimal = '^(?!^[-+.]*$)[+-]?0*(?:\\d{0,8}|(?=[\\d.]{1,11}0*$)\\d{0,8}\\.\\d{0,2}0*$)'
  const email = "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$"
  for (const [pattern, texts] of [
    [decimal, ['12.5', '-0012.50', '.', '+', '1234567890.123', '']],
    [email, ['a@b.org', '.a@b.org', 'a..b@c.org', 'a.b+c@d-e.f.org', 'a@b', "o'b@c.de"]],
    ['^(?=.*[A-Z])(?=.*\\d)(?!.*(.)\\1\\1).{8,}$', ['Passw0rd', 'password', 'Passsw0rd', 'aB3']],
    ['a{1001}', ['a'.repeat(1000), 'a'.repeat(1001)]], ['^(?:ab){2,2000}(?<!b)$', ['abab', 'aba']],
    ['(?<![\\s\\S])x', ['xa', 'ax']], ['(?<=\\1(a))b', ['aab', 'ab']], ['(?:(a)|b)*\\1$', ['ab', 'aba', 'b']],
    // A half that stands alone isn't that of a pair.
    ['^(.)\\1', ['\ud83d😀', '\ud83d\ud83d😀', '😀😀']], ['(?<=\\1(.))$', ['😀\ude00', '😀\ude00\ude00', 'aa']],
  ] as const) {
    for (const one of texts) t.equal(compile(pattern).test(one), new RegExp(pattern, 'u').test(one), `${pattern} in ${one.slice(0, 20)}`)
  }
  const long = `${'word 😀 '.repeat(60_000)}secret`
  t.notOk(compile('^(?!.*secret)[^]*$').test(long), 'in a long text too')
  t.ok(compile('^(?![^]*secrets)(?:[^]|x)*(?<=t)$').test(long.slice(-60_000)))
})

t.test('the general categories have long names too', async t => {
  for (const [long, short] of [['Letter', 'L'], ['Uppercase_Letter', 'Lu'], ['digit', 'Nd'], ['Punctuation', 'P'], ['cntrl', 'Cc'], ['Unassigned', 'Cn']] as const) {
    const reference = new RegExp(`\\p{${long}}`, 'u')
    for (let point = 0; point < 0x3000; point += 7) {
      const character = String.fromCodePoint(point)
      if (compile(`\\p{${long}}`).test(character) !== reference.test(character)) t.fail(`${long}: ${point}`)
    }
    t.ok(compile(`\\p{gc=${short}}`))
  }
})
