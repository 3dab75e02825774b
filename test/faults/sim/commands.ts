import type { Keyspace } from './keyspace.ts'
import { sortedCommands } from './sorted-commands.ts'

/** The commands of Redis that lua/ uses, with RESP2's replies: `false` for nil. */
export type Command = (on: Keyspace, ...args: string[]) => Reply
export type Reply = string | number | false | Reply[]

/** Those that write nothing. */
export const reading = new Set(['HGET', 'HGETALL', 'HMGET', 'HSTRLEN', 'EXISTS', 'GET', 'ZRANGE', 'ZCARD', 'ZCOUNT', 'ZLEXCOUNT', 'ZSCORE', 'LRANGE', 'SCARD', 'SISMEMBER', 'SRANDMEMBER', 'XLEN', 'XRANGE', 'XREVRANGE', 'PEXPIRETIME', 'SCAN', 'TIME'])
const withoutKeys = new Set(['SCAN', 'TIME', 'SPUBLISH'])
const withKeysAlone = new Set(['EXISTS', 'DEL', 'RENAME'])

export function keysOf (name: string, args: readonly string[]): readonly string[] {
  return withoutKeys.has(name) ? [] : withKeysAlone.has(name) ? args : args.slice(0, 1)
}

export const commands: Readonly<Record<string, Command>> = {
  ...sortedCommands,
  TIME: on => [String(Math.floor(on.now / 1000)), String(Math.floor(on.now * 1000 % 1e6))],
  SPUBLISH: () => 0,
  EXISTS: (on, ...keys) => keys.filter(key => on.has(key)).length,
  /** All at once: the pattern begins with a text, and matches any handoff's key. */
  SCAN: (on, _, how, pattern) => ['0', [...on.db.values.keys()].filter(key => how === 'MATCH' && key.startsWith(pattern!.split('*', 1)[0]!) && key.includes('}:h:') && on.has(key))],
  DEL (on, ...keys) {
    const found = keys.filter(key => on.has(key))
    for (const key of found) on.put(key, undefined)
    return found.length
  },
  RENAME (on, from, to) {
    on.rename(from!, to!)
    return 'OK'
  },
  PEXPIREAT (on, key, at, how) {
    if (how === 'GT' && Number(at) <= on.expiryOf(key!)) return 0
    return on.expire(key!, Number(at)) ? 1 : 0
  },
  PEXPIRETIME (on, key) {
    const expires = on.expiryOf(key!)
    return expires < Infinity ? expires : on.has(key!) ? -1 : -2
  },
  GET: (on, key) => on.read(key!, 'text') ?? false,
  SET (on, key, content, how, milliseconds) {
    const expires = how === 'PX' ? Math.floor(on.now) + Number(milliseconds) : how === 'KEEPTTL' ? on.expiryOf(key!) : Infinity
    on.put(key!, { type: 'text', content: content!, expires })
    return 'OK'
  },
  HGET: (on, key, field) => on.read(key!, 'hash')?.[field!] ?? false,
  HMGET (on, key, ...fields) {
    const hash = on.read(key!, 'hash')
    return fields.map(field => hash?.[field] ?? false)
  },
  HSTRLEN: (on, key, field) => on.read(key!, 'hash')?.[field!]?.length ?? 0,
  HSET (on, key, ...words) {
    const hash = { ...on.read(key!, 'hash') }
    let added = 0
    for (let at = 0; at < words.length; at += 2) {
      if (hash[words[at]!] === undefined) added++
      hash[words[at]!] = words[at + 1]!
    }
    on.write(key!, 'hash', hash)
    return added
  },
  HDEL (on, key, ...fields) {
    const hash = { ...on.read(key!, 'hash') }
    const found = fields.filter(field => field in hash)
    for (const field of found) delete hash[field]
    if (found.length > 0) on.write(key!, 'hash', hash, Object.keys(hash).length === 0)
    return found.length
  },
  HGETALL: (on, key) => Object.entries(on.read(key!, 'hash') ?? {}).flat(),
  SADD (on, key, ...members) {
    const before = on.read(key!, 'set')?.size ?? 0
    const all = new Set([...on.read(key!, 'set') ?? [], ...members])
    on.write(key!, 'set', all)
    return all.size - before
  },
  SREM (on, key, ...members) {
    const all = on.read(key!, 'set') ?? new Set()
    const rest = new Set([...all].filter(one => !members.includes(one)))
    if (rest.size < all.size) on.write(key!, 'set', rest, rest.size === 0)
    return all.size - rest.size
  },
  SISMEMBER: (on, key, member) => on.read(key!, 'set')?.has(member!) === true ? 1 : 0,
  SCARD: (on, key) => on.read(key!, 'set')?.size ?? 0,
  /** In Redis any of them: which ones makes no difference to who has to come to all. */
  SRANDMEMBER: (on, key, count) => [...on.read(key!, 'set') ?? []].slice(0, Number(count)),
  RPUSH (on, key, ...words) {
    const list = [...on.read(key!, 'list') ?? [], ...words]
    on.write(key!, 'list', list)
    return list.length
  },
  RPUSHX: (on, key, ...words) => on.has(key!) ? commands.RPUSH!(on, key!, ...words) : 0,
  LRANGE: (on, key, first, last) => slice(on.read(key!, 'list') ?? [], Number(first), Number(last)),
  LTRIM (on, key, first, last) {
    const list = on.read(key!, 'list')
    if (list === undefined) return 'OK'
    const rest = slice(list, Number(first), Number(last))
    on.write(key!, 'list', rest, rest.length === 0)
    return 'OK'
  },
  XADD (on, key, id, ...words) {
    if (id !== '*') throw new Error(`XADD ${id}`)
    const { entries, last } = on.read(key!, 'stream') ?? { entries: [], last: [0, 0] as const }
    const now = Math.floor(on.now)
    const next = now > last[0] ? [now, 0] as const : [last[0], last[1] + 1] as const
    on.write(key!, 'stream', { entries: [...entries, { id: next.join('-'), words }], last: next })
    return next.join('-')
  },
  /** With ~ only whole nodes, each of a hundred events: here all, once the last one is old enough. */
  XTRIM (on, key, by, about, oldest) {
    const stream = on.read(key!, 'stream')
    if (by !== 'MINID' || about !== '~') throw new Error(`XTRIM ${by} ${about}`)
    if (stream === undefined || stream.entries.length === 0 || stream.last[0] >= Number(oldest)) return 0
    on.write(key!, 'stream', { ...stream, entries: [] })
    return stream.entries.length
  },
}

/** From one place to another, both included; below 0 they count from the end. */
export function slice<T> (all: readonly T[], first: number, last: number): T[] {
  return all.slice(first < 0 ? Math.max(0, all.length + first) : first, last < 0 ? all.length + last + 1 : last + 1)
}
