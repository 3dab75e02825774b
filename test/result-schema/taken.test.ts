/** Which schemas are accepted as a result_schema. */
import { createHash } from 'node:crypto'
import t from 'tap'
import type { Fault } from '../../src/core/errors.ts'
import { judging, someone } from '../helpers/result-schemas.ts'
import type { Outcome } from '../helpers/result-schemas.ts'

const dialect = 'https://json-schema.org/draft/2020-12/schema'
const { accept, schemas } = judging(t)

const pointers = (outcome: Outcome) => typeof outcome === 'string' ? outcome : outcome.map(({ pointer }) => pointer)

/** Each keyword with valid and invalid values. */
const keywords: Record<string, [taken: unknown[], refused: unknown[]]> = {
  type: [['string', 'integer', ['null', 'object'], ['number']], ['text', [], ['string', 'string'], ['string', 'x'], 1, null, {}, 'toString', [['string']]]],
  enum: [[[], [1], [null, {}, []], ['a', 'a']], [{}, 'a', null]],
  const: [[null, 1, 'x', {}, [], { $ref: 'x', $id: ':' }], []],
  properties: [[{}, { a: true, b: false, c: {} }, { toString: {} }], [[], null, true, 'a']],
  patternProperties: [[{}, { '^a': true }, { '': {} }], [[], null, 1]],
  additionalProperties: [[true, false, {}], [1, null, 'a', []]],
  propertyNames: [[true, {}], [1, null, []]],
  required: [[[], ['a', 'toString', '__proto__', '']], ['a', [1], ['a', 'a'], {}, null]],
  minProperties: [[0, 5, 1e300], [-1, 0.5, '1', null, true]],
  maxProperties: [[0, 5], [-1, 0.5, '1', null]],
  items: [[true, false, {}], [[{}], 1, null]],
  prefixItems: [[[{}], [true, {}]], [[], {}, true, null]],
  contains: [[true, {}], [1, null, [{}]]],
  minItems: [[0, 5], [-1, 1.5, '1', null]],
  maxItems: [[0, 5], [-1, 1.5, '1', null]],
  uniqueItems: [[false], [true, 0, 'true', null]],
  minLength: [[0, 5], [-1, 1.5, '1', null]],
  maxLength: [[0, 5], [-1, 1.5, '1', null]],
  pattern: [
    ['', '^a+$', '\\u0041', '\\u{1f600}', '\\p{L}', '\\p{Letter}', '\\p{Script=Greek}', '(?<name>a)', '(a+)+$', '[^]', '[]', '\\/', '\\s', '\ud800', '(?=a)', '(?!a)', '(?<=a)b', '(?<!a)b', '(a)\\1', '(?<n>a)\\k<n>', 'a{1001}', '\\p{scx=Greek}'],
    ['(', '(?=a', '(?<=a)*', '(a)\\2', '\\k<n>', 'a**', '(?i)a', '(?i:a)', '(?P<n>a)', '[[:alpha:]]', '\\p{Greek}', '\\p{scx=Grek }', '\\z', '\\-', 'a{,5}', ']', 1, null, []],
  ],
  minimum: [[0, -1.5, 1e300], ['1', null, true]],
  maximum: [[0, -1.5], ['1', null]],
  exclusiveMinimum: [[0, -1.5], [true, null]],
  exclusiveMaximum: [[0, -1.5], [true, null]],
  multipleOf: [[1, 0.01, 5e-324], [0, -1, '1', null]],
  allOf: [[[{}], [true, false]], [[], {}, true, null]],
  anyOf: [[[{}], [true, false]], [[], {}, true, null]],
  oneOf: [[[{}], [true, false]], [[], {}, true, null]],
  not: [[true, {}], [1, null, [{}]]],
  if: [[true, {}], [1, null]],
  then: [[true, {}], [1, null]],
  else: [[true, {}], [1, null]],
  $defs: [[{}, { a: {} }, { __proto__x: true, '': {} }], [[], null, 1]],
  $ref: [[], ['#', '#/', '#/$defs', '#/$defs/', '#/$defs/a', '#a', 'a', '/$defs/a', `${dialect}`, '#/properties/a', 1, null]],
  title: [['', 'x'], [1, null]],
  description: [['', 'x'], [1, null]],
  format: [['date', 'nonsense'], [1, null]],
  default: [[null, 1, { $ref: 'x' }], []],
  examples: [[[], [1, { $id: 'x' }]], [1, null, {}]],
  $schema: [[dialect], ['http://json-schema.org/draft-07/schema#', `${dialect}#`, 1, null]],
}

for (const [keyword, [taken, refused]] of Object.entries(keywords)) {
  t.test(keyword, async t => {
    for (const value of taken) t.equal(await accept({ [keyword]: value }), 'ok', JSON.stringify(value))
    for (const value of refused) {
      const [first] = pointers(await accept({ [keyword]: value }))
      t.match(first, `/result_schema/${keyword}`, JSON.stringify(value))
      const [inner] = pointers(await accept({ properties: { x: { [keyword]: value } } }))
      t.match(inner, `/result_schema/properties/x/${keyword}`, JSON.stringify(value))
    }
  })
}

t.test('other keywords are refused', async t => {
  const others = ['$id', '$anchor', '$dynamicRef', '$dynamicAnchor', '$comment', '$vocabulary', '$recursiveRef', 'definitions', 'dependencies', 'dependentRequired', 'dependentSchemas', 'minContains',
    'maxContains', 'unevaluatedItems', 'unevaluatedProperties', 'additionalItems', 'contentEncoding', 'contentMediaType', 'contentSchema', 'deprecated', 'readOnly', 'writeOnly', 'nullable', 'id',
    'discriminator', 'x-mine', '', 'constructor', 'toString', 'Type', 'propertys']
  for (const name of others) t.same(pointers(await accept({ [name]: 1 })), [`/result_schema/${name}`], name)
  t.same(pointers(await accept('{"__proto__": {}, "not": {"a/b~c": 1}}')), ['/result_schema/__proto__', '/result_schema/not/a~1b~0c'])
})

t.test('a schema must be an object; a subschema may be true or false as well', async t => {
  for (const text of ['true', 'false', 'null', '[]', '1', '"x"', '[{}]']) t.same(pointers(await accept(text)), ['/result_schema'], text)
  t.equal(await accept(' {\n} '), 'ok')
})

t.test('the pointer leads to the fault, wherever it is', async t => {
  const schema = {
    properties: { 'a/b': { type: 'x' } },
    patternProperties: { '(': true, '^~': { not: 1 } },
    allOf: [{}, { items: 1 }],
    prefixItems: [{ if: {}, then: { minimum: '' }, else: { a: 1 } }],
    $defs: { d: { contains: { pattern: '\\2' } }, e: { $defs: {} } },
  }
  t.same(pointers(await accept(schema)), ['/result_schema/properties/a~1b/type', '/result_schema/patternProperties/(', '/result_schema/patternProperties/^~0/not',
    '/result_schema/allOf/1/items', '/result_schema/prefixItems/0/then/minimum', '/result_schema/prefixItems/0/else/a', '/result_schema/$defs/d/contains/pattern', '/result_schema/$defs/e/$defs'])
})

t.test('a repeated member is refused, wherever it is', async t => {
  const rows: Array<[text: string, pointer: string]> = [
    ['{"type": "string", "type": "object"}', '/result_schema/type'],
    ['{"allOf": [{}, {"properties": {"a": {}, "\\u0061": {}}}]}', '/result_schema/allOf/1/properties/a'],
    ['{"const": {"a": [{"b": {}, "c": "}", "b": 1}]}}', '/result_schema/const/a/0/b'],
    ['{"default": {"__proto__": 1, "__proto__": 1}}', '/result_schema/default/__proto__'],
  ]
  for (const [text, pointer] of rows) t.same(await accept(text), [{ pointer, message: 'repeated' }], text)
  t.equal(await accept('{"const": [{"a": "a", "b": {"a": "\\",\\"a"}}, {"a": ["a", "a"]}]}'), 'ok')
})

t.test('a schema has at most 16,384 bytes, as sent', async t => {
  const long = (bytes: number) => `{"title":"${'é'.repeat(5)}${'x'.repeat(bytes - 22)}"}`
  t.equal(Buffer.byteLength(long(16_384)), 16_384)
  t.equal(await accept(long(16_384)), 'ok')
  t.same(pointers(await accept(long(16_385))), ['/result_schema'])
  t.same(pointers(await accept('{}' + ' '.repeat(16_383))), ['/result_schema'], 'white space too')
})

t.test('subschemas nest at most 20 deep', async t => {
  const deep = (levels: number, inmost: string): string => levels === 1 ? inmost : `{"not":${deep(levels - 1, inmost)}}`
  for (const inmost of ['{}', 'true', 'false']) {
    t.equal(await accept(deep(20, inmost)), 'ok')
    t.same(pointers(await accept(deep(21, inmost))), ['/result_schema' + '/not'.repeat(20)])
  }
  t.equal(await accept(`{"$defs": {"a": ${deep(19, '{}')}}, "allOf": [${deep(18, '{"$ref": "#/$defs/a"}')}]}`), 'ok', 'a reference is no deeper')
  t.same(pointers(await accept(`{"$defs": {"a": ${deep(20, '{}')}}}`)), ['/result_schema/$defs/a' + '/not'.repeat(19)])
})

t.test('a schema has at most 1,000 subschemas, with references expanded', async t => {
  const many = (count: number) => Array(count).fill(true)
  t.equal(await accept({ allOf: many(999) }), 'ok')
  t.same(pointers(await accept({ allOf: many(1_000) })), ['/result_schema'])
  // 1 + 3 * 333 = 1,000: a definition counts at each reference.
  const tripled = (more: unknown[]) => ({ $defs: { a: { anyOf: many(332) } }, prefixItems: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/a' }, { $ref: '#/$defs/a' }, ...more] })
  t.equal(await accept(tripled([])), 'ok')
  t.same(pointers(await accept(tripled([{}]))), ['/result_schema'])
  const beside = { $defs: { a: { anyOf: many(997) } }, not: { $ref: '#/$defs/a', minItems: 1 } }
  t.equal(await accept(beside), 'ok', 'a schema, what is beside the reference, and what that names: 1 + 1 + 998')
  t.same(pointers(await accept({ ...beside, contains: true })), ['/result_schema'])
  t.same(pointers(await accept(doubling(30))), ['/result_schema'])
  t.equal(await accept({ $defs: { unused: { allOf: many(1_500) } } }), 'ok', 'what nobody names is written out nowhere')
})

/** Each definition names the next one twice. */
function doubling (times: number): object {
  const $defs: Record<string, unknown> = { [`d${times}`]: true }
  for (let i = 0; i < times; i++) $defs[`d${i}`] = { anyOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] }
  return { $defs, $ref: '#/$defs/d0' }
}

t.test('references lead to definitions and have no cycles', async t => {
  const $defs = { a: {}, 'a/b~c%d é': {}, '': {}, __proto: {}, toString: {} }
  for (const name of ['a', '%61', 'a~1b~0c%25d%20%C3%A9', 'a%2fb'.replace('a%2fb', 'a~1b~0c%25d é'), '', 'toString']) t.equal(await accept({ $defs, $ref: `#/$defs/${name}` }), 'ok', name)
  t.equal(await accept('{"$defs": {"__proto__": {}}, "$ref": "#/$defs/__proto__"}'), 'ok')
  t.equal(await accept({ $defs, not: { $ref: '#/%24defs/a' } }), 'ok')
  for (const name of ['b', 'a/type', 'a%2Ftype', 'a~2', 'a~', '%', '%ff', 'constructor', '__proto__', 'valueOf']) {
    t.same(pointers(await accept({ $defs, not: { $ref: `#/$defs/${name}` } })), ['/result_schema/not/$ref'], name)
  }
  const cycles: Array<[defs: object, ref: string | undefined, pointer: string]> = [
    [{ a: { $ref: '#/$defs/a' } }, undefined, '/result_schema/$defs/a/$ref'],
    [{ a: { items: { $ref: '#/$defs/b' } }, b: { not: { $ref: '#/$defs/a' } } }, 'a', '/result_schema/$defs/b/not/$ref'],
    [{ a: { default: { $ref: '#/$defs/a' }, properties: { x: { anyOf: [true, { $ref: '#/$defs/a' }] } } } }, 'a', '/result_schema/$defs/a/properties/x/anyOf/1/$ref'],
  ]
  for (const [$defs, ref, pointer] of cycles) t.same(pointers(await accept({ $defs, ...ref === undefined ? {} : { $ref: `#/$defs/${ref}` } })), [pointer], pointer)
})

t.test('uniqueItems needs maxItems of at most 100', async t => {
  t.equal(await accept({ uniqueItems: true, maxItems: 100 }), 'ok')
  t.same(pointers(await accept({ uniqueItems: true, maxItems: 101 })), ['/result_schema/uniqueItems'])
  t.same(pointers(await accept({ maxItems: 1, items: { uniqueItems: true } })), ['/result_schema/items/uniqueItems'])
})

t.test('at most 100 errors are returned, with names and patterns cut', async t => {
  const names = Array.from({ length: 200 }, (_, i) => [`n${i}`, 1])
  t.equal(pointers(await accept(Object.fromEntries(names))).length, 100)
  t.same(pointers(await accept({ ['x'.repeat(15_000)]: 1 })), [`/result_schema/${'x'.repeat(63)}…`])
  const deep = Array.from({ length: 18 }, () => 'y'.repeat(800)).reduce<object>((inner, name) => ({ properties: { [name]: inner } }), { x: 1 })
  for (const schema of [deep, { pattern: '('.repeat(16_000) }, { allOf: [{ pattern: `(?P<${'x'.repeat(9_000)}` }] }]) {
    for (const { pointer, message } of await accept(schema) as Fault[]) t.ok(pointer.length <= 1_000 && message.length <= 200, pointer)
  }
})

t.test('the digest is that of the bytes, and a known schema’s is there at once', async t => {
  const schema = Buffer.from('{"title": "known"}')
  const first = schemas.accept(schema, someone)
  t.type(first, Promise)
  t.equal(await first, createHash('sha256').update(schema).digest().toString('base64url', 0, 16))
  t.equal(schemas.accept(schema, someone), await first)
  t.not(await schemas.accept(Buffer.from('{"title":"known"}'), someone), await first)
  for (let time = 0; time < 2; time++) t.same(pointers(await accept('{"title": 1}')), ['/result_schema/title'], 'a refused one is refused again')
})
