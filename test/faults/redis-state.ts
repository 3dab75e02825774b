import type { Redis } from 'ioredis'
import { clock } from './history.ts'

/** A handoff's place in a due index. */
export interface Due { tag: string, member: string, score: number }
/** A handoff's hash: the record in its field `s`, the words of field `x` where it has that, and how much is in field `p` (bytes). */
export interface Hash { tag: string, member: string, record: string, extra: string, payload: number }

/** What Redis holds of all handoffs, on all masters; `from` and `to` are when it was read (this machine's clock). */
export interface RedisState { from: number, to: number, due: Due[], hashes: Hash[] }

const keysPerCall = 1000

/** Reads it, while nobody asks the service anything. @param masters a connection to each */
export async function dumpRedis (masters: readonly Redis[], prefix: string): Promise<RedisState> {
  const state: RedisState = { from: clock(), to: 0, due: [], hashes: [] }
  for (const redis of masters) {
    // SCAN may give a key more than once. What two masters hold is there twice, and that is to be seen.
    const keys = new Set<string>()
    for await (const some of redis.scanStream({ match: `${prefix}:*`, count: keysPerCall }) as AsyncIterable<string[]>) {
      for (const key of some) if (isDue(key) || key.includes(handoffMark)) keys.add(key)
    }
    const all = [...keys]
    for (let at = 0; at < all.length; at += keysPerCall) await readKeys(redis, all.slice(at, at + keysPerCall), state)
  }
  state.to = clock()
  return state
}

const handoffMark = '}:h:'

function isDue (key: string): boolean {
  return key.endsWith('}:due')
}

async function readKeys (redis: Redis, keys: string[], state: RedisState): Promise<void> {
  const pipeline = redis.pipeline()
  for (const key of keys) {
    if (isDue(key)) pipeline.zrange(key, '0', '-1', 'WITHSCORES')
    else pipeline.hmget(key, 's', 'x').hstrlen(key, 'p')
  }
  const replies = (await pipeline.exec() ?? []).map(([error, reply]) => {
    if (error !== null) throw error
    return reply
  }).values()
  for (const key of keys) {
    const reply = replies.next().value
    const tag = key.slice(key.indexOf('{') + 1, key.indexOf('}'))
    if (isDue(key)) {
      const members = reply as string[]
      for (let at = 0; at < members.length; at += 2) state.due.push({ tag, member: members[at] as string, score: Number(members[at + 1]) })
    } else {
      const payload = replies.next().value as number
      const [record, extra] = reply as Array<string | null>
      // Gone since the scan, or going: all of it lies in one field or another.
      if (record != null) state.hashes.push({ tag, member: key.slice(key.indexOf(handoffMark) + handoffMark.length), record, extra: extra ?? '', payload })
    }
  }
}
