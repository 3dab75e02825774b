/**
 * The peer without scripts: what an agent's own program would send to Redis. It has the same keys, and the same reads and writes as pass, catch and
 * done in lua/, as plain commands; one turn of the event loop sends all its commands in one pipeline. It promises less: two concurrent catches may
 * both get a handoff, since another command may come between a read and its write, and a crash may leave one write without the next. Run it as a
 * process; STORE_URL says where Redis is.
 */
import { Redis } from 'ioredis'
import { randomId, tagOf } from '../../src/core/ids.ts'
import { KeyNames, memberOf } from '../../src/store/key-names.ts'
import { serve } from './app.ts'
import type { Passed } from './app.ts'

const day = 86_400_000
const keys = new KeyNames('handoff')
const redis = new Redis(process.env.STORE_URL as string, { enableAutoPipelining: true })

/** A handoff's hash, the due index, and its member there. */
function placeOf (id: string): { key: string, due: string, member: string } {
  const [tag, member] = [tagOf(id), memberOf('default', id)]
  return { key: keys.handoff(tag, member), due: keys.due(tag, 'default'), member }
}

await serve({
  async pass (passed) {
    const id = randomId()
    const { key, due, member } = placeOf(id)
    const expires = Date.parse(passed.createdAt) + day
    await Promise.all([
      redis.hset(key, 's', `pending none ${Date.parse(passed.createdAt)} ${expires} passer -`, 'p', JSON.stringify(passed)),
      redis.pexpireat(key, expires + day),
      redis.zadd(due, expires, member),
    ])
    return id
  },
  async catch (id, agent) {
    const { key } = placeOf(id)
    const [record, payload] = await redis.hmget(key, 's', 'p')
    if (record?.startsWith('pending ') !== true) return null
    const now = Date.now()
    await Promise.all([
      redis.hset(key, 's', `caught${record.slice(7)} ${now} ${now + day} ${agent} -`),
      redis.pexpireat(key, now + 2 * day),
      redis.spublish(key, 'caught'),
    ])
    return JSON.parse(payload!) as Passed
  },
  async done (id, agent, output) {
    const { key, due, member } = placeOf(id)
    const record = await redis.hget(key, 's')
    if (record?.startsWith('caught ') !== true || record.split(' ')[8] !== agent) return false
    const now = Date.now()
    await Promise.all([
      redis.hset(key, 's', `done${record.slice(6)} ${now} -`, 'p', JSON.stringify(output ?? null)),
      redis.pexpireat(key, now + day),
      redis.zrem(due, member),
      redis.spublish(key, 'done'),
    ])
    return true
  },
  async status (id) {
    const record = await redis.hget(placeOf(id).key, 's')
    if (record == null) return null
    const words = record.split(' ')
    return { createdAt: new Date(Number(words[2])).toISOString(), caughtBy: words[8] ?? null }
  },
  close: () => redis.quit(),
})
