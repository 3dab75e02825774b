import { once } from 'node:events'
import t from 'tap'
import { connect, onlineReplicas, passing, readInfo, refusing, unsupported, versionOf } from '../../src/redis/connect.ts'
import { logSink } from '../helpers/log-sink.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { quiet } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

t.test('what Redis says decides whether a call is asked again, or refused', async t => {
  const kinds = { passing, unsupported, refusing }
  const said: Record<keyof typeof kinds, string[]> = {
    passing: ['LOADING Redis is loading', 'BUSY Redis is busy', 'READONLY You can’t write', 'MASTERDOWN Link', 'CLUSTERDOWN The cluster', 'TRYAGAIN Multiple keys'],
    unsupported: ['ERR unknown command `SPUBLISH`', 'ERR Error compiling script (new function)', 'ERR Unexpected flag in script shebang: x'],
    refusing: ['OOM command not allowed', 'MISCONF Redis is configured', 'NOREPLICAS Not enough', 'NOPERM this user', 'NOAUTH Authentication', 'WRONGPASS invalid', 'ERR ACL failure in script'],
  }
  for (const [kind, all] of Object.entries(said)) {
    for (const words of all) {
      t.strictSame(Object.entries(kinds).filter(([, shape]) => shape.test(words)).map(([name]) => name), [kind], words)
    }
  }
})

t.test('replicas count once they are online', async t => {
  t.equal(onlineReplicas({}), undefined)
  t.equal(onlineReplicas({ role: 'master' }), 0)
  const info = readInfo('role:master\r\nconnected_slaves:2\r\nslave0:ip=10.0.0.1,port=6379,state=online,offset=1\r\nslave1:ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0')
  t.equal(onlineReplicas(info), 1)
})

t.test('a server has its own name, and is too old before Redis 7', async t => {
  t.equal(versionOf({}), undefined)
  t.strictSame(versionOf({ redis_version: '6.2.14' }), { name: 'Redis 6.2.14', tooOld: true, tested: false })
  t.strictSame(versionOf({ redis_version: '7.0.15' }), { name: 'Redis 7.0.15', tooOld: false, tested: true })
  t.strictSame(versionOf({ redis_version: '7.2.4', valkey_version: '8.1.1' }), { name: 'Valkey 8.1.1', tooOld: false, tested: true })
})

t.test('each reason of an outage has a line in the log, and so has its end', async t => {
  const { log, lines } = logSink(t)
  const redis = connect({ kind: 'standalone', url: process.env.REDIS_URL! }, log)
  t.teardown(() => redis.disconnect())
  await once(redis, 'ready')
  for (const what of ['a', 'b', 'a', 'b', '', 'a', '', '']) {
    if (what === '') redis.emit('ready')
    else redis.emit('error', new Error(what))
  }
  const told = lines.map(line => JSON.parse(line)).map(({ msg, reason }) => [msg, ...reason === undefined ? [] : [reason]].join(': '))
  t.strictSame(told, ['Redis is away: a', 'Redis is away: b', 'Redis is back', 'Redis is away: a', 'Redis is back'])
})

t.test('a server that is silent during a call counts as dead', async t => {
  const { url, pid } = await ownRedis(t)
  const redis = connect({ kind: 'standalone', url }, quiet)
  t.teardown(() => redis.disconnect())
  await once(redis, 'ready')
  let isClosed = false
  redis.once('close', () => { isClosed = true })
  process.kill(pid(), 'SIGSTOP')
  redis.ping().catch(() => {})
  await until(() => isClosed, 10_000)
})
