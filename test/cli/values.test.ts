import t from 'tap'
import type { Test } from 'tap'
import { parseDuration, parseRate, parseScopes } from '../../src/cli/output.ts'
import { UsageError, harmless, oneLine, span, table } from '../../src/clients/typescript/command/output.ts'
import { parse } from '../../src/clients/typescript/command/parse.ts'
import { parseName } from '../../src/clients/typescript/command/values.ts'
import { verbs } from '../../src/clients/typescript/command/verbs.ts'
import { newKeyId, newSecret } from '../../src/store/api-keys.ts'

const long = 'x'.repeat(10_000)

/** Checks that each value is refused, and that the message quotes it, cut to a line, and says what the option takes. */
function refused (t: Test, parse: (option: string, text: string) => unknown, texts: readonly string[], says: RegExp): void {
  for (const text of texts) {
    try {
      parse('--option', text)
      t.fail(`${text.slice(0, 40)} was taken`)
    } catch (error) {
      t.ok(error instanceof UsageError, text.slice(0, 40))
      const { message } = error as Error
      t.match(message, says)
      t.match(message, /^--option: ".*" is not valid; it takes /)
      t.ok(text.length > 40 || [text, ...text.split(',')].some(part => message.includes(harmless(JSON.stringify(part)))), message)
      t.notMatch(message, /[\p{Cc}]/u, 'nothing that steers a terminal')
      t.ok(message.length < 250)
    }
  }
}

t.test('durations', async t => {
  for (const [text, milliseconds] of [['1s', 1000], ['60s', 60_000], ['15m', 900_000], ['48h', 172_800_000], ['90d', 7_776_000_000], ['3650d', 315_360_000_000]] as const) {
    t.equal(parseDuration('--option', text), milliseconds, text)
  }
  refused(t, parseDuration, ['', '0', '0s', '00d', '01d', '-1d', '+1d', '5', 's', '1y2', '1y', '1w', '1.5h', '1e3s', '0x1s', ' 1h', '1h ', '1h\n', '48H', '1d1h', '3651d',
    '9999999999s', '999999999d', '٣d', long], /; it takes .*60s, 15m, 48h or 90d/)
})

t.test('scopes', async t => {
  t.strictSame(parseScopes('--option', 'pass'), ['pass'])
  t.strictSame(parseScopes('--option', 'status,catch,pass,approve,catch'), ['status', 'catch', 'pass', 'approve'])
  refused(t, parseScopes, ['', ' ', 'reads', 'pass,', ',pass', 'pass,,catch', 'pass, catch', 'pass catch', 'PASS', 'constructor', 'toString', long],
    /; it takes one or more of pass, catch, status, approve/)
})

t.test('names', async t => {
  for (const text of ['a', 'a.b-c_D9', 'x'.repeat(64)]) t.equal(parseName('--option', text), text)
  refused(t, parseName, ['', ' ', 'a b', 'a:b', 'a/b', 'a,b', 'ä', 'a\n', '\u001b[2J', '{a}', 'x'.repeat(65), long], /; it takes 1 to 64 of A-Z a-z 0-9/)
})

t.test('requests a minute', async t => {
  t.equal(parseRate('--option', '600'), 600)
  refused(t, parseRate, ['', '0', '-1', '1.5', '1e3', 'x', '10000000', long], /; it takes a number of requests per minute/)
})

t.test('a wrong value is quoted, but never a key', async t => {
  const message = (text: string) => { try { parseScopes('--scopes', text) } catch (error) { return (error as Error).message } }
  t.equal(message('pass,fly,swim'), '--scopes: "fly" is not valid; it takes one or more of pass, catch, status, approve, webhooks, operate, read, separated by commas without spaces')
  t.match(message(newSecret(newKeyId())), /^--scopes: a value that looks like an API key is not valid/)
  t.match(message(long), /^--scopes: "x{40}…" is not valid/)
})

t.test('output is formatted', async t => {
  for (const [milliseconds, text] of [[0, '0 ms'], [999, '999 ms'], [1000, '1 s'], [61_000, '1 min 1 s'], [3600_000, '1 h'], [3601_000, '1 h'],
    [90 * 86400_000 + 3600_000, '90 d 1 h'], [-5000, '5 s']] as const) t.equal(span(milliseconds), text)
  t.equal(table([['a', 'long'], ['wide', 'b']]), 'a     long\nwide  b')
  t.equal(oneLine(' a\n  b\t'), 'a b')
  t.ok(oneLine(long).length < 400)
  const steering = '"\u009b2J \u202e \u2028 é \u{1f600}"'
  t.equal(harmless(steering), '"\\u009b2J \\u202e \\u2028 é \u{1f600}"')
  t.equal(JSON.parse(harmless(steering)), JSON.parse(steering), 'the same JSON')
})

t.test('command lines of the agents’ verbs', async t => {
  const read = (line: string[]) => {
    const [name = '', ...rest] = line
    const given = parse(name, verbs[name]!, rest)
    return typeof given === 'string' ? given : JSON.parse(JSON.stringify([given.args, given.options]))
  }
  for (const [line, args, options] of [
    [['status', 'a', 'b'], ['a', 'b'], {}],
    [['next'], [], {}],
    [['heartbeat', 'x', '--progress', '--percent', '--percent', '5'], ['x'], { progress: '--percent', percent: 5 }],
    [['fail', '--message=a=b', 'x', '--no-retry', '--json'], ['x'], { message: 'a=b', retry: false, json: true }],
    [['fail', 'x', '--message', '--', '--code='], ['x'], { message: '--', code: '' }],
    [['fail', 'x', '--message', '-', '--code', 'a', '--code', 'b'], ['x'], { message: '-', code: 'b' }],
    [['done', '--', '--output'], ['--output'], {}],
    [['done', '-5.5'], ['-5.5'], {}],
    [['status', '-5', '-5'], ['-5', '-5'], {}],
    [['pass', '--task', 't', '--after', 'a', 'b,c', '--label', 'r:1', '--after=d', '--label=s:2', '--max-attempts', '2'], [], { task: 't', after: ['a', 'b', 'c', 'd'], label: ['r:1', 's:2'], maxAttempts: 2 }],
    [['work', 'w', '--once', '--', 'sh', '-c', 'x', '--', '--help', '--once'], ['w', 'sh', '-c', 'x', '--', '--help', '--once'], { once: true }],
    [['work', '--', 'w', 'true'], ['w', 'true'], {}],
    [['list', '--failed', '--since', '3650d', '--status', 'failed,expired,failed'], [], { failed: true, since: 315_360_000_000, status: ['failed', 'expired'] }],
  ] as const) t.strictSame(read([...line]), [args, options], line.join(' '))
  for (const line of [['pass', '--help'], ['done', 'x', 'y', '-h'], ['work', '--no-such', '--help', '--', 'a']]) t.equal(read(line), 'help', line.join(' '))
  for (const line of [['pass', '--version'], ['pass', '-V']]) t.equal(read(line), 'version')
  for (const [line, message] of [
    [['done'], 'missing required argument \'id\''],
    [['status'], 'missing required argument \'id\''],
    [['done', 'a', 'b'], 'too many arguments for \'done\'. Expected 1 argument but got 2.'],
    [['asks', 'a', '-1'], 'too many arguments for \'asks\'. Expected 0 arguments but got 2.'],
    [['pass', '--task', 't', '--after=a', 'b'], 'too many arguments for \'pass\'. Expected 0 arguments but got 1.'],
    [['fail', 'x'], 'required option \'--message <text>\' not specified'],
    [['fail', '--no-such'], 'required option \'--message <text>\' not specified'],
    [['fail', 'x', '--message'], 'option \'--message <text>\' argument missing'],
    [['done', '--no-such', '-x'], 'unknown option \'--no-such\''],
    [['done', '-xh', '1'], 'unknown option \'-xh\''],
    [['done', '1', '--json=true'], 'unknown option \'--json=true\''],
    [['done', '1', '--constructor'], 'unknown option \'--constructor\''],
    [['fail', '1', '--message', 'm', '--retry'], 'unknown option \'--retry\''],
    [['heartbeat', 'x', '--percent', '-5'], '--percent: "-5" is not valid; it takes a number from 0 to 100'],
    [['pass', '--label', 'a:1', '--label=a:2'], '--label: a is there twice'],
    [['list', '--since', '3651d'], '--since: "3651d" is not valid; it takes a time, as in 2026-11-20T09:00:00Z, or how long ago, as in 15m, 1h or 7d'],
  ] as const) t.throws(() => read([...line]), { name: 'UsageError', message }, line.join(' '))
})
