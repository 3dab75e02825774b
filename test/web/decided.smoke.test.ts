import t from 'tap'
import { secrets } from '../helpers/app.ts'
import { barriers } from '../helpers/barriers.ts'
import { devices, faultsOf, picture, signIn, skip, webApp } from '../helpers/browser.ts'

/** A person looks up what was decided, on a phone and at a desk. */

const hostile = `<img src=x onerror=alert(1)> \u202eevil ${'long'.repeat(60)}`

for (const colorScheme of ['light', 'dark'] as const) {
  t.test(`what was decided, ${colorScheme}`, { skip }, async t => {
    const app = await webApp(t)
    const now = Date.now()
    const decide = async (members: Record<string, unknown>, ago: number, who: 'approver' | 'approver2', verdict: 'approve' | 'reject', note: string) => {
      await app.setClock(now - ago * 60_000)
      const id = await app.ask(members)
      t.equal((await app.call(who, 'POST', `/api/${verdict}/${id}`, { note })).statusCode, 200)
      return id
    }
    await decide({ task: hostile, labels: { ['n'.repeat(32)]: 'v'.repeat(64) } }, 90, 'approver2', 'reject', `${hostile} ${'note '.repeat(200)}`)
    const refund = await decide({ task: 'Refund the three customers who were charged twice.', to: 'billing', labels: { run: '42' } }, 60, 'approver', 'approve', 'Checked with Kim.')
    await app.setClock(now - 5 * 60_000)
    const asked = await app.pass({ task: 'Pay the invoice.' })
    await app.call('bob', 'GET', `/api/catch/${asked}`)
    const { ask_id: ask } = (await app.call('bob', 'POST', `/api/ask/${asked}`, { question: 'Which account?' })).json()
    await app.call('approver', 'POST', `/api/answer/${asked}`, { ask_id: ask, answer: { account: 'never shown' } })
    await app.setClock(now)
    for (const [device, more] of Object.entries(devices)) {
      const page = await app.visitor({ ...more, colorScheme })
      const faults = faultsOf(page)
      await page.goto('/approvals')
      await signIn(page, secrets.approver)
      await page.getByRole('link', { name: 'All that was decided' }).click()
      await page.getByRole('heading', { name: 'What was decided' }).waitFor()
      await page.waitForLoadState()
      t.strictSame(await page.locator('.handoffs .status').allTextContents(), ['answered', 'approved', 'rejected'])
      t.ok(Number(await page.evaluate('document.documentElement.scrollWidth')) <= more.viewport.width, `${device}: nothing hangs out`)
      t.strictSame(await barriers(page), [], `${device}: it keeps nobody out`)
      await picture(page, `decided-${device}-${colorScheme}`)
      t.notMatch(await page.content(), 'never shown')
      await page.getByLabel('Decided by').fill('carol')
      await page.getByLabel('Decision').selectOption('approved')
      await page.getByRole('button', { name: 'Filter' }).click()
      await page.getByRole('link', { name: 'Show all' }).waitFor()
      t.strictSame(await page.locator('.handoffs a').evaluateAll(links => links.map(link => link.getAttribute('href'))), [`/approvals/${refund}`])
      const download = page.waitForEvent('download')
      await page.getByRole('link', { name: 'as a file' }).click()
      t.equal((await download).suggestedFilename(), 'decisions.csv')
      await page.getByLabel('Decided by').fill('<x>')
      await page.getByRole('button', { name: 'Filter' }).click()
      await page.getByText('So this shows all.').waitFor()
      t.strictSame(faults, [])
      await page.context().close()
    }
  })
}
