import t from 'tap'
import { parseRedisUrl } from '../src/core/redis-url.ts'
import type { RedisAddress } from '../src/core/redis-url.ts'

const nobody = { username: undefined, password: undefined, tls: false }
const noneOfTheirOwn = { sentinelUsername: undefined, sentinelPassword: undefined }
const sentinel = { kind: 'sentinel', ...nobody, ...noneOfTheirOwn, name: 'mymaster' } as const
const cluster = { kind: 'cluster', ...nobody } as const
const at = (host: string, port: number) => ({ host, port })

const forms: Array<[url: string, address: RedisAddress]> = [
  ...['redis://localhost', 'redis://user:p%40ss@localhost:6380/3', 'rediss://[::1]:6380', '/run/redis/redis.sock']
    .map((url): [string, RedisAddress] => [url, { kind: 'standalone', url }]),

  ['redis+sentinel://a/mymaster', { ...sentinel, sentinels: [at('a', 26379)] }],
  ['redis+sentinel://a:1,b:2,10.0.0.3/mymaster', { ...sentinel, sentinels: [at('a', 1), at('b', 2), at('10.0.0.3', 26379)] }],
  ['redis+sentinel://[::1]:1,[fd00::2]/mymaster', { ...sentinel, sentinels: [at('::1', 1), at('fd00::2', 26379)] }],
  ['redis+sentinel://a/my%2Fmaster', { ...sentinel, name: 'my/master', sentinels: [at('a', 26379)] }],
  ['redis+sentinel://me:p%40s%3As%2F@a/mymaster', { ...sentinel, username: 'me', password: 'p@s:s/', sentinels: [at('a', 26379)] }],
  ['redis+sentinel://:secret@a/mymaster', { ...sentinel, password: 'secret', sentinels: [at('a', 26379)] }],
  ['rediss+sentinel://a/mymaster', { ...sentinel, tls: true, sentinels: [at('a', 26379)] }],
  ['redis+sentinel://a/mymaster?sentinel_password=p%26q', { ...sentinel, sentinels: [at('a', 26379)], sentinelPassword: 'p&q' }],
  ['redis+sentinel://me:x@a/mymaster?sentinel_username=you&sentinel_password=y',
    { ...sentinel, username: 'me', password: 'x', sentinels: [at('a', 26379)], sentinelUsername: 'you', sentinelPassword: 'y' }],

  ['redis+cluster://a', { ...cluster, nodes: [at('a', 6379)] }],
  ['redis+cluster://a:7000,b/', { ...cluster, nodes: [at('a', 7000), at('b', 6379)] }],
  ['redis+cluster://[::1]:7000,[fd00::2]', { ...cluster, nodes: [at('::1', 7000), at('fd00::2', 6379)] }],
  ['rediss+cluster://%C3%A4:%25@a:7000', { ...cluster, tls: true, username: 'ä', password: '%', nodes: [at('a', 7000)] }],
]

t.test('each form of address', async t => {
  for (const [url, address] of forms) t.strictSame(parseRedisUrl(url), address, url)
})

const bad = ['', 'localhost', 'localhost:6379', 'redis:/localhost', 'redis://with a space', 'redis+sentinel:///mymaster', 'redis+sentinel://a,,b/mymaster',
  'redis+sentinel://a/my/master', 'redis+sentinel://a/%zz', 'redis+cluster://a,', 'redis+sentinel://a', 'redis+sentinel://a/', 'redis+sentinel://a:x/mymaster', 'redis+sentinel://a,/mymaster',
  'redis+cluster://a/name', 'redis+cluster://a:99999', 'redis+cluster://a?x=y', 'redis+cluster://%@a', 'redis+cluster://', 'redis+cluster://[::1',
  // Passwords without percent-encoding: their beginning would be read as a port, and the rest as an invalid host.
  'redis://me:12345/x@a', 'redis://me:12345#x@a', 'redis://me:s/x@a', 'redis://me:s#x@a', 'redis://a/name', 'redis://a/1/2']

t.test('what is none', async t => {
  for (const url of bad) t.throws(() => parseRedisUrl(url), url)
})
