import t from 'tap'
import { devices, faultsOf, picture, skip, webApp } from '../helpers/browser.ts'
import { clientSecret, peopleProvider } from '../helpers/oidc.ts'

/** The way to an issuer on another site, and back, in a real browser: localhost is another site than 127.0.0.1. */

const oidc = await peopleProvider(t, { 'carol-5': { name: 'Carol Reyes', groups: ['leads'] }, 'eve-9': { name: 'Eve', groups: [] } })
const rules = [{ when: { groups: 'leads' }, tenant: 'default', agent: { claim: 'sub' }, scopes: ['approve', 'operate', 'status'] }]

t.test('a person signs in, decides, and signs out', { skip }, async t => {
  const ISSUERS = JSON.stringify([{ issuer: oidc.url, sign_in: { client_id: 'handoff', client_secret: clientSecret, label: 'Sign in with Acme', rules } }])
  const service = await webApp(t, { ISSUERS })
  await oidc.register(service.address)
  oidc.person = 'carol-5'
  const id = await service.ask({ task: 'Delete the reports' })
  for (const [name, device] of Object.entries(devices)) {
    const page = await service.visitor(device)
    const faults = faultsOf(page)
    await page.goto(`/approvals/${id}`)
    await picture(page, `sign-in-issuer-${name}`)
    await page.getByRole('button', { name: 'Sign in with Acme' }).click()
    await page.waitForURL(`${service.address}/approvals/${id}`)
    t.match(await page.locator('header').innerText(), /carol-5/)
    // A link on another site leads to the page of who is signed in.
    await page.goto(`${oidc.url}/.well-known/openid-configuration`)
    await page.evaluate(`location.href = '${service.address}/approvals'`)
    await page.waitForURL(`${service.address}/approvals`)
    t.match(await page.locator('header').innerText(), /carol-5/)
    // The open list is refused before the browser is on its way to the issuer.
    await page.route('**/approvals/sign-out', async route => {
      const refused = page.waitForResponse(response => response.status() === 401)
      const answer = await route.fetch({ maxRedirects: 0 })
      await service.ask({ task: 'Delete more' })
      await (await refused).finished()
      await route.fulfill({ response: answer })
    })
    await page.getByRole('button', { name: 'Sign out' }).click()
    // The issuer asks whether to sign out there, too.
    await page.waitForURL(`${oidc.url}/session/end**`)
    await page.getByRole('button', { name: /Yes/ }).click()
    await page.waitForURL(`${service.address}/approvals/sign-in**`)
    // The provider's own pages load a font.
    t.strictSame(faults.filter(fault => !fault.startsWith('Failed to load')), [], 'the policy refuses nothing')
  }
})

t.test('what was typed survives a session that ended: the sign-in is in another window', { skip }, async t => {
  const ISSUERS = JSON.stringify([{ issuer: oidc.url, sign_in: { client_id: 'handoff', client_secret: clientSecret, label: 'Sign in with Acme', rules } }])
  const service = await webApp(t, { ISSUERS })
  await oidc.register(service.address)
  oidc.person = 'carol-5'
  const id = await service.ask({ task: 'Delete the reports' })
  const page = await service.visitor(devices.phone)
  await page.goto(`/approvals/${id}`)
  await page.getByRole('button', { name: 'Sign in with Acme' }).click()
  await page.waitForURL(`${service.address}/approvals/${id}`)
  await page.locator('textarea[name=note]').first().fill('typed by hand')
  await page.context().clearCookies({ name: 'handoff_session' })
  await page.getByRole('button', { name: 'Approve' }).first().click()
  await page.getByText('Your session has ended').waitFor()
  await picture(page, 'sign-in-issuer-kept')
  const [other] = await Promise.all([page.context().waitForEvent('page'), page.getByRole('button', { name: 'Sign in with Acme' }).click()])
  await other.waitForURL(`${service.address}/approvals/${id}`)
  await page.getByRole('button', { name: 'I am signed in: go on' }).click()
  await page.locator('textarea[name=note]').first().waitFor()
  t.equal(await page.locator('textarea[name=note]').first().inputValue(), 'typed by hand')
  t.match((await service.call('alice', 'GET', `/api/status/${id}`)).json(), { approval: { state: 'waiting' } })
  oidc.person = 'eve-9'
  const visitor = await service.visitor(devices.phone)
  await visitor.goto('/console')
  await visitor.getByRole('button', { name: 'Sign in with Acme' }).click()
  await visitor.getByRole('heading', { name: 'Nobody let you in here' }).waitFor()
  await picture(visitor, 'sign-in-issuer-nobody')
  t.match(await visitor.locator('main').innerText(), /signed you in as Eve \(eve-9\)/)
})
