import t from 'tap'
import { secrets } from '../helpers/app.ts'
import { devices, faultsOf, picture, skip, webApp } from '../helpers/browser.ts'

/** The page that shows the OpenAPI document, in a browser. */

t.test('/docs is the service’s own page, and what it prefills for pass works', { skip }, async t => {
  const { visitor, call } = await webApp(t)
  const page = await visitor()
  const faults = faultsOf(page)
  await page.goto('/docs')
  await page.getByRole('heading', { name: 'Agent Handoff Service' }).waitFor()
  t.equal(await page.title(), 'Agent Handoff Service')
  t.notMatch(await page.locator('body').innerText(), /swagger|smartbear/i)
  await page.getByRole('button', { name: 'Authorize' }).first().click()
  await page.locator('.modal-ux input').fill(secrets.alice)
  await page.locator('.modal-ux').getByRole('button', { name: 'Apply credentials' }).click()
  await page.locator('.modal-ux').getByRole('button', { name: 'Close' }).first().click()
  const pass = page.locator('#operations-handoffs-pass')
  await pass.getByRole('button').first().click()
  await pass.getByRole('button', { name: 'Try it out' }).click()
  const sent = page.waitForResponse(response => response.url().endsWith('/api/pass'))
  await pass.getByRole('button', { name: 'Execute' }).click()
  const answer = await sent
  t.equal(answer.status(), 201)
  const { handoff_id: id } = await answer.json()
  t.equal((await call('bob', 'GET', `/api/catch/${id}`)).statusCode, 200)
  await pass.locator('.live-responses-table').waitFor()
  await picture(page, 'docs-tried')
  t.strictSame(faults, [])
})

t.test('/docs is dark where the system is, and follows it', { skip }, async t => {
  const { visitor } = await webApp(t)
  const page = await visitor({ colorScheme: 'dark' })
  const faults = faultsOf(page)
  await page.goto('/docs')
  await page.getByRole('heading', { name: 'Agent Handoff Service' }).waitFor()
  await page.locator('.opblock-summary-path').first().waitFor()
  /** Is it bright? By the mean of its colour's channels, of 255. */
  const isBright = async (selector: string, property: string) => {
    const colour: string = await page.evaluate(`getComputedStyle(document.querySelector('${selector}')).getPropertyValue('${property}')`)
    return colour.match(/\d+/g)!.slice(0, 3).reduce((sum, one) => sum + Number(one), 0) / 3 > 128
  }
  const look = async () => [await isBright('body', 'background-color'), await isBright('h1, h2', 'color'), await isBright('.opblock-summary-path', 'color')]
  t.strictSame(await look(), [false, true, true])
  await page.emulateMedia({ colorScheme: 'light' })
  await page.locator('html:not(.dark-mode)').waitFor()
  t.strictSame(await look(), [true, false, false])
  t.strictSame(faults, [])
})

t.test('/docs fits its window, dark and light', { skip }, async t => {
  const { visitor } = await webApp(t)
  for (const [name, device] of Object.entries(devices)) {
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await visitor({ ...device, colorScheme })
      const faults = faultsOf(page)
      for (const path of ['/docs', '/docs/']) {
        await page.goto(path)
        await page.getByRole('heading', { name: 'Agent Handoff Service' }).waitFor()
      }
      await picture(page, `docs-${name}-${colorScheme}`)
      t.equal(await page.evaluate('document.documentElement.scrollWidth'), await page.evaluate('innerWidth'), `${name}: nothing is cut off`)
      t.strictSame(faults, [])
      for (const other of ['problems', 'approvals/sign-in', '']) {
        await page.goto(`/${other}`)
        await picture(page, `${other.replace('/', '-') || 'front'}-${name}-${colorScheme}`)
        t.equal(await page.evaluate('document.documentElement.scrollWidth'), await page.evaluate('innerWidth'), `${name}: nothing of /${other} is cut off`)
      }
      await page.close()
    }
  }
})
