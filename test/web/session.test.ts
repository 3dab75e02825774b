import type { InjectOptions } from 'fastify'
import t from 'tap'
import { buildApp } from '../../src/app.ts'
import { loadConfig } from '../../src/config.ts'
import { KeyRing } from '../../src/auth/key-ring.ts'
import { SessionGrant } from '../../src/auth/session-grant.ts'
import { Unavailable } from '../../src/core/errors.ts'
import { callerOf } from '../../src/core/model.ts'
import { approvalsArea } from '../../src/web/area.ts'
import { secrets, testApp, testKeys } from '../helpers/app.ts'
import { asked, form, own, personWith, shown, signedIn, textOf, unescaped } from '../helpers/forms.ts'
import { callsOf } from '../helpers/redis.ts'
import { grantOf } from '../helpers/stored-keys.ts'
import { ofOneReplica } from '../helpers/through.ts'
import { until } from '../helpers/until.ts'

const service = await testApp(t)
const { app } = service

t.test('a session is a cookie that no script can read, no other site can send, and that expires', async t => {
  const { headers, statusCode, body } = await service.app.inject(form('/approvals/sign-in', { key: ` ${secrets.approver} `, next: '/approvals/abc' }))
  t.equal(statusCode, 303)
  t.equal(headers.location, '/approvals/abc')
  t.match(headers['set-cookie'], /^handoff_session=[\w-]{43}; Max-Age=28800; Path=\/; HttpOnly; SameSite=Strict$/)
  const secret = /=([\w-]{43})/.exec(String(headers['set-cookie']))![1]!
  const kept = JSON.stringify(await service.dump())
  t.notMatch(kept + body, secret, 'its secret is not in Redis')
  t.notMatch(kept + body + JSON.stringify(headers), secrets.approver, 'nor the key anywhere')
  const [key, { expires }] = Object.entries(await service.dump() as Record<string, { expires: number }>)[0]!
  t.match(key, /^\{...\}:s:[\w-]{43}$/)
  t.ok(Math.abs(expires - Date.now() - 8 * 3600_000) < 10_000)
})

t.test('with https the cookie is Secure and bound to the host, and HSTS is sent', async t => {
  const service = await testApp(t, { BASE_URL: 'https://handoff.example' })
  const { headers } = await service.app.inject(form('/approvals/sign-in', { key: secrets.approver }, { origin: 'https://handoff.example' }))
  t.match(headers['set-cookie'], /^__Host-handoff_session=[\w-]{43}; Max-Age=28800; Path=\/; HttpOnly; Secure; SameSite=Strict$/)
  t.match(headers['strict-transport-security'], /max-age/)
  const below = await testApp(t, { BASE_URL: 'https://handoff.example/team' })
  const { headers: { 'set-cookie': cookie } } = await below.app.inject(form('/approvals/sign-in', { key: secrets.approver }, { origin: 'https://handoff.example' }))
  t.match(cookie, /^__Secure-handoff_session=[\w-]{43}; Max-Age=28800; Path=\/team; HttpOnly; Secure; SameSite=Strict$/, 'below a path it is for that path alone, which __Host- forbids')
})

t.test('the sign-in says whose service it is', async t => {
  const { app } = await testApp(t, { BASE_URL: 'https://handoff.example:8443/team' })
  const asked = await app.inject('/approvals/sign-in')
  const refused = await app.inject(form('/approvals/sign-in', { key: 'nonsense' }, { origin: 'https://handoff.example:8443' }))
  const ended = await app.inject({ ...form('/approvals/abc/approve', {}, { origin: 'https://handoff.example:8443' }) })
  for (const { body } of [asked, refused, ended]) {
    t.match(body, 'To the Agent Handoff Service at <strong class="host">handoff.example:8443/team</strong>')
  }
  t.match((await service.app.inject('/approvals/sign-in')).body, '127.0.0.1:8080</strong>')
})

t.test('the list says how many wait, also where it has only the first of them', async t => {
  const cookie = await signedIn(service)
  const countOf = async (url: string) => /id="count"[^>]*>([^<]*)</.exec((await service.app.inject({ url, headers: { cookie } })).body)![1]
  const pass = (count: number) => Promise.all(Array.from({ length: count }, () => service.call('alice', 'POST', '/api/pass', { task: 't', require_human: true })))
  await pass(50)
  t.equal(await countOf('/approvals'), '50 handoffs wait, the oldest first.')
  await pass(3)
  t.equal(await countOf('/approvals'), '53 handoffs wait, the oldest first.')
  const { body } = await service.app.inject({ url: '/approvals', headers: { cookie } })
  t.equal(await countOf(/href="(\/approvals\?cursor=[^"]+)"/.exec(body)![1]!), '53 handoffs wait, the oldest first.', 'on the last page too')
  // An open page hears of it, although its own fifty are the same.
  const seen = /seen=([\w-]+)/.exec(body)![1]
  await pass(1)
  t.equal(await countOf(`/approvals/list?seen=${seen}`), '54 handoffs wait, the oldest first.')
})

t.test('every wrong key gets the same answer', async t => {
  const answers = await Promise.all(['', 'nonsense', secrets.alice, secrets.approver.slice(1), 'x'.repeat(100_000)].map(key => app.inject(form('/approvals/sign-in', { key }))))
  for (const { statusCode, headers, body } of answers) {
    t.strictSame([statusCode, headers['set-cookie']], [401, undefined])
    t.equal(body, answers[0]!.body)
    t.match(body, /This key can’t be used here/)
  }
})

t.test('next never leads out of these pages', async t => {
  for (const next of ['https://evil.example', '//evil.example', '/approvals.evil', '/approvals//evil', '/docs', '/approvals/\r\nX: y', '/approvals/\\evil', '', 'javascript:alert(1)', '/approvals/../docs', '/approvals/%2e%2e/docs', '/approvals/%2E%2e', '/approvals/x/%2e', '/approvals@evil.example', '/approvals:@evil.example/', '/approvals;//evil.example']) {
    const { headers } = await app.inject(form('/approvals/sign-in', { key: secrets.approver, next }))
    t.ok(['/approvals', '/approvals//evil'].includes(headers.location as string), `${JSON.stringify(next)}: ${headers.location}`)
  }
})

t.test('who signs in again comes back to the same tab, filters and part', async t => {
  const { app } = await testApp(t)
  const place = "/approvals?cursor=YQ&inbox=mail&labels=run%3A42%2Cteam%3Ared&q=it's%20(not)%20*a*;%20%2F..%2F&order=expiry&tab=approvals"
  const poll = { url: place.replace('?', '/list?') + '&seen=x', headers: { cookie: 'handoff_session=x', 'hx-request': 'true' } }
  const fields = Object.fromEntries(new URLSearchParams(place.split('?')[1]))
  const nexts = [
    (await app.inject({ url: place, headers: { cookie: 'handoff_session=x' } })).headers.location!,
    (await app.inject(poll)).headers['hx-redirect'] as string,
    // As htmx says the page's address, and a fragment of it, or that of a form's answer.
    ...await Promise.all([`${place}&decided=x#h-1`, '/approvals/reject'].map(async shown => {
      const current = `https://handoff.example/base${shown}`
      const url = shown === '/approvals/reject' ? poll.url : '/approvals/list?tab=approvals&seen=x'
      return (await app.inject({ url, headers: { ...poll.headers, 'hx-current-url': current } })).headers['hx-redirect'] as string
    })),
    ...await Promise.all(['approve', 'reject', 'list'].map(async last => {
      const { body } = await app.inject(form(`/approvals/${last}`, { ...fields, item: 'a', note: 'b', next: '//evil.example' }))
      return '/approvals/sign-in?' + String(new URLSearchParams({ next: unescaped(/name="next" value="([^"]*)"/.exec(body)![1]!) }))
    }))
  ]
  for (const next of nexts) {
    const { body } = await app.inject(next)
    const to = unescaped(/name="next" value="([^"]*)"/.exec(body)![1]!)
    const { headers: { location } } = await app.inject(form('/approvals/sign-in', { key: secrets.approver, next: to }))
    t.strictSame(Object.fromEntries(new URLSearchParams(location!.replace(/^\/approvals\?/, ''))), fields, next)
  }
})

t.test('a link from another site loads the page once more, since only then its cookie comes; without a session that is over', async t => {
  const from = { 'sec-fetch-site': 'cross-site' }
  const first = await app.inject({ url: '/approvals?q=x', headers: from })
  t.match([first.statusCode, first.body], [200, /content="0; url=\/approvals\?q&#61;x"/])
  const ended = await app.inject({ url: '/approvals?q=x', headers: { ...from, cookie: 'handoff_session=x' } })
  t.match([ended.statusCode, ended.headers.location], [303, '/approvals/sign-in?next=%2Fapprovals%3Fq%3Dx&ended=1'])
})

t.test('a forged, expired or signed-out cookie opens no session', async t => {
  const service = await testApp(t)
  const cookie = await signedIn(service)
  const list = (cookie: string) => service.app.inject({ url: '/approvals', headers: { cookie } })
  t.equal((await list(cookie)).statusCode, 200)
  for (const forged of ['handoff_session=', 'handoff_session=x', `handoff_session=${'A'.repeat(43)}`, `handoff_session=${secrets.approver}`, `${cookie}x`, `${cookie.slice(0, -1)}*`]) {
    const { statusCode, headers } = await list(forged)
    t.strictSame([statusCode, headers.location], [303, '/approvals/sign-in?next=%2Fapprovals&ended=1'], forged)
  }
  const [key] = Object.keys(await service.dump())
  await service.redis.pexpire(`${service.prefix}:${key}`, 1)
  t.equal((await list(await signedIn(service))).statusCode, 200)
  t.equal((await list(cookie)).statusCode, 303, 'over')

  const other = await signedIn(service)
  const out = await service.app.inject(form('/approvals/sign-out', {}, { ...own, cookie: other }))
  t.strictSame([out.statusCode, out.headers.location], [303, '/approvals/sign-in'])
  t.match(out.headers['set-cookie'], /^handoff_session=; .*Path=\//)
  t.equal((await list(other)).statusCode, 303, 'a copy of it is worth nothing')
})

t.test('a session ends with its key', async t => {
  const cookie = await signedIn(service)
  const config = loadConfig({ ...testKeys, APPROVER_KEYS: 'dora:another-approver-secret-01' })
  const later = await buildApp(config, { store: service.store, keys: new KeyRing(config.apiKeys, service.store, service.log), log: service.log })
  t.teardown(() => later.close())
  t.equal((await later.inject({ url: '/approvals', headers: { cookie } })).statusCode, 303)
})

t.test('what stays open ends where its key may no longer see it, also where it opens other pages', async t => {
  for (const [scope, mayStay] of [['approve', true], ['operate', false], ['pass', false]] as const) {
    const keys = { findByMark: async () => ({ caller: callerOf('acme', 'ann', [scope]) }) }
    const session = await SessionGrant.find({ find: async () => 'mark' } as never, keys as never, 'secret')
    const asked = Promise.resolve(session!.for(approvalsArea.scope).authorise())
    if (mayStay) t.equal((await asked).agent, 'ann')
    else await t.rejects(asked, { name: 'SessionEnded' }, scope)
  }
})

t.test('a session’s end is heard wherever it is open; what can’t be a session’s secret asks Redis nothing', async t => {
  const { sessions } = service.store
  const secret = await sessions.open('mark', 60)
  let ended = 0
  const leave = await sessions.onEnd(secret, () => { ended++ })
  t.equal(await sessions.find(secret), 'mark')
  await sessions.end(secret)
  await until(() => ended === 1)
  leave()
  const asked = callsOf(service.store, 'get')
  await sessions.useOnce('x', 60_000)
  for (const wrong of ['', 'once x', `${secret}x`, secret.slice(1)]) t.equal(await sessions.find(wrong), null)
  t.equal(callsOf(service.store, 'get'), asked)
})

t.test('who leaves a session’s grant hears neither of its key’s end nor of its sign-out', async t => {
  const heard: string[] = []
  const listened = (name: string) => async () => {
    heard.push(name)
    return () => { heard.splice(heard.indexOf(name), 1) }
  }
  const opener = grantOf(() => { throw new Error('not asked') }, listened('key'))
  const grant = new SessionGrant({ onEnd: listened('session') } as never, null as never, 'secret', opener)
  const leave = await grant.onEnd({ ended () {}, changed () {} })
  t.strictSame(heard, ['key', 'session'])
  leave()
  t.strictSame(heard, [])
})

t.test('what was typed is kept over the sign-in, and nothing is decided by it', async t => {
  const service = await testApp(t)
  const { app, call, pass, caught } = service
  const id = await pass({ task: 'Decide.', require_human: true })
  const cookie = await signedIn(service)
  const seen = await shown(service, id, cookie)
  const asked = await caught({ task: 'Answer.' })
  const { ask_id: askId } = (await call('bob', 'POST', `/api/ask/${asked}`, { question: 'Which?', schema: { properties: { a: { type: 'string' }, b: { type: 'boolean' } } } })).json()
  const box = /name="item" value="([^"]+)"/.exec((await app.inject({ url: '/approvals?tab=approvals', headers: { cookie } })).body)![1]!.replaceAll('&#61;', '=').replaceAll('&#x2F;', '/').replaceAll('&#43;', '+')
  const boring = await pass({ task: 'Cancel.', to: 'mail' })
  const created = (await call('alice', 'GET', `/api/status/${boring}`)).json().created_at as string
  const note = 'first "line" <b>\r\nsecond'
  const kept = 'first &#34;line&#34; &#60;b&#62;'
  for (const [url, fields, what, key = secrets.approver] of [
    [`/approvals/${id}/approve`, { ...seen, note }, new RegExp(`aria-describedby="problem">\\n${kept}\\nsecond</textarea>`)],
    [`/approvals/${id}/reject`, { ...seen, note }, /Nothing was decided yet\./],
    [`/approvals/${asked}/answer`, { ask_id: askId, f0: note, f1: 'false', note: 'more' }, new RegExp(`${kept}\\nsecond</textarea>.*value="false" checked.*\\nmore</textarea>`, 's')],
    ['/approvals/approve', { item: box, note }, new RegExp(`autocomplete="off" checked>.*${kept}`, 's')],
    ['/console/inboxes/mail/limits', { max_caught: '7', shown_max_caught: '', max_pending: '', shown_max_pending: '' }, /name="max_caught"[^>]* value="7"/, secrets.operator],
    ['/console/inboxes/mail/purge', { reason: 'for a reason' }, /\nfor a reason<\/textarea>/, secrets.operator],
    [`/console/handoffs/${boring}/cancel`, { created_at: created, reason: 'for a reason' }, /\nfor a reason<\/textarea>/, secrets.operator],
  ] as Array<[string, Record<string, string>, RegExp, string?]>) {
    const before = await service.dump()
    const ended = await app.inject(form(url, fields))
    t.equal(ended.statusCode, 401, url)
    t.notMatch(ended.headers, { 'set-cookie': /./ })
    t.match(ended.body, `<form class="sign-in" method="post" action="${url}">`)
    const hidden = [...ended.body.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g)].map(([, name]) => name)
    t.strictSame(hidden, [...Object.keys(fields), 'next'])
    const wrong = await app.inject(form(url, { ...fields, sign_in_key: 'nonsense' }))
    t.match([wrong.statusCode, wrong.body], [401, /This key can’t be used here.*type="hidden"/s], 'a wrong key keeps it too')
    const back = await app.inject(form(url, { ...fields, sign_in_key: ` ${key} ` }))
    t.match([back.statusCode, back.body], [200, what], url)
    t.match(back.body, /You have signed in again\..* Nothing was/s)
    t.notMatch(back.body, key)
    const own = { cookie: `${back.cookies[0]!.name}=${back.cookies[0]!.value}`, 'sec-fetch-site': 'same-origin' }
    t.equal((await app.inject(form(url, { ...fields, sign_in_key: key }, own))).statusCode, 200, 'loaded again it changes nothing either')
    const after = await service.dump()
    const sessions = (all: object) => Object.keys(all).filter(name => !/:s:/.test(name)).sort()
    t.strictSame(sessions(after), sessions(before))
    t.match((await call('alice', 'GET', `/api/status/${id}`)).json(), { approval: { state: 'waiting' } })
  }
  t.equal((await call('bob', 'GET', `/api/ask/${asked}`)).json().state, 'open')
  t.equal((await call('alice', 'GET', `/api/status/${boring}`)).json().status, 'pending')
  const [another] = (await app.inject(form('/approvals/sign-in', { key: secrets.operator }))).cookies
  const late = await app.inject(form(`/approvals/${id}/approve`, { ...seen, note, sign_in_key: secrets.approver }, { ...own, cookie: `${another!.name}=${another!.value}` }))
  t.match([late.statusCode, late.body, late.cookies.length], [200, '<span class="who">carol</span>', 1], 'another person, who has signed in meanwhile, isn’t this one')
  for (let guess = 0, status = 401; status !== 429; guess++) {
    const { statusCode, body } = await app.inject(form(`/approvals/${id}/approve`, { ...seen, note, sign_in_key: `guess-${guess}` }))
    t.ok([401, 429].includes(status = statusCode), `${guess}: ${statusCode}`)
    t.match(body, /type="hidden" name="note"/, 'after too many wrong keys too')
  }
  const foreign = await app.inject(form(`/approvals/${id}/approve`, { ...seen, sign_in_key: secrets.approver }, { 'sec-fetch-site': 'cross-site' }))
  t.equal(foreign.statusCode, 403, 'another site can’t sign anybody in')
  t.equal((await app.inject(form('/console/inboxes/mail/pause', { paused: 'true', next: '/console/inboxes/mail', sign_in_key: secrets.operator }))).headers.location, '/console/inboxes/mail', 'where nothing is typed, the page comes')
  t.equal((await call('operator', 'GET', '/api/inboxes/mail')).json().paused, false)
})

t.test('an error page speaks of what the person was doing: only forms that decide talk of decisions', { skip: ofOneReplica }, async t => {
  const service = await testApp(t)
  const { app, store: { sessions } } = service
  const cookie = await signedIn(service)
  const id = await asked(service)
  const decision = { ...await shown(service, id, cookie), note: '' }
  const ask = await personWith(service, secrets.operator)
  const away = async () => { throw new Unavailable('away') }
  const way = (body: string) => /class="onward" href="([^"]+)"[^>]*>([^<]+)/.exec(body)!.slice(1)
  const seen = async (asked: InjectOptions) => {
    const { statusCode, headers, body } = await app.inject(asked)
    t.equal(statusCode, 503)
    t.equal(headers['retry-after'], '1')
    return { text: textOf(body), way: way(body) }
  }
  const { open, end, find } = sessions
  Object.assign(sessions, { open: away, end: away })
  const signIn = await seen(form('/approvals/sign-in', { key: secrets.approver, next: '/console' }))
  t.match(signIn.text, /You are not signed in yet: try again\./)
  t.strictSame(signIn.way, ['/approvals/sign-in', 'Back to the sign-in'])
  const signOut = await seen(form('/approvals/sign-out', {}, { ...own, cookie }))
  t.match(signOut.text, /You may still be signed in: sign out again\./)
  t.strictSame(signOut.way, ['/approvals', 'To the list'])
  const kept = await app.inject(form(`/approvals/${id}/approve`, { ...decision, note: 'typed', sign_in_key: secrets.approver }))
  t.match({ ...kept, hint: kept.headers['retry-after'] }, { statusCode: 503, hint: '1', body: /answer now\. .* You are not signed in yet: try again\..*type="hidden" name="note" value="typed"/s }, 'what was typed is kept')
  t.notMatch(kept.body, secrets.approver)
  Object.assign(sessions, { open, end, find: away })
  const page = await seen({ url: `/approvals/${id}`, headers: { ...own, cookie } })
  t.match(page.text, /Nothing was changed: try again\./)
  t.strictSame(page.way, [`/approvals/${id}`, 'Try again'])
  const list = await seen({ url: '/console', headers: { ...own, cookie } })
  t.strictSame(list.way, ['/console', 'Try again'])
  for (const { text } of [signIn, signOut, page, list]) t.notMatch(text, /deci|handoff/i)
  const decided = await seen(form(`/approvals/${id}/approve`, decision, { ...own, cookie }))
  t.match(decided.text, /Check whether your decision was recorded before you decide again\./)
  t.strictSame(decided.way, [`/approvals/${id}`, 'Back to the handoff'])
  Object.assign(sessions, { find })
  t.equal((await ask('/console')).statusCode, 200)
  for (const path of ['sign-in', 'sign-out']) {
    const foreign = await app.inject(form(`/approvals/${path}`, {}, { 'sec-fetch-site': 'cross-site' }))
    t.equal(foreign.statusCode, 403)
    t.notMatch(textOf(foreign.body), /deci|handoff/i, path)
  }
})

t.test('pages count against the limit of the key that signed in, as its API calls do', async t => {
  const service = await testApp(t, { RATE_LIMIT_PER_MINUTE: '6' })
  const ask = await personWith(service, secrets.operator)
  const at = Date.now()
  await service.setClock(at - at % 60_000 + 1000)
  for (const url of ['/console', '/console/failed', '/approvals', '/console/activity']) t.equal((await ask(url)).statusCode, 200, url)
  const counted = await service.call('operator', 'GET', '/api/handoffs')
  t.equal(counted.headers.ratelimit?.toString().startsWith('"default";r=1;'), true, 'the API counts them too')
  t.equal((await ask('/console')).statusCode, 200)
  const page = await ask('/approvals')
  t.equal(page.statusCode, 429)
  t.match(page.headers, { 'retry-after': /^\d+$/, 'content-type': /^text\/html/ })
  t.match(textOf(page.body), new RegExp(`Rate limited.*So nothing was changed\\. Try again in ${page.headers['retry-after']} s\\..*Try again`))
  t.match(textOf((await ask('/approvals/approve', { id: 'x' })).body), /Rate limited.*So nothing was decided\./)
  t.equal((await ask('/console/activity', undefined, { 'hx-request': 'true' })).statusCode, 429, 'what renews itself too, and htmx then leaves the page as it is')
  t.equal((await service.app.inject('/approvals/assets/page.css')).statusCode, 200)
  t.equal((await service.app.inject(form('/approvals/sign-in', { key: secrets.operator }))).statusCode, 303, 'the sign-in counts wrong keys only')
  t.equal((await (await personWith(service, secrets.approver))('/approvals')).statusCode, 200, 'and another person’s pages are their own')
})
