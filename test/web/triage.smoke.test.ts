import t from 'tap'
import { secrets } from '../helpers/app.ts'
import { barriers } from '../helpers/barriers.ts'
import { devices, signIn, skip, webApp } from '../helpers/browser.ts'

/** A person works through a list of many. */

t.test('the list has tabs, search, order, unfolding, and boxes for all that are shown', { skip }, async t => {
  const app = await webApp(t)
  const { ask, call, approver } = app
  const start = Date.now() - 600_000
  await app.setClock(start)
  const caught = await app.caught({ task: 'with a question' })
  await call('bob', 'POST', `/api/ask/${caught}`, { question: 'Which one?' })
  const body = 'Dear Kim,\n\nall the best'
  for (let n = 0; n < 55; n++) {
    await app.setClock(start + n * 1000)
    await ask({ task: n === 52 ? 'Refund ÄRGER in full' : `task ${n}`, output: n === 0 ? { body } : n === 1 ? { long: 'x'.repeat(17_000) } : {}, expires_in: 7200 - n * 60, to: n < 3 ? 'mail' : 'other' })
  }
  const page = await approver()
  await page.getByText('Which one?').waitFor()
  t.strictSame(await page.locator('#tabs a').allInnerTexts(), ['Questions 1', 'Approvals 55'], 'questions come first')
  await page.getByRole('link', { name: 'Approvals 55' }).click()
  await page.getByText('55 handoffs wait').waitFor()
  const tasks = () => page.locator('#list .task').allInnerTexts()
  t.equal((await tasks()).length, 50)
  t.equal((await tasks())[0], 'task 0')
  t.notMatch(await page.locator('#list').innerText(), /[\w-]{25}/, 'no ids')

  const first = page.locator('#list li').first()
  await first.locator('summary').click()
  await first.getByRole('region', { name: 'Output' }).waitFor()
  t.equal(await first.locator('.json .text').innerText(), body, 'it unfolds to all that its page shows')
  t.match(await first.locator('h2').allInnerTexts(), ['Task', 'Output', 'Terms'])
  const second = page.locator('#list li').nth(1)
  t.equal(await second.getByRole('checkbox').count(), 0)
  t.ok(await second.getByRole('link', { name: 'Open it' }).isVisible(), 'what is long has a link in place of its box')
  t.strictSame(await barriers(page), [])

  await page.getByLabel('Select all that are shown').check()
  await page.getByText('49 ticked').waitFor()
  const other = await ask({ task: 'meanwhile' })
  await page.getByText('The list has changed').waitFor()
  t.equal((await tasks()).length, 50, 'nothing moves while something is ticked')
  await page.getByLabel('Select all that are shown').uncheck()
  await page.getByRole('link', { name: 'Approvals 56' }).waitFor()
  t.ok(await first.locator('.json .text').isVisible(), 'what is unfolded stays so')
  await call('alice', 'POST', `/api/cancel/${other}`)

  await page.getByLabel('Search').fill('ärger')
  await page.getByLabel('Search').press('Enter')
  await page.getByText('One handoff waits').waitFor()
  t.strictSame(await tasks(), ['Refund ÄRGER in full'], 'in any case, and beyond the first page')
  await app.setClock(start + 60_000)
  await ask({ task: 'Another Ärgernis', to: 'other' })
  await page.getByText('Another Ärgernis').waitFor()
  t.pass('what is searched for comes by itself too')
  await page.getByRole('link', { name: 'Show all' }).click()
  await page.getByLabel('Order').selectOption('expiry')
  await page.getByRole('button', { name: 'Show', exact: true }).click()
  await page.getByText('what expires first comes first').waitFor()
  t.strictSame((await tasks()).slice(0, 2), ['task 54', 'task 53'])
  await page.getByRole('link', { name: 'The next ones' }).click()
  await page.getByText('Back to the first').waitFor()
  t.strictSame((await tasks()).slice(-3), ['task 1', 'task 0', 'Another Ärgernis'])
})

t.test('of two people who decide on the same fifty at once, each hears what didn’t count', { skip }, async t => {
  const { ask, approver, call } = await webApp(t, { APPROVER_KEYS: `carol:${secrets.approver},dora:dora-approver-secret-01` })
  const ids: string[] = []
  for (let n = 0; n < 50; n++) ids.push(await ask({ task: `task ${n}` }))
  const people = [await approver(devices.phone), await approver(devices.desk, 'dora-approver-secret-01')]
  for (const page of people) {
    await page.reload()
    await page.getByLabel('Select all that are shown').check()
    await page.getByText('50 ticked').waitFor()
    t.ok((await page.locator('#decide').boundingBox())!.height <= 84, 'the bar takes a tenth of a phone at most')
  }
  await people[1]!.getByLabel('Note').fill('no')
  await Promise.all([people[0]!.getByRole('button', { name: 'Approve' }).click(), people[1]!.getByRole('button', { name: 'Reject' }).click()])
  await Promise.all(people.map(page => page.getByRole('link', { name: 'To the list' }).waitFor()))
  const by: Record<string, number> = { carol: 0, dora: 0 }
  for (const id of ids) by[(await call('alice', 'GET', `/api/status/${id}`)).json().approval.decided_by as string]!++
  t.equal(by.carol! + by.dora!, 50, 'each has one decision')
  for (const [at, name, other] of [[0, 'carol', 'dora'], [1, 'dora', 'carol']] as const) {
    const rows = await people[at]!.locator('.waiting li').allInnerTexts()
    t.equal(rows.filter(row => row.includes('Yours didn’t count')).length, by[other], `${name} hears of each that ${other} was faster with`)
    t.ok(rows.filter(row => row.includes('didn’t count')).every(row => row.includes(other)))
  }
})

t.test('a form checks dates, times and addresses, and has rows for a list of objects', { skip }, async t => {
  const app = await webApp(t)
  const schema = {
    type: 'object',
    required: ['day', 'lines'],
    properties: {
      day: { type: 'string', format: 'date', title: 'Pay on' },
      at: { type: 'string', format: 'date-time', title: 'Call back' },
      mail: { type: 'string', format: 'email', title: 'Receipt to' },
      page: { type: 'string', format: 'uri', title: 'Invoice' },
      from: { title: 'Account', oneOf: [{ const: 'a-1', title: 'Main account' }, { const: 'b-2', title: 'Savings' }] },
      lines: { type: 'array', title: 'Lines', items: { type: 'object', required: ['what'], properties: { what: { type: 'string', maxLength: 50, title: 'What' }, amount: { type: 'number', minimum: 1, title: 'Amount' } } } },
    },
  }
  for (const javaScriptEnabled of [true, false]) {
    const id = await app.caught({ task: 'Pay the invoice' })
    t.equal((await app.call('bob', 'POST', `/api/ask/${id}`, { question: 'How?', schema })).statusCode, 201)
    const page = await app.visitor({ ...devices.phone, locale: 'en-GB', timezoneId: 'Asia/Kolkata', javaScriptEnabled })
    await page.goto(`/approvals/${id}`)
    await signIn(page)
    await page.getByLabel('Pay on').fill('2026-12-24')
    await page.getByLabel('Call back').fill('2026-12-24T09:30')
    await page.getByLabel('Receipt to').fill('nobody')
    await page.getByLabel('Invoice').fill('https://example.com/1')
    await page.getByLabel('Main account').check()
    await page.getByLabel('What').fill('Paper')
    await page.getByLabel('Amount').fill('0')
    await page.getByRole('button', { name: 'Add a row' }).click()
    await page.getByRole('group', { name: 'Row 2' }).getByLabel('What').fill('Ink')
    t.equal(await page.getByRole('group', { name: 'Row 1' }).getByLabel('What').inputValue(), 'Paper', 'what was typed stays')
    await page.getByRole('button', { name: 'Add a row' }).click()
    await page.getByRole('group', { name: 'Row 3' }).waitFor()
    if (javaScriptEnabled) t.strictSame(await barriers(page), [])
    t.equal(await page.evaluate("document.querySelector('[type=email]').checkValidity()"), false, 'the browser says so at once')
    await page.evaluate("document.querySelector('form.answer').noValidate = true")
    await page.getByRole('button', { name: 'Send the answer' }).click()
    await page.getByText('This is not a mail address').waitFor()
    await page.getByLabel('Receipt to').fill('kim@example.com')
    await page.getByRole('button', { name: 'Send the answer' }).click()
    await page.locator('.wrong').waitFor()
    t.match(await page.getByRole('group', { name: 'Row 1' }).innerText(), /Amount[^]*1/, 'the schema’s fault is at its cell')
    await page.getByRole('group', { name: 'Row 1' }).getByLabel('Amount').fill('12.50')
    await page.getByRole('button', { name: 'Send the answer' }).click()
    await page.getByText('You answered').waitFor()
    t.strictSame((await app.call('bob', 'GET', `/api/ask/${id}`)).json().answer, {
      day: '2026-12-24', at: `2026-12-24T09:30:00${javaScriptEnabled ? '+05:30' : 'Z'}`, mail: 'kim@example.com', page: 'https://example.com/1', from: 'a-1', lines: [{ what: 'Paper', amount: 12.5 }, { what: 'Ink' }],
    })
    await page.context().close()
  }
})
