/** A newcomer starts the service in a fresh clone and types the pages' commands, in order, into one shell. */
import { execFileSync } from 'node:child_process'
import t from 'tap'
import { commandsUnder, freshClone } from '../helpers/pages.ts'
import { scratchDir } from '../helpers/processes.ts'
import { npmStart } from '../helpers/service.ts'

/** The JSON objects in the output, in order. */
function answersIn (said: string): Array<Record<string, unknown>> {
  return [...said.matchAll(/\{"(?:handoff_id|items|inbox|results|secret)".*?\}(?=\s*(?:\{"(?:handoff_id|items|inbox|results|secret)"|HTTP\/|$))/gs)].map(([text]) => JSON.parse(text))
}

// Packages are installed and the service is built, which takes long on a busy machine.
t.setTimeout(900_000)

t.test('a newcomer follows the pages in an empty folder', { timeout: 900_000 }, async t => {
  const clone = await scratchDir(t)
  await freshClone(clone)
  t.equal(commandsUnder('README.md', 'Start'), 'npm start\n')
  const service = await npmStart(t, { PORT: '0' }, clone)
  t.match(service.output(), 'A first call')
  const { REDIS_URL: _, ...own } = process.env
  const env = { ...own, HANDOFF_URL: service.address }
  // Only the port differs, since tests run in parallel.
  const type = (script: string, stderr: 'inherit' | 'ignore' = 'inherit') =>
    execFileSync('bash', ['-euo', 'pipefail', '-c', script.replaceAll('http://127.0.0.1:8080', service.address)], { cwd: clone, encoding: 'utf8', env, stdio: ['ignore', 'pipe', stderr] })

  await t.test('README.md: a first handoff', async t => {
    const said = type(commandsUnder('README.md', 'A first handoff'))
    const id = /^[A-Za-z0-9_-]{25}$/m.exec(said)?.[0]
    t.ok(id, 'pass printed the id')
    t.match(answersIn(said.slice(said.indexOf('{'))), [
      { handoff_id: id, status: 'caught', output: { rows: 128 } },
      { handoff_id: id, status: 'done' },
      { handoff_id: id, status: 'done', result: { summary: 'All is well.' } },
    ])
    t.match(said, '"total": 1.0', 'byte for byte')
  })

  await t.test('docs/api.md: waiting, and asking again', async t => {
    t.match(answersIn(type(commandsUnder('docs/api.md', 'Waiting'))), [{ status: 'pending', caught_at: null }])
    const said = type(commandsUnder('docs/api.md', 'Asking again'))
    const [first, second, ...others] = answersIn(said)
    t.strictSame([second, others], [first, []], 'the same answer')
    t.match(said, /^HTTP\/1\.1 201 [^]*HTTP\/1\.1 201 [^]*^idempotency-replayed: true/mi)
    t.equal(said.match(/idempotency-replayed/gi)?.length, 1)
  })

  await t.test('docs/attempts.md: a heartbeat, and a failure with a successor', async t => {
    const [, ended] = answersIn(type(commandsUnder('docs/attempts.md', 'Checkpoints')))
    t.match(ended, { checkpoint: { rows: 4200 }, attempt: 2 })
    const [caught, heard, failed, ...others] = answersIn(type(commandsUnder('docs/attempts.md', 'Windows')))
    t.match(caught, { status: 'caught', task: 'Count the rows', heartbeat_within: 60 })
    t.match(heard, { status: 'caught', cancel_requested: false })
    t.match(failed, { status: 'failed', reissued_as: /./ })
    t.strictSame(others, [])
  })

  await t.test('docs/callbacks.md: a handoff with a callback', async t => {
    const [status, secret, ...others] = answersIn(type(commandsUnder('docs/callbacks.md', 'Passing one')))
    t.match(status, { status: 'pending', callback: { url: 'https://example.com/counted', pending: 0 } })
    t.match(secret, { secret: /^whsec_/ })
    t.strictSame(others, [])
  })

  await t.test('docs/inboxes.md: what comes next', async t => {
    const [passed, counted, caught, ...others] = answersIn(type(commandsUnder('docs/inboxes.md', 'Inboxes')))
    t.match(passed, { status: 'pending' })
    const settings = type(commandsUnder('docs/inboxes.md', 'Pausing and limiting'))
    t.match(JSON.parse(/^\{.*?\}/.exec(settings)![0]), { inbox: 'reviewer', paused: true, max_pending: 1000 }, 'before what the command says')
    t.match(settings, /^paused +false$/m)
    t.match(counted, { inbox: 'reviewer', pending: 1, waiting_approval: 0 })
    t.match(caught, { items: [{ task: 'Review the figures', to: 'reviewer' }] })
    t.strictSame(others, [])
    const several = type(commandsUnder('docs/inboxes.md', 'Several inboxes'))
    t.match(several, /^\{"items":\[\]\}\s*nothing to catch\s*$/)
    const groups = type(commandsUnder('docs/inboxes.md', 'Groups'))
    t.match(JSON.parse(/\{"items".*$/m.exec(groups)![0]), { items: [{ group: 'customer-7', pending: 0, caught: 1 }, { group: 'customer-8', pending: 0, caught: 1 }], next_cursor: null })
  })

  await t.test('docs/batches.md: two at once', async t => {
    t.match(answersIn(type(commandsUnder('docs/batches.md', 'Batches'))), [{ results: [{ status: 201 }, { status: 201, body: { status: 'pending' } }] }])
  })

  await t.test('docs/approvals.md: by program', async t => {
    const [list, whole, decided, caught, ...others] = answersIn(type(commandsUnder('docs/approvals.md', 'By program')))
    t.match(list, { items: [{ task: 'Delete the old invoices' }], next_cursor: null })
    t.match(whole, { status: 'pending', task: 'Delete the old invoices', approval: { state: 'waiting' } })
    t.match(decided, { status: 'pending', approval: { state: 'approved', decided_by: 'approver', note: 'Go ahead.' } })
    t.match(caught, { status: 'caught', task: 'Delete the old invoices', approval: { state: 'approved' } })
    t.strictSame(others, [])
  })

  await t.test('docs/approvals.md: what was decided', async t => {
    const [listed] = answersIn(type(commandsUnder('docs/approvals.md', 'What was decided')))
    t.match(listed, { items: [{ state: 'approved', decided_by: 'approver', note: 'Go ahead.', task: 'Delete the old invoices' }] })
  })

  await t.test('docs/keys.md: an operator', async t => {
    t.match(type(commandsUnder('docs/keys.md', 'Operators')), /cancelled/)
  })

  await t.test('docs/keys.md: a key’s life', async t => {
    const said = type(commandsUnder('docs/keys.md', 'Keys from Redis'))
    t.match(said, /^id +tenant +name +scopes +inboxes +a minute +created +ends +state\n\S+ +default +summariser +pass,status +any +- +\S+ +\S+ +live\n/)
    t.match(said, /^key +handoff_\S+\n[^]*^revoked: within 2 s /m)
    t.match(said, /^inboxes +reviewer\nlimit +600 requests a minute\nends +\S+ [^]*^inboxes +any\nlimit +RATE_LIMIT_PER_MINUTE\n/m)
  })

  await t.test('docs/limits.md: limits set while it runs', async t => {
    const said = type(commandsUnder('docs/limits.md', 'Set while it runs'))
    t.match(said, /^tenant +agent +requests a minute +live at most +live\ndefault +all together +6000 +10000 +\d+\ndefault +summariser +60 +- +-\nremoved: [^]*^removed: /m)
  })

  await t.test('README: an agent in five minutes', async t => {
    t.match(type(commandsUnder('README.md', 'An agent in five minutes')), /^status +pending\n/m)
    t.match(type('npx handoff inbox shouts'), /^pending +0$/m, 'the worker had it')
  })

  await t.test('docs/cli.md: an agent with a shell', async t => {
    const said = type(commandsUnder('docs/cli.md', 'For agents'))
    t.match(said, /^task +Count the invoices\noutput +\{"folder": "2026-11"\}\n[^]*^status +done\n[^]*^result +\{"invoices": 12\}\n/m)
    t.match(type(commandsUnder('docs/cli.md', 'Serving an inbox')), /^status +pending\n/m)
    t.match(type('npx handoff inbox shouts'), /^pending +0$/m, 'the worker had it')
  })

  await t.test('docs/cli.md: without a clone', async t => {
    t.match(type(commandsUnder('docs/cli.md', 'Without a clone')), /^status +pending\n/m)
    t.match(type('npx handoff inbox shouts'), /^pending +0$/m, 'the worker had it')
  })

  await t.test('docs/cli.md: what support sees', async t => {
    const said = type(commandsUnder('docs/cli.md', 'Looking at a handoff'))
    t.match(said, /^status +pending\n[^]*^passed +\S+ \(.*\) by agent\n[^]*^key +handoff:\{...\}:h:default:\S+\nmaster +\S+redis\.sock\n/m)
    const checked = type(commandsUnder('docs/cli.md', 'Checking Redis and issuers'))
    // On a busy machine the way to Redis takes long: one warning more.
    const warnings = /^warning +latency: /m.test(checked) ? '2 warnings' : '1 warning'
    t.match(checked, new RegExp(`^ok +ready: the service can serve\\n[^]*^warning +maxmemory: no limit;[^]*^0 errors, ${warnings}, 0 notes\\n$`, 'm'))
  })

  // Only one file, since this test is part of the suite itself.
  await t.test('docs/testing.md: the tests, from the clone', async t => {
    t.equal(commandsUnder('README.md', 'Tests'), 'npm test\n')
    const command = commandsUnder('docs/testing.md', 'Running tests')
    t.match(command, /^npm test -- test\/http\/status\.test\.ts\n$/)
    t.match(type(command, 'ignore'), /^ *ok 1 - reading test.http.status/m)
  })
})
