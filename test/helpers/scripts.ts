import { createHash } from 'node:crypto'
import type { ChainableCommander, Redis } from 'ioredis'
import { KeyNames } from '../../src/store/key-names.ts'
import { loadScripts } from '../../src/redis/scripts.ts'
import type { ScriptName } from '../../src/redis/outcomes.ts'
import { withClock } from './lua-clock.ts'
import { digest, id, nextId } from './moments.ts'
import type { State } from './moments.ts'

/** Runs the scripts directly, without lane and store: with the given arguments, and returning Redis's own replies. */
export interface Raw {
  redis: Redis
  prefix: string
  keys: KeyNames
  /** The handoff, if it isn't `member`. */
  member?: string
}

export function raw ({ redis, prefix }: { redis: Redis, prefix: string }): Raw {
  return { redis, prefix, keys: new KeyNames(prefix) }
}

export const lifetimes = { expiresIn: 1000, workTtl: 2000, retention: 5000, maxWorkTtl: 10_000 } as const

/** The scripts' clock, for a source in which `@now` is then replaced with the time in milliseconds. */
export const clockAtNow = "local function clock() return @now, '@now', '000', '@now' end\n"

const scripts = loadScripts({ edit: withClock(clockAtNow), lifetimes })

/** A script's text with a clock that stands still, in milliseconds since the epoch. */
export function sourceAt (name: ScriptName, now: number): string {
  return scripts[name].source.replaceAll('@now', String(now))
}

/** Runs a script at a given time. The reply consists of texts, numbers, null and arrays. */
export async function run (on: Raw, name: ScriptName, now: number, keys: string[], args: Array<string | number | Buffer>, source = sourceAt(name, now)): Promise<unknown> {
  const sha1 = createHash('sha1').update(source).digest('hex')
  // The text is much longer than all else, and the same a hundred times.
  return await on.redis.evalsha(sha1, keys.length, ...keys, ...args).catch((error: Error) => {
    if (!error.message.startsWith('NOSCRIPT')) throw error
    return on.redis.eval(source, keys.length, ...keys, ...args)
  }).catch((error: Error) => {
    // As the lane does it (redis/lanes.ts).
    const { whenFull } = scripts[name]
    if (!error.message.startsWith('OOM') || whenFull === undefined) throw error
    return on.redis.eval(whenFull.source.replaceAll('@now', String(now)), keys.length, ...keys, ...args)
  })
}

/** The one handoff that the tables are about, and its partition. */
export const tag = 'T_g'
export const tenant = 'acme'
export const member = `${tenant}:${id}`

export interface Asking { agent: string, token: string, deadline: number }

const itself = (on: Raw) => on.member ?? member

/** @param requireHuman adds the waiting list's key @param payload begins with `"task":` and ends with the task, which the list keeps whole @param options besides require_human's @returns its reply, a number as a tagged one */
export async function pass (on: Raw, now: number, { agent, token, deadline }: Asking, requireHuman = false, payload: string | Buffer = '"task":"new"', options = '') {
  const keys = [on.keys.handoff(tag, itself(on)), on.keys.due(tag, tenant), ...(requireHuman ? [on.keys.waiting(tag, tenant)] : [])]
  const itsOptions = requireHuman && options !== ' ?' ? `${options} l${payload.length - 8} h${digest}` : options
  const reply = await run(on, 'pass', now, keys, [deadline, `${agent} ${token}`, lifetimes.expiresIn, ...itsOptions === '' ? [] : [itsOptions], payload])
  return typeof reply === 'number' ? ['passed', reply, reply + lifetimes.expiresIn] : reply
}

/** @returns its reply with all of its parts, those that are left out at its end as null */
export async function catchIt (on: Raw, now: number, { agent, token, deadline }: Asking, workTtl: number = lifetimes.workTtl) {
  const source = sourceAt('catch', now).replace(/^(local WORK_TTL = )\d+/m, `$1${workTtl}`)
  const reply = await run(on, 'catch', now, [on.keys.handoff(tag, itself(on)), on.keys.due(tag, tenant)], [deadline, `${agent} ${token}`], source) as unknown[]
  if (reply[0] !== 'caught' && reply[0] !== 'replayed') return reply
  const [outcome, created, ...parts] = reply
  return [outcome, Number(created), ...parts, ...Array.from({ length: 6 - parts.length }, () => null)]
}

/** @param result JSON text; empty for none @returns its reply, a number as a tagged one */
export async function done (on: Raw, now: number, { agent, token, deadline }: Asking, result = '{"new":1}', satisfied = '') {
  const reply = await run(on, 'done', now, [on.keys.handoff(tag, itself(on)), on.keys.due(tag, tenant)], [deadline, agent, token, ...satisfied === '' ? [] : [satisfied], result])
  return typeof reply === 'number' ? ['done', reply] : reply
}

/** @param fault JSON text */
export function fail (on: Raw, now: number, { agent, token, deadline }: Asking, fault = '{"message":"new"}', mayRetry = 1) {
  return run(on, 'give-up', now, [on.keys.handoff(tag, itself(on)), on.keys.due(tag, tenant)], [deadline, 'failed', token, agent, lifetimes.retention, itself(on), mayRetry, '', '', fault])
}

/** @param reason JSON text */
export function decline (on: Raw, now: number, { agent, token, deadline }: Asking, reason = '"new"') {
  return run(on, 'give-up', now, [on.keys.handoff(tag, itself(on)), on.keys.due(tag, tenant)], [deadline, 'declined', token, agent, lifetimes.retention, itself(on), 1, '', '', reason])
}

/** @param extendBy milliseconds @param progress JSON text; empty for none */
export function heartbeat (on: Raw, now: number, { agent, deadline }: Omit<Asking, 'token'>, extendBy: number | '' = '', progress = '') {
  return run(on, 'heartbeat', now, [on.keys.handoff(tag, itself(on))], [deadline, agent, lifetimes.retention, extendBy, lifetimes.maxWorkTtl, '', progress])
}

/** A question of its catcher. @param schema of the answer, by its digest and as JSON text; none if both are left out @param openFor milliseconds */
export function ask (on: Raw, now: number, { agent, token, deadline }: Asking, { openFor = 1000, digest = '-', schema = '' } = {}) {
  return run(on, 'ask', now, [on.keys.handoff(tag, itself(on)), on.keys.due(tag, tenant)],
    [deadline, agent, lifetimes.retention, itself(on), lifetimes.maxWorkTtl, token, 'askId', 'p', openFor, digest, `0 ${schema.length}`, '', '"?"', schema])
}

/** A person's answer to that question. @param satisfied the digest of the schema that it was checked against; empty if it wasn't */
export function answer (on: Raw, now: number, { agent, token, deadline }: Asking, satisfied = '') {
  return run(on, 'answer', now, [on.keys.handoff(tag, itself(on)), on.keys.due(tag, tenant)],
    [deadline, agent, lifetimes.retention, itself(on), token, 'askId', 'p', satisfied, '-', 'null', '1'])
}

/** @param reason JSON text; empty for none */
export function cancel (on: Raw, now: number, { agent, deadline }: Omit<Asking, 'token'>, force = 0, reason = '', operator = 0) {
  return run(on, 'cancel', now, [on.keys.handoff(tag, itself(on)), on.keys.due(tag, tenant)], [deadline, agent, lifetimes.retention, itself(on), operator, force, reason])
}

export function reissue (on: Raw, now: number, { agent, deadline }: Omit<Asking, 'token'>, operator = 0) {
  return run(on, 'reissue', now, [on.keys.handoff(tag, itself(on)), on.keys.due(tag, tenant)], [deadline, agent, lifetimes.retention, itself(on), operator])
}

/** @param signed as decide.lua has it @param note JSON text */
export function decide (on: Raw, now: number, verdict: 'approved' | 'rejected', { agent, token, deadline }: Asking, { note = 'null', seen = '', itsDigest = '', person = '', signed = '' }: { note?: string | Buffer, seen?: number | '', itsDigest?: string, person?: string, signed?: string }) {
  return run(on, 'decide', now, [on.keys.handoff(tag, itself(on)), on.keys.due(tag, tenant)],
    [deadline, verdict, token, agent, lifetimes.retention, itself(on), seen, itsDigest, '', person, '-', signed, note])
}

/** @param note JSON text */
export function approve (on: Raw, now: number, { agent, token, deadline }: Asking, note: string | Buffer = 'null', seen: number | '' = '', itsDigest = '') {
  return decide(on, now, 'approved', { agent, token, deadline }, { note, seen, itsDigest })
}

/** @param note JSON text */
export function reject (on: Raw, now: number, { agent, token, deadline }: Asking, note: string | Buffer = '"no"', seen: number | '' = '', itsDigest = '') {
  return decide(on, now, 'rejected', { agent, token, deadline }, { note, seen, itsDigest })
}

export function inspect (on: Raw, now: number) {
  return run(on, 'inspect', now, [on.keys.handoff(tag, itself(on))], [])
}

/**
 * @param after where the list goes on: when that one was passed, its member, and whether it is itself still to come
 * @param words those of field x that are wanted, and how many members to look at
 * @returns `listed`, the time, where the list goes on (nulls at its end), and the parts of each item
 */
export async function waiting (
  on: Raw, now: number, limit: number, [created, member, includes]: [created: number | '', member: string, includes?: '1'] = ['', ''], words = '', looks = 1000
) {
  const reply = await run(on, 'list', now, [on.keys.waiting(tag, tenant)], ['waiting', limit, looks, '', '', '', '', '', '', words, 0, '', created, member, includes ?? '0'])
  const [outcome, at, , [since, behind, , ...items]] = reply as [string, number, number, [unknown, unknown, number, ...unknown[][]]]
  return [outcome, at, since, behind, ...items.flatMap(([, ...parts]) => parts)]
}

export function status (on: Raw, now: number) {
  return run(on, 'status', now, [on.keys.handoff(tag, itself(on))], [])
}

/** @param inboxes the inboxes that the key is limited to */
export function read (on: Raw, now: number, agent: string, inboxes?: string[]) {
  return run(on, 'read', now, [on.keys.handoff(tag, itself(on))], [agent, ...inboxes === undefined ? [] : [` ${inboxes.join(' ')} `]])
}

export function sweep (on: Raw, now: number, limit = 10, deadline = now, naming = 0, hasMoved = 0) {
  return run(on, 'sweep', now, [on.keys.tenants(tag)], [deadline, on.keys.partition(tag), limit, naming, lifetimes.retention, 'all', hasMoved])
}

export function lineage (on: Raw, now: number) {
  return run(on, 'lineage', now, [on.keys.handoff(tag, itself(on))], [])
}

export function lease (on: Raw, now: number, holder: string, duration: number, deadline = now) {
  return run(on, 'lease', now, [on.keys.sweeper(tag)], [deadline, holder, duration])
}

/** @param needed requests now @param spare more to hold, at the most */
export function rate (on: Raw, now: number, limit: number, needed: number, spare = 0, deadline = now) {
  return run(on, 'rate', now, [on.keys.rate(tag, tenant, 'alice')], [deadline, limit, 60_000, needed, spare])
}

/** Every script's refusal in a state: its reason, the record, and the decision if that is the reason. */
export function refused (code: string, { now, hash }: State): unknown[] {
  if (hash === undefined) return [code]
  const judged = [code, now, hash.s, hash.x ?? null]
  const isRejected = code === 'not_the_passer' && hash.s.includes('rejected rejected')
  return code === 'rejected' || code === 'already_decided' || isRejected ? [...judged, hash.d ?? null] : judged
}

/** The successor's id. */
function nextOf ({ hash }: State): string {
  return / i(\S+)/.exec(hash!.x!)![1]!
}

/** Writes a state under the given keys, which must be unused. */
export async function restore (redis: Redis, state: State, keys: { handoff: string, due: string, waiting: string, member: string }): Promise<void> {
  const all = redis.multi()
  if (state.hash) all.hset(keys.handoff, state.hash).pexpireat(keys.handoff, state.expires!)
  if (state.due !== undefined) enterDue(all, keys.due, state.due, keys.member)
  if (state.waiting !== undefined) all.zadd(keys.waiting, state.waiting, keys.member)
  if (state.next) {
    const behind = (name: string) => name.slice(0, -nextId.length) + nextOf(state)
    all.hset(behind(keys.handoff), state.next.hash).pexpireat(behind(keys.handoff), state.next.expires)
    enterDue(all, keys.due, state.next.due, behind(keys.member))
  }
  await all.exec()
}

/** As lua/lib/due.lua. */
function enterDue (to: ChainableCommander, due: string, time: number, member: string): void {
  const [, prefix, tenant] = /^(.*}:)due:(.*)$/.exec(due)!
  to.zadd(due, time, member, 'inf', '-').zadd(`${prefix}tenants`, 'LT', time, tenant!)
}

/** Puts the one handoff into a state. Whatever it or its successor was before is overwritten. */
export async function put (on: Raw, state: State): Promise<void> {
  const [handoff, due, waiting] = [on.keys.handoff(tag, member), on.keys.due(tag, tenant), on.keys.waiting(tag, tenant)]
  const [, behind] = / i(\S+)/.exec(await on.redis.hget(handoff, 'x') ?? '') ?? []
  await on.redis.del(handoff, due, on.keys.tenants(tag), waiting, ...behind === undefined ? [] : [on.keys.handoff(tag, `${tenant}:${behind}`)])
  await restore(on.redis, state, { handoff, due, waiting, member })
}

/** A state as a dump shows it (test/helpers/redis.ts). @param name the handoff, if it isn't the one */
export function dumped (state: State, name = member): Record<string, unknown> {
  const all: Record<string, unknown> = {}
  const zset = (score: number, whose = name) => ({ type: 'zset', content: [whose, String(score)], expires: -1 })
  const hash = (content: unknown, expires: number | undefined) => ({ type: 'hash', content, expires })
  if (state.hash) all[`{${tag}}:h:${name}`] = hash(state.hash, state.expires)
  if (state.due !== undefined) all[`{${tag}}:due:${tenant}`] = zset(state.due)
  if (state.waiting !== undefined) all[`{${tag}}:w:${tenant}`] = zset(state.waiting)
  if (state.next) {
    const behind = `${tenant}:${nextOf(state)}`
    all[`{${tag}}:h:${behind}`] = hash(state.next.hash, state.next.expires)
    all[`{${tag}}:due:${tenant}`] = zset(state.next.due, behind)
  }
  return all
}
