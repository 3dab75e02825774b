import t from 'tap'
import { excerpt, excerptBytes, titleBytes, titleText } from '../../src/handoffs/lists/excerpt.ts'

/** The part of a task that the list keeps (lua/pass.lua closes the string), and what it shows of that. */
function through (json: string): { kept: Buffer, text: string, truncated: boolean } {
  const task = Buffer.from(json)
  const kept = Buffer.concat([task.subarray(0, excerptBytes(task)), Buffer.from('"')])
  return { kept, ...excerpt(kept) }
}

/** Single characters in all notations of JSON. */
const characters = ['a', ' ', '/', 'ä', 'ก', '汉', '𝄞', '\u2028', '\\"', '\\\\', '\\/', '\\n', '\\u0041', '\\u00e4', '\\u6c49', '\\ud834\\udd1e', '\\uD834\\uDD1E', '\\ud834', '\\udd1e', '\\u005c']

t.test('a task is cut after its thousandth character, whatever the characters are', async t => {
  for (const last of characters) {
    for (const next of characters) {
      // Two adjacent halves of a surrogate pair are one character.
      if (/^\\ud834$/i.test(last) && /^\\udd1e$/i.test(next)) continue
      const name = `${last} and ${next}`
      const [short, whole, long, longer] = [998, 999, 1000, 1001].map(count => 'x'.repeat(count - 1) + last) as [string, string, string, string]
      for (const text of [short, whole]) {
        const json = `"${text}${next}"`
        const { kept, text: shown, truncated } = through(json)
        if (kept.toString() !== json || shown !== json || truncated) t.fail(`${name}: not whole`)
      }
      const { kept, text, truncated } = through(`"${long}${next}${'y'.repeat(3)}"`)
      if (text !== `"${long}"` || !truncated) t.fail(`${name}: ${text.slice(-20)}`)
      if (kept.toString() !== `"${long}${next}"`) t.fail(`${name}: kept ${kept.toString().slice(-20)}`)
      if (through(`"${longer}${next}"`).text !== `"${'x'.repeat(1000)}"`) t.fail(`${name}: over by two`)
      JSON.parse(text)
      JSON.parse(kept.toString())
    }
  }
  t.pass(`${characters.length ** 2} ends`)
})

t.test('a task of 1,000 characters is whole, and a longer one is cut, whatever the characters are', async t => {
  for (const one of characters) {
    // Adjacent halves would form a pair.
    const many = (count: number) => `"${one.repeat(count)}"`
    const { text, truncated, kept } = through(many(1000))
    t.strictSame([text, truncated, kept.toString()], [many(1000), false, many(1000)], one)
    t.strictSame(through(many(1001)), { kept: Buffer.from(many(1001)), text: many(1000), truncated: true })
    t.strictSame(through(many(5000)), { kept: Buffer.from(many(1001)), text: many(1000), truncated: true })
    t.ok(kept.length <= 12_014)
  }
})

t.test('a task that was cut by bytes, without its end, gives the same excerpt', async t => {
  for (const one of ['a', '𝄞', '\\ud834\\udd1e', '\\u0041']) {
    const task = Buffer.from(`"${one.repeat(200_000)}"`)
    for (let bytes = 12_288; bytes < 12_300; bytes++) t.strictSame(excerpt(task.subarray(0, bytes)), { text: `"${one.repeat(1000)}"`, truncated: true }, `${one}, ${bytes}`)
  }
})

t.test('a title is the first line, however its end and the blanks before it are written', async t => {
  const title = (json: string) => titleText(Buffer.from(json).subarray(0, titleBytes(Buffer.from(json))))
  for (const end of ['\\n', '\\r\\n', '\\u000a', '\\u000A', '\\u000d\\u000a']) {
    t.equal(title(`"one${end}two"`), '"one"', end)
    t.equal(title(`"${end}\\u0009 ${end}one\\u00e4${end}two"`), '"one\\u00e4"', end)
  }
  t.equal(title(`"${'\\u000a'.repeat(100)}one"`), '"one"')
  t.equal(title('"a\\\\n\\u0041\\u00a0b"'), '"a\\\\n\\u0041\\u00a0b"', 'these are none')
})
