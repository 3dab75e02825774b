import type { Redis } from 'ioredis'
import { KeyNames } from '../../src/store/key-names.ts'
import { loadScripts } from '../../src/redis/scripts.ts'
import type { ScriptName } from '../../src/redis/scripts.ts'
import { restore } from './states.ts'
import type { State } from './states.ts'

/** What runs the scripts raw, past lane and store: arguments as they are given, replies as Redis gives them. */
export interface Raw {
  redis: Redis
  prefix: string
  keys: KeyNames
  /** The scripts' texts, where they aren't those of lua/. */
  sourceAt?: typeof sourceAt
}

export function raw ({ redis, prefix }: { redis: Redis, prefix: string }): Raw {
  return { redis, prefix, keys: new KeyNames(prefix) }
}

/** A script's text with a clock that stands still, in milliseconds since the epoch. */
export function sourceAt (name: ScriptName, now: number): string {
  return loadScripts(`local function clock() return ${now} end\n`)[name].source
}

/** Runs a script at a moment. Its reply: texts, numbers, null and arrays of these. */
export async function run (on: Raw, name: ScriptName, now: number, keys: string[], args: Array<string | number | Buffer>): Promise<unknown> {
  return await on.redis.eval((on.sourceAt ?? sourceAt)(name, now), keys.length, ...keys, ...args)
}

/** The one handoff that the tables are about, and its partition. */
export const tag = 'T_g'
export const tenant = 'acme'
export const member = `${tenant}:T_gAAAAAAAAAAAAAAAAAAAAAA`

export const lifetimes = { expiresIn: 1000, workTtl: 2000, retention: 5000 } as const

export interface Asking { agent: string, token: string, deadline: number }

/** @param requireHuman gives the waiting list's key @param payload begins with `"task":` and ends with the task, which the list keeps whole */
export function pass (on: Raw, now: number, { agent, token, deadline }: Asking, requireHuman = false, payload: string | Buffer = '"task":"new"') {
  const keys = [on.keys.handoff(tag, member), on.keys.due(tag), ...(requireHuman ? [on.keys.waiting(tag, tenant)] : [])]
  return run(on, 'pass', now, keys, [deadline, token, agent, lifetimes.expiresIn, lifetimes.retention, member, payload.length - 8, payload])
}

export function catchIt (on: Raw, now: number, { agent, token, deadline }: Asking, workTtl: number = lifetimes.workTtl) {
  return run(on, 'catch', now, [on.keys.handoff(tag, member), on.keys.due(tag)], [deadline, token, agent, workTtl, lifetimes.retention, member])
}

/** @param result JSON text; empty for none */
export function done (on: Raw, now: number, { agent, token, deadline }: Asking, result = '{"new":1}') {
  return run(on, 'done', now, [on.keys.handoff(tag, member), on.keys.due(tag)],
    [deadline, token, agent, lifetimes.retention, member, result])
}

/** @param note JSON text */
export function approve (on: Raw, now: number, { agent, token, deadline }: Asking, note: string | Buffer = 'null', seen: number | '' = '') {
  return run(on, 'approve', now, [on.keys.handoff(tag, member), on.keys.waiting(tag, tenant)], [deadline, token, agent, member, seen, note])
}

/** @param note JSON text */
export function reject (on: Raw, now: number, { agent, token, deadline }: Asking, note: string | Buffer = '"no"', seen: number | '' = '') {
  return run(on, 'reject', now, [on.keys.handoff(tag, member), on.keys.waiting(tag, tenant), on.keys.due(tag)],
    [deadline, token, agent, lifetimes.retention, member, seen, note])
}

export function inspect (on: Raw, now: number) {
  return run(on, 'inspect', now, [on.keys.handoff(tag, member)], [])
}

/** @param after the last one seen: when it was passed, and its member */
export function waiting (on: Raw, now: number, limit: number, after: [created: number, member: string] = [0, '']) {
  return run(on, 'waiting', now, [on.keys.waiting(tag, tenant)], [...after, limit, on.keys.partition(tag)])
}

export function status (on: Raw, now: number) {
  return run(on, 'status', now, [on.keys.handoff(tag, member)], [])
}

export function sweep (on: Raw, now: number, limit = 10, deadline = now, naming = 0) {
  return run(on, 'sweep', now, [on.keys.due(tag)], [deadline, on.keys.partition(tag), limit, naming, lifetimes.retention])
}

export function lease (on: Raw, now: number, holder: string, duration: number, deadline = now) {
  return run(on, 'lease', now, [on.keys.sweeper(tag)], [deadline, holder, duration])
}

/** @param needed requests now @param spare more to hold, at the most */
export function rate (on: Raw, now: number, limit: number, needed: number, spare = 0, deadline = now) {
  return run(on, 'rate', now, [on.keys.rate(tag, tenant, 'alice')], [deadline, limit, 60_000, needed, spare])
}

/** Puts the one handoff into a state, whatever was there before. */
export async function put (on: Raw, state: State): Promise<void> {
  const [handoff, due, waiting] = [on.keys.handoff(tag, member), on.keys.due(tag), on.keys.waiting(tag, tenant)]
  await on.redis.del(handoff, due, waiting)
  await restore(on.redis, state, { handoff, due, waiting, member })
}

/** How a state looks in a dump (test/helpers/redis.ts). */
export function dumped (state: State): Record<string, unknown> {
  const all: Record<string, unknown> = {}
  const zset = (score: number) => ({ type: 'zset', content: [member, String(score)], expires: -1 })
  if (state.hash) all[`{${tag}}:h:${member}`] = { type: 'hash', content: state.hash, expires: state.expires }
  if (state.due !== undefined) all[`{${tag}}:due`] = zset(state.due)
  if (state.waiting !== undefined) all[`{${tag}}:w:${tenant}`] = zset(state.waiting)
  return all
}
