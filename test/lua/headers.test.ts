import { readFileSync, readdirSync } from 'node:fs'
import t from 'tap'
import { expand, readLua } from '../../src/redis/expand.ts'
import type { ScriptName } from '../../src/redis/outcomes.ts'
import { purposeOf, scriptNames } from '../../src/redis/scripts.ts'
import { partsOf, scriptFaults } from '../helpers/lua-header.ts'

const names = scriptNames()
const lifetimes = { workTtl: 1, retention: 1 }
const purposes = [purposeOf('outbox', lifetimes, false), purposeOf({ feeds: 'prefix:e:', retention: 1 }, lifetimes, true)]

t.test('the table of letters has every letter that a script uses', async t => {
  const [field, extra, sent] = [8, 46, 88]
  const rows = readLua('lib/record.lua').split('\n').filter(line => /^-- {3}\S {2}/.test(line))
  const inColumn = (column: number) => rows.filter(row => !['-', ''].includes(row.slice(column).split(/ {2}/)[0]!)).map(row => row[5]!)
  const texts = [...names.flatMap(name => Object.values(partsOf(name, purposes[0]!))), expand('lib/record.lua', purposes[0]!)]
  const code = texts.join('').split('\n')
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
  return [...new Set(purposes.flatMap(purpose => scriptFaults(name, text, purpose)))]
}

/** Breaches of the rules that most changes touch: a script, what in it becomes what, and the sentence that must come of it. */
const breaches: Array<[script: ScriptName, from: string | RegExp, to: string, fault: RegExp]> = [
  ['catch', '-- pending -> caught.', '-- caught -> pending.', /must say pending -> caught/],
  ['catch', / {2}2 prefix.*due.*/, '', /KEYS\[2\] is used and not documented/],
  ['done', ':due:tenant', ':live:tenant', /key prefix:\{tag\}:live:tenant is none/],
  ['decide', "\nredis.call('HSET'", "\nredis.call('SPUBLISH', key, '')\nif not now then return { 'expired' } end\nredis.call('HSET'",
    /'expired'\} is returned after a write/],
  ['pass', "return { 'reused' }", "return { 'used' }", /\{'used'\} is returned and not documented/],
  ['pass', "call('HGET'", "call('HGETEX'", /HGETEX is no command/],
  ['catch', '--@include late', '--@include late\nos.time()', /os\.time is no function/],
  ['status', ' flags=no-writes', '', /must be flagged no-writes/],
  ['done', '--@include late', 'local now = 0', /ARGV\[1\] must be compared/],
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

t.test('a directive that says nothing is refused, with its place', t => {
  const fault = (text: string) => { try { return expand('x.lua', purposes[0]!, undefined, text) } catch (error) { return (error as Error).message } }
  t.equal(fault('#!lua\n-- why\n--@if events\na()\n  --@if several\nb()\n  --@else\nc()\n  --@end\n--@else\nd()\n--@end\n--@constant WORK_TTL RETENTION\n'),
    '#!lua\na()\nc()\nlocal WORK_TTL, RETENTION = 1, 1\n', 'those that say something')
  for (const [text, message] of [
    ['#!lua\n--@include no-such\n', 'lua/x.lua:2: no lib/no-such.lua'], ['#!lua\n--@uses here\n', 'lua/x.lua:2: --@uses is no directive'],
    ['--@if cluster\n--@end\n', 'lua/x.lua:1: cluster is no condition'], ['--@if events\n\n', 'lua/x.lua:1: this --@if has no --@end'],
    ['a()\n--@end\n', 'lua/x.lua:2: there is no --@if for this --@end'], ['--@if full\n--@else\n--@else\n--@end', 'lua/x.lua:3: there is no --@if for this --@else'],
    ['--@constant FEEDS\n', 'lua/x.lua:1: FEEDS is no constant'],
  ] as const) t.equal(fault(text), message)
  t.end()
})
