import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { secrets } from '../helpers/app.ts'
import { devices, faultsOf, picture, skip, webApp } from '../helpers/browser.ts'
import { scratchDir } from '../helpers/processes.ts'
import { ofOneReplica } from '../helpers/through.ts'

t.test('the first call on the page works when pasted', { skip: skip || ofOneReplica }, async t => {
  const { visitor, call, address } = await webApp(t)
  const folder = await scratchDir(t)
  await mkdir(join(folder, '.data'))
  await writeFile(join(folder, '.data/agent.key'), `${secrets.alice}\n`)
  const page = await visitor()
  await page.goto('/')
  const script = (await page.locator('pre').allInnerTexts()).join('\n')
  const { stdout } = await promisify(execFile)('sh', ['-euc', script.replace('curl ', 'curl -s ')], { cwd: folder })
  const { handoff_id: id, pickup_url: link } = JSON.parse(stdout)
  t.equal(link, `${address}/api/catch/${id}`)
  t.equal((await call('bob', 'GET', `/api/catch/${id}`)).statusCode, 200)
})

t.test('every link of the page works, and the page fits its window', { skip }, async t => {
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
