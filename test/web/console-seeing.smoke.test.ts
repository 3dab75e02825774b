/** The console's pages of runs, what has ended, workers, webhooks, keys, and a reader's page, in a browser. */
import t from 'tap'
import { callerOf } from '../../src/core/model.ts'
import { barriers } from '../helpers/barriers.ts'
import { isWhole } from '../helpers/extent.ts'
import { devices, faultsOf, picture, signIn, skip, webApp } from '../helpers/browser.ts'
import type { WebApp } from '../helpers/browser.ts'
import { keepSecret } from '../helpers/log-sink.ts'

const reader = 'reader-and-operator-0123456789'
keepSecret(reader)
const env = {
  EVENTS_RETENTION: '86400',
  WEBHOOK_SECRET: 'the-secret-of-webhooks',
  WEBHOOK_ALLOW: '127.0.0.1',
}
const keys = [{ secret: reader, caller: callerOf('default', 'rita', ['operate', 'status', 'approve', 'read', 'webhooks']) }]

const hostile = '<b>bold</b> \u202eright to left\u202c and عنوان'

/** A run with everything in it. @returns ids */
async function fill ({ call, pass }: WebApp): Promise<{ done: string, root: string, asked: string }> {
  const labels = { run: 'night/29', team: 'red' }
  const next = async (inbox: string) => (await call('bob', 'POST', '/api/catch', { inbox }, { 'Handoff-Worker': 'host-7:4211' })).json().items[0].handoff_id as string
  const root = await pass({ to: 'planner', task: 'Plan the report for November\nIn detail.', labels })
  await next('planner')
  const parts: string[] = []
  for (const part of ['sales', 'stock', 'returns', hostile]) parts.push(await pass({ to: 'writer', task: `Write about ${part}`, labels, output: { lines: ['first\nsecond', 2], part }, context: { why: 'Because.' } }))
  const last = await pass({ to: 'editor', task: 'Put the parts together', labels, after: parts })
  await pass({ to: 'mailer', task: 'Send it', labels, after: [last] })
  const done = await next('writer')
  await call('bob', 'POST', `/api/done/${done}`, { output: { text: 'Sales rose.\nBy a lot.', pages: 3 } })
  const failed = await next('writer')
  await call('bob', 'POST', `/api/fail/${failed}`, { error: { message: `No numbers ${hostile}`, code: 'no_data', data: { tried: 3 } }, retry: false })
  const asked = await next('writer')
  await call('bob', 'POST', `/api/ask/${asked}`, { question: 'Which returns?', expires_in: 3600 })
  await call('bob', 'POST', `/api/heartbeat/${root}`, { progress: { message: 'half', percent: 50 } })
  await pass({ to: 'writer', task: 'Later', delay: 3600 })
  await pass({ to: 'writer', task: 'For a person', require_human: true })
  await call('operator', 'PUT', '/api/inboxes/writer', { max_caught: 5 })
  await pass({ task: 'without anything' })
  const handoff = { task: `Report for {{scheduled_for}} ${hostile}`, to: 'writer', labels: { team: 'red' } }
  await call('alice', 'PUT', '/api/schedules/nightly-report', { cron: '30 2 * * mon-fri', timezone: 'America/Argentina/Buenos_Aires', overlap: 'allow', jitter: 600, handoff })
  await call('alice', 'PUT', '/api/schedules/each-ten-minutes', { every: 600, paused: true, handoff })
  await call('alice', 'POST', '/api/schedules/nightly-report/run')
  const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString()
  await call('alice', 'POST', '/api/schedules/nightly-report/backfill', { since: day(8), until: day(1) })
  await call('operator', 'PUT', '/api/inboxes/writer', { max_pending: 1 })
  await call('alice', 'POST', '/api/schedules/nightly-report/run')
  await call('operator', 'PUT', '/api/inboxes/writer', { max_pending: null })
  return { done, root, asked }
}

const all = [['desk', 'light'], ['phone', 'dark'], ['desk', 'dark'], ['phone', 'light']] as const
for (const [name, colorScheme] of all.filter((_, at) => isWhole || at < 2)) {
  t.test(`what there is to see, at a ${name}, ${colorScheme}`, { skip }, async t => {
    const service = await webApp(t, env, [], keys)
    const { done, root } = await fill(service)
    const page = await service.visitor({ ...devices[name], colorScheme, timezoneId: 'Asia/Kolkata' })
    const faults = faultsOf(page)
    const clean = async (what: string) => {
      await picture(page, `seeing-${what.replaceAll(' ', '-')}-${name}-${colorScheme}`)
      t.strictSame(await barriers(page), [], what)
      t.equal(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'), 0, `${what}: nothing hangs out`)
    }
    await page.goto('/console')
    await signIn(page, reader)
    await page.getByRole('heading', { name: 'Memory' }).waitFor()
    await clean('overview')
    await page.getByRole('link', { name: 'Runs' }).click()
    await page.getByRole('link', { name: 'night/29' }).click()
    await page.getByRole('heading', { name: 'night/29' }).waitFor()
    await page.getByRole('link', { name: 'All that has ended of it' }).click({ trial: true })
    await page.evaluate('scrollTo(0, 0)')
    t.equal(await page.locator('svg.graph rect').count(), 7, 'all are drawn')
    t.equal(await page.locator('svg.graph a', { hasText: 'Put the parts' }).count(), 1, 'with their titles')
    await clean('run')
    await page.getByRole('link', { name: 'Stop this run' }).press('Enter')
    await page.getByText('can’t be taken back').waitFor()
    await clean('stop')
    await page.getByRole('button', { name: 'Stop the run' }).press('Enter')
    await page.getByText(/(was|were) cancelled/).waitFor()
    await clean('stopped')
    await page.getByRole('link', { name: 'All that has ended of it' }).press('Enter')
    await page.getByRole('heading', { name: 'What has ended' }).waitFor()
    await clean('ended')
    const ended = await page.locator('.handoffs > li').count()
    t.ok(ended > 2)
    // Times that are typed are the reader's: half past five there is midnight in UTC.
    const hence = (minutes: number) => `${new Date(Date.now() + (5.5 * 60 + minutes) * 60_000).toISOString().slice(0, 16)}:30`
    for (const [from, upto, count] of [[-60, 60, ended], [60, 120, 0], [-120, -60, 0]] as const) {
      const [since, until] = [hence(from), hence(upto)]
      await page.getByLabel('From').fill(since)
      await page.getByLabel('Until').fill(until)
      const shown = page.waitForURL(url => url.searchParams.get('since') === since)
      await page.getByRole('button', { name: 'Filter' }).press('Enter')
      await shown
      await page.getByText('your time, UTC+05:30').first().waitFor()
      t.equal(await page.locator('.handoffs > li').count(), count)
      t.strictSame([await page.getByLabel('From').inputValue(), await page.getByLabel('Until').inputValue()], [since, until], 'as it was typed')
    }
    await clean('ended by time')
    await page.goto(`/console/handoffs/${done}`)
    await page.getByText('Sales rose.').waitFor()
    await clean('handoff done')
    await page.goto(`/console/handoffs/${root}`)
    await page.getByText('host-7:4211').waitFor()
    await clean('handoff caught')
    await page.goto('/console/inboxes/writer')
    await page.getByRole('table', { name: 'Workers' }).waitFor()
    await clean('inbox')
    await page.goto('/console/inboxes/writer/workers')
    await clean('workers')
    await page.goto('/console/activity')
    const [event, hour] = [page.locator('.history time').first(), page.locator('.scale time').last()]
    const there = (await event.getAttribute('datetime'))!
    const time = new Date(there).toLocaleTimeString('en-US', { hour: '2-digit', minute: '2-digit', second: '2-digit', timeZone: 'Asia/Kolkata' })
    t.strictSame([await event.innerText(), await event.getAttribute('title')], [time, `${there.slice(0, 19).replace('T', ' at ')} UTC`], 'times of day are the reader’s too')
    t.match(await hour.innerText(), /^\d\d:\d\d [AP]M GMT\+5:30$/)
    await clean('activity')
    await page.goto('/console/failed')
    await clean('failed')
    await page.goto('/console/schedules')
    await page.getByText('paused').waitFor()
    await clean('schedules')
    await page.getByRole('link', { name: 'nightly-report' }).press('Enter')
    await page.getByText('inbox_full').waitFor()
    await clean('schedule')
    await page.getByRole('link', { name: 'Run it now' }).press('Enter')
    await page.getByText('can’t be taken back').waitFor()
    await clean('schedule run')
    await page.getByRole('button', { name: 'Run it now' }).press('Enter')
    await page.getByText('Its handoff was passed').waitFor()
    await page.getByRole('button', { name: 'Pause' }).press('Enter')
    await page.getByRole('button', { name: 'Resume' }).waitFor()
    await clean('schedule paused')
    await page.goto('/console/keys')
    await page.getByRole('rowheader', { name: 'olga' }).waitFor()
    await clean('keys')
    await page.goto('/console/webhooks')
    await page.getByText('Make a webhook').first().press('Enter')
    await clean('webhooks')
    await page.getByLabel('Address').fill('http://127.0.0.1:9/hook')
    await page.getByRole('button', { name: 'Make it' }).press('Enter')
    t.match(await page.locator('#secret').innerText(), /^whsec_/)
    await clean('webhook made')
    await page.getByRole('button', { name: 'Send a test' }).press('Enter')
    await page.getByText('A test is on its way').waitFor()
    await clean('webhook')
    await page.goto('/')
    await clean('first page')
    await page.goto('/docs#/handoffs/pass')
    await page.locator('#operations-handoffs-pass.is-open').waitFor()
    await picture(page, `seeing-docs-${name}-${colorScheme}`)
    t.equal(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'), 0, 'docs: nothing hangs out')
    await page.goto('/console/find?q=run:night/29')
    await clean('find')
    t.strictSame(faults, [], 'no fault in any page')
  })
}
