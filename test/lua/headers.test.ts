import { readFileSync, readdirSync } from 'node:fs'
import t from 'tap'
import { libraryOf, readLua, scriptNames } from '../../src/redis/scripts.ts'
import type { ScriptName } from '../../src/redis/outcomes.ts'
import type { EventTarget } from '../../src/redis/scripts.ts'
import { scriptFaults } from '../helpers/lua-header.ts'

const names = scriptNames()

t.test('the table of letters has every letter that a script uses', async t => {
  const [field, extra, sent] = [8, 46, 88]
  const rows = readLua('lib/record.lua').split('\n').filter(line => /^-- {3}\S {2}/.test(line))
  const inColumn = (column: number) => rows.filter(row => !['-', ''].includes(row.slice(column).split(/ {2}/)[0]!)).map(row => row[5]!)
  const texts = [...names.map(name => readLua(`${name}.lua`) + libraryOf(name, { events: 'outbox', isOneRedis: true })), readLua('lib/record.lua')]
  const code = texts.join('').split('\n').filter(line => !/^ *--/.test(line))
  const found = (lines: string[], letter: RegExp) => [...new Set([...lines.join('\n').matchAll(letter)].map(([, name]) => name!))].sort()
  const fields = found(code.filter(line => /'H[A-Z]+'|^local SET_ASIDE/.test(line)), /'([a-z])'/g)
  t.strictSame(fields.filter(letter => !inColumn(field).includes(letter)), [], 'as a field of the hash')
  const words = found(code, /' ([a-zA-Z?])(?:1?'|\(|%)/g)
  t.strictSame(words.filter(letter => !inColumn(extra).includes(letter) && !inColumn(sent).includes(letter)), [], 'as the beginning of a word')
  t.ok(fields.length >= 8 && words.length >= 12, 'and some were found', { fields, words })
})

t.test('no line of Lua has more than 120 columns', async t => {
  const root = new URL('../../lua/', import.meta.url)
  for (const file of readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.lua'))) {
    t.strictSame(readFileSync(new URL(file, root), 'utf8').split('\n').filter(line => [...line].length > 120), [], file)
  }
})

for (const name of names) t.strictSame(faultsOf(name, readLua(`${name}.lua`)), [], name)

/** With each library that events may have: what they write counts as well. */
function faultsOf (name: ScriptName, text: string): string[] {
  const targets: EventTarget[] = ['outbox', { feeds: 'prefix:e:', retention: 1 }]
  return [...new Set(targets.flatMap((events, at) => scriptFaults(name, text, libraryOf(name, { events, isOneRedis: at === 1 }))))]
}

/** Breaches of the rules that most changes touch: a script, what in it becomes what, and the sentence that must come of it. */
const breaches: Array<[script: ScriptName, from: string | RegExp, to: string, fault: RegExp]> = [
  ['catch', '-- pending -> caught.', '-- caught -> pending.', /must say pending -> caught/],
  ['catch', /--.*2 prefix.*due.*\n/, '', /KEYS\[2\] is used and not documented/],
  ['done', ':due:tenant', ':live:tenant', /key prefix:\{tag\}:live:tenant is none/],
  ['approve', "\nredis.call('HSET'", "\nredis.call('SPUBLISH', key, '')\nif not now then return { 'expired' } end\nredis.call('HSET'",
    /'expired'\} is returned after a write/],
  ['pass', "return { 'reused' }", "return { 'used' }", /\{'used'\} is returned and not documented/],
  ['pass', "call('HGET'", "call('HGETEX'", /HGETEX is no command/],
  ['catch', '= clock()', '= os.time()', /os\.time is no function/],
  ['status', ' flags=no-writes', '', /must be flagged no-writes/],
  ['done', '= clock()', '= 0', /ARGV\[1\] must be compared/],
]

t.test('the checker sees breaches', async t => {
  for (const [script, from, to, fault] of breaches) {
    const text = readLua(`${script}.lua`)
    const broken = text.replace(from, to)
    t.not(broken, text, `${script}: ${from} is there to be broken`)
    const faults = faultsOf(script, broken)
    t.ok(faults.some(sentence => fault.test(sentence)), `${script}: ${from} -> ${to}`, { faults, fault: String(fault) })
  }
})
