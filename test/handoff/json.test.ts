import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import fc from 'fast-check'
import t from 'tap'
import { BodyError, cutMembers, pointerTo, skipValue } from '../../src/core/json.ts'
import { isWhole } from '../helpers/extent.ts'

/** How much of the random bodies there is. */
const share = isWhole ? 1 : 0.1

function refusal (body: Buffer | string): { pointer: string, message: string } | undefined {
  try {
    cutMembers(Buffer.from(body as string))
    return undefined
  } catch (error) {
    if (!(error instanceof BodyError)) throw error
    return { pointer: error.pointer, message: error.message }
  }
}

/** An independent definition of a valid body: JSON.parse, and a count of the brackets in what it accepted. */
function oracle (body: Buffer): boolean {
  if (!isUtf8(body)) return false
  const text = body.toString()
  let value
  try {
    value = JSON.parse(text)
  } catch {
    return false
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  // Without its strings, valid JSON is only brackets, commas and words.
  const strings: string[] = []
  const bare = text.replace(/"(?:[^"\\]|\\.)*"/gs, string => `"${strings.push(string) - 1}"`)
  const names = new Set<string>()
  let depth = 0
  for (const [token] of bare.matchAll(/[[\]{}]|"\d+"(?=\s*:)/g)) {
    if (token === '{' || token === '[') {
      if (++depth > 100) return false
    } else if (token === '}' || token === ']') depth--
    else if (depth === 1) {
      const name = JSON.parse(strings[Number(token.slice(1, -1))] as string)
      if (names.has(name)) return false
      names.add(name)
    }
  }
  return names.size <= 64
}

/** A bug of V8, at least 12.8 to 14.6 (Node 24): after parsing a name with a backslash, JSON.parse may return that name for another one. JSON.parse is our reference. */
const confusesNames = (() => {
  JSON.parse('{"h":1,"\\\\":1}')
  return Object.keys(JSON.parse('{"h":1,"\\n":1}'))[1] !== '\n'
})()

const oddNames = fc.constantFrom('', '__proto__', 'constructor', 'toString', 'a/b', 'a~b', '0', '\u0000', '\ud800', 'é', '😀', '"', '\\')
const names = fc.oneof(oddNames, fc.string({ unit: 'binary', maxLength: 6 }), fc.string({ maxLength: 3 })).filter(name => !confusesNames || !name.includes('\\'))
const { value: anyValue } = fc.letrec<{ value: unknown, list: unknown[], object: Record<string, unknown> }>(tie => ({
  value: fc.oneof({ maxDepth: 4, depthIdentifier: 'json' }, fc.string({ unit: 'binary' }), fc.string(), fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(), fc.boolean(), fc.constant(null), oddNames, tie('list'), tie('object')),
  list: fc.array(tie('value'), { maxLength: 4, depthIdentifier: 'json' }),
  object: fc.dictionary(names, tie('value'), { maxKeys: 4, depthIdentifier: 'json' }),
}))
const anyObject = fc.dictionary(names, anyValue, { maxKeys: 8 })
const anySpace = fc.infiniteStream(fc.constantFrom('', '', ' ', '\n', '\t', '\r\n  '))
const anyEscaping = fc.infiniteStream(fc.nat({ max: 9 }))

/** Writes a value as JSON with white space wherever it is allowed, and some unnecessary escapes. */
function write (value: unknown, spaces: Iterator<string>, escaping: Iterator<number>): string {
  const space = () => spaces.next().value as string
  function text (of: string): string {
    return JSON.stringify(of).replace(/\\u[0-9a-f]{4}|\\.|[^"\\]/gs, character => character.length === 1 && escaping.next().value === 0
      ? '\\u' + character.charCodeAt(0).toString(16).padStart(4, '0')
      : character)
  }
  function any (of: unknown): string {
    if (typeof of === 'string') return text(of)
    if (typeof of !== 'object' || of === null) return Object.is(of, -0) ? '-0' : JSON.stringify(of)
    if (Array.isArray(of)) return '[' + space() + of.map(item => any(item) + space()).join(',' + space()) + ']'
    return '{' + space() + Object.entries(of).map(([name, item]) => text(name) + space() + ':' + space() + any(item) + space()).join(',' + space()) + '}'
  }
  return space() + any(value) + space()
}

const anyBody = fc.tuple(anyObject, anySpace, anyEscaping).map(([object, spaces, escaping]) => Buffer.from(write(object, spaces, escaping)))

function outlineOf (value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  return Array.isArray(value) ? [] : {}
}

t.test('names with a backslash are read correctly, on every Node', t => {
  for (const name of ['\\\\', '\\n', '\\u0000', '\\"', '\\\\n']) {
    const body = `{"h":1,"${name}":2}`
    t.strictSame(Object.keys(cutMembers(Buffer.from(body)).values), ['h', JSON.parse(`"${name}"`)], body)
  }
  t.end()
})

t.test('every member of any object is found, outlined and cut out literally', async t => {
  fc.assert(fc.property(anyBody, body => {
    const parsed = JSON.parse(body.toString()) as Record<string, unknown>
    const members = cutMembers(body)
    assert.equal(Object.getPrototypeOf(members.values), null)
    assert.deepEqual(Object.keys(members.values), Object.keys(parsed))
    for (const [name, value] of Object.entries(parsed)) {
      assert.ok(Object.is(members.values[name], value) || typeof value === 'object', 'the same value')
      assert.deepEqual(members.values[name], outlineOf(value))
      const raw = members.raw(name) as Buffer
      assert.equal(raw.buffer, body.buffer, 'a view, not a copy')
      assert.equal(raw.toString(), raw.toString().trim(), 'no white space around it')
      assert.ok(Buffer.from(JSON.stringify(JSON.parse(raw.toString()))).equals(Buffer.from(JSON.stringify(value))))
    }
    assert.equal(members.raw('never a name of these'), undefined)
  }), { numRuns: 500 })
  t.pass('all of them')
})

const shreds = ['"', '\\', '{', '}', '[', ']', ',', ':', '0', '1', '-', '+', '.', 'e', 'E', 't', 'true', 'null', 'false', 'u', '\\u', '\\ud800', ' ', '\n',
  '\t', '\u0000', '\u001f', '\u007f', '\u00a0', '\u2028', '\ufeff', '{}', '[]', '"":1,', '1e5', '-0', '/', "'"].map(text => Buffer.from(text))
const odd = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0x80], [0xe2, 0x80], [0xf5, 0x80, 0x80, 0x80]].map(bytes => Buffer.from(bytes))
// Where in thousandths: most doubles from 0 to 1 lie next to 0.
const anyChange = fc.record({ at: fc.nat({ max: 999 }), cut: fc.nat({ max: 3 }), put: fc.constantFrom(Buffer.alloc(0), ...shreds, ...shreds, ...odd) })

t.test('for bodies with small mutations, the verdict agrees with JSON.parse and the further rules', async t => {
  const seen = { taken: 0, refused: 0 }
  function agree (body: Buffer) {
    const refused = refusal(body)
    seen[refused === undefined ? 'taken' : 'refused']++
    if ((refused === undefined) !== oracle(body)) throw new Error(`${refused?.message ?? 'taken'}: ${body.toString('latin1')}`)
  }
  fc.assert(fc.property(anyBody, fc.array(anyChange, { maxLength: 3 }), (body, changes) => {
    for (const { at, cut, put } of changes) {
      const place = Math.floor(at / 1000 * (body.length + 1))
      body = Buffer.concat([body.subarray(0, place), put, body.subarray(place + cut)])
    }
    agree(body)
  }), { numRuns: 20_000 * share })
  fc.assert(fc.property(anyBody, fc.nat(), (body, length) => agree(body.subarray(0, length % (body.length + 1)))), { numRuns: 2000 * share })
  fc.assert(fc.property(fc.array(fc.constantFrom(...shreds), { maxLength: 8 }), parts =>
    agree(Buffer.concat([Buffer.from('{"a":'), ...parts, Buffer.from('}')]))), { numRuns: 20_000 * share })
  t.ok(seen.taken > 2000 * share && seen.refused > 2000 * share, `both happen: ${JSON.stringify(seen)}`)
})

t.test('values that JSON does not have are refused', async t => {
  const bad = ['', '[1,]', '[,1]', '[1 2]', '[', ']', '[}', '[1}', '01', '-01', '+1', '1.', '.5', '-', '-.5', '1e', '1e+', '1E-', '1.e1', '1..2', '0x1', '1_0',
    'NaN', 'Infinity', '-Infinity', '"\\x"', '"\\v"', '"\\0"', '"\\u000"', '"\\u000g"', '"\\"', '"\t"', '"\n"', '"\u0000"', '"\u001f"', '"\\u00"', '"\\u00g0"', '"\\u', '"\\U0041"', '"', "'a'", 'a', 'nul',
    'nulll', 'True', 'tru', 'falsy', 'undefined', '{"a":1,}', '{,}', '{a:1}', '{1:1}', '{"a"}', '{"a":}', '{"a" 1}', '{"a":1 "b":2}', '{"a"::1}', '{}{}', '[]]', '[[]', '{"a":[}]',
    '1 2', '1//', '/**/1', '1#', '\u00a01', '\u20281', '\ufeff1', '\u000b1', '\u00001', '1\u0000']
  for (const value of bad) {
    for (const body of [`{"a":${value}}`, `{"a":[${value}x]}`, `{"a": [ ${value} , 1 ] , "b":1}`, `{"a":{"b":${value}}}`]) {
      assert.ok(!oracle(Buffer.from(body)), 'the table itself')
      assert.match(refusal(body)?.message ?? 'taken', /^not valid JSON/, body)
    }
  }
  for (const good of ['-0', '0', '0.0', '1E+2', '-1.5e-10', '1e400', '"\u007f"', '"\\u0000"', '"\\ud800"', '"\\/"', '"\u2028"', '[ ]', '{ }', '"\ufeff"']) {
    for (const body of [`{"a":${good}}`, ` {"a" : [ ${good} , {"b":${good}}]}\r\n\t `]) {
      assert.ok(oracle(Buffer.from(body)), 'the table itself')
      assert.equal(refusal(body), undefined, body)
    }
  }
  t.pass('all of them')
})

t.test('a refusal says where and why', async t => {
  const whole = (message: string) => ({ pointer: '', message })
  const refusals: Array<[Buffer | string, { pointer: string, message: string }]> = [
    ['', whole('the body must be a JSON object')],
    [' \n', whole('the body must be a JSON object')],
    ['[{}]', whole('the body must be a JSON object')],
    ['"{}"', whole('the body must be a JSON object')],
    ['null', whole('the body must be a JSON object')],
    ['}', whole('the body must be a JSON object')],
    ['\ufeff{}', whole('a byte order mark is not allowed')],
    ['{', whole('not valid JSON: it must end with }')],
    ['{"a":1} x', whole('not valid JSON: it must end with }')],
    ['{}{}', whole('not valid JSON at byte 2')],
    ['{"a":1}} ', whole('not valid JSON at byte 7')],
    ['{"a":{"b":[1]}', whole('not valid JSON at byte 14')],
    ['{"a":{}', whole('not valid JSON at byte 7')],
    ['{"a}', whole('not valid JSON at byte 4')],
    ['{"a":"b}', whole('not valid JSON at byte 8')],
    ['{"a":"b\\"}', whole('not valid JSON at byte 10')],
    ['{"a":["b}   ', whole('not valid JSON at byte 9')],
    ['{"task":"\\n and \\x"}', whole('not valid JSON at byte 17')],
    ['{"é":"é\n"}', whole('not valid JSON at byte 9')],
    ['{"a":1,"a":2}', { pointer: '/a', message: 'repeated' }],
    ['{"task":1,"t\\u0061sk":2}', { pointer: '/task', message: 'repeated' }],
    ['{"__proto__":1,"__proto__":2}', { pointer: '/__proto__', message: 'repeated' }],
    ['{"~/":1,"\\u007e\\/":2}', { pointer: '/~0~1', message: 'repeated' }],
  ]
  for (const byte of [0x80, 0xff, 0xfe]) refusals.push([Buffer.from([0x7b, byte, 0x7d]), whole('not valid UTF-8')])
  // Overlong forms of / and NUL, a surrogate as in CESU-8, a code point past U+10FFFF, a truncated sequence.
  for (const hex of ['c0af', 'e080af', 'f08080af', 'c080', 'eda080', 'eda0bdedb880', 'f4908080', 'e282', 'c3']) {
    refusals.push([Buffer.concat([Buffer.from('{"a":"'), Buffer.from(hex, 'hex'), Buffer.from('"}')]), whole('not valid UTF-8')])
  }
  refusals.push([Buffer.from('{"a":1}', 'utf16le'), whole('not valid JSON: it must end with }')])
  for (const [body, expected] of refusals) assert.deepEqual(refusal(body), expected, body.toString())
  t.pass('all of them')
})

t.test('a name in an error is cut, and the pointer is not', async t => {
  t.equal(pointerTo('a~1/b'), '/a~01~1b')
  t.equal(pointerTo('x'.repeat(64)), '/' + 'x'.repeat(64))
  t.equal(pointerTo('x'.repeat(65)), '/' + 'x'.repeat(63) + '…')
})

t.test('names of Object.prototype are ordinary members', async t => {
  const { values, raw } = cutMembers(Buffer.from('{"__proto__":{"a":1},"constructor":2,"toString":null}'))
  t.strictSame(Object.keys(values), ['__proto__', 'constructor', 'toString'])
  t.equal(Object.getPrototypeOf(values), null)
  t.equal(raw('__proto__')?.toString(), '{"a":1}')
  t.equal(raw('hasOwnProperty'), undefined)
  t.equal(values['hasOwnProperty'], undefined)
})

t.test('a body has at most 64 members', async t => {
  const members = (count: number) => `{${Array.from({ length: count }, (_, i) => `"m${i}":${i}`).join()}}`
  t.equal(Object.keys(cutMembers(Buffer.from(members(64))).values).length, 64)
  t.strictSame(refusal(members(65)), { pointer: '', message: 'more than 64 members' })
})

t.test('a body has at most 100 levels, itself being the first', async t => {
  const nests = [['[', ']'], ['{"":', '}'], ['[{"a":', '}]']] as const
  for (const [open, close] of nests) {
    const levels = open.length === 6 ? 2 : 1
    for (const inner of ['1', '[]', '{}']) {
      const count = Math.floor((99 - (inner === '1' ? 0 : 1)) / levels)
      const rest = 99 - (inner === '1' ? 0 : 1) - count * levels
      const nested = (more: string, end: string) => `{"x":1,"a/b":${'['.repeat(rest)}${more}${open.repeat(count)}${inner}${close.repeat(count)}${end}${']'.repeat(rest)},"y":2}`
      t.equal(refusal(nested('', '')), undefined, `100 of the form ${levels}, ${inner.length}`)
      t.strictSame(refusal(nested('[', ']')), { pointer: '/a~1b', message: 'nested deeper than 100' }, `101 of the form ${levels}, ${inner.length}`)
    }
  }
  t.equal(refusal(`{"a":[${'[[[]]],'.repeat(200)}1]}`), undefined, 'closed ones do not count')
})

/** The bytes, which tell of each read of one. */
function watched (json: Buffer, read: (at: number) => void): Buffer {
  return new Proxy(json, {
    get (target, key) {
      if (/^\d+$/.test(String(key))) read(Number(key))
      return Reflect.get(target, key)
    },
  })
}

/** Skips a value that may be broken. @returns where it ends, or why it is refused */
function skip (json: Buffer, latin1?: string): number | string {
  try {
    return skipValue(json, 5, 'a', undefined, latin1)
  } catch (error) {
    if (!(error instanceof BodyError)) throw error
    return error.message
  }
}

t.test('a hostile body is read no more often than its length', async t => {
  const hostile: Record<string, string> = {
    'escaped quotes': `"${'\\"'.repeat(5000)}"`,
    'escaped quotes without an end': `"${'\\"'.repeat(5000)}`,
    'backslashes before a quote': `"${'\\'.repeat(10_000)}"`,
    'backslashes, nested': `["${'\\'.repeat(10_000)}"]`,
    'white space': `{${' '.repeat(5000)}}${' '.repeat(5000)}`,
    'empty strings': `[${'"",'.repeat(3000)}1]`,
    'a long name twice': `{"${'a'.repeat(5000)}":1,"${'a'.repeat(5000)}":1}`,
  }
  for (const [name, value] of Object.entries(hostile)) {
    let reads = 0
    skip(watched(Buffer.from(`{"a":${value}}`), () => { reads++ }))
    t.ok(reads > value.length / 2 && reads < 8 * value.length, `${name}: ${reads}`)
  }
})

t.test('of a body that is nested too deep nothing is read beyond that depth', async t => {
  for (const nest of ['[', '{"a":', '[{"":']) {
    let furthest = 0
    const json = watched(Buffer.from(`{"a":${nest.repeat(100_000)}`), at => { furthest = Math.max(furthest, at) })
    t.throws(() => skipValue(json, 5, 'a'), { message: 'nested deeper than 100' })
    t.ok(furthest > 90 && furthest < 100 * nest.length + 10, `read up to ${furthest}`)
  }
})

t.test('no body, however broken, makes a read past its end, which would slow down all that come after', async t => {
  fc.assert(fc.property(fc.array(fc.constantFrom(...shreds), { maxLength: 6 }), parts => {
    const json = Buffer.concat([Buffer.from('{"a":'), ...parts, Buffer.from('}')])
    const inside = watched(json, at => assert.ok(at < json.length, 'a read past the end'))
    assert.equal(skip(inside, json.toString('latin1')), skip(inside), 'with patterns as without')
  }), { numRuns: 10_000 * share })
  t.pass('none')
})

t.test('patterns skip what bytes skip, however long', async t => {
  const many = { elements: '1,'.repeat(200), members: '"a":1,'.repeat(200), escapes: '\\n'.repeat(200), space: ' '.repeat(200) }
  const values = [
    `[${many.elements}2]`, `{${many.members}"b":"x"}`, `["${many.escapes}"]`, `{"${many.escapes}":"${many.escapes}"}`, `[1${many.space},${many.space}2]`,
    `{"a":1,"b":[${many.elements}{${many.members}"c":{}}],"d":"x"}`, `[${many.elements}01]`, `{${many.members}"b":1.}`, `[${many.elements}]`, '[,1]', '{"a":,"b":1}',
    '[1 2]', '["\\x"]', `["${many.escapes}\\u12"]`,
  ]
  for (const value of values) {
    const json = Buffer.from(`{"a":${value}}`)
    t.equal(skip(json, json.toString('latin1')), skip(json), value.slice(0, 60))
  }
})
