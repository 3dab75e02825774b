import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { randomId } from '../../src/core/ids.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { openStream } from '../helpers/event-stream.ts'
import { asked, form, own, shown, signedIn } from '../helpers/forms.ts'
import { pass } from '../helpers/handoffs.ts'
import { grown, readMetrics, scrape, sum } from '../helpers/metrics.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'
import { asleep, nobody, passed } from '../helpers/waits.ts'
import { ask, listen } from '../helpers/wire.ts'

t.test('every family has a help text and a type, and needs no key', async t => {
  const { app } = await testApp(t)
  const { statusCode, headers, body } = await app.inject('/metrics')
  t.strictSame([statusCode, headers['content-type']], [200, 'text/plain; version=0.0.4; charset=utf-8'])
  const types = new Map([...body.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name!, type!]))
  t.ok(types.size > 30)
  for (const [name, type] of types) {
    t.match(body, new RegExp(`^# HELP ${name} \\S.+\\.$`, 'm'), name)
    t.equal(name.endsWith('_total'), type === 'counter', name)
  }
})

t.test('events are counted where they are on', async t => {
  const off = await testApp(t)
  if (process.env.TEST_EVENTS !== 'on') t.notMatch((await off.app.inject('/metrics')).body, /^handoff_(relay|feed|event_streams)/m)
  const { app, call, store } = await testApp(t, { EVENTS_RETENTION: '60' }, { isSpread: true })
  const read = async () => (await app.inject('/metrics')).body
  t.notMatch(await read(), /^handoff_relay_lag_seconds /m, 'not from a replica that moves nothing for others')
  await call('alice', 'POST', '/api/pass', { task: 't' })
  await call('alice', 'POST', '/api/pass', { task: 't' })
  t.notMatch(await read(), /^handoff_feed_length /m, 'nobody has read a feed')
  await until(async () => {
    await call('alice', 'GET', '/api/events')
    return /^handoff_feed_length 2$/m.test(await read())
  })
  const stream = await openStream(t, await listen(app), secrets.alice)
  t.match(await read(), /^handoff_event_streams 1$/m)
  stream.close()
  await until(async () => /^handoff_event_streams 0$/m.test(await read()))
  store.relayRound!.start()
  t.teardown(() => store.relayRound!.stop())
  await until(async () => /^handoff_relay_lag_seconds 0$/m.test(await read()))
})

t.test('each operation is counted once, under its route, status and transition', async t => {
  const service = await testApp(t)
  const { app, call } = service
  const one = async () => (await call('alice', 'POST', '/api/pass', { task: 't' })).json().handoff_id as string
  const before = await scrape(app)
  const key = { 'idempotency-key': 'k' }
  for (let i = 0; i < 2; i++) await call('alice', 'POST', '/api/pass', { task: 't' }, key)
  const id = await one()
  for (let i = 0; i < 2; i++) t.equal((await call('bob', 'GET', `/api/catch/${id}`, undefined, key)).statusCode, 200)
  await call('alice', 'POST', '/api/pass', { task: 't', to: 'box' })
  for (let i = 0; i < 2; i++) t.equal((await call('bob', 'POST', '/api/catch', { inbox: 'box' }, key)).json().items.length, 1)
  isProblem(t, await call('alice', 'GET', `/api/catch/${id}`), 409, 'already_caught')
  isProblem(t, await call('alice', 'POST', `/api/done/${id}`, {}), 403, 'not_the_catcher')
  for (let i = 0; i < 2; i++) t.equal((await call('bob', 'POST', `/api/done/${id}`, {}, key)).statusCode, 200)
  isProblem(t, await call('bob', 'POST', `/api/done/${id}`, {}), 409, 'already_done')
  isProblem(t, await call('bob', 'POST', `/api/done/${await one()}`, {}), 409, 'not_caught')
  const [rejected, waiting] = [await asked(service), await asked(service)]
  isProblem(t, await call('bob', 'GET', `/api/catch/${waiting}`), 409, 'approval_required')
  isProblem(t, await call('approverAlice', 'POST', `/api/approve/${waiting}`), 403, 'self_approval')
  t.equal((await call('approver', 'POST', `/api/reject/${rejected}`, { note: 'no' })).statusCode, 200)
  isProblem(t, await call('approver', 'POST', `/api/approve/${rejected}`), 409, 'already_decided')
  isProblem(t, await call('bob', 'GET', `/api/catch/${rejected}`), 409, 'rejected')
  isProblem(t, await call('approver', 'GET', `/api/catch/${rejected}`), 403, 'insufficient_scope')
  const after = await scrape(app)
  t.strictSame(grown(before, after, /^handoff_transitions/), {
    'handoff_transitions_total{to="pending"}': 6,
    'handoff_transitions_total{to="caught"}': 2,
    'handoff_transitions_total{to="done"}': 1,
    'handoff_transitions_total{to="rejected"}': 1,
  })
  t.strictSame(grown(before, after, /^handoff_conflicts/), Object.fromEntries(
    ['not_the_catcher', 'self_approval', 'already_caught', 'already_done', 'not_caught', 'approval_required', 'rejected', 'already_decided']
      .map(code => [`handoff_conflicts_total{code="${code}"}`, 1])))
  t.strictSame(grown(before, after, /^http_request_duration_seconds_count\{.*route="\/api/), Object.fromEntries(([
    ['POST', '/api/pass', 201, 7], ['POST', '/api/catch', 200, 2], ['GET', '/api/catch/:id', 200, 2], ['GET', '/api/catch/:id', 403, 1], ['GET', '/api/catch/:id', 409, 3],
    ['POST', '/api/done/:id', 200, 2], ['POST', '/api/done/:id', 403, 1], ['POST', '/api/done/:id', 409, 2],
    ['POST', '/api/approve/:id', 403, 1], ['POST', '/api/approve/:id', 409, 1], ['POST', '/api/reject/:id', 200, 1],
  ] as const).map(([method, route, status, count]) => [`http_request_duration_seconds_count{method="${method}",route="${route}",status_code="${status}"}`, count])))
  t.equal(grown(before, after, /call_duration_seconds_count\{script="pass"\}/)['handoff_redis_call_duration_seconds_count{script="pass"}'], 7)
  t.ok(sum(after, /^handoff_redis_call_duration_seconds_sum\{script="pass"\}/) > 0)
})

t.test('ends, cancels and successors are counted once, with the reason', async t => {
  const service = await testApp(t)
  const { app, call, store, setClock, caught } = service
  const start = Date.now()
  await setClock(start)
  const post = async (who: 'alice' | 'bob', operation: string, id: string, body: object = {}, status = 200) =>
    t.equal((await call(who, 'POST', `/api/${operation}/${id}`, body, { 'idempotency-key': 'k' })).statusCode, status, operation)
  const error = { message: 'm' }
  const again = { max_attempts: 2 }
  const ids = {
    retried: await caught(again), last: await caught(again), failed: await caught(), declined: await caught(), declinedAgain: await caught(again), soft: await caught(again), forced: await caught(), taken: await caught(),
  }
  const expiring = [await caught({ heartbeat_within: 5 }), await caught({ heartbeat_within: 5, ...again }), await caught({ work_within: 5, ...again }), await caught({ work_within: 5 })]
  const before = await scrape(app)
  // Each and its replay, which moves nothing; nor does a request to stop.
  for (let i = 0; i < 2; i++) {
    await post('bob', 'fail', ids.retried, { error })
    await post('bob', 'decline', ids.declinedAgain, { reason: 'r' })
    await post('alice', 'cancel', ids.soft, {}, 202)
    await post('alice', 'cancel', ids.forced, { force: true })
    await post('alice', 'reissue', ids.taken, {}, 201)
  }
  await post('bob', 'fail', ids.last, { error, retry: false })
  await post('bob', 'fail', ids.failed, { error })
  await post('bob', 'decline', ids.declined, { reason: 'r' })
  await post('alice', 'reissue', ids.failed, {}, 201)
  // That is not tried again, since it was to stop.
  await post('bob', 'fail', ids.soft, { error })
  await post('bob', 'done', ids.forced, {}, 409)
  await setClock(start + 5000)
  store.sweeper.start()
  const expired = await until(async () => {
    const told = await scrape(app)
    return told.get('handoff_transitions_total{to="expired"}') === expiring.length ? told : null
  }, 10_000)
  t.strictSame(grown(before, expired, /^handoff_(transitions|reissued|stalled)/), {
    'handoff_transitions_total{to="pending"}': 6,
    'handoff_transitions_total{to="failed"}': 4,
    'handoff_transitions_total{to="declined"}': 2,
    'handoff_transitions_total{to="cancelled"}': 2,
    'handoff_transitions_total{to="expired"}': 4,
    'handoff_reissued_total{because="failed"}': 1,
    'handoff_reissued_total{because="declined"}': 1,
    'handoff_reissued_total{because="requested"}': 2,
    'handoff_reissued_total{because="stalled"}': 1,
    'handoff_reissued_total{because="not_done"}': 1,
    handoff_stalled_total: 2,
  })
  await post('bob', 'done', expiring[0]!, {}, 410)
  t.equal((await scrape(app)).get('handoff_conflicts_total{code="expired"}'), 1, 'who comes too late is counted as well')
})

t.test('a decision on the page counts like one by program', async t => {
  const service = await testApp(t)
  const session = await signedIn(service)
  const cookie = { ...own, cookie: session }
  const [id, another] = [await asked(service), await asked(service)]
  const seen = await shown(service, id, session)
  const before = await scrape(service.app)
  const decide = (verdict: string, note: string) => service.app.inject(form(`/approvals/${id}/${verdict}`, { note, ...seen }, cookie))
  t.equal((await decide('reject', '')).statusCode, 400)
  t.equal((await decide('reject', 'no')).statusCode, 303)
  t.equal((await decide('approve', '')).statusCode, 409)
  for (const note of ['', 'no']) t.equal((await service.app.inject(form(`/approvals/${another}/reject`, { note }, cookie))).statusCode, 409)
  t.equal((await service.app.inject({ url: `/approvals/${await passed(service, { require_human: false })}`, headers: cookie })).statusCode, 409)
  t.equal((await service.app.inject(form(`/approvals/${id}/approve`, {}, { ...cookie, 'sec-fetch-site': 'cross-site' }))).statusCode, 403)
  const after = await scrape(service.app)
  t.strictSame(grown(before, after, /^handoff_(transitions|conflicts)/), {
    'handoff_transitions_total{to="pending"}': 1,
    'handoff_transitions_total{to="rejected"}': 1,
    'handoff_conflicts_total{code="already_decided"}': 1,
    'handoff_conflicts_total{code="no_approval_required"}': 1,
    'handoff_conflicts_total{code="cross_origin"}': 1,
    'handoff_conflicts_total{code="content_changed"}': 2,
  })
  t.equal(after.get('http_request_duration_seconds_count{method="POST",route="/approvals/:id/reject",status_code="303"}'), 1)
})

t.test('a bucket counts all durations up to its bound, the last one all', async t => {
  const { app, call } = await testApp(t)
  for (let i = 0; i < 5; i++) await call('alice', 'POST', '/api/pass', { task: 't' })
  const told = await scrape(app)
  const of = 'method="POST",route="/api/pass",status_code="201"'
  const buckets = [...told].filter(([sample]) => sample.startsWith(`http_request_duration_seconds_bucket{${of},le=`)).map(([, count]) => count)
  t.strictSame(buckets, [...buckets].sort((a, b) => a - b), 'ascending')
  t.equal(buckets.length, 16)
  t.equal(buckets.at(-1), 5)
  t.equal(told.get(`http_request_duration_seconds_bucket{${of},le="60"}`), 5, 'in seconds')
  t.ok(told.get(`http_request_duration_seconds_sum{${of}}`)! < 5)
})

t.test('requests with new ids and paths make no new labels', async t => {
  const { app, call } = await testApp(t)
  const port = await listen(app)
  const raw = (line: string) => ask(t, port, `${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  const round = async (count: number) => {
    for (let i = 0; i < count; i++) {
      const id = randomId()
      await Promise.all([
        call('bob', 'GET', `/api/catch/${id}?wait=0`), call('bob', 'POST', `/api/done/${id}`, {}), call('bob', 'GET', `/api/status/${id}`),
        call(null, 'GET', `/api/status/${id}`), call('bob', 'GET', `/nowhere/${id}`), call('bob', 'POST', `/${id}`), app.inject(`/approvals/x/y/${id}`),
        app.inject({ method: 'HEAD', url: `/problems/${id}` }), app.inject('/docs/static/' + id), app.inject(`/api/%${id}`),
      ])
    }
    for (const method of ['PUT', 'PATCH', 'PROPFIND', 'M-SEARCH']) await raw(`${method} /api/pass`)
  }
  await round(1)
  const samples = async () => [...(await scrape(app)).keys()].sort()
  await samples()
  const before = await samples()
  await round(20)
  t.strictSame(await samples(), before)
  const told = await scrape(app)
  const unmatched = /^http_request_duration_seconds_count\{method="(\w+)",route="unmatched",status_code="(\d+)"\}/
  t.strictSame(Object.fromEntries([...told].filter(([sample]) => unmatched.test(sample)).map(([sample, count]) => [unmatched.exec(sample)!.slice(1).join(' '), count])), {
    'GET 404': 63, 'POST 404': 21, 'HEAD 404': 21, 'other 405': 8,
  })
  t.notMatch([...told.keys()].join('\n'), /bob|alice|default|nowhere|x\/y/, 'nobody’s names, and no path that somebody made up')
  for (const path of ['/docs', '/clients', '/console'].flatMap(path => [path, `${path}/`])) t.ok((await app.inject(path)).statusCode < 400, path)
  t.notMatch([...(await scrape(app)).keys()].join('\n'), /route="\/\w[^"]*\/"/, 'with a slash at its end it is the same route')
})

t.test('waiters and readiness are shown', async t => {
  const service = await testApp(t)
  const { app, call } = service
  t.notOk((await scrape(app)).has('handoff_ready'), 'nobody has looked')
  await until(async () => (await app.inject('/readyz')).statusCode === 200)
  t.equal((await scrape(app)).get('handoff_ready'), 1)
  const id = await passed(service)
  const waits = call('bob', 'GET', `/api/status/${id}?wait=30`)
  await asleep(service, id)
  t.equal((await scrape(app)).get('handoff_waiters'), 1)
  await call('approver', 'POST', `/api/reject/${id}`, { note: 'no' })
  await waits
  await nobody(service, id)
  const told = await scrape(app)
  t.equal(told.get('handoff_waiters'), 0)
  // The sweep and the subscriber's ping are calls too.
  await until(async () => (await scrape(app)).get('handoff_lane_calls{master="redis",state="under_way"}') === 0)
  t.equal(sum(told, /^handoff_lane_calls\{.*parked/), 0)
  app.draining.now = true
  t.equal((await scrape(app)).get('handoff_ready'), 0, 'stopping')
})

t.test('the sweeping replica reports on all partitions, the others only that they don’t sweep', async t => {
  const one = await testApp(t)
  const other = await testApp(t, {}, { prefix: one.prefix })
  t.equal((await scrape(one.app)).get('handoff_sweeping'), 0)
  for (let i = 0; i < 20; i++) await pass(one.store.handoffs)
  for (let i = 0; i < 3; i++) await pass(one.store.handoffs, undefined, 1)
  one.store.sweeper.start()
  const told = await until(async () => {
    const told = await scrape(one.app)
    return told.has('handoff_live_handoffs') && told.get('handoff_live_handoffs') === 20 ? told : null
  })
  t.equal(told.get('handoff_transitions_total{to="expired"}'), 3)
  t.equal(told.get('handoff_oldest_due_age_seconds'), 0)
  t.equal(told.get('handoff_sweeping'), 1)
  t.ok(told.get('handoff_sweep_lag_seconds')! < 10, String(told.get('handoff_sweep_lag_seconds')))
  other.store.sweeper.start()
  const theirs = await scrape(other.app)
  t.equal(theirs.get('handoff_sweeping'), 0)
  for (const name of ['handoff_live_handoffs', 'handoff_oldest_due_age_seconds', 'handoff_sweep_lag_seconds']) t.notOk(theirs.has(name), name)
})

t.test('an event loop delay is reported once', async t => {
  const { app } = await testApp(t)
  const max = async () => (await scrape(app)).get('handoff_event_loop_delay_seconds{stat="max"}')!
  // The monitor's timer of 10 ms must run once before the delay and once after it, which can't be observed from outside.
  const late = await until(async () => {
    await max()
    await sleep(200)
    const end = performance.now() + 400
    while (performance.now() < end);
    await sleep(20)
    const seen = await max()
    return seen > 0.3 ? seen : undefined
  })
  t.ok(late < 5, `${late} s`)
  t.ok(await until(async () => await max() < 0.3), 'since the last scrape alone')
})

t.test('with a port of its own, /metrics is only there', async t => {
  const { app, call } = await testApp(t, { METRICS_PORT: '0' })
  const operations = app.operatorsPort!
  await call('alice', 'POST', '/api/pass', { task: 't' })
  for (const path of ['/metrics', '/healthz', '/readyz']) {
    isProblem(t, await app.inject(path), 404, 'not_found')
    await until(async () => (await operations.inject(path)).statusCode === 200)
    t.equal((await operations.inject({ method: 'PUT', url: path })).statusCode, 405)
  }
  for (const path of ['/api/pass', '/docs', '/openapi.json', '/problems', '/approvals', '/']) t.equal((await operations.inject(path)).statusCode, 404, path)
  const { body } = await operations.inject('/metrics')
  t.equal(readMetrics(body).get('handoff_transitions_total{to="pending"}'), 1, 'it tells of the service')
  t.strictSame(Object.keys((await app.inject('/openapi.json')).json().paths).filter(path => !path.startsWith('/api')), [])
  app.draining.start()
  t.match(isProblem(t, await operations.inject('/readyz'), 503, 'unavailable').detail, /stopping/)
  t.equal((await operations.inject('/healthz')).statusCode, 200)
})
