import t from 'tap'
import { secrets } from '../helpers/app.ts'
import { barriers } from '../helpers/barriers.ts'
import { devices, faultsOf, picture, signIn, skip, webApp } from '../helpers/browser.ts'
import type { WebApp } from '../helpers/browser.ts'
import { isWhole } from '../helpers/extent.ts'

/** Texts that could break a page. */
const hostile = { task: `<b>bold</b> \u202egnirts ${'long'.repeat(40)}`, labels: { run: '42', team: 'red' } }

/** Work in each state, and of each kind that the pages show. */
async function work ({ call, pass }: WebApp) {
  const agent = async (who: 'alice' | 'bob', path: string, body?: object) => (await call(who, 'POST', path, body)).json()
  const caught = async (more: object) => {
    const id = await pass(more)
    await call('bob', 'GET', `/api/catch/${id}`)
    return id
  }
  for (const [code, count] of [['timeout', 4], ['no_disk', 2]] as const) {
    for (let n = 0; n < count; n++) {
      const id = await caught({ task: `Write chapter ${n}`, to: n % 2 === 0 ? 'writer' : 'reviewer', labels: { run: String(n) } })
      await agent('bob', `/api/fail/${id}`, { error: { message: `No answer from the archive within 30 s, try ${n}`, code }, retry: false })
    }
  }
  const failed = await caught({ ...hostile, to: 'writer', max_attempts: 3, retry_delay: 0 })
  const { reissued_as: second } = await agent('bob', `/api/fail/${failed}`, { error: { message: hostile.task } })
  await call('bob', 'GET', `/api/catch/${second}`)
  await agent('bob', `/api/heartbeat/${second}`, { progress: { message: 'Half of it is written', percent: 50 } })
  const held = await caught({ task: 'Read the proofs', to: 'reviewer', heartbeat_within: 600, work_within: 3600 })
  await agent('bob', `/api/heartbeat/${held}`, { progress: { percent: 20 } })
  await agent('alice', `/api/cancel/${held}`, { reason: 'Not needed any more.' })
  const pending = await pass({ task: 'Publish it', to: 'publisher', parent: undefined, require_human: true })
  await call('approver', 'POST', `/api/approve/${pending}`, { note: 'Fine.' })
  const declined = await caught({ task: 'Translate it' })
  await agent('bob', `/api/decline/${declined}`, { reason: 'Not my field.' })
  return { failed, second, held, pending, declined }
}

for (const colorScheme of ['light', 'dark'] as const) {
  t.test(`the console’s pages of handoffs, ${colorScheme}`, { skip }, async t => {
    const app = await webApp(t, { EVENTS_RETENTION: '86400' })
    const ids = await work(app)
    // The short form has each device and each scheme once.
    const short = colorScheme === 'light' ? 'desk' : 'phone'
    for (const [device, options] of Object.entries(devices).filter(([name]) => isWhole || name === short)) {
      const page = await app.visitor({ ...options, colorScheme })
      const faults = faultsOf(page)
      await page.goto('/console')
      await signIn(page, secrets.operator)
      for (const [name, path] of Object.entries({
        overview: '/console',
        failed: '/console/failed',
        'failed-filtered': '/console/failed?inbox=writer&error_code=timeout',
        'failed-redrive': '/console/failed/redrive?inbox=writer',
        activity: '/console/activity',
        agents: '/console/agents',
        handoff: `/console/handoffs/${ids.second}`,
        'handoff-failed': `/console/handoffs/${ids.failed}`,
        'handoff-held': `/console/handoffs/${ids.held}`,
        'handoff-pending': `/console/handoffs/${ids.pending}`,
        cancel: `/console/handoffs/${ids.held}/cancel`,
        reissue: `/console/handoffs/${ids.declined}/reissue`,
        find: '/console/find?q=run:42',
        'find-nothing': '/console/find?q=what%20is%20this',
      })) {
        await page.goto(path)
        await picture(page, `console-${device}-${colorScheme}-${name}`)
        t.strictSame(await barriers(page), [], `${device}: ${name}`)
        t.equal(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true, `${device}: nothing of ${name} hangs out`)
      }
      t.strictSame(faults, [], 'no fault in any page')
    }
  })
}

t.test('with the keyboard: find, choose, redrive; and the pages keep themselves up to date', { skip }, async t => {
  const app = await webApp(t)
  const ids = await work(app)
  const page = await app.approver(devices.desk, secrets.operator)
  const faults = faultsOf(page)
  await page.goto(`/console/handoffs/${ids.second}`)
  await page.locator('#standing', { hasText: 'caught' }).waitFor()
  await app.call('bob', 'POST', `/api/done/${ids.second}`)
  await page.locator('#standing', { hasText: 'done' }).waitFor()
  t.equal(await page.locator('#handoff[data-live]').count(), 0, 'what has ended is not asked for again')
  t.equal(await page.locator('#handoff').count(), 1)

  await page.goto('/console/agents')
  await page.locator(`#h-${ids.held}`).focus()
  const late = await app.caught({ task: 'Come later' })
  await page.locator(`#h-${late}`).waitFor()
  t.equal(await page.evaluate('document.activeElement.id'), `h-${ids.held}`, 'the focus stays where it was')

  await page.locator('#find').fill(ids.declined)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: ids.declined }).waitFor()

  await page.goto('/console/failed')
  const choice = page.getByRole('checkbox').first()
  await choice.focus()
  await page.keyboard.press('Space')
  const chosen = await choice.inputValue()
  await page.getByRole('button', { name: 'Redrive the chosen' }).focus()
  await page.keyboard.press('Enter')
  await page.getByText('One handoff was redriven.').waitFor()
  t.type((await app.call('alice', 'GET', `/api/status/${chosen}`)).json().reissued_as, 'string')

  await page.goto(`/console/handoffs/${ids.held}`)
  await page.getByRole('link', { name: 'Cancel…' }).press('Enter')
  await page.getByLabel('Reason').fill('Enough')
  await page.getByRole('button', { name: 'Take it away' }).press('Enter')
  await page.locator('#standing', { hasText: 'cancelled' }).waitFor()
  t.match((await app.call('alice', 'GET', `/api/status/${ids.held}`)).json(), { status: 'cancelled', cancel_reason: 'Enough', ended_by: 'olga' })
  t.strictSame(faults, [], 'no fault in any page')
})
