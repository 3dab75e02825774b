import type { Redis } from 'ioredis'
import type { Call } from './call.ts'

/** WAIT's time-out, in milliseconds: less than the silence after which a server counts as dead (redis/connect.ts). */
const ackTimeout = 500

/**
 * The barrier: a write after a group's calls, so that replicas have something new to acknowledge. If the calls only read, or found
 * their change already made, WAIT alone would succeed with old acknowledgements: a replaced master that doesn't know it yet would
 * answer outdated state. And WAIT is only documented for its own connection's writes. Sent as text, so that NOSCRIPT can't occur;
 * with allow-oom, since operations that finish a handoff must work when Redis is full.
 */
const barrier = '#!lua flags=allow-oom\nredis.call(\'SET\', KEYS[1], \'\', \'PX\', 10000)'

/**
 * The same for a master that refuses the barrier, because all its slots are migrating and it makes no new keys there. It uses a key of
 * one of the group's own calls, which exists, or may be created after ASKING. The write leaves the key unchanged, except for the log of
 * keys, a stream without a TTL: it gets one that never passes (in the year 9999), because no entry may be added here.
 */
const ownBarrier = `#!lua flags=allow-oom
local key = KEYS[1]
if type(redis.pcall('HSET', key, 'barrier', '')) == 'number' then return redis.call('HDEL', key, 'barrier') end
if type(redis.pcall('ZADD', key, 0, 'barrier')) == 'number' then return redis.call('ZREM', key, 'barrier') end
local text = redis.pcall('GET', key)
if type(text) == 'string' then return redis.call('SET', key, text, 'KEEPTTL') end
redis.call('PEXPIREAT', key, '253402300799000')`

/** A Cluster node's errors for a key whose slot it doesn't have, or has only partly. */
const elsewhere = /^(MOVED|ASK|TRYAGAIN) /

/** The calls of a tick to one master with durability: one WAIT for all, and no call is answered before it. */
export class Group {
  readonly #calls: Call[] = []
  readonly #replies: unknown[] = []

  hold (call: Call, reply: unknown): void {
    this.#calls.push(call)
    this.#replies.push(reply)
  }

  /**
   * Ends the group, after its last call on the same connection.
   * @param key a key of this master, for the barrier
   * @param replicas how many must acknowledge
   * @returns when the group is over, either way: answers its calls, or has them retried
   */
  commit (redis: Redis, key: string, replicas: number): Promise<() => void> {
    return write(redis, barrier, key, replicas).catch((error: Error) => {
      // The calls before the barrier have their replies by now.
      const own = elsewhere.test(error.message) ? this.#calls.findLast(({ asked }) => asked.keys.length > 0)?.asked.keys[0] : undefined
      if (own === undefined) throw error
      redis.asking().catch(() => {})
      return write(redis, ownBarrier, own, replicas)
    }).then(
      count => count >= replicas ? () => this.#answer() : () => this.#refuse(`${count} of ${replicas} replicas acknowledged in time`),
      (error: Error) => () => this.#refuse(error.message)
    )
  }

  #answer (): void {
    for (const [at, call] of this.#calls.entries()) call.answer(this.#replies[at])
  }

  #refuse (reason: string): void {
    for (const call of this.#calls) call.again(reason)
  }
}

/** @returns how many replicas have the barrier, and with it everything that the master wrote before */
async function write (redis: Redis, script: string, key: string, replicas: number): Promise<number> {
  const [, count] = await Promise.all([redis.eval(script, 1, key), redis.wait(replicas, ackTimeout)])
  return count
}
