import t from 'tap'
import { Webhook } from 'standardwebhooks'
import { loadConfig } from '../../src/config.ts'
import { callerOf } from '../../src/core/model.ts'
import { Mailer } from '../../src/webhooks/mail.ts'
import { testApp } from '../helpers/app.ts'
import { keepSecret } from '../helpers/log-sink.ts'
import { isProblem } from '../helpers/problems.ts'
import { receiver } from '../helpers/receiver.ts'
import { mailServer } from '../helpers/smtp.ts'
import { until } from '../helpers/until.ts'
import { webhookApp, webhookSecret } from '../helpers/webhooks.ts'

const base = 'https://handoff.example/base'
const forPeople = ['handoff.approval_requested', 'handoff.asked', 'handoff.failed', 'handoff.expired']
const mailSettings = (port: number) => ({ SMTP_URL: `smtp://127.0.0.1:${port}`, MAIL_FROM: 'Handoffs <handoffs@example.com>', MAIL_ALLOW: 'example.com,team@other.org' })

t.test('a chat is told what people must know, signed, with a link', async t => {
  const { make, pass, call, hooks, untilDeliveries, store, setClock } = await webhookApp(t, { BASE_URL: base, EVENTS_RETENTION: '600' })
  store.sweeper.start()
  const chat = await receiver(t, response => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>ok</html>'))
  const made = await make(chat.url, { format: 'slack', include: ['task', 'task'], inbox: 'box', labels: { 1: 'one', run: '42' } })
  t.match(made, { url: chat.url, format: 'slack', types: forPeople, inbox: 'box', include: ['task'], labels: { 1: 'one', run: '42' }, secret: /^whsec_/ })
  const { secret: _, ...kept } = made
  t.strictSame((await hooks('GET', `/${made.id}`)).json(), kept)
  t.strictSame((await hooks('GET', '')).json(), { items: [kept] })

  const mine = { to: 'box', labels: { run: '42', 1: 'one', more: 'x' } }
  await pass({ ...mine, require_human: true, labels: { run: '41', 1: 'one' } })
  await pass({ ...mine, require_human: true, to: 'other' })
  const id = await pass({ ...mine, require_human: true, task: `<!channel> ${'x'.repeat(300)}`, output: { secret: 'secret' } })
  const [first] = await until(() => chat.got.length > 0 ? chat.got : null)
  new Webhook(made.secret).verify(first!.body, first!.headers as Record<string, string>)
  const { blocks } = JSON.parse(first!.body)
  t.equal(blocks[1].text.text, `Task: <!channel> ${'x'.repeat(189)}…`)
  t.match(blocks[0].text, { type: 'plain_text', text: /^A person must approve a handoff\nInbox: box\nPassed by: alice\nUntil: \d{4}-\d\d-\d\d \d\d:\d\d UTC\n/ })
  t.equal(blocks[2].text.text, `<${base}/approvals/${id}|Open it>`)

  // What is tried again, or was only passed, is told to nobody; nor is what people did themselves.
  await call('approver', 'POST', `/api/approve/${id}`)
  const again = await pass({ ...mine, max_attempts: 2, retry_delay: 0 })
  await call('bob', 'GET', `/api/catch/${again}`)
  const next = (await call('bob', 'POST', `/api/fail/${again}`, { error: { message: 'secret' } })).json().reissued_as
  await until(async () => (await call('bob', 'GET', `/api/catch/${next}`)).statusCode === 200)
  await call('bob', 'POST', `/api/fail/${next}`, { error: { message: 'secret' } })
  await until(() => chat.got.length > 1)
  await pass({ ...mine, expires_in: 1 })
  await until(() => chat.got.length > 2)
  t.strictSame(chat.got.map(({ body }) => JSON.parse(body).text), [
    `A person must approve a handoff: <${base}/approvals/${id}>`, `A handoff failed: <${base}/console/handoffs/${next}>`, JSON.parse(chat.got[2]!.body).text
  ])
  t.match(JSON.parse(chat.got[2]!.body).text, /^A handoff expired: /)
  t.match(JSON.parse(chat.got[1]!.body).blocks, [{}, { text: { text: 'Task: t' } }, {}])
  t.notOk(chat.got.some(({ body }) => body.includes('secret')), 'no output and no error')
  t.strictSame((await untilDeliveries(made.id, found => found.length === 3 && found.every(({ status }) => status === 'delivered'))).map(({ type }) => type), ['handoff.expired', 'handoff.failed', 'handoff.approval_requested'])

  const { id: testId } = (await hooks('POST', `/${made.id}/test`)).json()
  await until(() => chat.got.length === 4)
  t.match(JSON.parse(chat.got[3]!.body).text, `<${base}/>`)
  t.equal(chat.got[3]!.headers['webhook-id'], testId)
  // The next minute, in which five more may go out.
  await setClock(Date.now() + 61_000)
  t.strictSame((await hooks('POST', `/${made.id}/replay`, { since: '0-0' })).json(), { replayed: 3 })
  await until(() => chat.got.length === 7)
  t.notOk(chat.got.slice(4).some(({ headers }) => !chat.got.slice(0, 3).some(before => before.headers['webhook-id'] === headers['webhook-id'])), 'the same ids')

  const asking = await pass(mine)
  await call('bob', 'GET', `/api/catch/${asking}`)
  await call('bob', 'POST', `/api/ask/${asking}`, { question: 'Which <b>account</b>?', details: { secret: 'secret' } })
  await until(() => chat.got.length === 8)
  const asked = JSON.parse(chat.got[7]!.body)
  t.equal(asked.blocks[1].text.text, 'Question: Which <b>account</b>?')
  t.match(asked.text, `<${base}/approvals/${asking}>`)
  t.notMatch(chat.got[7]!.body, 'secret')
})

t.test('each chat gets its form; types that are named are all told; without include there is no payload', async t => {
  const { make, pass, call } = await webhookApp(t, { BASE_URL: base })
  const got = await Promise.all(['slack', 'teams', 'discord', 'ntfy'].map(async format => {
    const chat = await receiver(t)
    await make(chat.url, { format, types: ['handoff.passed', 'handoff.done'] })
    return chat
  }))
  const id = await pass({ task: 'a secret', to: 'box' })
  await call('bob', 'GET', `/api/catch/${id}`)
  await call('bob', 'POST', `/api/done/${id}`, { output: { a: 'secret' } })
  await until(() => got.every(({ got }) => got.length === 2))
  const [slack, teams, discord, ntfy] = got.map(({ got }) => got.find(({ body, headers }) => /passed/.test(`${body}${headers.title}`) && !/is done/.test(`${body}${headers.title}`))!)
  t.match(JSON.parse(slack!.body), { blocks: [{}, {}], unfurl_links: false })
  t.match(JSON.parse(teams!.body), { type: 'message', attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive' }] })
  t.match(JSON.parse(discord!.body), { content: /\*\*A handoff was passed\*\*/, allowed_mentions: { parse: [] } })
  t.match(ntfy!, { body: /^Inbox: box\n/, headers: { title: 'A handoff was passed', click: `${base}/console/handoffs/${id}`, 'content-type': /^text\/plain/ } })
  t.notOk(got.some(({ got }) => got.some(({ body }) => body.includes('secret'))))
})

t.test('once it is done there is a result where the task was, and no message has it', async t => {
  const { make, pass, call } = await webhookApp(t, { BASE_URL: base }, {}, true)
  const chat = await receiver(t)
  await make(chat.url, { format: 'discord', include: ['task'], types: ['handoff.done'] })
  const id = await pass({ task: 'a secret' })
  await call('bob', 'GET', `/api/catch/${id}`)
  await call('bob', 'POST', `/api/done/${id}`, { output: { task: 'another secret' } })
  const [message] = await until(() => chat.got.length === 1 ? chat.got : null)
  t.notMatch(message!.body, /secret|Task/)
})

t.test('a message that comes late has its own question, or none', async t => {
  const { make, caught, call, hooks } = await webhookApp(t)
  const id = await caught()
  const ask = async (question: string) => (await call('bob', 'POST', `/api/ask/${id}`, { question })).json().ask_id
  const first = await ask('the first one')
  t.equal((await call('approver', 'POST', `/api/answer/${id}`, { ask_id: first, answer: {} })).statusCode, 200)
  await ask('the second one')
  const chat = await receiver(t)
  const made = await make(chat.url, { format: 'ntfy', include: ['task'], types: ['handoff.asked', 'handoff.answered'] })
  await hooks('POST', `/${made.id}/replay`, { since: '0-0' })
  await until(() => chat.got.length === 3)
  const told = chat.got.map(({ headers, body }) => `${String(headers.title)} ${/^Question: .*$/m.exec(body)?.[0] ?? 'none'}`).sort()
  t.strictSame(told, ['A question was answered none', 'An agent asks a question Question: the second one', 'An agent asks a question none'])
})

t.test('a chat that has enough is asked later, and one that says no for ever is given up as a webhook is', async t => {
  const { make, pass, untilDeliveries, setClock, store } = await webhookApp(t)
  await setClock(Date.now())
  const busy = await receiver(t, response => response.writeHead(429, { 'retry-after': '60' }).end('{"retry_after":60}'))
  const wrong = await receiver(t, response => response.writeHead(400).end('invalid_payload'))
  const [one, other] = await Promise.all([make(busy.url, { format: 'slack' }), make(wrong.url, { format: 'teams' })])
  await pass({ require_human: true })
  const [waiting] = await untilDeliveries(one.id, ([first]) => first?.attempts === 1)
  t.match(waiting, { status: 'pending', last_status: 429, last_error: null, why: 'The receiver answered 429, which isn’t 2xx.' })
  t.equal(Date.parse(waiting!.next_at!) - Date.parse(waiting!.last_at!), 60_000)
  t.match((await untilDeliveries(other.id, ([first]) => first?.attempts === 1))[0], { status: 'pending', last_status: 400 })
  busy.answer = response => response.writeHead(200).end('ok')
  await setClock(Date.parse(waiting!.next_at!))
  store.webhooks!.notify()
  await untilDeliveries(one.id, ([first]) => first?.status === 'delivered')
  t.equal(new Set(busy.got.map(({ headers }) => headers['webhook-id'])).size, 1)
})

t.test('mail goes through the operator’s server, once known as delivered, with one id', async t => {
  const server = await mailServer(t)
  const { make, pass, untilDeliveries, hooks } = await webhookApp(t, { BASE_URL: base, ...mailSettings(server.port) })
  const made = await make('MAILTO:Anna.B+x@Example.com', { include: ['task'], inbox: null, format: null })
  t.match(made, { url: 'mailto:Anna.B+x@Example.com', types: forPeople, inbox: null, include: ['task'] })
  t.notOk('format' in made)
  t.notOk('labels' in made)
  const id = await pass({ require_human: true, to: 'box', task: 'a\r\nBcc: evil@example.com\r\n.\r\nQUIT\r\n\u202e zażółć' })
  const [delivery] = await untilDeliveries(made.id, ([one]) => one?.status === 'delivered')
  t.match(delivery, { last_status: 250, last_error: null, attempts: 1 })
  const [{ from, to, text }] = server.got as [typeof server.got[0]]
  t.equal(server.got.length, 1)
  t.strictSame([from, to], ['handoffs@example.com', ['Anna.B+x@example.com']])
  const [head = '', ...rest] = text.split('\r\n\r\n')
  t.match(head, new RegExp(`^Message-ID: <${delivery!.id}\\.${made.id}@example\\.com>$`, 'm'))
  t.match(head, /^From: Handoffs <handoffs@example\.com>$/m)
  t.match(head, /^Subject: A person must approve a handoff \(inbox box\)$/m)
  t.match(head, /^Auto-Submitted: auto-generated$/m)
  t.notMatch(head, /^(Bcc|webhook-)/im)
  const encoding = /^Content-Transfer-Encoding: (.*)$/m.exec(head)![1]!
  const body = rest.join('\r\n\r\n')
  const said = encoding === 'base64' ? Buffer.from(body, 'base64').toString() : Buffer.from(body.replace(/=\r\n/g, '').replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16))), 'latin1').toString()
  t.match(said, new RegExp(`Task: a Bcc: evil@example.com \\. QUIT zażółć\\r?\\n\\r?\\n${base}/approvals/${id}`))
  await hooks('POST', `/${made.id}/test`)
  await until(() => server.got.length === 2)
  t.match(server.got[1]!.text, /^Subject: A test of this webhook: nothing is to be done$/m)
})

t.test('mail goes nowhere else, and not at all unless it is set up', async t => {
  const { hooks, make } = await webhookApp(t, mailSettings(1), {}, false)
  const url = 'http://127.0.0.1:1/'
  const wrong: Array<[body: unknown, pointer: string]> = [
    ...['', 'a', '@example.com', 'a@', 'a@example.com,b@example.com', 'a@example.com?bcc=b@x.org', 'a@sub.example.com', 'a@example.com.evil.org', 'b@other.org', 'a%40example.com',
      'a@example.com#x', '"a b"@example.com', 'a..b@example.com', '.a@example.com', '//a@example.com', 'A<a@example.com>', 'a@@example.com', 'a@[127.0.0.1]', 'a!evil.org@example.com', 'evil.org!a@example.com', 'a%evil.org@example.com',
      '|id@example.com', '-oQ@example.com', '`id`@example.com', '$a@example.com', 'a/b@example.com', 'a=evil.org@example.com', 'a@evil.org@example.com', '@evil.org:a@example.com', 'a(c)@example.com', 'a\\@example.com', `${'a'.repeat(65)}@example.com`, '%0d%0a@example.com']
      .map((to): [unknown, string] => [{ url: `mailto:${to}` }, '/url']),
    [{ url: 'mailto:a@example.com', format: 'standard' }, '/format'], [{ url: 'mailto:a@example.com', format: 'slack' }, '/format'], [{ url, format: 'sms' }, '/format'], [{ url, format: 1 }, '/format'],
    [{ url, format: 'mail' }, '/format'], [{ url, format: '__proto__' }, '/format'], [{ url, include: ['task'] }, '/include'], [{ url, format: 'standard', include: ['task'] }, '/include'],
    [{ url, format: 'slack', include: [] }, '/include'], [{ url, format: 'slack', include: ['output'] }, '/include/0'], [{ url, format: 'slack', include: 'task' }, '/include'],
    [{ url, format: 'slack', include: [1] }, '/include/0'], [{ url, labels: {} }, '/labels'], [{ url, labels: { 'a b': 'c' } }, '/labels'], [{ url, labels: { a: 1 } }, '/labels/a'], [{ url, labels: 'a:b' }, '/labels'],
    [{ url, labels: Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`n${at}`, 'v'])) }, '/labels'], [{ url: 'https://10.0.0.1/', format: 'slack' }, '/url'],
    [`{"url":"${url}","format":"slack","format":"teams"}`, '/format'], [{ url: `slack+${url}` }, '/url'],
  ]
  for (const [body, pointer] of wrong) t.equal(isProblem(t, await hooks('POST', '', body), 400, 'invalid_request').errors[0].pointer.split('/').slice(0, pointer.split('/').length).join('/'), pointer, JSON.stringify(body).slice(0, 80))
  await make('mailto:TEAM@Other.org')
  for (const local of ["o'brien", 'a_b-c.d+e', '_a', '+a', 'a'.repeat(64)]) await make(`mailto:${local}@example.com`)
  const plain = await make(url, { format: null, include: null, labels: null })
  t.match(plain, { format: 'standard', types: null, inbox: null })
  for (const member of ['include', 'labels']) t.notOk(member in plain, member)
  t.match(await make(url, { format: 'standard', labels: JSON.parse('{"__proto__":"p"}') }), { types: null })
  const without = await webhookApp(t, { ...mailSettings(1), MAIL_ALLOW: '' }, {}, false)
  t.match(isProblem(t, await without.hooks('POST', '', { url: 'mailto:a@example.com' }), 400, 'invalid_request').errors, [{ pointer: '/url', message: /SMTP_URL/ }])
})

t.test('a mail server that refuses is named by its reply, and a silent one by the time; a password never leaves without TLS', async t => {
  const mail = { to: 'a@example.com', id: '1-0.wh_x', at: new Date(0), subject: 's', text: 't' }
  const settings = ({ port }: { port: number }) => loadConfig(mailSettings(port)).mail!
  const later = await mailServer(t, command => command === 'MAIL' ? '451 later' : undefined)
  t.match(await new Mailer(settings(later)).send(mail), { status: 451, error: null })
  const silent = await mailServer(t, command => command === 'MAIL' ? null : undefined)
  t.match(await new Mailer(settings(silent), 300).send(mail), { status: null, error: 'timeout' })
  const plain = await mailServer(t)
  const { server, ...more } = settings(plain)
  // Another machine, for all that the settings say.
  const remote = { ...more, server: { ...server, isLoopback: false }, auth: { user: 'user', pass: 'password' } }
  t.match(await new Mailer(remote).send(mail), { status: null, error: /^E\w+$/ })
  t.strictSame(plain.said.filter(line => /AUTH|MAIL/.test(line)), [])
})

t.test('what this service can’t send is kept with why: mail that it has no server for, and a newer version’s format', async t => {
  const { store, hooks, untilDeliveries } = await webhookApp(t)
  const cases = [['m', 'mailto:a@example.com', 'mail', 'mail_off'], ['n', 'http://127.0.0.1:1/', 'newer', 'unknown_format']] as const
  for (const [letter, url, format, error] of cases) {
    const id = `wh_${letter.repeat(22)}`
    await store.webhooks!.create('default', id, { url, format: format as 'mail', types: null, inbox: null })
    await hooks('POST', `/${id}/test`)
    const failed = await untilDeliveries(id, ([one]) => one?.status === 'failed')
    t.match(failed, [{ attempts: 1, last_status: null, last_error: error }], format)
  }
})

t.test('a key that is held to inboxes has tasks sent of those alone', async t => {
  const secret = 'held-webhooks-key-0123456789'
  keepSecret(secret)
  const caller = { ...callerOf('default', 'held', ['webhooks']), inboxes: new Set(['mine']) }
  const { app } = await testApp(t, { EVENTS_RETENTION: '60', WEBHOOK_SECRET: webhookSecret, WEBHOOK_ALLOW: '127.0.0.0/8' }, {}, [{ caller, secret }])
  const make = (more: object) => app.inject({
    method: 'POST', url: '/api/webhooks', headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }, payload: JSON.stringify({ url: 'http://127.0.0.1:1/', format: 'slack', ...more })
  })
  for (const more of [{}, { inbox: 'other' }, { inbox: null }]) isProblem(t, await make({ ...more, include: ['task'] }), 403, 'not_addressee')
  t.equal((await make({ inbox: 'mine', include: ['task'] })).statusCode, 201)
  t.equal((await make({})).statusCode, 201, 'events it may have of all')
})

t.test('five messages go out in a minute, and the rest as one, by type and inbox', async t => {
  const { make, pass, hooks, deliveries, untilDeliveries, store, setClock } = await webhookApp(t, { BASE_URL: base })
  const chat = await receiver(t)
  const { id } = await make(chat.url, { format: 'discord' })
  const other = await receiver(t)
  await make(other.url, { types: ['handoff.approval_requested'] })
  await Promise.all(Array.from({ length: 12 }, (_, at) => pass({ require_human: true, ...at % 2 === 0 && { to: 'box' } })))
  await untilDeliveries(id, all => all.filter(({ status }) => status === 'delivered').length === 5 && all.length === 13)
  await until(() => other.got.length === 12)
  t.equal(chat.got.length, 5)
  const summarised = await deliveries(id, '?status=summarised')
  t.equal(summarised.length, 7)
  t.match(summarised[0], { type: 'handoff.approval_requested', attempts: 0, last_status: null, last_error: null, last_at: null, next_at: null })
  t.notOk('summarised' in summarised[0]!)
  const [summary] = await deliveries(id, '?status=pending')
  t.match(summary, { type: 'webhook.summary', summarised: 7, attempts: 0 })
  await hooks('POST', `/${id}/test`)
  await until(() => chat.got.length === 6)

  await setClock(Date.parse(summary!.next_at!))
  store.webhooks!.notify()
  await untilDeliveries(id, ([first]) => first?.type === 'webhook.summary' && first.status === 'delivered')
  t.equal(chat.got.length, 7)
  const { content } = JSON.parse(chat.got[6]!.body)
  t.match(content, new RegExp(`^\\*\\*7 more within a minute\\*\\*\n(A person must approve a handoff: \`\\d( in the inbox box)?\`\n)+<${base}/approvals>$`))
})

t.test('with updates a short message follows a decision or an answer; times are of the webhook’s zone', async t => {
  const { make, pass, call, hooks } = await webhookApp(t, { BASE_URL: base })
  const chat = await receiver(t)
  const made = await make(chat.url, { format: 'ntfy', updates: true, timezone: 'Asia/Kathmandu', include: ['task'] })
  t.match(made, { updates: true, timezone: 'Asia/Kathmandu', types: forPeople })
  const plain = await make((await receiver(t)).url, { format: 'ntfy', updates: false })
  for (const member of ['updates', 'timezone']) t.notOk(member in plain, member)
  const id = await pass({ require_human: true, to: 'box' })
  await until(() => chat.got.length === 1)
  const { expires_at: end } = (await call('alice', 'GET', `/api/status/${id}`)).json()
  // 5 hours and 45 minutes ahead of UTC, all the year.
  const there = new Date(Date.parse(end) + 20_700_000).toISOString()
  t.match(chat.got[0]!.body, `Until: ${there.slice(0, 10)} ${there.slice(11, 16)} Asia/Kathmandu\n`)
  await call('approver', 'POST', `/api/approve/${id}`, { note: 'a secret' })
  await until(() => chat.got.length === 2)
  t.match(chat.got[1], { headers: { title: 'A handoff was approved', click: `${base}/console/handoffs/${id}` }, body: `By: carol\nInbox: box\nHandoff: ${id}` })
  await call('bob', 'GET', `/api/catch/${id}`)
  const asked = (await call('bob', 'POST', `/api/ask/${id}`, { question: 'Which?' })).json()
  await until(() => chat.got.length === 3)
  await call('approver', 'POST', `/api/answer/${id}`, { ask_id: asked.ask_id, answer: { a: 'secret' } })
  await until(() => chat.got.length === 4)
  t.match(chat.got[3], { headers: { title: 'A question was answered' }, body: `By: carol\nInbox: box\nHandoff: ${id}` })

  const url = 'http://127.0.0.1:1/'
  const wrong: Array<[body: object, pointer: string]> = [
    [{ updates: true }, '/updates'], [{ updates: false, format: 'standard' }, '/updates'], [{ timezone: 'UTC' }, '/timezone'], [{ format: 'slack', updates: 'yes' }, '/updates'],
    ...['', 'Mars/Base', 'Europe/Berlin ', '../etc', 'x'.repeat(65)].map((timezone): [object, string] => [{ format: 'slack', timezone }, '/timezone']), [{ format: 'slack', timezone: 1 }, '/timezone']
  ]
  for (const [body, pointer] of wrong) t.match(isProblem(t, await hooks('POST', '', { url, ...body }), 400, 'invalid_request').errors, [{ pointer }], JSON.stringify(body))
})
