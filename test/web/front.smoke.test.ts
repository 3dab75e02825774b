import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { secrets } from '../helpers/app.ts'
import { devices, faultsOf, picture, skip, webApp } from '../helpers/browser.ts'
import { scratchDir } from '../helpers/processes.ts'
import { ofOneReplica } from '../helpers/through.ts'

t.test('the commands on the page work when pasted', { skip: skip || ofOneReplica }, async t => {
  const { visitor, call, address } = await webApp(t)
  const folder = await scratchDir(t)
  await mkdir(join(folder, '.data'))
  await writeFile(join(folder, '.data/agent.key'), `${secrets.alice}\n`)
  const page = await visitor()
  await page.goto('/')
  const script = (await page.locator('pre').allInnerTexts()).join('\n')
  // Whoever has no Claude Code sees what it would be told.
  const { stdout } = await promisify(execFile)('sh', ['-euc', `claude() { printf '\\n%s' "$@"; }\n${script.replaceAll('\ncurl ', '\necho; curl ')}`], { cwd: folder })
  const [id, caught, done, status, ...claude] = stdout.split('\n').filter(line => line !== '')
  t.match(JSON.parse(caught!), { handoff_id: id, status: 'caught', task: String })
  t.match(JSON.parse(done!), { handoff_id: id, status: 'done' })
  t.match(JSON.parse(status!), { handoff_id: id, status: 'done', result: {} })
  t.strictSame(claude, ['mcp', 'add', '--transport', 'http', 'handoff', `${address}/mcp`, '--header', `Authorization: Bearer ${secrets.alice}`])
  t.equal((await call('alice', 'POST', new URL(claude[5]!).pathname, { jsonrpc: '2.0', id: 1, method: 'ping' })).statusCode, 200)
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
