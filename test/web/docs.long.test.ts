import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { secrets } from '../helpers/app.ts'
import { devices, faultsOf, picture, skip, webApp } from '../helpers/browser.ts'
import { scratchDir } from '../helpers/processes.ts'
import { ofOneReplica } from '../helpers/through.ts'

/** The first page, and the one that shows the OpenAPI document, in a browser. */

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

t.test('the commands on the first page work when pasted', { skip: skip || ofOneReplica }, async t => {
  const { visitor, call, address } = await webApp(t)
  const folder = await scratchDir(t)
  await mkdir(join(folder, '.data'))
  await writeFile(join(folder, '.data/agent.key'), `${secrets.alice}\n`)
  const page = await visitor()
  await page.goto('/')
  const script = (await page.locator('pre:not(.program)').allInnerTexts()).join('\n')
  // Whoever has no Claude Code sees what it would be told. Other tests install the clients, and serve an inbox.
  const { stdout } = await promisify(execFile)('sh', ['-euc', `claude() { printf '\\n%s' "$@"; }\nnpm() { :; }\npip() { :; }\nnpx() { :; }\n${script.replaceAll('\ncurl ', '\necho; curl ')}`], { cwd: folder })
  const [id, caught, done, status, ...claude] = stdout.split('\n').filter(line => line !== '')
  t.match(JSON.parse(caught!), { handoff_id: id, status: 'caught', task: String })
  t.match(JSON.parse(done!), { handoff_id: id, status: 'done' })
  t.match(JSON.parse(status!), { handoff_id: id, status: 'done', result: {} })
  t.strictSame(claude, ['mcp', 'add', '--transport', 'http', 'handoff', `${address}/mcp`, '--header', `Authorization: Bearer ${secrets.alice}`])
  t.equal((await call('alice', 'POST', new URL(claude[5]!).pathname, { jsonrpc: '2.0', id: 1, method: 'ping' })).statusCode, 200)
})

t.test('every link of the first page works, and it fits its window', { skip }, async t => {
  const { visitor } = await webApp(t)
  for (const [name, device] of Object.entries(devices)) {
    const page = await visitor(device)
    const faults = faultsOf(page)
    await page.goto('/')
    await picture(page, `front-${name}`)
    t.equal(await page.evaluate('document.documentElement.scrollWidth'), await page.evaluate('innerWidth'), `${name}: nothing is cut off`)
    const links = await page.locator('main a').evaluateAll(all => all.map(one => (one as any).href as string))
    t.ok(links.length >= 6)
    // Not by page.goto: the browser would download llms.txt, which it can't display.
    for (const link of links) t.equal((await page.request.get(link)).status(), 200, link)
    t.strictSame(faults, [])
  }
})
