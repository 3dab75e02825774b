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

t.test('the whole example of docs/schedules.md: a nightly run, a worker, and a backfill over the end of summer time', async t => {
  const { app, call } = await testApp(t)
  const address = await app.listen({ host: '127.0.0.1', port: 0 })
  const script = commandsUnder('docs/schedules.md', 'From the beginning')
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { env: { PATH: process.env.PATH, HANDOFF_URL: address, HANDOFF_KEY: secrets.alice } })
  const [made, passed, done, filled, runs] = stdout.trim().split(/\n(?={)/).map(text => JSON.parse(text))
  t.match(made, { name: 'nightly-books', overlap: 'skip', catch_up: 14_400, timezone: 'Europe/Berlin' })
  t.equal(done.handoff_id, passed.handoff_id)
  t.strictSame(filled, { passed: 3, skipped: 0, refused: 0, more: false, next: null }, 'as the page says')
  t.strictSame(runs.items.map(({ scheduled_for: time }: { scheduled_for: string }) => time).slice(0, 3).sort(), ['2025-10-25T00:30:00.000Z', '2025-10-26T00:30:00.000Z', '2025-10-27T01:30:00.000Z'], 'at half past two, once where that comes twice')
  const { items } = (await call('alice', 'GET', '/api/handoffs?schedule=nightly-books')).json()
  t.strictSame(items.map(({ labels }: { labels: { run: string } }) => labels.run).sort(), ['books-2025-10-25T00:30Z', 'books-2025-10-26T00:30Z', 'books-2025-10-27T01:30Z'])
  t.match((await call('alice', 'POST', '/api/schedules/nightly-books/backfill', { since: '2025-10-25T00:00:00+02:00', until: '2025-10-28T00:00:00+01:00' })).json(), { passed: 0, skipped: 3 })
})
