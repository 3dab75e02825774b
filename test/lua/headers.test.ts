import { readdirSync } from 'node:fs'
import t from 'tap'
import { libraryOf, loadScripts, luaDirectory, readLua } from '../../src/redis/scripts.ts'
import type { EventTarget, ScriptName } from '../../src/redis/scripts.ts'
import { scriptFaults } from '../helpers/lua-header.ts'

const names = readdirSync(luaDirectory).filter(name => name.endsWith('.lua')).map(name => name.slice(0, -4))

t.strictSame(names.sort(), Object.keys(loadScripts()).sort(), 'every script in lua/ is loaded')

for (const name of names) t.strictSame(faultsOf(name, readLua(`${name}.lua`)), [], name)

/** With each library that events may have: what they write counts as well. */
function faultsOf (name: string, text: string): string[] {
  const targets: EventTarget[] = ['outbox', { feeds: 'prefix:e:', retention: 1 }]
  return [...new Set(targets.flatMap(target => scriptFaults(name, text, libraryOf(name as ScriptName, target))))]
}

/** A breach of each rule: a script, what in it becomes what, and the sentence that must come of it. */
const breaches: Array<[script: string, from: string | RegExp, to: string, fault: RegExp]> = [
  ['pass', '#!lua\n', '', /first line/],
  ['pass', '-- (none) -> pending.\n', '', /what the script is for/],
  ['catch', '-- pending -> caught.', '-- caught -> pending.', /must say pending -> caught/],
  ['lease', /-- KEYS: .*\n/, '', /KEYS, ARGV and Replies/],

  ['catch', /--.*2 prefix.*due.*\n/, '', /KEYS\[2\] is used and not documented/],
  ['catch', 'key, due, words, inboxes = redis.call, KEYS[1], KEYS[2]', 'key, due, words, inboxes = redis.call, KEYS[1], KEYS[1]', /KEYS\[2\] is documented and not used/],
  ['catch', 'KEYS[1], KEYS[2]', 'unpack(KEYS)', /KEYS is used otherwise/],
  ['pass', '--       3 prefix', '--       4 prefix', /KEYS must be numbered/],
  ['done', ':due  ', ':live ', /key prefix:\{tag\}:live is none/],
  ['pass', '5 the payload', 'and the payload', /ARGV\[5\] is used and not documented/],
  ['sweep', 'local place, named', 'local all = #ARGV\nlocal place, named', /ARGV is used otherwise/],

  ['waiting', "{ 'listed', now,", '{ now,', /no tag that can be told/],
  ['key-list', 'reply[2] = 1', "reply[1] = 'found'", /no tag that can be told/],
  ['inspect', "return { 'found', clock()", "redis.call('SPUBLISH', KEYS[1], '')\nreturn { 'found', clock()", /no-writes, yet there is SPUBLISH/],
  ['approve', "\nredis.call('HSET'", "\nredis.call('SPUBLISH', key, '')\nif not now then return { 'expired' } end\nredis.call('HSET'", /'expired'\} is returned after a write/],
  ['reject', 'return refusal end', 'return refusal end\nif not seen then return why() end', /no tag that can be told/],
  ['approve', "{'self_approval', …}", '', /\{'self_approval'\} is returned and not documented/],
  ['approve', 'late(ARGV[1], now)', 'late(ARGV[2], now)', /ARGV\[1\] must be compared/],
  ['pass', "return { 'reused' }", "return { 'used' }", /\{'used'\} is returned and not documented/],
  ['pass', "return { 'reused' }", "return { 'late' }", /\{'reused'\} is documented and not returned/],
  ['cancel', "'requested' or 'cancelled'", "'requested' or 'requested'", /\{'cancelled'\} is documented and not returned/],
  ['cancel', "if status == 'rejected' then return", "if status == 'rejected' then local it =", /\{'rejected'\} is documented and not returned/],
  ['fail', 'unheld(key', 'held(key', /no tag that can be told/],
  ['status', "{ 'not_found' }", '{ record }', /no tag that can be told/],
  ['lease', "\nreturn { 'held' }", "\nif holder then return { 'held' } end", /must end with its reply/],

  ['pass', "call('HGET'", "call('HGETEX'", /HGETEX is no command/],
  ['pass', "call('HGET'", 'call(token', /\(made up\) is no command/],
  ['fail', "redis.call('HMGET'", "redis.pcall('HMGET'", /HMGET by redis\.pcall/],
  ['pass', "redis.pcall('SPUBLISH'", "call('SPUBLISH'", /SPUBLISH by redis\.call/],
  ['pass', "call('HGET', key", "pcall(redis.call, 'HGET', key", /pcall is no function/],
  ['catch', '= clock()', '= os.time()', /os\.time is no function/],
  ['status', ' flags=no-writes', '', /must be flagged no-writes/],

  ['sweep', '  local key = handoffs', "  if not member then return { 'late' } end\n  local key = handoffs", /'late'\} is returned after a write/],

  ['pass', "1 the call's deadline (ms)", '1 the deadline', /ARGV\[1\] must be documented/],
  ['done', '= clock()', '= 0', /ARGV\[1\] must be compared/],
  ['sweep', "then return { 'late' } end", "then return { 'swept', 0, 0 } end", /ARGV\[1\] must be compared/],
  ['catch', 'if not record', '\n'.repeat(30) + 'if not record', /must be under 60/],
  ['cancel', '-- pending -> cancelled, ', '-- ', /must say pending -> cancelled/],
]

t.test('the checker sees each breach', async t => {
  for (const [script, from, to, fault] of breaches) {
    const text = readLua(`${script}.lua`)
    const broken = text.replace(from, to)
    t.not(broken, text, `${script}: ${from} is there to be broken`)
    const faults = faultsOf(script, broken)
    t.ok(faults.some(sentence => fault.test(sentence)), `${script}: ${from} -> ${to}`, { faults, fault: String(fault) })
  }
})
