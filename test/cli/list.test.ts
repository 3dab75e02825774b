import { PassThrough } from 'node:stream'
import t from 'tap'
import { callerOf } from '../../src/core/model.ts'
import type { Scope } from '../../src/core/model.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { testApp } from '../helpers/app.ts'
import { proxy, serve } from '../helpers/client.ts'
import { handoff, parsed } from '../helpers/command.ts'
import type { Ended } from '../helpers/command.ts'
import { listen } from '../helpers/wire.ts'

/** `handoff list`, `inboxes`, `inbox`, `redrive` and `purge`. Each subtest has a tenant of its own, with an agent and an operator. */

const names = ['live', 'failed', 'hostile', 'many', 'direct', 'wrong', 'clock', 'redrive', 'again', 'purge', 'asks', 'scope', 'inboxes', 'unasked', 'runs']
const agents: Array<[string, Scope[]]> = [['ann', ['pass', 'catch', 'status']], ['olga', ['operate', 'status']]]
const secretOf = (tenant: string, agent: string) => `${tenant}-${agent}-secret-0123456789`
const keys = names.flatMap(tenant => agents.map(([agent, scopes]) => ({ caller: callerOf(tenant, agent, scopes), secret: secretOf(tenant, agent) })))
// Over TCP, because REDIS_URL can't name a unix socket.
const { url } = await startRedisServer(t)
const { app, prefix } = await testApp(t, {}, { url }, keys)
const address = `http://127.0.0.1:${await listen(app)}`

interface Item { handoff_id: string, [name: string]: any }

function as (tenant: string) {
  const ask = async (method: 'GET' | 'POST', url: string, body?: object, agent = 'ann') => {
    const answer = await app.inject({ method, url, headers: { authorization: `Bearer ${secretOf(tenant, agent)}` }, ...body && { body } })
    if (answer.statusCode >= 300) throw new Error(answer.body)
    return answer
  }
  const pass = async (members: object = {}) => (await ask('POST', '/api/pass', { task: 't', ...members })).json().handoff_id as string
  const caught = async (members: object = {}) => {
    const id = await pass(members)
    await ask('GET', `/api/catch/${id}`)
    return id
  }
  const fail = async (members: object = {}, error: object = {}) => {
    const id = await caught(members)
    await ask('POST', `/api/fail/${id}`, { error: { message: 'm', ...error } })
    return id
  }
  const env = (HANDOFF_URL = address, agent = 'olga') => ({ HANDOFF_URL, HANDOFF_KEY: secretOf(tenant, agent) })
  const run = (...args: string[]) => handoff(args, { env: env() })
  const stored = (...args: string[]) => handoff([...args, '--tenant', tenant], { env: { REDIS_URL: url, REDIS_KEY_PREFIX: prefix } })
  const status = async (id: string) => (await ask('GET', `/api/status/${id}`)).json() as Item
  return { ask, pass, caught, fail, env, run, stored, status }
}

const idsOf = (ended: Ended) => parsed<{ items: Item[] }>(ended).items.map(({ handoff_id: id }) => id)
const lineIds = ({ stdout }: Ended) => stdout.trimEnd().split('\n').map(line => JSON.parse(line).handoff_id as string)

t.test('what is live, for people and for programs', async t => {
  const { ask, pass, caught, run } = as('live')
  t.match(await run('list'), { code: 0, stdout: 'none\n', stderr: '' })
  const waits = await pass({ to: 'review', require_human: true, labels: { run: '42', 1: 'a' } })
  const at = await caught({ to: 'writers' })
  await ask('POST', `/api/heartbeat/${at}`, { progress: { message: 'half way' } })
  const plain = await pass({ task: 'Count the rows' })
  const later = await pass({ task: 'Add them up', after: [at, plain] })
  const { code, stdout, stderr } = await run('list')
  t.strictSame([code, stderr], [0, ''])
  const lines = stdout.trimEnd().split('\n')
  t.match(lines.shift(), /^id +status +to +by +since$/)
  for (const line of [new RegExp(`^${waits} +pending +review +ann +\\d+ s +waits for a person$`), new RegExp(`^${at} +caught +writers +ann +\\d+ s +"half way"$`),
    new RegExp(`^${plain} +pending +- +ann +\\d+ s +"Count the rows"$`), new RegExp(`^${later} +pending +- +ann +\\d+ s +waits for 2 other handoffs$`)]) t.ok(lines.some(one => line.test(one)), String(line))
  t.equal(lines.length, 4)
  t.equal((await run('list', '--json')).stdout, `${(await ask('GET', '/api/handoffs', undefined, 'olga')).body}\n`, 'literally')
  t.strictSame(idsOf(await run('list', '--inbox', 'review', '--json')), [waits])
  t.strictSame(idsOf(await run('list', '--label', 'run:42', '--label', '1:a', '--json')), [waits])
  t.strictSame(idsOf(await run('list', '--label', 'run:41', '--json')), [])
  t.strictSame(idsOf(await run('list', '--caught-by', 'ann', '--json')), [at])
  t.strictSame(idsOf(await run('list', '--passed-by', 'olga', '--json')), [])
  t.equal(idsOf(await run('list', '--passed-by', 'ann', '--json')).length, 4)
})

t.test('what failed, by its filters', async t => {
  const { ask, pass, fail, run } = as('failed')
  const failed = await fail({ to: 'a' }, { message: 'no disk', code: 'E1' })
  const declined = await pass({ to: 'a' })
  await ask('GET', `/api/catch/${declined}`)
  await ask('POST', `/api/decline/${declined}`, { reason: 'not mine' })
  await pass({ to: 'a' })
  const { stdout } = await run('list', '--failed')
  t.match(stdout, new RegExp(`^id .*\n${declined} +declined +a +ann +\\d+ s +"not mine"\n${failed} +failed +a +ann +\\d+ s +E1 "no disk"\n$`))
  const only = async (...args: string[]) => idsOf(await run('list', '--failed', '--json', ...args))
  t.strictSame(await only(), [declined, failed], 'the latest end first')
  t.strictSame(await only('--status', 'failed,expired'), [failed])
  t.strictSame(await only('--error-code', 'E1'), [failed])
  t.strictSame(await only('--caught-by', 'olga'), [])
  t.strictSame(await only('--since', '1h'), [declined, failed])
  t.strictSame(await only('--until', '1h'), [])
  t.strictSame(await only('--since', '2100-01-01T00:00:00Z'), [])
  t.strictSame(await only('--until', '2100-01-01T00:00:00+01:00'), [declined, failed])
})

t.test('hostile text is harmless, and what is too long for a line is cut', async t => {
  const { fail, run } = as('hostile')
  const name = 'n'.repeat(64)
  await fail({ to: name }, { message: `\u001b[2J\u009b2J\n\u202e${'x'.repeat(300)}`, code: '__proto__' })
  await fail({ to: 'w' }, { message: '漢'.repeat(100) })
  const { stdout } = await run('list', '--failed')
  const [, cjk, line] = stdout.trimEnd().split('\n')
  t.match(line, /^\S{25} +failed +n{19}… +ann +\d+ s +__proto__ "\\u001b\[2J\\u009b2J\\n\\u202ex+…$/)
  t.equal([...line!].length, 160)
  t.ok([...cjk!].length + cjk!.match(/漢/g)!.length <= 160, 'two places each')
  t.notOk(/[^\P{C}\n]/u.test(stdout), 'nothing steers the terminal')
})

t.test('many: as many as wanted, over the pages, or all', async t => {
  const { pass, run, env } = as('many')
  const operations = Array.from({ length: 100 }, () => ({ op: 'pass', body: { task: 't', to: 'in' } }))
  for (let n = 0; n < 2; n++) await as('many').ask('POST', '/api/batch', { operations })
  await pass({ to: 'in' })
  t.match((await run('list')).stdout, /^id [^]*\n\nThere are more: --all [^\n]+\n$/)
  t.equal((await run('list')).stdout.split('\n').length, 1 + 20 + 3)
  const some = parsed<{ items: Item[], next_cursor: string }>(await run('list', '--json', '--limit', '150'))
  t.equal(some.items.length, 150)
  const all = await run('list', '--json', '--all')
  t.equal(new Set(lineIds(all)).size, 201, 'one item a line')
  t.strictSame(some.items.map(({ handoff_id: id }) => id), lineIds(all).slice(0, 150))
  t.strictSame(lineIds(await run('list', '--json', '--all', '--cursor', some.next_cursor)), lineIds(all).slice(150))
  t.equal(parsed<{ next_cursor: null }>(await run('list', '--json', '--limit', '500')).next_cursor, null)
  const people = (await run('list', '--all')).stdout.trimEnd().split('\n')
  t.equal(people.length, 1 + 201, 'with one title')
  t.equal((await run('list', '--json', '--limit', '20')).stdout.includes('"next_cursor":"'), true)
  t.match(await handoff(['list', '--all'], { env: env(), isFull: true }), { code: 1, stderr: /^standard output can’t be written: / })

  // Agents' own JSON may have line breaks.
  const broken = await serve(t, (_, response) => { response.end('{"items":[{"a":1,\r\n"b":2}],"next_cursor":null}') })
  t.equal((await handoff(['list', '--all', '--json'], { env: env(broken) })).stdout, '{"a":1, "b":2}\n')

  // A page may have fewer items than asked for, or none.
  const { items } = some
  const pages = [items.slice(0, 2), [], items.slice(2, 3)]
  const wants: string[] = []
  const sparse = await serve(t, (request, response) => {
    if (request.url === '/healthz') return response.end()
    wants.push(new URL(request.url!, 'http://x').searchParams.get('limit')!)
    response.end(JSON.stringify({ items: pages[wants.length - 1], next_cursor: wants.length < 3 ? 'c' : null }))
  })
  t.strictSame(idsOf(await handoff(['list', '--json', '--limit', '5'], { env: env(sparse) })), items.slice(0, 3).map(({ handoff_id: id }) => id))
  t.strictSame(wants, ['5', '3', '3'])
})

t.test('directly from Redis, without a key: the same', async t => {
  const { ask, fail, pass, run, stored } = as('direct')
  await pass({ to: 'a', labels: { run: '1' }, task: 'T' })
  await pass({ to: 'b' })
  await ask('POST', `/api/heartbeat/${await as('direct').caught({ to: 'c' })}`, JSON.parse('{"progress":{"message":"x"}}'))
  await fail({ to: 'a' }, { code: 'E' })
  const timeless = ({ stdout, ...rest }: Ended) => ({ ...rest, stdout: stdout.replace(/ \d+ s /g, ' - ') })
  for (const args of [['list'], ['list', '--json'], ['list', '--all', '--json'], ['list', '--inbox', 'a', '--json'], ['list', '--label', 'run:1', '--json'],
    ['list', '--limit', '1', '--json'], ['list', '--failed', '--since', '1h', '--error-code', 'E', '--status', 'failed', '--passed-by', 'ann', '--caught-by', 'ann', '--json'],
    ['list', '--since', '1h'], ['list', '--since', '1h', '--status', 'failed'], ['list', '--cursor', 'x']]) {
    const direct = await stored(...args)
    t.strictSame(timeless(direct), timeless(await run(...args)), args.join(' '))
  }
  t.match(await stored('list', '--since', '1h', '--json'), { code: 1, stdout: /"code":"invalid_request"/, stderr: '' })
  t.match(await stored('list', '--url', address), { code: 2, stdout: '', stderr: /--tenant/ })
  t.match(await handoff(['list', '--tenant', 'other', '--json'], { env: { REDIS_URL: url, REDIS_KEY_PREFIX: prefix } }), { code: 0, stdout: '{"items":[],"next_cursor":null}\n' })
  t.match(await handoff(['list', '--tenant', 'x'], { env: { REDIS_URL: 'redis://127.0.0.1:1' } }), { code: 1, stdout: '', stderr: /^[^\n]+\n$/ })
})

t.test('wrong usage, and what the service refuses', async t => {
  const { run } = as('wrong')
  const wrong: Array<[args: string[], says: RegExp]> = [
    [['list', '--all', '--limit', '5'], /^--all and --limit exclude each other/],
    [['list', '--limit', '0'], /^--limit: "0"/],
    [['list', '--limit', '1.5'], /^--limit: /],
    [['list', '--inbox', 'a b'], /^--inbox: /],
    [['list', '--passed-by', ''], /^--passed-by: /],
    [['list', '--caught-by', '*'], /^--caught-by: /],
    [['list', '--tenant', ''], /^--tenant: /],
    [['list', '--label', 'x'], /^--label: /],
    [['list', '--failed', '--status', 'gone'], /^--status: "gone"/],
    [['list', '--failed', '--ended'], /^--failed and --ended exclude each other/],
    [['list', '--failed', '--error-code', 'a b'], /^--error-code: /],
    [['list', '--failed', '--since', 'yesterday'], /^--since: "yesterday" is not valid; it takes a time/],
    [['list', '--failed', '--since', '2026-02-30T00:00:00Z'], /^--since: /],
    [['list', '--failed', '--until', '999999999d'], /^--until: /],
    [['redrive', '--caught-by', 'ann'], /unknown option/],
    [['redrive', '--all', '--limit', '5'], /^--all and --limit exclude each other/],
    [['purge'], /^name an inbox, or a run with --label/],
    [['purge', 'a', '--caught', 'maybe'], /^--caught takes ask or force/],
    [['purge', 'a', '--all', '--limit', '5'], /^--all and --limit exclude each other/],
  ]
  for (const [args, says] of wrong) t.match(await run(...args), { code: 2, stdout: '', stderr: says }, args.join(' '))
  t.match(await run('list', '--since', '1h'), { code: 1, stdout: '', stderr: /\/since querystring: needs state=failed or state=ended \(invalid_request\)\n$/ })
  t.match(await run('redrive', '--limit', '1001', '--yes'), { code: 1, stdout: '', stderr: /\/limit/ })
  t.match(await run('purge', 'a b', '--yes'), { code: 1, stdout: '', stderr: /\/inbox/ })
})

t.test('durations count from the service’s clock', async t => {
  const { env } = as('clock')
  const asked: string[] = []
  const away = await serve(t, (request, response) => {
    asked.push(`${request.headers.authorization === undefined} ${request.url}`)
    response.setHeader('date', 'Tue, 01 Jan 2030 12:00:00 GMT').end('{"items":[],"next_cursor":null}')
  })
  await handoff(['list', '--failed', '--json', '--since', '90m', '--until', '1h'], { env: env(away) })
  t.strictSame(asked, ['true /healthz', 'false /api/handoffs?state=failed&since=2030-01-01T10%3A30%3A00.000Z&until=2030-01-01T11%3A00%3A00.000Z&limit=20'])
  asked.length = 0
  await handoff(['list', '--failed', '--json', '--since', '2030-01-01T10:30:00Z'], { env: env(away) })
  t.equal(asked.length, 1, 'a time needs no clock')
  await as('clock').pass({ to: 'box' })
  for (const [command, age] of [['list', /pending +box +ann +\d+ m?s/], ['inboxes', /^box +1 +\d+ m?s/m]] as const) {
    const NODE_OPTIONS = '--import data:text/javascript,Date.now=()=>4e12'
    t.match(await handoff([command, '--tenant', 'clock'], { env: { REDIS_URL: url, REDIS_KEY_PREFIX: prefix, NODE_OPTIONS } }), { code: 0, stdout: age }, 'from Redis’s')
  }
})

t.test('redrive', async t => {
  const { ask, fail, run, status } = as('redrive')
  const ids = [await fail({ to: 'a', labels: { run: '1' } }, { code: 'E' }), await fail({ to: 'a' }), await fail({ to: 'b' })]
  t.strictSame(parsed(await run('redrive', '--json', '--inbox', 'a', '--label', 'run:1', '--error-code', 'E', '--status', 'failed,expired', '--passed-by', 'ann', '--since', '1h')),
    { reissued: 1, skipped: 0, more: false })
  t.match(await status(ids[0]!), { reissued_as: /./ })
  t.strictSame(parsed(await run('redrive', '--json', '--until', '1h', '--yes')), { reissued: 0, skipped: 0, more: false })
  t.match(await run('redrive', '--limit', '1', '--yes'), { code: 0, stdout: 'reissued  1\nskipped   0\nmore      true\n\nThere are more: --all goes on until there are none.\n', stderr: '' })
  t.match(await run('redrive', '--all', '--yes'), { code: 0, stdout: 'reissued  1\nskipped   0\nmore      false\n', stderr: '' })
  t.match(await run('redrive', '--all', '--yes'), { code: 0, stdout: 'reissued  0\nskipped   0\nmore      false\n' })
  t.strictSame((await ask('GET', '/api/handoffs?state=failed')).json().items, [])
})

t.test('redrive --all ends, whatever goes on failing', async t => {
  const { fail, env, ask } = as('again')
  for (let n = 0; n < 3; n++) await fail({ to: 'a' })
  const bodies: Array<Record<string, unknown>> = []
  // One handoff a call; what was reissued fails again before the next.
  const { address: slow } = await proxy(t, address, ({ url, body }) => {
    if (url !== '/api/redrive') return 'pass'
    return async (_, response) => {
      bodies.push(JSON.parse(body))
      const answer = await ask('POST', '/api/redrive', { ...JSON.parse(body), limit: 1 }, 'olga')
      const { items } = (await ask('GET', '/api/handoffs?inbox=a')).json() as { items: Item[] }
      for (const { handoff_id: id } of items) {
        await ask('GET', `/api/catch/${id}`)
        await ask('POST', `/api/fail/${id}`, { error: { message: 'again' } })
      }
      response.end(answer.body)
    }
  })
  const { code, stdout } = await handoff(['redrive', '--all', '--json', '--yes'], { env: env(slow) })
  t.equal(code, 0)
  t.strictSame(stdout.trimEnd().split('\n').map(line => JSON.parse(line).reissued), [1, 1, 1], 'an answer a line')
  t.match(bodies[0], { limit: 1000, until: /Z$/ })

  const stuck = await serve(t, (request, response) => {
    response.end(request.url === '/api/redrive' ? '{"reissued":0,"skipped":0,"more":true}' : '{"items":[],"next_cursor":null}')
  })
  t.match(await handoff(['redrive', '--all', '--yes'], { env: env(stuck) }), { code: 1, stdout: /^reissued {2}0\n/, stderr: /^3 calls found nothing/ })
})

t.test('purge', async t => {
  const { ask, pass, caught, run, status } = as('purge')
  const ids = [await pass({ to: 'a', labels: { run: '1' } }), await pass({ to: 'a', delay: 60 }), await pass({ to: 'a', require_human: true })]
  const others = [await caught({ to: 'a' }), await pass({ to: 'b' })]
  t.strictSame(parsed(await run('purge', 'a', '--label', 'run:1', '--reason', 'a "mistake"', '--json', '--yes')), { cancelled: 1, more: false })
  t.match(await status(ids[0]!), { status: 'cancelled', ended_by: 'olga', cancel_reason: 'a "mistake"' })
  t.match(await run('purge', 'a', '--limit', '1', '--yes'), { code: 0, stdout: 'cancelled  1\nmore       true\n\nThere are more: --all goes on until there are none.\n', stderr: '' })
  t.match(await run('purge', 'a', '--all', '--yes'), { code: 0, stdout: 'cancelled  1\nmore       false\n', stderr: '' })
  for (const id of ids) t.match(await status(id), { status: 'cancelled' })
  for (const id of others) t.match((await status(id)).status, /caught|pending/)
  t.strictSame((await ask('GET', '/api/handoffs?inbox=a')).json().items.length, 1)
})

t.test('on a terminal purge asks first', async t => {
  const { pass, run, status } = as('asks')
  const id = await pass({ to: 'a', labels: { run: '1' } })
  /** Runs it on a terminal, where this is typed. */
  const on = async (typed: string, ...args: string[]) => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true, isRaw: false, setRawMode () {} })
    const before = Object.getOwnPropertyDescriptor(process, 'stdin')!
    const { isTTY } = process.stderr
    Object.defineProperty(process, 'stdin', { value: stdin, configurable: true })
    process.stderr.isTTY = true
    try {
      stdin.end(typed)
      return await run('purge', 'a', ...args)
    } finally {
      process.stderr.isTTY = isTTY
      Object.defineProperty(process, 'stdin', before)
    }
  }
  for (const typed of ['n\n', '\n', 'yellow\n', '', '\u0003', '\u0004']) {
    t.match(await on(typed, '--label', 'run:1'), { code: 1, stdout: '', stderr: /Cancel what is pending in a with run:1 at http:[^]+\? \[y\/N\][^]*nothing was changed\n$/ }, JSON.stringify(typed))
  }
  t.match(await status(id), { status: 'pending' })
  t.match(await on('y\n'), { code: 0, stdout: /^cancelled {2}1\n/ })
  await pass({ to: 'a' })
  t.match(await on('', '--yes'), { code: 0, stdout: /^cancelled {2}1\n/, stderr: '' })
})

t.test('without a terminal purge, and redrive without --inbox, change nothing unless --yes says so; --dry-run counts', async t => {
  const { pass, fail, caught, run, status } = as('unasked')
  const [waiting, failed] = [[await pass({ to: 'a', labels: { run: '1' } }), await pass({ to: 'a' })], [await fail({ to: 'a' }), await fail({ to: 'b' })]]
  await caught({ to: 'a' })
  for (const args of [['purge', 'a', '--all'], ['purge', 'a', '--json'], ['redrive'], ['redrive', '--all', '--label', 'run:1']]) {
    t.match(await run(...args), { code: 2, stdout: '', stderr: /^without a terminal this needs --yes; --dry-run says how many would change/ }, args.join(' '))
  }
  for (const [args, expected] of [
    [['purge', 'a', '--all'], { would_change: 2, more: false }], [['purge', 'a', '--limit', '1'], { would_change: 1, more: true }], [['purge', 'a', '--label', 'run:1', '--yes'], { would_change: 1, more: false }],
    [['redrive'], { would_change: 2, more: false }], [['redrive', '--inbox', 'b'], { would_change: 1, more: false }], [['redrive', '--all', '--since', '1h'], { would_change: 2, more: false }], [['redrive', '--until', '1h'], { would_change: 0, more: false }],
  ] as const) t.strictSame(parsed(await run(...args, '--dry-run', '--json')), expected, args.join(' '))
  t.match(await run('purge', 'a', '--dry-run'), { code: 0, stdout: 'would_change  2\nmore          false\n' })
  for (const id of waiting) t.match(await status(id), { status: 'pending' })
  for (const id of failed) t.match(await status(id), { status: 'failed', reissued_as: null })
  t.strictSame(parsed(await run('redrive', '--inbox', 'b', '--json')), { reissued: 1, skipped: 0, more: false }, 'one inbox was named')
})

t.test('an agent’s key lists, and no more', async t => {
  const { pass, env, status } = as('scope')
  const id = await pass({ to: 'a' })
  const run = (...args: string[]) => handoff(args, { env: env(address, 'ann') })
  t.notOk((await run('list', '--json')).stdout.includes('"task"'))
  for (const args of [['redrive'], ['redrive', '--all'], ['purge', 'a'], ['purge', 'a', '--all']]) {
    t.match(await run(...args, '--yes'), { code: 1, stdout: '', stderr: /\(insufficient_scope\)\n$/ }, args.join(' '))
  }
  t.match(await status(id), { status: 'pending' })
})

t.test('inboxes, for people and for programs, with a key and without; and what is set for one', async t => {
  const { pass, caught, fail, run, stored, env } = as('inboxes')
  t.match(await run('inboxes'), { code: 0, stdout: 'none\n', stderr: '' })
  for (const to of ['red', 'blue', 'red']) await pass({ to })
  await caught({ to: 'green' })
  await fail({ to: 'blue' })
  t.match(await run('inbox', 'red', '--pause', '--max-caught', '5', '--max-pending', '10000000'), { code: 0, stdout: /^paused +true\nmax_caught +5\nmax_pending +10000000$/m })
  const { stdout } = await run('inboxes')
  t.match(stdout, /^inbox +pending +oldest +approval +delayed +blocked +caught +failed +groups +listening\nblue +1 +\d+ m?s +0 +0 +0 +0 +1 +1 +0\ngreen +0 +- +0 +0 +0 +1 +0 +0 +0\nred +2 .* paused, max 5 caught, max 10000000 pending\n$/)
  const page = parsed<{ items: Array<{ inbox: string }>, next_cursor: string }>(await run('inboxes', '--limit', '2', '--json'))
  t.strictSame(page.items.map(({ inbox }) => inbox), ['blue', 'green'])
  t.match(parsed(await run('inboxes', '--cursor', page.next_cursor, '--json')), { items: [{ inbox: 'red', paused: true }], next_cursor: null })
  const lines = (await run('inboxes', '--all', '--json')).stdout
  t.strictSame(lines.trimEnd().split('\n').map(line => JSON.parse(line).inbox), ['blue', 'green', 'red'])
  t.equal((await stored('inboxes', '--all', '--json')).stdout, lines, 'directly')
  t.match(await run('inboxes', '--limit', '1'), { stdout: /^blue[^]*There are more/m })
  t.match(parsed(await run('inbox', 'red', '--resume', '--max-caught', 'none', '--json')), { paused: false, max_caught: null, max_pending: 10_000_000 })
  t.match(parsed(await run('inbox', 'red', '--max-caught-per-group', '2', '--json')), { max_caught_per_group: 2, groups: 1 })
  t.match(await run('inboxes'), { stdout: /^red .* max 2 caught of a group, max 10000000 pending$/m })
  t.match(parsed(await run('inbox', 'red', '--max-caught-per-group', 'none', '--json')), { max_caught_per_group: null })
  await pass({ to: 'red', group: 'a' })
  t.match(parsed<{ items: Array<{ group?: string }> }>(await run('list', '--group', 'a', '--json')).items.map(({ group }) => group), ['a'])
  t.match((await stored('list', '--group', 'a')).stdout, /^id[^\n]+\n\S+ +pending +red +[^\n]+\n$/)
  t.match(parsed(await run('inbox', 'red', '--json')), { inbox: 'red', pending: 3 })
  t.match(await handoff(['inbox', 'red', '--pause'], { env: env(address, 'ann') }), { code: 1, stderr: /scope/ })
  for (const [options, said] of [
    [['inbox', 'red', '--pause', '--resume'], /exclude each other/], [['inbox', 'red', '--max-caught', '0'], /--max-caught: "0" is not valid/],
    [['inbox', 'red', '--max-caught-per-group', 'x'], /--max-caught-per-group: "x" is not valid/], [['list', '--group', 'a b'], /--group: "a b" is not valid/],
    [['inboxes', '--all', '--limit', '1'], /exclude each other/], [['inboxes', '--tenant', 'inboxes', '--url', address], /one of them/],
  ] as const) t.match(await run(...options), { code: 2, stderr: said })
})

t.test('runs and what has ended', async t => {
  const { run, pass, fail } = as('runs')
  await fail({ to: 'ending', task: 'first line\nsecond', labels: { run: 'r-1' } })
  await pass({ labels: { run: 'r-1' } })
  t.match(await run('list', '--ended', '--inbox', 'ending', '--status', 'failed', '--json'), { code: 0, stdout: /"status":"failed"/ })
  t.match(await run('runs'), { code: 0, stdout: /^run +live +done +failed +other +first +last\nr-1 +1 +0 +1 +0 +\S+ +\S+\n$/ })
  t.match(await run('runs', 'run', '--json'), { code: 0, stdout: /"value":"r-1","live":1/ })
  t.match(await run('runs', 'team'), { code: 1, stderr: /must be one of RUN_LABELS: run/ })
  t.match(await run('purge', '--label', 'run:r-1', '--caught', 'ask', '--dry-run'), { code: 0, stdout: /would_change +1\n/ })
  t.match(await run('purge', '--label', 'run:r-1', '--caught', 'ask', '--yes'), { code: 0, stdout: /cancelled +1\n/ })
})
