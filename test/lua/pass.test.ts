import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import { dumped, lifetimes, member, pass, put, raw, sourceAt, tag } from '../helpers/scripts.ts'
import { line, schema } from '../helpers/further-states.ts'
import { T, at, digest, payload, stateNames, states } from '../helpers/states.ts'
import type { State, StateName } from '../helpers/states.ts'

const passer = { agent: 'passer', token: 'ptok' }
const callers = [passer, { agent: 'passer', token: 'other' }, { agent: 'B', token: 'ptok' }, { agent: 'B', token: 'other' }]

t.test('a handoff that is there already stays as it is, in whatever state', async t => {
  const test = testRedis(t)
  const on = raw(test)
  for (const name of stateNames.filter(name => name !== 'absent')) {
    const state = states[name]
    for (const { agent, token } of callers) {
      for (const requireHuman of [false, true]) {
        const label = `${name}; ${agent}, ${token}${requireHuman ? ', with a person' : ''}`
        await put(on, state)
        // The agent is not compared: it is in what the id and the token are derived from.
        const available = name.startsWith('delayed') ? [at.available] : []
        // Nobody passed a second attempt, so it is nobody's answer.
        const expected = token === 'ptok' && !name.startsWith('second') ? ['replayed', at.passed, at.expires, ...available] : ['reused']
        t.strictSame(await pass(on, state.now, { agent, token, deadline: state.now }, requireHuman), expected, label)
        t.strictSame(await test.dump(), dumped(state), `${label}: nothing changed`)
        t.strictSame(await pass(on, state.now, { agent, token, deadline: state.now - 1 }, requireHuman), ['late'], `${label}, late`)
        t.strictSame(await test.dump(), dumped(state), `${label}, late: nothing changed`)
      }
    }
  }
})

t.test('one that is not there is made', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const made = (approval: string, p: string, more: { t?: string, h?: string } = {}) => ({
    now: T,
    hash: { s: `pending ${approval} ${T} ${T + lifetimes.expiresIn} passer ptok`, p, ...more },
    expires: T + lifetimes.expiresIn + lifetimes.retention,
    due: T + lifetimes.expiresIn,
  })
  const asking = { ...passer, deadline: T }

  t.strictSame(await pass(on, T, { ...asking, deadline: T - 1 }), ['late'])
  t.strictSame(await pass(on, T, { ...asking, deadline: T - 1 }, true), ['late'])
  t.strictSame(await test.dump(), {}, 'too late makes nothing')

  t.strictSame(await pass(on, T, asking), ['passed', T, T + 1000], 'at its very deadline it still runs')
  t.strictSame(await test.dump(), dumped(made('none', '"task":"new"')))

  await put(on, states.absent)
  t.strictSame(await pass(on, T, asking, true), ['passed', T, T + 1000])
  t.strictSame(await test.dump(), dumped({ ...made('waiting', '"task":"new"', { t: '"new"', h: digest }), waiting: T }))

  t.strictSame(await pass(on, T + 10, { ...asking, deadline: T + 10 }, true, '"task":"another"'), ['replayed', T, T + 1000])
  t.strictSame(await test.dump(), dumped({ ...made('waiting', '"task":"new"', { t: '"new"', h: digest }), waiting: T }), 'the same again changes nothing, whatever it brings')
})

t.test('what isn’t plain is made with what it is passed with, and says so in front', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const asking = { ...passer, deadline: T }
  const made: Array<[name: StateName, options: string, requireHuman?: boolean]> = [
    ['delayed', ' a80'], ['delayed, waiting', ' a80', true], ['pending with windows', ' w1500 b300'], ['pending with attempts', ' m3 d200'],
    ['pending with attempts, waiting', ' m3 d200', true], ['pending with schema', ` sitsschema z${schema.length}`], ['pending in a line', line],
  ]
  for (const [name, options, requireHuman = false] of made) {
    const state: State = states[name]
    const bytes = payload + (state.hash!.r ?? '')
    const reply = [T, at.expires, ...name.startsWith('delayed') ? [at.available] : []]
    await put(on, states.absent)
    t.strictSame(await pass(on, T, asking, requireHuman, bytes, ' ?'), ['fresh'], `${name}: only asked`)
    t.strictSame(await test.dump(), {}, 'makes nothing')
    t.strictSame(await pass(on, T, { ...asking, deadline: T - 1 }, requireHuman, bytes, options), ['late'])
    t.strictSame(await test.dump(), {}, 'too late makes nothing')
    t.strictSame(await pass(on, T, asking, requireHuman, bytes, options), ['passed', ...reply], name)
    t.strictSame(await test.dump(), dumped(state), name)
    for (const again of [options, '', ' ?']) t.strictSame(await pass(on, T + 10, { ...asking, deadline: T + 10 }, requireHuman, bytes, again), ['replayed', ...reply])
    t.strictSame(await test.dump(), dumped(state), 'and stays as it was made')
  }
})

t.test('the payload is bytes, kept and given back as they are', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
  await pass(on, T, { ...passer, deadline: T }, false, bytes)
  const key = on.keys.handoff(tag, member)
  t.strictSame(await test.redis.hgetBuffer(key, 'p'), bytes)
  const given = await test.redis.callBuffer('EVAL', sourceAt('catch', T), 2, key, on.keys.due(tag),
    T, 'A ctok') as unknown[]
  t.strictSame(given[2], bytes)
})

t.test('a trace stands behind the token, and the token alone says whether it is the same operation', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const asking = (token: string) => pass(on, T, { agent: 'passer', token, deadline: T })
  for (const first of ['ptok', 'ptok/00-t1', '-', '-/00-t1']) {
    await put(on, states.absent)
    t.strictSame(await asking(first), ['passed', T, T + 1000])
    t.match(await test.redis.hget(on.keys.handoff(tag, member), 's'), new RegExp(` passer ${first}$`))
    const before = await test.dump()
    const [operation] = first.split('/')
    for (const trace of ['', '/00-t1', '/00-t2']) t.strictSame(await asking(operation + trace), ['replayed', T, T + 1000], `${first}, then ${operation}${trace}`)
    for (const other of ['other', 'other/00-t1', 'ptok1', 'pto']) t.strictSame(await asking(other), ['reused'], `${first}, then ${other}`)
    t.strictSame(await test.dump(), before, 'the first trace stays')
  }
})
