import t from 'tap'
import { tagOf } from '../../src/core/ids.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { asked, form, own, personWith, signedIn, textOf } from '../helpers/forms.ts'
import { grown, scrape } from '../helpers/metrics.ts'
import { callsOf } from '../helpers/redis.ts'
import { ofOneReplica } from '../helpers/through.ts'

/** Several decisions with one form of the list. */

const service = await testApp(t)
const { app, call, pass, redis } = service
const sealing = (kid: string, byte: number) => `${kid}:${Buffer.alloc(32, byte).toString('base64')}`

const entities: Record<string, string> = { '&#61;': '=', '&#43;': '+', '&#47;': '/' }
/** The values of the boxes that the list has, by their handoffs. */
async function boxesOf (person: Awaited<ReturnType<typeof personWith>>, url = '/approvals'): Promise<Map<string, string>> {
  const { body } = await person(url)
  return new Map([...body.matchAll(/<input type="checkbox"[^>]* name="item" value="([^"]+)"/g)].map(([, value]) => {
    const text = value!.replace(/&#\d+;/g, entity => entities[entity] ?? entity)
    return [text.split(' ')[0]!, text]
  }))
}

const cookies = new Map<string, string>()

/** The form as a browser sends it: one field for each ticked box. */
async function send (key: string, verdict: string, items: string[], more: Record<string, string> = {}) {
  if (!cookies.has(key)) {
    const { cookies: [cookie] } = await app.inject(form('/approvals/sign-in', { key }))
    cookies.set(key, `${cookie!.name}=${cookie!.value}`)
  }
  const request = form(`/approvals/${verdict}`, more, { ...own, cookie: cookies.get(key)! })
  const fields = new URLSearchParams(more)
  for (const item of items) fields.append('item', item)
  return app.inject({ ...request, payload: fields.toString() })
}

const approvalOf = async (id: string) => (await call('alice', 'GET', `/api/status/${id}`)).json().approval

t.test('those that are ticked are decided, with one note, and no others', async t => {
  const carol = await personWith(service, secrets.approver)
  const ids = [await asked(service, 'one'), await asked(service, '<b>two</b> \u202e'), await asked(service, 'three')]
  const boxes = await boxesOf(carol)
  t.strictSame([...boxes.keys()], ids)
  const [one, two] = ids.map(id => boxes.get(id)!) as [string, string]
  const approved = await send(secrets.approver, 'approve', [one, two, one], { note: 'Go\r\nahead.' })
  t.equal(approved.statusCode, 200)
  t.match(textOf(approved.body), /All 2 handoffs were approved\. To the list one approved <b>two<\/b> ⟦U\+202E⟧ approved $/)
  t.notMatch(approved.body, '<b>')
  for (const id of ids.slice(0, 2)) {
    t.match(await approvalOf(id), { state: 'approved', decided_by: 'carol', note: 'Go\nahead.', digest: /^sha-256=:.{44}:$/ })
  }
  t.equal((await approvalOf(ids[2]!)).state, 'waiting')
  const rejected = await send(secrets.approver2, 'reject', [boxes.get(ids[2]!)!], { note: 'No.' })
  t.match(textOf(rejected.body), 'One handoff was rejected.')
  t.match(await approvalOf(ids[2]!), { state: 'rejected', decided_by: 'dave', note: 'No.' })
  t.strictSame(service.lines.map(line => JSON.parse(line) as Record<string, unknown>).filter(({ msg }) => msg === 'decided').map(({ handoff_id: id, verdict, agent }) => [id, verdict, agent]),
    [[ids[0], 'approved', 'carol'], [ids[1], 'approved', 'carol'], [ids[2], 'rejected', 'dave']])
  const moved = service.lines.map(line => JSON.parse(line) as Record<string, unknown>).filter(({ msg, to }) => msg === 'moved' && to === 'rejected')
  t.strictSame(moved.map(({ handoff_id: id }) => id), [ids[2]], 'to reject is a transition of that one')
})

t.test('what was changed or decided meanwhile is named, one by one, and the others are decided', async t => {
  const carol = await personWith(service, secrets.approver)
  const idempotent = async (task: string) =>
    (await call('alice', 'POST', '/api/pass', { task, require_human: true }, { 'idempotency-key': 'k' })).json().handoff_id as string
  const reissued = await idempotent('as it was read')
  const [stays, decided, cancelled, gone, expires] =
    [await asked(service, 'stays'), await asked(service), await asked(service), await asked(service), await pass({ task: 'e', require_human: true, expires_in: 60 })]
  const foreign = await pass({ task: 'foreign', require_human: true }, 'foreignAlice')
  const [key] = await redis.keys(`${service.prefix}*${stays}`)
  const keyOf = (id: string) => key!.replace(stays!, id)
  const created = (await boxesOf(carol)).get(stays!)!.split(' ')[1]!
  const boxes = await boxesOf(carol)
  const items = [...boxes.values(), `${foreign} ${created} ${'A'.repeat(43)}=`, `nothing ${created} `]
  // The id stands for another content, passed in the same millisecond.
  const another = await asked(service, 'another')
  const [p, beginning, h] = await redis.hmget(keyOf(another!), 'p', 't', 'h')
  await redis.hset(keyOf(reissued), { p, t: beginning, h })
  await call('alice', 'POST', `/api/cancel/${another}`)
  await call('approver2', 'POST', `/api/reject/${decided}`, { note: 'Too late.' })
  await call('alice', 'POST', `/api/cancel/${cancelled}`)
  await redis.del(keyOf(gone!))
  const [, record] = [expires, await redis.hget(keyOf(expires!), 's')]
  await redis.hset(keyOf(expires!), 's', record!.replace(/ (\d+) (\d+) /, (_, from: string) => ` ${from} ${from} `))
  const before = await scrape(app)
  const answer = await send(secrets.approver, 'approve', items)
  t.equal(answer.statusCode, 200)
  t.strictSame(grown(before, await scrape(app), /^handoff_conflicts/), Object.fromEntries(
    [['already_decided', 1], ['cancelled', 1], ['expired', 1], ['content_changed', 1]].map(([code, count]) => [`handoff_conflicts_total{code="${code}"}`, count])), 'each refusal is counted')
  const text = textOf(answer.body)
  t.match(text, /^ ?1 of 8 was approved\. 7 need a look/)
  for (const why of [
    'A handoff that isn’t in the list any more not decided', 'another handoff has its id now', 'dave rejected this before, ', 'Yours didn’t count', 'It was cancelled before', 'It expired before', 'It is gone', 'stays approved'
  ]) t.ok(text.includes(why), why)
  t.equal(text.split('not decided').length - 1, 7)
  t.equal((await approvalOf(stays!)).state, 'approved')
  t.equal((await approvalOf(reissued)).state, 'waiting', 'nothing that wasn’t shown is decided')
  t.equal((await call('foreignAlice', 'GET', `/api/status/${foreign}`)).json().approval.state, 'waiting')
  const again = await send(secrets.approver, 'reject', [boxes.get(stays!)!], { note: 'x' })
  t.match([again.statusCode, textOf(again.body)], [409, /None of these was rejected\..*carol approved this before.*Yours didn’t count/])
  await send(secrets.approver, 'approve', [...(await boxesOf(carol)).values()])
})

t.test('without a choice, a verdict or a note nothing is decided, and what was given is there still', async t => {
  const carol = await personWith(service, secrets.approver)
  const id = await asked(service, 'kept')
  const [item] = [...(await boxesOf(carol)).values()]
  await send(secrets.approver, 'list', [])
  const before = await service.dump()
  for (const [verdict, items, note, why] of [
    ['approve', [], 'typed', 'Nothing is ticked.'], ['reject', [item!], ' ', 'say why'], ['list', [item!], 'typed', 'Press Approve or Reject.'],
    ['reject', [item!], 'x'.repeat(4001), '4001 characters'], ['approve', [item!, 'x'], 'typed', 'did not come from this page'],
    ['approve', Array.from({ length: 51 }, (_, n) => `${item!.slice(0, -50)}${n}`), '', 'At most 50'], ['approve', ['__proto__ 1 '], '\0', 'control characters. Type it instead of pasting it. Nothing was decided yet. 1 of what you ticked isn’t in the list any more.'],
  ] as const) {
    const { statusCode, body } = await send(secrets.approver, verdict, [...items], { note })
    t.equal(statusCode, 400, why)
    t.ok(textOf(body).includes(why), why)
    t.equal(/type="checkbox"[^>]* checked>/.test(body), (items as readonly string[]).includes(item!), why)
    if (note !== '\0') t.ok(body.includes(`\n${note.trim()}</textarea>`), why)
  }
  const fifty = await send(secrets.approver, 'approve', Array.from({ length: 50 }, (_, n) => `nothing${n} 1 `))
  t.match([fifty.statusCode, textOf(fifty.body)], [404, /None of these was approved/], 'fifty may be together')
  t.equal((await app.inject(form('/approvals/approve', { item: item! }, own))).statusCode, 401, 'nor without a session')
  for (const headers of [{}, { 'sec-fetch-site': 'cross-site' }] as Array<Record<string, string>>) {
    t.equal((await app.inject(form('/approvals/approve', { item: item! }, headers))).statusCode, 403, 'nor from another site')
  }
  t.strictSame(await service.dump(), before)
  await call('approver', 'POST', `/api/approve/${id}`)
})

t.test('who passed it has no box for it, nor has anybody for a question; what has more says so', async t => {
  const asks = await service.caught()
  await call('bob', 'POST', `/api/ask/${asks}`, { question: 'Which?' })
  const id = await asked(service, 'bare')
  const more = await pass({ task: 'more', output: { a: 1 }, require_human: true })
  const long = await pass({ task: 'x'.repeat(241), require_human: true })
  // Those of one millisecond have no order.
  const inOrder = <T>(rows: T[]) => rows.map(String).sort()
  const alice = await personWith(service, secrets.approverAlice)
  t.equal((await boxesOf(alice, '/approvals?tab=approvals')).size, 0)
  t.equal((await boxesOf(await personWith(service, secrets.approver))).size, 0, 'questions come first')
  const carol = await personWith(service, secrets.approver)
  const boxes = await boxesOf(carol, '/approvals?tab=approvals')
  t.strictSame(inOrder([...boxes.keys()]), inOrder([id, more, long]))
  const refused = await send(secrets.approverAlice, 'approve', [boxes.get(id)!])
  t.match([refused.statusCode, textOf(refused.body)], [403, 'You passed this yourself.'])
  const { body } = await carol('/approvals?tab=approvals')
  const rows = body.slice(0, body.indexOf('id="decided"')).split('<li>').slice(1).map(row => [/id="h-([^"]+)/.exec(row)![1], row.includes('more inside')])
  t.strictSame(inOrder(rows), inOrder([[id, false], [more, true], [long, true]]))
  await send(secrets.approver, 'approve', [...boxes.values()])
})

t.test('what the list shows whole is decided on by the digest of that, whatever Redis says', async t => {
  const carol = await personWith(service, secrets.approver)
  const [id, other] = [await asked(service, 'pay Ann'), await asked(service, 'pay Eve')]
  const [key] = await redis.keys(`${service.prefix}*${id}`)
  const [p, h] = await redis.hmget(key!.replace(id!, other!), 'p', 'h')
  await redis.hset(key!, { p, h })
  const answer = await send(secrets.approver, 'approve', [(await boxesOf(carol, '/approvals?tab=approvals')).get(id!)!])
  t.match([answer.statusCode, textOf(answer.body)], [409, /another handoff has its id now/])
  t.equal((await approvalOf(id!)).state, 'waiting')
  for (const one of [id, other]) await call('alice', 'POST', `/api/cancel/${one}`)
})

t.test('what needs no decision is another handoff; where one fails by a fault of the service, its page says so, and the others stand', async t => {
  const carol = await personWith(service, secrets.approver)
  const plain = await pass({ to: 'broken' })
  const none = await send(secrets.approver, 'approve', [`${plain} 1 `])
  t.match([none.statusCode, textOf(none.body)], [409, /another handoff has its id now/])
  const [key] = await redis.keys(`${service.prefix}:*:broken`)
  const [fine, faulty] = [await asked(service), await pass({ to: 'broken', require_human: true })]
  const boxes = await boxesOf(carol, '/approvals?tab=approvals')
  // Its approval would put it into the inbox.
  await redis.set(key!, 'not an inbox')
  const { statusCode, body } = await send(secrets.approver, 'approve', [...boxes.values()])
  t.match([statusCode, textOf(body)], [500, /The service failed Check whether your decision was recorded/])
  await redis.del(key!)
  t.strictSame([(await approvalOf(fine)).state, (await approvalOf(faulty)).state], ['approved', 'waiting'])
  for (const id of [plain, faulty]) await call('alice', 'POST', `/api/cancel/${id}`)
})

t.test('after a decision on a part of the list, the way leads back to that part', async t => {
  const id = await asked(service, 'x')
  const carol = await personWith(service, secrets.approver)
  const { body } = await send(secrets.approver, 'approve', [(await boxesOf(carol)).get(id)!], { inbox: 'writer', labels: 'run:42' })
  t.match(body, 'href="/approvals?inbox=writer&amp;labels=run%3A42&amp;tab=approvals"')
  t.match((await carol('/approvals?inbox=writer')).body, '<input type="hidden" name="inbox" value="writer">')
})

t.test('the list says what was decided last: what, by whom and when', async t => {
  const service = await testApp(t)
  const carol = await personWith(service, secrets.approver)
  t.notMatch((await carol('/approvals')).body, 'Decided last')
  const start = Date.now() - 3600_000
  const ids: string[] = []
  for (let n = 0; n < 12; n++) {
    await service.setClock(start + n * 60_000)
    const id = await service.pass({ task: n === 11 ? `<i>\u202e${'x'.repeat(300)}` : `task ${n}`, require_human: true })
    const [who, verdict] = n % 2 === 0 ? ['approver', 'approve'] as const : ['approver2', 'reject'] as const
    t.equal((await service.call(who, 'POST', `/api/${verdict}/${id}`, { note: 'n' })).statusCode, 200)
    ids.unshift(id)
  }
  const partOf = (body: string) => body.slice(body.indexOf('id="decided"'))
  const rows = (body: string) => [...partOf(body).matchAll(/href="\/approvals\/([\w-]{25})"/g)].map(([, id]) => id)
  const { body } = await carol('/approvals')
  t.strictSame(rows(body), ids.slice(0, 10))
  t.match(textOf(partOf(body)), /Decided last <i> ⟦U\+202E⟧ x+… rejected by dave 0 s ago task 10 approved by you 1 min ago /)
  t.notMatch(partOf(body), '<i>')
  const before = callsOf(service.store, 'list')
  await carol('/approvals')
  const calls = callsOf(service.store, 'list') - before
  t.ok(calls <= 60 || ofOneReplica !== false, `with what was decided, a look takes no more than three lists do: ${calls} calls`)
  t.strictSame(rows((await carol('/approvals?inbox=x')).body), [], 'only where all is shown')

  await service.call('bob', 'GET', `/api/catch/${ids[1]}`)
  await service.call('bob', 'POST', `/api/done/${ids[1]}`, { output: { secret: 1 } })
  t.match(textOf(partOf((await carol('/approvals')).body)), /task 10 approved by you/, 'its payload is gone, the decision is kept')
  await service.store.decisions.forget({ tenant: 'default', id: ids[1]!, tag: tagOf(ids[1]!) })
  await service.setClock(start + 11 * 60_000 + 2000)
  t.match(textOf(partOf((await carol('/approvals')).body)), /Handoff from alice, forgotten since approved by you/)
  const other = await personWith(service, secrets.foreignApprover)
  t.strictSame(rows((await other('/approvals')).body), [], 'another tenant sees nothing of it')
  // Decisions of one millisecond have no order.
  await service.setClock(start + 12 * 60_000)
  const seen = /list\?tab=approvals&amp;seen=([\w-]+)/.exec((await carol('/approvals')).body)![1]!
  const polled = carol(`/approvals/list?seen=${seen}`, undefined, { 'hx-request': 'true' })
  const id = await asked(service)
  await polled
  const shown = /list\?tab=approvals&amp;seen=([\w-]+)/.exec((await carol('/approvals')).body)![1]!
  const next = carol(`/approvals/list?seen=${shown}`, undefined, { 'hx-request': 'true' })
  await service.call('approver2', 'POST', `/api/approve/${id}`)
  t.equal(rows((await next).body)[0], id, 'an open page hears of it')
})

t.test('what can’t be decrypted here isn’t decided here, and the others are', async t => {
  const june = await testApp(t, { PAYLOAD_KEYS: sealing('june', 6) })
  const july = await testApp(t, { PAYLOAD_KEYS: sealing('july', 7) }, { prefix: june.prefix })
  const locked = await asked(june, 'secret')
  const [first, second] = [await asked(july, 'first'), await asked(july, 'second')]
  const there = await boxesOf(await personWith(june, secrets.approver))
  const carol = await personWith(july, secrets.approver)
  const here = await boxesOf(carol)
  t.strictSame([...here.keys()], [first, second], 'what nobody can read has no box')
  const cookie = await signedIn(july)
  const approve = (...items: string[]) => july.app.inject({
    ...form('/approvals/approve', {}, { ...own, cookie }), payload: items.map(item => `item=${encodeURIComponent(item)}`).join('&')
  })
  const approvalOf = async (id: string) => (await july.call('alice', 'GET', `/api/status/${id}`)).json().approval.state
  // Of a page that a replica with the key made, and of one that had no digest to send.
  for (const [box, other] of [[there.get(locked)!, first], [there.get(locked)!.replace(/[^ ]+$/, ''), second]] as const) {
    const alone = await approve(box)
    t.equal(alone.statusCode, 503)
    t.match(textOf(alone.body), /None of these was approved.*not decided It can’t be decrypted here, so nothing was decided on it/)
    const { body, statusCode } = await approve(box, here.get(other)!)
    t.equal(statusCode, 200)
    t.match(textOf(body), /1 of 2 was approved.*not decided It can’t be decrypted here.* approved $/)
    t.strictSame([await approvalOf(locked), await approvalOf(other)], ['waiting', 'approved'])
  }
  const page = await carol(`/approvals/${locked}`)
  t.strictSame([page.statusCode, page.headers['retry-after']], [503, '5'])
  t.match(textOf(page.body), /This can’t be decrypted here .* key .* so nothing was changed/)
})
