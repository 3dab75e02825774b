/** Hostile schemas and outputs, and their effect on other jobs. */
import { execFile, spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { availableParallelism, setPriority } from 'node:os'
import { setImmediate as turn } from 'node:timers/promises'
import { promisify } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { ResultSchemas } from '../../src/result-schema/result-schemas.ts'
import type { ResultSchemaOptions } from '../../src/result-schema/result-schemas.ts'
import { judging } from '../helpers/result-schemas.ts'
import type { Judge } from '../helpers/result-schemas.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'

/** Milliseconds: enough for harmless jobs on a busy machine; hostile ones take many times as long on any. */
const limit = 1_000
const patience = 60_000

const harmless = { properties: { a: { type: 'string' } } }

/** An automaton of a million states; a random text leads through all of them. */
const hostileSchema = { allOf: Array(300).fill({ pattern: '(a|b)*a(a|b){20}$' }) }
const hostileOutput = JSON.stringify(withoutOrder(500_000) + 'c')

function withoutOrder (length: number): string {
  let state = 1
  return Array.from({ length }, () => (state = Math.imul(state, 1_103_515_245) + 12_345) & 0x40000000 ? 'a' : 'b').join('')
}

/** A pattern that compiles to over a million instructions, before any string is matched. */
const slowToRead = { pattern: '(a{1000})'.repeat(1_300) }

t.test('a pattern with catastrophic backtracking elsewhere costs nothing here', async t => {
  const { judge } = judging(t)
  // Backtracking would take 2 to the power of 400,000 steps.
  t.equal((await judge({ pattern: '(a+)+$' }, JSON.stringify('a'.repeat(400_000) + '!'))).length, 1)
})

t.test('a pattern that JavaScript’s own RegExp takes minutes to compile costs nothing here', async t => {
  const { judge } = judging(t, { limit, patience })
  t.equal(await judge({ pattern: '(?:.|[^a]|\\D|\\W|\\S)'.repeat(8) }, '"яяяяяяяя"'), 'ok')
})

t.test('nor does a catastrophic one that looks around: it is ended, and others’ jobs go on', async t => {
  const { accept, check } = judging(t, { limit, patience })
  const tooSlow = 'result_schema_too_slow'
  const harmlessOne = { pattern: '^(?!.*\\.\\.)\\w' }
  for (const [pattern, text, outcome] of [
    ['^(?=(a+)+$)a', `${'a'.repeat(100)}!`, tooSlow], ['^(?!b)(a|a?)+\\1b$', 'a'.repeat(100), tooSlow],
    ['(?<=^b(?:\\w\\w?|\\w+)+)!', `${'a'.repeat(100)}!`, tooSlow],
    // Its stack would be larger than the worker's memory.
    ['^(?:(?:[^]|x)(?!y))*$', 'a'.repeat(4_000_000), tooSlow],
    // V8 would compile it for minutes.
    ['(?=я)(?:.|[^a]|\\D|\\W|\\S)'.repeat(8), 'я'.repeat(100), 'ok'],
  ] as const) {
    t.equal(await accept({ pattern }), 'ok', pattern)
    const outcomes = await Promise.all([check({ pattern }, JSON.stringify(text)), check(harmlessOne, '"a.b"', { tenant: 'other', agent: 'a' }), check(harmlessOne, '"a..b"')])
    t.match(outcomes, [outcome, 'ok', [{ message: /^must match/ }]], pattern)
  }
})

t.test('a too slow output is refused; other work goes on, and jobs behind it are answered', async t => {
  const { accept, check } = judging(t, { limit, patience })
  t.equal(await accept(hostileSchema), 'ok')
  const order: string[] = []
  const note = (name: string) => (outcome: unknown) => order.push(`${name}: ${JSON.stringify(outcome)}`)
  const all = [
    check(hostileSchema, hostileOutput).then(note('first')),
    check(harmless, { a: '' }).then(note('second')),
    check(harmless, { a: 1 }).then(note('third')),
    check(hostileSchema, hostileOutput).then(note('fourth')),
    accept({ title: 'new' }).then(note('fifth')),
    check(harmless, { a: '' }).then(note('sixth')),
  ]
  for (let i = 0; i < 100; i++) await turn()
  order.push('a hundred turns of the event loop')
  await Promise.all(all)
  t.strictSame(order, [
    'a hundred turns of the event loop',
    'first: "result_schema_too_slow"',
    'second: "ok"',
    'third: [{"pointer":"/output/a","message":"must be string"}]',
    'fourth: "result_schema_too_slow"',
    'fifth: "ok"',
    'sixth: "ok"',
  ])
})

t.test('a schema that is too slow to read is refused each time', async t => {
  const { accept } = judging(t, { limit, patience })
  const [first, harmlessOne, second] = await Promise.all([accept(slowToRead), accept(harmless), accept(slowToRead)])
  t.strictSame([first, harmlessOne, second], ['result_schema_too_slow', 'ok', 'result_schema_too_slow'])
})

t.test('many schemas and members in one output can be too slow together', async t => {
  const { accept, check } = judging(t, { limit, patience })
  const $defs: Record<string, unknown> = { d8: { minLength: 5, maxLength: 90_000, enum: Array.from({ length: 200 }, (_, i) => ({ a: { b: i } })) } }
  // All of it is valid, so all of it is checked.
  for (let i = 0; i < 8; i++) $defs[`d${i}`] = { allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] }
  const schema = { $defs, items: { $ref: '#/$defs/d0' } }
  t.equal(await accept(schema), 'ok')
  t.equal(await check(schema, `[${Array(40_000).fill('{"a":{"b":199}}').join()}]`), 'result_schema_too_slow')
  t.equal(await check(harmless, {}), 'ok')
})

t.test('an output that takes too much memory ends the worker and nothing else', async t => {
  const { check } = judging(t, { limit: 60_000, patience, memory: 8 })
  const outcomes = await Promise.all([check(harmless, { a: '' }), check({}, `[${Array(340_000).fill('[]').join()}]`), check(harmless, { a: '' })])
  t.strictSame(outcomes, ['ok', 'result_schema_too_slow', 'ok'])
})

t.test('a job that is too big for any worker is not given to one', async t => {
  const { check } = judging(t)
  t.equal(await check({}, `"${'x'.repeat(4 * 2 ** 20 - 2)}"`), 'ok')
  t.equal(await check({}, `"${'x'.repeat(4 * 2 ** 20 - 1)}"`), 'result_schema_too_slow')
})

t.test('a job that waits too long is refused as unavailable', async t => {
  const { check } = judging(t, { limit, patience: limit / 2 })
  await until(async () => await check(harmless, {}) === 'ok')
  t.strictSame(await Promise.all([check(hostileSchema, hostileOutput), check(harmless, {})]), ['result_schema_too_slow', 'unavailable'])
  await until(async () => await check(harmless, {}) === 'ok')
})

t.test('any number of jobs may have waited too long', async t => {
  const { check } = judging(t, { limit, patience: limit / 2 })
  await until(async () => await check(harmless, {}) === 'ok')
  const slow = check(hostileSchema, hostileOutput)
  const behind = await Promise.all(Array.from({ length: 30_000 }, () => check(harmless, {})))
  t.equal(await slow, 'result_schema_too_slow')
  t.equal(behind.filter(outcome => outcome === 'unavailable').length, behind.length)
  await until(async () => await check(harmless, {}) === 'ok')
})

t.test('tenants take turns, and so do the agents of each, however many agents or jobs there are', async t => {
  const { check } = judging(t, { limit, patience })
  await until(async () => await check(harmless, {}) === 'ok')
  const order: string[] = []
  const asked = (whose: string, schema: unknown = harmless, output: unknown = {}) => {
    const [tenant, agent] = whose.split('/') as [string, string]
    return check(schema, output, { tenant, agent }).finally(() => order.push(whose))
  }
  await Promise.all([asked('many/a', hostileSchema, hostileOutput), asked('many/a'), asked('many/a'), asked('other/a')])
  t.strictSame(order.splice(0), ['many/a', 'other/a', 'many/a', 'many/a'], 'an agent with many jobs')
  await Promise.all([asked('many/a', hostileSchema, hostileOutput), ...['b', 'c', 'd', 'e'].map(agent => asked(`many/${agent}`)), asked('other/a'), asked('other/a')])
  t.strictSame(order.splice(0), ['many/a', 'other/a', 'many/b', 'other/a', 'many/c', 'many/d', 'many/e'], 'a tenant with many agents')
  await Promise.all([asked('many/a', hostileSchema, hostileOutput), asked('many/a'), asked('many/a'), asked('many/b'), asked('many/b')])
  t.strictSame(order.splice(0), ['many/a', 'many/b', 'many/a', 'many/b', 'many/a'], 'the agents of one tenant')
})

t.test('a worker that finished in time is kept, even if the main thread was too busy to see it', async t => {
  const { check } = judging(t, { limit: 500, patience })
  let workers = 0
  const count = () => { workers++ }
  process.on('worker', count)
  t.teardown(() => process.off('worker', count))
  await until(async () => await check(harmless, {}) === 'ok')
  const before = workers
  await turn() // after it, the event loop handles timers first, then messages
  const underWay = check(harmless, {})
  for (const end = performance.now() + 700; performance.now() < end;);
  t.strictSame([await underWay, await check(harmless, {}), workers], ['ok', 'ok', before])
})

/** Starts the worker, and lets it run only where all cores are left by processes that never rest: it gets a hundredth of the time. */
async function starved (t: Test, options: ResultSchemaOptions): Promise<Judge> {
  const judge = judging(t, { patience, ...options })
  const before = readdirSync('/proc/self/task')
  await until(async () => await judge.check(harmless, {}) === 'ok')
  for (const thread of readdirSync('/proc/self/task')) if (!before.includes(thread)) setPriority(Number(thread), 19)
  for (let n = 0; n < availableParallelism(); n++) {
    const busy = spawn(process.execPath, ['--eval', 'for (const end = Date.now() + 60_000; Date.now() < end;);'], { stdio: 'ignore' })
    t.teardown(() => busy.kill('SIGKILL'))
  }
  return judge
}

t.test('what a job may take is the worker’s own time, however little of it a busy machine leaves', { skip: process.platform !== 'linux' && 'needs /proc' }, async t => {
  const { accept, check } = await starved(t, { limit: 150 })
  const began = performance.now()
  // A schema of the greatest length that it takes, and no trouble otherwise.
  t.equal(await accept({ properties: Object.fromEntries(Array.from({ length: 700 }, (_, n) => [`member${n}`, {}])) }), 'ok')
  t.comment(`accepted after ${Math.round(performance.now() - began)} ms`)
  t.equal(await check(hostileSchema, hostileOutput), 'result_schema_too_slow')
})

t.test('a job that a busy machine doesn’t get to is refused as unavailable, not as too slow', { skip: process.platform !== 'linux' && 'needs /proc' }, async t => {
  const { accept, check } = await starved(t, { limit: 30_000, maxJobTime: 200 })
  t.equal(await check(hostileSchema, hostileOutput), 'unavailable')
  t.equal(await accept({ title: 'behind it' }), 'ok')
})

t.test('one worker serves all jobs, and none runs before the first', async t => {
  let workers = 0
  const count = () => { workers++ }
  process.on('worker', count)
  t.teardown(() => process.off('worker', count))
  const { judge, accept } = judging(t)
  t.equal(workers, 0)
  await Promise.all([judge(harmless, {}), accept({ title: 'a' }), judge({}, {})])
  t.equal(workers, 1)
})

t.test('close refuses running and later jobs', async t => {
  const { schemas, accept, check } = judging(t)
  t.equal(await accept(hostileSchema), 'ok')
  const underWay = [check(hostileSchema, hostileOutput), check(harmless, {}), accept(harmless)]
  for (let i = 0; i < 100; i++) await turn()
  await schemas.close()
  t.strictSame(await Promise.all(underWay), ['unavailable', 'unavailable', 'unavailable'])
  t.strictSame([await check(harmless, {}), await accept(harmless)], ['unavailable', 'unavailable'])
  await schemas.close()
})

t.test('close works before the worker has started, and without one', async t => {
  const { schemas, accept } = judging(t)
  const early = accept(harmless)
  await schemas.close()
  t.equal(await early, 'unavailable')
  await new ResultSchemas().close()
})

t.test('an idle worker keeps no process alive, a busy one does', async t => {
  const script = `
    import { ResultSchemas } from '${projectRoot}/src/result-schema/result-schemas.ts'
    const schemas = new ResultSchemas({ limit: 60000, patience: 60000 })
    await schemas.accept(Buffer.from('{}'), { tenant: 't', agent: 'a' })
    await schemas.check(Buffer.from('{}'), undefined, { tenant: 't', agent: 'a' })
    schemas.check(Buffer.from('{}'), undefined, { tenant: 't', agent: 'a' }).then(() => console.log('checked'))
  `
  const { stdout } = await promisify(execFile)(process.execPath, ['--import=tsx', '--input-type=module', '--eval', script], { cwd: projectRoot })
  t.equal(stdout, 'checked\n')
})
