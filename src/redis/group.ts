import type { Redis } from 'ioredis'
import type { Call } from './call.ts'

/** How long replicas have to acknowledge, in milliseconds: less than silence that counts as gone (redis/connect.ts). */
const ackTimeout = 500

/**
 * Written behind a group's calls, so that the replicas have something to acknowledge now. WAIT alone is content with what they
 * acknowledged long ago where the calls only read, or found what had been done before: a master that has been replaced and
 * doesn't know it yet would tell what was true once. And by its words WAIT asks for what its own connection wrote, no more.
 * By its text, so that no NOSCRIPT comes between; with allow-oom, since what finishes a handoff goes on when Redis is full.
 */
const barrier = '#!lua flags=allow-oom\nredis.call(\'SET\', KEYS[1], \'\', \'PX\', 10000)'

/**
 * The same for a master that refuses it: all that it serves is just moving away, and there it makes no new keys. A key that one of
 * the group's own calls was answered from is there, or may be made by who says ASKING. It is written to and left as it was; but the log
 * of keys, a stream, which has no end, gets one that never comes (in the year 9999): no entry of its own may be made here.
 */
const ownBarrier = `#!lua flags=allow-oom
local key = KEYS[1]
if type(redis.pcall('HSET', key, 'barrier', '')) == 'number' then return redis.call('HDEL', key, 'barrier') end
if type(redis.pcall('ZADD', key, 0, 'barrier')) == 'number' then return redis.call('ZREM', key, 'barrier') end
local text = redis.pcall('GET', key)
if type(text) == 'string' then return redis.call('SET', key, text, 'KEEPTTL') end
redis.call('PEXPIREAT', key, '253402300799000')`

/** A node of a Cluster refuses a key whose slot it doesn't have, or not the whole of. */
const elsewhere = /^(MOVED|ASK|TRYAGAIN) /

/** The calls that a tick asks of one master where replicas are to have them: one WAIT for all, and no reply told before it. */
export class Group {
  readonly #calls: Call[] = []
  readonly #replies: unknown[] = []

  hold (call: Call, reply: unknown): void {
    this.#calls.push(call)
    this.#replies.push(reply)
  }

  /**
   * Ends the group, behind its last call on the same connection.
   * @param key a key of the master's own, to write to
   * @param replicas how many have to have it
   * @returns when it is over, either way
   */
  commit (redis: Redis, key: string, replicas: number): Promise<void> {
    return write(redis, barrier, key, replicas).catch((error: Error) => {
      // Those before the barrier have been answered by now, each served or refused.
      const own = elsewhere.test(error.message) ? this.#calls.findLast(({ asked }) => asked.keys.length > 0)?.asked.keys[0] : undefined
      if (own === undefined) throw error
      redis.asking().catch(() => {})
      return write(redis, ownBarrier, own, replicas)
    }).then(count => {
      if (count >= replicas) this.#calls.forEach((call, at) => call.answer(this.#replies[at]))
      else this.#refuse(`${count} of ${replicas} replicas acknowledged in time`)
    }, (error: Error) => this.#refuse(error.message))
  }

  #refuse (reason: string): void {
    for (const call of this.#calls) call.again(reason)
  }
}

/** @returns how many replicas have it, and with it all that its connection's master wrote before */
async function write (redis: Redis, script: string, key: string, replicas: number): Promise<number> {
  const [, count] = await Promise.all([redis.eval(script, 1, key), redis.wait(replicas, ackTimeout)])
  return count
}
