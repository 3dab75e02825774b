import t from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import type { Who } from '../helpers/app.ts'
import { openStream } from '../helpers/event-stream.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { isProblem } from '../helpers/problems.ts'
import { receiver } from '../helpers/receiver.ts'
import { until } from '../helpers/until.ts'
import { webhookApp } from '../helpers/webhooks.ts'
import { listen } from '../helpers/wire.ts'

/** Labels: what they may be, where they are shown, and what is found by them. */

/** Of all that needs no service of its own. The clock of each handoff is Redis's own. */
const service = await testApp(t, { EVENTS_RETENTION: '60' })
const { call } = service

interface Item { id: string, type: string, data: { handoff_id: string, labels?: object } }

const read = async (query: string) => {
  const answer = await call('alice', 'GET', `/api/events?after=0-0&${query}`)
  if (answer.statusCode !== 200) throw new Error(answer.body)
  return answer.json() as { items: Item[], next: string }
}
const waiting = async (query: string) => {
  const answer = await call('approver', 'GET', `/api/approvals?${query}`)
  if (answer.statusCode !== 200) throw new Error(answer.body)
  return answer.json() as { items: Array<{ handoff_id: string }>, next_cursor: string | null }
}
const idsOf = (items: Array<{ handoff_id: string }>) => items.map(({ handoff_id: id }) => id)
const passRaw = (labels: string, more = '', headers?: Record<string, string>) => call('alice', 'POST', '/api/pass', `{"task":"t","labels":${labels}${more}}`, headers)

/** Names that an object has by itself, or would move to the front. */
const hostile = '{"z":"1","__proto__":"p","1":"one","constructor":"c","0":"zero","toString":"s","a.b_c-D":"A:z/0@x-y._"}'
/** As long and as many as they may be. */
const greatest = JSON.stringify(Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`${at}`.padStart(32, 'n'), `${at}`.padStart(64, ':/@')])))

t.test('labels are shown as they were passed, in that order, wherever a handoff is', async t => {
  for (const [name, labels] of [['hostile', hostile], ['greatest', greatest]] as const) {
    const member = `"labels":${labels}`
    const wanted = Object.entries(JSON.parse(labels)).map(parts => parts.join(':')).join()
    const shows = (answer: { body: string }, where: string) => t.ok(answer.body.includes(member), `${name}: ${where}: ${answer.body}`)
    const byId = (await passRaw(labels, ',"require_human":true')).json().handoff_id
    shows(await call('alice', 'GET', `/api/status/${byId}`), 'status')
    shows(await call('alice', 'POST', '/api/wait', { ids: [byId] }), 'wait')
    shows(await call('approver', 'GET', `/api/approvals?limit=100&labels=${encodeURIComponent(wanted)}`), 'list of approvals')
    shows(await call('approver', 'GET', `/api/approvals/${byId}`), 'approval')
    await call('approver', 'POST', `/api/approve/${byId}`, {})
    const key = { 'idempotency-key': `catch ${name}`.replace(' ', '-') }
    const first = await call('bob', 'GET', `/api/catch/${byId}`, undefined, key)
    shows(first, 'catch by id')
    const again = await call('bob', 'GET', `/api/catch/${byId}`, undefined, key)
    t.equal(again.headers['idempotency-replayed'], 'true')
    t.equal(again.body, first.body)
    await call('bob', 'POST', `/api/done/${byId}`)
    shows(await call('alice', 'GET', `/api/status/${byId}`), 'status once it is done')
    const { items } = await read(`handoff_id=${byId}`)
    t.equal(items.length, 5)
    const events = await call('alice', 'GET', `/api/events?after=0-0&handoff_id=${byId}`)
    t.equal(events.body.split(member).length, 6, 'each event')

    await passRaw(labels, `,"to":"labels.${name}"`)
    shows(await call('bob', 'POST', '/api/catch', { inbox: `labels.${name}` }), 'catch from an inbox')
    const inBatch = await call('alice', 'POST', '/api/batch', `{"operations":[{"op":"pass","body":{"task":"t",${member}}},{"op":"pass","body":{"task":"t","labels":{"a":"1","a":"1"}}}]}`)
    const [made, refused] = inBatch.json().results
    t.equal(refused.status, 400)
    t.strictSame(refused.body.errors, [{ pointer: '/labels/a', message: 'repeated' }])
    shows(await call('alice', 'GET', `/api/status/${made.body.handoff_id}`), 'a batch’s')
  }
})

t.test('what was passed without labels has none, and null is none', async t => {
  for (const labels of ['', ',"labels":null']) {
    const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', `{"task":"t","require_human":true${labels}}`)).json()
    const answers = [
      await call('alice', 'GET', `/api/status/${id}`), await call('approver', 'GET', `/api/approvals/${id}`), await call('approver', 'POST', `/api/approve/${id}`), await call('bob', 'GET', `/api/catch/${id}`),
      await call('alice', 'GET', `/api/events?after=0-0&handoff_id=${id}`),
    ]
    for (const { statusCode, body } of answers) {
      t.equal(statusCode, 200)
      t.notMatch(body, /labels/)
    }
  }
  const plain = (await call('alice', 'POST', '/api/pass', { task: 't', labels: null })).json().handoff_id
  t.notOk((await service.redis.hexists(`${service.prefix}:{${plain.slice(0, 3)}}:h:default:${plain}`, 'x')), 'nothing is kept for them')
})

t.test('labels that can’t be are refused, each with its pointer', async t => {
  const nine = JSON.stringify(Object.fromEntries([...'abcdefghi'].map(name => [name, 'v'])))
  const many = JSON.stringify(Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`n${at}`, 'v'])))
  const long = 'n'.repeat(33)
  const cases: Array<[labels: string, pointers: string[]]> = [
    ['{}', ['/labels']], [nine, ['/labels']], [many, ['/labels']],
    ['[]', ['/labels']], ['[{"a":"b"}]', ['/labels']], ['"run:42"', ['/labels']], ['1', ['/labels']], ['true', ['/labels']],
    ['{"a":1}', ['/labels/a']], ['{"a":null}', ['/labels/a']], ['{"a":true}', ['/labels/a']], ['{"a":{}}', ['/labels/a']], ['{"a":["b"]}', ['/labels/a']],
    ['{"a":""}', ['/labels/a']], [`{"a":"${'v'.repeat(65)}"}`, ['/labels/a']], ['{"a":"b c"}', ['/labels/a']], ['{"a":"b,c"}', ['/labels/a']], ['{"a":"b\\n"}', ['/labels/a']], ['{"a":"ä"}', ['/labels/a']], ['{"a":"b=c"}', ['/labels/a']],
    ['{"":"v"}', ['/labels/']], [`{"${long}":"v"}`, [`/labels/${long}`]], ['{"a b":"v"}', ['/labels/a b']], ['{"a:b":"v"}', ['/labels/a:b']], ['{"a/b":"v"}', ['/labels/a~1b']], ['{"a@b":1}', ['/labels/a@b']], ['{"a\\n":"v"}', ['/labels/a\n']],
    [`{"${'x'.repeat(100_000)}":1}`, [`/labels/${'x'.repeat(63)}…`]],
    ['{"a":"1","a":"1"}', ['/labels/a']], ['{"a":"1","\\u0061":"2"}', ['/labels/a']], ['{"__proto__":"1","__proto__":"1"}', ['/labels/__proto__']], ['{"__proto__":{"a":"b"}}', ['/labels/__proto__']],
    ['{"bad name":"v","a":"","ok":"v"}', ['/labels/bad name', '/labels/a']],
  ]
  for (const [labels, pointers] of cases) {
    const document = isProblem(t, await passRaw(labels), 400, 'invalid_request', labels.slice(0, 80))
    t.strictSame(document.errors.map(({ pointer }: { pointer: string }) => pointer), pointers, labels.slice(0, 80))
  }
  t.equal((await passRaw('{"a":"b"}x')).statusCode, 400)
  const escaped = (await passRaw('{"\\u0072un":"4\\u0032"}')).json().handoff_id
  t.match((await call('alice', 'GET', `/api/status/${escaped}`)).body, '"labels":{"run":"42"}', 'escapes are read')
})

t.test('a key’s replay has the same labels, and others are another body', async t => {
  const key = { 'idempotency-key': 'labels-1' }
  const first = await passRaw('{"run":"7"}', '', key)
  const again = await passRaw('{"run":"7"}', '', key)
  t.equal(again.headers['idempotency-replayed'], 'true')
  t.equal(again.body, first.body)
  for (const labels of ['{"run":"8"}', '{ "run":"7"}', 'null']) isProblem(t, await passRaw(labels, '', key), 422, 'idempotency_key_reused', labels)
  isProblem(t, await passRaw('{}', '', key), 400, 'invalid_request')
  t.match((await call('alice', 'GET', `/api/status/${first.json().handoff_id}`)).json().labels, { run: '7' })
})

t.test('a successor has them too, whatever made it', async t => {
  const service = await testApp(t)
  const { call, store } = service
  const labels = '"labels":{"z":"1","1":"2"}'
  const labelsOf = async (id: string) => /"labels":\{[^}]*\}/.exec((await call('alice', 'GET', `/api/status/${id}`)).body)?.[0]
  const caught = (more: string) => call('alice', 'POST', '/api/pass', `{"task":"t",${labels},${more}}`).then(async answer => {
    const id = answer.json().handoff_id as string
    await call('bob', 'GET', `/api/catch/${id}`)
    return id
  })
  const failed = await caught('"max_attempts":3,"retry_delay":0')
  const second = (await call('bob', 'POST', `/api/fail/${failed}`, { error: { message: 'm' } })).json().reissued_as
  t.equal(await labelsOf(second), labels)
  t.match((await call('bob', 'GET', `/api/catch/${second}`)).body, labels)
  const third = (await call('bob', 'POST', `/api/decline/${second}`, { reason: 'r' })).json().reissued_as
  t.equal(await labelsOf(third), labels)
  await call('bob', 'GET', `/api/catch/${third}`)
  const fourth = (await call('alice', 'POST', `/api/reissue/${third}`)).json().handoff_id
  t.equal(await labelsOf(fourth), labels)
  t.equal(await labelsOf(failed), labels, 'and the one before keeps them')
  const late = await caught('"max_attempts":2,"work_within":1,"heartbeat_within":5,"to":"labels.late","priority":3')
  await service.setClock(Date.now() + 60_000)
  await store.handoffs.sweep(late.slice(0, 3), 100)
  const after = (await call('alice', 'GET', `/api/status/${late}`)).json().reissued_as
  t.equal(await labelsOf(after), labels, 'reissued by the sweep')
})

t.test('events are found by their labels, all of those that are wanted', async t => {
  const both = (await passRaw('{"run":"events","team":"red:1"}')).json().handoff_id
  const one = (await passRaw('{"run":"events"}')).json().handoff_id
  const longer = (await passRaw('{"run":"events2","xrun":"events"}', ',"to":"run"')).json().handoff_id
  await call('bob', 'GET', `/api/catch/${both}`)
  const last = await service.pass()
  const found = async (query: string) => (await read(query)).items.map(({ type, data }) => [type.slice('handoff.'.length), data.handoff_id])
  t.strictSame(await found('labels=run:events'), [['passed', both], ['passed', one], ['caught', both]])
  t.strictSame(await found('labels=run:events,team:red:1'), [['passed', both], ['caught', both]])
  t.strictSame(await found('labels=team:red:1,run:events&types=handoff.caught'), [['caught', both]])
  t.strictSame(await found('labels=run:events2&inbox=run'), [['passed', longer]])
  for (const none of ['run:event', 'un:events', 'run:events,run:other', 'run:events,team:red', 'team:red', 'RUN:events']) t.strictSame(await found(`labels=${none}`), [], none)
  const { next } = await read('labels=run:event')
  t.equal(next, (await read(`handoff_id=${last}`)).items.at(-1)!.id, 'next is past what the filter left out')
  const wanted = call('alice', 'GET', `/api/events?after=${next}&labels=run:later&wait=30`)
  await passRaw('{"run":"sooner"}')
  const later = (await passRaw('{"run":"later"}')).json().handoff_id
  t.strictSame((await wanted).json().items.map(({ data }: Item) => data.handoff_id), [later], 'and it waits for one that passes')

  const opened = await openStream(t, await listen(service.app), secrets.alice, '?after=0-0&labels=run:events')
  await until(() => opened.frames.filter(({ data }) => data !== undefined).length >= 3)
  opened.close()
  const frames = opened.frames.flatMap(({ data }) => data === undefined ? [] : [JSON.parse(data) as Item])
  t.strictSame(frames, (await read('labels=run:events')).items, 'a stream has the same')
})

t.test('approvals are found by inbox and by labels, page by page', async t => {
  const ask = async (labels: object | undefined, to?: string, who: Who = 'alice') => service.pass({ require_human: true, ...labels && { labels }, ...to !== undefined && { to } }, who)
  const red = await ask({ run: 'page', team: 'red' }, 'labels.page')
  const blue = await ask({ run: 'page', team: 'blue' })
  await ask({ run: 'other' }, 'labels.page.2')
  await ask(undefined)
  await ask({ x: 'jrun:page', y: 'tlabels.page', jrun: 'page', 'tlabels.page': 'jteam:red' })
  const boxed = await ask(undefined, 'labels.page')
  await ask({ run: 'page', team: 'red' }, 'labels.page', 'foreignAlice')
  const found = async (query: string) => idsOf((await waiting(`limit=100&${query}`)).items).sort()
  const sorted = (...ids: string[]) => ids.sort()
  t.strictSame(await found('labels=run:page'), sorted(red, blue))
  t.strictSame(await found('labels=run:page,team:red'), [red])
  t.strictSame(await found('inbox=labels.page'), sorted(red, boxed))
  t.strictSame(await found('inbox=labels.page&labels=team:red'), [red])
  for (const none of ['labels=run:pag', 'labels=team:red,team:blue', 'inbox=labels', 'inbox=labels.page&labels=team:blue']) t.strictSame(await found(none), [], none)
  const walked: string[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const { items, next_cursor: next } = await waiting(`labels=run:page&limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`)
    walked.push(...idsOf(items))
    cursor = next
  }
  t.strictSame(walked.sort(), sorted(red, blue))
  await call('approver', 'POST', `/api/approve/${red}`, {})
  t.strictSame(await found('labels=run:page'), [blue], 'what is decided waits no more')
})

t.test('a filter that can’t be one is refused at its pointer', async t => {
  const nine = Array.from({ length: 9 }, (_, at) => `n${at}:v`).join()
  const bad = ['', 'run', 'run:', ':42', ':', 'run:42,', ',run:42', 'run:42,,team:red', 'run:4 2', 'r un:42', 'run:ä', `${'n'.repeat(33)}:v`, `n:${'v'.repeat(65)}`, nine, 'a@b:c', 'run:42%0A', 'run:%00']
  for (const labels of bad) {
    for (const [who, path] of [['alice', '/api/events'], ['approver', '/api/approvals']] as const) {
      const document = isProblem(t, await call(who, 'GET', `${path}?labels=${labels}`), 400, 'invalid_request', `${path} ${labels}`)
      t.strictSame(document.errors.map(({ pointer }: { pointer: string }) => pointer), ['/labels'], labels)
    }
  }
  for (const query of ['labels=a:b&labels=a:b', 'label=a:b']) {
    isProblem(t, await call('alice', 'GET', `/api/events?${query}`), 400, 'invalid_request', query)
    isProblem(t, await call('approver', 'GET', `/api/approvals?${query}`), 400, 'invalid_request', query)
  }
  for (const inbox of ['', 'a/b', 'a b', 'x'.repeat(65), 'ä']) {
    const document = isProblem(t, await call('approver', 'GET', `/api/approvals?inbox=${inbox}`), 400, 'invalid_request', inbox)
    t.strictSame(document.errors.map(({ pointer }: { pointer: string }) => pointer), ['/inbox'], inbox)
  }
  const eight = nine.split(',').slice(1).join()
  t.strictSame((await read(`labels=${eight}`)).items, [])
  t.strictSame((await waiting(`labels=${eight}&inbox=none`)).items, [])
  t.strictSame((await read(`labels=${encodeURIComponent('z:1,__proto__:p,constructor:c')}`)).items.length, 8, 'names that an object has by itself')
})

t.test('events that came by way of an outbox, as in a Cluster, have them and are found by them', skipInQuick, async t => {
  const { call } = await testApp(t, { EVENTS_RETENTION: '60' }, { isSpread: true })
  const id = (await call('alice', 'POST', '/api/pass', `{"task":"t","max_attempts":2,"retry_delay":0,"labels":${hostile}}`)).json().handoff_id
  await call('alice', 'POST', '/api/pass', { task: 't', labels: { z: '2' } })
  await call('bob', 'GET', `/api/catch/${id}`)
  await call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm' } })
  const body = await until(async () => {
    const answer = await call('alice', 'GET', '/api/events?after=0-0&labels=z:1,1:one')
    return answer.json().items.length >= 5 ? answer.body : null
  })
  t.strictSame(JSON.parse(body).items.map(({ type }: Item) => type.slice('handoff.'.length)), ['passed', 'caught', 'failed', 'reissued', 'passed'])
  t.equal(body.split(`"labels":${hostile}`).length, 6)
})

t.test('a webhook’s message has them', async t => {
  const { make, call } = await webhookApp(t)
  const { url, got } = await receiver(t)
  await make(url)
  await call('alice', 'POST', '/api/pass', `{"task":"t","labels":${hostile}}`)
  await call('alice', 'POST', '/api/pass', { task: 't' })
  await until(() => got.length === 2)
  const [bare, labelled] = got.map(({ body }) => body).sort((one, other) => one.length - other.length) as [string, string]
  t.ok(labelled.includes(`"labels":${hostile}`), labelled)
  t.match(JSON.parse(labelled), { type: 'handoff.passed', data: { status: 'pending' } })
  t.notMatch(bare, /labels/)
})
