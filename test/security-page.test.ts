import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import t from 'tap'

const root = new URL('../', import.meta.url)
const readme = await readFile(new URL('README.md', root), 'utf8')
const [, page = ''] = /^## Security\n([^]*?)^## /m.exec(readme) ?? []
const rows = page.split('\n').filter(line => line.startsWith('| ')).slice(1).map(line => line.slice(2, -2).split(' | '))

t.test('each threat has what stands against it, and a test of this suite that holds it', t => {
  t.ok(rows.length > 15, `${rows.length} threats`)
  for (const row of rows) {
    const [threat, defence, tests] = row as [string, string, string]
    t.equal(row.length, 3, threat)
    t.ok(defence.length > 20, threat)
    const files = [...tests.matchAll(/\]\(([^)]+)\)/g)].map(([, path]) => path!)
    t.ok(files.length > 0, `${threat}: a test`)
    // What `npm test` runs: test/**/*.test.ts.
    for (const file of files) t.ok(/^test\/.+\.test\.ts$/.test(file) && existsSync(new URL(file, root)), `${threat}: ${file}`)
  }
  t.end()
})

t.test('the commands that it names are there', async t => {
  const { scripts, private: isPrivate } = JSON.parse(await readFile(new URL('package.json', root), 'utf8'))
  for (const [, name] of page.matchAll(/`npm run (\w+)`/g)) t.ok(name! in scripts, name!)
  t.ok(isPrivate, 'published nowhere by accident')
  t.match(readme, '--read-only --cap-drop ALL --security-opt no-new-privileges')
  t.match(page, 'What is not promised')
})
