import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { projectRoot } from '../helpers/service.ts'
import { haproxyConfig } from './fleet/haproxy.ts'
import { keptResults, withTable } from './results.ts'
import type { Result } from './results.ts'

const readme = await readFile(join(projectRoot, 'README.md'), 'utf8')

t.test('the README’s HAProxy is the one that the scenarios run', async t => {
  const replicas = ['10.0.0.1:8080', '10.0.0.2:8080', '10.0.0.3:8080']
  t.ok(readme.includes(haproxyConfig(8080, replicas, '/run/haproxy/admin.sock').trimEnd()))
})

t.test('the README’s table of faults is the one that was kept', async t => {
  t.equal(withTable(readme, await keptResults()), readme)
  const [other] = await keptResults() as [Result]
  t.not(withTable(readme, [{ ...other, result: 'another' }]), readme)
})
