import { hostname } from 'node:os'
import t from 'tap'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { listen } from '../helpers/wire.ts'

/** `handoff workers`, and what `status` and `inspect` say of what a handoff waits for. */

// Over TCP, because REDIS_URL can't name a unix socket.
const { url } = await startRedisServer(t)
const { app, call, pass, prefix } = await testApp(t, {}, { url })
const address = `http://127.0.0.1:${await listen(app)}`
const as = (key: string, more: Record<string, string> = {}) => ({ HANDOFF_URL: address, HANDOFF_KEY: key, ...more })
const run = (...args: string[]) => handoff(args, { env: as(secrets.alice) })
const inspect = (...args: string[]) => handoff(['inspect', ...args], { env: { REDIS_URL: url, REDIS_KEY_PREFIX: prefix } })

t.test('why a handoff waits, in words', async t => {
  const first = await pass()
  const id = await pass({ to: 'box', require_human: true, delay: 60, after: [first] })
  await call('operator', 'PUT', '/api/inboxes/box', { paused: true })
  const words = /a person’s decision; the end of its delay, 20\S+Z; 1 that it comes after; its inbox, which is paused; an agent that works on its inbox: none does/
  t.match((await run('status', id)).stdout, new RegExp(`\nwaits for: ${words.source}\n`))
  t.match((await inspect(id)).stdout, new RegExp(`^waits for +${words.source}$`, 'm'))
  t.match(parsed(await inspect(id, '--json')), { waits_for: [{ reason: 'approval' }, { reason: 'delay' }, { reason: 'after', blocked_by: 1 }, { reason: 'paused' }, { reason: 'no_listener' }] })
  t.match((await run('status', first)).stdout, /\nwaits for: its catch, and nothing hinders that\n/)
  t.notOk('waits_for' in parsed(await run('status', id, '--json')), 'the API’s answer as it is')
  await call('bob', 'GET', `/api/catch/${first}`, undefined, { 'handoff-worker': 'host-7:1' })
  const caught = await run('status', first)
  t.match(caught.stdout, /^worker +host-7:1$/m)
  t.notMatch(caught.stdout, /waits for/)
  t.match((await inspect(first)).stdout, /^caught +.* by bob, host-7:1$/m)
})

t.test('who works on an inbox', async t => {
  t.match(await run('workers', 'in'), { code: 0, stdout: 'none\n' })
  const work = async (inbox: string, more = {}) => {
    const id = await pass({ to: inbox })
    t.match(await handoff(['work', inbox, '--once', '--quiet', '--', 'true'], { env: as(secrets.bob, more) }), { code: 0 })
    const told = (await call('alice', 'GET', `/api/status/${id}`)).json()
    t.equal(told.status, 'done')
    return told.worker
  }
  t.equal(await work('in'), `${hostname().replaceAll(/[^A-Za-z0-9._-]/g, '-')}:${process.pid}`)
  t.equal(await work('in', { HANDOFF_WORKER: 'mine' }), 'mine')
  t.equal(await work('in', { HANDOFF_WORKER: '' }), undefined)
  const { stdout } = await run('workers', 'in')
  t.match(stdout, /^agent +worker +waiting +caught +seen +last catch$/m)
  t.match(stdout, /^bob +mine +0 +0 +/m)
  t.match(stdout, /^bob +- +0 +0 +/m)
  const { items, more } = parsed<{ items: Array<{ worker: string | null }>, more: boolean }>(await run('workers', 'in', '--json'))
  t.equal(items.length, 3)
  t.equal(more, false)
  t.match(await run('workers', 'a b'), { code: 1, stderr: /./ })
})
