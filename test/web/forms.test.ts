import t from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import { asked, form, own, shown, signedIn } from '../helpers/forms.ts'
import { ofOneReplica } from '../helpers/through.ts'

const service = await testApp(t)
const cookie = await signedIn(service)
const { app } = service

t.test('a form from another site decides nothing', async t => {
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
  const ours = await service.app.inject(form(`/approvals/${id}/approve`, await shown(service, id, cookie), { origin: 'https://localhost:8443', host: 'localhost:8443', cookie }))
  t.equal(ours.statusCode, 303)
})

t.test('only forms are accepted', async t => {
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

t.test('a refused note is shown again', async t => {
  const id = await asked(service)
  const before = await service.dump()
  const seen = await shown(service, id, cookie)
  const reject = (note: string) => service.app.inject(form(`/approvals/${id}/reject`, { note, ...seen }, { ...own, cookie }))
  for (const [note, why] of [['', /say why/], [' \r\n ', /say why/], ['y'.repeat(102_400), /102400 characters; at most 4000/], ['a\0b', /control characters/], ['bell\x07', /control characters/]] as const) {
    const { statusCode, body } = await reject(note)
    t.equal(statusCode, 400)
    t.match(body, why)
    t.ok(body.includes(`aria-describedby="problem">\n${note.trim()}</textarea>`), 'what was typed is there still')
  }
  t.strictSame(await service.dump(), before)
  t.equal((await reject('two\r\nlines')).statusCode, 303)
  t.equal((await service.call('alice', 'GET', `/api/status/${id}`)).json().approval.note, 'two\nlines')
})

/** A handoff is gone, and the same key has passed another one with the same id: later, or in the same millisecond with another content. */
for (const [how, later] of [['later', 60_000], ['in the same millisecond', 0]] as const) {
  t.test(`a decision on a page whose handoff is gone is refused when its id is reused, ${how}`, async t => {
    const service = await testApp(t)
    const cookie = await signedIn(service)
    const start = Date.now() - 3600_000
    const passed = async (task: string, at: number) => {
      await service.setClock(at)
      const answer = await service.call('alice', 'POST', '/api/pass', { task, require_human: true }, { 'idempotency-key': 'daily' })
      t.equal(answer.statusCode, 201)
      return answer.json().handoff_id as string
    }
    const decide = (id: string, verb: string, fields: Record<string, string>) => service.app.inject(form(`/approvals/${id}/${verb}`, fields, { ...own, cookie }))
    const id = await passed('Delete the old ones.', start)
    const before = await shown(service, id, cookie)
    // The state that its TTL and the sweep leave.
    const keys = await service.redis.keys(`${service.prefix}:*`)
    await service.redis.del(...keys.filter(key => /:(h|w|due):|:tenants$/.test(key)))
    t.equal(await passed('Delete ALL of them.', start + later), id, 'the same key, and the former is gone: the same id')
    const now = await shown(service, id, cookie)
    t.equal(now.created_at === before.created_at, later === 0)
    t.not(now.digest, before.digest)
    const dumped = await service.dump()

    const old: Array<Record<string, string>> = [before, {}, { created_at: 'x' }, { created_at: '' }, { ...now, digest: before.digest }, { ...now, digest: 'x' }]
    for (const fields of old) {
      for (const [verb, note] of [['approve', ''], ['approve', 'fine'], ['reject', 'not <b>so</b>'], ['reject', ''], ['reject', 'y'.repeat(5000)]] as const) {
        const { statusCode, body } = await decide(id, verb, { note, ...fields })
        t.equal(statusCode, 409, `${JSON.stringify(fields)}: ${verb} ${note.slice(0, 10)}`)
        t.match(body, /The handoff that you read is gone, and this is another one[^]*Delete ALL of them\./)
        t.notMatch(body, /Delete the old ones|autofocus|say why|at most 4000/, 'nothing leads past what is to be read')
        t.ok(body.includes(`dir="auto">\n${note.replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('/', '&#x2F;').slice(0, 5)}`), 'what was typed is there still')
        t.ok(body.includes(`name="created_at" value="${now.created_at}"`) && body.includes('name="digest"'), 'to be decided on as it is now')
      }
    }
    t.strictSame(await service.dump(), dumped, 'none of these decided')
    t.equal((await decide(id, 'approve', now)).statusCode, 303)
    const { approval } = (await service.call('alice', 'GET', `/api/status/${id}`)).json()
    t.match(approval, { state: 'approved', digest: `sha-256=:${now.digest}:` }, 'what was seen is kept with the decision')
    t.match((await decide(id, 'reject', { note: 'n', ...before })).body, /approved this/, 'what was decided comes before')
  })
}

t.test('the list counts by Redis’s clock', async t => {
  const service = await testApp(t)
  const cookie = await signedIn(service)
  const start = Date.now() - 5 * 3600_000
  await service.setClock(start)
  await service.call('alice', 'POST', '/api/pass', { task: 'Delete.', require_human: true, expires_in: 3600 })
  await service.setClock(start + 60_000)
  const { body } = await service.app.inject({ url: '/approvals', headers: { cookie } })
  t.match(body, 'waiting for 1 min')
  t.match(body, 'expires in 59 min')
})

t.test('reading changes nothing, whoever reads', async t => {
  const id = await asked(service)
  const before = await service.dump()
  for (const url of ['', '/list?seen=x', `/${id}`, `/${id}/whole`, `/${id}/approve`, `/${id}/reject`, `?decided=${id}`, '/sign-in', '/sign-out', '/sign-in?key=x'].map(end => `/approvals${end}`)) {
    for (const headers of [{}, { 'user-agent': 'Slackbot-LinkExpanding 1.0' }, { cookie }]) {
      const { statusCode } = await service.app.inject({ url, headers })
      t.ok(statusCode < 500, `${url} ${statusCode}`)
    }
  }
  t.strictSame(await service.dump(), before)
})

t.test('headers allow nothing from other sites, nothing inline and no caching', async t => {
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

t.test('only the pages’ own assets are served', async t => {
  for (const name of ['page.css', 'page.js', 'htmx.min.js']) t.equal((await app.inject(`/approvals/assets/${name}`)).statusCode, 200, name)
  for (const name of ['', 'htmx.js', 'ext/debug.js', '../pages.ts', '..%2fpages.ts', '%2e%2e/pages.ts']) t.ok([303, 404].includes((await app.inject(`/approvals/assets/${name}`)).statusCode), name)
})

t.test('a page says that Redis is away', { skip: ofOneReplica }, async t => {
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

t.test('an unknown path is answered with a page', async t => {
  for (const url of ['/approvals/a/b', '/approvals/assets/nothing.css']) {
    const { statusCode, headers, body } = await app.inject({ url })
    t.match({ statusCode, ...headers }, { statusCode: 404, 'content-type': /^text\/html/ })
    t.match(body, /There is nothing here/)
  }
})

t.test('a known path with another method says which methods are allowed', async t => {
  for (const [method, url, allow] of [['HEAD', '/approvals', 'GET'], ['PUT', '/approvals/sign-in', 'GET, POST'], ['POST', '/approvals', 'GET'], ['DELETE', '/approvals/x', 'GET']] as const) {
    const { statusCode, headers } = await app.inject({ method, url, headers: own })
    t.match({ statusCode, ...headers }, { statusCode: 405, allow, 'content-type': /^text\/html/ }, `${method} ${url}`)
  }
})
