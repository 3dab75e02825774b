import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { signingKey, testIssuer } from '../helpers/issuer.ts'
import { testStore } from '../helpers/redis.ts'
import { projectRoot } from '../helpers/service.ts'

/** A token on standard input, for a process of its own. */
async function checked (input: string, env: Record<string, string>, ...args: string[]) {
  const child = spawn(process.execPath, [join(projectRoot, 'dist/cli/main.js'), 'issuers', 'check', ...args], { env: { PATH: process.env.PATH, ...env } })
  child.stdin.end(input)
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number, stdout, stderr }
}

t.test('subjects are blocked, listed and unblocked', async t => {
  // Over TCP, because REDIS_URL can't name a unix socket.
  const { url } = await startRedisServer(t)
  const { prefix, redis } = await testStore(t, { url })
  const env = { REDIS_URL: url, REDIS_KEY_PREFIX: prefix }
  const run = (...args: string[]) => handoff(['tokens', ...args], { env })
  const ann = ['--issuer', 'https://id.example.com', '--subject', 'Änn %\n']

  t.match(await run('list'), { code: 0, stdout: 'no tokens are blocked\n', stderr: '' })
  t.match(await run('unblock', ...ann), { code: 0, stdout: /were not blocked; nothing changed\n$/ })
  t.match(await run('block', ...ann), { code: 0, stdout: /^blocked: within 2 s .* refused everywhere, for good\n$/s })
  const ben = parsed<{ until: string }>(await run('block', '--issuer', 'https://id.example.com', '--subject', 'ben', '--for', '2h', '--json'))
  t.ok(Math.abs(Date.parse(ben.until) - Date.now() - 7_200_000) < 60_000)
  const listed = parsed<object[]>(await run('list', '--json'))
  t.strictSame(listed, [{ issuer: 'https://id.example.com', subject: 'ben', until: ben.until }, { issuer: 'https://id.example.com', subject: 'Änn %\n', until: null }])
  t.strictSame(parsed(await run('unblock', ...ann, '--json')), { issuer: 'https://id.example.com', subject: 'Änn %\n', removed: true })
  t.match(await run('list'), { code: 0, stdout: /^issuer +subject +until\nhttps:\/\/id\.example\.com +ben +until 2/ })

  const [blocked] = await redis.keys(`${prefix}:*:blocked`)
  await redis.zadd(blocked!, ...Array.from({ length: 9999 }, (_, at) => ['inf', `https://id.example.com ${at}`]).flat())
  t.match(await run('block', ...ann), { code: 1, stderr: /^10000 subjects are blocked, and no more are possible: unblock some\n$/ })
  t.match(await run('block', '--issuer', 'https://id.example.com', '--subject', 'ben'), { code: 0 }, 'one that is blocked can be blocked for longer')

  const made = await redis.keys(`${prefix}:*`)
  for (const [args, says] of [
    [['block', '--issuer', 'x'], /--subject.* not specified/], [['block', '--subject', 'x'], /--issuer.* not specified/], [['block', ...ann, '--for', '0s'], /^--for: "0s" is not valid/],
    [['lsit'], /unknown command/],
  ] as Array<[string[], RegExp]>) t.match(await run(...args), { code: 2, stdout: '', stderr: says }, args.join(' '))
  t.strictSame(await redis.keys(`${prefix}:*`), made)
})

t.test('a token is checked by the settings alone', async t => {
  const key = await signingKey('EdDSA', { kid: 'one' })
  const issuer = await testIssuer(t, [key.jwk])
  const rules = [
    { when: { team: 'x*' }, tenant: 'default', agent: 'x', scopes: ['pass'], inboxes: ['in'] }, { when: { team: 'y' }, tenant: 'default', agent: { claim: 'name' }, scopes: { claim: 'scope' } },
  ]
  const env = { ISSUERS: JSON.stringify([{ issuer: issuer.url, rules }]), BASE_URL: 'https://handoff.example.com' }
  const claims = { iss: issuer.url, sub: 'ann', aud: env.BASE_URL, exp: Math.floor(Date.now() / 1000) + 60, team: 'xy' }
  const check = async (more: object, ...args: string[]) => {
    return await handoff(['issuers', 'check', ...args], { env, input: `${await key.sign({ ...claims, ...more })}\n` })
  }
  t.match(await check({}), { code: 0, stdout: `rule 0 of ${issuer.url} matches: agent x of tenant default, scopes pass, inboxes in\n`, stderr: '' })
  t.strictSame(parsed(await check({ team: 'y', name: 'n', aud: `${env.BASE_URL}/mcp` }, '--json')),
    { says: `rule 1 of ${issuer.url} matches: agent n of tenant default, no scopes; at /mcp alone`, rule: 1, identity: { tenant: 'default', agent: 'n', scopes: [], inboxes: null }, only_at: '/mcp' })
  for (const [more, says] of [
    [{ team: 'y' }, /^refused \(rules\): rule 1 of .* matches, and finds no agent\n$/], [{ team: 'z' }, /^refused \(rules\): none of the rules of/], [{ aud: 'x' }, /^refused \(audience\): /],
    [{ exp: 1 }, /^refused \(expiry\): /], [{ iss: 'https://x' }, /^refused \(issuer\): /],
  ] as Array<[object, RegExp]>) t.match(await check(more), { code: 1, stdout: says }, JSON.stringify(more))
  t.match(await handoff(['issuers', 'check'], { env, input: 'x' }), { code: 1, stdout: /^refused \(malformed\): / })
  t.match(await handoff(['issuers', 'check'], { input: 'x' }), { code: 2, stderr: /^ISSUERS is not set/ })
  t.match(await checked(await key.sign(claims), env), { code: 0, stdout: /^rule 0 of .* matches/, stderr: '' }, 'built')
  issuer.answers['/.well-known/openid-configuration'] = response => response.writeHead(500).end()
  t.match(await check({}), { code: 1, stderr: /^the keys of the issuer .* are not to be had: .*500.*\n$/ })
})
