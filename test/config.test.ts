import t from 'tap'
import { SettingError, loadConfig } from '../src/config.ts'

function refusal (env: Record<string, string>): Error | undefined {
  try {
    loadConfig(env)
  } catch (error) {
    return error as Error
  }
}

const goodUrls = [
  'redis://localhost', 'redis://localhost:6380/3', 'redis://:secret@h', 'redis://me:p%40ss@h:6379', 'redis://[::1]:6379',
  'rediss://h', 'rediss://me:x@h:6380',
  'redis+sentinel://a/mymaster', 'redis+sentinel://a:1,b:2,c/mymaster', 'redis+sentinel://me:p%2Fq@a:1,[::1]:2/mymaster',
  'rediss+sentinel://a/mymaster?sentinel_username=u&sentinel_password=p',
  'redis+cluster://a:7000', 'redis+cluster://a:7000,b:7001,[::1]:7002', 'rediss+cluster://me:x@a,b/',
]

for (const url of goodUrls) t.test(`REDIS_URL=${url}`, async t => { t.equal(loadConfig({ REDIS_URL: url }).redisUrl, url) })

const badUrls = [
  'localhost', 'localhost:6379', '/run/redis.sock', 'http://localhost', 'redis:/localhost', 'redis://', 'redis://with a space',
  'redis+sentinel://a', 'redis+sentinel://a/', 'redis+sentinel:///mymaster', 'redis+sentinel://a,/mymaster', 'redis+sentinel://a,,b/mymaster',
  'redis+sentinel://x@y@a/mymaster', 'redis+sentinel://a/my/master',
  'redis+cluster://', 'redis+cluster://a/0', 'redis+cluster://a,', 'redis+cluster://a?x=y', 'redis+tls://a',
]

/** What no host, port or escape can be. */
const impossibleUrls = [
  'redis://h:x', 'redis://h:99999', 'redis+sentinel://a:x/mymaster', 'redis+cluster://a:99999', 'redis+cluster://[::1', 'redis+cluster://me:%@a',
  'redis+sentinel://a/%zz',
]

for (const url of [...badUrls, ...impossibleUrls]) {
  t.test(`REDIS_URL=${url} is refused`, async t => {
    const error = refusal({ REDIS_URL: url })
    t.ok(error instanceof SettingError, String(error))
    t.match(error?.message, /^REDIS_URL: where Redis is: .*redis\+sentinel:\/\/.*redis\+cluster:\/\/[^\n]*$/, 'one line that says what it takes')
    if (url.includes('@')) t.notOk(error?.message.includes(url), 'and not what it says: there may be a password in it')
  })
}

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

t.test('trusted proxies are addresses and networks', t => {
  t.strictSame(loadConfig({ TRUSTED_PROXIES: ' 10.0.0.7,10.1.0.0/16 , fd00::/8,::1,' }).trustedProxies, ['10.0.0.7', '10.1.0.0/16', 'fd00::/8', '::1'])
  t.strictSame(loadConfig({}).trustedProxies, [])
  for (const wrong of ['true', '*', 'proxy.example', '10.0.0', '10.0.0.0/33', '::1/129', '10.0.0.1/', '10.0.0.0/8/8', '10.0.0.1 10.0.0.2', '1', 'loopback', '10.0.0.1:80', '10.0.0.0/-1']) {
    t.throws(() => loadConfig({ TRUSTED_PROXIES: wrong }), { message: /^TRUSTED_PROXIES: [^\n]+$/ }, wrong)
  }
  t.end()
})
