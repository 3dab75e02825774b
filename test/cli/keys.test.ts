import { hostname } from 'node:os'
import t from 'tap'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { builtHandoff, handoff, parsed } from '../helpers/command.ts'
import { testStore } from '../helpers/redis.ts'

// Over TCP, because REDIS_URL can't name a unix socket.
const { url } = await startRedisServer(t)

t.test('a key is created, listed, rotated and revoked', async t => {
  const { store, prefix, redis } = await testStore(t, { url })
  const env = { REDIS_URL: url, REDIS_KEY_PREFIX: prefix }
  const run = (...args: string[]) => handoff(['keys', ...args], { env })

  t.match(await run('list'), { code: 0, stdout: 'there are no keys in Redis\n', stderr: '' })
  t.strictSame(parsed(await run('list', '--json')), [])

  const limits = ['--expires-in', '90d', '--rate-limit', '600']
  const made = await builtHandoff(['keys', 'create', '--tenant', 'acme', '--name', 'reader-1', '--scopes', 'catch,status,catch', ...limits], { env })
  t.match(made, { code: 0, stderr: '' })
  const [, key, id] = /^key +(\S+)\nid +(\S+)\n/.exec(made.stdout) ?? []
  t.match(made.stdout, /shown only once/)
  const record = (await store.keyRecords.find(id!))!
  t.match(record, { tenant: 'acme', agent: 'reader-1', scopes: ['catch', 'status'], ratePerMinute: 600 })
  t.equal(record.endsAt! - record.createdAt, 90 * 86400_000)

  const other = parsed(await run('create', '--name', 'w', '--scopes', 'pass', '--json'))
  t.match(other, { id: /^\S+$/, key: /^\S{20,}$/, tenant: 'default', name: 'w', scopes: ['pass'], expires_at: null })
  t.not(other.key, key)

  const rotated = parsed(await run('rotate', id!, '--grace', '48h', '--json'))
  t.match(rotated, { id, key: /^\S{20,}$/, name: 'reader-1', expires_at: new Date(record.endsAt!).toISOString() })
  t.not(rotated.key, key)
  t.equal(Date.parse(String(rotated.previous_expires_at)) - Date.parse(String(rotated.rotated_at)), 48 * 3600_000)
  const again = await run('rotate', id!)
  t.match(again, { code: 0, stdout: /^old key {2}no longer valid$/m }, 'without a grace')

  await run('rotate', id!, '--grace', '30m')
  const revoked = await run('revoke', String(other.id))
  t.match(revoked, { code: 0, stdout: `revoked: within 2 s ${other.id} stops working everywhere\n`, stderr: '' })
  const at = new Date((await store.keyRecords.find(String(other.id)))!.revokedAt!).toISOString()
  t.match(await run('revoke', String(other.id)), { code: 0, stdout: `${other.id} was revoked at ${at} already; nothing changed\n` }, 'twice')
  t.strictSame(parsed(await run('revoke', String(other.id), '--json')), { id: other.id, revoked_at: at, already_revoked: true })
  t.match(await run('rotate', String(other.id)), { code: 1, stdout: '', stderr: 'this key was revoked: create a new one\n' })

  t.match(parsed<object[]>(await run('list', '--json')), [{ id, state: 'in grace' }, { id: other.id, state: 'revoked', revoked_at: at }])
  const { stdout } = await run('list')
  t.match(stdout, /^id +tenant +name +scopes +inboxes +a minute +created +ends +state\n/)
  t.match(stdout, new RegExp(`^${id} +acme +reader-1 +catch,status +any +600 +\\S+Z +\\S+Z +in grace until \\S+Z$`, 'm'))
  t.match(stdout, new RegExp(`^${other.id} +default +w +pass +any +- +\\S+Z +never +revoked ${at}$`, 'm'))

  const records = await Promise.all((await redis.keys(`${prefix}:*:k:*`)).map(key => redis.hgetall(key)))
  const kept = JSON.stringify([records, await redis.xrange(store.keyRecords.channel, '-', '+')])
  t.ok(kept.includes('reader-1') && kept.includes(id!))
  for (const secret of [key, other.key, rotated.key]) t.notOk(kept.includes(String(secret)), 'no secret is in Redis')
  for (const secret of [key, other.key, rotated.key]) t.notOk(stdout.includes(String(secret)), 'nor in the list')
})

t.test('a key is updated', async t => {
  const { store, prefix } = await testStore(t, { url })
  const env = { REDIS_URL: url, REDIS_KEY_PREFIX: prefix }
  const run = (...args: string[]) => handoff(['keys', 'update', ...args], { env })
  const { id, record: { createdAt } } = await store.keyRecords.create({ tenant: 'acme', agent: 'a', scopes: ['pass'], expiresIn: null, ratePerMinute: null, by: 'test' })
  const all = await run(id, '--scopes', 'catch,status', '--inboxes', 'w,v', '--rate-limit', '60', '--expires-in', '90d')
  t.match(all, { code: 0, stderr: '', stdout: new RegExp(`^updated: within 2 s this holds everywhere\nid {7}${id}\nfor {6}a of tenant acme: catch, status\ninboxes {2}w, v\nlimit {4}60 requests a minute\nends {5}\\S+ \\(in \\S+.*\\)\n$`) })
  const found = (await store.keyRecords.find(id))!
  t.match(found, { scopes: ['catch', 'status'], inboxes: ['w', 'v'], ratePerMinute: 60, createdAt })
  t.match(await handoff(['keys', 'list'], { env: { REDIS_URL: url, REDIS_KEY_PREFIX: prefix } }), { stdout: /^\S+ +acme +a +catch,status +w,v +60 +\S+Z +\S+Z +live$/m })
  t.ok(found.endsAt! >= createdAt + 90 * 86400_000, 'from now on')
  t.match(parsed(await run(id, '--rate-limit', 'none', '--json')), { id, tenant: 'acme', name: 'a', scopes: ['catch', 'status'], inboxes: ['w', 'v'], rate_per_minute: null, expires_at: new Date(found.endsAt!).toISOString() })
  t.match(parsed(await run(id, '--inboxes', 'any', '--expires-in', 'none', '--json')), { inboxes: null, expires_at: null })
  t.match(parsed(await run(id, '--inboxes', 'w', '--json')), { inboxes: ['w'] })
  t.match(await run(id, '--inboxes', 'none'), { code: 0, stdout: /^inboxes {2}any\nlimit {4}RATE_LIMIT_PER_MINUTE\nends {5}never\n/m })
  t.match(await run(id), { code: 2, stdout: '', stderr: /^say what to change: [^\n]*\n$/ })
  for (const [option, value] of [['--scopes', 'fly'], ['--scopes', 'none'], ['--rate-limit', '0'], ['--expires-in', 'never'], ['--inboxes', 'a b']] as const) {
    t.match(await run(id, option, value), { code: 2, stdout: '', stderr: new RegExp(`^${option}: .* is not valid; it takes`) })
  }
  t.match(await run('AAAAAAAAAAAA', '--rate-limit', '5'), { code: 1, stdout: '', stderr: 'no key has this id: see handoff keys list\n' })
  await store.keyRecords.revoke(id, 'test')
  t.match(await run(id, '--rate-limit', '5'), { code: 1, stdout: '', stderr: 'this key was revoked: create a new one\n' })
})

t.test('an expiring key ends, and the log says who did what', async t => {
  const { store, prefix, redis } = await testStore(t, { url })
  const env = { REDIS_URL: url, REDIS_KEY_PREFIX: prefix }
  const { id } = await store.keyRecords.create({ tenant: 'default', agent: 'a', scopes: ['pass'], expiresIn: 1, ratePerMinute: null, by: 'test' })
  t.match(parsed<object[]>(await handoff(['keys', 'list', '--json'], { env })), [{ id, state: 'ended' }])
  t.match(await handoff(['keys', 'rotate', id], { env }), { code: 1, stdout: '', stderr: 'this key has expired: create a new one\n' })
  await handoff(['keys', 'revoke', id], { env })
  const log = JSON.stringify(await redis.xrange(store.keyRecords.channel, '-', '+'))
  t.match(log, new RegExp(`"revoked","id","${id}".*"by","[^"@]+@${hostname()}"`))
})

t.test('wrong usage is reported in one line', async t => {
  const { prefix, redis } = await testStore(t, { url })
  const env = { REDIS_URL: url, REDIS_KEY_PREFIX: prefix }
  const long = 'x'.repeat(10_000)
  // test/cli/values tests which values options take; this tests how errors are reported.
  const wrong: Array<[args: string[], says: RegExp]> = [
    [['keys', 'create', '--name', 'a', '--scopes', 'pass', '--expires-in', '0'], /^--expires-in: .* is not valid; it takes .*60s, 15m, 48h or 90d/],
    [['keys', 'create', '--name', 'a', '--scopes', 'pass', '--expires-in=-1d'], /^--expires-in: .* is not valid; it takes/],
    [['keys', 'rotate', 'x', '--grace', '1y2'], /^--grace: .* is not valid; it takes .*60s/],
    [['keys', 'create', '--name', 'a', `--scopes=${long}`], /^--scopes: .* is not valid; it takes .*pass, catch, status, approve/],
    [['keys', 'create', `--name=${long}`, '--scopes', 'pass'], /^--name: .* is not valid; it takes 1 to 64 of/],
    [['keys', 'create', '--name', 'a', '--scopes', 'pass', '--tenant', 'a b'], /^--tenant: .* is not valid; it takes 1 to 64 of/],
    [['keys', 'create', '--name', 'a', '--scopes', 'pass', '--rate-limit', '0'], /^--rate-limit: .* is not valid; it takes/],
    [['keys', 'create', '--name', 'a', '--scopes', 'pass,fly'], /^--scopes: "fly" is not valid; it takes/],
    [['keys', 'create', '--name', 'a'], /--scopes.* not specified/],
    [['keys', 'rotate'], /missing required argument 'id'/],
    [['keys', 'lsit'], /unknown command/],
    [[long], /unknown command/],
    [['keys', 'list', `--${long}`], /unknown option/],
  ]
  for (const [args, says] of wrong) {
    const { code, stdout, stderr } = await handoff(args, { env })
    const what = args.join(' ').slice(0, 60)
    t.match({ code, stdout }, { code: 2, stdout: '' }, what)
    t.match(stderr, says)
    t.match(stderr, /^[^\n]{10,400}\n$/, 'one line')
  }
  const unknown = /^no key has this id: see handoff keys list\n$/
  for (const args of [['revoke', 'AAAAAAAAAAAA'], ['revoke', long], ['rotate', 'AAAAAAAAAAAA', '--grace', '1h']]) {
    t.match(await handoff(['keys', ...args], { env }), { code: 1, stdout: '', stderr: unknown })
  }
  t.strictSame(await redis.keys(`${prefix}:*`), [], 'nothing was made')
})

t.test('help is printed on request', async t => {
  t.match(await handoff(['--help']), { code: 0, stdout: /pass[^]*status[^]*work[^]*serve[^]*keys[^]*inspect[^]*doctor[^]*healthcheck/, stderr: '' })
  t.match(await handoff(['--version']), { code: 0, stdout: /^\d+\.\d+\.\d+\n$/, stderr: '' })
  t.match(await handoff(['keys', 'create', '--help']), { code: 0, stdout: /--expires-in <duration>.*60s, 15m, 48h, 90d/, stderr: '' })
  t.match(await builtHandoff([]), { code: 2, stdout: '', stderr: /^Usage: handoff/ })
})
