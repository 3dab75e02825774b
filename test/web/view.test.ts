import t from 'tap'
import { jsonView } from '../../src/web/json-view.ts'
import { Writing, isBeyondPage } from '../../src/web/views/content.ts'
import { beginningOf, expiresIn, fileSize, labelTags, visible, waitingFor } from '../../src/web/text.ts'

const entities: Record<string, string> = { '&#34;': '"', '&#38;': '&', '&#39;': "'", '&#60;': '<', '&#61;': '=', '&#62;': '>' }
/** The text that a browser would show, on one line. */
const textOf = (html: string) => html.replace(/<small>.*?<\/small>/g, '').replace(/<[^>]*>/g, '').replace(/&#\d+;/g, entity => entities[entity] ?? entity)
const withoutSpace = (json: string) => json.replace(/"(?:[^"\\]|\\.)*"|\s+/g, some => some.trim() === '' ? '' : some)

t.test('JSON is shown token by token as it was written', async t => {
  const texts = [
    '{}', '{ }', '{"a":[]}', '[]', '{"a":1.0,"b":1e400,"c":9007199254740993,"a":-0}', '{"__proto__":{"x":[1,[2,[{}]]]}}',
    '{"a":"<b>&amp;\\u202e\\"],}{\\\\"}', '{"":null,"b":true,"c":[false,"",{"d":" "}]}', `{"long":"${'x'.repeat(9000)}"}`.replace(/x{9000}/, 'y'.repeat(100)),
    `{"many":[${Array.from({ length: 3000 }, (_, n) => `{"n":${n}}`).join(', ')}]}`, `{"deep":${'['.repeat(90)}${']'.repeat(90)}}`,
  ]
  for (const json of texts) t.equal(withoutSpace(textOf(jsonView(json)).replaceAll(/": /g, '":')), withoutSpace(json), json.slice(0, 60))
})

t.test('large parts are folded, and a truncated text is marked', async t => {
  const many = `{"many":[${'1,'.repeat(5000)}1],"few":[1]}`
  t.match(jsonView(many), /<details open><summary>\{ <small>2 items, 10 KB<\/small>[^]*<details><summary><span class="name">&#34;many&#34;<\/span>: \[ <small>5,001 items/)
  t.match(jsonView(`{"few":[],"many":[${'{"n":1},'.repeat(8999)}{"n":1}],"more":3}`, { end: 50 }), /the first \d of 9,000 items/, 'says how many there are in all')
  t.match(jsonView(`{"few":[],"many":[${'{"n":1},'.repeat(8999)}{"n":1}],"more":3}`, { end: 50 }), /the first 2 of 3 items/)
  t.match(textOf(jsonView('{"a":[123…')), /123…+$/, 'a number that was cut is not shown as another number')
  t.match(textOf(jsonView('{"a":"12…')), /"12…+$/)
})

t.test('a string with line breaks is a block of the text that it stands for', async t => {
  const view = jsonView(JSON.stringify({ body: 'Dear Kim,\n\n"Yes" <b>\\n\u202e.\r\n', one: 'a\\nb' }))
  const [, block] = /<div class="text" dir="auto">([^]*?)<\/div>/.exec(view)!
  t.equal(textOf(block!), 'Dear Kim,\n\n"Yes" <b>\\n⟦U+202E⟧.\r\n', 'no escapes')
  t.match(textOf(view), '"one": "a\\\\nb"', 'one without is as it was written')
  t.match(textOf(jsonView('{"body":"one\\ntwo\\nthr…')), /two\nthr…/, 'cut in the middle')
  t.match(textOf(jsonView('{"body":"one\\ntwo\\u20…')), /two…/, 'or within an escape')
})

t.test('invisible characters are spelled out, and markup is escaped', async t => {
  for (const code of [0x202a, 0x202e, 0x2066, 0x2069, 0x200e, 0x200f, 0x61c, 0x200b, 0x200d, 0x2060, 0xfeff, 0, 0x1b, 0x7f, 0x85, 0xad, 0x3164, 0xe0041, 0xe0101, 0xd800, 0xdc00, 0x2028]) {
    const shown = visible(`a${String.fromCodePoint(code)}b`)
    t.match(shown, `⟦U+${code.toString(16).toUpperCase().padStart(4, '0')}⟧`)
    t.notOk(shown.includes(String.fromCodePoint(code)), `U+${code.toString(16)} itself is gone`)
  }
  t.match(visible('\u202e'), 'title="RIGHT-TO-LEFT OVERRIDE"')
  t.match(textOf(visible(`a${'\u200b'.repeat(3000)}b`)), 'a⟦U+200B × 3,000⟧b', 'many of one are counted')
  t.match(visible('a\rb'), '⟦U+000D⟧', 'nothing is written over')
  t.equal(visible('line\nbreak\ttab é 漢 😀 ❤️ עברית'), 'line\nbreak\ttab é 漢 😀 ❤️ עברית')
  t.equal(visible('<img src=x onerror="a(\'&\')">'), '&#60;img src&#61;x onerror&#61;&#34;a(&#39;&#38;&#39;)&#34;&#62;')
})

t.test('labels are shown one by one', async t => {
  t.equal(textOf(labelTags(['run:42', 'a:b:c/@'])).trim(), 'run:42 a:b:c/@')
})

t.test('the beginning of a text fits the page whatever its characters', async t => {
  t.equal(beginningOf('short', 100), 'short')
  t.equal(beginningOf('x'.repeat(101), 100).length, 100)
  t.equal(beginningOf('x'.repeat(99) + '😀', 100), 'x'.repeat(99), 'no half of a pair')
  t.ok(visible(beginningOf('a\u200b'.repeat(500_000), 20_000)).length < 200_000)
})

t.test('times are shown in words', async t => {
  const [s, min, h, d] = [1000, 60_000, 3_600_000, 86_400_000]
  const words = (told: string) => told.replace(/<[^>]*>/g, '')
  const expires = (left: number) => words(expiresIn(left, 0))
  const waits = (passed: number) => words(waitingFor(0, passed))
  // Remaining time is rounded to the nearest.
  for (const [left, said] of [
    [1, '1 s'], [499, '1 s'], [1500, '2 s'], [59.4 * s, '59 s'], [59.6 * s, '1 min'], [60 * s, '1 min'], [89 * s, '1 min'], [91 * s, '2 min'], [59.4 * min, '59 min'],
    [59.6 * min, '1 h'], [h - 1, '1 h'], [h, '1 h'], [23.4 * h, '23 h'], [23.6 * h, '24 h'], [d - s, '24 h'], [d, '24 h'], [47 * h, '47 h'], [47.6 * h, '2 d'], [2 * d, '2 d'],
    [2.4 * d, '2 d'], [30 * d - s, '30 d'],
  ] as const) t.equal(expires(left), `expires in ${said}`, String(left))
  t.strictSame([0, -1, -d].map(expires), ['expired', 'expired', 'expired'])
  // Elapsed time is rounded down, like a person's age.
  for (const [passed, said] of [
    [0, '0 s'], [-5, '0 s'], [-d, '0 s'], [999, '0 s'], [59.6 * s, '59 s'], [min, '1 min'], [59.6 * min, '59 min'], [h, '1 h'], [23.6 * h, '23 h'], [d, '24 h'], [47.9 * h, '47 h'], [2 * d, '2 d'],
    [3 * d - 1, '2 d'],
  ] as const) t.equal(waits(passed), `waiting for ${said}`, String(passed))
})

t.test('how large a file is, in thousands', async t => {
  const sizes: Array<[number, string]> = [
    [0, '0 bytes'], [1, '1 byte'], [812, '812 bytes'], [999, '999 bytes'], [1000, '1 KB'], [1400, '1.4 KB'], [9949, '9.9 KB'], [9950, '10 KB'], [48_213, '48 KB'],
    [999_499, '999 KB'], [999_500, '1 MB'], [1_400_000, '1.4 MB'], [1_073_741_824, '1.1 GB'], [5e12, '5 TB'], [2 ** 53 - 1, '9,007 TB']
  ]
  for (const [bytes, shown] of sizes) t.equal(fileSize(bytes), shown)
})

t.test('a page shows as many bytes of a text as of what was passed it says, and says so only of what it leaves out', async t => {
  const kilobytes = 1024
  const payload = (task: string) => ({ payload: Buffer.from(`"task":${JSON.stringify(task)},"output":{},"context":{},"constraints":null`) })
  for (const [name, one, fits] of [['plain', 'a', 256 * kilobytes], ['two bytes each', 'ع', 128 * kilobytes], ['escaped', '"', 256 * kilobytes]] as const) {
    const shown = (count: number) => textOf(new Writing('alice').text(one.repeat(count)))
    t.notOk(isBeyondPage(payload(one.repeat(fits))), name)
    t.equal(shown(fits).length, fits, name)
    t.ok(isBeyondPage(payload(one.repeat(fits + 1))), name)
    t.match(shown(fits + 1).slice(fits), /^This is only the beginning: 1 character more/, name)
  }
  t.equal(textOf(new Writing('alice').text(`a${'𝄞'.repeat(64 * kilobytes)}`)).replace(/This is.*/, '').length, 2 * 64 * kilobytes - 1, 'no half of a character')
})
