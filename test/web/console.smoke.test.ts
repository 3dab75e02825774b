/** The console in a browser: on each device and scheme, by keyboard, and how it keeps itself up to date. */
import t from 'tap'
import { secrets } from '../helpers/app.ts'
import { barriers } from '../helpers/barriers.ts'
import { devices, faultsOf, signIn, skip, webApp } from '../helpers/browser.ts'
import type { WebApp } from '../helpers/browser.ts'

/** Something of all that there can be in an inbox, and texts that could break a page. */
async function fill ({ call, pass }: WebApp): Promise<void> {
  const words = `\u202e<b>${'w'.repeat(190)}`
  await call('operator', 'PUT', '/api/inboxes/writer', { max_caught: 3, max_pending: 20 })
  for (let n = 0; n < 4; n++) await pass({ to: 'writer', task: words, labels: { run: '4'.repeat(64), team: 'red' } })
  await pass({ to: 'writer', delay: 3600 })
  await pass({ to: 'writer', require_human: true })
  await pass({ to: `${'long-inbox-name-'.repeat(3)}and-more` })
  const { items: [one] } = (await call('bob', 'POST', '/api/catch', { inbox: 'writer' })).json()
  await call('bob', 'POST', `/api/fail/${one.handoff_id}`, { error: { message: words, code: 'c'.repeat(64) }, retry: false })
  const { items: [two] } = (await call('bob', 'POST', '/api/catch', { inbox: 'writer' })).json()
  await call('bob', 'POST', `/api/heartbeat/${two.handoff_id}`, { progress: { message: words, percent: 45 } })
  await call('operator', 'PUT', '/api/inboxes/writer', { paused: true })
}

for (const [name, colorScheme] of [['desk', 'light'], ['phone', 'dark']] as const) {
  t.test(`an operator sees what is wrong and steers an inbox, at a ${name}, ${colorScheme}`, { skip }, async t => {
    const service = await webApp(t)
    await fill(service)
    const page = await service.visitor({ ...devices[name], colorScheme })
    const faults = faultsOf(page)
    const clean = async (what: string) => {
      t.strictSame(await barriers(page), [], what)
      t.equal(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), 0, `${what}: nothing hangs out`)
    }
    await page.goto('/console')
    await clean('sign-in')
    await signIn(page, secrets.operator)
    await page.getByText('things need a look').waitFor()
    await clean('overview')
    await page.getByRole('rowheader', { name: 'writer' }).getByRole('link').click()
    await page.getByRole('heading', { name: 'writer' }).waitFor()
    await page.getByText('Limits', { exact: true }).click()
    await clean('inbox')
    t.match(await page.getByRole('table', { name: 'Caught' }).getByRole('cell').allInnerTexts(), [/bob/, /./, /ago/, /45 %/], 'a table for screen readers too')
    await page.getByLabel('Caught at most').fill('many')
    await page.keyboard.press('Enter')
    await page.getByText('type a whole number').waitFor()
    await clean('a limit that is none')
    await page.getByRole('button', { name: 'Resume' }).press('Enter')
    await page.getByRole('button', { name: 'Pause' }).waitFor()
    await page.getByRole('link', { name: 'Cancel what is pending' }).press('Enter')
    await page.getByText('can’t be taken back').waitFor()
    await clean('it asks first')
    await page.getByLabel('Reason').fill('by mistake')
    await page.getByRole('button', { name: 'Cancel 4' }).press('Enter')
    await page.getByText('4 handoffs were cancelled').waitFor()
    await clean('cancelled')
    await page.getByRole('link', { name: 'Reissue what failed' }).press('Enter')
    await page.getByRole('button', { name: 'Reissue 1' }).press('Enter')
    await page.getByText('One handoff was reissued').waitFor()
    const before = [await service.caught(), await service.pass({ to: 'reviewer' }), await service.pass()]
    const after = await service.pass({ after: before, to: 'writer' })
    await service.call('bob', 'POST', `/api/done/${before[0]}`, {})
    await service.pass({ after: [after] })
    await page.goto(`/console/handoffs/${after}`)
    await page.getByRole('heading', { name: 'In order' }).waitFor()
    await clean('in order')
    await page.screenshot({ path: `.cache/screenshots/console-order-${name}.png`, fullPage: true })
    t.strictSame(faults, ['Failed to load resource: the server responded with a status of 400 (Bad Request)'], 'no other fault in any page')
  })
}

t.test('it keeps itself up to date, keeps the focus and what is being typed, and says when it can’t', { skip }, async t => {
  const service = await webApp(t)
  const { pass } = service
  await pass({ to: 'writer' })
  const page = await service.visitor()
  await page.goto('/console')
  await signIn(page, secrets.operator)
  const link = page.getByRole('rowheader', { name: 'writer' }).getByRole('link')
  await link.focus()
  await pass({ to: 'reader' })
  await page.getByRole('rowheader', { name: 'reader' }).waitFor()
  t.equal(await page.evaluate('document.activeElement.id'), 'row-writer', 'the focus stays')
  t.equal(await page.locator('[aria-live], [role=status]:visible').count(), 0, 'screen readers aren’t told each time')
  await link.press('Enter')
  await page.getByText('Limits', { exact: true }).click()
  await page.getByLabel('Pending at most').fill('12')
  await pass({ to: 'writer' })
  const pending = page.getByRole('table', { name: 'Pending' }).getByRole('row')
  await pending.nth(2).waitFor()
  t.equal(await page.getByLabel('Pending at most').inputValue(), '12', 'what is typed stays')
  await page.route('**/console/**', route => route.abort())
  await page.getByText('This page isn’t up to date').waitFor()
  await page.unroute('**/console/**')
  await page.getByText('This page isn’t up to date').waitFor({ state: 'hidden' })
})
