import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import t from 'tap'
import { parsePage } from '../helpers/pages.ts'
import { projectRoot } from '../helpers/service.ts'

const page = readFileSync(`${projectRoot}/docs/security.md`, 'utf8')
const [, table = ''] = /^## Threats\n([^]*?)^## /m.exec(page) ?? []
const rows = table.split('\n').filter(line => line.startsWith('| ')).slice(1).map(line => line.slice(2, -2).split(' | '))

t.test('each threat has a countermeasure, and a test of this suite for it', async t => {
  t.ok(rows.length > 15, `${rows.length} threats`)
  for (const row of rows) {
    const [threat, defence, tests] = row as [string, string, string]
    t.equal(row.length, 3, threat)
    t.ok(defence.length > 20, threat)
    const { links } = parsePage(tests)
    t.ok(links.length > 0, `${threat}: a test`)
    // The suite runs test/**/*.test.ts. pages.test.ts checks that every link's target exists.
    for (const link of links) t.match(posix.join('docs', link), /^test\/.+\.test\.ts$/, threat)
  }
})

t.test('the package can’t be published by accident, and docs/security.md says what is not promised', async t => {
  t.equal(JSON.parse(readFileSync(`${projectRoot}/package.json`, 'utf8')).private, true)
  t.match(page, '## What is not promised')
})
