import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { proxy, serve, tenants } from '../helpers/client.ts'
import { builtHandoff, commandOf, handoff, parsed } from '../helpers/command.ts'
import { keepSecret } from '../helpers/log-sink.ts'
import { scratchDir } from '../helpers/processes.ts'
import { receiver } from '../helpers/receiver.ts'
import { until } from '../helpers/until.ts'
import { webhookSecret } from '../helpers/webhooks.ts'

/** The agents' verbs of the command, against a service that listens. */

const tenant = await tenants(t)
/** The same with callbacks, which may go to this machine. */
const called = await tenants(t, { WEBHOOK_SECRET: webhookSecret, WEBHOOK_ALLOW: '127.0.0.0/8' }, 1).then(next => () => {
  const service = next()
  service.app.deliverer!.start()
  return service
})

const start = () => commandOf(tenant())

t.test('a handoff’s life, by the command alone', async t => {
  const { run, json } = start()
  const { handoff_id: id, status } = await json('alice', 'pass', '--task', 'Count', '--output', '{"n": 1}', '--heartbeat-within', '30s', '--max-attempts', '2', '--retry-delay', '0s', '--expires-in', '1h')
  t.equal(status, 'pending')
  t.match(await json('bob', 'catch', id), { handoff_id: id, task: 'Count', output: { n: 1 }, heartbeat_within: 30 })
  t.match(await json('bob', 'heartbeat', id, '--progress', 'half', '--percent', '50.5'), { cancel_requested: false })
  t.match(await json('alice', 'status', id), { status: 'caught', progress: { message: 'half', percent: 50.5 } })
  const { reissued_as: next } = await json('bob', 'fail', id, '--message', 'no', '--code', 'E1')
  t.match(await json('alice', 'status', id), { status: 'failed', error: { message: 'no', code: 'E1' }, reissued_as: next })
  t.notOk('checkpoint' in await json('bob', 'catch', next))
  t.match(await run('bob', 'heartbeat', next, '--checkpoint', '{"n": 1.0}'), { code: 0 })
  t.match(await run('bob', 'heartbeat', next, '--checkpoint', '7'), { code: 2, stderr: /--checkpoint/ })
  t.match(await json('alice', 'cancel', next, '--reason', 'late'), { status: 'caught' })
  t.match(await json('bob', 'decline', next, '--reason', 'not mine'), { status: 'declined' })
  const { handoff_id: third } = await json('alice', 'reissue', next)
  t.match((await run('bob', 'catch', third, '--json')).stdout, '"checkpoint":{"n": 1.0}', 'as it was given')
  t.match(await json('bob', 'done', third, '--output', '{"sum": 1.0}'), { status: 'done' })
  t.match((await run('alice', 'status', third, '--json')).stdout, '"result":{"sum": 1.0}', 'as it was given')
  const { handoff_id: last } = await json('alice', 'pass', '--task', 't', '--delay', '1h')
  const { handoff_id: after, blocked_by: open } = await json('alice', 'pass', '--task', 't', '--after', `${third},${last}`, third, '--after-need', 'ended')
  t.equal(open, 1)
  t.match((await run('bob', 'catch', after)).stderr, 'comes after others')
  t.match(await json('alice', 'cancel', last, '--force'), { status: 'cancelled' })
  t.match((await json('bob', 'catch', after)).after, [{ handoff_id: third, result: { sum: 1 } }, { handoff_id: last, status: 'cancelled' }])
})

t.test('a callback is given by options, and none of them without an address', async t => {
  const service = called()
  const as = { env: service.env('alice') }
  const run = (...args: string[]) => handoff(['pass', '--task', 't', ...args], as)
  const to = await receiver(t)
  const token = 'callback-token-0123456789'
  keepSecret(token)
  const passed = parsed<{ handoff_id: string }>(await run('--callback', `${to.url}?q=1`, '--callback-type', 'handoff.caught', '--callback-type', 'handoff.done', '--callback-token', token, '--callback-result', '--json'))
  const { handoff_id: id } = passed
  await handoff(['catch', id], { env: service.env('bob') })
  await handoff(['done', id, '--output', '{"n": 1.0}'], { env: service.env('bob') })
  await until(() => to.got.length === 2)
  const [caught, done] = ['handoff.caught', 'handoff.done'].map(type => to.got.find(({ body }) => JSON.parse(body).type === type)!)
  t.ok(done!.body.endsWith(',"result":{"n": 1.0}}'), 'as it was given')
  t.match([caught!.path, caught!.headers.authorization], ['/hook?q=1', `Bearer ${token}`])
  const shown = await until(async () => {
    const { stdout } = await handoff(['status', id], as)
    return stdout.includes('"delivered":2') && stdout
  })
  t.notMatch(shown, token)
  t.match(shown, /^callback +\{"url":"http:[^?]*\/hook",/m)

  const plain = parsed<{ handoff_id: string }>(await run('--callback', to.url, '--json')).handoff_id
  await handoff(['cancel', plain], as)
  await until(() => to.got.length === 3)
  t.strictSame([JSON.parse(to.got[2]!.body).type, to.got[2]!.headers.authorization], ['handoff.cancelled', undefined])

  for (const [args, flag] of [[['--callback-type', 'handoff.done'], '--callback-type'], [['--callback-token', token], '--callback-token'], [['--callback-result'], '--callback-result']] as const) {
    t.match(await run(...args), { code: 2, stdout: '', stderr: new RegExp(`^${flag} needs --callback`) })
  }
  t.match(await run('--callback', to.url, '--callback-type', 'handoff.passed'), { code: 1, stderr: /\/callback\/types\/0/ })
  t.match(await run('--callback', 'ftp://example.com'), { code: 1, stderr: /\/callback\/url/ })
  t.equal(to.got.length, 3)

  const schedules = (...args: string[]) => handoff(['schedules', ...args, '--json'], as)
  const set = await schedules('set', 'told', '--every', '1h', '--task', 't', '--callback', to.url, '--callback-type', 'handoff.done', '--callback-token', token, '--callback-result')
  t.match(parsed(set), { handoff: { callback: { url: to.url, types: ['handoff.done'], result: true } } }, 'and by a schedule’s')
  t.match(parsed(await schedules('backfill', 'told', '--since', '2h', '--until', '1h')), { passed: 0, more: false }, 'a span by how long ago')
  t.match(await schedules('backfill', 'told', '--since', 'x', '--until', '1h'), { code: 2 })
})

t.test('work gives its command the checkpoint of the attempt before', async t => {
  const { run, json } = start()
  const { handoff_id: id } = await json('alice', 'pass', '--task', 't', '--to', 'w', '--max-attempts', '2', '--retry-delay', '0s')
  await run('bob', 'next', 'w')
  await run('bob', 'heartbeat', id!, '--checkpoint', '{"rows": 4200.0}')
  const { reissued_as: next } = await json('bob', 'fail', id!, '--message', 'stopped')
  const { code } = await run('bob', 'work', 'w', '--once', '--quiet', '--', process.execPath, '-e', `
    let text = ''
    process.stdin.on('data', some => { text += some }).on('end', () => {
      const { checkpoint, checkpoint_by: by, checkpoint_at: at } = JSON.parse(text)
      process.stdout.write(JSON.stringify({ checkpoint, by, at, isLiteral: text.includes('"checkpoint":{"rows": 4200.0}') }))
    })`)
  t.equal(code, 0)
  t.match(await json('alice', 'status', next!), { status: 'done', result: { checkpoint: { rows: 4200 }, by: 'bob', at: /Z$/, isLiteral: true } })
})

t.test('numbers and texts go through as they are', async t => {
  const { run, json } = start()
  const output = '{"big": 9007199254740993, "far": 1e400, "one": 1.0, "twice": 1, "none": {}}'
  const file = join(await scratchDir(t), 'context.json')
  await writeFile(file, `\ufeff\n${output}\n`)
  const { handoff_id: id } = await json('alice', 'pass', '--task', 'a "b" \u{1f6f0}', '--output', output, '--context', `@${file}`, '--constraints', 'none')
  const { stdout } = await run('bob', 'catch', id, '--json')
  t.ok(stdout.includes(`"output":${output},"context":${output},"constraints":"none"`), stdout)
  const people = (await run('bob', 'catch', id)).stderr
  t.match(people, /^[^\n]*\(already_caught\)\n$/, 'whoever asks once more has another key')
  const told = await json('alice', 'pass', '--task', 'steer\u001b[2J\u009b2J', '--to', 'w', '--output', output)
  const next = await run('bob', 'next', 'w')
  t.match(next, { code: 0, stdout: new RegExp(`^handoff_id +${told.handoff_id}\n`) })
  t.ok(next.stdout.includes(output), 'for people too')
  t.notOk(next.stdout.includes('\u001b') || next.stdout.includes('\u009b'), 'nobody’s text steers the terminal')
})

t.test('inboxes and approvals', async t => {
  const { run, json } = start()
  t.match(await run('bob', 'next', 'w'), { code: 0, stdout: 'nothing to catch\n' })
  t.equal((await run('bob', 'next', 'w', '--json')).stdout, '{"items":[]}\n')
  const first = await json('alice', 'pass', '--task', 'one', '--to', 'w')
  const second = await json('alice', 'pass', '--task', 'two', '--to', 'w', '--priority', '9')
  await json('alice', 'pass', '--task', 'mine', '--to', 'bob')
  t.match(await json('alice', 'inbox', 'w'), { inbox: 'w', pending: 2 })
  t.strictSame((await json('bob', 'next', 'w', '--max', '2', '--wait', '1')).items.map((item: any) => item.handoff_id), [second.handoff_id, first.handoff_id])
  t.match((await run('bob', 'next')).stdout, /^task +mine$/m, 'the agent’s own')
  await json('alice', 'pass', '--task', 'several', '--to', 'v')
  t.match((await run('bob', 'next', 'w,v,u')).stdout, /^task +several$/m, 'the first that has something')
  const asked = await json('alice', 'pass', '--task', 'ask', '--require-human')
  t.match(await run('approver', 'approvals'), { code: 0, stdout: /^task +ask$/m })
  t.match(await json('approver', 'approve', asked.handoff_id, '--note', 'yes'), { status: 'pending', approval: { note: 'yes' } })
  t.equal((await run('approver', 'approvals')).stdout, 'nothing waits\n')
  const other = await json('alice', 'pass', '--task', 'ask', '--require-human')
  t.match(await json('approver', 'reject', other.handoff_id, '--note', 'no'), { status: 'rejected' })
  t.match(await run('bob', 'approve', other.handoff_id), { code: 1, stderr: /\(insufficient_scope\)\n$/ })
})

t.test('labels are given one by one, shown, and found', async t => {
  const { run, json } = start()
  const labels = ['--label', 'z:1', '--label', '1:a:b/@', '--label', '__proto__:p']
  const text = '{"z":"1","1":"a:b/@","__proto__":"p"}'
  const { handoff_id: id } = await json('alice', 'pass', '--task', 'ask', '--to', 'w', '--require-human', ...labels)
  const { handoff_id: other } = await json('alice', 'pass', '--task', 'ask', '--require-human', '--label', 'z:2')
  t.ok((await run('alice', 'status', id, '--json')).stdout.includes(`"labels":${text}`), 'in the order given')
  t.ok((await run('alice', 'status', id)).stdout.includes(`\nlabels         ${text}\n`))
  const found = async (...args: string[]) => (await json('approver', 'approvals', ...args)).items.map((item: any) => item.handoff_id)
  t.strictSame(await found('--label', 'z:1', '--label', '__proto__:p', '--inbox', 'w'), [id])
  t.strictSame(await found('--label', 'z:2'), [other])
  t.strictSame(await found('--inbox', 'x'), [])
  t.ok((await run('approver', 'approvals', '--inbox', 'w')).stdout.includes(text), 'for people')
  const pages: string[] = []
  const away = await serve(t, ({ url = '' }, response) => {
    pages.push(url.slice(url.indexOf('?')))
    response.end(pages.length === 1 ? '{"items":[],"next_cursor":"x"}' : '{"items":[{"handoff_id":"one","n":1.0}],"next_cursor":null}')
  })
  t.equal((await handoff(['approvals', '--label', 'z:2', '--json'], { env: { HANDOFF_URL: away, HANDOFF_KEY: 'k'.repeat(16) } })).stdout, '{"items":[{"handoff_id":"one","n":1.0}],"next_cursor":null}\n', 'over the pages')
  t.strictSame(pages, ['?limit=100&labels=z%3A2', '?cursor=x&limit=100&labels=z%3A2'])
  for (const label of ['', 'run', 'run:', ':42', 'a b:c', 'run:4,2', `${'n'.repeat(33)}:v`, `n:${'v'.repeat(65)}`]) {
    t.match(await run('alice', 'pass', '--task', 't', '--label', label), { code: 2, stdout: '', stderr: /^--label[^\n]*\n$/ }, label)
  }
  for (const verb of [['pass', '--task', 't'], ['events'], ['approvals']]) t.match(await run('alice', ...verb, '--label', 'a:1', '--label', 'a:2'), { code: 2, stderr: /^--label: a is there twice/ })
  const nine = Array.from({ length: 9 }, (_, at) => ['--label', `n${at}:v`]).flat()
  t.match(await run('alice', 'pass', '--task', 't', ...nine), { code: 1, stderr: /\/labels[^\n]*\n$/ })
})

t.test('status waits', async t => {
  const { json, run, call } = start()
  const { handoff_id: id } = await json('alice', 'pass', '--task', 't')
  // Commands in this process run one after the other.
  const caught = json('alice', 'status', id, '--wait', '30s', '--until', 'caught')
  await call('bob', 'GET', `/api/catch/${id}`)
  t.match(await caught, { status: 'caught' })
  const done = json('alice', 'status', id, '--wait', '30s')
  await call('bob', 'POST', `/api/done/${id}`)
  t.match(await done, { status: 'done' })
  t.match(await run('alice', 'status', id), { code: 0, stdout: /^status +done$/m })
})

t.test('status waits as long as it is told, follows attempts, and takes several ids', async t => {
  const { json, run, call, url, as } = start()
  const { handoff_id: id } = await json('alice', 'pass', '--task', 't', '--max-attempts', '2', '--retry-delay', '0s')
  const { handoff_id: other } = await json('alice', 'pass', '--task', 't')
  // What comes between the command and the service ends each wait soon.
  const { address, seen } = await proxy(t, url, () => 'pass')
  const waiting = handoff(['status', id, other, '--wait', '2h', '--json'], { env: { ...as('alice').env, HANDOFF_URL: address } })
  await until(() => seen.filter(({ url }) => url.includes('wait=')).length === 2)
  t.ok(seen.every(({ url }) => !url.includes('wait=7200')), 'in requests that the service and gateways allow')
  await call('bob', 'GET', `/api/catch/${id}`)
  const { reissued_as: next } = (await call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'no' } })).json()
  for (const one of [next, other]) {
    await call('bob', 'GET', `/api/catch/${one}?wait=30`)
    await call('bob', 'POST', `/api/done/${one}`)
  }
  const { code, stdout } = await waiting
  t.equal(code, 0)
  t.match(stdout.trim().split('\n').map(line => JSON.parse(line)), [{ handoff_id: next, status: 'done', attempt: 2 }, { handoff_id: other, status: 'done' }])
  t.match(await run('alice', 'status', id, other), { code: 0, stdout: new RegExp(`^handoff_id +${id}\n[^]*\n\nhandoff_id +${other}\n`) })
  const { handoff_id: open } = await json('alice', 'pass', '--task', 't')
  t.match(await json('alice', 'status', open, '--wait', '1s'), { status: 'pending' }, 'what it is after the wait')
  const mixed = await run('alice', 'status', 'A'.repeat(25), open)
  t.match(mixed, { code: 1, stdout: new RegExp(`^handoff_id +${open}`), stderr: /^A{25}: [^\n]+ \(not_found\)\n$/ })
})

t.test('wait waits until all have ended, or any, or its time is over', async t => {
  const { json, run, call, url } = start()
  const passed = async (...more: string[]): Promise<string> => (await json('alice', 'pass', '--task', 't', ...more)).handoff_id
  const [id, other, open] = [await passed('--max-attempts', '2', '--retry-delay', '0s'), await passed(), await passed()]
  const all = (code: number, ended: Awaited<ReturnType<typeof run>>) => {
    t.equal(ended.code, code, ended.stderr)
    return ended.stdout.trim().split('\n').map(line => JSON.parse(line))
  }
  await call('bob', 'GET', `/api/catch/${other}`)
  const any = run('alice', 'wait', open, id, other, '--any', '--json')
  await call('bob', 'POST', `/api/done/${other}`, { output: { n: 1 } })
  t.match(all(0, await any), [{ handoff_id: other, status: 'done', result: { n: 1 } }], 'the one that has ended')
  await call('bob', 'GET', `/api/catch/${id}`)
  const { reissued_as: next } = (await call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'no' } })).json()
  const waiting = run('alice', 'wait', id, other, id)
  await call('bob', 'GET', `/api/catch/${next}?wait=30`)
  await call('bob', 'POST', `/api/done/${next}`)
  t.match(await waiting, { code: 0, stdout: new RegExp(`^handoff_id +${next}\nstatus +done\n[^]*\nasked_as +${id}\n\nhandoff_id +${other}\n[^]*\n\nhandoff_id +${next}\n`), stderr: '' })
  t.match(all(1, await run('alice', 'wait', open, other, '--timeout', '1s', '--json')), [{ handoff_id: open, status: 'pending' }, { handoff_id: other, status: 'done' }], 'as they stand')
  t.match(await run('alice', 'wait', open, other, '--timeout', '0'), { code: 1, stdout: /\nhandoff_id/, stderr: `not ended in time: ${open}\n` })
  t.match(await run('alice', 'wait', open, '--any', '--timeout', '0'), { code: 1, stdout: /^status +pending$/m, stderr: `not ended in time: ${open}\n` })
  await call('alice', 'POST', `/api/cancel/${open}`)
  t.match(all(1, await run('alice', 'wait', other, open, 'none', '--json')), [{ status: 'done' }, { status: 'cancelled' }, { handoff_id: 'none', status: 'unknown' }], 'not all are done')
  t.match(await run('alice', 'wait', ...Array.from({ length: 101 }, (_, n) => `id-${n}`), '--any'), { code: 2, stderr: /^--any takes up to 100 ids/ })
  t.match(await run('alice', 'wait'), { code: 2 })
  t.match((await run('alice', 'wait', '--help')).stdout, /Exit status: 0 all that were waited for are done/)
  t.match(await handoff(['wait', id], { env: { HANDOFF_URL: url, HANDOFF_KEY: 'not-a-key-of-this-one' } }), { code: 1, stderr: /\(unauthorized\)\n$/ })
})

t.test('a refusal is one line, or the problem with --json; exit status 1', async t => {
  const { run, url, as } = start()
  const missing = 'A'.repeat(25)
  const plain = await run('bob', 'catch', missing)
  t.match(plain, { code: 1, stdout: '', stderr: /^[^\n]+ \(not_found\)\n$/ })
  const problem = await run('bob', 'catch', missing, '--json')
  t.match(problem, { code: 1, stderr: '' })
  t.match(JSON.parse(problem.stdout), { code: 'not_found', status: 404, retryable: false, detail: String, request_id: String })
  t.match(await handoff(['status', missing], { env: { HANDOFF_URL: url, HANDOFF_KEY: 'not-a-key-of-this-one' } }), { code: 1, stderr: /\(unauthorized\)\n$/ })
  t.match(await run('alice', 'pass', '--task', 't', '--priority', '3'), { code: 1, stderr: /priority[^\n]*\(invalid_request\)\n$/ })
  t.strictSame(await builtHandoff(['catch', missing, '--json'], as('bob')).then(({ code, stderr }) => [code, stderr]), [1, ''], 'the built one')
})

t.test('a service that isn’t there: what to look at, soon', async t => {
  const ended = await handoff(['status', 'A'.repeat(25)], { env: { HANDOFF_URL: 'http://127.0.0.1:1', HANDOFF_KEY: 'k' } })
  t.match(ended, { code: 1, stdout: '', stderr: /^[^\n]*\(connection_failed\): is the service running, and is HANDOFF_URL or --url its address\?\n$/ })
})

t.test('wrong usage: exit status 2, and nothing is asked', async t => {
  const { run, url } = start()
  const dir = await scratchDir(t)
  t.match(await handoff(['status', 'x'], { env: { HANDOFF_URL: url, DATA_DIR: dir } }), { code: 2, stderr: /HANDOFF_KEY/ })
  for (const url of ['ftp://x', 'localhost:8080', '127.0.0.1:8080', 'nonsense']) {
    t.match(await handoff(['status', 'x', '--url', url], { env: { HANDOFF_KEY: 'k' } }), { code: 2, stderr: /HANDOFF_URL.* http:\/\/127\.0\.0\.1:8080 / }, url)
  }
  t.match(await run('alice', 'pass', '--task', 't', '--output', '-', '--context', '-'), { code: 2, stdout: '', stderr: /^--\w+ and --\w+ both take standard input/ })
  const latin = join(dir, 'latin.json')
  await writeFile(latin, Buffer.from('{"a":"\xe9"}', 'latin1'))
  for (const args of [['pass'], ['pass', '--task', 't', '--output', '{'], ['pass', '--task', 't', '--output', `@${latin}`], ['pass', '--task', 't', '--idempotency-key', 'a b'], ['pass', '--task', 't', '--output', '[1]'], ['pass', '--task', 't', '--output', '@/nowhere'], ['pass', '--task', 't', '--delay', '05'], ['pass', '--task', 't', '--delay', '1500ms'],
    ['pass', '--task', 't', '--priority', 'x'], ['done'], ['fail', 'x'], ['status', 'x', '--until', 'never'], ['heartbeat', 'x', '--percent', '101'], ['next', 'a', '--max', '1.5'],
    ['catch', 'x', '--no-such'], ['work', 'w'], ['work', 'w', '--concurrency', '0', '--', 'true'], ['work', 'w', '--', 'no-such-command']]) {
    const ended = await run('alice', ...args)
    t.match(ended, { code: 2, stdout: '', stderr: /^[^\n]+ \(see handoff --help\)\n$/ }, args.join(' '))
  }
})

/** A data directory as `npm start` leaves it. */
async function dataDir (t: Test, key: string, address?: string): Promise<string> {
  const dir = await scratchDir(t)
  await writeFile(join(dir, 'agent.key'), `${key}\n`)
  if (address !== undefined) await writeFile(join(dir, 'address'), `${address}\n`)
  return dir
}

t.test('on the machine of an npm start its key is used, and its address', async t => {
  const { url, secrets, call } = start()
  const DATA_DIR = await dataDir(t, secrets.alice, url)
  for (const more of [[], ['--url', url], ['--url', `${url}/`]]) {
    t.match(parsed(await handoff(['pass', '--task', 't', ...more, '--json'], { env: { DATA_DIR } })), { status: 'pending' }, more.join(' '))
  }
  await writeFile(join(DATA_DIR, 'agent.key'), `\ufeff${secrets.alice}\r\n`)
  t.match(await handoff(['pass', '--task', 't'], { env: { DATA_DIR } }), { code: 0 }, 'with a byte order mark')
  t.match(await handoff(['pass', '--task', 't', '--url', url], { env: { HANDOFF_KEY: `\ufeff${secrets.alice}\r\n` } }), { code: 0 }, 'and a line break')
  t.match(parsed(await handoff(['pass', '--task', 't', '--json'], { env: { DATA_DIR, HANDOFF_URL: url } })), { status: 'pending' })
  const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', { task: 't' })).json()
  t.match(await handoff(['catch', id], { env: { DATA_DIR, HANDOFF_KEY: secrets.bob } }), { code: 0 }, 'another key of the same service')
  t.match((await call('alice', 'GET', `/api/status/${id}`)).json(), { caught_by: 'bob' })
})

t.test('a key goes only to the address that it belongs to', async t => {
  const { url, secrets } = start()
  const authorizations: string[] = []
  const elsewhere = await serve(t, ({ headers }, response) => {
    authorizations.push(headers.authorization ?? 'none')
    response.writeHead(404).end()
  })
  const [DATA_DIR, stopped] = [await dataDir(t, secrets.alice, url), await dataDir(t, secrets.alice)]
  const mcp = ['mcp', '--url', elsewhere]
  const status = ['status', 'A'.repeat(25), '--url', elsewhere]
  for (const args of [status, mcp, ['work', 'w', '--url', elsewhere, '--', 'true'], ['events', '--url', elsewhere]]) {
    t.match(await handoff(args, { env: { DATA_DIR } }), { code: 2, stdout: '', stderr: new RegExp(`no key for ${elsewhere} [^\n]*agent.key belongs to ${url}\\)[^\n]* HANDOFF_KEY`) }, args[0]!)
  }
  t.match(await handoff(status, { env: { DATA_DIR: stopped } }), { code: 2, stderr: /belongs to an npm start that isn’t running/ })
  t.match(await handoff(['status', 'A'.repeat(25)], { env: { DATA_DIR: stopped } }), { code: 2, stderr: /belongs to an npm start that isn’t running/ })
  t.match(await handoff(status, { env: { DATA_DIR, HANDOFF_URL: url } }), { code: 2, stderr: /no key for/ })
  t.match(await handoff(['status', 'A'.repeat(25)], { env: { DATA_DIR, HANDOFF_URL: elsewhere } }), { code: 2, stderr: /no key for/ })
  t.match(await handoff(status, { env: { DATA_DIR, HANDOFF_URL: url, HANDOFF_KEY: secrets.bob } }), { code: 2, stderr: /HANDOFF_KEY belongs to HANDOFF_URL/ })
  t.strictSame(authorizations, [], 'nothing was sent')
  await handoff(status, { env: { DATA_DIR, HANDOFF_KEY: secrets.bob } })
  await handoff(status, { env: { DATA_DIR, HANDOFF_URL: elsewhere, HANDOFF_KEY: secrets.bob } })
  t.strictSame(new Set(authorizations), new Set([`Bearer ${secrets.bob}`]))
  for (const address of ['http://192.0.2.1:8080', 'http://127.0.0.1.invalid:8080', 'http://127.1.invalid', 'http://127.0.0.1:8080@host.invalid']) {
    const foreign = await dataDir(t, secrets.alice, address)
    t.match(await handoff(['status', 'x'], { env: { DATA_DIR: foreign } }), { code: 2, stderr: /no key for http:\/\/127\.0\.0\.1:8080/ }, `no address of this machine: ${address}`)
  }
})

t.test('the help names every verb', async t => {
  const { stdout, code } = await handoff(['--help'])
  t.equal(code, 0)
  for (const verb of ['pass', 'catch', 'next', 'done', 'fail', 'decline', 'heartbeat', 'cancel', 'reissue', 'status', 'wait', 'inbox', 'approvals', 'approve', 'reject', 'mcp', 'work', 'serve', 'keys', 'inspect', 'doctor', 'healthcheck']) {
    t.match(stdout, new RegExp(`^  ${verb} `, 'm'), verb)
    if (verb !== 'keys' && verb !== 'serve') t.match(await handoff([verb, '--help']), { code: 0, stdout: new RegExp(`^Usage: handoff ${verb} `) })
  }
})

t.test('a proxy is obeyed as the environment says, and NO_PROXY keeps the key from it', async t => {
  const { as, url, run, secrets } = start()
  const seen: string[] = []
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url} ${request.headers.host} ${request.headers['proxy-authorization']} ${request.headers.authorization === `Bearer ${secrets.bob}`}`)
    response.setHeader('content-type', 'application/json').end('{"pending":7}')
  }).on('connect', (request: IncomingMessage, socket: Socket) => {
    seen.push(`CONNECT ${request.url} ${request.headers.authorization}`)
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const proxy = `http://user:p%40ss@127.0.0.1:${(server.address() as AddressInfo).port}`
  const away = { HANDOFF_KEY: secrets.bob, HANDOFF_URL: 'http://service.test:81/base' }
  const counted = (env: Record<string, string>) => handoff(['inbox', 'in', '--json'], { env })
  t.match(await counted({ ...away, HTTP_PROXY: proxy }), { code: 0, stdout: '{"pending":7}\n' })
  t.match(await counted({ ...away, all_proxy: proxy, https_proxy: 'http://127.0.0.1:1' }), { code: 0 })
  const expected = 'GET http://service.test:81/base/api/inboxes/in service.test:81 Basic dXNlcjpwQHNz true'
  t.strictSame(seen.splice(0), [expected, expected])
  t.match(await counted({ ...away, HANDOFF_URL: 'https://service.test', HTTPS_PROXY: proxy, HTTP_PROXY: 'http://127.0.0.1:1' }), { code: 1, stdout: /the proxy refused the way to service.test:443: status 403/ })
  t.ok(seen.length > 0 && seen.splice(0).every(line => line === 'CONNECT service.test:443 undefined'), 'the key is for the service alone')
  for (const NO_PROXY of ['127.0.0.0/8', '10.0.0.0/8, 127.0.0.1', '*', new URL(url).host]) {
    t.match(await counted({ ...as('bob').env, HTTP_PROXY: proxy, NO_PROXY }), { code: 0, stdout: /"inbox":"in"/ }, NO_PROXY)
  }
  t.strictSame(seen.splice(0), [])
  for (const NO_PROXY of ['10.0.0.0/8', '127.0.0.0/33', '::/0', 'x127.0.0.1', '127.0.0.1:1']) t.match(await counted({ ...as('bob').env, HTTP_PROXY: proxy, NO_PROXY }), { stdout: '{"pending":7}\n' }, NO_PROXY)
  const refused = await counted({ ...away, ALL_PROXY: 'socks5h://user:secret@h:1' })
  t.match(refused, { code: 2, stderr: /^ALL_PROXY names a proxy that can’t be used/ })
  t.notMatch(refused.stderr, 'secret')
  t.match(await run('bob', 'inbox', 'in'), { code: 0 })
})
