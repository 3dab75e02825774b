/** The console's overview and its pages of inboxes, without a browser: what they show, to whom, and what their forms do. */
import t from 'tap'
import type { ApiKey } from '../../src/core/model.ts'
import { callerOf } from '../../src/core/model.ts'
import type { Scope } from '../../src/core/model.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { form, personWith, textOf } from '../helpers/forms.ts'
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
/** A tenant: an agent's key, which may do everything an agent may, and an operator's. */
const tenant = (name: string) => ({ agent: key(name, 'alice', 'pass', 'catch', 'status'), operator: key(name, 'olga', 'operate', 'status', 'approve') })
type Tenant = ReturnType<typeof tenant>
const [first, wrong, paged, steered, many, more, large, seen] =
  ['first', 'wrong', 'paged', 'steered', 'many', 'more', 'large', 'seen'].map(tenant) as [Tenant, Tenant, Tenant, Tenant, Tenant, Tenant, Tenant, Tenant]
const blind = key('first', 'blind', 'operate')
const approver = key('steered', 'ann', 'approve', 'status')
const silent = key('steered', 'sam', 'approve')

const service = await testApp(t, { BASE_URL: `http://127.0.0.1:8080${base}`, LOG_LEVEL: 'info' }, {}, keys)
const { app, call: ask } = service
const now = Date.now()
// So that ages are exact.
await service.setClock(now)
const call = (secret: string, method: 'GET' | 'POST' | 'PUT', path: string, body?: object) => ask(null, method, path, body, { authorization: `Bearer ${secret}` })
const pass = async (secret: string, body: object): Promise<string> => (await call(secret, 'POST', '/api/pass', { task: 't', ...body })).json().handoff_id
const next = async (secret: string, inbox: string): Promise<string> => (await call(secret, 'POST', '/api/catch', { inbox })).json().items[0].handoff_id
const inboxOf = async (secret: string, name: string) => (await call(secret, 'GET', `/api/inboxes/${name}`)).json()

t.test('nobody sees it without a session, and signing in leads to the page that was asked for', async t => {
  for (const path of ['/console', '/console?cursor=YQ', '/console/inboxes/a.b', '/console/inboxes/x/purge']) {
    const { statusCode, headers } = await app.inject(path)
    t.strictSame([statusCode, headers.location], [303, `${base}/approvals/sign-in?next=${encodeURIComponent(path)}`])
    const { body } = await app.inject(String(headers.location))
    t.match(body, 'Operator or approver key')
    const given = /name="next" value="([^"]*)"/.exec(body)![1]!.replaceAll('&#61;', '=')
    t.equal((await app.inject(form('/approvals/sign-in', { key: first.operator, next: given }))).headers.location, base + path)
  }
  for (const next of ['/console/../docs', '/console/./x', '/console/%2e%2e/docs', '/console.evil', '/consoles', '//console']) {
    t.equal((await app.inject(form('/approvals/sign-in', { key: first.operator, next }))).headers.location, `${base}/approvals`, next)
  }
  const poll = await app.inject({ url: '/console?cursor=YQ', headers: { 'hx-request': 'true' } })
  t.strictSame([poll.statusCode, poll.headers['hx-redirect']], [401, `${base}/approvals/sign-in?next=%2Fconsole%3Fcursor%3DYQ&ended=1`])
  const sent = await app.inject(form('/console/inboxes/x/pause', { paused: 'true' }))
  t.equal(sent.statusCode, 401)
  t.match(sent.body, /name="next" value="\/console\/inboxes\/x">/, 'back to the page with the form')
  t.match(sent.body, 'Nothing was changed')
  t.equal((await app.inject(form('/approvals/sign-in', { key: first.agent, next: '/console' }))).statusCode, 401, 'an agent’s key opens no session')
})

t.test('a key sees what its scopes allow, and is told what it lacks', async t => {
  const operates = await personWith(service, blind)
  t.equal((await app.inject(form('/approvals/sign-in', { key: blind }))).headers.location, `${base}/console`, 'the list of approvals is nothing for it')
  for (const path of ['/console', '/console/inboxes/x']) {
    const { statusCode, body } = await operates(path)
    t.equal(statusCode, 403)
    t.match(textOf(body), /needs a key with the scope status/)
  }
  t.match(textOf((await operates('/approvals')).body), /needs a key with the scope approve/)
  t.equal((await personWith(service, silent).then(ask => ask('/console'))).statusCode, 403)
  const decides = await personWith(service, approver)
  await pass(steered.agent, { to: 'desk', task: 'a secret task' })
  const { statusCode, body } = await decides('/console/inboxes/desk')
  t.equal(statusCode, 200)
  t.notMatch(body, /<button class="onward|a secret task|\/purge/, 'no buttons, and no task')
  t.match((await personWith(service, steered.operator).then(ask => ask('/console/inboxes/desk'))).body, /Pause<\/button>[^]*a secret task/)
  for (const path of ['pause', 'limits', 'purge', 'redrive']) {
    const sent = await decides(`/console/inboxes/desk/${path}`, { paused: 'true', max_caught: '1' })
    t.equal(sent.statusCode, 403, path)
    t.match(textOf(sent.body), /needs a key with the scope operate/)
  }
  for (const path of ['purge', 'redrive']) t.equal((await decides(`/console/inboxes/desk/${path}`)).statusCode, 403, path)
  t.match(await inboxOf(steered.agent, 'desk'), { pending: 1, paused: false, max_caught: null })
})

t.test('the overview says whether anything is wrong', async t => {
  const { agent, operator } = wrong
  const open = await personWith(service, operator)
  const look = async () => textOf((await open('/console')).body)
  t.match(await look(), /Nothing is wrong.*There is none yet/)
  await pass(agent, { to: 'a' })
  t.match(await look(), /Nothing is wrong.* a 1 0 s 0 0 0 0/)
  await service.setClock(now - 11 * 60_000)
  await pass(agent, { to: 'old' })
  await service.setClock(now)
  t.match(await look(), /One thing needs a look Nobody catches: old \(the oldest waits for 11 min \)/)
  await call(operator, 'PUT', '/api/inboxes/old', { paused: true })
  t.match(await look(), /One thing needs a look Paused: old \(1 pending\)/)
  await call(operator, 'PUT', '/api/inboxes/a', { max_caught: 1, max_pending: 1 })
  t.match(await look(), /Takes no more: a \(1 pending at most\) Paused: old/)
  await next(agent, 'a')
  await pass(agent, { to: 'a' })
  t.match(await look(), /At the limit of caught handoffs: a \(1 of 1; 1 wait\).* 1 of 1 0 at its limit full/)
  await pass(agent, { to: 'p', require_human: true })
  t.match(await look(), /One handoff waits for a person, the first for 0 s/)
  const id = await pass(agent, {})
  await call(agent, 'GET', `/api/catch/${id}`)
  await call(agent, 'POST', `/api/fail/${id}`, { error: { message: 'x' }, retry: false })
  t.match(await look(), /5 things need a look Handoffs failed ; the latest 0 s ago Takes/, 'also what was for no inbox')
  t.notMatch(textOf((await (await personWith(service, secrets.operator))('/console')).body), /\bold\b/, 'another tenant sees nothing of it')
})

t.test('a page of the overview has 100 inboxes, and says that there are others', async t => {
  const { agent, operator } = paged
  for (let n = 0; n < 5; n++) {
    await call(agent, 'POST', '/api/batch', { operations: Array.from({ length: 25 }, (_, i) => ({ op: 'pass', body: { task: 't', to: `i${String(n * 25 + i).padStart(3, '0')}` } })) })
  }
  const open = await personWith(service, operator)
  const { body } = await open('/console')
  const rows = (page: string) => [...page.matchAll(/id="row-(\w+)"/g)].map(([, name]) => name)
  t.strictSame([rows(body).length, rows(body)[0], rows(body)[99]], [100, 'i000', 'i099'])
  t.match(textOf(body), /Nothing is wrong in these inboxes.*the numbers of this page/)
  const onward = /href="([^"]+)">Next inboxes/.exec(body)![1]!.replaceAll('&#61;', '=')
  t.ok(onward.startsWith(`${base}/console?cursor=`))
  const rest = (await open(onward.slice(base.length))).body
  t.strictSame([rows(rest).length, rows(rest)[0]], [25, 'i100'])
  t.match(rest, `hx-get="${onward.replaceAll('=', '&#61;')}"`, 'this page keeps itself up to date, not the first')
  t.match(textOf(rest), 'Back to the first')
  t.equal((await open('/console?cursor=!!')).statusCode, 400)
  t.equal(rows((await open('/console?cursor=a&cursor=b')).body).length, 100)
})

t.test('an inbox is paused, resumed and limited, and nothing that a GET asks for does it', async t => {
  const { agent, operator } = steered
  const open = await personWith(service, operator)
  const page = '/console/inboxes/tuned'
  const back = { statusCode: 303, headers: { location: base + page } }
  t.match(await open(`${page}/pause`, { paused: 'true' }), back)
  t.equal((await inboxOf(agent, 'tuned')).paused, true)
  t.match((await open(page)).body, /paused<\/span>[^]*Nothing is caught[^]*|Resume<\/button>/)
  for (const paused of ['', 'yes', '1']) t.equal((await open(`${page}/pause`, { paused })).statusCode, 400)
  t.match(await open(`${page}/pause`, { paused: 'false' }), back)
  t.equal((await inboxOf(agent, 'tuned')).paused, false)
  t.match(await open(`${page}/limits`, { max_caught: ' 7 ', max_pending: '10000000' }), back)
  t.match(await inboxOf(agent, 'tuned'), { max_caught: 7, max_pending: 10_000_000 })
  // What was shown and not changed stays as somebody else has set it meanwhile.
  await call(operator, 'PUT', '/api/inboxes/tuned', { max_caught: 9 })
  await open(`${page}/limits`, { max_caught: '7', shown_max_caught: '7', max_pending: '', shown_max_pending: '10000000' })
  t.match(await inboxOf(agent, 'tuned'), { max_caught: 9, max_pending: null })
  for (const [name, value] of [['max_caught', '0'], ['max_caught', '100001'], ['max_pending', '10000001'], ['max_caught', '-1'], ['max_caught', '1.5'], ['max_pending', '１'], ['max_caught', '<b>']] as const) {
    const { statusCode, body } = await open(`${page}/limits`, { [name]: value })
    t.equal(statusCode, 400, `${name} ${value}`)
    t.match(body, /type a whole number from 1 to [\d,]+, or nothing/)
    t.match(body, `value="${value.replace('<b>', '&#60;b&#62;')}"`, 'what was typed is there still')
  }
  t.match(await inboxOf(agent, 'tuned'), { max_caught: 9, max_pending: null })
  // Except what Redis forgets by itself, and who asks at inboxes, which the service notes every 5 s, whatever it is asked.
  const dump = async () => Object.fromEntries(Object.entries(await service.dump()).filter(([name]) => !/:[ln]:/.test(name)))
  const before = await dump()
  for (const path of ['pause?paused=true', 'limits?max_caught=1', 'purge', 'redrive', '']) await open(`${page}/${path}`)
  t.strictSame(await dump(), before, 'a GET changes nothing')
  for (const headers of [{}, { 'sec-fetch-site': 'cross-site' }, { origin: 'null' }] as Array<Record<string, string>>) {
    for (const path of ['pause', 'limits', 'purge', 'redrive']) t.equal((await app.inject(form(`${page}/${path}`, { paused: 'true', max_caught: '1' }, headers))).statusCode, 403, path)
  }
  t.strictSame(await dump(), before, 'nor does another site’s form')
})

t.test('purge and redrive ask first, are counted and logged as the API’s are, and say what they did', async t => {
  const { agent, operator } = many
  const open = await personWith(service, operator)
  const page = '/console/inboxes/many'
  for (let n = 0; n < 3; n++) await pass(agent, { to: 'many' })
  await pass(agent, { to: 'many', delay: 60 })
  const kept = await pass(agent, { to: 'many', require_human: true })
  const caught = await next(agent, 'many')
  t.match(textOf((await open(`${page}/purge`)).body), /Cancel what is pending in many\?.*4 handoffs are pending there now: 2 can be caught, 1 wait for a person, 1 can be caught later.*can’t be taken back/)
  t.equal((await open(`${page}/purge`, { reason: 'x'.repeat(4001) })).statusCode, 400)
  t.match(await inboxOf(agent, 'many'), { pending: 2, waiting_approval: 1, delayed: 1, caught: 1 })
  for (const reason of ['', 'x'.repeat(4000)]) t.equal((await open('/console/inboxes/none/purge', { reason })).statusCode, 303, 'without a reason, and with the longest one')
  const purged = await open(`${page}/purge`, { reason: 'by\r\nmistake' })
  t.match(purged, { statusCode: 303, headers: { location: `${base}${page}?cancelled=4` } })
  t.match(await inboxOf(agent, 'many'), { pending: 0, waiting_approval: 0, delayed: 0, caught: 1 })
  t.match((await call(agent, 'GET', `/api/status/${kept}`)).json(), { status: 'cancelled', ended_by: 'olga', cancel_reason: 'by\nmistake' })
  t.match(textOf((await open(`${page}?cancelled=4`)).body), /^ ?4 handoffs were cancelled\./)
  for (const site of ['cross-site', 'same-site', 'none']) t.notMatch(textOf((await open(`${page}?cancelled=4`, undefined, { 'sec-fetch-site': site })).body), 'were cancelled', 'another’s link says nothing')
  for (const query of ['cancelled=x', 'cancelled=-1', 'cancelled=1&cancelled=2', 'cancelled=<b>']) t.notMatch(textOf((await open(`${page}?${query}`)).body), 'cancelled.')
  await call(agent, 'POST', `/api/fail/${caught}`, { error: { message: 'no', code: 'E1' }, retry: false })
  t.match(textOf((await open(page)).body), /Failed 1 .*failed 0 s ago alice E1 no/)
  t.match(textOf((await open(`${page}/redrive`)).body), /Reissue what failed in many\?.*One handoff failed there/)
  t.match(await open(`${page}/redrive`, {}), { statusCode: 303, headers: { location: `${base}${page}?reissued=1&skipped=0` } })
  t.match(await inboxOf(agent, 'many'), { pending: 1, failed: 0 })
  t.match(await open(`${page}/redrive`, {}), { statusCode: 303, headers: { location: `${base}${page}?reissued=0&skipped=0` } }, 'once')
  const lines = service.lines.map(line => JSON.parse(line) as Record<string, unknown>).filter(({ msg, tenant }) => msg === 'operated' && tenant === 'many')
  t.match(lines.map(({ operator, action, inbox, changed }) => [operator, action, inbox, changed]), [['olga', 'purge', 'many', 4], ['olga', 'redrive', 'many', 1]])
  t.notMatch(JSON.stringify(lines), 'mistake', 'the reason isn’t logged')
  const { body: metrics } = await app.inject('/metrics')
  for (const to of ['cancelled', 'failed']) t.match(metrics, new RegExp(`to="${to}"\\} [1-9]`), to)
})

t.test('of more than a thousand, the rest is left for another time, and the page says so', async t => {
  const { agent, operator } = more
  const operations = Array.from({ length: 100 }, () => ({ op: 'pass', body: { task: 't', to: 'full' } }))
  for (let n = 0; n < 11; n++) await call(agent, 'POST', '/api/batch', { operations })
  const open = await personWith(service, operator)
  const [, cancelled] = /\/inboxes\/full\?cancelled=(\d+)&more=1$/.exec((await open('/console/inboxes/full/purge', {})).headers.location!) ?? []
  // On a busy machine it ends earlier.
  t.ok(Number(cancelled) > 0 && Number(cancelled) <= 1000, `${cancelled}`)
  t.equal((await inboxOf(agent, 'full')).pending, 1100 - Number(cancelled))
})

t.test('names that look like a path, and names that can’t be one', async t => {
  const { agent, operator } = large
  const open = await personWith(service, operator)
  for (const name of ['...', '__proto__', '-', 'a'.repeat(64)]) {
    await pass(agent, { to: name })
    const path = `/console/inboxes/${name}`
    t.match((await open('/console')).body, `href="${base}${path}"`)
    t.match(textOf((await open(path)).body), `Inbox ${name} `)
    // The log names the inbox, which this run's guard takes for a secret where the name is long.
    if (name.length < 64) t.equal((await open(`${path}/pause`, { paused: 'true' })).headers.location, base + path)
  }
  for (const name of ['a b', 'a'.repeat(65), '~x', '~.', '%3Cscript%3E', '%00', 'é']) {
    for (const more of ['', '/purge', '/redrive']) t.equal((await open(`/console/inboxes/${encodeURI(decodeURI(name))}${more}`)).statusCode, 404, name + more)
    t.equal((await open(`/console/inboxes/${encodeURI(decodeURI(name))}/pause`, { paused: 'true' })).statusCode, 404, name)
  }
  t.equal((await open('/console/nothing')).statusCode, 404)
  t.match(textOf((await open('/console/nothing')).body), /There is nothing here.*To the console/)
})

t.test('what agents wrote is text, and payloads are not shown', async t => {
  const { agent, operator } = seen
  const open = await personWith(service, operator)
  const words = '<img src=x onerror=alert(1)> \u202e"\'&'
  const given = { to: 'in', task: `${words}${'w'.repeat(300)}END`, output: { hidden_output: 1 }, context: { hidden_context: 1 }, constraints: 'hidden_constraints', labels: { run: '42' } }
  const [failed] = [await pass(agent, given), await pass(agent, given), await pass(agent, { ...given, require_human: true })]
  await call(agent, 'GET', `/api/catch/${failed}`)
  await call(agent, 'POST', `/api/fail/${failed}`, { error: { message: words, code: 'E', data: { hidden_data: 1 } }, retry: false })
  const held = await next(agent, 'in')
  await call(agent, 'POST', `/api/heartbeat/${held}`, { progress: { message: words, percent: 45 } })
  const { body, headers } = await open('/console/inboxes/in')
  t.notMatch(body, /<img|\u202e|hidden_|END/)
  t.match(textOf(body), /Caught .*alice 0 s 0 s ago 45 % <img src=x onerror=alert\(1\)> ⟦U\+202E⟧ "'&/)
  t.match(textOf(body), /Pending .*run:42 alice 0 s in 24 h waits for a person/)
  t.match(textOf(body), /Failed .*run:42 failed 0 s ago alice E <img/)
  t.match(headers['content-security-policy'], /default-src 'none'.*script-src 'self'/)
  t.strictSame([headers['cache-control'], headers['content-type']], ['no-store', 'text/html; charset=utf-8'])
  t.notMatch(body, /<script(?! src)|style=| on\w+=/)
})
