import t from 'tap'
import { tagOf } from '../../src/core/ids.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { own, signedIn } from '../helpers/forms.ts'
import { inboxWaiters } from '../helpers/metrics.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'
import { asleep } from '../helpers/waits.ts'

/** Where `after` meets everything else that a handoff can be passed with, and each way to end. */

/** A service whose time stands still until it is moved. */
async function crossing (t: Parameters<typeof testApp>[0], isSpread: boolean, env: Record<string, string> = {}) {
  const service = await testApp(t, { WORK_TTL: '60', ...env }, { isSpread })
  const { call, pass, store } = service
  let now = Date.now()
  await service.setClock(now)
  const json = async (...args: Parameters<TestApp['call']>) => (await call(...args)).json()
  /** What the sweep does with these handoffs’ partitions. */
  const settle = async (...ids: string[]) => {
    for (const id of ids) {
      const { ended, blocked } = await store.handoffs.sweep(tagOf(id), 100)
      store.dependents.swept(ended, blocked)
      await store.dependents.settled()
    }
  }
  return {
    ...service,
    settle,
    json,
    status: (id: string, who: Who = 'alice') => json(who, 'GET', `/api/status/${id}`),
    catchIt: (id: string, key?: string) => call('bob', 'GET', `/api/catch/${id}`, undefined, key === undefined ? {} : { 'idempotency-key': key }),
    counts: async (inbox: string) => {
      const { pending, blocked, delayed, caught, failed, waiting_approval: waiting } = await json('alice', 'GET', `/api/inboxes/${inbox}`)
      return { pending, blocked, delayed, caught, failed, waiting }
    },
    later: async (ms: number) => {
      now += ms
      await service.setClock(now)
    },
    start: async (more: object = {}) => {
      const id = await pass(more)
      succeeded(await call('bob', 'GET', `/api/catch/${id}`))
      return id
    },
    end: async (id: string, how: string, body?: object, who: Who = 'bob') => {
      return succeeded(await call(who, 'POST', `/api/${how}/${id}`, body))
    }
  }
}

function succeeded ({ statusCode, body }: { statusCode: number, body: string }): Record<string, any> {
  if (statusCode > 201) throw new Error(body)
  return JSON.parse(body)
}
type Crossing = Awaited<ReturnType<typeof crossing>>

const fault = { error: { message: 'm' } }

/** Each way to end: what is passed, whether it is caught, and what ends it. By the clock, the sweep has to come. */
const ends: Record<string, { status: string, more?: object, isCaught?: boolean, isSwept?: boolean, end (on: Crossing, id: string): Promise<unknown> }> = {
  done: { status: 'done', isCaught: true, end: (on, id) => on.end(id, 'done', { output: { a: 1 } }) },
  failed: { status: 'failed', isCaught: true, end: (on, id) => on.end(id, 'fail', fault) },
  'failed, not to be tried again': { status: 'failed', more: { max_attempts: 3 }, isCaught: true, end: (on, id) => on.end(id, 'fail', { ...fault, retry: false }) },
  'failed after a cancel was requested': {
    status: 'failed',
    more: { max_attempts: 3 },
    isCaught: true,
    async end (on, id) {
      await on.call('alice', 'POST', `/api/cancel/${id}`)
      await on.end(id, 'fail', fault)
    }
  },
  declined: { status: 'declined', isCaught: true, end: (on, id) => on.end(id, 'decline', { reason: 'r' }) },
  cancelled: { status: 'cancelled', end: (on, id) => on.end(id, 'cancel', {}, 'alice') },
  'cancelled while delayed': { status: 'cancelled', more: { delay: 60 }, end: (on, id) => on.end(id, 'cancel', {}, 'alice') },
  'cancelled by force': { status: 'cancelled', isCaught: true, end: (on, id) => on.end(id, 'cancel', { force: true }, 'alice') },
  'cancelled undecided': { status: 'cancelled', more: { require_human: true }, end: (on, id) => on.end(id, 'cancel', {}, 'alice') },
  rejected: { status: 'rejected', more: { require_human: true }, end: (on, id) => on.end(id, 'reject', { note: 'n' }, 'approver') },
  'expired uncaught': { status: 'expired', isSwept: true, more: { expires_in: 30 }, end: on => on.later(31_000) },
  'expired uncaught in an inbox': { status: 'expired', isSwept: true, more: { expires_in: 30, to: 'in' }, end: on => on.later(31_000) },
  'expired undecided': { status: 'expired', isSwept: true, more: { expires_in: 30, require_human: true }, end: on => on.later(31_000) },
  'not done in time': { status: 'expired', isSwept: true, isCaught: true, more: { work_within: 20, expires_in: 5 }, end: on => on.later(21_000) },
  stalled: { status: 'expired', isSwept: true, isCaught: true, more: { heartbeat_within: 5 }, end: on => on.later(6000) },
}

for (const isSpread of [false, true]) {
  t.test(isSpread ? 'in a Cluster' : 'on one Redis', async t => {
    const on = await crossing(t, isSpread)
    const { call, pass, status, settle, catchIt, end, start } = on

    for (const [name, { status: how, more, isCaught = false, isSwept = false, end }] of Object.entries(ends)) {
      t.test(name, async t => {
        const id = isCaught ? await start(more) : await pass(more)
        const done = await pass({ after: [id] })
        const ended = await pass({ after: [id], after_need: 'ended', to: 'work' })
        const next = await pass({ after: [done] })
        t.match([(await status(done)).blocked_by, (await status(ended)).blocked_by], [1, 1])
        await end(on, id)
        if (isSpread || isSwept) await settle(id, done)
        t.equal((await status(id)).status, how)
        t.notOk('blocked_by' in await status(ended))
        const result = how === 'done' ? { a: 1 } : null
        t.strictSame((await catchIt(ended)).json().after, [{ handoff_id: id, status: how, result }])
        if (how === 'done') {
          t.strictSame((await catchIt(done)).json().after, [{ handoff_id: id, status: how, result }])
          return t.match(await status(next), { status: 'pending', blocked_by: 1 })
        }
        const cancelled = await status(done)
        t.match(cancelled, { status: 'cancelled', ended_by: null, cancel_reason: new RegExp(`${id}.*${how}`) })
        t.notOk('blocked_by' in cancelled)
        t.match(await status(next), { status: 'cancelled', ended_by: null, cancel_reason: new RegExp(`${done}.*cancelled`) })
        t.match(isProblem(t, await catchIt(done), 409, 'cancelled'), { handoff_status: 'cancelled', ended_at: cancelled.ended_at })
      })
    }

    for (const [how, isLost] of [['done', false], ['cancel', false], ['done', true]] as const) {
      t.test(`what ends between the note and the pass${isLost ? ', whose reply is lost' : ''}: ${how}`, async t => {
        const id = how === 'done' ? await start() : await pass()
        const { handoffs, dependents } = on.store
        const original = handoffs.pass
        handoffs.pass = async handoff => {
          handoffs.pass = original
          await end(id, how, {}, how === 'done' ? 'bob' : 'alice')
          await settle(id)
          if (isLost) await handoffs.pass(handoff)
          return handoffs.pass(handoff)
        }
        const dependent = await pass({ after: [id] })
        await dependents.settled()
        const { status: became, blocked_by: blockedBy } = await status(dependent)
        t.strictSame([became, blockedBy], [how === 'done' ? 'pending' : 'cancelled', undefined])
      })
    }

    t.test('each way to another attempt: what comes after follows to the last one, by whichever id', async t => {
      const again: Record<string, (id: string) => Promise<unknown>> = {
        failed: id => end(id, 'fail', fault),
        declined: id => end(id, 'decline', { reason: 'r' }),
        'not done in time': async id => {
          await on.later(61_000)
          await settle(id)
        },
        'reissued by hand': id => end(id, 'reissue', {}, 'alice'),
      }
      for (const [name, tryAgain] of Object.entries(again)) {
        const first = await start({ max_attempts: 2, retry_delay: 0, expires_in: 3600 })
        const byFirst = await pass({ after: [first], expires_in: 7200 })
        await tryAgain(first)
        const { reissued_as: second } = await status(first)
        t.ok(second, name)
        await settle(first, byFirst)
        const bySecond = await pass({ after: [second] })
        const byBoth = await pass({ after: [second, first] })
        t.match([(await status(byFirst)).blocked_by, (await status(bySecond)).blocked_by, (await status(byBoth)).blocked_by], [1, 1, 2], name)
        await catchIt(second)
        await end(second, 'done', { output: { a: 1 } })
        if (isSpread) await settle(second)
        const [ofFirst, ofSecond] = [{ handoff_id: first, last: second, status: 'done', result: { a: 1 } }, { handoff_id: second, status: 'done', result: { a: 1 } }]
        t.strictSame((await catchIt(byFirst)).json().after, [ofFirst], name)
        t.strictSame((await catchIt(bySecond)).json().after, [ofSecond], name)
        t.strictSame((await catchIt(byBoth)).json().after, [ofSecond, ofFirst], name)
      }
    })

    t.test('the last attempt that fails cancels by the id that was named', async t => {
      const first = await start({ max_attempts: 2, retry_delay: 0 })
      const behind = await pass({ after: [first] })
      const { reissued_as: second } = await end(first, 'fail', fault)
      await catchIt(second)
      await end(second, 'fail', fault)
      if (isSpread) await settle(second)
      t.match(await status(behind), { status: 'cancelled', cancel_reason: new RegExp(`${first}.*failed`) })
    })

    t.test('max_pending counts what is blocked, wherever it lies', async t => {
      await call('operator', 'PUT', '/api/inboxes/full', { max_pending: 2 })
      const one = await pass()
      const blocked = await pass({ after: [one], to: 'full', require_human: true })
      await call('approver', 'POST', `/api/approve/${blocked}`)
      t.strictSame(await on.counts('full'), { pending: 0, blocked: 1, delayed: 0, caught: 0, failed: 0, waiting: 0 })
      await pass({ after: [one], to: 'full' })
      t.match(isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', to: 'full', after: [one] }), 429, 'inbox_full'), { retryable: true })
      isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', to: 'full', require_human: true }), 429, 'inbox_full')
    })

    t.test('a reissue right after the end revives nothing', async t => {
      for (const by of ['reissue', 'redrive']) {
        const id = await start({ to: by })
        const behind = await pass({ after: [id] })
        await end(id, 'fail', fault)
        if (by === 'reissue') await end(id, 'reissue', {}, 'alice')
        else t.match(await on.json('operator', 'POST', '/api/redrive', { inbox: by }), { reissued: 1 })
        const next = (await status(id)).reissued_as
        await settle(behind, id)
        t.match(await status(behind), { status: 'cancelled', ended_by: null, cancel_reason: new RegExp(`${id}.*failed`) }, by)
        // What is passed now waits for the new attempt.
        const after = await pass({ after: [id] })
        await catchIt(next)
        await end(next, 'done')
        if (isSpread) await settle(next)
        t.strictSame((await catchIt(after)).json().after, [{ handoff_id: id, last: next, status: 'done', result: null }])
      }
    })

    t.test('a delay counts from the pass, whether it is over when nothing blocks it any more or not', async t => {
      const one = await start()
      const answer = await on.json('alice', 'POST', '/api/pass', { task: 't', after: [one], delay: 30, to: 'slow' })
      const { handoff_id: early, available_at: available } = answer
      t.match(answer, { blocked_by: 1, status: 'pending' })
      t.equal(Date.parse(available) - Date.parse(answer.created_at), 30_000)
      isProblem(t, await catchIt(early), 409, 'blocked')
      await on.later(10_000)
      await end(one, 'done')
      if (isSpread) await settle(one)
      t.equal(isProblem(t, await catchIt(early), 409, 'not_yet').handoff_status, 'pending')
      t.equal((await catchIt(early)).headers['retry-after'], '20')
      t.match(await status(early), { available_at: available })
      t.match(await on.counts('slow'), { delayed: 1, blocked: 0, pending: 0 })
      await on.later(19_999)
      await settle(early)
      t.match(await on.counts('slow'), { delayed: 1, pending: 0 })
      await on.later(1)
      await settle(early)
      t.match(await on.counts('slow'), { delayed: 0, pending: 1 })

      const two = await start()
      const late = await pass({ after: [two], delay: 30, to: 'slow' })
      await on.later(31_000)
      await settle(late)
      isProblem(t, await catchIt(late), 409, 'blocked')
      t.match(await on.counts('slow'), { delayed: 0, blocked: 1, pending: 1 })
      await end(two, 'done')
      if (isSpread) await settle(two)
      t.match(await on.counts('slow'), { delayed: 0, blocked: 0, pending: 2 })
      // It keeps the turn of its release, also if the sweep looks at it early.
      const turn = () => on.redis.zscore(`${on.prefix}:{${tagOf(late)}}:i:default:slow`, `default:${late}`)
      const before = await turn()
      await on.later(1000)
      await makeDue(on, late)
      await settle(late)
      t.equal(await turn(), before)
      const { items } = await on.json('bob', 'POST', '/api/catch', { inbox: 'slow', max: 5 })
      t.strictSame(items.map(({ handoff_id: id }: { handoff_id: string }) => id), [early, late])
    })

    t.test('a person decides while it is blocked, or later; what is told comes in order', async t => {
      const one = await start()
      const [approved, undecided, rejected, direct] = await Promise.all(['in', 'in', 'in', undefined].map(to =>
        pass({ after: [one], require_human: true, ...to && { to: `people-${isSpread}` } }))) as [string, string, string, string]
      const counts = () => on.counts(`people-${isSpread}`)
      isProblem(t, await catchIt(approved), 409, 'approval_required')
      t.match(await counts(), { blocked: 0, waiting: 3 })
      const page = async (id: string) => (await on.app.inject({ url: `/approvals/${id}`, headers: { ...own, cookie } })).body
      const cookie = await signedIn(on)
      t.match(await page(approved), /Waits for.*1 other handoff</)
      t.match(await on.json('approver', 'GET', `/api/approvals/${approved}`), { status: 'pending', approval: { state: 'waiting' } })
      await end(approved, 'approve', {}, 'approver')
      await end(direct, 'approve', {}, 'approver')
      await end(rejected, 'reject', { note: 'n' }, 'approver')
      isProblem(t, await catchIt(approved), 409, 'blocked')
      isProblem(t, await catchIt(direct), 409, 'blocked')
      isProblem(t, await catchIt(rejected), 409, 'rejected')
      t.notOk('blocked_by' in await status(rejected))
      t.match(await status(undecided), { blocked_by: 1, approval: { state: 'waiting' } })
      t.notMatch(await page(rejected), /Waits for/)
      t.match(await counts(), { blocked: 1, waiting: 1, pending: 0 })
      await end(one, 'done')
      if (isSpread) await settle(one)
      t.match(await status(rejected), { status: 'rejected' })
      isProblem(t, await catchIt(undecided), 409, 'approval_required')
      t.match(await counts(), { blocked: 0, waiting: 1, pending: 1 })
      await on.later(1)
      await end(undecided, 'approve', {}, 'approver')
      t.match(await counts(), { blocked: 0, waiting: 0, pending: 2 })
      const { items } = await on.json('bob', 'POST', '/api/catch', { inbox: `people-${isSpread}`, max: 5 })
      t.strictSame(items.map(({ handoff_id: id, after, approval }: any) => [id, after.length, approval.state]), [[approved, 1, 'approved'], [undecided, 1, 'approved']])
      t.match((await catchIt(direct)).json(), { after: [{ handoff_id: one, status: 'done', result: null }], approval: { state: 'approved' } })
    })

    t.test('what it comes after fails while a person has yet to decide', async t => {
      const one = await start()
      const id = await pass({ after: [one], require_human: true, to: 'gone' })
      await end(one, 'fail', fault)
      if (isSpread) await settle(one)
      t.match(await status(id), { status: 'cancelled', approval: { state: 'waiting' } })
      t.notOk((await on.json('approver', 'GET', '/api/approvals?limit=100')).items.some((item: { handoff_id: string }) => item.handoff_id === id))
      isProblem(t, await call('approver', 'POST', `/api/approve/${id}`), 409, 'cancelled')
      const { body } = await on.app.inject({ url: `/approvals/${id}`, headers: { ...own, cookie: await signedIn(on) } })
      t.match(body, /<strong>This was cancelled<\/strong>/)
      t.match(body, new RegExp(`${one}, which this comes after, has ended: failed`))
      t.match(await on.counts('gone'), { blocked: 0, waiting: 0, pending: 0, failed: 0 })
    })

    t.test('the sweep names what was cancelled undecided each second until its dependents are released', { skip: !isSpread && 'released in the same step' }, async t => {
      const one = await pass({ require_human: true })
      await pass({ after: [one] })
      await end(one, 'cancel', {}, 'alice')
      const { ended } = await on.store.handoffs.sweep(tagOf(one), 100)
      t.match(ended, [{ id: one }])
      // A fraction would count looks for the waiting list, which come later and later.
      t.equal(Number(await on.redis.zscore(`${on.prefix}:{${tagOf(one)}}:due:default`, `default:${one}`)) % 1, 0)
      await on.later(1000)
      await settle(one)
    })

    t.test('it expires, is cancelled or purged while it is blocked', async t => {
      const one = await pass({ expires_in: 3600 })
      const expires = await pass({ after: [one], expires_in: 30, to: 'ends' })
      const behind = await pass({ after: [expires] })
      const any = await pass({ after: [expires], after_need: 'ended' })
      await on.later(30_000)
      t.match(await status(expires), { status: 'expired', expired_because: 'not_caught' })
      t.notOk('blocked_by' in await status(expires))
      isProblem(t, await catchIt(expires), 410, 'expired')
      await settle(expires)
      t.match(await on.counts('ends'), { blocked: 0, pending: 0, failed: 1 })
      t.match(await status(behind), { status: 'cancelled', cancel_reason: /expired/ })
      t.strictSame((await catchIt(any)).json().after, [{ handoff_id: expires, status: 'expired', result: null }])

      const cancelled = await pass({ after: [one], to: 'ends' })
      await end(cancelled, 'cancel', { reason: 'mine' }, 'alice')
      t.match(await status(cancelled), { status: 'cancelled', ended_by: 'alice', cancel_reason: 'mine' })
      const purged = [await pass({ after: [one], to: 'ends' }), await pass({ after: [one], to: 'ends', delay: 30 }), await pass({ after: [one], to: 'ends', require_human: true })]
      t.match(await on.counts('ends'), { blocked: 2, waiting: 1 })
      t.match(await on.json('operator', 'POST', '/api/purge', { inbox: 'ends' }), { cancelled: 3, more: false })
      t.match(await on.counts('ends'), { blocked: 0, waiting: 0, pending: 0, delayed: 0 })
      for (const id of purged) t.match(await status(id), { status: 'cancelled', ended_by: 'olga' })
      // Nothing comes back when the one ends that they came after.
      await catchIt(one)
      await end(one, 'done')
      await settle(one)
      t.match(await on.counts('ends'), { blocked: 0, waiting: 0, pending: 0, delayed: 0 })
      for (const id of purged) t.match(await status(id), { status: 'cancelled' })
    })

    t.test('what has expired by the clock stays so, whatever ends before the sweep comes', async t => {
      const [one, two] = [await start(), await start()]
      const ids = [await pass({ after: [one], expires_in: 30 }), await pass({ after: [two], expires_in: 30, to: 'over' })]
      await on.later(30_000)
      await end(one, 'fail', fault)
      await end(two, 'done')
      await settle(one, two)
      t.match(await on.counts('over'), { pending: 0, blocked: 0 })
      for (const id of ids) t.match(await status(id), { status: 'expired', expired_because: 'not_caught' })
      await settle(...ids)
      for (const id of ids) t.match(await status(id), { status: 'expired', expired_because: 'not_caught' })
      t.match(await on.counts('over'), { failed: 1, blocked: 0 })
    })

    t.test('its own attempts keep what it came after', async t => {
      const one = await start()
      const id = await pass({ after: [one], max_attempts: 2, retry_delay: 0, to: 'again' })
      await end(one, 'done', { output: { a: 1 } })
      if (isSpread) await settle(one)
      const after = [{ handoff_id: one, status: 'done', result: { a: 1 } }]
      t.strictSame((await catchIt(id)).json().after, after)
      const { reissued_as: next } = await end(id, 'fail', fault)
      t.notOk('blocked_by' in await status(next))
      t.match((await on.json('bob', 'POST', '/api/catch', { inbox: 'again' })).items, [{ handoff_id: next, attempt: 2, after }])
    })

    // Expired while it was blocked, and tried again: how, and whether the sweep has ended it before.
    const again: Record<string, (id: string, to: string) => Promise<unknown>> = {
      reissue: async id => {
        await settle(id)
        await end(id, 'reissue', {}, 'alice')
      },
      'reissue before the sweep': id => end(id, 'reissue', {}, 'alice'),
      'reissue by an operator': id => end(id, 'reissue', {}, 'operator'),
      redrive: async (id, to) => {
        await settle(id)
        t.match(await on.json('operator', 'POST', '/api/redrive', { inbox: to }), { reissued: 1, skipped: 0, more: false })
      },
    }
    for (const [by, tryAgain] of Object.entries(again)) {
      const to = `again${Object.keys(again).indexOf(by)}${isSpread}`
      /** @returns the successor of what waits for these, and has expired */
      const blockedAgain = async (after: string[], more: object = {}, meanwhile: (id: string) => Promise<unknown> = async () => {}) => {
        const id = await pass({ after, to, expires_in: 30, ...more })
        await meanwhile(id)
        await on.later(30_000)
        await tryAgain(id, to)
        const { reissued_as: next } = await status(id)
        // Only a reissue by itself asks at once; else the sweep does.
        if (by === 'redrive') await settle(next)
        return next as string
      }
      const take = async () => (await on.json('bob', 'POST', '/api/catch', { inbox: to, max: 9 })).items as Array<Record<string, unknown>>
      const caught = async (...ids: string[]) => {
        const items = await take()
        // What enters in one moment has no order.
        t.strictSame(items.map(({ handoff_id: id }) => id).sort(), [...ids].sort())
        for (const id of ids) await end(id, 'done')
        return ids.map(id => items.find(item => item.handoff_id === id)!)
      }

      t.test(`${by}: it waits for what hasn’t ended, from the step that makes it on`, async t => {
        const [over, one] = [await start({ expires_in: 3600, work_within: 3600 }), await start({ expires_in: 3600, work_within: 3600 })]
        const id = await pass({ after: [over, one], to, expires_in: 30 })
        await end(over, 'done', { output: { a: 1 } })
        if (isSpread) await settle(over)
        await on.later(30_000)
        await tryAgain(id, to)
        const { reissued_as: next } = await status(id)
        // Nothing has looked at it yet but what a reissue does itself.
        t.match(await status(next), { status: 'pending', blocked_by: 1, reissue_of: id })
        isProblem(t, await catchIt(next), 409, 'blocked')
        t.strictSame(await take(), [])
        t.match(await on.counts(to), { blocked: 1, pending: 0, failed: 0 })
        t.match(await on.json('alice', 'GET', `/api/handoffs?inbox=${to}`), { items: [{ handoff_id: next, blocked_by: 1 }] })
        const { headers, body } = await call('alice', 'POST', `/api/reissue/${id}`)
        t.match([headers['idempotency-replayed'], JSON.parse(body)], ['true', { handoff_id: next, status: 'pending', blocked_by: 1 }])
        if (by === 'redrive') await settle(next)
        // It is noted, so that the end releases it.
        await end(one, 'done', { output: { b: 2 } })
        if (isSpread) await settle(one)
        t.notOk('blocked_by' in await status(next))
        t.match(await on.counts(to), { blocked: 0, pending: 1 })
        const [item] = await caught(next)
        t.strictSame(item!.after, [{ handoff_id: over, status: 'done', result: { a: 1 } }, { handoff_id: one, status: 'done', result: { b: 2 } }])
      })

      t.test(`${by}: what has ended since counts as it would have before`, async t => {
        const work = { expires_in: 3600, work_within: 3600 }
        const [one, two, three] = [await start(work), await start(work), await start(work)]
        const ids = [await pass({ after: [one], to, expires_in: 30 }), await pass({ after: [two], to, expires_in: 30 }), await pass({ after: [three], to, expires_in: 30, after_need: 'ended' })]
        await on.later(30_000)
        await settle(...ids)
        await end(one, 'done', { output: { a: 1 } })
        for (const id of [two, three]) await end(id, 'fail', fault)
        await settle(one, two, three)
        const next: string[] = []
        if (by === 'redrive') t.match(await on.json('operator', 'POST', '/api/redrive', { inbox: to }), { reissued: 3 })
        for (const id of ids) {
          if (by !== 'redrive') t.notOk('blocked_by' in await end(id, 'reissue', {}, by.endsWith('operator') ? 'operator' : 'alice'))
          next.push((await status(id)).reissued_as)
        }
        if (by === 'redrive') await settle(...next)
        t.match(await status(next[1]!), { status: 'cancelled', ended_by: null, cancel_reason: new RegExp(`${two}.*failed`), reissue_of: ids[1] })
        const items = await caught(next[0]!, next[2]!)
        t.strictSame(items.map(({ after }) => after), [[{ handoff_id: one, status: 'done', result: { a: 1 } }], [{ handoff_id: three, status: 'failed', result: null }]])
        t.match(await on.counts(to), { blocked: 0, pending: 0, failed: 0 })
      })

      t.test(`${by}: again and again, an attempt that is over leaves no notes`, async t => {
        const ids = [await start({ expires_in: 3600, work_within: 3600 }), await start({ expires_in: 3600, work_within: 3600 })]
        let last = await pass({ after: ids, to, expires_in: 30 })
        for (let attempt = 2; attempt < 5; attempt++) {
          await on.later(30_000)
          if (attempt === 3) await on.store.handoffs.sweep(tagOf(last), 100)
          await tryAgain(last, to)
          const { reissued_as: next } = await status(last)
          // What the sweep has named it names again after a second.
          await on.later(1000)
          await settle(last, next)
          for (const id of ids) t.strictSame(await on.redis.smembers((await keyOf(on, id)).replace(':h:', ':d:')), [`${next}/${id}`])
          t.equal(await on.redis.zscore(`${on.prefix}:{${tagOf(last)}}:due:default`, `default:${last}`), null)
          last = next
        }
        for (const id of ids) {
          await end(id, 'done')
          if (isSpread) await settle(id)
        }
        await caught(last)
      })

      t.test(`${by}: without the note, the sweep’s own question releases it`, async t => {
        const one = await start({ expires_in: 3600, work_within: 3600 })
        const next = await blockedAgain([one])
        await on.redis.del((await keyOf(on, one)).replace(':h:', ':d:'))
        await end(one, 'done')
        await settle(one)
        t.match(await status(next), { blocked_by: 1 })
        await on.later(3000)
        await settle(next)
        await caught(next)
      })

      t.test(`${by}: again and again, and the last attempt of what it waits for counts`, async t => {
        const one = await start({ expires_in: 3600, work_within: 3600, max_attempts: 2, retry_delay: 0, to: `${to}-first` })
        const second = await blockedAgain([one])
        await on.later(30_000)
        await tryAgain(second, to)
        const { reissued_as: third } = await status(second)
        if (by === 'redrive') await settle(third)
        const { reissued_as: last } = await end(one, 'fail', fault)
        t.match(await status(third), { blocked_by: 1, attempt: 3 })
        await catchIt(last)
        await end(last, 'done', { output: { a: 1 } })
        if (isSpread) await settle(last)
        const [item] = await caught(third)
        t.strictSame(item!.after, [{ handoff_id: one, last, status: 'done', result: { a: 1 } }])
      })

      t.test(`${by}: what had ended isn’t waited for again, though it was reissued`, async t => {
        const [one, two] = [await start({ expires_in: 3600 }), await start({ expires_in: 3600, work_within: 3600 })]
        const next = await blockedAgain([one, two], { after_need: 'ended' }, async id => {
          await end(one, 'fail', fault)
          if (isSpread) await settle(one)
          t.match(await status(id), { blocked_by: 1 })
          await end(one, 'reissue', {}, 'alice')
        })
        t.match(await status(next), { blocked_by: 1 })
        await end(two, 'done')
        if (isSpread) await settle(two)
        const [item] = await caught(next)
        t.strictSame(item!.after, [{ handoff_id: one, status: 'failed', result: null }, { handoff_id: two, status: 'done', result: null }])
      })

      t.test(`${by}: a person’s approval stays, and what was undecided waits for a person again`, async t => {
        const [one, two] = [await start({ expires_in: 3600, work_within: 3600 }), await start({ expires_in: 3600, work_within: 3600 })]
        const approved = await blockedAgain([one], { require_human: true }, id => end(id, 'approve', { note: 'n' }, 'approver'))
        t.match(await status(approved), { blocked_by: 1, approval: { state: 'approved', note: 'n' } })
        t.match(await on.counts(to), { blocked: 1, waiting: 0, pending: 0 })
        await end(one, 'done')
        if (isSpread) await settle(one)
        t.match(await caught(approved), [{ approval: { state: 'approved', note: 'n' } }])
        const undecided = await blockedAgain([two], { require_human: true })
        t.match(await status(undecided), { blocked_by: 1, approval: { state: 'waiting' } })
        t.match(await on.counts(to), { waiting: 1, pending: 0 })
        isProblem(t, await catchIt(undecided), 409, 'approval_required')
        await end(undecided, 'approve', {}, 'approver')
        isProblem(t, await catchIt(undecided), 409, 'blocked')
        t.strictSame(await take(), [])
        await end(two, 'done')
        if (isSpread) await settle(two)
        await caught(undecided)
      })

      t.test(`${by}: with a delay, a pause and limits`, async t => {
        const one = await start({ expires_in: 3600, work_within: 3600 })
        await on.json('operator', 'PUT', `/api/inboxes/${to}`, { paused: true, max_caught: 1, max_pending: 1 })
        const next = await blockedAgain([one], { delay: 10 })
        const { available_at: available, expires_at: expires, created_at: created } = await status(next)
        t.strictSame([available, Date.parse(expires) - Date.parse(created)], [undefined, 30_000])
        t.match(await on.counts(to), { blocked: 1, delayed: 0, pending: 0 })
        isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', to }), 429, 'inbox_full')
        await end(one, 'done')
        if (isSpread) await settle(one)
        t.match(await on.counts(to), { blocked: 0, pending: 1 })
        t.strictSame(await take(), [], 'paused')
        await on.json('operator', 'PUT', `/api/inboxes/${to}`, { paused: false, max_pending: null })
        const other = await pass({ to })
        t.equal((await catchIt(other)).statusCode, 200)
        t.strictSame(await take(), [], 'one is caught')
        // It is taken from its catcher: then its place is free, for the first in the inbox.
        const { handoff_id: behind } = await end(other, 'reissue', {}, 'alice')
        await on.json('operator', 'PUT', `/api/inboxes/${to}`, { max_caught: 2 })
        await caught(next, behind)
      })
    }

    t.test('who comes after a handoff is kept longer than that', async t => {
      const one = await start({ max_attempts: 2, retry_delay: 0, expires_in: 3600 })
      await pass({ after: [one], expires_in: 7200 })
      const days = async (id: string) => await on.redis.pttl((await keyOf(on, id)).replace(':h:', ':d:')) / 86_400_000
      t.ok(await days(one) > 39, 'and ends')
      const { reissued_as: next } = await end(one, 'fail', fault)
      t.ok(await days(next) > 39, 'and ends')
      t.equal(await days(one), -2 / 86_400_000)
    })

    t.test('priority, pause and max_caught hold for what was blocked', async t => {
      const [one, two] = [await start(), await start()]
      const name = `many-${isSpread}`
      const low = await pass({ after: [one], to: name })
      const high = await pass({ after: [two], to: name, priority: 9 })
      await on.json('operator', 'PUT', `/api/inboxes/${name}`, { paused: true, max_caught: 1 })
      await end(one, 'done')
      await end(two, 'done')
      if (isSpread) await settle(one, two)
      const take = async () => (await on.json('bob', 'POST', '/api/catch', { inbox: name, max: 9 })).items.map(({ handoff_id: id }: any) => id)
      t.strictSame(await take(), [])
      await on.json('operator', 'PUT', `/api/inboxes/${name}`, { paused: false })
      t.strictSame(await take(), [high])
      t.strictSame(await take(), [])
      await end(high, 'done')
      t.strictSame(await take(), [low])
    })

    t.test('an Idempotency-Key gets the first answer, whatever has become of what was named', async t => {
      const [one, two] = [await start(), await start()]
      const post = (body: object, key: string) => call('alice', 'POST', '/api/pass', { task: 't', ...body }, { 'idempotency-key': key })
      const key = `k-${isSpread}`
      const both = await Promise.all([1, 2].map(() => post({ after: [one, two] }, key)))
      t.strictSame(both.map(({ statusCode }) => statusCode), [201, 201])
      t.strictSame(both[0]!.json(), both[1]!.json())
      t.equal(both[0]!.json().blocked_by, 2)
      const first = both[0]!.body
      const id = both[0]!.json().handoff_id
      isProblem(t, await post({ after: [one] }, key), 422, 'idempotency_key_reused')
      isProblem(t, await post({ after: [id] }, key), 422, 'idempotency_key_reused')
      await end(one, 'done')
      t.equal((await post({ after: [one, two] }, key)).body, first)
      await end(two, 'fail', fault)
      await settle(one, two)
      t.match(await status(id), { status: 'cancelled' })
      t.equal((await post({ after: [one, two] }, key)).body, first)
      for (const gone of [one, two]) await on.redis.del(await keyOf(on, gone))
      const again = await post({ after: [one, two] }, key)
      t.equal(again.body, first)
      t.equal(again.headers['idempotency-replayed'], 'true')
      isProblem(t, await post({ after: [two, one] }, key), 422, 'idempotency_key_reused')
      t.match(await status(id), { status: 'cancelled' })
      // Its own id can't be known before, and names nothing then.
      const own = (await post({}, `${key}-own`)).json().handoff_id
      await on.redis.del(await keyOf(on, own))
      isProblem(t, await post({ after: [own] }, `${key}-own`), 409, 'unknown_handoff')
    })

    t.test('results come as they were given; one that is gone is left out', async t => {
      const text = '{"n":9007199254740993,"x":1e400,"y":1.0,"a":1,"a":2,"__proto__":{"b":"\\ud800"}}'
      const [literal, empty, gone, failed] = [await start(), await start(), await start(), await start()]
      const id = await pass({ after: [failed, gone, empty, literal], after_need: 'ended' })
      await call('bob', 'POST', `/api/done/${literal}`, `{"output":${text}}`)
      await end(empty, 'done')
      await end(gone, 'done', { output: { a: 1 } })
      await end(failed, 'fail', fault)
      if (isSpread) await settle(literal, empty, gone, failed)
      for (const one of [gone, failed]) await on.redis.del(await keyOf(on, one))
      const { body } = await catchIt(id)
      const after = body.slice(body.indexOf('"after":') + 8, -1)
      t.equal(after, `[{"handoff_id":"${failed}","status":"failed","result":null},{"handoff_id":"${gone}","status":"done","result_omitted":true},` +
        `{"handoff_id":"${empty}","status":"done","result":null},{"handoff_id":"${literal}","status":"done","result":${text}}]`)
      const read = await on.json('bob', 'POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'handoff_read', arguments: { id, offset: 0 } } },
        { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' })
      t.equal(read.result?.content[0].text, body, JSON.stringify(read))
    })

    t.test('results over 4 MiB together are left out, and each catch of several has the room once', async t => {
      const big = '{"b":"' + 'x'.repeat(1_000_000) + '"}'
      const six: string[] = []
      for (let i = 0; i < 6; i++) {
        const id = await start()
        await call('bob', 'POST', `/api/done/${id}`, `{"output":${i === 5 ? '{"s":1}' : big}}`)
        six.push(id)
      }
      const shown = ({ after }: { after: { result?: unknown, result_omitted?: true }[] }) => after.map(one => 'result' in one && !one.result_omitted)
      const id = await pass({ after: six })
      t.strictSame(shown((await catchIt(id, 'big')).json()), [true, true, true, true, false, true])
      t.strictSame(shown((await catchIt(id, 'big')).json()), [true, true, true, true, false, true])
      const name = `big-${isSpread}`
      for (const after of [six.slice(0, 3), six.slice(0, 3)]) await pass({ after, to: name })
      const { items } = await on.json('bob', 'POST', '/api/catch', { inbox: name, max: 5 })
      t.strictSame(items.map(shown), [[true, true, true], [true, false, false]])
    })

    t.test('lists, waits and batches say what is blocked', async t => {
      const [one, two] = [await start({ expires_in: 7200 }), await pass({ expires_in: 7200 })]
      const name = `lists-${isSpread}`
      const id = await pass({ after: [one, two], to: name, expires_in: 3600 })
      t.match(await on.json('alice', 'GET', `/api/handoffs?inbox=${name}`), { items: [{ handoff_id: id, status: 'pending', blocked_by: 2 }] })
      t.match((await on.json('alice', 'GET', '/api/inboxes?limit=100')).items.find(({ inbox }: any) => inbox === name), { blocked: 1, pending: 0 })
      t.match(await on.json('alice', 'POST', '/api/wait', { ids: [id] }), { items: [{ handoff_id: id, status: 'pending', blocked_by: 2 }], complete: false })
      const { results } = await on.json('alice', 'POST', '/api/batch', {
        operations: [{ op: 'pass', body: { task: 't', after: [one, one] } }, { op: 'status', id }, { op: 'catch', id },
          { op: 'pass', body: { task: 't', after: ['AVHdDBR3Ox_T_H9gltuUjYVhg'] } }, { op: 'pass', body: { task: 't', after_need: 'done' } }]
      })
      t.match(results, [
        { status: 201, body: { blocked_by: 1 } }, { status: 200, body: { blocked_by: 2 } }, { status: 409, body: { code: 'blocked' } },
        { status: 409, body: { code: 'unknown_handoff' } }, { status: 400, body: { errors: [{ pointer: '/after_need' }] } }
      ])
      await end(one, 'done')
      if (isSpread) await settle(one)
      t.match(await on.json('alice', 'GET', `/api/handoffs?inbox=${name}`), { items: [{ handoff_id: id, blocked_by: 1 }] })
      await catchIt(two)
      await end(two, 'done')
      if (isSpread) await settle(two)
      const { items: [item] } = await on.json('alice', 'GET', `/api/handoffs?inbox=${name}`)
      t.equal(item.handoff_id, id)
      t.notOk('blocked_by' in item)
    })

    t.test('without the note, the sweep’s own question releases it', async t => {
      const [one, two] = [await start(), await start({ max_attempts: 2, retry_delay: 0 })]
      const id = await pass({ after: [one, two] })
      const bad = await pass({ after: [two] })
      const forget = async (of: string) => on.redis.del((await keyOf(on, of)).replace(':h:', ':d:'))
      for (const of of [one, two]) t.equal(await forget(of), 1)
      const { reissued_as: next } = await end(two, 'fail', fault)
      await end(one, 'done')
      await settle(one, two)
      t.match(await status(id), { blocked_by: 2 })
      await on.later(3000)
      await settle(id, bad)
      t.match(await status(id), { blocked_by: 1 })
      // It is noted again at the attempt that there is now.
      await catchIt(next)
      await end(next, 'fail', fault)
      if (isSpread) await settle(next)
      t.match([await status(id), await status(bad)], [{ status: 'cancelled' }, { status: 'cancelled' }])
      // And what has ended and is gone, when nobody knows how.
      const three = await start()
      const [needs, any] = [await pass({ after: [three] }), await pass({ after: [three], after_need: 'ended' })]
      await forget(three)
      await on.redis.del(await keyOf(on, three))
      await settle(needs, any)
      t.match(await status(needs), { status: 'cancelled', cancel_reason: new RegExp(`${three}.*gone`) })
      t.strictSame((await catchIt(any)).json().after, [{ handoff_id: three, status: 'unknown', result_omitted: true }])
    })

    t.test('a lost note is written at the first look, however late that comes', async t => {
      const one = await start()
      const [noted, id] = [await pass({ after: [one] }), await pass({ after: [one] })]
      await on.store.dependents.settled()
      const notes = (await keyOf(on, one)).replace(':h:', ':d:')
      t.equal(await on.redis.srem(notes, `${id}/${one}`), 1)
      await on.later(30_000)
      await settle(id)
      t.strictSame((await on.redis.smembers(notes)).sort(), [`${id}/${one}`, `${noted}/${one}`].sort())
      // And at a later one, if the replica that looked first has died.
      t.equal(await on.redis.srem(notes, `${id}/${one}`), 1)
      await on.later(60_000)
      await settle(id)
      t.strictSame((await on.redis.smembers(notes)).sort(), [`${id}/${one}`, `${noted}/${one}`].sort())
    })

    t.test('a hundred in the same step, the others in bounded steps', async t => {
      const one = await start()
      const ids = await passMany(on, 210, { after: [one] })
      // After a pass it is asked once more how the other one stands, which would release some here.
      await on.store.dependents.settled()
      t.equal(await countBlocked(on, ids), 210)
      await end(one, 'done')
      t.equal(await countBlocked(on, ids), isSpread ? 210 : 110)
      await settle(one)
      t.equal(await countBlocked(on, ids), 0)
      t.equal(await on.redis.exists((await keyOf(on, one)).replace(':h:', ':d:')), 0)
      t.equal(await on.redis.zscore(`${on.prefix}:{${tagOf(one)}}:due:default`, `default:${one}`), null)
    })

    t.test('a chain of 210 is cancelled from its head, in bounded steps', async t => {
      const head = await pass()
      const ids = [head]
      for (let i = 0; i < 210; i++) ids.push(await pass({ after: [ids.at(-1)] }))
      await end(head, 'cancel', {}, 'alice')
      const cancelled = async () => {
        const states = await Promise.all(ids.map(async id => (await status(id)).status))
        return states.lastIndexOf('cancelled')
      }
      t.equal(await cancelled(), isSpread ? 0 : 100)
      await settle(ids[isSpread ? 0 : 100]!)
      t.equal(await cancelled(), 210)
      t.match(await status(ids.at(-1)!), { cancel_reason: new RegExp(ids.at(-2)!) })
    })

    t.test('a note without its pass does no harm, and a pass without its note is found', async t => {
      const one = await start()
      await on.store.dependents.note('default', 'AVHdDBR3Ox_T_H9gltuUjYVhg', [one])
      const other = await pass()
      await on.store.dependents.note('default', other, [one])
      const id = await pass({ after: [one] })
      await end(one, 'fail', fault)
      await settle(one)
      t.match([await status(id), await status(other)], [{ status: 'cancelled' }, { status: 'pending' }])
      t.equal((await catchIt(other)).statusCode, 200)
      // Twice the same changes nothing.
      const two = await start()
      const both = await pass({ after: [two, await start()] })
      for (let i = 0; i < 2; i++) {
        const { outcome } = await on.store.dependents.release('default', both, { named: two, last: two, standing: 'done' })
        t.equal(outcome, i === 0 ? 'blocked' : 'unchanged')
      }
      t.match(await status(both), { blocked_by: 1 })
    })

    t.test('a replica that stops leaves what it hasn’t begun to the next one', async t => {
      const other = await testApp(t, {}, { isSpread, prefix: on.prefix })
      const one = await start()
      const ids = await passMany(on, 140, { after: [one], after_need: 'ended' })
      await makeDue(on, one)
      await end(one, 'fail', fault)
      const { ended, blocked } = await other.store.handoffs.sweep(tagOf(one), 100)
      t.match(ended, [{ id: one }])
      other.store.dependents.swept(ended, blocked)
      await other.store.dependents.stop()
      await on.later(1000)
      await settle(one)
      t.equal(await countBlocked(on, ids), 0)
    })
  })
}

async function passMany ({ json }: Crossing, count: number, body: object): Promise<string[]> {
  const ids: string[] = []
  for (let i = 0; i < count; i += 70) {
    const operations = Array.from({ length: 70 }, () => ({ op: 'pass', body: { task: 't', ...body } }))
    ids.push(...(await json('alice', 'POST', '/api/batch', { operations })).results.map((result: any) => result.body.handoff_id))
  }
  return ids
}

/** The sweep looks at it next. */
async function makeDue ({ redis, prefix }: Crossing, id: string): Promise<void> {
  const partition = `${prefix}:{${tagOf(id)}}:`
  await redis.multi().zadd(`${partition}due:default`, 1, `default:${id}`).zadd(`${partition}tenants`, 1, 'default').exec()
}

async function countBlocked ({ json }: Crossing, ids: readonly string[]): Promise<number> {
  let count = 0
  for (let i = 0; i < ids.length; i += 70) {
    const { items } = await json('alice', 'POST', '/api/wait', { ids: ids.slice(i, i + 70) })
    count += items.filter((item: object) => 'blocked_by' in item).length
  }
  return count
}

for (const isSpread of [false, true]) {
  t.test(`the sweep runs, and events are on${isSpread ? ', in a Cluster' : ''}`, async t => {
    const service = await testApp(t, { EVENTS_RETENTION: '60' }, { isSpread })
    const { call, pass, store } = service
    store.sweeper.start()
    const json = async (...args: Parameters<TestApp['call']>) => (await call(...args)).json()
    const start = async (more: object = {}) => {
      const id = await pass(more)
      succeeded(await call('bob', 'GET', `/api/catch/${id}`))
      return id
    }
    const done = async (id: string) => { succeeded(await call('bob', 'POST', `/api/done/${id}`)) }

    t.test('a waiting catch waits for all of it', async t => {
      const one = await start()
      const id = await pass({ after: [one], delay: 1, require_human: true })
      const waits = call('bob', 'GET', `/api/catch/${id}?wait=30`)
      await asleep(service, id)
      succeeded(await call('approver', 'POST', `/api/approve/${id}`))
      await done(one)
      const answer = await waits
      t.equal(answer.statusCode, 200, answer.body)
      t.match(answer.json(), { after: [{ handoff_id: one, status: 'done' }] })
    })

    t.test('what waits is told of the end by which it was cancelled, and of the expiry', async t => {
      const one = await start()
      const id = await pass({ after: [one] })
      const waits = [call('bob', 'GET', `/api/catch/${id}?wait=30`), call('alice', 'GET', `/api/status/${id}?wait=30`), call('alice', 'POST', '/api/wait?wait=30', { ids: [id] })]
      await asleep(service, id)
      succeeded(await call('bob', 'POST', `/api/decline/${one}`, { reason: 'r' }))
      const [caught, status, many] = await Promise.all(waits)
      isProblem(t, caught!, 409, 'cancelled')
      t.match(status!.json(), { status: 'cancelled', ended_by: null })
      t.match(many!.json(), { items: [{ status: 'cancelled', ended_by: null }], complete: true })
      const ends = await pass({ after: [await pass({ expires_in: 1 })], after_need: 'ended', expires_in: 600 })
      t.match((await call('bob', 'GET', `/api/catch/${ends}?wait=30`)).json(), { status: 'caught', after: [{ status: 'expired' }] })
    })

    t.test('a waiting catch from an inbox gets what is released', async t => {
      const one = await start()
      const waits = call('bob', 'POST', '/api/catch?wait=30', { inbox: 'in' })
      await until(async () => await inboxWaiters(service.app) === 1)
      const id = await pass({ after: [one], to: 'in' })
      await done(one)
      t.match((await waits).json(), { items: [{ handoff_id: id, after: [{ handoff_id: one }] }] })
    })

    t.test('the feed has the end, and then what it cancelled', async t => {
      const one = await start()
      const two = await pass({ after: [one] })
      const three = await pass({ after: [two], require_human: true })
      const four = await pass({ after: [one], after_need: 'ended' })
      succeeded(await call('bob', 'POST', `/api/fail/${one}`, { error: { message: 'm' } }))
      const failed = await pass({ after: [one] })
      const names = [one, two, three, four, failed]
      const events = await until(async () => {
        const { items } = await json('alice', 'GET', '/api/events?after=0-0')
        const own = items.filter(({ data }: any) => names.includes(data.handoff_id)).map(({ type, data }: any) => `${names.indexOf(data.handoff_id)} ${type.slice(8)} ${data.status}`)
        return own.length >= 11 ? own as string[] : null
      })
      t.strictSame([...events].sort(), [
        '0 caught caught', '0 failed failed', '0 passed pending', '1 cancelled cancelled', '1 passed pending', '2 approval_requested pending',
        '2 cancelled cancelled', '2 passed pending', '3 passed pending', '4 cancelled cancelled', '4 passed pending'
      ].sort())
      t.ok(events.indexOf('0 failed failed') < events.indexOf('1 cancelled cancelled'))
      t.ok(events.indexOf('1 cancelled cancelled') < events.indexOf('2 cancelled cancelled'))
    })
  })
}

/** A handoff's key in Redis. */
async function keyOf ({ redis, prefix }: TestApp, id: string): Promise<string> {
  const [key] = await redis.keys(`${prefix}:{${tagOf(id)}}:h:*:${id}`)
  if (key === undefined) throw new Error(`${id} isn’t there`)
  return key
}
