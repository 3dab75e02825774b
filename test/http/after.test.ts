import t from 'tap'
import { tagOf } from '../../src/core/ids.ts'
import { scriptCalls } from '../../src/redis/call.ts'
import type { ScriptCallMessage } from '../../src/redis/call.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { arrangements } from '../helpers/extent.ts'
import { isProblem } from '../helpers/problems.ts'
import { callsOf } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

/** Handoffs that come after others: pass's `after`. */

/** Where one Redis has all, and where each call is for one partition alone, as in a Cluster. */
for (const isSpread of arrangements) {
  t.test(isSpread ? 'in a Cluster' : 'on one Redis', async t => {
    const service = await testApp(t, { WORK_TTL: '60' }, { isSpread })
    const { call, pass } = service
    const status = async (id: string, who: Who = 'alice') => (await call(who, 'GET', `/api/status/${id}`)).json()
    const catchIt = async (id: string) => call('bob', 'GET', `/api/catch/${id}`)
    const done = async (id: string, output: unknown = { n: 1 }) => {
      t.equal((await catchIt(id)).statusCode, 200)
      t.equal((await call('bob', 'POST', `/api/done/${id}`, { output })).statusCode, 200)
      await settle(service, id)
    }
    const fail = async (id: string) => {
      t.equal((await catchIt(id)).statusCode, 200)
      const { statusCode, body } = await call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm' } })
      t.equal(statusCode, 200, body)
      await settle(service, id)
    }

    t.test('it is blocked until all have ended, and its catcher gets their results in the order passed', async t => {
      const [one, two] = [await pass(), await pass()]
      const passed = await call('alice', 'POST', '/api/pass', { task: 'sum up', after: [two, one, two] })
      t.equal(passed.statusCode, 201)
      t.equal(passed.json().blocked_by, 2)
      const id = passed.json().handoff_id
      t.match(isProblem(t, await catchIt(id), 409, 'blocked'), { handoff_status: 'pending' })
      await done(one, { a: 1 })
      t.match(await status(id), { status: 'pending', blocked_by: 1 })
      isProblem(t, await catchIt(id), 409, 'blocked')
      await done(two, { b: 2 })
      t.notOk('blocked_by' in await status(id))
      const caught = await catchIt(id)
      t.strictSame(caught.json().after, [
        { handoff_id: two, status: 'done', result: { b: 2 } }, { handoff_id: one, status: 'done', result: { a: 1 } }
      ])
    })

    t.test('it may come after any number of handoffs from 1 to 100', async t => {
      // One inbox is in one partition, so in a Cluster too all are in one call.
      const { results } = (await call('alice', 'POST', '/api/batch', { operations: Array.from({ length: 100 }, () => ({ op: 'pass', body: { task: 't', to: 'hundred' } })) })).json()
      const ids = (results as Array<{ body: { handoff_id: string } }>).map(({ body }) => body.handoff_id)
      for (const count of [1, 8, 9, 10, 11, 98, 99, 100]) {
        const passed = await call('alice', 'POST', '/api/pass', { task: 'sum up', after: ids.slice(0, count), to: 'hundred' })
        t.equal(passed.statusCode, 201, `${count}: ${passed.body}`)
        t.equal(passed.json().blocked_by, count)
      }
    })

    t.test('one that ends otherwise cancels it, and what comes after it in turn', async t => {
      const one = await pass()
      const two = await pass({ after: [one] })
      const three = await pass({ after: [two], to: 'inbox' })
      // The first look at what is blocked comes at once, and later ones don't.
      await settle(service, two)
      await fail(one)
      await settle(service, two)
      const cancelled = await status(two)
      t.match(cancelled, { status: 'cancelled', ended_by: null })
      t.ok(cancelled.cancel_reason.includes(one) && cancelled.cancel_reason.includes('failed'), cancelled.cancel_reason)
      t.match(await status(three), { status: 'cancelled', ended_by: null, cancel_reason: new RegExp(two) })
      t.match((await call('alice', 'GET', '/api/inboxes/inbox')).json(), { blocked: 0, pending: 0 })
      t.match((await call('alice', 'POST', `/api/reissue/${one}`)).statusCode, 201)
      t.match(await status(two), { status: 'cancelled' }, 'a reissue revives nothing')
    })

    t.test('what was released is blocked no more: neither in its inbox, nor at its next attempt', async t => {
      const one = await pass()
      const ids = [await pass({ after: [one], to: 'released' }), await pass({ after: [one], max_attempts: 2, retry_delay: 0 })]
      await done(one)
      t.equal((await call('alice', 'POST', `/api/cancel/${ids[0]}`)).statusCode, 200)
      t.match((await call('alice', 'GET', '/api/inboxes/released')).json(), { pending: 0, blocked: 0 })
      await catchIt(ids[1]!)
      const { reissued_as: next } = (await call('bob', 'POST', `/api/fail/${ids[1]}`, { error: { message: 'm' } })).json()
      t.match((await catchIt(next)).json(), { attempt: 2, after: [{ handoff_id: one, status: 'done' }] })
    })

    t.test('one that is released is still open for what comes after it', async t => {
      const one = await pass()
      const two = await pass({ after: [one] })
      const three = await pass({ after: [two] })
      await done(one)
      t.match(await status(three), { status: 'pending', blocked_by: 1 })
      await done(two)
      t.equal((await catchIt(three)).statusCode, 200)
    })

    t.test('with after_need=ended any end will do; one that had ended before counts', async t => {
      const one = await pass()
      await fail(one)
      const two = await pass({ after: [one], after_need: 'ended' })
      t.notOk('blocked_by' in await status(two))
      t.strictSame((await catchIt(two)).json().after, [{ handoff_id: one, status: 'failed', result: null }])
      const passed = await call('alice', 'POST', '/api/pass', { task: 't', after: [one] })
      t.equal(passed.statusCode, 201)
      t.match(await status(passed.json().handoff_id), { status: 'cancelled', ended_by: null })
    })

    t.test('the last attempt counts, by its own id or an earlier one’s', async t => {
      const one = await pass({ max_attempts: 2, retry_delay: 0 })
      const before = await pass({ after: [one] })
      await catchIt(one)
      const { reissued_as: next } = (await call('bob', 'POST', `/api/fail/${one}`, { error: { message: 'm' } })).json()
      const behind = await pass({ after: [one, next] })
      t.match([(await status(before)).blocked_by, (await status(behind)).blocked_by], [1, 2])
      await done(next, { a: 1 })
      t.strictSame((await catchIt(before)).json().after, [{ handoff_id: one, last: next, status: 'done', result: { a: 1 } }])
      t.equal((await catchIt(behind)).json().after.length, 2)
    })

    t.test('one that is gone has ended, but not as done', async t => {
      const one = await pass()
      const [id, any] = [await pass({ after: [one] }), await pass({ after: [one], after_need: 'ended' })]
      await service.redis.del(`${service.prefix}:{${tagOf(one)}}:h:default:${one}`)
      await settle(service, id, any)
      t.match(await status(id), { status: 'cancelled', ended_by: null, cancel_reason: new RegExp(`${one}.* is gone`) })
      t.match((await catchIt(any)).json(), { after: [{ handoff_id: one, status: 'unknown' }] })
    })

    t.test('one that is released twice from the same handoff still waits for the other', async t => {
      const [one, two] = [await pass(), await pass()]
      const id = await pass({ after: [one, two] })
      await done(one)
      const again = { named: one, last: one, standing: 'done' } as const
      t.match(await service.store.dependents.release('default', id, again), { outcome: 'unchanged' })
      t.match(await status(id), { status: 'pending', blocked_by: 1 })
    })

    t.test('what isn’t there, or is another tenant’s, is refused, and nothing is passed', async t => {
      const one = await pass()
      const before = await service.dump()
      for (const after of [['AVHdDBR3Ox_T_H9gltuUjYVhg'], ['no id'], ['']]) {
        isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', after }), 409, 'unknown_handoff')
      }
      isProblem(t, await call('foreignAlice', 'POST', '/api/pass', { task: 't', after: [one] }), 409, 'unknown_handoff')
      for (const [body, pointer] of [
        [{ after: [] }, '/after'], [{ after: Array.from({ length: 101 }, () => one) }, '/after'], [{ after: one }, '/after'],
        [{ after: [1] }, '/after/0'], [{ after_need: 'done' }, '/after_need'], [{ after: [one], after_need: 'x' }, '/after_need'],
      ] as const) {
        const answer = await call('alice', 'POST', '/api/pass', { task: 't', ...body })
        isProblem(t, answer, 400, 'invalid_request')
        t.equal(answer.json().errors[0].pointer, pointer)
      }
      t.strictSame(await service.dump(), before)
    })

    t.test('a refused pass leaves nothing', async t => {
      const one = await pass()
      await call('operator', 'PUT', '/api/inboxes/full', { max_pending: 1 })
      await pass({ to: 'full' })
      const key = { 'idempotency-key': `used-${isSpread}` }
      await call('alice', 'POST', '/api/pass', { task: 't' }, key)
      const before = await service.dump()
      const ids = [one, 'AVHdDBR3Ox_T_H9gltuUjYVhg']
      isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', after: ids }), 409, 'unknown_handoff')
      isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', after: [one], to: 'full' }), 429, 'inbox_full')
      isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', after: [one] }, key), 422, 'idempotency_key_reused')
      t.strictSame(await service.dump(), before)
    })

    t.test('what ends while it waits leaves no notes at what it waited for', async t => {
      const [one, two, three] = [await pass(), await pass(), await pass({ max_attempts: 2, retry_delay: 0 })]
      await catchIt(three)
      const again = () => call('alice', 'POST', '/api/pass', { task: 't', after: [one, two, three], to: 'ends' }, { 'idempotency-key': 'ends' })
      const ids = [(await again()).json().handoff_id as string, await pass({ after: [one, two, three], require_human: true }), await pass({ after: [one, two, three], expires_in: 1 })]
      const failing = await pass()
      const behind = await pass({ after: [failing, one, two, three] })
      // The notes go along to the next attempt.
      const { reissued_as: next } = (await call('bob', 'POST', `/api/fail/${three}`, { error: { message: 'm' } })).json()
      const notes = async () => (await Promise.all([one, two, next].map(id =>
        service.redis.scard(`${service.prefix}:{${tagOf(id)}}:d:default:${id}`)))).join()
      t.equal(await notes(), '4,4,4')
      t.equal((await call('alice', 'POST', `/api/cancel/${ids[0]}`)).statusCode, 200)
      t.equal((await call('approver', 'POST', `/api/reject/${ids[1]}`, { note: 'n' })).statusCode, 200)
      await fail(failing)
      t.match(await status(behind), { status: 'cancelled' })
      await until(async () => (await status(ids[2]!)).status === 'expired')
      await settle(service, ...ids, behind)
      t.equal(await notes(), '0,0,0')
      t.match((await again()).json(), { handoff_id: ids[0] })
      t.equal(await notes(), '0,0,0', 'nor by the same pass again')
      for (const id of [...ids, behind]) t.equal(await service.redis.zscore(`${service.prefix}:{${tagOf(id)}}:due:default`, `default:${id}`), null)
    })

    t.test('notes at others are kept for 40 days longer than these', async t => {
      const one = await pass({ expires_in: 60 })
      await pass({ after: [one] })
      const { expires_at: expiresAt } = await status(one)
      t.equal(await service.redis.pexpiretime(`${service.prefix}:{${tagOf(one)}}:d:default:${one}`), Date.parse(expiresAt) + 40 * 86_400_000)
    })

    t.test('what expired while it waited is neither released nor cancelled any more, however late the sweep comes', async t => {
      const one = await pass({ expires_in: 60 })
      const ids = [await pass({ after: [one], expires_in: 5 }), await pass({ after: [one], after_need: 'ended', expires_in: 5, to: 'too-late' })]
      await service.setClock(Date.now() + 6000)
      await catchIt(one)
      await call('bob', 'POST', `/api/fail/${one}`, { error: { message: 'm' } })
      const { ended, blocked } = await service.store.handoffs.sweep(tagOf(one), 100)
      service.store.dependents.swept(ended, blocked)
      await service.store.dependents.settled()
      for (const id of ids) t.match(await status(id), { status: 'expired' })
      t.match((await call('alice', 'GET', '/api/inboxes/too-late')).json(), { pending: 0 })
      await settle(service, ...ids)
      for (const id of ids) t.match(await status(id), { status: 'expired', ended_by: undefined })
      await service.redis.del(`clock-${service.prefix}`)
    })

    t.test('what is released before its delay is over enters its inbox when that is over', async t => {
      const one = await pass({ expires_in: 7200 })
      const id = await pass({ after: [one], expires_in: 7200, delay: 660, to: 'delayed' })
      const began = Date.now()
      await service.setClock(began + 600_000)
      // From now on the sweep looks at it every five minutes.
      await settle(service, id)
      await done(one)
      await service.setClock(began + 661_000)
      await settle(service, id)
      t.match((await call('alice', 'GET', '/api/inboxes/delayed')).json(), { pending: 1, blocked: 0, delayed: 0 })
      await service.redis.del(`clock-${service.prefix}`)
    })

    t.test('waiting writes nothing while nothing happens, and its looks come less and less often', async t => {
      const { store, dump } = service
      const ids = [await pass({ expires_in: 7200 }), await pass({ expires_in: 7200 })]
      const id = await pass({ after: ids, expires_in: 7200, to: 'patient' })
      const due = async () => Number(await service.redis.zscore(`${service.prefix}:{${tagOf(id)}}:due:default`, `default:${id}`))
      const began = Date.now()
      await service.setClock(began + 20_000)
      await settle(service, id)
      const without = async () => Object.fromEntries(Object.entries(await dump()).filter(([key]) => !key.includes(':due:')))
      const [before, asked] = [await without(), callsOf(store, 'after')]
      const looks: number[] = []
      for (let at = await due(); at < began + 3_600_000; at = await due()) {
        looks.push(at - began)
        await service.setClock(at)
        await settle(service, id)
      }
      t.ok(callsOf(store, 'stands') >= looks.length, 'it asks each time')
      t.strictSame([await without(), callsOf(store, 'after')], [before, asked])
      t.ok(looks.length < 20, `${looks.length} looks in an hour`)
      t.ok(looks[0]! < 45_000, `one ${looks[0]} ms after the pass`)
      // The net still releases it.
      for (const one of ids) await service.redis.del(`${service.prefix}:{${tagOf(one)}}:d:default:${one}`)
      await service.setClock(await due())
      await settle(service, id)
      t.equal(callsOf(store, 'after') > asked, true, 'a note that is missing is written')
      t.equal(await service.redis.scard(`${service.prefix}:{${tagOf(ids[0]!)}}:d:default:${ids[0]}`), 1)
      await service.redis.del(`clock-${service.prefix}`)
    })

    t.test('a replica that dies between the pass and the notes: the sweep’s first look writes them', async t => {
      const { store } = service
      const one = await pass()
      const original = store.dependents.wait
      store.dependents.wait = async () => { throw new Error('it is dead') }
      const id = await pass({ after: [one] })
      store.dependents.wait = original
      const notes = `${service.prefix}:{${tagOf(one)}}:d:default:${one}`
      t.equal(await service.redis.exists(notes), 0)
      await settle(service, id)
      t.strictSame(await service.redis.smembers(notes), [`${id}/${one}`])
      await done(one)
      t.equal((await catchIt(id)).statusCode, 200)
    })

    t.test('of one request, a batch too, so many calls at once look and note', async t => {
      const ids: string[] = []
      for (let i = 0; i < 90; i++) ids.push(await pass())
      const underWay = { now: 0, most: 0, all: 0 }
      const counted = new Set(['stands', 'after'])
      const count = (message: unknown) => {
        const { script, answer } = message as ScriptCallMessage
        if (!counted.has(script)) return
        underWay.most = Math.max(underWay.most, ++underWay.now)
        underWay.all++
        answer.finally(() => { underWay.now-- }).catch(() => {})
      }
      scriptCalls.subscribe(count)
      const operations = Array.from({ length: 10 }, () => ({ op: 'pass', body: { task: 't', after: ids } }))
      const { results } = (await call('alice', 'POST', '/api/batch', { operations })).json()
      scriptCalls.unsubscribe(count)
      t.ok(results.every(({ status }: { status: number }) => status === 201))
      t.ok(underWay.most <= 16, `at the most ${underWay.most}`)
      const partitions = new Set(ids.map(tagOf)).size
      t.equal(underWay.all, (1 + 10) * (isSpread ? partitions : 1), 'each partition is asked once for all, and noted at once')

      // And so many read what they come after, for who catches them.
      await Promise.all(ids.map(id => done(id, { a: 1 })))
      await settle(service, ...ids)
      Object.assign(underWay, { now: 0, most: 0, all: 0 })
      counted.add('status')
      scriptCalls.subscribe(count)
      const caught = results.map(({ body: { handoff_id: id } }: { body: { handoff_id: string } }) => ({ op: 'catch', id }))
      const answers = (await call('bob', 'POST', '/api/batch', { operations: caught })).json().results
      scriptCalls.unsubscribe(count)
      t.ok(answers.every(({ body: { after } }: { body: { after: object[] } }) => after.length === 90))
      t.ok(underWay.all >= 90, `${underWay.all} reads`)
      t.ok(underWay.most <= 16, `at the most ${underWay.most}`)
    })

    t.test('of one request that reissues many, so many calls at once note them', async t => {
      const ids: string[] = []
      for (let i = 0; i < 90; i++) ids.push(await pass({ expires_in: 7200 }))
      const expired: string[] = []
      for (let i = 0; i < 10; i++) expired.push(await pass({ after: ids, to: 'again', expires_in: 30 }))
      const began = Date.now()
      await service.setClock(began + 31_000)
      const underWay = { now: 0, most: 0 }
      const count = (message: unknown) => {
        const { script, answer } = message as ScriptCallMessage
        if (script !== 'after') return
        underWay.most = Math.max(underWay.most, ++underWay.now)
        answer.finally(() => { underWay.now-- }).catch(() => {})
      }
      scriptCalls.subscribe(count)
      const { results } = (await call('alice', 'POST', '/api/batch', { operations: expired.map(id => ({ op: 'reissue', id })) })).json()
      scriptCalls.unsubscribe(count)
      t.match(results, expired.map(() => ({ status: 201, body: { blocked_by: 90 } })))
      t.ok(underWay.most > 0 && underWay.most <= 16, `at the most ${underWay.most}`)
      await service.redis.del(`clock-${service.prefix}`)
    })

    t.test('in an inbox it is counted as blocked, and enters when it is released', async t => {
      const one = await pass()
      const id = await pass({ after: [one], to: 'work', priority: 3 })
      const counts = async () => {
        const { pending, blocked, delayed, waiting_approval: waiting } = (await call('alice', 'GET', '/api/inboxes/work')).json()
        return { pending, blocked, delayed, waiting }
      }
      t.strictSame(await counts(), { pending: 0, blocked: 1, delayed: 0, waiting: 0 })
      t.strictSame((await call('bob', 'POST', '/api/catch', { inbox: 'work' })).json(), { items: [] })
      await done(one, { a: 1 })
      t.strictSame(await counts(), { pending: 1, blocked: 0, delayed: 0, waiting: 0 })
      const { items: [item] } = (await call('bob', 'POST', '/api/catch', { inbox: 'work' })).json()
      t.match(item, { handoff_id: id, after: [{ handoff_id: one, result: { a: 1 } }] })
    })
  })
}

/** What the sweep does with these handoffs’ partitions. */
async function settle ({ store }: TestApp, ...ids: string[]): Promise<void> {
  for (const id of ids) {
    const { ended, blocked } = await store.handoffs.sweep(tagOf(id), 100)
    store.dependents.swept(ended, blocked)
    await store.dependents.settled()
  }
}
