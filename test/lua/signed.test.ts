/** A signed decision: lua/decide.lua takes it for the handoff and the moment that were signed, and for no other. */
import t from 'tap'
import { catchIt, decide, dumped, fail, member, pass, put, raw, tag } from '../helpers/scripts.ts'
import { T, at, digest, nextId, states } from '../helpers/states.ts'
import { testRedis } from '../helpers/redis.ts'

const approver = { agent: 'approver', token: 'dectok', deadline: at.decided }
const jws = 'eyJh.eyJp.c2ln'
const signedAt = (moment: number, { passed = T, content = digest }: { passed?: number, content?: string } = {}) => `${moment} ${passed} ${content} ${jws}`

t.test('it is taken for up to 2 s, and the decision is of the moment that was signed', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const waiting = states['pending, waiting']
  for (const [moment, isTaken] of [[at.decided - 2001, false], [at.decided + 1, false], [at.decided, true], [at.decided - 1, true], [at.decided - 2000, true]] as const) {
    await put(on, waiting)
    const reply = await decide(on, at.decided, 'approved', approver, { note: '"so"', signed: signedAt(moment) })
    t.strictSame(reply, isTaken ? ['approved', moment] : ['outdated'], String(moment - at.decided))
    if (!isTaken) t.strictSame(await test.dump(), dumped(waiting), 'nothing changed')
    else t.equal(await test.redis.hget(on.keys.handoff(tag, member), 'd'), `${moment} approver dectok/${digest}..${jws} "so"`)
  }
})

t.test('it is taken for the handoff that was signed alone, after all refusals', async t => {
  const on = raw(testRedis(t))
  const waiting = states['pending, waiting']
  for (const other of [{ passed: T - 1 }, { content: 'other' }, { content: '' }]) {
    await put(on, waiting)
    t.strictSame(await decide(on, at.decided, 'rejected', approver, { signed: signedAt(at.decided, other) }), ['outdated'])
    const [code] = await decide(on, at.decided, 'rejected', approver, { seen: T + 1, signed: signedAt(at.decided, other) }) as [string]
    t.equal(code, 'content_changed')
    t.match(await decide(on, at.decided, 'rejected', { ...approver, agent: 'passer' }, { signed: signedAt(at.decided, other) }), ['self_approval'])
  }
  await put(on, states['pending, approved'])
  t.match(await decide(on, at.decided, 'approved', { ...approver, token: 'new' }, { signed: signedAt(1) }), ['already_decided'])
})

t.test('the end of a delay isn’t between the moment and the decision: its inbox goes by that', async t => {
  const on = raw(testRedis(t))
  const options = ` a${at.available - T} tred`
  for (const [moment, now, isTaken] of [[at.available - 1, at.available, false], [at.available, at.available, true], [at.available - 2, at.available - 1, true]] as const) {
    await put(on, states.absent)
    await pass(on, T, { agent: 'passer', token: 'p', deadline: T }, true, '"task":"t"', options)
    const reply = await decide(on, now, 'approved', { ...approver, deadline: now }, { signed: signedAt(moment) })
    t.strictSame(reply, isTaken ? ['approved', moment] : ['outdated'])
  }
})

t.test('who signed in stands before it, and the same operation is told its moment', async t => {
  const test = testRedis(t)
  const on = raw(test)
  await put(on, states['pending, waiting'])
  for (const outcome of ['rejected', 'replayed']) {
    t.strictSame(await decide(on, at.decided, 'rejected', approver, { itsDigest: digest, person: 'LCJh', signed: signedAt(at.decided - 5) }), [outcome, at.decided - 5])
  }
  t.equal(await test.redis.hget(on.keys.handoff(tag, member), 'd'), `${at.decided - 5} approver dectok/${digest}.LCJh.${jws} null`)
  const [field] = (await test.redis.hkeys(`${on.prefix}:{${tag}}:decisions:${member}`)).filter(name => name.endsWith('s'))
  t.equal(await test.redis.hget(`${on.prefix}:{${tag}}:decisions:${member}`, field!), jws, 'the list of decisions has it')
})

t.test('the next attempt keeps it', async t => {
  const test = testRedis(t)
  const on = raw(test)
  await put(on, states.absent)
  await pass(on, T, { agent: 'passer', token: 'p', deadline: T }, true, '"task":"t"', ' m2 d0')
  await decide(on, at.decided, 'approved', approver, { signed: signedAt(at.decided) })
  await catchIt(on, at.caught, { agent: 'A', token: 'ctok', deadline: at.caught })
  await fail(on, at.done, { agent: 'A', token: 'ftok', deadline: at.done })
  const next = on.keys.handoff(tag, `acme:${nextId}`)
  for (const key of [on.keys.handoff(tag, member), next]) t.equal(await test.redis.hget(key, 'd'), `${at.decided} approver dectok/${digest}..${jws} null`)
})
