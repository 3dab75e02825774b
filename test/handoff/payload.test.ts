import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { cutMembers } from '../../src/core/json.ts'
import { joinPayload, spliceAnswer } from '../../src/handoffs/lifecycle/answers.ts'

const payloadOf = (body: string) => joinPayload(cutMembers(Buffer.from(body))).toString()

t.test('absent and null read back alike', async t => {
  const empty = '"task":"t","output":{},"context":{},"constraints":null'
  t.equal(payloadOf('{"task":"t"}'), empty)
  t.equal(payloadOf('{"constraints":null,"context":null,"output":null,"task":"t"}'), empty)
})

t.test('members are stored in one order, without the body’s other members', async t => {
  t.equal(payloadOf('{"constraints": "c", "require_human":true , "context" :{"b": 2}, "output":\n{ "a":[1] } ,"expires_in":5,"task" : "t" }'),
    '"task":"t","output":{ "a":[1] },"context":{"b": 2},"constraints":"c"')
})

t.test('what parsing and serialising would change is kept literally', async t => {
  const literals = ['9007199254740993', '1.0', '1e400', '-0', '0.1000', '1E5', '"\\ud800"', '"\\u0041\\/"', '{"2":0,"1":0}', '{"a":1,"a":2}', '{"__proto__":{"x":1}}', '"日本語 😀"', '[]', '{}']
  for (const literal of literals) {
    const object = `{"k":${literal}}`
    assert.equal(payloadOf(`{"task":"\\ud800 \\u0041","output":${object},"context":${object}}`),
      `"task":"\\ud800 \\u0041","output":${object},"context":${object},"constraints":null`, literal)
  }
  t.not(JSON.stringify(JSON.parse('[9007199254740993,1.0,1e400]')), '[9007199254740993,1.0,1e400]', 'which it would')
})

t.test('an answer is its head, the payload and its tail, byte for byte', async t => {
  fc.assert(fc.property(fc.string({ unit: 'grapheme' }), fc.uint8Array(), fc.string({ unit: 'grapheme' }), (head, bytes, tail) => {
    const payload = Buffer.from(bytes)
    assert.ok(spliceAnswer(head, payload, tail).equals(Buffer.concat([Buffer.from(head), payload, Buffer.from(tail)])))
  }))
  t.pass('all of them')
})

t.test('the spliced answer is valid JSON and equals what was passed', async t => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), fc.dictionary(fc.string(), fc.jsonValue()), (task, output) => {
    const payload = joinPayload(cutMembers(Buffer.from(JSON.stringify({ output, task }))))
    const answer = JSON.parse(spliceAnswer('{"status":"caught",', payload, ',"n":1}').toString())
    assert.equal(JSON.stringify(answer), JSON.stringify({ status: 'caught', task, output, context: {}, constraints: null, n: 1 }))
  }))
  t.pass('all of them')
})
