import type { Redis } from 'ioredis'
import { clock } from './history.ts'

/** A handoff's place in a due index. */
export interface Due { tag: string, member: string, score: number }
/** A handoff's hash: the record in field `s`, fields `x` and `b` if there are, and the size of field `p` in bytes. */
export interface Hash { tag: string, member: string, record: string, extra: string, after: string, payload: number }

/**
 * A handoff's place in a list of an inbox: `tenant:inbox`, `tenant:inbox:delayed`, `tenant:inbox:blocked`, `tenant:inbox:waiting` while it waits for a person,
 * `tenant:inbox:caught`, `tenant:inbox:failed`; with a group also in `tenant:inbox:grouped`, `tenant:inbox:groups GROUP`, `tenant:inbox:caught-groups GROUP`; or in that of all that failed of a tenant: `tenant failed`; or in that of the open questions:
 * `tenant asks`, and `tenant:passer asks` for those that ask the passer.
 */
export interface Listed { tag: string, list: string, member: string }

/** The groups of an inbox: those that have something, whether what has none has, those that take turns, and those that are held. */
export interface Turns { inbox: string, groups: string[], plain: boolean, queued: string[], held: string[] }

/** All handoffs in Redis, on all masters; read between `from` and `to` (this machine's clock). Only the simulator reads the turns of groups, and what counts as its agent's. */
export interface RedisState { from: number, to: number, due: Due[], hashes: Hash[], listed: Listed[], turns?: Turns[], live?: string[] }

const keysPerCall = 1000
/** Writes are held up for this long at most (ms), if nobody ends that. */
const longest = 5000

/**
 * Reads it at one moment: writes are held up meanwhile. Otherwise, of the keys that one step changes when a handoff comes due, some may be read
 * before it and some after. @param masters a connection to each
 */
export async function snapshotRedis (masters: readonly Redis[], prefix: string): Promise<RedisState> {
  await Promise.all(masters.map(redis => redis.call('CLIENT', 'PAUSE', longest, 'WRITE')))
  try {
    return await dumpRedis(masters, prefix)
  } finally {
    await Promise.all(masters.map(redis => redis.call('CLIENT', 'UNPAUSE')))
  }
}

/** Reads it, while there is no load on the service. @param masters a connection to each */
export async function dumpRedis (masters: readonly Redis[], prefix: string): Promise<RedisState> {
  const state: RedisState = { from: clock(), to: 0, due: [], hashes: [], listed: [] }
  const leaves = new Map<Hash, number>()
  for (const redis of masters) {
    // SCAN may return a key more than once. A key that two masters have must show up twice.
    const keys = new Set<string>()
    for await (const some of redis.scanStream({ match: `${prefix}:*`, count: keysPerCall }) as AsyncIterable<string[]>) {
      for (const key of some) if (isIndex(key) || key.includes(handoffMark)) keys.add(key)
    }
    const all = [...keys]
    for (let at = 0; at < all.length; at += keysPerCall) await readKeys(redis, all.slice(at, at + keysPerCall), state, leaves)
  }
  state.to = clock()
  // A handoff whose time is over meanwhile was read, and its successor, which leaves right behind it, perhaps not.
  state.hashes = state.hashes.filter(hash => leaves.get(hash)! > state.to)
  return state
}

const handoffMark = '}:h:'
const inboxMark = '}:i:'
const failedMark = '}:f:'
const asksMark = '}:a:'

/** What an inbox has besides its lists. */
export const isBeside = /:(settings|card|places|per-group|turns|held)$/

/** An entry of an inbox's list: those of groups begin with the group. */
export function listedIn (tag: string, list: string, entry: string): Listed {
  const isOfGroups = /:(groups|caught-groups)$/.test(list)
  return { tag, list: isOfGroups ? `${list} ${entry.split(' ', 1)[0]}` : list, member: isOfGroups ? entry.slice(entry.lastIndexOf(' ') + 1) : entry }
}

function isIndex (key: string): boolean {
  return key.includes('}:due:') || (key.includes(inboxMark) && !isBeside.test(key)) || key.includes(failedMark) || key.includes(asksMark)
}

/** @param leaves when Redis deletes each hash */
async function readKeys (redis: Redis, keys: string[], state: RedisState, leaves: Map<Hash, number>): Promise<void> {
  const pipeline = redis.pipeline()
  for (const key of keys) {
    if (isIndex(key) && key.endsWith(':caught')) pipeline.smembers(key)
    else if (isIndex(key)) pipeline.zrange(key, '0', '-1', 'WITHSCORES')
    else pipeline.hmget(key, 's', 'x', 'b').hstrlen(key, 'p').pexpiretime(key)
  }
  const replies = (await pipeline.exec() ?? []).map(([error, reply]) => {
    if (error !== null) throw error
    return reply
  }).values()
  for (const key of keys) {
    const reply = replies.next().value
    const tag = key.slice(key.indexOf('{') + 1, key.indexOf('}'))
    if (isIndex(key)) {
      const members = reply as string[]
      const list = key.includes(failedMark) ? `${key.split(failedMark)[1]} failed` : key.includes(asksMark) ? `${key.split(asksMark)[1]} asks` : key.split(inboxMark)[1]
      for (let at = 0; at < members.length; at += key.endsWith(':caught') ? 1 : 2) {
        const member = members[at] as string
        if (member === '-') continue
        if (list === undefined) state.due.push({ tag, member, score: Number(members[at + 1]) })
        else state.listed.push(listedIn(tag, list, member))
      }
    } else {
      const payload = replies.next().value as number
      const leavesAt = replies.next().value as number
      const [record, extra, after] = reply as Array<string | null>
      // The key has been deleted since the scan, or is being deleted.
      if (record == null) continue
      const hash = { tag, member: key.slice(key.indexOf(handoffMark) + handoffMark.length), record, extra: extra ?? '', after: after ?? '', payload }
      state.hashes.push(hash)
      leaves.set(hash, leavesAt === -1 ? Infinity : leavesAt)
    }
  }
}
