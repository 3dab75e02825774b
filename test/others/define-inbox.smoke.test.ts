import { toJsonSchema, toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import t from 'tap'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import * as v from 'valibot'
import { z } from 'zod'
import { defineInbox, standardSchema } from '../../src/clients/typescript/index.ts'
import type { InboxDefinition, StandardSchema } from '../../src/clients/typescript/index.ts'
import { tenants } from '../helpers/client.ts'

/** Inboxes with types, by the libraries that people have: what is passed, what a handler gets and gives, and what the passer gets. */

const tenant = await tenants(t)

const typeboxInput = Type.Object({ rows: Type.Array(Type.String()) })
const typeboxResult = Type.Object({ count: Type.Integer() })
type Input = StandardSchema<{ rows: string[] }, { rows: string[] }>
type Result = StandardSchema<{ count: number }, { count: number }>
const definitions: Record<string, InboxDefinition<Input, Result, undefined>> = {
  zod: defineInbox({ inbox: 'in', input: z.object({ rows: z.array(z.string()) }), result: z.object({ count: z.number().int() }) }),
  valibot: defineInbox({ inbox: 'in', input: v.object({ rows: v.array(v.string()) }), result: v.object({ count: v.pipe(v.number(), v.integer()) }), toJsonSchema }),
  'valibot, standard': defineInbox({ inbox: 'in', input: v.object({ rows: v.array(v.string()) }), result: toStandardJsonSchema(v.object({ count: v.pipe(v.number(), v.integer()) })) }),
  arktype: defineInbox({ inbox: 'in', input: type({ rows: 'string[]' }), result: type({ count: 'number.integer' }) }),
  typebox: defineInbox({ inbox: 'in', input: standardSchema(typeboxInput, value => Value.Check(typeboxInput, value)), result: standardSchema(typeboxResult, value => Value.Check(typeboxResult, value)) }),
}

for (const [name, counter] of Object.entries(definitions)) {
  t.test(`${name}: passed, worked on, and waited for, checked on both sides`, async t => {
    const { client } = tenant()
    const [alice, bob] = [client('alice'), client('bob')]
    t.match(counter.resultSchema, { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] })
    const { handoff_id: id } = await alice.pass({ to: counter, task: 'count', output: { rows: ['a', 'b'] } })
    await t.rejects(alice.pass({ to: counter, task: 'count', output: { rows: ['a', 5] } as never }), { name: 'SchemaMismatch', message: /^output/, code: 'input_invalid' }, 'not sent')
    const foreign = (await alice.pass({ to: 'in', task: 'count', output: { rows: 'no' }, max_attempts: 3 })).handoff_id
    const wrong = (await alice.pass({ to: counter, task: 'wrong', output: { rows: [] } })).handoff_id
    const own = new AbortController()
    const ended: string[] = []
    await bob.work(counter, async ({ task, output }) => ({ count: task === 'wrong' ? 0.5 : output.rows.length }), {
      signal: own.signal, onEnd: (handoff, how) => { if (ended.push(`${handoff.task} ${how}`) === 3) own.abort() }
    })
    t.strictSame(ended, ['count done', 'count failed', 'wrong failed'])
    const status = await alice.waitFor(id, 'done', { of: counter })
    t.equal(status.status === 'done' && status.result.count, 2)
    t.match((await alice.status(id)), { attempt: 1 })
    t.match(await alice.status(foreign), { status: 'failed', error: { code: 'input_invalid', message: /^output/ }, reissued_as: undefined })
    t.match(await alice.status(wrong), { status: 'failed', error: { code: 'result_invalid', message: /^result/ } })
  })
}

t.test('the service checks by the same schema', async t => {
  const { client } = tenant()
  const [alice, bob] = [client('alice'), client('bob')]
  const { handoff_id: id } = await alice.pass({ to: definitions.zod!, task: 'count', output: { rows: [] } })
  await bob.catch(id)
  await t.rejects(bob.done(id, { count: 'two' }), { code: 'result_invalid' })
})

t.test('what comes after others has their results; defaults and dates are as the schema reads them', async t => {
  const { client } = tenant()
  const [alice, bob] = [client('alice'), client('bob')]
  const fetcher = defineInbox({ inbox: 'in', result: z.object({ at: z.iso.datetime() }) })
  const reader = defineInbox({
    inbox: 'second', input: z.object({ due: z.iso.datetime().transform(text => new Date(text)), times: z.number().default(2) }), after: { result: z.object({ at: z.coerce.date() }) }
  })
  const first = (await alice.pass({ to: fetcher, task: 'fetch' })).handoff_id
  const second = (await alice.pass({ to: reader, task: 'read', output: { due: '2026-11-20T09:00:00Z' }, after: [first] })).handoff_id
  await bob.catch(first)
  await bob.done(first, { at: '2026-11-20T08:00:00Z' })
  const own = new AbortController()
  let got: unknown[] = []
  await bob.work(reader, async handoff => {
    const at: Date | undefined = handoff.after?.[0]?.result?.at
    got = [handoff.output.due.getTime() - at!.getTime(), handoff.output.times, JSON.parse(handoff.text).output]
    own.abort()
  }, { signal: own.signal })
  t.strictSame(got, [3_600_000, 2, { due: '2026-11-20T09:00:00Z' }])
  t.match(await alice.waitFor(second, 'done', { of: reader }), { status: 'done' })
})

t.test('a library that doesn’t say its JSON Schema needs toJsonSchema', async t => {
  t.throws(() => defineInbox({ inbox: 'in', result: v.object({}) }), { message: /^valibot doesn’t give/ })
  t.ok(defineInbox({ inbox: 'in', input: v.object({}) }), 'of the input none is needed')
  // What a handler may return, and not what the schema makes of it.
  const number = v.object({ n: v.pipe(v.string(), v.transform(Number)) })
  t.match(defineInbox({ inbox: 'in', result: number, toJsonSchema }).resultSchema, { properties: { n: { type: 'string' } } })
  const defaults = defineInbox({ inbox: 'in', result: z.object({ n: z.number().default(1) }), toJsonSchema: z.toJSONSchema })
  t.equal((defaults.resultSchema as { required?: string[] }).required, undefined)
})

t.test('a mismatch is short, however long what doesn’t fit is', async t => {
  const { client } = tenant()
  const numbers = defineInbox({ inbox: 'in', input: v.record(v.string(), v.number()) })
  const output = { ['k'.repeat(1000)]: 5, ...Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`k${at}`, '\u{1f600}'.repeat(1000)])) }
  const error: Error = await client('alice').pass({ to: numbers, task: 't', output: output as never }).then(() => t.fail('sent'), error => error)
  t.match(error.message, /^output\.k0: .*; and 2 more$/u)
  t.ok([...error.message].length < 3100)
  t.notMatch(error.message, /[\ud800-\udfff]/u, 'no half of a pair')
})

t.test('a definition may be made by another copy of the client', async t => {
  const copy: typeof import('../../src/clients/typescript/inbox-definition.ts') = await import(`../../src/clients/typescript/inbox-definition.ts?${'copy'}`)
  t.not(copy.defineInbox, defineInbox)
  const { client } = tenant()
  const counter = copy.defineInbox({ inbox: 'in', input: z.object({ rows: z.array(z.string()) }), result: z.object({ count: z.number() }) })
  const { handoff_id: id } = await client('alice').pass({ to: counter, task: 'count', output: { rows: ['a'] } })
  const own = new AbortController()
  await client('bob').work(counter, ({ output }) => ({ count: output.rows.length }), { signal: own.signal, onEnd: () => own.abort() })
  t.match(await client('alice').waitFor(id, 'done', { of: counter }), { status: 'done', result: { count: 1 } })
})

t.test('what is no definition is refused where it is written', t => {
  for (const wrong of [{ type: 'object' }, null, 'text']) {
    for (const name of ['input', 'result']) {
      t.throws(() => defineInbox({ inbox: 'in', [name]: wrong } as never), { name: 'TypeError', message: `${name} is no Standard Schema` })
    }
    t.throws(() => defineInbox({ inbox: 'in', after: { result: wrong } } as never), { message: 'after.result is no Standard Schema' })
  }
  for (const inbox of [undefined, null, '']) t.throws(() => defineInbox({ inbox } as never), { message: 'inbox must be the name of an inbox' })
  t.end()
})

t.test('what only describes is left out of the result_schema, which doesn’t take it', async t => {
  const { client } = tenant()
  const described = z.object({
    deprecated: z.base64().meta({ deprecated: true }), readOnly: z.literal('writeOnly').default('writeOnly')
  }).meta({ id: 'Described', examples: [{ deprecated: 'eA==' }] })
  const inbox = defineInbox({ inbox: 'in', result: z.object({ one: described, two: z.array(described) }) })
  const { $defs } = inbox.resultSchema as { $defs: Record<string, { properties: object, examples: unknown }> }
  t.match($defs.Described, {
    properties: { deprecated: { type: 'string', deprecated: undefined, contentEncoding: undefined }, readOnly: { default: 'writeOnly' } },
    examples: [{ deprecated: 'eA==' }]
  })
  t.match(await client('alice').pass({ to: inbox, task: 't' }), { status: 'pending' })
})

/** Checked by `npm run typecheck`. */
async function types () {
  const { client } = tenant()
  const counter = defineInbox({ inbox: 'in', input: z.object({ rows: z.array(z.string()) }), result: z.object({ count: z.number() }) })
  // @ts-expect-error: rows are texts
  await client('alice').pass({ to: counter, task: 't', output: { rows: [5] } })
  // @ts-expect-error: there must be an output
  await client('alice').pass({ to: counter, task: 't' })
  // @ts-expect-error: the definition has it
  await client('alice').pass({ to: counter, task: 't', output: { rows: [] }, result_schema: {} })
  // @ts-expect-error: it returns a count
  await client('bob').work(counter, async () => ({ sum: 1 }))
  await client('bob').work(counter, ({ output }) => {
    // @ts-expect-error: there are no columns
    return { count: output.columns.length }
  })
  const status = await client('alice').waitFor('id', 'done', { of: counter })
  // @ts-expect-error: it may have failed
  const early: number = status.result.count
  const count: number = status.status === 'done' ? status.result.count : early
  await client('bob').work<{ n: number }, { m: number }>('in', ({ output: { n } }) => ({ m: n + count }))
  // @ts-expect-error: it said what it returns
  await client('bob').work<{ n: number }, { m: number }>('in', ({ output: { n } }) => ({ n }))
  // @ts-expect-error: outputs are objects
  defineInbox({ inbox: 'in', input: z.string() })
  // @ts-expect-error: and so are results
  defineInbox({ inbox: 'in', result: z.number() })
}
t.type(types, 'function')
