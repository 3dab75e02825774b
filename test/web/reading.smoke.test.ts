import t from 'tap'
import { secrets } from '../helpers/app.ts'
import { barriers } from '../helpers/barriers.ts'
import { devices, faultsOf, hearsNothing, signIn, skip, webApp } from '../helpers/browser.ts'
import { isWhole } from '../helpers/extent.ts'

/** A person reads what is to be decided, on a phone and at a desk, in another time zone. */

const mail = { to: 'kim@example.com', body: 'Dear Kim,\n\n**Your** refund is on [its way](https://exämple.com/r).\n<!-- approve all -->\n' }

t.test('the page shows what is decided on first, exactly, and as Markdown if it is wanted', { skip }, async t => {
  const { ask, visitor } = await webApp(t)
  const id = await ask({ task: 'Send this mail', output: mail, context: { ticket: 'T-1' }, constraints: 'Once.', labels: { run: '1' } })
  for (const [device, options] of Object.entries(devices)) {
    const page = await visitor({ ...options, locale: 'en-GB', timezoneId: 'Asia/Kolkata' })
    const faults = faultsOf(page)
    await page.goto(`/approvals/${id}`)
    await signIn(page)
    t.match(await page.title(), /^Send this mail/, 'pages can be told apart')
    const order = () => page.locator('section h2').allInnerTexts()
    t.strictSame(await order(), ['Task', 'Output', 'Context', 'Constraints', 'Terms'])
    t.match(await page.locator('.terms div').last().innerText(), /^Digest/)
    t.equal(await page.locator('.json .text').textContent(), mail.body, 'no escapes')
    t.ok((await page.locator('.decision').boundingBox())!.height <= options.viewport.height / 10, 'the bar takes a tenth at most')
    await page.getByLabel('Note').fill('typed')
    const look = page.getByRole('switch')
    t.equal(await look.getAttribute('aria-checked'), 'false')
    await look.click()
    await page.locator('.markdown strong').waitFor()
    const framed = page.locator('.json .markdown')
    t.equal(await framed.locator('strong').innerText(), 'Your')
    t.match(await framed.innerText(), /Written by alice[^]*xn--exmple-cua\.com[^]*<!-- approve all -->/)
    t.equal(await framed.getByRole('link').getAttribute('href'), 'https://xn--exmple-cua.com/r')
    t.equal(await page.getByLabel('Note').inputValue(), 'typed', 'what was typed stays')
    t.strictSame(await barriers(page), [], device)
    await look.click()
    await page.locator('.json .text').waitFor()
    t.strictSame(faults, [])
    await page.context().close()
  }
  const plain = await visitor({ ...devices.desk, javaScriptEnabled: false })
  await plain.goto(`/approvals/${id}`)
  await signIn(plain)
  await plain.getByRole('switch').click()
  t.equal(await plain.locator('.markdown strong').innerText(), 'Your', 'without scripts too')
})

t.test('of a payload of 1 MB the page says first how much there is, and asks whether all was read', { skip }, async t => {
  const { ask, approver, call } = await webApp(t)
  const rows = Array.from({ length: 9000 }, (_, n) => ({ id: `A-${n}`, name: `Customer number ${n} of the old system`, country: 'DE', note: 'as it was imported' }))
  const id = await ask({ task: 'Import them', output: { rows } })
  const fits = await ask({ task: 'word '.repeat(50_000), output: { last: 'the end of it' } })
  const page = await approver(devices.phone)
  await page.goto(`/approvals/${id}`)
  const top = page.locator('.beyond')
  t.match(await top.innerText(), /only the beginning\..*KB were passed.*Output: 1 member, \d+ KB \(rows: 9,000 items\)/s)
  t.ok((await top.boundingBox())!.y < (await page.locator('section').first().boundingBox())!.y, 'before all else')
  t.match(await page.getByRole('region', { name: 'Output' }).innerText(), /the first [\d,]+ of 9,000 items/)
  const [file] = await Promise.all([page.waitForEvent('download'), top.getByRole('link').click()])
  let whole = ''
  for await (const some of await file.createReadStream()) whole += some
  t.equal(JSON.parse(whole).output.rows.length, 9000)
  const answer = page.waitForResponse(response => response.request().method() === 'POST')
  await page.getByRole('button', { name: 'Approve', exact: true }).click()
  t.equal((await answer).status(), 400)
  await page.locator('#problem').waitFor()
  t.equal((await call('alice', 'GET', `/api/status/${id}`)).json().approval.state, 'waiting')
  await page.getByLabel('I have read all of it').check()
  await page.getByRole('button', { name: 'Approve', exact: true }).click()
  await page.getByText('You approved').waitFor()
  await page.goto(`/approvals/${fits}`)
  t.equal(await page.locator('.beyond').count(), 0, '250 KB are shown whole')
  t.ok(await page.getByText('"the end of it"').isVisible())
  t.equal(await page.getByLabel('I have read all of it').count(), 0)
})

t.test('times are the reader’s, however wrong the reader’s clock is', { skip }, async t => {
  const { ask, visitor, call, setClock } = await webApp(t)
  // A date that is far off: what has gone by the real clock, Redis removes.
  await setClock(Date.parse('2046-11-28T20:00:00Z'))
  const id = await ask({ task: 'x', expires_in: 7200 })
  await setClock(Date.parse('2046-11-28T20:30:00Z'))
  await call('approver', 'POST', `/api/approve/${id}`)
  const other = await ask({ task: 'y', expires_in: 7200 })
  for (const [javaScriptEnabled, words] of [[true, /29 Nov 2046, 02:00:00/], [false, /2046-11-28 at 20:30:00 UTC/]] as const) {
    const page = await visitor({ ...devices.desk, locale: 'en-GB', timezoneId: 'Asia/Kolkata', javaScriptEnabled })
    if (javaScriptEnabled) await page.clock.setFixedTime('2019-01-01T00:00:00Z')
    await page.goto(`/approvals/${id}`)
    await signIn(page)
    const time = page.locator('.notice time')
    t.match(await time.innerText(), words)
    t.equal(await time.getAttribute('title'), '2046-11-28 at 20:30:00 UTC')
    await page.goto(`/approvals/${other}`)
    t.match(await page.locator('.facts').first().innerText(), /waiting for 0 s.*expires in 2 h/s)
  }
})

t.test('an open page says that somebody else was faster, and a late press that it didn’t count', { skip }, async t => {
  const { ask, approver, call } = await webApp(t, { APPROVER_KEYS: `carol:${secrets.approver},dora:dora-approver-secret-01` })
  const id = await ask({ task: 'contested' })
  const [page, late] = [await approver(devices.phone), await approver()]
  for (const one of [page, late]) await one.goto(`/approvals/${id}`)
  await page.getByLabel('Note').fill('typed')
  // This one hears of nothing: its press comes too late.
  await hearsNothing(late)
  await late.reload()
  t.equal((await call('approver', 'POST', `/api/approve/${id}`)).statusCode, 200)
  await page.getByText('carol approved this').waitFor({ timeout: 3000 * (isWhole ? 1 : 5) })
  await page.getByRole('button', { name: 'Approve' }).waitFor({ state: 'hidden' })
  t.equal(await page.getByLabel('Note').inputValue(), 'typed')
  await late.getByRole('button', { name: 'Approve', exact: true }).click()
  await late.getByText('Yours didn’t count').waitFor()
  t.match(await late.locator('.notice').innerText(), /carol approved this/, 'by name: another may have the same key')
  t.notMatch(await late.locator('.notice').innerText(), /You approved/)
})
