import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import { devices, hearsNothing, picture, signIn, skip, webApp } from '../helpers/browser.ts'
import { personWith, unescaped } from '../helpers/forms.ts'

const dora = 'dora-approver-secret-01'
const two = { APPROVER_KEYS: `carol:${secrets.approver},dora:${dora}` }

t.test('the open list shows new handoffs and drops decided ones by itself', { skip }, async t => {
  const { ask, approver, call } = await webApp(t)
  const page = await approver()
  await page.getByText('No handoff waits').waitFor()
  const id = await ask({ task: 'just passed' })
  await page.getByText('just passed').waitFor()
  t.match(await page.locator('#count').innerText(), /One handoff waits/)
  await page.getByRole('link', { name: /just passed/ }).focus()
  await ask({ task: 'another' })
  await page.getByText('another').waitFor()
  t.match(await page.evaluate('document.activeElement.id'), id, 'the keyboard stays where it was')
  await call('approver', 'POST', `/api/approve/${id}`)
  await page.locator('#list').getByText('just passed').waitFor({ state: 'detached' })
  t.match(await page.locator('#count').innerText(), /One handoff waits/)
})

t.test('the open list comes back by itself after an outage of the service', { skip }, async t => {
  const { ask, approver } = await webApp(t)
  const page = await approver()
  await page.getByText('No handoff waits').waitFor()
  await page.route('**/approvals/list*', route => route.abort())
  await ask({ task: 'while away' })
  await page.waitForEvent('requestfailed')
  await page.unroute('**/approvals/list*')
  await page.getByText('while away').waitFor()
  t.pass('it asked again')
})

t.test('of two people who decide at once one wins, and the other is told who', { skip }, async t => {
  const { ask, approver, call } = await webApp(t, two)
  const id = await ask({ task: 'contested' })
  const people = [await approver(devices.phone), await approver(devices.desk, dora)]
  for (const page of people) {
    await hearsNothing(page)
    await page.goto(`/approvals/${id}`)
    await page.getByLabel('Note').fill('because')
  }
  await Promise.all([
    people[0]!.getByRole('button', { name: 'Approve', exact: true }).click(),
    people[1]!.getByRole('button', { name: 'Reject', exact: true }).click(),
  ])
  await Promise.all(people.map(page => page.locator('.notice').waitFor()))
  const said = await Promise.all(people.map(page => page.locator('.notice').innerText()))
  const { approval } = (await call('alice', 'GET', `/api/status/${id}`)).json()
  const [winner, loser] = approval.decided_by === 'carol' ? [0, 1] : [1, 0]
  t.match(said[winner], /^You (approved|rejected)/)
  t.match(said[loser], new RegExp(`^Yours didn’t count\\..*${approval.decided_by} ${approval.state} this .* A decision is final.*because`, 's'))
  await picture(people[loser]!, 'somebody-else-decided')
  await people[loser]!.getByRole('link', { name: 'To the list' }).click()
  await people[loser]!.getByText('No handoff waits').waitFor()
})

t.test('a handoff that expires while its page is open says so', { skip }, async t => {
  const { ask, approver, setClock, call } = await webApp(t)
  const id = await ask({ task: 'too late', expires_in: 60 })
  const page = await approver()
  await hearsNothing(page)
  await page.goto(`/approvals/${id}`)
  await setClock(Date.now() + 61_000)
  await page.getByRole('button', { name: 'Approve', exact: true }).click()
  await page.getByText('This expired').waitFor()
  await picture(page, 'expired')
  t.equal((await call('alice', 'GET', `/api/status/${id}`)).json().status, 'expired')
  t.equal(await page.getByRole('button', { name: 'Approve' }).count(), 0)
})

t.test('the passer can’t decide', { skip }, async t => {
  const { ask, approver } = await webApp(t, { APPROVER_KEYS: `alice:${dora},carol:${secrets.approver}` })
  const id = await ask({ task: 'my own' })
  const page = await approver(devices.desk, dora)
  await page.goto(`/approvals/${id}`)
  await page.getByText('You passed this yourself').waitFor()
  t.equal(await page.getByRole('button', { name: 'Approve' }).count(), 0)
})

t.test('without a session, a link leads to the sign-in and back', { skip }, async t => {
  const { ask, visitor, redis, prefix, dump } = await webApp(t)
  const id = await ask({ task: 'linked' })
  const page = await visitor(devices.phone)
  await page.goto(`/approvals/${id}`)
  t.equal(await page.getByText('linked').count(), 0)
  await page.getByLabel('Approver key').fill('wrong-key-0123456789')
  await page.keyboard.press('Enter')
  await page.getByText('This key can’t be used here').waitFor()
  await signIn(page)
  t.match(page.url(), new RegExp(`/approvals/${id}$`))
  t.notMatch(JSON.stringify(await page.context().storageState()) + page.url(), secrets.approver, 'the browser doesn’t have the key')
  t.equal(await page.evaluate('document.cookie'), '')

  const sessions = Object.keys(await dump()).filter(key => key.includes(':s:'))
  t.equal(sessions.length, 1)
  await redis.del(`${prefix}:${sessions[0]}`)
  await page.getByRole('button', { name: 'Approve', exact: true }).click()
  await page.getByText('Your session has ended').waitFor()
  await picture(page, 'session-ended')
  await signIn(page)
  // The form again, at the address that it was sent to: nothing is decided yet.
  t.match(page.url(), new RegExp(`/approvals/${id}/approve$`))
  await page.getByRole('button', { name: 'Approve', exact: true }).click()
  await page.getByText('You approved').waitFor()
})

t.test('the open list says that the session has ended', { skip }, async t => {
  const { ask, visitor, redis, prefix, dump } = await webApp(t)
  const page = await visitor()
  const isOpen = page.waitForRequest('**/approvals/list*')
  await page.goto('/approvals')
  await signIn(page)
  await isOpen
  for (const key of Object.keys(await dump())) await redis.del(`${prefix}:${key}`)
  await ask({ task: 'changes the list' })
  await page.getByText('Your session has ended').waitFor()
  await signIn(page)
  await page.getByText('changes the list').waitFor()
  t.match(page.url(), /\/approvals$/)
})

/** A page of another site. */
async function elsewhere (t: Test, body: string): Promise<string> {
  const server = createServer((request, response) => { response.setHeader('content-type', 'text/html').end(body) })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => { server.close() })
  return `http://localhost:${(server.address() as AddressInfo).port}/`
}

t.test('another site can link here but decide nothing', { skip }, async t => {
  const { ask, approver, address, call } = await webApp(t)
  const id = await ask({ task: 'tempting' })
  const page = await approver()
  await page.goto(await elsewhere(t, `<a href="${address}/approvals/${id}">look</a><form method="post" action="${address}/approvals/${id}/approve"><button>win</button></form>`))
  await page.getByRole('link').click()
  await page.getByRole('heading', { name: 'tempting' }).waitFor()
  t.pass('a link in a mail leads who is signed in to the handoff')
  await page.goBack()
  await page.goto(await elsewhere(t, `<form method="post" action="${address}/approvals/${id}/approve"><button>win</button></form>`))
  await page.getByRole('button', { name: 'win' }).click()
  await page.getByText('Another site sent this form').waitFor()
  t.match((await call('alice', 'GET', `/api/status/${id}`)).json(), { status: 'pending', approval: { state: 'waiting' } })
})

t.test('the pages work over plain http by host name, where browsers send no Sec-Fetch-Site', { skip }, async t => {
  const { ask, visitor, address } = await webApp(t, {}, ['--host-resolver-rules=MAP handoff.test 127.0.0.1'])
  await ask({ task: 'by name' })
  const page = await visitor({ baseURL: address.replace('127.0.0.1', 'handoff.test') })
  await page.goto('/approvals')
  await signIn(page)
  await page.getByRole('link', { name: /by name/ }).click()
  await page.getByRole('button', { name: 'Approve', exact: true }).click()
  await page.getByText('You approved').waitFor()
  t.pass('Origin is enough')
})

t.test('without JavaScript all works, except that new handoffs need a reload', { skip }, async t => {
  const { ask, approver, call } = await webApp(t)
  const id = await ask({ task: 'no script' })
  const page = await approver({ ...devices.desk, javaScriptEnabled: false })
  await page.getByRole('link', { name: /no script/ }).click()
  await page.getByLabel('Note').fill('n')
  await page.getByRole('button', { name: 'Reject', exact: true }).click()
  await page.getByText('You rejected').waitFor()
  t.equal((await call('alice', 'GET', `/api/status/${id}`)).json().status, 'rejected')
})

t.test('a person decides with the keyboard alone', { skip }, async t => {
  const { ask, visitor, call } = await webApp(t)
  const ids = [await ask({ task: 'one' }), await ask({ task: 'two' })]
  const page = await visitor()
  await page.goto(`/approvals/${ids[0]}`)
  await page.keyboard.type(secrets.approver)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Handoff from alice' }).waitFor()
  const tabTo = async (name: string) => {
    for (let presses = 0; presses < 20; presses++) {
      await page.keyboard.press('Tab')
      const here = await page.evaluate('document.activeElement.innerText || document.activeElement.id')
      if (here === name) return
    }
    throw new Error(`no way to ${name}`)
  }
  await page.keyboard.press('Tab')
  t.equal(await page.evaluate('document.activeElement.innerText'), 'Skip to the content')
  await tabTo('note')
  await page.keyboard.type('fine')
  await tabTo('Approve')
  t.not(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle'), 'none', 'one sees where one is')
  await page.keyboard.press('Enter')
  await page.getByText('You approved').waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL(new RegExp(ids[1]!))
  await page.getByRole('heading', { name: 'Handoff from alice' }).waitFor()
  await tabTo('note')
  await page.keyboard.type('no')
  await tabTo('Approve')
  await tabTo('Reject')
  await page.keyboard.press('Space')
  await page.getByText('You rejected').waitFor()
  const states = await Promise.all(ids.map(async id => (await call('alice', 'GET', `/api/status/${id}`)).json().approval))
  t.match(states, [{ state: 'approved', note: 'fine' }, { state: 'rejected', note: 'no' }])
})

t.test('pages of a search of thousands show each once, while others decide', { timeout: 300_000 }, async t => {
  const { call, app } = await testApp(t, { BATCH_LIMIT: '8388608' })
  const ask = await personWith({ app }, secrets.approver)
  const pass = async (count: number, task: (n: number) => string) => {
    const operations = Array.from({ length: count }, (_, n) => ({ op: 'pass', body: { task: task(n), require_human: true, expires_in: 60_000 + (n * 7919) % 9000 } }))
    const { results } = (await call('alice', 'POST', '/api/batch', { operations })).json()
    return results.map(({ body }: { body: { handoff_id: string } }) => body.handoff_id) as string[]
  }
  const wanted: string[] = []
  for (let n = 0; n < 100; n++) wanted.push(...(await pass(100, m => m < 12 ? `Straße ${m}` : 'other')).slice(0, 12))
  for (const order of ['', '&order=expiry']) {
    const [seen, decided] = [[] as string[], new Set<string>()]
    let path: string | undefined = `/approvals?tab=approvals&q=STRASSE${order}`
    for (let pages = 0; path !== undefined; pages++) {
      const { body } = await ask(path)
      if (pages === 0) t.match(body, /id="count"[^>]*>1,\d{3} handoffs wait, [^<.]*first\.</, 'all of ten thousand are looked through')
      const rows = [...body.matchAll(/<a id="h-([\w-]{25})"/g)].map(([, id]) => id!)
      t.strictSame(rows.filter(id => decided.has(id)), [], 'none that was decided meanwhile')
      seen.push(...rows)
      // One of this page, and one that isn't shown yet.
      for (const id of [rows[0]!, wanted.find(id => !seen.includes(id) && !decided.has(id))]) {
        if (pages % 4 !== 0 || id === undefined) continue
        t.equal((await call('approver2', 'POST', `/api/approve/${id}`)).statusCode, 200)
        decided.add(id)
      }
      path = /<p><a href="([^"]*)">The next ones/.exec(body)?.[1]
      if (path !== undefined) path = unescaped(path)
    }
    t.equal(new Set(seen).size, seen.length, 'nothing twice')
    t.strictSame(wanted.filter(id => !seen.includes(id) && !decided.has(id)), [], 'nothing left out')
    t.ok(decided.size > 9)
    for (const id of decided) wanted.splice(wanted.indexOf(id), 1)
  }
  await pass(100, () => 'Straße, later than ten thousand')
  t.match((await ask('/approvals?tab=approvals&q=strasse')).body, /Only the 10,000 that wait longest were looked through; more wait\./)
})
