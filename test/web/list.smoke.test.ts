import type { Page } from 'playwright-core'
import t from 'tap'
import { secrets } from '../helpers/app.ts'
import { barriers } from '../helpers/barriers.ts'
import { devices, faultsOf, picture, signIn, skip, webApp } from '../helpers/browser.ts'
import { form, own } from '../helpers/forms.ts'

/** A person looks through what waits, on a phone and at a desk. */

const hostile = `<img src=x onerror=alert(1)> \u202eevil ${'long'.repeat(60)}`

for (const colorScheme of ['light', 'dark'] as const) {
  t.test(`the list has both kinds, ${colorScheme}`, { skip }, async t => {
    const app = await webApp(t)
    const now = Date.now()
    const ask = async (task: string, question: string, more: object = {}) => {
      const id = await app.pass({ task, ...more })
      await app.call('bob', 'GET', `/api/catch/${id}`)
      t.equal((await app.call('bob', 'POST', `/api/ask/${id}`, { question })).statusCode, 201)
      return id
    }
    await app.setClock(now - 50 * 60_000)
    await app.ask({ task: 'Refund the three customers who were charged twice on 1 November.', to: 'billing', labels: { run: '42', ticket: 'BILL-2381' } })
    await app.setClock(now - 34 * 60_000)
    await ask('Pay the invoice.', 'Which of these two accounts should I pay invoice 2026-118 from?', { to: 'bob', labels: { run: '42' } })
    for (const [device, more] of Object.entries(devices)) {
      await app.setClock(now - 12 * 60_000)
      await app.ask({ task: hostile, output: { rows: 'x'.repeat(3000) }, labels: { ['n'.repeat(32)]: 'v'.repeat(64), team: 'red' }, delay: 3600 })
      await app.setClock(now)
      const page = await app.visitor({ ...more, colorScheme })
      const faults = faultsOf(page)
      await page.goto('/approvals')
      await signIn(page, secrets.approver)
      const look = async (name: string) => {
        // Text is there before its style sheet is.
        await page.waitForLoadState()
        // Not innerWidth: a phone makes that as wide as what hangs out.
        t.ok(Number(await page.evaluate('document.documentElement.scrollWidth')) <= more.viewport.width, `${device}: nothing of ${name} hangs out`)
        t.strictSame(await barriers(page), [], `${device}: ${name} keeps nobody out`)
        await picture(page, `${name}-${device}-${colorScheme}`)
      }
      await page.getByText('One question waits').waitFor()
      await look('list-questions')
      t.equal(await page.getByRole('checkbox').count(), 0, 'a question can’t be chosen')
      await page.getByRole('link', { name: 'Approvals 2' }).click()
      await page.getByText('2 handoffs wait').waitFor()
      await look('list')
      const boxes = page.locator('.pick input')
      t.equal(await boxes.count(), 2)
      await boxes.first().check()
      await page.getByText('1 ticked').waitFor()
      await page.screenshot({ path: `.cache/screenshots/ticked-${device}-${colorScheme}.png` })
      await boxes.first().press('Enter')
      await page.getByText('Press Approve or Reject.').waitFor()
      t.ok(await boxes.first().isChecked())
      const other = await app.ask({ task: 'Comes meanwhile.' })
      await page.getByText('1 ticked. The list has changed').waitFor()
      t.equal(await page.locator('#list').getByText('Comes meanwhile.').count(), 0, 'nothing moves while something is ticked')
      await page.getByRole('button', { name: 'Reject' }).click()
      await page.getByText('say why').waitFor()
      t.ok(await boxes.first().isChecked(), 'what was ticked is still')
      await look('list-wrong')
      await boxes.first().uncheck()
      await page.getByText('Tick handoffs').waitFor()
      await page.getByRole('checkbox', { name: 'Comes meanwhile.' }).check()
      await boxes.nth(1).check()
      await app.call('approver2', 'POST', `/api/reject/${other}`, { note: 'Not that one.' })
      await app.setClock(now)
      await page.getByText('2 ticked. The list has changed').waitFor()
      await page.getByLabel('Note').fill('Both.')
      await page.getByRole('button', { name: 'Approve' }).click()
      await page.getByText('1 of 2 was approved').waitFor()
      await look('list-result')
      await page.getByText('dave rejected this before').waitFor()
      await page.getByRole('link', { name: 'To the list' }).press('Enter')
      await page.getByText('One handoff waits').waitFor()
      await app.ask({ task: 'One more.', labels: { run: '41' } })
      await page.getByText('2 handoffs wait').waitFor()
      await page.getByText('Filter').first().click()
      await page.getByLabel('Labels').fill('run:42')
      await page.getByLabel('Labels').press('Enter')
      await page.getByText('One handoff waits').waitFor()
      await look('list-narrow')
      t.strictSame(faults.filter(fault => !/status of 400/.test(fault)), [], `${device}: no fault`)
      await page.context().close()
      for (const { handoff_id: id, task } of (await app.call('approver', 'GET', '/api/approvals')).json().items) {
        if (!task.startsWith('Refund')) await app.call('approver', 'POST', `/api/approve/${id}`)
      }
    }
  })
}

t.test('without JavaScript too, several are decided together', { skip }, async t => {
  const app = await webApp(t)
  const ids = [await app.ask({ task: 'One.' }), await app.ask({ task: 'Two.' }), await app.ask({ task: 'Three.' })]
  const page = await app.visitor({ ...devices.phone, javaScriptEnabled: false })
  await page.goto('/approvals')
  await signIn(page)
  for (const name of ['One.', 'Three.']) await page.getByRole('checkbox', { name }).check()
  await page.getByRole('checkbox', { name: 'One.' }).press('Enter')
  await page.getByText('Press Approve or Reject.').waitFor()
  await page.getByLabel('Note').fill('Not now.')
  await page.getByRole('button', { name: 'Reject' }).click()
  await page.getByText('All 2 handoffs were rejected.').waitFor()
  await page.getByRole('link', { name: 'To the list' }).click()
  await page.getByText('One handoff waits.').waitFor()
  await page.getByText('Decided last').waitFor()
  const states = await Promise.all(ids.map(async id => (await app.call('alice', 'GET', `/api/status/${id}`)).json().approval.state as string))
  t.strictSame(states, ['rejected', 'waiting', 'rejected'])
})

t.test('what is selected stays selected, in the list and in the console', { skip }, async t => {
  const app = await webApp(t)
  await app.ask({ task: 'To be copied.', to: 'mail' })
  const selected = 'document.getSelection().toString()'
  const select = (text: string) => `(() => {
    const texts = document.createTreeWalker(document.getElementById('main'), NodeFilter.SHOW_TEXT)
    while (texts.nextNode()) if (texts.currentNode.textContent.trim() === '${text}') return document.getSelection().selectAllChildren(texts.currentNode.parentNode)
    throw new Error('not there')
  })()`
  const page = await app.approver()
  await page.evaluate(select('To be copied.'))
  await app.ask({ task: 'Comes meanwhile.' })
  await page.waitForResponse(response => response.url().includes('/approvals/list'))
  await page.waitForFunction("document.getElementById('list').closest('.htmx-request') === null")
  t.equal(await page.evaluate(selected), 'To be copied.')
  t.equal(await page.getByText('Comes meanwhile.').count(), 0, 'nothing moves')
  await page.evaluate('document.getSelection().empty()')
  await page.getByText('Comes meanwhile.').waitFor()

  const console = await app.approver(devices.desk, secrets.operator)
  await console.clock.install()
  await console.goto('/console')
  await console.locator('[data-live]').first().waitFor()
  let asked = 0
  console.on('request', request => { if (request.headers()['hx-request'] !== undefined) asked++ })
  const refreshed = () => console.waitForResponse(response => response.request().headers()['hx-request'] !== undefined)
  const first = refreshed()
  await console.clock.runFor(5_500)
  await first
  await console.evaluate(select('mail'))
  const before = asked
  await console.clock.runFor(30_000)
  t.equal(await console.evaluate(selected), 'mail')
  const goesOn = refreshed()
  await console.evaluate('document.getSelection().empty()')
  await console.clock.runFor(5_500)
  await goesOn
  t.ok(asked > before, 'it goes on when nothing is selected')
})

t.test('what was ticked and typed stays when the session ends meanwhile, in the list and in the console', { skip }, async t => {
  const app = await webApp(t)
  await app.ask({ task: 'Ticked.', to: 'mail' })
  const endSession = async (page: Page) => {
    const isTold = page.waitForResponse(response => response.status() === 401)
    const [session] = await page.context().cookies()
    await app.app.inject(form('/approvals/sign-out', {}, { ...own, cookie: `${session!.name}=${session!.value}` }))
    await isTold
  }
  const signInAgain = async (page: Page, key?: string) => {
    await page.getByText('Your session has ended').waitFor()
    await signIn(page, key)
    await page.getByText('You have signed in again').waitFor()
  }
  const page = await app.approver()
  await page.getByRole('checkbox', { name: 'Ticked.' }).check()
  await page.getByLabel('Note').fill('typed')
  await endSession(page)
  await page.getByRole('button', { name: 'Approve' }).click()
  await signInAgain(page)
  t.ok(await page.getByRole('checkbox', { name: 'Ticked.' }).isChecked())
  t.equal(await page.getByLabel('Note').inputValue(), 'typed')

  const console = await app.approver(devices.desk, secrets.operator)
  await console.goto('/console/inboxes/mail')
  await console.getByText('Limits', { exact: true }).click()
  await console.getByLabel('Caught at most').fill('7')
  await endSession(console)
  await console.getByRole('button', { name: 'Set the limits' }).click()
  await signInAgain(console, secrets.operator)
  t.equal(await console.getByLabel('Caught at most').inputValue(), '7')

  const idle = await app.approver()
  await endSession(idle)
  await idle.getByText('Your session has ended').waitFor()
})
