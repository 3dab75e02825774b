import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { keptResults, withTable } from '../faults/results.ts'
import type { Result } from '../faults/results.ts'
import { projectRoot } from '../helpers/service.ts'

const page = await readFile(join(projectRoot, 'docs/reliability.md'), 'utf8')

t.test('the table of faults matches the kept results', async t => {
  t.equal(withTable(page, await keptResults()), page)
  const [other] = await keptResults() as [Result]
  t.not(withTable(page, [{ ...other, result: 'another' }]), page)
})
