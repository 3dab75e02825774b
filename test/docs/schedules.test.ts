import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import { commandsUnder } from '../helpers/pages.ts'

t.test('the request of docs/schedules.md makes a schedule', async t => {
  const { app, call } = await testApp(t)
  const address = await app.listen({ host: '127.0.0.1', port: 0 })
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', commandsUnder('docs/schedules.md', 'Making one')], { env: { PATH: process.env.PATH, HANDOFF_URL: address, HANDOFF_KEY: secrets.alice } })
  t.match(JSON.parse(stdout), { name: 'nightly-report', timezone: 'Europe/Berlin', passed_by: 'alice' })
  const { next } = (await call('alice', 'GET', '/api/schedules/nightly-report')).json()
  t.equal(next.length, 5)
  t.match(next[0], /T0[01]:30:00/)
})
