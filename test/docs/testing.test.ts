import { readFileSync } from 'node:fs'
import t from 'tap'
import { alone, batchesOf, everyFile, first, long, smoke } from '../tiers.ts'

const page = readFileSync(new URL('../../docs/testing.md', import.meta.url), 'utf8')

/** The table's rows that name files: the files, and which columns are filled in. */
const rows = [...page.matchAll(/^\| (`.*?) \|(.*)\|(.*)\|(.*)\|$/gm)].map(([, named, ...columns]) => ({
  files: [...named!.matchAll(/`test\/([^`]+)`/g)].map(([, file]) => file!),
  runs: columns.map(column => column.trim() !== ''),
}))
const inTable = (npmTest: boolean, ci: boolean) => rows.filter(({ runs }) => runs[0] === npmTest && runs[1] === ci).flatMap(({ files }) => files).sort()

t.test('docs/testing.md says of each file when it runs', async t => {
  t.strictSame(inTable(true, true), [...alone].sort())
  t.strictSame(inTable(false, true), [...smoke].sort())
  t.strictSame(inTable(false, false), [...long].sort())
  t.ok(rows.every(({ runs }) => runs[2]), 'test:all runs everything')
})

t.test('each list names existing files, each file once', async t => {
  const named = [...first, ...alone, ...smoke, ...long]
  t.equal(new Set(named).size, named.length)
  t.strictSame(named.filter(file => !everyFile().includes(file)), [])
})

t.test('test:all runs every file once', async t => {
  t.strictSame(batchesOf('all').flatMap(({ files }) => files).sort(), everyFile())
  t.ok(batchesOf('quick').flatMap(({ files }) => files).includes('docs/testing.test.ts'))
  t.strictSame(batchesOf('quick')[0]!.files.slice(0, first.length), first, 'what takes longest begins')
})
