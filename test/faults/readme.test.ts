import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { projectRoot } from '../helpers/service.ts'
import { keptResults, withTable } from './results.ts'
import type { Result } from './results.ts'

const readme = await readFile(join(projectRoot, 'README.md'), 'utf8')

t.test('the README’s table of faults is the one that was kept', async t => {
  t.equal(withTable(readme, await keptResults()), readme)
  const [other] = await keptResults() as [Result]
  t.not(withTable(readme, [{ ...other, result: 'another' }]), readme)
})
