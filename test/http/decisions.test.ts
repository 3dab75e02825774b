import { randomUUID } from 'node:crypto'
import t from 'tap'
import { homeTag, tagOf } from '../../src/core/ids.ts'
import { callerOf } from '../../src/core/model.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import { testApp } from '../helpers/app.ts'
import { arrangements } from '../helpers/extent.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'

/** What people decided and answered. Each subtest has a tenant of its own. */

const tenants = ['all', 'pages', 'gone', 'held', 'file', 'forgotten', 'full', 'again']
const agents = [
  ['ann', ['pass', 'catch', 'status'], null], ['carol', ['approve'], null], ['olga', ['operate'], null], ['dora', ['approve'], ['mine']]
] as const
const secretOf = (tenant: string, agent: string) => `${tenant}-${agent}-secret-0123456789`
const more = tenants.flatMap(tenant => agents.map(([agent, scopes, inboxes]) =>
  ({ caller: { ...callerOf(tenant, agent, scopes), inboxes: inboxes === null ? null : new Set(inboxes) }, secret: secretOf(tenant, agent) })))
interface Item { handoff_id: string, [name: string]: unknown }
const day = 86_400_000

for (const isSpread of arrangements) {
  t.comment(isSpread ? 'as in a Cluster' : 'on one Redis')
  const service = await testApp(t, { RETENTION: '3600', DECISIONS_RETENTION: '2d', BASE_URL: 'https://example.com/handoff' }, { isSpread }, more)
  const { app, store, redis, prefix, setClock } = service
  const keys = new KeyNames(prefix, !isSpread)
  const start = Date.now()
  t.beforeEach(() => setClock(start))
  const at = (ms: number) => new Date(start + ms).toISOString()

  function as (tenant: string) {
    const ask = async (agent: string, method: 'GET' | 'POST', url: string, body?: object) => await app.inject({
      method, url, headers: { authorization: `Bearer ${secretOf(tenant, agent)}` }, ...body && { body }
    })
    const post = async (agent: string, path: string, body: object = {}): Promise<Item> => {
      const answer = await ask(agent, 'POST', path, body)
      if (answer.statusCode >= 300) throw new Error(answer.body)
      return answer.json()
    }
    return {
      ask,
      post,
      pass: async (members: object = {}) => (await post('ann', '/api/pass', { task: 't', require_human: true, ...members })).handoff_id,
      async asked (members: object = {}, question = 'Which?') {
        const id = (await post('ann', '/api/pass', { task: 't', ...members })).handoff_id
        await ask('ann', 'GET', `/api/catch/${id}`)
        return { id, ask: String((await post('ann', `/api/ask/${id}`, { question })).ask_id) }
      },
      approve: (id: string, body = {}) => post('carol', `/api/approve/${id}`, body),
      reject: (id: string, note = 'no') => post('carol', `/api/reject/${id}`, { note }),
      page: async (query = '', agent = 'carol') => (await ask(agent, 'GET', `/api/decisions?${query}`)).json() as { items: Item[], next_cursor: string | null },
    }
  }
  const ids = ({ items }: { items: Item[] }) => items.map(({ handoff_id: id }) => id)
  const questioned = async (of: ReturnType<typeof as>, members?: object) => {
    const { id, ask } = await of.asked(members)
    await of.post('carol', `/api/answer/${id}`, { ask_id: ask, answer: { secret: 'of nobody' }, note: 'as ever' })
    return { id, ask }
  }

  t.test('what people decided and answered is listed, the latest first, each with its members in order', async t => {
    const of = as('all')
    const [yes, no] = [await of.pass({ task: 'x'.repeat(201), to: 'box', labels: { run: '1', a: '2' } }), await of.pass({ task: 'a "b"\n\u{1f600}' })]
    const waits = await of.pass()
    const { digest } = (await of.ask('carol', 'GET', `/api/approvals/${yes}`)).json()
    await of.approve(yes, { note: 'go,\n"on"' })
    await setClock(start + 1000)
    await of.reject(no)
    await setClock(start + 2000)
    const { id, ask } = await questioned(of, { to: 'box' })
    const toPasser = await of.asked()
    await setClock(start + 3000)
    const { ask_id: passers } = await of.post('ann', `/api/ask/${(await of.asked()).id}`, { question: 'q', of: 'passer' }).catch(() => ({ ask_id: '' }))
    t.equal(passers, '', 'one question at a time')
    const found = (await of.ask('carol', 'GET', '/api/decisions')).body
    t.equal(found, `{"items":[${[
      `{"handoff_id":"${id}","state":"answered","decided_at":"${at(2000)}","decided_by":"carol","note":"as ever","digest":null,"to":"box","passed_by":"ann","ask_id":"${ask}","question":"Which?"}`,
      `{"handoff_id":"${no}","state":"rejected","decided_at":"${at(1000)}","decided_by":"carol","note":"no","digest":"${JSON.parse(found).items[1].digest}","to":null,"passed_by":"ann","task":"a \\"b\\"\\n\u{1f600}"}`,
      `{"handoff_id":"${yes}","state":"approved","decided_at":"${at(0)}","decided_by":"carol","note":"go,\\n\\"on\\"","digest":"${digest}","to":"box","labels":{"run":"1","a":"2"},"passed_by":"ann","task":"${'x'.repeat(200)}"}`
    ].join()}],"next_cursor":null}`)
    t.strictSame(ids(await of.page('state=approved')), [yes])
    t.strictSame(ids(await of.page('inbox=box')), [id, yes])
    t.strictSame(ids(await of.page('by=carol&state=answered')), [id])
    t.strictSame(ids(await of.page('by=ann')), [])
    t.strictSame(ids(await of.page(`since=${at(1000)}&until=${at(2000)}`)), [no])
    t.strictSame(ids(await of.page('', 'olga')), [id, no, yes], 'operators see it')
    t.match([waits, toPasser.id].filter(one => found.includes(one)), [], 'nothing that waits')
    for (const [query, pointer] of [['state=done', '/state'], ['since=x', '/since'], ['cursor=x', '/cursor'], ['format=xml', '/format'], ['x=1', '/x']] as const) {
      t.match(isProblem(t, await of.ask('carol', 'GET', `/api/decisions?${query}`), 400, 'invalid_request'), { errors: [{ pointer }] })
    }
    isProblem(t, await of.ask('ann', 'GET', '/api/decisions'), 403, 'insufficient_scope')
  })

  t.test('a decision is noted once, and again when its id came back', async t => {
    const of = as('again')
    const key = { 'idempotency-key': randomUUID() }
    const pass = async () => (await app.inject({
      method: 'POST', url: '/api/pass', headers: { authorization: `Bearer ${secretOf('again', 'ann')}`, ...key }, body: { task: 't', require_human: true, expires_in: 60 }
    })).json().handoff_id as string
    const id = await pass()
    await of.reject(id)
    isProblem(t, await of.ask('carol', 'POST', `/api/reject/${id}`, { note: 'no' }), 409, 'already_decided')
    await setClock(start + 1)
    const { ask, id: asked } = await of.asked()
    for (const replayed of [false, true]) {
      const answer = await of.ask('carol', 'POST', `/api/answer/${asked}`, { ask_id: ask, answer: {} })
      t.equal(answer.statusCode, 200, `${replayed}`)
    }
    t.strictSame(ids(await of.page()), [asked, id])
    await redis.del(keys.handoff(tagOf(id), `again:${id}`))
    await setClock(start + 10_000)
    t.equal(await pass(), id)
    await of.approve(id)
    t.strictSame((await of.page()).items.filter(one => one.handoff_id === id).map(({ state }) => state), ['approved', 'rejected'])
  })

  t.test('pages are stable, and go to the end', async t => {
    const of = as('pages')
    const made: string[] = []
    for (let n = 0; n < 12; n++) {
      await setClock(start + Math.floor(n / 3) * 100)
      const id = n % 2 === 0 ? (await questioned(of)).id : await of.pass()
      if (n % 2 === 1) await of.approve(id)
      made.push(id)
    }
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const page = await of.page(`limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`)
      t.ok(page.items.length <= 2)
      seen.push(...ids(page))
      cursor = page.next_cursor
      await setClock(start + 10_000)
    }
    t.equal(new Set(seen).size, 12)
    const group = (id: string) => Math.floor(made.indexOf(id) / 3)
    t.strictSame(seen.map(group), [3, 3, 3, 2, 2, 2, 1, 1, 1, 0, 0, 0])
  })

  t.test('it is kept though its handoff goes, and for no longer than DECISIONS_RETENTION', async t => {
    const of = as('gone')
    const [one, later] = [await of.pass({ task: 'one' }), await of.pass()]
    await of.reject(one)
    await redis.del(keys.handoff(tagOf(one), `gone:${one}`))
    t.match(await of.page(), { items: [{ handoff_id: one, task: 'one', note: 'no' }] })
    const list = keys.decisions(homeTag('gone'), 'gone')
    t.strictSame(await Promise.all([list, `${list}:${one}`].map(key => redis.pexpiretime(key))), [start + 2 * day, start + 2 * day])
    await setClock(start + 60_000)
    await of.approve(later)
    await setClock(start + 2 * day)
    t.strictSame(ids(await of.page()), [later])
    const third = await of.pass()
    await of.approve(third)
    t.equal(await redis.zcard(list), 2, 'it leaves the list with the next decision')
  })

  t.test('a key that is held to inboxes sees theirs, and what is for none', async t => {
    const of = as('held')
    const [mine, other, none] = [await of.pass({ to: 'mine' }), await of.pass({ to: 'other' }), await of.pass()]
    for (const id of [mine, other, none]) await of.approve(id)
    t.strictSame(ids(await of.page('', 'dora')).sort(), [mine, none].sort())
    t.strictSame(ids(await of.page('', 'carol')).sort(), [mine, other, none].sort())
  })

  t.test('as a file for spreadsheets', async t => {
    const of = as('file')
    const evil = ['=1+1', '+1', '-1', '@x', '\tx', 'a,"b"\r\nc']
    const made: string[] = []
    for (const [n, task] of evil.entries()) {
      await setClock(start + n)
      made.push(await of.pass({ task, to: 'box', labels: { run: '1', a: '2' } }))
      await of.reject(made[n]!, n === 0 ? '=HYPERLINK("https://example.com")' : 'no')
    }
    const answer = await of.ask('carol', 'GET', '/api/decisions?format=csv&limit=4&state=rejected')
    t.match(answer.headers, {
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': 'attachment; filename="decisions.csv"',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      link: /^<\/handoff\/api\/decisions\?format=csv&limit=4&state=rejected&cursor=[\w-]+>; rel="next"$/
    })
    const digests = new Map((await of.page()).items.map(one => [one.handoff_id, one.digest]))
    const row = (n: number, task: string, note = 'no') =>
      `${made[n]},rejected,${at(n)},carol,${note},${digests.get(made[n]!)},box,"run:1,a:2",ann,${task},,\r\n`
    t.equal(answer.body, 'handoff_id,state,decided_at,decided_by,note,digest,to,labels,passed_by,task,ask_id,question\r\n' +
      row(5, '"a,""b""\r\nc"') + row(4, '\'\tx') + row(3, '\'@x') + row(2, '\'-1'))
    const next = /<\/handoff(.*?)>/.exec(String(answer.headers.link))![1]!
    const last = await of.ask('carol', 'GET', next)
    t.equal(last.body, 'handoff_id,state,decided_at,decided_by,note,digest,to,labels,passed_by,task,ask_id,question\r\n' +
      row(1, '\'+1') + row(0, '\'=1+1', '"\'=HYPERLINK(""https://example.com"")"'))
    t.equal(last.headers.link, undefined, 'the last page')
  })

  t.test('forgotten, its texts are gone and the fact stays', async t => {
    const of = as('forgotten')
    const id = await of.pass({ task: 'canary-task', to: 'box' })
    await of.reject(id, 'canary-note')
    const asked = await questioned(of)
    const forget = (one: string) => store.decisions.forget({ tenant: 'forgotten', id: one, tag: tagOf(one) })
    t.strictSame(await forget(id), { decisions: 1, texts: 1 })
    t.strictSame(await forget(id), { decisions: 1, texts: 0 }, 'again')
    t.strictSame(await forget(asked.id), { decisions: 1, texts: 1 })
    const { items } = await of.page()
    t.match(items.find(one => one.handoff_id === id), { state: 'rejected', decided_by: 'carol', note: null, task: null, to: 'box' })
    t.match(items.find(one => one.handoff_id === asked.id), { state: 'answered', note: null, question: null, ask_id: asked.ask })
    t.equal(await forget(await of.pass()), null, 'there is none')
    t.match((await of.ask('carol', 'GET', '/api/decisions?format=csv')).body, new RegExp(`\r\n${id},rejected,[^,]*,carol,,sha-256[^,]*,box,,ann,,,\r\n`))
  })

  t.test('of too many the oldest go, with their texts', async t => {
    const of = as('full')
    const made: string[] = []
    for (let n = 0; n < 9; n++) {
      await setClock(start + n)
      made.push(await of.pass())
      await of.approve(made[n]!)
    }
    await store.decisions.trim('full', 5)
    t.strictSame(ids(await of.page()), made.slice(4).reverse())
    t.equal(await redis.exists(keys.decisionsOf(homeTag('full'), 'full', made[0]!)), 0)
    const { id } = await questioned(of)
    await store.decisions.trim('full', 6)
    t.equal((await of.page()).items.length, 6, 'no more than that')
    await store.decisions.trim('full', 1)
    t.strictSame(ids(await of.page()), tagOf(id) === homeTag('full') ? [id] : [], 'each partition loses its share, of one too')
    const trims = () => store.scripts.find(({ name }) => name === 'decisions-trim')!.took.counts.reduce((sum, count) => sum + count)
    const before = trims()
    for (let n = 0; n < 1000; n++) store.decisions.made('full')
    await until(() => trims() > before)
  })
}

t.test('without DECISIONS_RETENTION there are none', async t => {
  const { pass, call } = await testApp(t, { DECISIONS_RETENTION: '0' })
  const id = await pass({ require_human: true })
  t.equal((await call('approver', 'POST', `/api/approve/${id}`, {})).statusCode, 200)
  t.strictSame((await call('approver', 'GET', '/api/decisions')).json(), { items: [], next_cursor: null })
})
