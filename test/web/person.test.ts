import t from 'tap'
import { devices, faultsOf, picture, skip, webApp } from '../helpers/browser.ts'
import { secrets } from '../helpers/app.ts'
import { isWhole } from '../helpers/extent.ts'

const output = {
  table: 'invoices',
  rows: 128,
  exact: 1.0,
  oldest: { id: 'A-1', customer: 'Müller & Söhne', total: 1200.5, tags: ['paid', 'archived'] },
  all: Array.from({ length: 400 }, (_, n) => ({ id: `A-${n}`, total: n * 10 })),
}

for (const [device, options] of Object.entries(devices)) {
  for (const colorScheme of ['light', 'dark'] as const) {
    const isOne = device === 'desk' && colorScheme === 'light'
    t.test(`a person decides, at a ${device}, ${colorScheme}`, { skip: skip || (!isOne && !isWhole && 'npm run test:all runs it') }, async t => {
      const { ask, visitor, call } = await webApp(t)
      const first = await ask({ task: 'Delete the old invoices.\nAll before 2019, on the archive only.', output, constraints: 'Read only on the live system.', context: { ticket: 'OPS-12' } })
      const second = await ask({ task: 'Send the newsletter to 40,000 people', expires_in: 3600 })
      const page = await visitor({ ...options, colorScheme })
      const faults = faultsOf(page)
      const shot = (name: string) => picture(page, `${device}-${colorScheme}-${name}`)

      await page.goto('/approvals')
      await shot('1-sign-in')
      t.equal(await page.evaluate('document.activeElement.id'), 'key', 'a person can type at once')
      await page.getByLabel('Approver key').fill(secrets.approver)
      await page.keyboard.press('Enter')
      await page.getByText('2 handoffs wait').waitFor()
      await shot('2-list')
      const rows = await page.getByRole('listitem').allInnerTexts()
      t.match(rows, [/^Delete the old invoices[^]*from alice[^]*waiting for \d+ s[^]*expires in 24 h/, /Send the newsletter[^]*expires in 1 h/])

      await page.getByRole('link', { name: /Delete the old invoices/ }).click()
      await page.getByRole('heading', { name: 'Handoff from alice' }).waitFor()
      t.match(page.url(), new RegExp(`/approvals/${first}$`))
      await shot('3-one')
      t.ok(await page.getByText('Read only on the live system.').isVisible())
      t.ok(await page.getByText('"Müller & Söhne"').isVisible())
      t.notOk(await page.getByText('"A-399"').isVisible(), 'what is large is folded')
      await page.getByText('400 items').click()
      t.ok(await page.getByText('"A-399"').isVisible())
      t.equal(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true, 'nothing hangs out')

      await page.getByRole('button', { name: 'Reject', exact: true }).click()
      await page.getByText('To reject, say why').waitFor()
      await page.getByLabel('Note').fill('Not without <b>a backup</b>.')
      await shot('4-note')
      await page.getByRole('button', { name: 'Reject', exact: true }).click()
      await page.getByText('You rejected').waitFor()
      await shot('5-decided')
      t.match((await call('alice', 'GET', `/api/status/${first}`)).json(), { status: 'rejected', approval: { decided_by: 'carol', note: 'Not without <b>a backup</b>.' } })

      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Handoff from alice' }).waitFor()
      t.match(page.url(), new RegExp(`/approvals/${second}$`), 'the next one is one key away')
      await page.getByRole('button', { name: 'Approve', exact: true }).click()
      await page.getByText('No handoff waits').waitFor()
      t.match(await page.getByRole('status').first().innerText(), /You approved/)
      await shot('6-nothing-waits')
      t.match((await call('bob', 'GET', `/api/catch/${second}`)).json(), { status: 'caught', approval: { state: 'approved', decided_by: 'carol', note: null } })

      await page.goto(`/approvals/${first}`)
      await page.getByText('You rejected this').waitFor()
      await shot('7-what-stands')
      t.equal(await page.getByRole('button', { name: 'Approve' }).count(), 0)

      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByLabel('Approver key').waitFor()
      await page.goto('/approvals')
      await page.getByLabel('Approver key').waitFor()
      t.strictSame(faults.filter(fault => !/status of 400/.test(fault)), [], 'no fault in any page')
    })
  }
}
