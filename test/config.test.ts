import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig, loadProcessConfig } from '../src/config.ts'
import { SettingError } from '../src/core/errors.ts'
import { scratchDir } from './helpers/processes.ts'

function refusal (env: Record<string, string>): Error | undefined {
  try {
    loadConfig(env)
  } catch (error) {
    return error as Error
  }
}

t.test('REDIS_URL', async t => {
  for (const url of ['redis://:secret@h', 'redis+sentinel://a/mymaster', 'rediss+cluster://me:x@a,b/']) t.equal(loadConfig({ REDIS_URL: url }).redisUrl, url)
  for (const url of ['localhost', 'http://localhost', 'redis://', 'redis+tls://a', 'redis+sentinel://x@y@a/mymaster', 'redis+cluster://me:%@a', 'redis://h:x']) {
    const error = refusal({ REDIS_URL: url })
    t.ok(error instanceof SettingError, String(error))
    t.match(error?.message, /^REDIS_URL: where Redis is: .*redis\+sentinel:\/\/.*redis\+cluster:\/\/[^\n]*$/, 'one line that says what it takes')
    if (url.includes('@')) t.notOk(error?.message.includes(url), 'and not what it says: there may be a password in it')
  }
})

t.test('mail needs SMTP_URL, MAIL_FROM and MAIL_ALLOW, and each must be right', async t => {
  const right = { SMTP_URL: 'smtps://us%40er:p%3Ass@mail.example.com', MAIL_FROM: 'Handoffs <handoffs@example.com>', MAIL_ALLOW: 'Example.com, team@other.org,' }
  t.strictSame(loadConfig(right).mail, {
    server: { host: 'mail.example.com', port: 465, isTls: true, isLoopback: false }, auth: { user: 'us@er', pass: 'p:ss' }, from: { name: 'Handoffs', address: 'handoffs@example.com' }, allow: ['example.com', 'team@other.org']
  })
  for (const name of Object.keys(right)) t.equal(loadConfig({ ...right, [name]: '' }).mail, undefined, name)
  t.match(loadConfig({ ...right, SMTP_URL: 'smtp://[::1]:25/', MAIL_FROM: 'a@b' }).mail, { server: { host: '::1', port: 25, isTls: false, isLoopback: true }, auth: undefined, from: { name: '', address: 'a@b' } })
  for (const [url, isLoopback] of [['smtp://localhost', true], ['smtp://127.9.9.9', true], ['smtp://127.example.com', false], ['smtp://localhost.example.com', false], ['smtp://10.0.0.1', false]] as const) {
    t.match(loadConfig({ ...right, SMTP_URL: url }).mail!.server, { port: 587, isLoopback }, url)
  }
  const wrong: Array<[name: string, values: string[]]> = [
    ['SMTP_URL', ['mail.example.com', 'http://mail.example.com', 'smtp://', 'smtp://h/path', 'smtp://h?ignoreTLS=true', 'smtp://h#x', 'smtp://user@h', 'smtp://:secret@h', 'smtp://u:%@h', 'smtp://h:99999', 'smtp://a b']],
    ['MAIL_FROM', ['x', '@x', 'a@b, c@d', 'A\r\nBcc: x <a@b>', '<a@b', '"A" <a@b>', 'a!c@b', 'A <a%c@b>']],
    ['MAIL_ALLOW', ['*', 'a!c@example.com', 'example.com\\', '*.example.com', '@example.com', 'https://example.com', 'a b']],
  ]
  for (const [name, values] of wrong) {
    for (const value of values) {
      const error = refusal({ [name]: value })
      t.ok(error instanceof SettingError, `${name} ${JSON.stringify(value)}`)
      t.match(error?.message, new RegExp(`^${name}: [^\n]+$`))
      t.notOk(error?.message.includes('secret'))
    }
  }
})

t.test('SIGNING_KEY and SIGNING_KEYS_OLD', async t => {
  const folder = await scratchDir(t)
  const file = (name: string, text: string) => {
    const path = join(folder, name)
    writeFileSync(path, text)
    return `@${path}`
  }
  const of = (type: 'ed25519' | 'x25519') => generateKeyPairSync(type as 'ed25519', { privateKeyEncoding: { type: 'pkcs8', format: 'pem' }, publicKeyEncoding: { type: 'spki', format: 'pem' } })
  const [{ privateKey, publicKey }, other] = [of('ed25519'), of('ed25519')]
  const { current: none, published: nothing } = loadConfig({}).signing
  t.equal(none, undefined)
  t.strictSame(nothing, [])
  const kids: string[] = []
  for (const given of [privateKey, privateKey.replaceAll('\n', '\\n'), `\n${privateKey}\n`, file('key.pem', privateKey)]) {
    const { current, published } = loadConfig({ SIGNING_KEY: given }).signing
    t.strictSame(published, [current!.published])
    kids.push(published[0]!.kid)
  }
  t.equal(new Set(kids).size, 1)
  for (const given of [other.publicKey, (publicKey + other.publicKey).replaceAll('\n', '\\n'), file('old.pem', `${other.publicKey}\n${other.publicKey}`)]) {
    const { published } = loadConfig({ SIGNING_KEY: privateKey, SIGNING_KEYS_OLD: given }).signing
    t.equal(published.length, 2, 'each once')
    t.equal(published[0]!.kid, kids[0])
  }
  t.match(loadConfig({ SIGNING_KEYS_OLD: publicKey }).signing, { current: undefined, published: [{ kid: kids[0] }] })
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048, privateKeyEncoding: { type: 'pkcs8', format: 'pem' }, publicKeyEncoding: { type: 'spki', format: 'pem' } })
  const broken = (pem: string) => pem.replace('MC', 'MD')
  const wrong: Array<[name: string, values: string[]]> = [
    ['SIGNING_KEY', ['x', '@/nowhere', publicKey, privateKey + other.privateKey, broken(privateKey), rsa.privateKey, of('x25519').privateKey, file('empty', ''), `${privateKey}x`]],
    ['SIGNING_KEYS_OLD', ['x', '@/nowhere', file('none', '\n'), privateKey, publicKey + privateKey, broken(publicKey), rsa.publicKey, publicKey + of('x25519').publicKey, `${publicKey},${publicKey}`]],
  ]
  for (const [name, values] of wrong) {
    for (const value of values) {
      const error = refusal({ [name]: value })
      t.ok(error instanceof SettingError, `${name} ${value}`)
      t.match(error?.message, new RegExp(`^${name}: [^\n]+$`))
      t.notOk(/MC|BEGIN/.test(error!.message), 'nothing of the key')
    }
  }
})

t.test('PAYLOAD_KEYS', t => {
  const of = (bytes: number, fill = 1) => Buffer.alloc(bytes, fill).toString('base64')
  const kids = (text: string) => loadConfig({ PAYLOAD_KEYS: text }).payloadKeys.map(({ kid }) => kid)
  t.strictSame(kids(`june:${of(32)}`), ['june'])
  t.strictSame(kids(` june:${of(32)} ,\n_.-:${of(32, 2)},\n`), ['june', '_.-'])
  t.strictSame(kids(''), [])
  const wrong: Array<[text: string, says: RegExp]> = [
    [of(32), /entry 1/],
    [`june:${of(31)}`, /entry 1/],
    [`june:${of(33)}`, /entry 1/],
    [`june:${of(32)},july:`, /entry 2/],
    [`june:${of(32)}x`, /entry 1/],
    [`:${of(32)}`, /entry 1/],
    [`${'k'.repeat(33)}:${of(32)}`, /entry 1/],
    [`ju ne:${of(32)}`, /entry 1/],
    [`june:${of(32)},june:${of(32, 2)}`, /the kid june is there twice/],
    [`june:${of(32)},june:${of(32)}`, /the kid june is there twice/],
    [`june:${of(32)},july:${of(32)}`, /june and july are the same key/],
    ['@/nowhere', /nowhere/],
    ['@/dev/null', /there is no key in it/],
    [' ,\n', /there is no key in it/],
  ]
  for (const [text, says] of wrong) {
    const error = refusal({ PAYLOAD_KEYS: text })
    t.ok(error instanceof SettingError, text)
    t.match(error?.message, /^PAYLOAD_KEYS: [^\n]+$/)
    t.match(error?.message, says)
    t.notOk(error?.message.includes(of(30).slice(0, 20)), 'nothing of the key')
  }
  t.end()
})

t.test('FILES_URL is a directory or a bucket, and a bucket needs a key', async t => {
  const keys = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: '@/run/secret' }
  t.equal(loadConfig(keys).files, undefined)
  t.strictSame(loadConfig({ FILES_URL: 'file:///var/lib/hand%20off' }).files, { kind: 'directory', path: '/var/lib/hand off' })
  const bucket = {
    kind: 'bucket',
    bucket: 'my.bucket',
    prefix: 'a/b/',
    endpoint: 'https://s3.eu-west-1.amazonaws.com',
    publicEndpoint: 'https://s3.eu-west-1.amazonaws.com',
    region: 'eu-west-1',
    isPathStyle: false,
    accessKey: 'id',
    secret: '@/run/secret'
  }
  t.strictSame(loadConfig({ ...keys, FILES_URL: 's3://my.bucket/a//b/', S3_REGION: 'eu-west-1' }).files, bucket)
  t.match(loadConfig({ ...keys, FILES_URL: 's3://abc', S3_ENDPOINT: 'http://minio:9000/', S3_PUBLIC_ENDPOINT: 'https://files.example.com', S3_PATH_STYLE: 'on' }).files,
    { prefix: '', endpoint: 'http://minio:9000', publicEndpoint: 'https://files.example.com', isPathStyle: true })
  t.match(loadConfig({}), { fileLimit: 2 ** 30, filesQuota: 10 * 2 ** 30 })
  const wrong: Array<[name: string, env: Record<string, string>]> = [
    ...['/var', 'file://host/dir', 'file:dir', 'file:///a?b', 'file:///a%2fb', 'https://x', 's3://', 's3://A_B', 's3://abc/../x', 's3://abc/a b', 's3://abc?x'].map(url => ['FILES_URL', { ...keys, FILES_URL: url }] as [string, Record<string, string>]),
    ['AWS_ACCESS_KEY_ID', { FILES_URL: 's3://abc', AWS_SECRET_ACCESS_KEY: 'hidden-one' }], ['AWS_SECRET_ACCESS_KEY', { FILES_URL: 's3://abc', AWS_ACCESS_KEY_ID: 'id' }],
    ['S3_ENDPOINT', { ...keys, FILES_URL: 's3://abc', S3_ENDPOINT: 'http://h/path' }], ['S3_PUBLIC_ENDPOINT', { ...keys, FILES_URL: 's3://abc', S3_PUBLIC_ENDPOINT: 'h' }],
    ['S3_PATH_STYLE', { S3_PATH_STYLE: 'yes' }], ['S3_REGION', { S3_REGION: 'EU' }], ['FILE_LIMIT', { FILE_LIMIT: String(5 * 2 ** 30 + 1) }], ['FILE_LIMIT', { FILE_LIMIT: '0' }], ['FILE_LIMIT', { FILE_LIMIT: '5', FILES_QUOTA: '4' }], ['FILES_QUOTA', { FILES_QUOTA: 'all' }],
  ]
  for (const [name, env] of wrong) t.match(refusal(env)?.message, new RegExp(`^${name}: [^\n]+$`), JSON.stringify(env))
  t.strictSame(loadProcessConfig({ DATA_DIR: '/data' }).files, { kind: 'directory', path: '/data/files' }, 'with a Redis of its own')
  t.equal(loadProcessConfig({ DATA_DIR: '/data', REDIS_URL: 'redis://h' }).files, undefined)
  t.strictSame(loadProcessConfig({ FILES_URL: 'file:///elsewhere' }).files, { kind: 'directory', path: '/elsewhere' })
})

t.test('HOST may have an IPv6 address in brackets, as URLs do', async t => {
  for (const [given, host] of [['[::]', '::'], ['[::1]', '::1'], ['[fe80::1%eth0]', 'fe80::1%eth0'], ['::', '::'], ['0.0.0.0', '0.0.0.0'], ['name', 'name']] as const) {
    t.equal(loadConfig({ HOST: given }).host, host, given)
  }
  for (const given of ['[name]', '[127.0.0.1]', '[]', '[::', '[::]:80', 'http://[::]']) t.equal(loadConfig({ HOST: given }).host, given, `${given} is left to fail`)
})

t.test('DURABILITY', async t => {
  for (const [given, replicas] of [['none', 0], ['', 0], ['replicas:1', 1], ['replicas:2', 2], ['replicas:99', 99]] as const) {
    t.equal(loadConfig({ DURABILITY: given }).replicas, replicas, given)
  }
  t.equal(loadConfig({}).replicas, 0)
  for (const given of ['replicas', 'replicas:', 'replicas:0', 'replicas:01', 'replicas:100', 'replicas:-1', 'replicas:1.5', 'replicas:1 ', 'REPLICAS:1', 'all', '1']) {
    const error = refusal({ DURABILITY: given })
    t.ok(error instanceof SettingError, given)
    t.match(error?.message, /^DURABILITY: .*none.*replicas:N[^\n]*$/)
  }
})

t.test('durations take a unit; plain numbers are seconds, or milliseconds for draining', async t => {
  for (const [given, milliseconds] of [['48h', 172_800_000], ['15m', 900_000], ['1s', 1000], ['30d', 2_592_000_000], ['3000ms', 3000], ['90', 90_000], ['3650d', 315_360_000_000]] as const) {
    t.equal(loadConfig({ WORK_TTL: given }).workTtl, milliseconds, given)
    t.equal(loadConfig({ RETENTION: given }).retention, milliseconds, given)
  }
  t.match(loadConfig({ DEFAULT_EXPIRES_IN: '12h', MAX_EXPIRES_IN: '7d' }), { defaultExpiresIn: 43_200_000, maxExpiresIn: 604_800_000 })
  for (const [given, milliseconds] of [['0', 0], ['0s', 0], ['250', 250], ['250ms', 250], ['2s', 2000], ['1h', 3600_000]] as const) {
    t.equal(loadConfig({ DRAIN_DELAY: given }).drainDelay, milliseconds, given)
  }
  for (const given of ['1500ms', '0s', '0', '-1s', '1.5h', '1 h', 'h', '1w', '48H', '3651d', '1h30m']) {
    t.match(refusal({ WORK_TTL: given })?.message, /^WORK_TTL: how long a catcher has until done: a duration, as in .*; a plain number is seconds$/, given)
  }
  for (const given of ['61m', '3600001', '-1ms']) t.match(refusal({ DRAIN_TIMEOUT: given })?.message, /^DRAIN_TIMEOUT: .* a plain number is milliseconds$/, given)
  t.match(refusal({ DEFAULT_EXPIRES_IN: '8d', MAX_EXPIRES_IN: '7d' })?.message, /^DEFAULT_EXPIRES_IN must not be above MAX_EXPIRES_IN$/)
})

t.test('RATE_LIMIT_PER_MINUTE', async t => {
  t.equal(loadConfig({}).ratePerMinute, 0, 'no limit')
  for (const [given, limit] of [['0', 0], ['1', 1], ['1000000000', 1e9]] as const) t.equal(loadConfig({ RATE_LIMIT_PER_MINUTE: given }).ratePerMinute, limit)
  for (const given of ['-1', '1.5', '60/min', '1e10', 'off', ' ', '\t']) {
    const error = refusal({ RATE_LIMIT_PER_MINUTE: given })
    t.ok(error instanceof SettingError, given)
    t.match(error?.message, /^RATE_LIMIT_PER_MINUTE: requests of one agent a minute[^\n]*0 \(no limit\)[^\n]*$/)
  }
})

t.test('trusted proxies are addresses and networks', t => {
  t.strictSame(loadConfig({ TRUSTED_PROXIES: ' 10.0.0.7,10.1.0.0/16 , fd00::/8,::1,' }).trustedProxies, ['10.0.0.7', '10.1.0.0/16', 'fd00::/8', '::1'])
  t.strictSame(loadConfig({}).trustedProxies, [])
  for (const wrong of ['true', '*', 'proxy.example', '10.0.0', '10.0.0.0/33', '::1/129', '10.0.0.1/', '10.0.0.0/8/8', '10.0.0.1 10.0.0.2', '1', 'loopback', '10.0.0.1:80', '10.0.0.0/-1']) {
    t.throws(() => loadConfig({ TRUSTED_PROXIES: wrong }), { message: /^TRUSTED_PROXIES: [^\n]+$/ }, wrong)
  }
  t.end()
})

t.test('with a Redis of its own, events are on unless somebody says otherwise', async t => {
  const retention = (env: Record<string, string>) => loadProcessConfig(env).eventsRetention
  for (const env of [{}, { EVENTS_RETENTION: '' }, { REDIS_URL: '' }]) t.equal(retention(env), 86_400_000, JSON.stringify(env))
  for (const given of ['0', '0s']) t.equal(retention({ EVENTS_RETENTION: given }), 0, given)
  t.equal(retention({ EVENTS_RETENTION: '60' }), 60_000)
  t.equal(retention({ REDIS_URL: 'redis://h' }), 0)
  t.equal(retention({ REDIS_URL: 'redis://h', EVENTS_RETENTION: '7d' }), 604_800_000)
  t.equal(loadConfig({}).eventsRetention, 0)
  t.throws(() => loadProcessConfig({ EVENTS_RETENTION: ' ' }), { constructor: SettingError, message: /^EVENTS_RETENTION: / })
})
