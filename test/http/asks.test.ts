import t from 'tap'
import { testApp } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { bearer, newKey } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'
import { timed } from '../helpers/waits.ts'
import { tagOf } from '../../src/core/ids.ts'

/** Questions in the middle of the work. On one Redis, and as in a Cluster. */

const options = { retention: 600_000, workTtl: 600_000, eventsRetention: 30 * 86_400_000 }
const one = await testApp(t, {}, options)
const spread = await testApp(t, {}, { ...options, isSpread: true })
const start = Math.floor(Date.now() / 1000) * 1000

function work (service: TestApp) {
  const { call } = service
  const post = (who: Who, path: string, body: object = {}, headers?: Record<string, string>) => call(who, 'POST', path, body, headers)
  return {
    ...service,
    post,
    at: (seconds: number) => service.setClock(start + seconds * 1000),
    time: (seconds: number) => new Date(start + seconds * 1000).toISOString(),
    ask: (id: string, body: object = {}, headers?: Record<string, string>) => post('bob', `/api/ask/${id}`, { question: 'Which one?', ...body }, headers),
    asked: (id: string, who: Who = 'bob', wait = 0) => call(who, 'GET', `/api/ask/${id}?wait=${wait}`),
    answer: (id: string, askId: string, answer: object = {}, who: Who = 'approver', more: object = {}) =>
      post(who, `/api/answer/${id}`, { ask_id: askId, answer, ...more }),
    status: async (id: string) => (await call('alice', 'GET', `/api/status/${id}`)).json(),
    list: async (who: Who = 'approver', query = '') => (await call(who, 'GET', `/api/asks?limit=100${query}`)).json().items as Array<Record<string, unknown>>,
    // Not by handoff_id: that is searched for by the time of the pass, and the feed has a clock that nobody sets.
    ended: (id: string) => until(async () => {
      const { items } = (await call('alice', 'GET', '/api/events?after=0-0&types=handoff.ask_ended')).json()
      const found = items.filter(({ data }: { data: { handoff_id: string } }) => data.handoff_id === id)
      return found.length > 0 ? found : null
    }),
    sweep: (id: string) => service.store.handoffs.sweep(tagOf(id), 100, true)
  }
}

for (const [where, service] of [['one Redis', one], ['as in a Cluster', spread]] as const) {
  t.test(`a person is asked and answers: ${where}`, async t => {
    const { at, time, caught, ask, asked, answer, status, list, post } = work(service)
    await at(0)
    const id = await caught({ work_within: 100, heartbeat_within: 20, to: 'bob', labels: { run: '1' } })
    await at(10)
    const first = await ask(id, { details: { a: 1.0 }, schema: { type: 'object', required: ['x'] } })
    t.equal(first.statusCode, 201)
    const { ask_id: askId } = first.json()
    t.strictSame(first.json(), {
      ask_id: askId,
      handoff_id: id,
      state: 'open',
      question: 'Which one?',
      asked_at: time(10),
      expires_at: time(10 + 86_400),
      answer_url: first.json().answer_url
    })
    t.match(first.json().answer_url, new RegExp(`/approvals/${id}$`))
    t.match(await status(id), {
      status: 'caught',
      work_expires_at: null,
      heartbeat_expires_at: null,
      ask: {
        ask_id: askId, state: 'open', of: 'person', asked_at: time(10), answered_at: null, answered_by: null
      }
    })
    t.match((await list()).find(item => item.handoff_id === id), {
      ask_id: askId,
      question: 'Which one?',
      to: 'bob',
      labels: { run: '1' },
      asked_by: 'bob',
      asked_at: time(10),
      expires_at: time(10 + 86_400),
      answer_url: first.json().answer_url
    })
    t.equal(isProblem(t, await ask(id), 409, 'already_asked').ask_id, askId)
    await at(1000)
    t.match((await post('bob', `/api/heartbeat/${id}`, { extend_by: 50 })).json(), { work_expires_at: null, heartbeat_expires_at: null, ask: { ask_id: askId, state: 'open' } })
    t.match(isProblem(t, await answer(id, askId, {}), 422, 'result_invalid').errors, [{ pointer: /^\/answer/ }])
    // Of each character the low byte is the id's.
    const alike = askId.replace(/./g, (letter: string) => String.fromCharCode(0x100 + letter.charCodeAt(0)))
    for (const other of ['other', '', 'é', `é\r\n\0${askId}`, '€'.repeat(100), 'a'.repeat(1000), alike]) {
      t.match(isProblem(t, await answer(id, other, { x: 1 }), 409, 'content_changed').detail, /another ask_id/)
    }
    isProblem(t, await answer(id, askId, { x: 1 }, 'alice'), 403, 'insufficient_scope')
    const given = await answer(id, askId, { x: 1 }, 'approver', { note: 'So.' })
    t.strictSame(given.json(), { ask_id: askId, state: 'answered', answered_at: time(1000), answered_by: 'carol' })
    const again = await answer(id, askId, { x: 1 }, 'approver', { note: 'So.' })
    t.strictSame(again.json(), given.json())
    t.equal(again.headers['idempotency-replayed'], 'true')
    isProblem(t, await answer(id, askId, { x: 2 }), 409, 'already_answered')
    t.match(await status(id), {
      work_expires_at: time(1140), heartbeat_expires_at: time(1020), ask: { state: 'answered', answered_at: time(1000), answered_by: 'carol' }
    }, 'what was left of the work, and what a heartbeat added, counts from the answer')
    t.strictSame((await asked(id)).json(), {
      ask_id: askId,
      handoff_id: id,
      state: 'answered',
      question: 'Which one?',
      of: 'person',
      details: { a: 1 },
      schema: { type: 'object', required: ['x'] },
      asked_at: time(10),
      expires_at: time(10 + 86_400),
      answer: { x: 1 },
      answered_at: time(1000),
      answered_by: 'carol',
      note: 'So.'
    })
    t.match((await asked(id)).body, /"details":\{"a":1\}/)
    t.notOk((await list()).some(item => item.handoff_id === id), 'it left the list')
    t.equal((await post('bob', `/api/done/${id}`)).statusCode, 200)
    t.match((await asked(id)).json(), { state: 'answered', answer: { x: 1 } }, 'and stays readable')
  })

  t.test(`whatever ends the work withdraws its question, and the event says so: ${where}`, async t => {
    const { at, caught, ask, asked, answer, list, post, call, pass, ended, redis, prefix } = work(service)
    await at(2000)
    const ends: Record<string, (id: string) => Promise<unknown>> = {
      done: id => post('bob', `/api/done/${id}`),
      failed: id => post('bob', `/api/fail/${id}`, { error: { message: 'm' }, retry: false }),
      'failed and tried again': id => post('bob', `/api/fail/${id}`, { error: { message: 'm' } }),
      declined: id => post('bob', `/api/decline/${id}`, { reason: 'r' }),
      cancelled: id => post('alice', `/api/cancel/${id}`, { force: true }),
      reissued: id => post('alice', `/api/reissue/${id}`)
    }
    for (const [how, end] of Object.entries(ends)) {
      await at(2000)
      const id = await caught({ max_attempts: 2, to: 'bob' })
      const { ask_id: askId } = (await ask(id)).json()
      await end(id)
      t.match((await ended(id))[0], { data: { handoff_id: id, ask_id: askId, state: 'withdrawn', caught_by: 'bob' } }, how)
      t.match((await asked(id)).json(), { ask_id: askId, state: 'withdrawn', question: 'Which one?', answer: null, answered_at: null, answered_by: null, note: null }, how)
      isProblem(t, await answer(id, askId), 409, 'withdrawn', how)
      t.notOk((await list()).some(item => item.handoff_id === id), `${how}: it left the list`)
      const { reissued_as: successor } = (await call('alice', 'GET', `/api/status/${id}`)).json()
      if (successor) isProblem(t, await asked(successor, 'approver'), 404, 'not_asked', `${how}: its successor has no question`)
    }
    t.strictSame(await redis.keys(`${prefix}:*:a:*`), [], 'no list has them any more')
    await at(2000)
    const id = await pass()
    isProblem(t, await asked(id), 404, 'not_asked')
    isProblem(t, await ask(id), 409, 'not_caught')
    isProblem(t, await answer(id, 'x'), 404, 'not_asked')
  })

  t.test(`nobody answers: the work goes on when the question is over: ${where}`, async t => {
    const { at, time, caught, ask, asked, answer, status, list, post, call, sweep, ended } = work(service)
    await at(10_000)
    const id = await caught({ work_within: 100, heartbeat_within: 20 })
    await at(10_010)
    const { ask_id: askId } = (await ask(id, { expires_in: 300 })).json()
    t.match((await post('bob', `/api/heartbeat/${id}`, { extend_by: 50 })).json(), { work_expires_at: null })
    await at(10_309)
    await sweep(id)
    t.match(await status(id), { status: 'caught', ask: { state: 'open' } })
    await at(10_310)
    t.match(await status(id), { status: 'caught', work_expires_at: time(10_450), heartbeat_expires_at: time(10_330), ask: { state: 'expired' } },
      'at once, before the sweep, with what was left and what a heartbeat added')
    t.match(isProblem(t, await answer(id, askId), 410, 'expired').detail, /this question/)
    t.notOk((await list()).some(item => item.handoff_id === id), 'it is not listed')
    await sweep(id)
    t.match(await status(id), { status: 'caught', work_expires_at: time(10_450), heartbeat_expires_at: time(10_330), ask: { state: 'expired' } })
    t.match(await ended(id), [{ data: { ask_id: askId, state: 'expired', status: 'caught' } }])
    const { items } = (await call('alice', 'GET', `/api/events?after=0-0&handoff_id=${id}`)).json()
    t.strictSame(items.map(({ type }: { type: string }) => type), ['handoff.passed', 'handoff.caught', 'handoff.asked', 'handoff.ask_ended'])
    t.match(items[2].data, { ask_id: askId, of: 'person', answer_url: new RegExp(`/approvals/${id}$`), expires_at: time(10_310), caught_by: 'bob' })
    t.match((await asked(id)).json(), { state: 'expired', expires_at: time(10_310) })
    const second = (await ask(id, { question: 'And now?' })).json()
    t.not(second.ask_id, askId, 'another question may be asked')
    isProblem(t, await answer(id, askId), 409, 'content_changed')
    await at(10_310 + 86_400 + 21)
    t.match(await status(id), { status: 'expired', expired_because: 'stalled', ask: { state: 'expired' } }, 'and no heartbeat after it is a stall')
    isProblem(t, await answer(id, second.ask_id), 410, 'expired')
  })

  t.test(`never beyond the catch and MAX_WORK_TTL: ${where}`, async t => {
    const { at, time, caught, ask, asked, answer, status, sweep, ended } = work(service)
    await at(20_000)
    const id = await caught({ work_within: 604_800 })
    await at(20_010)
    const { ask_id: askId, expires_at: expiresAt } = (await ask(id, { expires_in: 604_800 })).json()
    t.equal(expiresAt, time(20_010 + 604_800))
    await at(20_000 + 604_800)
    t.match(await status(id), { status: 'expired', ended_at: time(20_000 + 604_800), ask: { state: 'withdrawn' } })
    isProblem(t, await answer(id, askId), 409, 'withdrawn', 'before the sweep')
    await at(20_011 + 604_800)
    await sweep(id)
    isProblem(t, await answer(id, askId), 409, 'withdrawn', 'and after it')
    t.match((await asked(id)).json(), { state: 'withdrawn' })
    t.match(await ended(id), [{ data: { ask_id: askId, state: 'withdrawn' } }])
  })

  t.test(`where no time was passed for the work, its end shows once a question has moved it: ${where}`, async t => {
    const { at, time, caught, ask, answer, status } = work(service)
    await at(22_000)
    const id = await caught()
    t.notOk('work_expires_at' in await status(id))
    const { ask_id: askId } = (await ask(id)).json()
    await at(22_100)
    t.equal((await answer(id, askId)).statusCode, 200)
    t.equal((await status(id)).work_expires_at, time(22_700))
  })

  t.test(`behind a question no heartbeat is waited for beyond the end of the work: ${where}`, async t => {
    const { at, time, caught, ask, answer, status } = work(service)
    await at(23_000)
    const id = await caught({ work_within: 30, heartbeat_within: 30 })
    await at(23_020)
    const { ask_id: askId } = (await ask(id)).json()
    await at(23_100)
    t.equal((await answer(id, askId)).statusCode, 200)
    t.match(await status(id), { work_expires_at: time(23_110), heartbeat_expires_at: time(23_110) })
  })
}

t.test('a shorter MAX_WORK_TTL hides no open question, and what ended long ago leaves the list', async t => {
  const shorter = await testApp(t, { MAX_WORK_TTL: '60' }, { ...options, prefix: one.prefix })
  const { at, time, caught, ask, answer, status, redis, prefix } = work(one)
  const asked = async () => {
    const id = await caught({ to: 'shorter' })
    t.equal((await ask(id)).statusCode, 201)
    return id
  }
  await at(25_000)
  const first = await asked()
  const name = `${prefix}:{${tagOf(first)}}:a:default`
  const listed = async (ids: string[]) => (await redis.zrange(name, '0', '-1')).map(member => member.slice('default:'.length)).filter(id => ids.includes(id))
  await at(25_100)
  const second = await shorter.caught({ to: 'shorter' })
  const { asked_at: from, expires_at: upto } = (await work(shorter).ask(second)).json()
  t.equal(Date.parse(upto) - Date.parse(from), 60_000, 'no longer than the work may take')
  t.strictSame(await listed([first, second]), [first, second])
  t.ok(await redis.pttl(name) > 600_000_000, 'and the list is kept for as long as any may be open')
  const long = await caught({ to: 'shorter', work_within: 1000 })
  t.equal((await work(shorter).ask(long)).statusCode, 201)
  const tight = await caught({ to: 'shorter', work_within: 50 })
  const { ask_id: its } = (await work(shorter).ask(tight)).json()
  await at(25_150)
  t.equal((await answer(tight, its)).statusCode, 200)
  t.match(await status(tight), { work_expires_at: time(25_160) }, 'never beyond the longest time for the work')
  await at(25_161)
  t.match(await status(long), { status: 'caught', work_expires_at: time(26_100), ask: { state: 'expired' } }, 'the work keeps the time that it had')
  const brief = await caught({ to: 'shorter', work_within: 50 })
  const { ask_id: askId } = (await ask(brief)).json()
  await at(25_200)
  t.equal((await work(shorter).answer(brief, askId)).statusCode, 200)
  t.match(await status(brief), { work_expires_at: time(25_250) }, 'and an answer gives it all that was left of it')
  const { ask_id: late } = (await ask(long)).json()
  await at(25_400)
  t.equal((await work(shorter).answer(long, late)).statusCode, 200)
  t.match(await status(long), { status: 'caught' }, 'an answer never ends the work')
  t.equal((await work(shorter).post('bob', `/api/done/${long}`)).statusCode, 200)
  // As an older version ends it, which leaves it in the list.
  await redis.del(`${prefix}:{${tagOf(first)}}:h:default:${first}`)
  await at(25_101 + 604_800)
  const third = await asked()
  t.strictSame(await listed([first, second, third]), [third])
})

t.test('the passer is asked', async t => {
  const { at, caught, ask, asked, answer, list, call, redis, prefix } = work(one)
  await at(30_000)
  const id = await caught()
  await ask(id, { expires_in: 1 })
  await at(30_001)
  const first = await ask(id, { of: 'passer' })
  t.equal(await redis.zscore(`${prefix}:{${tagOf(id)}}:a:default`, `default:${id}`), null, 'the question to people, which is over, isn’t listed any more')
  t.notOk('answer_url' in first.json())
  const { ask_id: askId } = first.json()
  t.notOk((await list()).some(item => item.handoff_id === id), 'people don’t see it in their list')
  const found = (await list('alice', '&of=passer')).find(item => item.handoff_id === id)
  t.match(found, { ask_id: askId, asked_by: 'bob' })
  t.notOk('answer_url' in found!)
  const { items: events } = (await call('alice', 'GET', '/api/events?after=0-0&types=handoff.asked')).json()
  const event = events.find(({ data }: { data: { ask_id: string } }) => data.ask_id === askId)
  t.match(event.data, { ask_id: askId, of: 'passer' })
  t.notOk('answer_url' in event.data)
  t.notOk((await list('bob', '&of=passer')).some(item => item.handoff_id === id), 'nor do others than its passer')
  isProblem(t, await call('approver', 'GET', '/api/asks?of=passer'), 403, 'insufficient_scope')
  isProblem(t, await call('alice', 'GET', '/api/asks'), 403, 'insufficient_scope')
  t.equal((await asked(id, 'alice')).statusCode, 200)
  const { key } = await newKey(one.store.keyRecords, { agent: 'alice', scopes: ['pass'] })
  t.match((await call(null, 'GET', `/api/ask/${id}`, undefined, bearer(key))).json(), { ask_id: askId, state: 'open' }, 'who passes needs no other scope')
  isProblem(t, await answer(id, askId, {}, 'approver'), 403, 'insufficient_scope')
  t.match(isProblem(t, await answer(id, askId, {}, 'bob'), 403, 'not_the_passer').detail, /may answer it/)
  isProblem(t, await answer(id, askId, {}, 'foreignAlice'), 404, 'not_found')
  t.match((await answer(id, askId, { a: 1 }, 'alice')).json(), { answered_by: 'alice' })
})

t.test('who asks does not answer, and who has nothing to do with it does not read', async t => {
  const { at, ask, asked, answer, post, call } = work(one)
  await at(30_000)
  const id = (await post('bob', '/api/pass', { task: 't' })).json().handoff_id
  await call('alice', 'GET', `/api/catch/${id}`)
  isProblem(t, await ask(id), 403, 'not_the_catcher')
  const { ask_id: askId } = (await post('alice', `/api/ask/${id}`, { question: 'q' })).json()
  t.equal(isProblem(t, await asked(id, 'bob'), 403, 'not_the_catcher').handoff_status, 'caught')
  const [refused, after] = await timed(() => asked(id, 'bob', 20))
  isProblem(t, refused, 403, 'not_the_catcher', 'nor does who would wait')
  t.ok(after < 10_000, `after ${Math.round(after)} ms`)
  t.equal((await asked(id, 'alice')).statusCode, 200)
  t.equal((await asked(id, 'approver')).statusCode, 200)
  isProblem(t, await asked(id, 'foreignApprover'), 404, 'not_found')
  t.match(isProblem(t, await answer(id, askId, {}, 'approverAlice'), 403, 'self_approval').detail, /may not answer/)
  const [one1, two] = await Promise.all([answer(id, askId, { n: 1 }), answer(id, askId, { n: 2 }, 'approver2')])
  t.strictSame([one1.statusCode, two.statusCode].sort(), [200, 409], 'of two at once one counts')
})

t.test('a request waits until the question is no longer open', async t => {
  const { caught, ask, asked, answer, call, post } = work(await testApp(t, {}, options))
  const id = await caught()
  const { ask_id: askId } = (await ask(id)).json()
  const waits = [asked(id, 'bob', 30), asked(id, 'approver', 30)]
  await new Promise(resolve => setTimeout(resolve, 50))
  await answer(id, askId, { a: 'b' })
  for (const heard of await Promise.all(waits)) t.match(heard.json(), { state: 'answered', answer: { a: 'b' } })
  const { ask_id: second } = (await ask(id, { expires_in: 1 })).json()
  const expiring = asked(id, 'bob', 30)
  const working = call('alice', 'GET', `/api/status/${id}?wait=10&until=done`)
  t.equal(await Promise.race([expiring.then(() => 'the question'), working.then(() => 'the work')]), 'the question', 'its own end ends the wait as well')
  t.match((await expiring).json(), { ask_id: second, state: 'expired' })
  await ask(id)
  const waiting = asked(id, 'bob', 30)
  await call('bob', 'GET', `/api/status/${id}`)
  await post('bob', `/api/done/${id}`)
  t.match((await waiting).json(), { state: 'withdrawn' })
})

t.test('asking twice', async t => {
  const { at, caught, ask, answer, asked, call } = work(one)
  await at(40_000)
  const id = await caught()
  const key = { 'idempotency-key': 'k' }
  const first = await ask(id, {}, key)
  const again = await ask(id, {}, key)
  t.strictSame([again.statusCode, again.json(), again.headers['idempotency-replayed']], [201, first.json(), 'true'])
  isProblem(t, await ask(id, { question: 'Another?' }, key), 409, 'already_asked')
  await answer(id, first.json().ask_id)
  t.strictSame((await ask(id, {}, key)).json(), first.json(), 'also once it is answered')
  t.equal((await asked(id)).json().state, 'answered')
  const second = await ask(id, { question: 'Another?' }, key)
  t.equal(second.statusCode, 201)
  t.match((await asked(id)).json(), { question: 'Another?', state: 'open', answer: null, note: null }, 'the first one’s answer isn’t its')
  await answer(id, second.json().ask_id)
  const late = await ask(id, {}, key)
  t.strictSame([late.statusCode, late.json(), late.headers['idempotency-replayed']], [201, first.json(), 'true'], 'a retry that comes behind another question asks nothing')
  t.match((await asked(id)).json(), { ask_id: second.json().ask_id, state: 'answered' })
  isProblem(t, await call('alice', 'POST', `/api/ask/${id}`, { question: 'Which one?' }, key), 403, 'not_the_catcher')
})

t.test('the last questions are remembered, and no more than these', async t => {
  const { at, caught, ask, answer, redis, prefix } = work(one)
  await at(42_000)
  const id = await caught()
  const times = 40
  const made: string[] = []
  for (let n = 0; n < times; n++) {
    const { ask_id: askId } = (await ask(id, { question: `${n}?` }, { 'idempotency-key': `k${n}` })).json()
    made.push(askId)
    await answer(id, askId)
  }
  const size = await redis.hstrlen(`${prefix}:{${tagOf(id)}}:h:default:${id}`, 'm')
  t.ok(size > 2000 && size <= 2656, String(size))
  for (const n of [15, 30, times - 1]) t.equal((await ask(id, { question: `${n}?` }, { 'idempotency-key': `k${n}` })).json().ask_id, made[n])
  t.not((await ask(id, { question: '0?' }, { 'idempotency-key': 'k0' })).json().ask_id, made[0], 'what was asked so long ago is asked anew')
})

t.test('bad input', async t => {
  const { at, caught, ask, answer, post, call } = work(one)
  await at(50_000)
  const id = await caught()
  const many: Array<[body: object, pointer: string]> = [
    [{ question: '' }, '/question'], [{ question: 'x'.repeat(4001) }, '/question'], [{ question: 1 }, '/question'],
    [{ of: 'me' }, '/of'], [{ details: [] }, '/details'], [{ schema: true }, '/schema'], [{ schema: { type: 'x' } }, '/schema/type'],
    [{ schema: { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } } }, '/schema'], [{ expires_in: 0 }, '/expires_in'],
    [{ expires_in: 604_801 }, '/expires_in'], [{ expires_in: 1.5 }, '/expires_in'], [{ more: 1 }, '/more'],
    [{ schema: { description: 'x'.repeat(16_400) } }, '/schema']
  ]
  for (const [body, pointer] of many) {
    const { errors } = isProblem(t, await ask(id, body), 400, 'invalid_request', JSON.stringify(body).slice(0, 60))
    t.match(errors[0].pointer, new RegExp(`^${pointer.replaceAll('$', '\\$')}`), JSON.stringify(body).slice(0, 60))
  }
  const { ask_id: askId } = (await ask(id, { of: null, details: null, schema: null, expires_in: null })).json()
  for (const body of [{}, { ask_id: askId }, { ask_id: askId, answer: null }, { ask_id: askId, answer: [] }, { ask_id: askId, answer: {}, note: '' }, { ask_id: askId, answer: {}, by: 'me' }]) {
    isProblem(t, await post('approver', `/api/answer/${id}`, body), 400, 'invalid_request', JSON.stringify(body))
  }
  isProblem(t, await answer('nothing', askId), 404, 'not_found')
  isProblem(t, await call('approver', 'GET', '/api/asks?cursor=x'), 400, 'invalid_request')
  isProblem(t, await call('approver', 'GET', '/api/asks?of=me'), 400, 'invalid_request')
  isProblem(t, await call('approver', 'GET', '/api/asks?labels=x'), 400, 'invalid_request')
  const literal = '{"a":1.0,"b":1e400,"__proto__":{"c":"\\ud800"},"a":2}'
  t.equal((await call('approver', 'POST', `/api/answer/${id}`, `{"ask_id":"${askId}","answer":${literal},"note":null}`, { 'content-type': 'application/json' })).statusCode, 200)
  t.ok((await call('bob', 'GET', `/api/ask/${id}`)).body.includes(`"answer":${literal},`), 'the answer is literal')
})

t.test('pages of the list, the oldest first, with filters', async t => {
  const service = await testApp(t, {}, options)
  const { at, caught, ask, list, call } = work(service)
  const ids: string[] = []
  for (let n = 0; n < 21; n++) {
    await at(60_000 + n)
    const id = await caught({ to: n % 2 === 0 ? 'even' : 'odd', labels: { n: String(n) } })
    await ask(id, { question: `q${n} ${'x'.repeat(1200)}` })
    ids.push(id)
  }
  const found: string[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const { items, next_cursor: next }: { items: Array<{ handoff_id: string }>, next_cursor: string | null } = (await call('approver', 'GET', `/api/asks?limit=9${cursor === '' ? '' : `&cursor=${cursor}`}`)).json()
    found.push(...items.map(item => item.handoff_id))
    cursor = next
  }
  t.strictSame(found, ids)
  t.equal((await call('approver', 'GET', '/api/asks')).json().items.length, 20, 'by default 20')
  t.strictSame((await list('approver', '&inbox=odd')).map(item => item.handoff_id), ids.filter((_, n) => n % 2 === 1))
  t.strictSame((await list('approver', '&labels=n:4')).map(item => item.handoff_id), [ids[4]])
  t.equal([...(await list())[0]!.question as string].length, 1000, 'a long question is cut')
  t.strictSame(await list('foreignApprover'), [])
  const live = (await call('alice', 'GET', '/api/handoffs?limit=100')).json().items
  t.match(live[0].ask, { ask_id: /./, asked_at: /./ }, 'lists of handoffs show it too')
})

t.test('questions and notes of any characters come back as they were', async t => {
  const { caught, ask, asked, answer, list } = work(one)
  const text = 'Müller – 漢字 😀 \u202e "quoted" \\ \u2028'
  const id = await caught()
  const made = await ask(id, { question: text, details: { text }, schema: { title: text } })
  t.match([made.statusCode, made.json().question], [201, text])
  t.equal((await list()).find(item => item.handoff_id === id)!.question, text)
  t.equal((await answer(id, made.json().ask_id, { text }, 'approver', { note: text })).statusCode, 200)
  t.match((await asked(id)).json(), { state: 'answered', question: text, details: { text }, answer: { text }, note: text })
})
