import t from 'tap'
import { secrets } from '../helpers/app.ts'
import { barriers } from '../helpers/barriers.ts'
import { devices, signIn, skip, webApp } from '../helpers/browser.ts'
import { isWhole } from '../helpers/extent.ts'

for (const colorScheme of ['light', 'dark'] as const) {
  t.test(`axe-core finds no barrier, ${colorScheme}`, { skip }, async t => {
    const { ask, visitor, call } = await webApp(t, { APPROVER_KEYS: `carol:${secrets.approver},alice:alices-approver-key-01` })
    const terms = { work_within: 60, heartbeat_within: 30, delay: 60, max_attempts: 3, result_schema: { title: 'x'.repeat(5000), properties: { a: {} } } }
    const rich = { output: { a: [1, 'two', null], large: 'x '.repeat(40_000), hidden: '\u202e' }, context: { b: {} }, constraints: 'c' }
    const ids = [await ask({ task: 'wait\u200b', ...rich, ...terms }), await ask({ task: 'decided', ...rich }), await ask({ task: 'third' })]
    await call('approver', 'POST', `/api/reject/${ids[1]}`, { note: 'no' })
    const failed = await ask({ task: 'fails', max_attempts: 2, retry_delay: 0 })
    await call('approver', 'POST', `/api/approve/${failed}`)
    await call('bob', 'GET', `/api/catch/${failed}`)
    const { reissued_as: next } = (await call('bob', 'POST', `/api/fail/${failed}`, { error: { message: 'no disk', code: 'E' } })).json()
    // The short form has each device and each scheme once.
    const short = colorScheme === 'light' ? 'desk' : 'phone'
    for (const [name, device] of Object.entries(devices).filter(([name]) => isWhole || name === short)) {
      const page = await visitor({ ...device, colorScheme })
      const clean = async (what: string) => t.strictSame(await barriers(page), [], `${name}: ${what}`)
      await page.goto('/')
      await clean('the first page')
      await page.goto('/approvals/sign-in?ended=1')
      await clean('sign-in')
      await signIn(page)
      await clean('list')
      await page.goto(`/approvals?decided=${ids[1]}`)
      await page.goto(`/approvals/${ids[0]}`)
      for (const folded = page.locator('details:not([open]) > summary'); await folded.count() > 0;) await folded.first().click()
      await clean('one')
      await page.getByRole('button', { name: 'Reject', exact: true }).click()
      await page.getByText('say why').waitFor()
      await clean('a note that is missing')
      await page.goto(`/approvals/${ids[1]}`)
      await clean('what stands')
      for (const id of [failed, next]) {
        await page.goto(`/approvals/${id}`)
        await page.locator('.terms a').waitFor()
        await clean('an attempt')
      }
      await page.goto('/approvals/nothing')
      await clean('nothing here')
    }
    const page = await visitor({ ...devices.phone, colorScheme })
    await page.goto('/approvals')
    await signIn(page)
    await page.goto(`/approvals/${ids[2]}`)
    await page.getByRole('button', { name: 'Approve', exact: true }).click()
    await page.getByText('You approved').waitFor()
    t.strictSame(await barriers(page), [], 'after a decision')
  })
}
