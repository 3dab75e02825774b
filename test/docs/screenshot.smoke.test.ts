/** The screenshots in the manual. SCREENSHOT=write npm test -- test/docs/screenshot.smoke.test.ts makes them anew. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import type { Test } from 'tap'
import { secrets } from '../helpers/app.ts'
import { signIn, skip, webApp } from '../helpers/browser.ts'
import { readPage } from '../helpers/pages.ts'
import { projectRoot } from '../helpers/service.ts'

const handoff = {
  task: 'Refund the three customers who were charged twice on 1 November.\nThe second charge only. Write to each of them when it is done.',
  constraints: 'At most €500 in all. No vouchers.',
  output: { refunds: { '2026-11-0417': 129.5, '2026-11-0533': 84.25, '2026-11-0558': 29.9 }, total: 243.65 },
  context: { ticket: 'BILL-2381' },
}

t.test('README.md shows the page as it is', { skip }, async t => {
  const { ask, approver, setClock } = await webApp(t, { API_KEYS: `billing:${secrets.alice}`, APPROVER_KEYS: `carol:${secrets.approver}` })
  const now = Date.now()
  await setClock(now - 7 * 60_000)
  const id = await ask({ ...handoff, expires_in: 4 * 3600 })
  await setClock(now)
  const page = await approver({ viewport: { width: 760, height: 860 }, deviceScaleFactor: 1.25, colorScheme: 'light' })
  await page.goto(`/approvals/${id}`)
  await page.getByRole('heading', { name: 'Handoff from billing' }).waitFor()
  for (const text of ['waiting for 7 min', 'Refund the three customers', 'At most €500', '243.65', 'BILL-2381']) t.ok(await page.getByText(text).first().isVisible(), text)
  t.ok(await page.getByRole('button', { name: 'Approve' }).isVisible())
  await keep(t, page, 'docs/images/approval.png', 'README.md')
})

t.test('README.md shows on a phone what waits for people', { skip }, async t => {
  const { ask, call, pass, visitor, setClock } = await webApp(t, { API_KEYS: `billing:${secrets.alice},writer:${secrets.bob}`, APPROVER_KEYS: `carol:${secrets.approver}` })
  const now = Date.now()
  await setClock(now - 34 * 60_000)
  const decided = await ask({ task: 'Write to the customer that the parcel is on its way.' })
  await setClock(now - 21 * 60_000)
  await call('approver', 'POST', `/api/approve/${decided}`)
  await setClock(now - 12 * 60_000)
  await ask({ task: 'Refund the three customers who were charged twice on 1 November.', to: 'refunds', expires_in: 4 * 3600 })
  await setClock(now - 7 * 60_000)
  const caught = await pass({ task: 'Pay what is due this week.', to: 'writer', labels: { run: '42' } })
  await call('bob', 'GET', `/api/catch/${caught}`)
  await call('bob', 'POST', `/api/ask/${caught}`, { question: 'Which account do I pay invoice 2026-118 from?', expires_in: 3 * 3600 })
  await setClock(now - 2 * 60_000)
  await ask({ task: 'Publish the notes of release 4.2.', labels: { run: '43' }, expires_in: 24 * 3600 })
  await setClock(now)
  const page = await visitor({ viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true, deviceScaleFactor: 1.5, colorScheme: 'light' })
  await page.goto('/approvals')
  await signIn(page, secrets.approver)
  t.ok(await page.getByText('Which account do I pay').isVisible(), 'questions come first')
  await page.getByRole('link', { name: 'Approvals 2' }).click()
  await page.getByRole('checkbox', { name: 'Refund the three' }).check()
  for (const text of ['2 handoffs wait', '1 ticked.']) t.ok(await page.getByText(text).first().isVisible(), text)
  t.ok(await page.getByRole('button', { name: 'Approve' }).isVisible())
  await keep(t, page, 'docs/images/waiting.png', 'README.md')
})

t.test('docs/console.md shows the first page as it is', { skip }, async t => {
  const { call, pass, visitor, setClock } = await webApp(t, { API_KEYS: `planner:${secrets.alice},writer:${secrets.bob}`, OPERATOR_KEYS: `olga:${secrets.operator}`, EVENTS_RETENTION: '3600' })
  const now = Date.now()
  const times = async (count: number, what: () => Promise<unknown>) => { for (let n = 0; n < count; n++) await what() }
  await setClock(now - 34 * 60_000)
  await times(5, () => pass({ to: 'billing' }))
  await setClock(now - 12 * 60_000)
  await times(12, () => pass({ to: 'writer' }))
  await times(7, () => pass({ to: 'reviewer' }))
  await setClock(now - 4 * 60_000)
  await times(3, async () => {
    const { items: [{ handoff_id: id }] } = (await call('bob', 'POST', '/api/catch', { inbox: 'writer' })).json()
    await call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'The disk is full.', code: 'disk_full' }, retry: false })
  })
  await times(5, () => call('bob', 'POST', '/api/catch', { inbox: 'reviewer' }))
  await times(2, () => pass({ to: 'refunds', require_human: true }))
  await setClock(now)
  await call('operator', 'PUT', '/api/inboxes/billing', { paused: true })
  await call('operator', 'PUT', '/api/inboxes/reviewer', { max_caught: 5 })
  const page = await visitor({ viewport: { width: 1000, height: 776 }, colorScheme: 'light' })
  await page.goto('/console')
  await signIn(page, secrets.operator)
  for (const text of ['5 things need a look', '3 handoffs failed', '5 of 5', '34 min']) t.ok(await page.getByText(text).first().isVisible(), text)
  await keep(t, page, 'docs/images/console.png', 'docs/console.md')
})

t.test('docs/console.md shows the page of a run as it is', { skip }, async t => {
  const { call, pass, visitor, setClock } = await webApp(t, { API_KEYS: `planner:${secrets.alice},writer:${secrets.bob}`, OPERATOR_KEYS: `olga:${secrets.operator}` })
  const now = Date.now()
  const labels = { run: '42' }
  await setClock(now - 3 * 60_000)
  const parts = []
  for (const what of ['sales', 'stock', 'returns']) parts.push(await pass({ to: 'writer', task: `Report on ${what}`, labels }))
  const last = await pass({ to: 'editor', task: 'Write the summary', labels, after: parts, after_need: 'ended' })
  await pass({ to: 'mailer', task: 'Send the report', labels, after: [last] })
  const next = async () => (await call('bob', 'POST', '/api/catch', { inbox: 'writer' })).json().items[0].handoff_id as string
  await setClock(now)
  await call('bob', 'POST', `/api/done/${await next()}`, { output: {} })
  await call('bob', 'POST', `/api/fail/${await next()}`, { error: { message: 'The archive is not readable.', code: 'unreadable' }, retry: false })
  await next()
  const page = await visitor({ viewport: { width: 1000, height: 776 }, colorScheme: 'light' })
  await page.goto('/console/run?label=run&value=42')
  await signIn(page, secrets.operator)
  for (const text of ['Write the summary', 'Send the report', 'Report on stock']) t.ok(await page.locator('svg.graph a', { hasText: text }).isVisible(), text)
  await keep(t, page, 'docs/images/run.png', 'docs/console.md')
})

/** Makes the picture anew if that is wanted, and holds the one that is kept to what it shows now. */
async function keep (t: Test, page: Page, kept: string, manual: string): Promise<void> {
  const file = join(projectRoot, kept)
  const shot = await page.screenshot({ ...process.env.SCREENSHOT === 'write' && { path: file } })
  const sizeOf = (png: Buffer) => [png.readUInt32BE(16), png.readUInt32BE(20)]
  t.strictSame(sizeOf(shot), sizeOf(readFileSync(file)), 'of the same size')
  t.ok(statSync(file).size < 100_000)
  t.ok(readPage(manual).links.some(link => kept.endsWith(link)), `${manual} has it`)
}
