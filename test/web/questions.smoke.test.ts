import t from 'tap'
import { secrets } from '../helpers/app.ts'
import { barriers } from '../helpers/barriers.ts'
import { devices, faultsOf, picture, signIn, skip, webApp } from '../helpers/browser.ts'

/** A person answers in a browser, on a phone and at a desk. */

const schema = {
  type: 'object',
  required: ['account', 'why'],
  properties: {
    account: { title: 'Account', description: 'The one to pay from.', enum: ['4711', '4712'] },
    amount: { title: 'Amount', type: 'number', minimum: 0 },
    urgent: { title: 'Is it urgent?', type: 'boolean' },
    reference: { title: 'Reference', type: 'string', maxLength: 40 },
    why: { title: 'Why', type: 'string', minLength: 3 },
    lines: { title: 'Lines', type: 'array', items: { type: 'string' } }
  }
}

for (const colorScheme of ['light', 'dark'] as const) {
  t.test(`a question is answered, ${colorScheme}`, { skip }, async t => {
    const app = await webApp(t)
    for (const [device, more] of Object.entries(devices)) {
      const id = await app.pass({ task: `Pay the invoice <b>2026-118</b> \u202eevil ${'long'.repeat(40)}`, output: { total: 1.0 } })
      await app.call('bob', 'GET', `/api/catch/${id}`)
      await app.call('bob', 'POST', `/api/ask/${id}`, {
        question: 'Which of these two accounts?\nThe first one is nearly empty. <script>alert(1)</script>', details: { invoice: '2026-118', amount: '1,250.00' }, schema
      })
      const page = await app.visitor({ ...more, colorScheme })
      const faults = faultsOf(page)
      await page.goto('/approvals')
      await signIn(page, secrets.approver)
      await page.goto(`/approvals/${id}`)
      t.equal(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true, `${device}: nothing hangs out`)
      t.strictSame(await barriers(page), [], `${device}: nothing keeps anybody out`)
      await picture(page, `question-${device}-${colorScheme}`)
      await page.getByRole('button', { name: 'Send the answer' }).click()
      await picture(page, `question-wrong-${device}-${colorScheme}`)
      t.equal((await app.call('bob', 'GET', `/api/ask/${id}`)).json().state, 'open')
      t.strictSame(await barriers(page), [], `${device}: nor what is wrong`)
      await page.getByLabel('4711').check()
      await page.getByLabel('Why').fill('It is the right one.')
      await page.getByRole('button', { name: 'Send the answer' }).click()
      await page.getByText('You answered').waitFor()
      await picture(page, `question-answered-${device}-${colorScheme}`)
      t.match((await app.call('bob', 'GET', `/api/ask/${id}`)).json(), { state: 'answered', answer: { account: '4711', why: 'It is the right one.' }, answered_by: 'carol' })
      t.strictSame(faults, [], `${device}: no fault`)
    }
  })
}

t.test('what was typed is there again after a sign-in, if the session ended elsewhere', { skip }, async t => {
  const app = await webApp(t)
  const id = await app.pass({ task: 'Pay the invoice.' })
  await app.call('bob', 'GET', `/api/catch/${id}`)
  await app.call('bob', 'POST', `/api/ask/${id}`, { question: 'Which account?', schema })
  for (const [device, more] of Object.entries(devices)) {
    const page = await app.approver(more)
    await page.goto(`/approvals/${id}`)
    await page.getByLabel('4712').check()
    await page.getByLabel('Why').fill('Two\nlines.')
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Send the answer' }).click()
    await page.getByText('Your session has ended.').waitFor()
    await picture(page, `ended-${device}`)
    await signIn(page)
    await page.getByText('You have signed in again.').waitFor()
    await picture(page, `again-${device}`)
    t.ok(await page.getByLabel('4712').isChecked())
    t.equal(await page.getByLabel('Why').inputValue(), 'Two\nlines.')
    t.equal((await app.call('bob', 'GET', `/api/ask/${id}`)).json().state, 'open', 'nothing is sent by itself')
    t.strictSame(await barriers(page), [])
  }
  const page = await app.approver()
  await page.goto(`/approvals/${id}`)
  await page.getByLabel('4712').check()
  await page.getByLabel('Why').fill('Sent in the end.')
  await page.context().clearCookies()
  await page.getByRole('button', { name: 'Send the answer' }).click()
  await signIn(page)
  await page.getByRole('button', { name: 'Send the answer' }).click()
  await page.getByText('You answered').waitFor()
  t.match((await app.call('bob', 'GET', `/api/ask/${id}`)).json().answer, { account: '4712', why: 'Sent in the end.' })
})
