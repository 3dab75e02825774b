/** The console's pages of handoffs, without a browser: what they show, to whom, and what their forms do. */
import { AsyncLocalStorage } from 'node:async_hooks'
import t from 'tap'
import type { ApiKey, Scope } from '../../src/core/model.ts'
import { callerOf } from '../../src/core/model.ts'
import { EventService } from '../../src/handoffs/feed/events.ts'
import { Graphs } from '../../src/handoffs/lists/graph.ts'
import { Histories } from '../../src/handoffs/lists/histories.ts'
import { Reads } from '../../src/store/reads.ts'
import type { Requester } from '../../src/store/requester.ts'
import { testApp } from '../helpers/app.ts'
import { personWith, textOf } from '../helpers/forms.ts'
import { keepSecret } from '../helpers/log-sink.ts'

const base = '/hand'
/** Keys of tenants that are each one test's own. */
const keys: ApiKey[] = []
function key (tenant: string, agent: string, ...scopes: Scope[]): string {
  const secret = `${tenant}-${agent}-0123456789`
  keys.push({ secret, caller: callerOf(tenant, agent, scopes) })
  keepSecret(secret)
  return secret
}
const tenants = ['failed', 'one', 'held', 'foreign', 'found', 'busy', 'order'] as const
const passers = Object.fromEntries(tenants.map(name => [name, key(name, 'alice', 'pass', 'catch', 'status')])) as Record<typeof tenants[number], string>
const operators = Object.fromEntries(tenants.map(name => [name, key(name, 'olga', 'operate', 'status', 'approve')])) as Record<typeof tenants[number], string>
const onlooker = key('failed', 'ann', 'approve', 'status')
const blind = key('failed', 'blind', 'operate')

const service = await testApp(t, { BASE_URL: `http://127.0.0.1:8080${base}`, LOG_LEVEL: 'info', EVENTS_RETENTION: '86400' }, {}, keys)
const { call: send } = service
const call = (secret: string, method: 'GET' | 'POST', path: string, body?: object) => send(null, method, path, body, { authorization: `Bearer ${secret}` })
const pass = async (secret: string, body: object = {}): Promise<string> => (await call(secret, 'POST', '/api/pass', { task: 'T', ...body })).json().handoff_id
const caught = async (secret: string, body: object = {}): Promise<string> => {
  const id = await pass(secret, body)
  await call(secret, 'GET', `/api/catch/${id}`)
  return id
}
const failed = async (secret: string, code: string, body: object = {}): Promise<string> => {
  const id = await caught(secret, body)
  await call(secret, 'POST', `/api/fail/${id}`, { error: { message: `<i>${code}</i>`, code }, retry: false })
  return id
}
const status = async (secret: string, id: string) => (await call(secret, 'GET', `/api/status/${id}`)).json()
const operated = () => service.lines.map(line => JSON.parse(line) as Record<string, unknown>).filter(({ msg }) => msg === 'operated')
const movedToPending = async () => Number(/to="pending"\} (\d+)/.exec((await service.app.inject('/metrics')).body)![1])

t.test('what a handoff waits for, and what waits for it, is drawn up to 50, with a link for each', async t => {
  const secret = passers.order
  const drawn = async (id: string) => {
    const { body } = await (await personWith(service, operators.order))(`/console/handoffs/${id}`)
    const picture = /<svg class="graph"[^]*?<\/svg>/.exec(body)?.[0] ?? ''
    return {
      ids: [...picture.matchAll(/href="[^"]*\/handoffs\/([\w-]{25})"/g)].map(([, id]) => id!).sort(),
      boxes: [...picture.matchAll(/<rect class="(\w+)[^"]*" x="(\d+)"/g)].map(([, kind, x]) => `${kind} ${x}`).sort(),
      lines: picture.split('<path d').length - 1,
      isWhole: !body.includes('which aren’t drawn'),
    }
  }
  const [one, two] = [await caught(secret), await pass(secret)]
  const three = await pass(secret, { after: [one, two], to: 'work' })
  const four = await pass(secret, { after: [three] })
  await call(secret, 'POST', `/api/done/${one}`, {})
  const whole = { boxes: ['good 4', 'other 210', 'other 4', 'other 416'], lines: 3, isWhole: true }
  t.strictSame(await drawn(three), { ids: [one, two, four].sort(), ...whole })
  t.strictSame(await drawn(four), { ids: [one, two, three].sort(), ...whole })
  t.strictSame((await drawn(await pass(secret))).ids, [], 'nothing is drawn for what stands alone')
  for (let n = 0; n < 60; n++) await pass(secret, { after: [four] })
  const { boxes, isWhole } = await drawn(four)
  t.strictSame([boxes.length, isWhole], [50, false])
})

t.test('what failed: in groups, one by one, and redriven', async t => {
  const secret = passers.failed
  const slow = await failed(secret, 'slow', { to: 'a', labels: { run: '1' }, task: '<b>slow</b>' })
  const slower = await failed(secret, 'slow', { to: 'a' })
  const full = await failed(secret, 'full', { to: 'b', labels: { run: '1' } })
  const declined = await caught(secret)
  await call(secret, 'POST', `/api/decline/${declined}`, { reason: 'Not mine' })
  const other = await failed(passers.foreign, 'slow', { to: 'a' })
  const ask = await personWith(service, operators.failed)
  const all = (await ask('/console/failed')).body
  t.match(textOf(all), /4 handoffs, by inbox and error code .*a failed slow 2 of these .* b failed full 1 of these/)
  t.match(textOf(all), '<i>slow', 'what agents wrote is text')
  t.notMatch(all, /<i>|<b>slow/)
  t.notMatch(all, other)
  const listed = async (query: string) => [...(await ask(`/console/failed?${query}`)).body.matchAll(/name="id" value="([^"]+)"/g)].map(([, id]) => id!)
  t.strictSame(await listed(''), [declined, full, slower, slow], 'the latest first')
  t.strictSame(await listed('inbox=a&error_code=slow'), [slower, slow])
  t.strictSame(await listed('status=declined'), [declined])
  t.strictSame(await listed('labels=run:1'), [full, slow])
  for (const query of ['inbox=a%20b', 'status=done', 'error_code=%3Cb%3E', 'labels=run', 'labels=run:1,']) {
    const { statusCode, body } = await ask(`/console/failed?${query}`)
    t.equal(statusCode, 400, query)
    t.notMatch(body, slow)
  }
  t.equal((await ask('/console/failed?cursor=nothing')).statusCode, 400)

  const before = await service.dump()
  const question = await ask('/console/failed/redrive?labels=run:1')
  t.match(textOf(question.body), /This redrives 2 handoffs : those with the labels run:1 \. .* Redrive them/)
  t.strictSame(await service.dump(), before, 'to ask changes nothing')
  const logged = operated().length
  const chosen = await ask('/console/failed/chosen', { id: slower })
  t.match(textOf(chosen.body), 'One handoff was redriven.')
  const { reissued_as: next } = await status(secret, slower)
  t.match(chosen.body, `href="${base}/console/handoffs/${next}"`)
  t.match(operated().slice(logged), [{ operator: 'olga', tenant: 'failed', action: 'redrive', chosen: 1, changed: 1 }])
  t.match(textOf((await ask('/console/failed/chosen', { id: slower })).body), /0 handoffs were redriven.*One handoff could not be/)
  for (const id of ['x', '__proto__', other]) t.match(textOf((await ask('/console/failed/chosen', { id })).body), '0 handoffs were redriven', id)
  t.equal((await status(passers.foreign, other)).reissued_as, undefined, 'another tenant’s isn’t touched')
  t.equal((await ask('/console/failed/chosen', { inbox: 'a' })).headers.location, `${base}/console/failed?inbox=a`)
  t.equal(operated().length, logged + 1, 'what changes nothing isn’t logged')

  // Somebody is at work on it again: it isn't taken away.
  await call(secret, 'GET', `/api/catch/${next}`)
  t.match(textOf((await ask('/console/failed/chosen', { id: next })).body), '0 handoffs were redriven')
  t.equal((await status(secret, next)).status, 'caught')

  const moved = await movedToPending()
  t.match(textOf((await ask('/console/failed/redrive', { labels: 'run:1' })).body), '2 handoffs were redriven.')
  t.equal(await movedToPending() - moved, 2, 'counted as the API’s are')
  t.strictSame(await listed(''), [declined])
  for (const labels of ['run', 'run:1,run:2']) t.equal((await ask('/console/failed/redrive', { labels })).statusCode, 400, labels)
  t.match(textOf((await ask('/console/failed/redrive', { labels: 'run:2,run:2' })).body), '0 handoffs were redriven.')

  const looks = await personWith(service, onlooker)
  const hers = (await looks('/console/failed')).body
  t.match(hers, declined)
  t.notMatch(hers, /checkbox|<button class="good"|Redrive all/, 'no buttons without operate')
  t.equal((await looks('/console/failed/redrive')).statusCode, 403)
  for (const path of ['chosen', 'redrive']) {
    const { statusCode, body } = await looks(`/console/failed/${path}`, { id: declined })
    t.equal(statusCode, 403)
    t.match(body, 'operate')
  }
  t.equal((await status(secret, declined)).reissued_as, undefined)
  const sees = await personWith(service, blind)
  for (const path of ['failed', 'agents', 'find?q=run:1', 'activity', `handoffs/${slow}`]) {
    const { statusCode, body } = await sees(`/console/${path}`)
    t.equal(statusCode, 403, path)
    t.match(textOf(body), 'status')
  }

  await failed(secret, 'slow', { to: 'a' })
  const bare = await caught(secret, { to: 'a' })
  await call(secret, 'POST', `/api/fail/${bare}`, { error: { message: 'no code' }, retry: false })
  const groups = textOf((await ask('/console/failed')).body)
  t.match(groups, /a failed slow 1 of these \d+ s ago .*for no inbox declined 1 of these /)
  t.match(groups, /a failed 1 \d+ s ago /, 'no filter wants those alone that have no code')
})

t.test('one handoff: its attempts, what happened, cancelled and reissued', async t => {
  const secret = passers.one
  const ask = await personWith(service, operators.one)
  const root = await caught(secret)
  const first = await caught(secret, { max_attempts: 3, retry_delay: 0, parent: root, to: 'a', priority: 2 })
  const { reissued_as: second } = (await call(secret, 'POST', `/api/fail/${first}`, { error: { message: 'no <disk>' } })).json()
  // Events come into the feed within a second.
  t.equal((await call(secret, 'GET', `/api/events?after=0-0&wait=5&handoff_id=${first}&types=handoff.reissued`)).json().items.length, 1)
  const page = (await ask(`/console/handoffs/${first}`)).body
  const history = /<ol class="history">.*?<\/ol>/s.exec(page)![0]
  t.strictSame([...history.matchAll(/<strong>([^<]*)/g)].map(([, word]) => word), ['passed', 'caught', 'failed', 'tried again'], 'its own, each once')
  const text = textOf(page)
  t.match(text, /Now failed .*Inbox a , priority 2 .*Part of .*Error no <disk> Next attempt/)
  t.match(text, /Attempt 1, this one failed .*Attempt 2 pending/)
  t.match(text, /What happened .*passed by alice .*caught by alice .*failed by alice .*tried again as/)
  t.match(page, `href="${base}/console/handoffs/${root}"`)
  t.notMatch(page, /data-live|Reissue…|Cancel…|"T"/, 'it has ended, and has a successor')
  t.match(textOf((await ask(`/console/handoffs/${second}`)).body), /Attempt 1 failed .*Attempt 2, this one pending/)
  await call(secret, 'GET', `/api/catch/${second}`)
  await call(secret, 'POST', `/api/heartbeat/${second}`, { progress: { message: 'Half\u202e', percent: 50 } })
  t.match(textOf((await ask(`/console/handoffs/${second}`)).body), /Progress 50 % Half ⟦U\+202E⟧ .*Reissue… Cancel…/)
  t.notMatch((await ask(`/console/handoffs/${second}`)).body, 'Question')
  const { ask_id: askId } = (await call(secret, 'POST', `/api/ask/${second}`, { question: 'Which <one>?', of: 'passer' })).json()
  const asking = (await ask(`/console/handoffs/${second}`)).body
  t.match(textOf(asking), /Question open ; asked of its passer, /)
  t.match(asking, `href="${base}/approvals/${second}">open</a>`)
  t.notMatch(asking, /Which|To be done until/, 'neither the question nor a deadline: they rest')
  await call(secret, 'POST', `/api/answer/${second}`, { ask_id: askId, answer: { text: 'both' } })
  t.match(textOf((await ask(`/console/handoffs/${second}`)).body), /To be done until .*Question answered by alice, .*; asked of its passer, /)

  const before = await service.dump()
  const seen = async (id: string, verb: string) => {
    const { statusCode, body } = await ask(`/console/handoffs/${id}/${verb}`)
    t.equal(statusCode, 200)
    return { created_at: /name="created_at" value="([^"]+)"/.exec(body)?.[1] ?? '' }
  }
  const cancelling = await seen(second, 'cancel')
  const reissuing = await seen(second, 'reissue')
  t.match(await seen(first, 'reissue'), { created_at: '' }, 'it has its next attempt')
  t.match(await seen(first, 'cancel'), { created_at: '' })
  t.strictSame(await service.dump(), before, 'to ask changes nothing')

  for (const fields of [{}, { created_at: '' }, { created_at: '2020-01-01T00:00:00.000Z' }]) {
    for (const verb of ['cancel', 'reissue']) {
      const { statusCode, body } = await ask(`/console/handoffs/${second}/${verb}`, { ...fields, force: '1' } as Record<string, string>)
      t.equal(statusCode, 409)
      t.match(body, 'this is another one')
    }
  }
  const long = await ask(`/console/handoffs/${second}/cancel`, { ...cancelling, reason: 'y'.repeat(4001) })
  t.equal(long.statusCode, 400)
  t.match(long.body, `${'y'.repeat(4001)}</textarea>`, 'what was typed is there still')
  t.strictSame(await service.dump(), before, 'what is refused changes nothing')

  const logged = operated().length
  const asked = await ask(`/console/handoffs/${second}/cancel`, { ...cancelling, reason: 'Too\r\nlate' })
  t.strictSame([asked.statusCode, asked.headers.location], [303, `${base}/console/handoffs/${second}`])
  t.match(await status(secret, second), { status: 'caught', cancel_reason: 'Too\nlate' })
  t.match(textOf((await ask(`/console/handoffs/${second}`)).body), /Asked to stop .*Too late .*its catcher was asked to stop/)
  const again = await ask(`/console/handoffs/${second}/reissue`, reissuing)
  const { reissued_as: third, status: taken, ended_by: by } = await status(secret, second)
  t.strictSame([again.headers.location, taken, by], [`${base}/console/handoffs/${third}`, 'cancelled', 'olga'])
  t.match(textOf((await ask(`/console/handoffs/${third}`)).body), /Attempt 1 failed .*Attempt 2 cancelled .*Attempt 3, this one pending/)
  const longest = 'y'.repeat(4000)
  await ask(`/console/handoffs/${third}/cancel`, { ...await seen(third, 'cancel'), reason: longest })
  t.match(await status(secret, third), { status: 'cancelled', ended_by: 'olga', cancel_reason: longest })
  t.match(operated().slice(logged), [{ action: 'cancel', handoff_id: second, force: false }, { action: 'reissue', handoff_id: second }, { action: 'cancel', handoff_id: third }])

  const held = await caught(secret)
  await ask(`/console/handoffs/${held}/cancel`, { ...await seen(held, 'cancel'), force: '1' })
  t.equal((await status(secret, held)).status, 'cancelled')
  const done = await caught(secret)
  const late = await seen(done, 'cancel')
  await call(secret, 'POST', `/api/done/${done}`)
  const refused = await ask(`/console/handoffs/${done}/cancel`, { ...late, force: '1' })
  t.equal(refused.statusCode, 409)
  t.match(textOf(refused.body), /Nothing was changed\. .*Now done/)

  const stranger = await personWith(service, operators.foreign)
  for (const path of ['', '/cancel', '/reissue']) {
    t.equal((await stranger(`/console/handoffs/${held}${path}`)).statusCode, 404, path)
    if (path !== '') t.equal((await stranger(`/console/handoffs/${held}${path}`, late)).statusCode, 404, path)
  }
  for (const id of ['x', '__proto__', `${held}x`]) t.equal((await ask(`/console/handoffs/${id}`)).statusCode, 404, id)
})

t.test('who holds what', async t => {
  const ask = await personWith(service, operators.held)
  t.match(textOf((await ask('/console/agents')).body), 'Nobody holds a handoff.')
  const one = await caught(passers.held, { to: 'a', heartbeat_within: 60, task: '<b>x</b>' })
  await pass(passers.held, { to: 'a', task: 'pending' })
  await caught(passers.foreign)
  await call(passers.held, 'POST', `/api/heartbeat/${one}`, { progress: { percent: 20 } })
  const { body } = await ask('/console/agents')
  t.match(textOf(body), /One agent holds one handoff\. alice one handoff <b>x/)
  t.match(textOf(body), /in a .*caught \d+ s ago .*last heartbeat \d+ s ago .*heartbeat due in .*20 %/)
  t.notMatch(body, /<b>x|pending/)
  t.match((await ask('/console/agents?agent=alice')).body, one)
  for (const agent of ['bob', '%3Cscript%3E', 'a%20b']) t.notMatch((await ask(`/console/agents?agent=${agent}`)).body, /<script>|handoffs\/[A-Za-z]/)
})

t.test('a handoff is found by its id, or a label', async t => {
  const ask = await personWith(service, operators.found)
  const id = await pass(passers.found, { labels: { run: '42', team: 'red' } })
  const lost = await failed(passers.found, 'E', { labels: { run: '42' } })
  const foreign = await pass(passers.foreign, { labels: { run: '42' } })
  const at = (q: string) => ask(`/console/find?q=${encodeURIComponent(q)}`)
  for (const q of [id, ` ${id} `, `https://x.example/api/catch/${id}`, `http://x/approvals/${id}?a=b`]) {
    t.equal((await at(q)).headers.location, `${base}/console/handoffs/${id}`, q)
  }
  const { body } = await at('run:42')
  t.match(textOf(body), /With run:42 Pending or caught .*Failed /)
  t.ok(body.includes(id) && body.includes(lost) && !body.includes(foreign))
  t.notMatch((await at('run:42, team:red')).body, lost)
  for (const q of ['', 'run', '<script>', 'a:b,', 'x'.repeat(500)]) {
    const { statusCode, body } = await at(q)
    t.equal(statusCode, 200)
    t.notMatch(body, /<script>|With <code/, q)
  }
})

t.test('what happens, where events are on', async t => {
  const ask = await personWith(service, operators.busy)
  await caught(passers.busy, { to: 'a' })
  // Events come into the feed within a second.
  const { items } = (await call(passers.busy, 'GET', '/api/events?after=0-0&wait=5&types=handoff.caught')).json()
  t.equal(items.length, 1)
  const { body } = await ask('/console/activity')
  t.match(textOf(body), /1 passed 0 done 0 ended otherwise .*At most 1 of a kind in a minute, .*1 passed, 1 caught.*caught T in a by alice .*passed T in a/)
  t.match(body, /<svg[^>]*role="img"[^>]*aria-labelledby="minutes-title minutes-text"/)
  t.notMatch(body, /style=|<script>/)
  t.match((await ask('/console')).body, 'id="activity"')
  const part = await ask('/console', undefined, { 'hx-request': 'true' })
  t.notMatch(part.body, 'id="activity"', 'the part renews itself from its own page')
})

t.test('whatever the page of a handoff reads beside it is read in slots of the tenant', async t => {
  const own = await testApp(t, { EVENTS_RETENTION: '60' })
  const caller = callerOf('default', 'olga', ['status'])
  const first = await own.pass({ task: 't', max_attempts: 2, retry_delay: 0 })
  const after = async (id: string) => (await own.call('alice', 'POST', '/api/pass', { task: 't', after: [id] })).json().handoff_id as string
  const second = await after(first)
  await after(second)
  await own.call('bob', 'GET', `/api/catch/${first}`)
  await own.call('bob', 'POST', `/api/fail/${first}`, { error: { message: 'no' } })
  const turn = new AsyncLocalStorage<string>()
  const requester: Requester = { isGone: () => false, grant: () => ({ authorise: () => caller }) as never }
  const requesters = new Set<unknown>()
  const reads = new Reads()
  const { run } = reads
  reads.run = (want, read) => {
    requesters.add(want.requester)
    return run.call(reads, want, () => turn.run(want.tenant, () => read())) as never
  }
  const outside: string[] = []
  let inside = 0
  const watched = <T extends object>(of: T, name: keyof T & string): T => new Proxy(of, {
    get (target, member) {
      const value = Reflect.get(target, member) as unknown
      if (typeof value !== 'function') return value
      return (...given: unknown[]) => {
        if (member === name && turn.getStore() !== 'default') outside.push(name)
        else if (member === name) inside++
        return (value as (...given: unknown[]) => unknown).apply(target, given)
      }
    }
  })
  const { handoffs, dependents } = own.store
  const graph = await new Graphs(watched(handoffs, 'status'), watched(dependents, 'of'), reads).around(caller, second, requester)
  t.equal(graph!.nodes.length, 3)
  t.strictSame(outside, [], 'of the graph nothing is read beside the slots')
  t.ok(inside >= 6, `${inside} reads`)
  t.strictSame(requesters, new Set([requester]), 'and nothing for a client that has gone')
  inside = 0
  const histories = new Histories(watched(handoffs, 'status'), new EventService(null, null as never, () => ''), reads)
  const one = await histories.inspect(caller, first, requester)
  t.strictSame(outside.splice(0), ['status'], 'the handoff itself is small, as a status is')
  t.equal((await histories.attempts(caller, one, requester)).length, 2)
  t.strictSame([outside, inside], [[], 1], 'its other attempts are read in slots')
})
