/** What a request brings is kept and given back as it came; and what model.test.ts has no words for. */
import t from 'tap'
import { loadScripts } from '../../src/redis/scripts.ts'
import { testRedis } from '../helpers/redis.ts'
import { answer, approve, ask, catchIt, done, dumped, lifetimes, member, pass, put, raw, read, refused, reject, run, sourceAt, status, tag, tenant } from '../helpers/scripts.ts'
import type { State } from '../helpers/states.ts'
import { T, at, digest, payload, schema, states } from '../helpers/states.ts'

const passer = { agent: 'passer', token: 'ptok', deadline: T }
const catcher = { agent: 'A', token: 'ctok', deadline: at.caught }

t.test('the payload is bytes', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
  await pass(on, T, passer, false, bytes)
  const key = on.keys.handoff(tag, member)
  t.strictSame(await test.redis.hgetBuffer(key, 'p'), bytes)
  const given = await test.redis.callBuffer('EVAL', sourceAt('catch', T), 2, key, on.keys.due(tag, 'acme'), T, 'A ctok') as unknown[]
  t.strictSame(given[2], bytes)
})

t.test('a catch after the approval carries the decision, its note as the bytes that came', async t => {
  const on = raw(testRedis(t))
  const note = Buffer.from('"a\\u0041 ä 𝄞  \\ud800 b"')
  await put(on, states['pending, waiting'])
  await approve(on, at.decided, { agent: 'approver', token: 'dectok', deadline: at.decided }, note)
  t.strictSame(await catchIt(on, at.caught, catcher), ['caught', at.passed, payload, `${at.decided} approver dectok ${note.toString()}`, null, null, null, null])
})

t.test('a decision takes it out of what waits for its inbox, and only a yes lets it in', async t => {
  const on = raw(testRedis(t))
  const inbox = on.keys.inbox(tag, tenant, 'desk')
  const keys = [on.keys.handoff(tag, member), on.keys.due(tag, tenant), on.keys.waiting(tag, tenant), inbox]
  const lists = () => Promise.all([inbox, `${inbox}:waiting`].map(list => on.redis.zrange(list, '0', '-1')))
  for (const [decision, entered] of [[reject, []], [approve, [member]]] as const) {
    await put(on, states.absent)
    await run(on, 'pass', T, keys, [T, 'passer ptok', lifetimes.expiresIn, ` tdesk l3 h${digest}`, payload])
    t.strictSame(await lists(), [[], [member]])
    await decision(on, at.decided, { agent: 'approver', token: 'dectok', deadline: at.decided })
    t.strictSame(await lists(), [entered, []])
  }
})

t.test('a trace stands behind the token, and the token alone says whether it is the same operation', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const asking = (token: string) => pass(on, T, { ...passer, token })
  for (const first of ['ptok', 'ptok/00-t1', '-', '-/00-t1']) {
    await put(on, states.absent)
    t.strictSame(await asking(first), ['passed', T, T + 1000])
    const before = await test.dump()
    const [operation, trace = null] = first.split('/')
    for (const other of ['', '/00-t1', '/00-t2']) t.strictSame(await asking(operation + other), ['replayed', T, T + 1000], `${first}, then ${operation}${other}`)
    for (const other of ['other', 'other/00-t1', 'ptok1', 'pto']) t.strictSame(await asking(other), ['reused'], `${first}, then ${other}`)
    t.strictSame(await test.dump(), before, 'the first trace stays')
    for (const outcome of ['caught', 'replayed']) t.strictSame((await catchIt(on, at.caught, catcher)).slice(0, 5), [outcome, T, '"task":"new"', null, trace], 'and is given back')
    t.match(await catchIt(on, at.caught, { ...catcher, agent: 'B' }), ['already_caught'])
    t.strictSame(await done(on, at.caught, catcher), ['done', at.caught], 'and done finds its words')
  }
})

t.test('a pass with options may only ask first: that makes nothing', async t => {
  const test = testRedis(t)
  const on = raw(test)
  t.strictSame(await pass(on, T, passer, false, payload, ' ?'), ['fresh'])
  t.strictSame(await test.dump(), {})
  await pass(on, T, passer, false, payload, ' a80')
  t.strictSame(await pass(on, T, passer, false, payload, ' ?'), ['replayed', T, at.expires, at.available])
})

t.test('a result is to be held to the schema first, and to that one: nothing happens before', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const state: State = states['caught with schema']
  const asking = { agent: 'A', token: 'dtok', deadline: state.now }
  await put(on, state)
  for (const satisfied of ['', 'another', 'itsschema2']) {
    t.strictSame((await done(on, state.now, asking, '', satisfied) as unknown[]).slice(0, 3), ['unchecked', 'itsschema', schema], satisfied)
    t.strictSame(await test.dump(), dumped(state), 'nothing changed')
  }
  t.strictSame(await done(on, state.now, { ...asking, agent: 'B' }), refused('not_the_catcher', state), 'who may not ask is told that')
})

t.test('so is an answer', async t => {
  const on = raw(testRedis(t))
  const { now }: State = states.caught
  const person = { agent: 'person', token: 'atok', deadline: now }
  await put(on, states.caught)
  t.match(await ask(on, now, { agent: 'A', token: 'qtok', deadline: now }, { digest: 'itsschema', schema }), ['asked'])
  for (const satisfied of ['', 'another', 'itsschema2']) t.strictSame(await answer(on, now, person, satisfied), ['unchecked', 'itsschema', schema], satisfied)
  t.strictSame(await answer(on, now, person, 'itsschema'), ['answered', now])
})

t.test('a question is its catcher’s, and one at a time', async t => {
  const on = raw(testRedis(t))
  const { now }: State = states.caught
  const asking = { agent: 'A', token: 'qtok', deadline: now }
  await put(on, states.pending)
  t.match(await ask(on, states.pending.now, asking), ['not_caught'])
  await put(on, states.caught)
  t.match(await ask(on, now, asking), ['asked', 'askId', now])
  t.match(await ask(on, now, asking), ['replayed', 'askId', now])
  t.match(await ask(on, now, { ...asking, agent: 'B' }), ['not_the_catcher'])
  t.match(await ask(on, now, { ...asking, token: 'another' }), ['already_asked'])
})

t.test('a name that another word of the record has is not the catcher’s', async t => {
  const on = raw(testRedis(t))
  const { now, hash }: State = states.caught
  const [, , , , passedBy, token, caught, deadline] = hash!.s.split(' ') as string[]
  for (const agent of [passedBy!, token!, caught!, deadline!, 'ctok']) {
    await put(on, states.caught)
    t.strictSame(await done(on, now, { agent, token: 'dtok', deadline: now }), refused('not_the_catcher', states.caught), agent)
    await put(on, { ...states.caught, hash: { ...hash!, s: hash!.s.replace(' A ', ` ${agent} `) } })
    t.strictSame(await done(on, now, { agent, token: 'dtok', deadline: now }), ['done', now], `${agent}, who caught it`)
  }
})

t.test('a key that is limited to inboxes reads what is in these, before anything else is judged', async t => {
  const on = raw(testRedis(t))
  for (const name of ['caught with windows', 'done with schema', 'pending with windows'] as const) {
    const { hash, ...state }: State = states[name]
    const addressed = { ...state, hash: { ...hash!, x: `${hash!.x} tdesk` } }
    await put(on, addressed)
    t.strictSame(await read(on, state.now, 'A', ['first', 'desk', 'last']), await read(on, state.now, 'A'), name)
    t.strictSame(await read(on, state.now, 'A', ['elsewhere', 'desk2']), [...refused('not_addressee', addressed), null], name)
  }
})

t.test('its catcher reads again what has no more bytes than may be, and else nothing', async t => {
  const on = raw(testRedis(t))
  const { now }: State = states.caught
  await put(on, states.caught)
  const upTo = (most: number) => run(on, 'read', now, [on.keys.handoff(tag, member)], ['A', '', most])
  t.match(await upTo(payload.length), ['caught', at.passed, payload])
  t.strictSame(await upTo(payload.length - 1), ['larger'])
})

t.test('Redis itself refuses a write from a script that only reads', async t => {
  const test = testRedis(t)
  const on = raw(test)
  for (const { name, source, writes } of Object.values(loadScripts())) if (!writes) t.match(source, /^#!lua flags=no-writes\n/, name)
  const [flags, ...rest] = sourceAt('status', T).split('\n')
  const writing = [flags, `redis.call('SET', '${test.prefix}:{${tag}}:written', '1')`, ...rest].join('\n')
  await t.rejects(test.redis.eval(writing, 1, on.keys.handoff(tag, member)), /Write commands are not allowed from read-only scripts/)
  t.strictSame(await status(on, T), ['not_found'])
})

t.test('as production runs them: by digest, by Redis’s own clock', async t => {
  const { redis, prefix } = testRedis(t)
  const on = raw({ redis, prefix })
  const scripts = loadScripts()
  for (const script of Object.values(scripts)) t.equal(await redis.script('LOAD', script.source), script.sha1, `${script.name}: the digest`)
  const time = async () => {
    const [seconds, microseconds] = await redis.time()
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000)
  }
  const passAt = async (deadline: number) =>
    await redis.evalsha(scripts.pass.sha1, 2, on.keys.handoff(tag, member), on.keys.due(tag, 'acme'), deadline, 'passer ptok', lifetimes.expiresIn, payload) as number | [string]
  const before = await time()
  t.strictSame(await passAt(before - 1), ['late'])
  const created = await passAt(before + 60_000) as number
  t.ok(created >= before && created <= await time())
})

t.test('a moment early in its second is that moment', async t => {
  const { redis, prefix } = testRedis(t)
  const on = raw({ redis, prefix })
  for (const [micros, milliseconds] of [['7', 0], ['42000', 42], ['999999', 999]] as const) {
    const scripts = loadScripts({ edit: source => source.replaceAll("redis.call('TIME')", `{ '${T / 1000}', '${micros}' }`) })
    const keys = [on.keys.handoff(tag, `acme:${micros}`), on.keys.due(tag, 'acme')]
    const args = [T + 1000, 'passer ptok', lifetimes.expiresIn, payload]
    t.equal(await redis.eval(scripts.pass.source, keys.length, ...keys, ...args), T + milliseconds, micros)
  }
})
