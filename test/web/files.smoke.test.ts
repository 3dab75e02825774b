import t from 'tap'
import { callerOf } from '../../src/core/model.ts'
import { barriers } from '../helpers/barriers.ts'
import { devices, faultsOf, picture, signIn, skip, webApp } from '../helpers/browser.ts'
import { keepSecret } from '../helpers/log-sink.ts'

/** What people see of files: on an approval's page, and of a handoff in the console. */

const reader = 'reader-of-files-0123456789'
keepSecret(reader)
const keys = [{ secret: reader, caller: callerOf('default', 'rita', ['operate', 'status', 'read']) }]
const sha256 = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'
const hostile = 'invoice\u202efdp.exe <img src=x onerror=alert(1)>'
const files = [
  { name: 'figures.csv', uri: 'https://files.example.com/2026/figures.csv?part=1&of=2', media_type: 'text/csv', bytes: 1_400_000, sha256 },
  { name: hostile, uri: 'https://files.example.com/x', bytes: 812 },
  { name: 'keyed.bin', uri: 'https://user:password@files.example.com/y', bytes: 5_368_709_120, sha256 },
  { name: 'a-name-without-any-place-to-break-'.repeat(7), uri: `https://files.example.com/${'long-'.repeat(100)}`, sha256 },
]

const all = [['desk', 'light'], ['phone', 'dark'], ['phone', 'light'], ['desk', 'dark']] as const
for (const [device, colorScheme] of all) {
  t.test(`an approver sees names, sizes and whether the content is fixed: ${device}, ${colorScheme}`, { skip }, async t => {
    const { ask, visitor } = await webApp(t)
    const id = await ask({ task: 'Book these figures', constraints: 'Once.', files })
    const page = await visitor({ ...devices[device], colorScheme })
    const [faults, elsewhere] = [faultsOf(page), [] as string[]]
    page.on('request', request => { if (request.url().includes('example.com')) elsewhere.push(request.url()) })
    await page.goto(`/approvals/${id}`)
    await signIn(page)
    t.strictSame(await page.locator('section h2').allInnerTexts(), ['Task', 'Constraints', 'Files', 'Terms'])
    const part = page.getByRole('region', { name: 'Files' })
    t.match(await part.innerText(), /4 files/)
    const rows = await part.getByRole('listitem').allInnerTexts()
    const [first, second, third, fourth] = rows as [string, string, string, string]
    t.match(first, /^figures\.csv\s+1\.4 MB\s+text\/csv\s+https:\/\/files\.example\.com\/2026\/figures\.csv\?part=1&of=2\s+SHA-256 9f86/)
    t.notMatch(first, 'not fixed')
    t.match(second, /^invoice⟦U\+202E⟧fdp\.exe <img src=x onerror=alert\(1\)>\s+812 bytes\s+content not fixed\s+https/)
    t.match(third, /^keyed\.bin\s+5\.4 GB\s+https:\/\/user:password@files/)
    t.match(fourth, 'size not given')
    const links = part.getByRole('link')
    t.equal(await links.count(), 3, 'none with a user part')
    for (const link of await links.all()) {
      t.match(await link.getAttribute('rel'), /noreferrer.*noopener|noopener.*noreferrer/)
      t.equal(await link.getAttribute('target'), '_blank')
    }
    t.equal(await links.first().getAttribute('href'), files[0]!.uri)
    t.equal(await links.first().locator('b').innerText(), 'files.example.com')
    t.match(await page.locator('.terms').innerText(), 'constraints and files')
    t.equal(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'), 0, 'nothing hangs out')
    await picture(page, `files-${device}-${colorScheme}`)
    t.strictSame(await barriers(page), [])
    t.strictSame(elsewhere, [], 'nothing is fetched')
    t.strictSame(faults, [])
    await page.getByRole('button', { name: 'Approve', exact: true }).click()
    await page.getByText('You approved').waitFor()
  })
}

t.test('a reader sees a handoff’s files, and its result’s', { skip }, async t => {
  const { pass, call, visitor } = await webApp(t, {}, [], keys)
  const id = await pass({ to: 'box', files })
  await call('bob', 'GET', `/api/catch/${id}`)
  const page = await visitor(devices.phone)
  const faults = faultsOf(page)
  await page.goto(`/console/handoffs/${id}`)
  await signIn(page, reader)
  t.match(await page.getByRole('region', { name: 'Files', exact: true }).innerText(), /figures\.csv\s+1\.4 MB[^]*content not fixed/)
  t.equal(await page.getByRole('region', { name: 'Result files' }).count(), 0)
  await call('bob', 'POST', `/api/done/${id}`, { output: { n: 1 }, files: [{ name: 'out.csv', uri: 'https://example.com/out', bytes: 1 }] })
  await page.reload()
  t.match(await page.getByRole('region', { name: 'Result files' }).innerText(), /1 file\s+out\.csv\s+1 byte\s+content not fixed\s+https:\/\/example\.com\/out/)
  t.match(await page.getByRole('region', { name: 'Result', exact: true }).innerText(), '"n": 1')
  t.equal(await page.getByRole('region', { name: 'Files', exact: true }).count(), 0, 'they went with the payload')
  await picture(page, 'files-console')
  t.strictSame(await barriers(page), [])
  t.strictSame(faults, [])
})

t.test('an entry of the list says that there is more, and unfolds to it', { skip }, async t => {
  const { ask, approver } = await webApp(t)
  await ask({ task: 'With a file', files: [files[0]] })
  await ask({ task: 'With none' })
  const page = await approver(devices.desk)
  const [one, other] = [page.getByRole('listitem').filter({ hasText: 'With a file' }), page.getByRole('listitem').filter({ hasText: 'With none' })]
  await one.getByText('more inside').waitFor()
  t.equal(await other.getByText('more inside').count(), 0)
  await one.getByText('Show all of it').click()
  await one.getByText('1.4 MB').waitFor()
})
