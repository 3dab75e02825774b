import t from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import { asked, form, own, signedIn } from '../helpers/forms.ts'
import { ofOneReplica } from '../helpers/through.ts'

t.test('a form from elsewhere decides nothing', async t => {
  const service = await testApp(t)
  const cookie = await signedIn(service)
  const id = await asked(service)
  const before = await service.dump()
  const foreign: Array<Record<string, string>> = [
    {}, { origin: 'https://evil.example' }, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'cross-site', origin: 'http://localhost:80' }, { origin: 'http://localhost.evil.example' }, { origin: 'localhost' },
  ]
  for (const headers of foreign) {
    for (const url of [`/approvals/${id}/approve`, `/approvals/${id}/reject`, '/approvals/sign-in', '/approvals/sign-out']) {
      const answer = await service.app.inject(form(url, { note: 'x', key: secrets.approver }, { ...headers, cookie }))
      t.match(answer.headers['content-security-policy'], /default-src 'none'/)
      t.strictSame([answer.statusCode, answer.headers['set-cookie']], [403, undefined], `${url} ${JSON.stringify(headers)}`)
    }
  }
  t.strictSame(await service.dump(), before)
  const ours = await service.app.inject(form(`/approvals/${id}/approve`, {}, { origin: 'https://localhost:8443', host: 'localhost:8443', cookie }))
  t.equal(ours.statusCode, 303)
})

t.test('only forms are read', async t => {
  const service = await testApp(t)
  const cookie = await signedIn(service)
  const id = await asked(service)
  const before = await service.dump()
  for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x']) {
    const answer = await service.app.inject({ method: 'POST', url: `/approvals/${id}/reject`, payload: '{"note":"x"}', headers: { ...own, cookie, 'content-type': type } })
    t.equal(answer.statusCode, 415, type)
    t.match(answer.headers['content-type'], /^text\/html/)
  }
  t.equal((await service.app.inject(form(`/approvals/${id}/reject`, { note: 'x'.repeat(600_000) }, { ...own, cookie }))).statusCode, 413)
  t.strictSame(await service.dump(), before)
})

t.test('a note that can’t be taken is given back', async t => {
  const service = await testApp(t)
  const cookie = await signedIn(service)
  const id = await asked(service)
  const before = await service.dump()
  const reject = (note: string) => service.app.inject(form(`/approvals/${id}/reject`, { note }, { ...own, cookie }))
  for (const [note, why] of [['', /say why/], [' \r\n ', /say why/], ['y'.repeat(102_400), /102400 characters; 4000 is the most/], ['a\0b', /control characters/], ['bell\x07', /control characters/]] as const) {
    const { statusCode, body } = await reject(note)
    t.equal(statusCode, 400)
    t.match(body, why)
    t.ok(body.includes(`aria-describedby="problem">\n${note.trim()}</textarea>`), 'what was typed is there still')
  }
  t.strictSame(await service.dump(), before)
  t.equal((await reject('two\r\nlines')).statusCode, 303)
  t.equal((await service.call('alice', 'GET', `/api/status/${id}`)).json().approval.note, 'two\nlines')
})

t.test('reading changes nothing, whoever reads', async t => {
  const service = await testApp(t)
  const id = await asked(service)
  const cookie = await signedIn(service)
  const before = await service.dump()
  for (const url of ['', '/list?seen=x', `/${id}`, `/${id}/whole`, `/${id}/approve`, `/${id}/reject`, `?decided=${id}`, '/sign-in', '/sign-out', '/sign-in?key=x'].map(end => `/approvals${end}`)) {
    for (const headers of [{}, { 'user-agent': 'Slackbot-LinkExpanding 1.0' }, { cookie }]) {
      const { statusCode } = await service.app.inject({ url, headers })
      t.ok(statusCode < 500, `${url} ${statusCode}`)
    }
  }
  t.strictSame(await service.dump(), before)
})

t.test('headers: nothing from elsewhere, nothing inline, nothing kept', async t => {
  const service = await testApp(t)
  const cookie = await signedIn(service)
  for (const url of ['/approvals', '/approvals/sign-in', `/approvals/${await asked(service)}`, '/approvals/nothing']) {
    const { headers, body } = await service.app.inject({ url, headers: { cookie } })
    t.match(headers, { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', 'referrer-policy': 'same-origin', 'x-frame-options': 'DENY' })
    t.equal(headers['strict-transport-security'], undefined)
    t.strictSame(String(headers['content-security-policy']).split(';').sort(), [
      "base-uri 'none'", "connect-src 'self'", "default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "img-src 'self' data:", "script-src 'self'", "style-src 'self'",
    ])
    t.notMatch(body, /<style|style=|<script>|\son\w+=|https?:\/\//)
  }
  const whole = await service.app.inject({ url: `/approvals/${await asked(service, '<b>')}/whole`, headers: { cookie } })
  t.match(whole.headers, { 'content-type': 'text/plain; charset=utf-8', 'content-disposition': /^attachment/, 'x-content-type-options': 'nosniff' })
  t.equal(whole.json().task, '<b>')
  t.equal((await service.app.inject({ url: `/approvals/${await asked(service)}/whole` })).statusCode, 303, 'nor without a session')
  t.equal((await service.app.inject('/openapi.json')).body.includes('/approvals/sign'), false)
})

t.test('assets are our own, and no other file is', async t => {
  const { app } = await testApp(t)
  for (const name of ['page.css', 'page.js', 'htmx.min.js']) t.equal((await app.inject(`/approvals/assets/${name}`)).statusCode, 200, name)
  for (const name of ['', 'htmx.js', 'ext/debug.js', '../pages.ts', '..%2fpages.ts', '%2e%2e/pages.ts']) t.ok([303, 404].includes((await app.inject(`/approvals/assets/${name}`)).statusCode), name)
})

t.test('while Redis is away, a page says so', { skip: ofOneReplica }, async t => {
  const { app } = await testApp(t, {}, { url: 'redis://127.0.0.1:1', prefix: 'away' })
  const answers = [
    await app.inject(form('/approvals/sign-in', { key: secrets.approver })),
    await app.inject({ url: '/approvals', headers: { cookie: `handoff_session=${'A'.repeat(43)}` } }),
  ]
  for (const { statusCode, headers, body } of answers) {
    t.match({ statusCode, ...headers }, { statusCode: 503, 'content-type': /^text\/html/, 'retry-after': '1', 'set-cookie': undefined })
    t.match(body, /can’t reach its data/)
  }
})

t.test('what isn’t there is a page too', async t => {
  const { app } = await testApp(t)
  for (const url of ['/approvals/a/b', '/approvals/assets/nothing.css']) {
    const { statusCode, headers, body } = await app.inject({ url })
    t.match({ statusCode, ...headers }, { statusCode: 404, 'content-type': /^text\/html/ })
    t.match(body, /There is nothing here/)
  }
})
