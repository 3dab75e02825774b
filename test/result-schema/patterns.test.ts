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
