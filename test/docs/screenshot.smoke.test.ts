/** The screenshot in README.md. SCREENSHOT=write npm test -- test/docs/screenshot.smoke.test.ts makes it anew. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { secrets } from '../helpers/app.ts'
import { skip, webApp } from '../helpers/browser.ts'
import { readPage } from '../helpers/pages.ts'
import { projectRoot } from '../helpers/service.ts'

const kept = 'docs/images/approval.png'
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
  const page = await approver({ viewport: { width: 760, height: 860 }, deviceScaleFactor: 1.4, colorScheme: 'light' })
  await page.goto(`/approvals/${id}`)
  await page.getByRole('heading', { name: 'Handoff from billing' }).waitFor()
  for (const text of ['waiting for 7 min', 'Refund the three customers', 'At most €500', '243.65', 'BILL-2381']) t.ok(await page.getByText(text).isVisible(), text)
  t.ok(await page.getByRole('button', { name: 'Approve' }).isVisible())
  const path = process.env.SCREENSHOT === 'write' ? join(projectRoot, kept) : undefined
  const shot = await page.screenshot({ ...path !== undefined && { path } })
  const sizeOf = (png: Buffer) => [png.readUInt32BE(16), png.readUInt32BE(20)]
  t.strictSame(sizeOf(shot), sizeOf(readFileSync(join(projectRoot, kept))), 'of the same size')
  t.ok(statSync(join(projectRoot, kept)).size < 100_000)
  t.ok(readPage('README.md').links.includes(kept), 'README.md has it')
})
