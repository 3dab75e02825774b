/** What people see of the work, without a browser: titles, runs, what has ended, workers, payloads, webhooks and keys, and to whom. */
import t from 'tap'
import type { ApiKey, Scope } from '../../src/core/model.ts'
import { callerOf } from '../../src/core/model.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { form, personWith, textOf, unescaped } from '../helpers/forms.ts'
import { keepSecret } from '../helpers/log-sink.ts'

const keys: ApiKey[] = []
function key (tenant: string, agent: string, scopes: Scope[], inboxes?: string[]): string {
  const secret = `${tenant}-${agent}-key-0123456789`
  keys.push({ secret, caller: { ...callerOf(tenant, agent, scopes), inboxes: inboxes === undefined ? null : new Set(inboxes) } })
  keepSecret(secret)
  return secret
}
const tenants = Object.fromEntries(['titled', 'read', 'runs', 'many', 'ended', 'work', 'hooks', 'kept', 'sealed'].map(name => [name, {
  agent: key(name, 'alice', ['pass', 'catch', 'status']),
  operator: key(name, 'olga', ['operate', 'status', 'approve']),
  onlooker: key(name, 'ann', ['approve', 'status']),
  reader: key(name, 'rita', ['read', 'status']),
}])) as Record<'titled' | 'read' | 'runs' | 'many' | 'ended' | 'work' | 'hooks' | 'kept' | 'sealed', Record<'agent' | 'operator' | 'onlooker' | 'reader', string>>
const held = key('read', 'hella', ['read', 'status', 'operate'], ['elsewhere'])
const hooker = key('hooks', 'wendy', ['operate', 'status', 'webhooks'])

const service = await testApp(t, { EVENTS_RETENTION: '86400', WEBHOOK_SECRET: 'secret-of-webhooks-0123', WEBHOOK_ALLOW: '127.0.0.1', LOG_LEVEL: 'info', RATE_LIMIT_PER_MINUTE: '100000' }, {}, keys)
const { call: send } = service
const call = (secret: string, method: 'GET' | 'POST' | 'PUT', path: string, body?: object, headers: Record<string, string> = {}) => send(null, method, path, body, { authorization: `Bearer ${secret}`, ...headers })
const pass = async (secret: string, body: object = {}): Promise<string> => (await call(secret, 'POST', '/api/pass', { task: 'T', ...body })).json().handoff_id
const next = async (secret: string, inbox: string, worker = ''): Promise<string> => (await call(secret, 'POST', '/api/catch', { inbox }, worker === '' ? {} : { 'handoff-worker': worker })).json().items[0].handoff_id
const status = async (secret: string, id: string) => (await call(secret, 'GET', `/api/status/${id}`)).json()
const logged = (msg: string) => service.lines.map(line => JSON.parse(line) as Record<string, unknown>).filter(line => line.msg === msg)

/** Markup, an override of direction, and a text from right to left. */
const hostile = '<img src=x onerror=alert(1)> \u202eevil\u202c עברית'

t.test('a title stands in lists, pages and pictures, for operate and read; others see ids', async t => {
  const { agent, operator, onlooker, reader } = tenants.titled
  const first = await pass(agent, { to: 'writer', task: `${hostile}\nand more`, labels: { run: '1' } })
  const second = await pass(agent, { to: 'writer', task: 'Second thing', labels: { run: '1' }, after: [first] })
  await next(agent, 'writer')
  await call(agent, 'POST', `/api/fail/${first}`, { error: { message: 'no', code: 'c' }, retry: false })
  const pages = ['/console/failed', '/console/ended', '/console/inboxes/writer', '/console/find?q=run:1', '/console/activity', `/console/handoffs/${second}`, '/console/run?label=run&value=1']
  for (const secret of [operator, reader]) {
    const ask = await personWith(service, secret)
    for (const page of pages) {
      const { body, statusCode } = await ask(page)
      t.equal(statusCode, 200, page)
      t.match(body, /&lt;img src|&#60;img src/, `${page}: the title, as text`)
      t.notMatch(body, /<img|\u202e/, `${page}: no markup, and no override`)
      t.notMatch(body.replaceAll('and more', '').match(/and more/)?.[0] ?? '', 'and more')
    }
    t.match((await ask(`/console/handoffs/${second}`)).body, /<h1 class="about"><span class="task" dir="auto">Second thing<\/span>[^]*<title>Second thing · Console<\/title>|<title>Second thing · Console<\/title>[^]*<h1 class="about">/)
  }
  const ask = await personWith(service, onlooker)
  for (const page of pages) {
    const { body, statusCode } = await ask(page)
    t.equal(statusCode, 200, page)
    t.notMatch(body, /img src|Second thing/, `${page}: an onlooker sees no title`)
    t.match(body, /[\w-]{25}/)
  }
  for (const path of ['/console/webhooks', '/console/keys', '/console/run/stop?label=run&value=1']) t.equal((await ask(path)).statusCode, 403, path)
  t.notMatch((await ask('/console')).body, /\/console\/(webhooks|keys)|Stop this run/, 'and no link to what she may not see')
  t.notMatch((await ask('/console/run?label=run&value=1')).body, 'Stop this run')
})

t.test('a reader sees all of a handoff, once, and the log says so', async t => {
  const { agent, operator, reader } = tenants.read
  const id = await pass(agent, { to: 'writer', task: `${hostile}\nLine two`, output: { rows: [1, 2], note: 'a\nb' }, context: { because: 'of it' }, constraints: 'Be short.' })
  const waits = (await (await personWith(service, operator))(`/console/handoffs/${id}`)).body
  t.match(textOf(waits), /Waits for an agent that works on its inbox: none does/)
  t.notMatch(waits, /of it|Be short/, 'an operator without read sees no payload')
  const ask = await personWith(service, reader)
  const page = (await ask(`/console/handoffs/${id}`)).body
  t.match(textOf(page), /Task .*Line two.*Output .*"rows".*Context .*of it.*Constraints .*Be short\..*There is no result yet/)
  t.notMatch(page, /<img|\u202e/)
  const reads = () => logged('read').filter(({ tenant }) => tenant === 'read')
  t.match(reads(), [{ handoff_id: id, tenant: 'read' }])
  const part = (await ask(`/console/handoffs/${id}`, undefined, { 'hx-request': 'true' })).body
  t.notMatch(part, /Be short/, 'its refresh doesn’t load it')
  await ask(`/console/handoffs/${id}`)
  await call(reader, 'GET', `/api/handoffs/${id}`)
  t.equal(reads().length, 1, 'one line in ten minutes, also with the API')
  await next(agent, 'writer', 'host:9')
  const { ask_id: asked } = (await call(agent, 'POST', `/api/ask/${id}`, { question: 'Which one?' })).json()
  t.equal((await call(operator, 'POST', `/api/answer/${id}`, { ask_id: asked, answer: { which: 'the red one' } })).statusCode, 200)
  await call(agent, 'POST', `/api/done/${id}`, { output: { text: 'All done.\nReally.' } })
  const after = textOf((await ask(`/console/handoffs/${id}`)).body)
  t.match(after, /Worker host:9.*Result .*All done\. Really\..*Question .*Which one\?.*Answer .*the red one/)
  t.notMatch(after, 'There is no result yet')
  t.match(textOf((await ask(`/console/handoffs/${id}`, undefined, { 'hx-request': 'true' })).body), 'Load the page again')
  const large = await pass(agent, { to: 'writer', output: { rows: Array.from({ length: 9000 }, (_, n) => `row ${n} of many that are long enough`) } })
  const whole = /This is only the beginning\. <a href="([^"]+)">Download the whole/.exec((await ask(`/console/handoffs/${large}`)).body)![1]!
  const file = await ask(whole)
  t.match([file.statusCode, file.headers['content-disposition'], file.body], [200, `attachment; filename="handoff-${large}.txt"`, 'row 8999 of many'])
  for (const [who, status] of [[operator, 403], [held, 403]] as const) t.equal((await (await personWith(service, who))(whole)).statusCode, status)
  t.equal((await ask(`/console/handoffs/${large.slice(0, -1)}/whole`)).statusCode, 404)
  t.notMatch(page, 'Download the whole')
  const elsewhere = (await (await personWith(service, held))(`/console/handoffs/${id}`)).body
  t.match(textOf(elsewhere), 'Your key is held to other inboxes')
  t.notMatch(elsewhere, /All done|Which one|img src/)
  t.equal((await ask(`/console/handoffs/${id}/cancel`)).statusCode, 403, 'a reader changes nothing')
})

t.test('a run: its counts, its picture, and how it is stopped', async t => {
  const { agent, operator } = tenants.runs
  const ask = await personWith(service, operator)
  t.match(textOf((await ask('/console/runs')).body), 'There is none yet')
  for (const value of ['..', 'a/b:c@d', '.', '4-2', '0']) {
    await pass(agent, { labels: { run: value }, task: `Of ${value}` })
    const list = (await ask('/console/runs')).body
    const link = /id="run-[^"]*" href="([^"]+)"/.exec(list)![1]!.replaceAll('&#38;', '&').replaceAll('&#61;', '=').replaceAll('&amp;', '&')
    const { statusCode, body } = await ask(link)
    t.equal(statusCode, 200, link)
    t.match(textOf(body), `run ${value} `)
  }
  for (const path of ['/console/run', '/console/run?label=run', '/console/run?label=run&value=x', '/console/run?label=other&value=4-2', '/console/run?label=run&value=%20']) t.equal((await ask(path)).statusCode, 404, path)
  t.equal((await (await personWith(service, tenants.titled.operator))('/console/run?label=run&value=4-2')).statusCode, 404, 'another tenant’s')

  const run = '/console/run?label=run&value=9'
  const root = await pass(agent, { to: 'plan', task: 'Root', labels: { run: '9' } })
  await next(agent, 'plan')
  const parts = [await pass(agent, { to: 'part', task: 'One', labels: { run: '9' }, parent: root }), await pass(agent, { to: 'part', task: 'Two', parent: root })]
  const last = await pass(agent, { to: 'part', task: 'Last', labels: { run: '9' }, after: parts })
  await next(agent, 'part')
  await call(agent, 'POST', `/api/done/${parts[0]}`, {})
  const { body } = await ask(run)
  t.match(textOf(body), /Live 3 Done 1 Failed 0 Other 0/)
  const picture = /<svg class="graph"[^]*?<\/svg>/.exec(body)![0]
  t.equal(picture.split('<rect').length - 1, 4)
  t.equal(picture.split('class="tip"').length - 1, 4, 'what is a part, and what comes after')
  for (const title of ['Root', 'One', 'Two', 'Last']) t.match(picture, title)
  const asked = await ask('/console/run/stop?label=run&value=9')
  t.match(textOf(asked.body), /Now 2 handoffs of it are pending, and one handoff is caught/)
  t.equal((await status(agent, last)).status, 'pending', 'to ask changes nothing')
  t.equal((await ask('/console/run/stop?label=run&value=9', { caught: 'maybe' })).statusCode, 400)
  t.match(textOf((await ask('/console/run/stop?label=run&value=9', { caught: '', reason: 'x'.repeat(4001) })).body), 'Nothing was stopped')
  const { statusCode, headers } = await ask('/console/run/stop?label=run&value=9', { caught: 'ask', reason: 'Enough' })
  t.equal(statusCode, 303)
  t.match(textOf((await ask(String(headers.location))).body), /handoffs? (was|were) cancelled\. One catcher was asked to stop/)
  t.match(await status(agent, last), { status: 'cancelled' })
  t.equal((await status(agent, root)).status, 'caught')
  t.match(logged('operated').at(-1), { action: 'purge', operator: 'olga' })
  await ask('/console/run/stop?label=run&value=9', { caught: 'force' })
  t.match(await status(agent, root), { status: 'cancelled', ended_by: 'olga' })
})

t.test('of a run of many 200 are drawn, what failed first, and it says so', async t => {
  const { agent, operator } = tenants.many
  for (let n = 0; n < 6; n++) {
    await call(agent, 'POST', '/api/batch', { operations: Array.from({ length: 100 }, (_, i) => ({ op: 'pass', body: { task: `n${n}-${i}`, to: 'many', labels: { run: 'large' } } })) })
  }
  const failed = await next(agent, 'many')
  await call(agent, 'POST', `/api/fail/${failed}`, { error: { message: 'no' }, retry: false })
  const { body } = await (await personWith(service, operator))('/console/run?label=run&value=large')
  t.equal(body.split('<rect').length - 1, 200)
  t.match(body, `href="/console/handoffs/${failed}"><title>`, 'what failed is among them')
  t.match(textOf(body), '200 of 600 are drawn')
})

t.test('what has ended is listed, with filters', async t => {
  const { agent, operator } = tenants.ended
  const done = await pass(agent, { to: 'a', task: 'Done thing', labels: { run: '1' } })
  await next(agent, 'a')
  await call(agent, 'POST', `/api/done/${done}`, { output: { secret: 'result' } })
  const failed = await pass(agent, { to: 'b', task: 'Failed thing' })
  await next(agent, 'b')
  await call(agent, 'POST', `/api/fail/${failed}`, { error: { message: 'no disk', code: 'disk' }, retry: false })
  const cancelled = await pass(agent, { to: 'a', task: 'Cancelled thing' })
  await call(agent, 'POST', `/api/cancel/${cancelled}`)
  const ask = await personWith(service, operator)
  const listed = async (query: string) => [...(await ask(`/console/ended?${query}`)).body.matchAll(/id="h-([\w-]{25})"/g)].map(([, id]) => id)
  t.strictSame(await listed(''), [cancelled, failed, done], 'the latest first')
  t.strictSame(await listed('status=done'), [done])
  t.strictSame(await listed('inbox=a'), [cancelled, done])
  t.strictSame(await listed('error_code=disk'), [failed])
  t.strictSame(await listed('labels=run:1'), [done])
  const { ended_at: at } = await status(agent, failed)
  const hence = (offset: number, zone: string) => `${new Date(Date.parse(at) + offset).toISOString().slice(0, 23)}&%ZONE%=${zone}`
  const since = (offset: number, zone = 'Z') => `since=${hence(offset, zone).replace('%ZONE%', 'since.zone')}`
  const until = (offset: number, zone = 'Z') => `until=${hence(offset, zone).replace('%ZONE%', 'until.zone')}`
  t.strictSame(await listed(since(0)), [cancelled, failed])
  t.strictSame(await listed(until(1)), [failed, done])
  t.strictSame(await listed(`${since(3_600_000, '%2B01:00')}&${until(-3_599_999, '-01:00')}`), [failed], 'in the reader’s zone')
  t.strictSame(await listed(`since=${at}`), [cancelled, failed], 'as links have it')
  t.match((await ask(`/console/ended?${since(3_600_000, '%2B01:00')}`)).body, `name="since" value="${at.slice(0, -1)}">`)
  t.equal((await ask('/console/ended?since=yesterday')).statusCode, 400)
  t.match(textOf((await ask('/console/ended')).body), /done \d+ s ago in a by alice from alice/)
  t.notMatch((await ask('/console/ended')).body, 'result')
  for (const query of ['status=open', 'labels=x', 'inbox=%20x%20y']) t.equal((await ask(`/console/ended?${query}`)).statusCode, 400, query)
  t.strictSame([...(await ask('/console/find?q=run:1')).body.matchAll(/id="h-([\w-]{25})"/g)].map(([, id]) => id), [done], 'a label finds it too')
  const two = await ask('/console/failed/redrive', { labels: 'run:1,run:2' })
  t.equal(two.statusCode, 400)
  t.match(textOf(two.body), 'A handoff has one value of each label, so run:1 and run:2 exclude each other.')
  t.match(textOf((await ask('/console/failed?labels=run:1,run:2')).body), 'exclude each other')
})

t.test('an inbox: what can be caught comes first, the tile counts the list, and who works on it', async t => {
  const { agent, operator, onlooker } = tenants.work
  const other = await pass(agent, { to: 'other' })
  const blocked = await pass(agent, { to: 'desk', task: 'Blocked', after: [other], expires_in: 60 })
  const delayed = await pass(agent, { to: 'desk', task: 'Delayed', delay: 3000, expires_in: 4000 })
  const ready = await pass(agent, { to: 'desk', task: 'Ready' })
  const ask = await personWith(service, operator)
  const { body } = await ask('/console/inboxes/desk')
  const rows = [...body.matchAll(/<tr role="row"><th role="rowheader" scope="row"><a id="h-([\w-]{25})"/g)].map(([, id]) => id)
  t.strictSame(rows, [ready, blocked, delayed])
  t.match(textOf(body), /Pending 3 1 can be caught now/)
  t.match(textOf(body), /Blocked .*waits for 1 other handoff .*Delayed .*can be caught in/)
  t.match(textOf((await ask(`/console/handoffs/${blocked}`)).body), /Waits for 1 that it comes after|Waits for .*1 that it comes after/)
  t.match(textOf(body), /Listening 0.*Nobody waits there/)

  // Two agents whose workers call themselves the same.
  for (const who of [agent, key('work', 'late', ['catch', 'status'])]) await call(who, 'POST', '/api/catch', { inbox: 'crowd' }, { 'handoff-worker': 'host:1' })
  const others = Array.from({ length: 1004 }, (_, n) => `host:${n + 2}`)
  await Promise.all(others.map(worker => call(agent, 'POST', '/api/catch', { inbox: 'crowd' }, { 'handoff-worker': worker })))
  const crowd = textOf((await ask('/console/inboxes/crowd')).body)
  t.match(crowd, /Who works on it .* All 1,000, and more/)
  const all = await ask('/console/inboxes/crowd/workers')
  t.equal(all.body.split('rowheader').length - 1, 1000)
  t.equal((await (await personWith(service, onlooker))('/console/inboxes/crowd/workers')).statusCode, 200)
  t.equal((await ask('/console/inboxes/no%20inbox/workers')).statusCode, 404)
})

t.test('webhooks are seen, and made and tested with their own scope', async t => {
  const { operator } = tenants.hooks
  const ask = await personWith(service, hooker)
  t.match(textOf((await ask('/console/webhooks')).body), 'There is none.')
  const made = await ask('/console/webhooks/new', { url: 'http://127.0.0.1:9/hook', labels: 'run:42', types: 'handoff.done' })
  t.equal(made.statusCode, 200)
  const [secret] = /whsec_[A-Za-z0-9+/&#;=]+/.exec(made.body)!
  const id = /\/console\/webhooks\/(wh_[\w-]+)\/test/.exec(made.body)![1]!
  await ask('/console/webhooks/new', { url: 'http://127.0.0.1:9/services/T0/chatpart', format: 'slack', updates: '1' })
  for (const secretOf of [hooker, operator]) {
    const sees = await personWith(service, secretOf)
    const { body } = await sees('/console/webhooks')
    t.match(body, 'http://127.0.0.1:9/hook')
    t.notMatch(body, secret, 'its secret is shown once')
    t.equal(body.includes('chatpart'), secretOf === hooker, 'a chat’s address is a secret')
  }
  const wrong = await ask('/console/webhooks/new', { url: 'http://example.com/', timezone: 'Moon', format: 'slack' })
  t.equal(wrong.statusCode, 400)
  t.match(textOf(wrong.body), /Address: .*Time zone: must be the name of a time zone/)
  t.match(wrong.body, 'value="Moon"', 'what was typed stays')
  t.equal((await ask('/console/webhooks/new', { url: 'http://127.0.0.1:9/', labels: 'x' })).statusCode, 400)
  const tested = await ask(`/console/webhooks/${id}/test`, {})
  t.equal(tested.headers.location, `/console/webhooks/${id}?sent=1`)
  t.match(textOf((await ask(String(tested.headers.location))).body), /A test is on its way.*webhook\.test pending/)
  for (const path of [`/console/webhooks/${id}x`, '/console/webhooks/__proto__']) t.equal((await ask(path)).statusCode, 404, path)
  const sees = await personWith(service, operator)
  t.notMatch((await sees('/console/webhooks')).body, /<form class="question"|webhooks\/wh_/)
  t.equal((await sees('/console/webhooks/new', { url: 'http://127.0.0.1:9/' })).statusCode, 403)
  t.equal((await sees(`/console/webhooks/${id}/test`, {})).statusCode, 403)
  t.equal((await sees(`/console/webhooks/${id}`)).statusCode, 403)
})

t.test('keys and limits are seen, and never a secret; memory only by the operators of all', async t => {
  const { operator, reader } = tenants.kept
  const { key: stored } = await service.store.keyRecords.create({ tenant: 'kept', agent: 'stored', scopes: ['pass'], expiresIn: null, ratePerMinute: 77, inboxes: ['inbox-a'], by: 'test' })
  keepSecret(stored)
  await service.store.keyRecords.create({ tenant: 'foreign', agent: 'strangers', scopes: ['pass'], expiresIn: null, ratePerMinute: null, by: 'test' })
  await service.store.keyRecords.limits.set({ tenant: 'kept', agent: 'stored', ratePerMinute: 55, maxLive: 66 }, 'test')
  await service.store.keyRecords.limits.set({ tenant: 'kept', agent: null, maxLive: 1234 }, 'test')
  const ask = await personWith(service, operator)
  await service.keys.limits.read()
  const { body } = await ask('/console/keys')
  t.match(textOf(body), /stored [\w-]{12} pass inbox-a 77 /)
  t.match(textOf(body), /olga operate, status, approve/)
  t.match(textOf(body), /Each agent, by default 100,000 requests a minute .*together 1,234 live handoffs \(\d+ now\) stored 55 requests a minute, 66 live handoffs/)
  t.notMatch(body, /strangers|key-0123456789/)
  t.notMatch(body, stored)
  t.equal((await ask('/console/keys?cursor=x')).statusCode, 404)
  t.equal((await (await personWith(service, reader))('/console/keys')).statusCode, 403)
  const whose = async (secret: string, who = ask) => textOf((await who('/console/keys/whose', { secret })).body).replace(/ Keys and limits .*/, '')
  t.match(await whose(` ${stored} `), /This is the key [\w-]{12} , of the agent stored \. It may: pass, from the inboxes inbox-a \. It has no end\./)
  t.match(await whose(operator), 'a key of the service’s settings, of the agent olga . It may: operate, status, approve. It has no end.')
  for (const other of ['wrong', secrets.alice]) t.match(await whose(other), 'This is no key or token of this tenant that counts.', 'another tenant’s is as one that never was')
  t.equal((await (await personWith(service, reader))('/console/keys/whose', { secret: operator })).statusCode, 403)
  const ended = await service.app.inject(form('/console/keys/whose', { secret: stored }))
  t.equal(ended.statusCode, 401)
  t.notMatch(ended.body, stored, 'without a session it is in no page')
  t.equal((await ask('/console/keys/whose', { secret: '' })).headers.location, '/console/keys')
  t.notMatch((await ask('/console')).body, 'Redis uses')
  const all = await personWith(service, secrets.operator)
  t.match(textOf((await all('/console')).body), /Memory Redis uses \d+ MB/)
  t.notMatch(textOf((await (await personWith(service, secrets.approver))('/console')).body), 'Redis uses')
})

t.test('operators of all see which replicas have which payload keys', async t => {
  const sealing = (kid: string, byte: number) => `${kid}:${Buffer.alloc(32, byte).toString('base64')}`
  const [june, july] = [sealing('june', 6), sealing('july', 7)]
  const one = await testApp(t, { PAYLOAD_KEYS: `${june},${july}` })
  const other = await testApp(t, { PAYLOAD_KEYS: july }, { prefix: one.prefix })
  const page = async (secret: string) => textOf((await (await personWith(one, secret))('/console/keys')).body)
  t.notMatch(await page(secrets.operator), 'Payload keys', 'none was noted yet')
  for (const { store } of [one, other]) await store.payloadKeyNotes.note()
  const replica = String.raw`\S+:\d+`
  t.match(await page(secrets.operator), new RegExp(`Payload keys Key Written with by Known to july ${replica} all june ${replica} all but ${replica} .*doctor --scan`))
  t.notMatch(await page(secrets.foreignOperator), 'Payload keys', 'they are of all tenants')
})

t.test('of keys among many of others each is shown once, and no cursor names another tenant’s', async t => {
  const { operator } = tenants.kept
  const { keyRecords } = service.store
  const make = async (tenant: string, agent: string) => await keyRecords.create({ tenant, agent, scopes: ['pass'], expiresIn: null, ratePerMinute: null, by: 'test' })
  await make('kept', 'first-of-many')
  const foreign = await Promise.all(Array.from({ length: 1_100 }, (_, n) => make('foreign', `other-${n}`)))
  await make('kept', 'last-of-many')
  // Of one millisecond, so that what begins with a time reads some again.
  const [index] = (await service.redis.keys(`${service.prefix}:*:keys`)) as [string]
  const [, score] = await service.redis.zrange(index, '-500', '-500', 'WITHSCORES')
  for (const { id } of foreign.slice(590, 610)) await service.redis.zadd(index, score!, id)
  const ask = await personWith(service, operator)
  const shown: string[] = []
  let path: string | undefined = '/console/keys'
  for (let pages = 0; path !== undefined && pages < 10; pages++) {
    const { body } = await ask(unescaped(path))
    shown.push(...body.match(/(?:first|last)-of-many/g) ?? [])
    path = /href="(\/console\/keys\?[^"]*)">Read on/.exec(body)?.[1]
    for (const { id } of foreign) t.notOk(body.includes(id), 'nothing of another tenant')
  }
  t.strictSame([shown, path], [['first-of-many', 'last-of-many'], undefined])
})

t.test('the groups of an inbox: who has what, and how many may be caught of each', async t => {
  const { agent, operator, onlooker } = tenants.work
  const ask = await personWith(service, operator)
  await pass(agent, { to: 'shared' })
  t.notMatch((await ask('/console/inboxes/shared')).body, /id="groups"/, 'none has a name')
  for (let n = 0; n < 12; n++) await pass(agent, { to: 'shared', group: `customer-${String(n).padStart(2, '0')}` })
  const grouped = await pass(agent, { to: 'shared', group: 'customer-00' })
  await call(operator, 'PUT', '/api/inboxes/shared', { max_caught_per_group: 3 })
  await next(agent, 'shared')
  await next(agent, 'shared')
  const { body } = await ask('/console/inboxes/shared')
  t.match(textOf(body), /at most 3 of a group\..*Groups, which take turns .*none 0 – 1 customer-00 1 .* 1 customer-01 1 .* 0 .*customer-08 1 .* 0 All groups/)
  t.notMatch(textOf(body), /customer-09/)
  t.match(body, /name="max_caught_per_group"[^>]* value="3"/)
  const all = await ask('/console/inboxes/shared/groups')
  t.match(textOf(all.body), /customer-11 1 /)
  t.equal(all.body.split('rowheader').length - 1, 13)
  t.match(textOf((await ask(`/console/handoffs/${grouped}`)).body), /Group customer-00/)
  t.equal((await (await personWith(service, onlooker))('/console/inboxes/shared/groups')).statusCode, 200)
  t.equal((await ask('/console/inboxes/no%20inbox/groups')).statusCode, 404)
  t.equal((await ask('/console/inboxes/shared/groups?cursor=x')).statusCode, 400)
  await call(operator, 'PUT', '/api/inboxes/shared', { max_caught_per_group: null })
  await Promise.all(Array.from({ length: 120 }, (_, n) => pass(agent, { to: 'crowded', group: `${1000 + n}` })))
  const [first, ...others] = [(await ask('/console/inboxes/crowded/groups')).body]
  t.strictSame(others, [])
  const more = /id="groups-next" href="([^"]+)"/.exec(first)![1]!
  const second = (await ask(more)).body
  t.match(textOf(second), /Back to the first/)
  t.equal(first.split('rowheader').length + second.split('rowheader').length - 2, 120)
})

t.test('of a handoff that can’t be decrypted here a reader sees how it stands', async t => {
  const sealing = (kid: string, byte: number) => ({ PAYLOAD_KEYS: `${kid}:${Buffer.alloc(32, byte).toString('base64')}` })
  const june = await testApp(t, sealing('june', 6), {}, keys)
  const july = await testApp(t, sealing('july', 7), { prefix: june.prefix }, keys)
  const { agent, reader } = tenants.sealed
  const { call: send } = june
  const id = (await send(null, 'POST', '/api/pass', { task: 'secret', to: 'safe' }, { authorization: `Bearer ${agent}` })).json().handoff_id as string
  const { statusCode, body } = await (await personWith(july, reader))(`/console/handoffs/${id}`)
  t.equal(statusCode, 200)
  t.match(textOf(body), /Now pending .*Inbox safe .*What was passed, and what came of it, can’t be decrypted here/)
})

t.test('when a worker was heard of is said as of now, whoever was heard of last', async t => {
  const own = await testApp(t, {}, {}, keys)
  const { call: send } = own
  const { agent, onlooker } = tenants.sealed
  const headers = { authorization: `Bearer ${agent}` }
  const start = Date.now()
  await own.setClock(start - 240_000)
  const id = (await send(null, 'POST', '/api/pass', { task: 't', to: 'slow' }, headers)).json().handoff_id as string
  t.equal((await send(null, 'GET', `/api/catch/${id}`, undefined, headers)).statusCode, 200)
  await own.setClock(start)
  t.match(textOf((await (await personWith(own, onlooker))('/console/inboxes/slow/workers')).body), / alice .*4 min ago 4 min ago/)
})
