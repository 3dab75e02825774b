import t from 'tap'
import { membersOf } from '../../src/core/nested.ts'
import type { Members } from '../../src/core/json.ts'
import { cutBatch } from '../../src/http/batch-body.ts'
import type { Operation } from '../../src/operations/operation.ts'

/** A body within a batch is cut into what it is cut into alone, while the batch is. */

const pass = { name: 'pass', params: undefined, body: {} } as unknown as Operation
const known = new Map([['pass', pass]])
const batchOf = (...bodies: string[]) => Buffer.from(`{ "operations" : [${bodies.map(body => `{"op":"pass","body":${body}}`).join(' , ')}] }`)
const read = ({ values }: Members, raw: (name: string) => Buffer | undefined) => Object.entries(values).map(([name, value]) => [name, value, String(raw(name))])
const shown = (members: Members) => read(members, name => members.raw(name))

const bodies = [
  '{}', '{ }', '{"task":"t"}', '{ "task" : "a \\"quote\\" and a \\\\" , "output" : [ 1 , {"a":[]} ] }', '{"täsk":"ü","n":-1.5e3,"y":true,"x":null}', '{"t\\u0061sk":"\\u00e4\\n"}',
  `{"long":"${'x'.repeat(1000)}","constraints":{"a":{"b":"}"}}}`, `{"deep":${'['.repeat(99)}${']'.repeat(99)}}`, `{${Array.from({ length: 64 }, (_, at) => `"m${at}":${at}`).join()}}`
]

t.test('bodies that a body can be', async t => {
  for (const together of [bodies, [...bodies].reverse(), ...bodies.map(body => [body])]) {
    const entries = cutBatch(batchOf(...together), known)
    t.strictSame(entries.map(({ body }) => String(body)), together, 'as they were sent')
    t.strictSame(entries.map(({ members }) => shown(members!)), together.map(body => shown(membersOf(Buffer.from(body)))))
  }
})

const wrong = ['[]', '5', '"text"', '{"a":1,"a":2}', '{"a":1,"\\u0061":2}', `{"deep":${'['.repeat(100)}${']'.repeat(100)}}`, `{${Array.from({ length: 65 }, (_, at) => `"m${at}":${at}`).join()}}`]

t.test('what is none is left to its operation, and holds up no other', async t => {
  for (const body of wrong) {
    t.throws(() => membersOf(Buffer.from(body)))
    const entries = cutBatch(batchOf('{"a":1}', body, '{"b":2}'), known)
    t.strictSame(entries.map(({ members }) => members && { ...members.values }), [{ a: 1 }, undefined, { b: 2 }], body.slice(0, 40))
    t.equal(String(entries[1]!.body), body)
  }
})

t.test('what isn’t JSON refuses the batch, at the byte where it isn’t', async t => {
  for (const body of ['{"a":tru}', '{"a":1', '{"a":"\\x"}', '{"a":1,}', '{a:1}', '{"a":1}}', '{"a":"\u0001"}', '{"a" 1}', '{"a":1']) {
    const batch = batchOf(body)
    const at = /at byte (\d+)$/
    t.throws(() => cutBatch(batch, known), at, body)
    const alone = (json: Buffer) => { try { return JSON.parse(json.toString()) } catch { return null } }
    t.equal(alone(batch), null)
  }
  t.throws(() => cutBatch(Buffer.from('{"operations":[{"op":"pass","body":{}'), known), /at byte 37$/, 'a batch can’t end with a body')
  t.throws(() => cutBatch(Buffer.from('{"operations":[{"op":"pass","body":{"a":{}}'), known), /at byte 43$/)
})
