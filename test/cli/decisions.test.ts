import t from 'tap'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { listen } from '../helpers/wire.ts'

/** `handoff decisions`: lists with a key; forgets in Redis, without one. */

// Over TCP, because REDIS_URL can't name a unix socket.
const { url } = await startRedisServer(t)
const { app, call, pass, prefix } = await testApp(t, {}, { url })
const address = `http://127.0.0.1:${await listen(app)}`
const run = (...args: string[]) => handoff(['decisions', ...args], { env: { HANDOFF_URL: address, HANDOFF_KEY: secrets.approver } })
const forget = (...args: string[]) => handoff(['decisions', ...args], { env: { REDIS_URL: url, REDIS_KEY_PREFIX: prefix } })
interface Answer { items: Array<{ handoff_id: string }>, next_cursor: string | null }

t.test('what people decided is listed, and forgotten', async t => {
  t.match(await run(), { code: 0, stdout: 'none\n' })
  const ids: string[] = []
  for (const task of ['first task\nof two lines', 'x'.repeat(100), 'third']) {
    const id = await pass({ task, require_human: true, to: 'box' })
    await call('approver', 'POST', `/api/reject/${id}`, { note: 'no' })
    ids.unshift(id)
  }
  const { stdout } = await run()
  t.match(stdout, new RegExp(`^decided +by +state +handoff +to +note +task or question\n\\S+ +carol +rejected +${ids[0]} +box +no +third\n`))
  t.match(stdout, /first task…\n/)
  t.match(stdout, /x{39}…\n/)
  t.strictSame(parsed<Answer>(await run('--json')).items.map(one => one.handoff_id), ids)
  t.match(parsed<Answer>(await run('--json', '--limit', '2')), { items: [{ handoff_id: ids[0] }, { handoff_id: ids[1] }], next_cursor: String })
  t.match(await run('--limit', '1'), { stdout: /There are more: --all/ })
  t.match(await run('--state', 'approved', '--since', '1h'), { stdout: 'none\n' })
  t.match(await run('--state', 'done'), { code: 2, stderr: /takes approved, rejected or answered/ })

  t.match(await forget('forget', ids[0]!), { code: 0, stdout: 'forgotten: the texts of 1 of 1 decision\n' })
  t.match(await run(), { stdout: new RegExp(`carol +rejected +${ids[0]} +box +- +-\n`) })
  t.strictSame(parsed(await forget('forget', ids[0]!, '--json')), { handoff_id: ids[0], decisions: 1, forgotten: 0 })
  t.match(await forget('forget', ids[0]!, '--tenant', 'other'), { code: 1, stderr: /tenant other has no decision on this handoff/ })
  t.match(await forget('forget', 'nonsense'), { code: 1, stderr: /no decision/ })
  for (const args of [['forget'], ['remove', ids[0]!]]) t.match(await forget(...args), { code: 2, stderr: /forget and an id/ })
})
