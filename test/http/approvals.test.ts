import { createHash } from 'node:crypto'
import t from 'tap'
import { randomHomeId } from '../../src/core/ids.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)
const { call } = service

/** Passes a handoff that waits for a person. A body that is a string is sent unchanged. */
async function passed ({ call }: TestApp, more: object | string = {}, who: Who = 'alice'): Promise<string> {
  const answer = await call(who, 'POST', '/api/pass', typeof more === 'string' ? more : { task: 't', require_human: true, ...more })
  return answer.json().handoff_id
}

const list = (query = '', who: Who = 'approver') => (service: TestApp) => service.call(who, 'GET', `/api/approvals${query}`)
const tasksOf = (answer: { json (): any }): string[] => answer.json().items.map(({ task }: { task: string }) => task)

t.test('approvals need a key with the scope approve, and change nothing without it', async t => {
  const id = await passed(service)
  const before = await service.dump()
  for (const [method, path, body] of [
    ['GET', '/api/approvals'], ['GET', `/api/approvals/${id}`], ['POST', `/api/approve/${id}`], ['POST', `/api/reject/${id}`, { note: 'n' }],
  ] as const) {
    for (const who of ['alice', 'bob', 'foreignAlice'] as const) {
      const answer = await call(who, method, path, body)
      isProblem(t, answer, 403, 'insufficient_scope', `${who} ${method} ${path}`)
      t.equal(answer.headers['www-authenticate'], 'Bearer error="insufficient_scope", scope="approve"')
    }
    isProblem(t, await call(null, method, path, body), 401, 'unauthorized')
  }
  t.strictSame(await service.dump(), before)
  for (const path of ['/api/approvals', `/api/approvals/${id}`]) {
    isProblem(t, await service.call('approver', 'POST', path, {}), 405, 'method_not_allowed')
  }
  for (const path of [`/api/approve/${id}`, `/api/reject/${id}`]) {
    // Mail and chat programs open links.
    const answer = await service.call('approver', 'GET', path)
    isProblem(t, answer, 405, 'method_not_allowed')
    t.equal(answer.headers.allow, 'POST')
  }
  t.strictSame(await service.dump(), before, 'a GET never decides')
})

t.test('the list shows waiting handoffs, oldest first, with the task as passed', async t => {
  const service = await testApp(t)
  const start = Date.now() - 3600_000
  const empty = await list()(service)
  t.equal(empty.body, '{"items":[],"next_cursor":null}')
  t.equal(empty.headers['content-type'], 'application/json; charset=utf-8')
  t.equal(empty.headers['cache-control'], 'no-store')

  await service.setClock(start)
  const first = await passed(service, '{"output":{"task":"not this"},"task":"a\\u0041\\ud800 ä\\"} 𝄞\\n","require_human":true,"expires_in":7200}')
  await service.setClock(start + 1)
  await passed(service, { task: 'asks nobody', require_human: false })
  const second = await passed(service, { task: 'second' }, 'bob')
  await passed(service, { task: 'theirs' }, 'foreignAlice')
  const answer = await list()(service)
  const iso = (later: number) => new Date(start + later).toISOString()
  t.ok(answer.body.includes('"task":"a\\u0041\\ud800 ä\\"} 𝄞\\n"'), 'the same JSON text')
  t.strictSame(answer.json(), {
    items: [
      { handoff_id: first, task: JSON.parse('"aA\\ud800 ä\\"} 𝄞\\n"'), created_at: iso(0), expires_at: iso(7200_000), passed_by: 'alice' },
      { handoff_id: second, task: 'second', created_at: iso(1), expires_at: iso(86_400_001), passed_by: 'bob' },
    ],
    next_cursor: null,
  })
  t.strictSame(tasksOf(await list('', 'foreignApprover')(service)), ['theirs'], 'each tenant sees its own')

  await service.setClock(start + 7200_000)
  t.strictSame(tasksOf(await list()(service)), ['second'], 'what has expired waits no more, swept or not')
})

t.test('a task over 1,000 characters is truncated, as the JSON text that it is', async t => {
  const service = await testApp(t)
  const start = Date.now() - 3600_000
  // Tasks, and what the list shows of them.
  const cut: Array<[task: string, shown: string]> = [
    ['x'.repeat(1001), 'x'.repeat(1000)],
    ['x'.repeat(999) + '\\"\\\\', 'x'.repeat(999) + '\\"'],
    ['x'.repeat(999) + '\\\\\\"', 'x'.repeat(999) + '\\\\'],
    ['x'.repeat(999) + '\\ud834\\udd1e!', 'x'.repeat(999) + '\\ud834\\udd1e'],
    ['𝄞'.repeat(1001), '𝄞'.repeat(1000)],
    ['\\ud834\\udd1e'.repeat(50_000), '\\ud834\\udd1e'.repeat(1000)],
    ['y'.repeat(1_000_000), 'y'.repeat(1000)],
  ]
  const whole = ['x'.repeat(1000), '𝄞'.repeat(1000), '\\ud834\\udd1e'.repeat(1000), '\\ud834'.repeat(1000), 'x'.repeat(999) + '\\"']
  const tasks = [...cut.map(([task]) => task), ...whole]
  const ids: string[] = []
  for (const [index, task] of tasks.entries()) {
    await service.setClock(start + index)
    ids.push(await passed(service, `{"task":"${task}","require_human":true}`))
  }
  const { body } = await list('?limit=100')(service)
  const expected = [...cut.map(([, shown]) => `"task":"${shown}","task_truncated":true,`), ...whole.map(task => `"task":"${task}",`)]
  t.equal(body.split('{"handoff_id"').length - 1, tasks.length)
  for (const [index, text] of expected.entries()) {
    t.ok(body.includes(`{"handoff_id":"${ids[index]}",${text}"created_at"`), `${tasks[index]!.slice(0, 5)}…${tasks[index]!.slice(995, 1015)}`)
  }
  t.equal((await service.call('approver', 'GET', `/api/approvals/${ids[6]}`)).json().task.length, 1_000_000, 'the whole is one request away')
  const all = await service.dump() as Record<string, { content: { t?: string } }>
  for (const { content } of Object.values(all)) if (content.t !== undefined) t.ok(content.t.length <= 12_014, 'no more is kept twice')
})

t.test('after very many expired handoffs the list goes on, with a cursor', async t => {
  const service = await testApp(t)
  const start = Date.now() - 3600_000
  await service.setClock(start)
  const first = await passed(service)
  const [key] = Object.keys(await service.dump()).filter(name => name.includes('}:w:')) as [string]
  // Redis has deleted these hashes, and no sweep has come yet.
  const gone = Array.from({ length: 80_000 }, () => randomHomeId('default'))
  for (let at = 0; at < gone.length; at += 10_000) {
    await service.redis.zadd(`${service.prefix}:${key}`, ...gone.slice(at, at + 10_000).flatMap(id => [start + 1, `default:${id}`]))
  }
  await service.setClock(start + 2)
  const last = await passed(service)
  const ids: string[] = []
  const sizes: number[] = []
  let cursor = ''
  do {
    const { items, next_cursor: next } = (await list(`?limit=2${cursor && `&cursor=${cursor}`}`)(service)).json()
    ids.push(...items.map(({ handoff_id: id }: { handoff_id: string }) => id))
    sizes.push(items.length)
    cursor = next
    // A cursor that leads nowhere would go on for ever.
  } while (cursor !== null && sizes.length < 9)
  t.strictSame(ids, [first, last])
  t.strictSame(sizes, [1, 0, 1], 'and one that has nothing goes on as well')
})

t.test('pages are complete, in order, and stable while handoffs come and go', async t => {
  const service = await testApp(t)
  const ids: string[] = []
  const start = Date.now() - 3600_000
  for (let i = 0; i < 25; i++) {
    // Several with the same millisecond: a page may end between them.
    await service.setClock(start + Math.floor(i / 4))
    ids.push(await passed(service, { task: String(i) }))
  }
  const walk = async (limit: number) => {
    const seen: string[] = []
    for (let cursor = ''; ;) {
      const { items, next_cursor: next } = (await list(`?limit=${limit}${cursor}`)(service)).json()
      seen.push(...items.map(({ handoff_id: id }: { handoff_id: string }) => id))
      if (next === null || seen.length > ids.length) return seen
      t.equal(items.length, limit)
      t.match(next, /^[\w-]+$/, 'no escaping needed')
      cursor = `&cursor=${next}`
    }
  }
  const all = await walk(100)
  t.strictSame([...all].sort(), [...ids].sort())
  const times = all.map(id => Math.floor(ids.indexOf(id) / 4))
  t.strictSame(times, times.toSorted((a, b) => a - b), 'oldest first')
  for (const limit of [1, 3, 24, 25]) t.strictSame(await walk(limit), all, `${limit} at a time`)
  t.equal((await list()(service)).json().items.length, 20, 'by default 20')

  const { next_cursor: cursor } = (await list('?limit=5')(service)).json()
  // What is decided leaves the list, either way.
  for (const [at, id] of all.slice(0, 7).entries()) await service.call('approver', 'POST', `/api/${at % 2 ? 'approve' : 'reject'}/${id}`, { note: 'n' })
  await service.setClock(start + 100)
  const fresh = await passed(service, { task: 'new' })
  const rest = (await list(`?limit=100&cursor=${cursor}`)(service)).json()
  t.strictSame(rest.items.map(({ handoff_id: id }: { handoff_id: string }) => id), [...all.slice(7), fresh], 'an old cursor goes on where it was')
  t.equal(rest.next_cursor, null)
})

t.test('a bad query is refused, and a made-up cursor shows nothing that the list doesn’t', async t => {
  const service = await testApp(t)
  const id = await passed(service, { task: 'ours' })
  const foreign = await passed(service, { task: 'theirs' }, 'foreignAlice')
  for (const query of ['limit=0', 'limit=-1', 'limit=101', 'limit=1000', 'limit=abc', 'limit=1.5', 'limit=', 'limit=1&limit=2', 'limit=null', 'limit=1e999', 'limit=1e1', 'limit=0x10', 'limit=%205', 'limit=+5', 'limit=5.0',
    'cursor=', 'cursor=%00', 'cursor=abc', 'cursor=***', 'cursor=a&cursor=b', `cursor=${id}`, `cursor=${'A'.repeat(129)}`, 'cursor[]=a', 'Limit=5', 'offset=5', 'wait=5']) {
    const document = isProblem(t, await list(`?${query}`)(service), 400, 'invalid_request', query)
    t.ok(document.errors.length > 0, `${query}: says what is wrong`)
    t.match(document.errors[0].pointer, /^\/(limit|cursor|Limit|offset|wait)/, query)
  }
  const forge = (text: string) => `?cursor=${Buffer.from(text).toString('base64url')}`
  for (const text of ['', ' ', '1', `-1 ${id}`, `x ${id}`, `1.5 ${id}`, `1e3 ${id}`, `+inf ${id}`, `1 ${id} `, `1 ${id}\n`, `${'9'.repeat(16)} ${id}`, `1 other:${id}`, '1 ../..', `1  ${id}`]) {
    isProblem(t, await list(forge(text))(service), 400, 'invalid_request', JSON.stringify(text))
  }
  t.strictSame(tasksOf(await list(forge(`0 ${id}`))(service)), ['ours'])
  t.strictSame(tasksOf(await list(forge(`999999999999999 ${id}`))(service)), [])
  t.strictSame(tasksOf(await list(forge(`0 ${foreign}`))(service)), ['ours'], 'another tenant’s id leads nowhere else')
  t.strictSame(tasksOf(await list(forge(`1 ${randomHomeId('default')}`))(service)), ['ours'])
})

t.test('an approver reads the whole handoff as passed, and reading changes nothing', async t => {
  const service = await testApp(t)
  const start = Date.now() - 3600_000
  await service.setClock(start)
  const output = '{"n":12345678901234567890,"x":1.0,"x":1e400,"__proto__":{},"s":"\\ud800"}'
  const id = await passed(service, `{"task":"\\u0041","output":${output},"context":{"b":1,"a":2},"constraints":"c","require_human":true,"expires_in":60}`)
  const look = (who: Who = 'approver') => service.call(who, 'GET', `/api/approvals/${id}`)
  const times = `"created_at":"${new Date(start).toISOString()}","expires_at":"${new Date(start + 60_000).toISOString()}"`
  const inside = `"task":"\\u0041","output":${output},"context":{"b":1,"a":2},"constraints":"c",${times},"passed_by":"alice"`
  const content = `{"task":"\\u0041","output":${output},"context":{"b":1,"a":2},"constraints":"c"}`
  const digest = `,"digest":"sha-256=:${createHash('sha256').update(content).digest('base64')}:"`
  const before = await service.dump()
  const answer = await look()
  t.equal(answer.statusCode, 200)
  t.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
  t.equal(answer.body, `{"handoff_id":"${id}","status":"pending",${inside},"approval":{"state":"waiting","decided_at":null,"decided_by":null,"note":null}${digest}}`)
  t.strictSame(await service.dump(), before)

  await service.setClock(start + 1000)
  await service.call('approver', 'POST', `/api/approve/${id}`, '{"note":"\\u0041 ä"}')
  const decided = `"approval":{"state":"approved","decided_at":"${new Date(start + 1000).toISOString()}","decided_by":"carol","note":"\\u0041 ä"}`
  t.equal((await look()).body, `{"handoff_id":"${id}","status":"pending",${inside},${decided}${digest}}`)
  await service.call('bob', 'GET', `/api/catch/${id}`)
  t.equal((await look()).body, `{"handoff_id":"${id}","status":"caught",${inside},${decided}${digest}}`)
  await service.call('bob', 'POST', `/api/done/${id}`)
  const freed = `"task":null,"output":null,"context":null,"constraints":null,${times},"passed_by":"alice"`
  t.equal((await look()).body, `{"handoff_id":"${id}","status":"done",${freed},${decided}${digest}}`, 'freed, and the decision stays')

  for (const who of ['foreignApprover'] as const) isProblem(t, await look(who), 404, 'not_found')
  for (const unknown of [randomHomeId('default'), 'x', `${id}x`, '..%2f', '%00']) {
    isProblem(t, await service.call('approver', 'GET', `/api/approvals/${unknown}`), 404, 'not_found', unknown)
  }
  isProblem(t, await service.call('approver', 'GET', `/api/approvals/${id}?x=1`), 400, 'invalid_request')
})
