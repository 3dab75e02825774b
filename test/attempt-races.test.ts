import { isDeepStrictEqual } from 'node:util'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { tagOf } from '../src/core/ids.ts'
import { KeyNames, memberOf } from '../src/store/keys.ts'
import { testApp } from './helpers/app.ts'
import type { TestApp, Who } from './helpers/app.ts'
import { isWhole } from './helpers/extent.ts'

/** What ends a handoff, and its next attempt, asked for at once through two replicas: one outcome, which explains every answer. */

type Answer = Awaited<ReturnType<TestApp['call']>>

class Pair {
  readonly replicas: readonly [TestApp, TestApp]
  #turn = 0

  constructor (first: TestApp, second: TestApp) {
    this.replicas = [first, second]
  }

  /** By the two in turn. */
  call (who: Who, method: 'GET' | 'POST', path: string, body?: object, key?: string): Promise<Answer> {
    return this.replicas[this.#turn++ % 2]!.call(who, method, path, body, key === undefined ? {} : { 'idempotency-key': key })
  }

  /** One that bob has caught. */
  async caught (more: object = {}): Promise<string> {
    const { handoff_id: id } = (await this.call('alice', 'POST', '/api/pass', { task: 't', max_attempts: 2, retry_delay: 0, ...more })).json()
    await this.call('bob', 'GET', `/api/catch/${id}`)
    return id
  }

  async status (id: string): Promise<any> {
    return (await this.call('alice', 'GET', `/api/status/${id}`)).json()
  }

  /** Which of these have the payload. */
  async holders (ids: readonly string[]): Promise<string[]> {
    const { redis, prefix } = this.replicas[0]
    const held = await Promise.all(ids.map(id => redis.hget(new KeyNames(prefix).handoff(tagOf(id), memberOf('default', id)), 'p')))
    return ids.filter((_, n) => held[n]?.startsWith('"task"'))
  }

  /** How many handoffs there are in Redis. */
  async count (): Promise<number> {
    return Object.keys(await this.replicas[0].dump()).filter(name => name.includes(':h:')).length
  }
}

async function pair (t: Test): Promise<Pair> {
  const first = await testApp(t)
  return new Pair(first, await testApp(t, {}, { prefix: first.prefix }))
}

/**
 * All at once; their answers by name. Each begins some turns of the event loop later: what is sent without a body would always overtake the
 * others.
 */
async function atOnce<Name extends string> (asked: Record<Name, () => Promise<Answer>>): Promise<Record<Name, Answer>> {
  const answers = (Object.entries(asked) as Array<[Name, () => Promise<Answer>]>).map(async ([name, ask]) => [name, await soon(ask)])
  return Object.fromEntries(await Promise.all(answers))
}

async function soon<T> (act: () => Promise<T>): Promise<T> {
  for (let turns = Math.random() * 12; turns > 1; turns--) await nextTurn()
  return await act()
}

/** What an answer comes to: its code or status, the successor that it names, and whether it is a replay. */
function told (answer: Answer): string {
  const { code, handoff_id: id, status, reissued_as: successor } = answer.json()
  const next = answer.statusCode === 201 ? id : successor
  return [code ?? status, next ?? 'no successor', ...answer.headers['idempotency-replayed'] === 'true' ? ['again'] : []].join(', ')
}

type Op = 'done' | 'fail' | 'cancel' | 'reissue'

/** What the others are told by who was first. @param s what is told of the successor */
const outcomes: Record<Op, { status: string, hasSuccessor: boolean, refusal: string, told (s: string): Record<Op, string> }> = {
  done: {
    status: 'done', hasSuccessor: false, refusal: 'already_done', told: s => ({ done: `done, ${s}`, fail: `already_done, ${s}`, cancel: `already_done, ${s}`, reissue: `already_done, ${s}` }),
  },
  fail: {
    status: 'failed', hasSuccessor: true, refusal: 'already_failed', told: s => ({ done: `already_failed, ${s}`, fail: `failed, ${s}`, cancel: `already_failed, ${s}`, reissue: `pending, ${s}, again` }),
  },
  cancel: {
    status: 'cancelled', hasSuccessor: false, refusal: 'cancelled', told: s => ({ done: `cancelled, ${s}`, fail: `cancelled, ${s}`, cancel: `cancelled, ${s}`, reissue: `cancelled, ${s}` }),
  },
  reissue: {
    // Of what is cancelled already a cancel is told so: that names no successor.
    status: 'cancelled', hasSuccessor: true, refusal: 'cancelled', told: s => ({ done: `cancelled, ${s}`, fail: `cancelled, ${s}`, cancel: 'cancelled, no successor', reissue: `pending, ${s}` }),
  },
}

const rounds = isWhole ? 1000 : 15
const meetings = isWhole ? 300 : 8
/** Whether each of several was first at times, of which a short run may have too few. */
const isFair = (times: Record<string, number>) => !isWhole || Object.values(times).every(one => one > 0)

t.test('at once through two services', async t => {
  const both = await pair(t)
  await t.test(`of done, fail, cancel, heartbeat and reissue one ends it, on ${rounds} handoffs`, t => oneEnds(t, both))
  await t.test('of many reissues one makes the successor, and all answers name it', t => oneReissues(t, both))
  await t.test('when two catch a successor while the predecessor’s fail is retried, one has it, and the answers are the first ones', t => oneCatches(t, both))
})

async function oneEnds (t: Test, both: Pair): Promise<void> {
  const before = await both.count()
  const won = { done: 0, fail: 0, cancel: 0, reissue: 0 }
  for (let round = 0; round < rounds; round++) {
    const id = await both.caught({ heartbeat_within: 60 })
    const { heartbeat, ...ends } = await atOnce({
      done: () => both.call('bob', 'POST', `/api/done/${id}`, { output: {} }),
      fail: () => both.call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm' } }),
      cancel: () => both.call('alice', 'POST', `/api/cancel/${id}`, { force: true }),
      heartbeat: () => both.call('bob', 'POST', `/api/heartbeat/${id}`),
      reissue: () => both.call('alice', 'POST', `/api/reissue/${id}`),
    })
    const { status, reissued_as: successor } = await both.status(id)
    const first = (Object.keys(outcomes) as Op[]).find(op => outcomes[op].status === status && outcomes[op].hasSuccessor === (successor !== undefined))!
    won[first]++
    const s = successor ?? 'no successor'
    const answers = Object.fromEntries(Object.entries(ends).map(([op, answer]) => [op, told(answer)]))
    if (!isDeepStrictEqual(answers, outcomes[first].told(s))) t.fail(`${first} was first, and ${JSON.stringify(answers)}`)
    if (!['caught, no successor', `${outcomes[first].refusal}, ${s}`].includes(told(heartbeat))) t.fail(`${first} was first, and the heartbeat ${told(heartbeat)}`)
    const holders = await both.holders([id, ...successor === undefined ? [] : [successor]])
    if (holders.join() !== (successor ?? '')) t.fail(`${first} was first, and the payload is in ${holders}`)
  }
  t.comment(won)
  t.ok(isFair(won), 'each was first at times')
  t.equal(await both.count(), before + rounds + won.fail + won.reissue, 'and there is no other successor')
}

async function oneReissues (t: Test, both: Pair): Promise<void> {
  const [before, askers] = [await both.count(), isWhole ? 50 : 20]
  for (const end of [null, 'fail', 'decline']) {
    const id = await both.caught({ max_attempts: 1 })
    if (end === 'fail') await both.call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm' } })
    if (end === 'decline') await both.call('bob', 'POST', `/api/decline/${id}`, { reason: 'r' })
    const answers = await Promise.all(Array.from({ length: askers }, () => both.call('alice', 'POST', `/api/reissue/${id}`)))
    t.ok(answers.every(({ statusCode }) => statusCode === 201))
    t.equal(answers.filter(({ headers }) => headers['idempotency-replayed'] === 'true').length, askers - 1, 'the others are replays')
    t.equal(new Set(answers.map(({ body }) => body)).size, 1, 'of the same answer')
    t.equal((await both.status(id)).reissued_as, answers[0]!.json().handoff_id)
  }
  t.equal(await both.count(), before + 6)
}

t.test('when a fail and the sweep meet at the deadline, one of them makes the successor', async t => {
  const both = await pair(t)
  const [first, second] = both.replicas
  const ended = { failed: 0, expired: 0 }
  // Ahead of the true time, so that no key's own TTL comes into it.
  const start = Date.now() + 3600_000
  for (let round = 0; round < meetings; round++) {
    await first.setClock(start)
    const id = await both.caught({ work_within: 5 })
    await first.setClock(start + 4999)
    const sweep = () => second.store.handoffs.sweep(tagOf(id), 100)
    let answer: Answer
    const acts: Array<() => Promise<unknown>> = [
      async () => { answer = await first.call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm' } }) },
      sweep,
      () => first.setClock(start + 5000),
    ]
    await Promise.all(acts.map(soon))
    await sweep()
    const { status, ended_at: endedAt, reissued_as: successor } = await both.status(id)
    ended[status as 'failed' | 'expired']++
    const seen = [told(answer!), Date.parse(endedAt) - start]
    const explained = status === 'failed'
      ? [[`failed, ${successor}`, 4999]]
      // The sweep may have been there before the fail or not.
      : [['expired, no successor', 5000], [`expired, ${successor}`, 5000]]
    if (!explained.some(one => isDeepStrictEqual(one, seen))) t.fail(`it ${status}, and the fail was told ${seen}`)
    if ((await both.holders([id, successor])).join() !== successor) t.fail('the payload is with the successor alone')
  }
  t.comment(ended)
  t.ok(isFair(ended), 'either was first at times')
  t.equal(await both.count(), 2 * meetings, 'and each has one successor')
})

async function oneCatches (t: Test, both: Pair): Promise<void> {
  const before = await both.count()
  for (let round = 0; round < meetings; round++) {
    const id = await both.caught()
    const fail = () => both.call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm' } }, 'k')
    const original = await fail()
    const { reissued_as: successor } = original.json()
    const { alice, bob, ...again } = await atOnce({
      alice: () => both.call('alice', 'GET', `/api/catch/${successor}`),
      bob: () => both.call('bob', 'GET', `/api/catch/${successor}`),
      again: fail,
      onceMore: fail,
    })
    const codes = [alice, bob].map(answer => answer.json().code ?? 'has it').sort()
    if (codes.join() !== 'already_caught,has it') t.fail(codes.join())
    const { caught_by: by, attempt } = await both.status(successor)
    if (by !== (alice.statusCode === 200 ? 'alice' : 'bob') || attempt !== 2) t.fail(`${by} has attempt ${attempt}`)
    for (const answer of Object.values(again)) if (answer.body !== original.body || answer.headers['idempotency-replayed'] !== 'true') t.fail(answer.body)
  }
  t.equal(await both.count(), before + 2 * meetings, 'each has one successor')
}
